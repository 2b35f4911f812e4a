package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The sections that a document has by itself. Others are as good.
const (
	Preferences = "Preferences"
	Context     = "Context"
	Patterns    = "Learned Patterns"
)

// Sections are the sections that a document has by itself, in their order.
func Sections() []string { return []string{Preferences, Context, Patterns} }

// Origin is where an entry comes from.
type Origin string

// The origins. Entries that people wrote into a document by hand have none.
const (
	// Person: somebody added it with the command or the API.
	Person Origin = "person"
	// Agent: a model wrote it that had nothing but people's words before it in the
	// turn, or a person approved it.
	Agent Origin = "agent"
	// Tool: a model wrote it that had read outputs of tools, and nobody looked at
	// it. It is data and never an instruction.
	Tool Origin = "tool"
	// Workspace: it stands in the project's file, and neither agentd wrote it nor did
	// anybody here agree to it. It is data and never an instruction.
	Workspace Origin = "workspace"
)

// doubtful is whether no person has said or seen it.
func (o Origin) doubtful() bool { return o == Tool || o == Workspace }

// Entry is one sentence that is remembered: an item of a list in a document.
type Entry struct {
	// ID is made of the scope and the words: the same words are the same entry.
	ID    string `json:"memory_id"`
	Scope Scope  `json:"scope"`
	// Section is the heading above it; "" if there is none.
	Section string `json:"section,omitempty"`
	Text    string `json:"text"`
	Origin  Origin `json:"origin,omitempty"`
	// Date is the day on which it was remembered, as YYYY-MM-DD; "" if a person
	// wrote it by hand.
	Date string `json:"date,omitempty"`
	// Run is the run that remembered it, if one did.
	Run string `json:"run_id,omitempty"`
}

// Document is a MEMORY.md. The zero value is an empty one.
type Document struct {
	scope  Scope
	blocks []block
	// fence is that of a block of code without an end.
	fence string
}

// block is one item of a list, or a line of anything else.
type block struct {
	lines []string
	entry *Entry // nil: no item
	head  string // of a heading of the second level
	top   bool   // a heading of the first level
	// foreign: somebody else wrote it, and nobody here has agreed to it.
	foreign bool
	plain   bool // entry is a line of text that is foreign, and no item
}

var (
	meta    = regexp.MustCompile(`[ \t]*<!-- agentd:([^>]*?) ?-->[ \t]*$`)
	dateRE  = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	wordsRE = regexp.MustCompile(`[\pL\pN]+`)
)

// Parse reads a document. Every text is one: what is no list is kept as it is.
func Parse(scope Scope, text string) *Document {
	d := &Document{scope: scope}
	if text == "" {
		return d
	}
	section, fence := "", ""
	lines := strings.Split(text, "\n")
	for i, raw := range lines {
		line := strings.TrimSuffix(raw, "\r")
		trimmed := strings.TrimSpace(line)
		if fence != "" || strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			switch {
			case fence == "":
				fence = trimmed[:3]
			case strings.HasPrefix(trimmed, fence):
				fence = ""
			}
			d.blocks = append(d.blocks, block{lines: []string{raw}})
			continue
		}
		switch {
		case strings.HasPrefix(line, "# "):
			section = ""
			d.blocks = append(d.blocks, block{lines: []string{raw}, top: true})
		case strings.HasPrefix(line, "## ") && strings.TrimSpace(line[3:]) != "":
			section = strings.TrimSpace(line[3:])
			d.blocks = append(d.blocks, block{lines: []string{raw}, head: section})
		case item(line) != "":
			d.blocks = append(d.blocks, block{lines: []string{raw}, entry: d.entry(section, item(line))})
		case trimmed != "" && (line[0] == ' ' || line[0] == '\t') && len(d.blocks) > 0 && d.blocks[len(d.blocks)-1].entry != nil:
			// A line that goes on with the item above.
			b := &d.blocks[len(d.blocks)-1]
			b.lines = append(b.lines, raw)
		case i == len(lines)-1 && raw == "":
			d.blocks = append(d.blocks, block{lines: []string{""}}) // behind the last line break
		default:
			d.blocks = append(d.blocks, block{lines: []string{raw}})
		}
	}
	for i := range d.blocks { // once each: somebody's item may have very many lines
		if b := &d.blocks[i]; b.entry != nil && len(b.lines) > 1 {
			b.entry = d.entry(b.entry.Section, joined(b.lines))
		}
	}
	d.fence = fence
	return d
}

// item is the text of a line that is an item of a list, or "".
func item(line string) string {
	if len(line) > 2 && strings.ContainsRune("-*+", rune(line[0])) && (line[1] == ' ' || line[1] == '\t') {
		text := strings.TrimSpace(line[2:])
		if meta.ReplaceAllString(text, "") == "" || strings.Trim(text, "-*_ \t") == "" { // a rule, or nothing
			return ""
		}
		return text
	}
	return ""
}

func joined(lines []string) string {
	parts := []string{item(strings.TrimSuffix(lines[0], "\r"))}
	for _, l := range lines[1:] {
		parts = append(parts, strings.TrimSpace(l))
	}
	return strings.Join(parts, " ")
}

// entry reads an item: its text and, in a comment behind it, what is known of it.
func (d *Document) entry(section, text string) *Entry {
	e := &Entry{Scope: d.scope, Section: section}
	if m := meta.FindStringSubmatch(text); m != nil {
		text = strings.TrimSpace(text[:len(text)-len(m[0])])
		for _, word := range strings.Fields(m[1]) {
			switch {
			case dateRE.MatchString(word):
				e.Date = word
			case strings.HasPrefix(word, "run_"):
				e.Run = word
			case word == string(Person) || word == string(Agent):
				e.Origin = Origin(word)
			default: // a later version's word, or a damaged one: the careful reading
				e.Origin = Tool
			}
		}
		if e.Origin == "" {
			e.Origin = Tool
		}
	}
	e.Text, e.ID = text, idOf(d.scope, text)
	return e
}

// idOf is the same for texts that differ in space, case and marks alone.
func idOf(scope Scope, text string) string {
	words := strings.Join(wordsRE.FindAllString(strings.ToLower(text), -1), " ")
	if words == "" {
		words = text
	}
	sum := sha256.Sum256([]byte(string(scope) + "\x00" + words))
	return "mem_" + hex.EncodeToString(sum[:6])
}

// String is the document's text. Of one that was only read it is what was read.
func (d *Document) String() string {
	var lines []string
	for _, b := range d.blocks {
		lines = append(lines, b.lines...)
	}
	return strings.Join(lines, "\n")
}

// Entries are the items of all lists, in their order, and lines of text that are not
// trusted.
func (d *Document) Entries() []Entry {
	var out []Entry
	for _, b := range d.blocks {
		if b.entry != nil {
			out = append(out, *b.entry)
		}
	}
	return out
}

func (d *Document) find(id string) int {
	plain := -1
	for i, b := range d.blocks {
		switch {
		case b.entry == nil || b.entry.ID != id:
		case !b.plain:
			return i
		case plain < 0:
			plain = i
		}
	}
	return plain
}

// Find gives an entry.
func (d *Document) Find(id string) (Entry, bool) {
	if i := d.find(id); i >= 0 {
		return *d.blocks[i].entry, true
	}
	return Entry{}, false
}

// Add puts an entry at the end of its section, which is made if it is not there.
// It gives the entry as it is in the document, and false if it was there: then
// nothing changes, unless a person says now what a tool had said, or what others wrote.
func (d *Document) Add(e Entry) (Entry, bool) {
	e.Scope, e.ID = d.scope, idOf(d.scope, e.Text)
	if i := d.find(e.ID); i >= 0 && !d.blocks[i].plain {
		have := d.blocks[i].entry
		if !have.Origin.doubtful() || e.Origin != Person {
			return *have, false
		}
		e.Section = have.Section
		d.blocks[i] = written(e)
		return e, true
	}
	if d.fence != "" { // what comes behind it would be code
		d.insert(len(d.blocks), d.fence)
		d.fence = ""
	}
	at := d.place(e.Section)
	d.blocks = append(d.blocks[:at:at], append([]block{written(e)}, d.blocks[at:]...)...)
	return e, true
}

// place is where a new entry of a section goes. The section is there afterwards.
func (d *Document) place(section string) int {
	if len(d.blocks) == 0 {
		d.blocks = lineBlocks("# Memory", "")
	}
	at := -1
	for i, b := range d.blocks {
		if b.head != "" && b.head == section {
			at = i + 1
			for j := at; j < len(d.blocks) && d.blocks[j].head == "" && !d.blocks[j].top; j++ {
				if strings.TrimSpace(d.blocks[j].lines[0]) != "" {
					at = j + 1
				}
			}
			if at == i+1 { // nothing below the heading yet
				if at == len(d.blocks) || strings.TrimSpace(d.blocks[at].lines[0]) != "" {
					d.insert(at, "")
				}
				at++
			}
			if at == len(d.blocks) {
				d.insert(at, "")
			}
			return at
		}
	}
	end := len(d.blocks)
	for end > 0 && strings.TrimSpace(d.blocks[end-1].lines[0]) == "" {
		end--
	}
	d.blocks = append(d.blocks[:end:end], lineBlocks("", "## "+section, "", "")...)
	d.blocks[end+1].head = section
	return len(d.blocks) - 1
}

func (d *Document) insert(at int, line string) {
	d.blocks = append(d.blocks[:at:at], append(lineBlocks(line), d.blocks[at:]...)...)
}

func lineBlocks(lines ...string) []block {
	out := make([]block, len(lines))
	for i, l := range lines {
		out[i] = block{lines: []string{l}, top: strings.HasPrefix(l, "# ")}
	}
	return out
}

// written is an entry as a line.
func written(e Entry) block {
	line := "- " + e.Text
	if e.Origin != "" {
		line += " <!-- agentd: " + strings.Join(strings.Fields(e.Date+" "+string(e.Origin)+" "+e.Run), " ") + " -->"
	}
	return block{lines: []string{line}, entry: &e}
}

// Replace gives an entry other words. It is false if there is none. If another
// entry has these words already, the two become one.
func (d *Document) Replace(id string, e Entry) (Entry, bool) {
	i := d.find(id)
	if i < 0 {
		return Entry{}, false
	}
	e.Scope, e.ID = d.scope, idOf(d.scope, e.Text)
	if e.Section != d.blocks[i].entry.Section && e.Section != "" {
		d.Remove(id)
		return d.merge(e), true
	}
	e.Section = d.blocks[i].entry.Section
	if j := d.find(e.ID); j >= 0 && j != i {
		d.Remove(id)
		return d.merge(e), true
	}
	d.blocks[i] = written(e)
	return e, true
}

// merge adds an entry, in the place of one with the same words.
func (d *Document) merge(e Entry) Entry {
	if d.Remove(e.ID); e.Section == "" {
		e.Section = Context
	}
	out, _ := d.Add(e)
	return out
}

// Remove takes an entry out. It is false if there is none.
func (d *Document) Remove(id string) bool {
	i := d.find(id)
	if i < 0 {
		return false
	}
	for ; i >= 0; i = d.find(id) { // a person may have written it twice
		d.blocks = append(d.blocks[:i:i], d.blocks[i+1:]...)
	}
	return true
}

// Expire takes out what was remembered before a day (YYYY-MM-DD), and says how
// much that was. What people wrote by hand has no day and stays.
func (d *Document) Expire(before string) int {
	old := map[string]bool{}
	for _, e := range d.Entries() {
		if e.Date != "" && e.Date < before {
			old[e.ID] = true
		}
	}
	if len(old) > 0 {
		d.blocks = slices.DeleteFunc(d.blocks, func(b block) bool { return b.entry != nil && old[b.entry.ID] })
	}
	return len(old)
}

// words are those of a text, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}
