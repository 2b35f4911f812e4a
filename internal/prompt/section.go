package prompt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"agentd/model"
)

// Tier says how often a section changes.
type Tier string

// The tiers, in the order in which they are emitted.
const (
	// Static changes on deploy: who the agent is, house rules.
	Static Tier = "static"
	// Org changes when an administrator edits something: catalogues, project files,
	// skills, and what depends on the run mode.
	Org Tier = "org"
	// Turn may change with every message. Sections of this tier are not part of
	// the system prompt; see [Set.Blocks].
	Turn Tier = "turn"
)

// rank is the place of a tier, -1 of a word that is none.
func (t Tier) rank() int { return slices.Index([]Tier{Static, Org, Turn}, t) }

// Section is a piece of the prompt. Name, Tier and one of Text and Render are
// required.
type Section struct {
	// Name is unique within a set.
	Name string
	Tier Tier
	// RunModes are those in which it is shown; empty: in all.
	RunModes []string
	// When says under which conditions it is shown.
	When When
	// Text is what it says. Placeholders in it ({{date}}) are filled in if Fill is
	// set; see [Facts].
	Text string
	Fill bool
	// Render gives the text in place of Text; "" leaves the section out. It is a
	// function of the facts alone. Facts of static and org sections have no time.
	Render func(*Facts) string
	// File and Line say where it is from, for problems; File may be empty.
	File string
	Line int
	// TextLine is where Text begins in the file; 0: as Line.
	TextLine int
}

// When are conditions, which must all hold. The zero value always holds.
type When struct {
	// Tools are patterns (* and ?), each of which must fit a tool that the model may
	// call; WithoutTools are patterns none of which may.
	Tools, WithoutTools []string
	// Mode are the session's modes in which it is shown; empty: all.
	Mode []string
	// Version is a constraint on the fact version, such as ">=4.4.0" or
	// ">=4.0, <5"; empty: any. An unknown version fulfils none.
	Version string
}

// Facts are what sections depend on.
type Facts struct {
	// RunMode is interactive or autonomous.
	RunMode string
	// Mode is the session's: ask, plan or edit.
	Mode    string
	Profile string
	User    string
	// Tools are the names of the tools that the model may call, sorted.
	Tools []string
	// Named are the profile's own, version among them.
	Named map[string]string
	// Date is 2006-01-02, Time 15:04 with the zone; Time is empty for static and org
	// sections, Date for static ones: they would break the cache.
	Date, Time string
}

// holds is whether the section is shown.
func (s *Section) holds(f *Facts) bool {
	if len(s.RunModes) > 0 && !slices.Contains(s.RunModes, f.RunMode) {
		return false
	}
	w := &s.When
	if len(w.Mode) > 0 && !slices.Contains(w.Mode, f.Mode) {
		return false
	}
	if w.Version != "" && !satisfies(f.Named["version"], w.Version) {
		return false
	}
	has := func(pattern string) bool {
		return slices.ContainsFunc(f.Tools, func(name string) bool { ok, _ := path.Match(pattern, name); return ok })
	}
	for _, p := range w.Tools {
		if !has(p) {
			return false
		}
	}
	return !slices.ContainsFunc(w.WithoutTools, has)
}

// text is what the section says, or "".
func (s *Section) text(f *Facts) string {
	if !s.holds(f) {
		return ""
	}
	seen := *f
	switch s.Tier {
	case Static:
		seen.Date, seen.Time = "", ""
	case Org:
		seen.Time = ""
	}
	out := s.Text
	if s.Render != nil {
		out = s.Render(&seen)
	} else if s.Fill {
		out = fill(out, &seen)
	}
	return strings.TrimSpace(out)
}

// Set is sections in the order in which they are emitted. The zero value and nil
// have none. It is read-only and safe for concurrent use.
type Set struct{ sections []Section }

// NewSet checks sections: known tiers, in order, unique names, conditions and
// placeholders that mean something. The error is a [Problems] with all that is wrong.
func NewSet(sections ...Section) (*Set, error) {
	var problems Problems
	seen := map[string]*Section{}
	var highest *Section
	for i := range sections {
		s := &sections[i]
		bad := func(line int, format string, args ...any) {
			problems = append(problems, Problem{File: s.File, Line: max(1, line), Section: s.Name, What: fmt.Sprintf(format, args...)})
		}
		if s.Name == "" {
			bad(s.Line, "it has no name")
		} else if first := seen[s.Name]; first != nil {
			bad(s.Line, "another section has this name: %s", first.place())
		} else {
			seen[s.Name] = s
		}
		switch {
		case s.Tier.rank() < 0:
			bad(s.Line, "%q is no tier: use static, org or turn", s.Tier)
		case highest != nil && s.Tier.rank() < highest.Tier.rank():
			bad(s.Line, "a section of tier %s comes after one of tier %s (%s), whose changes would break its cache: static comes first, then org, then turn", s.Tier, highest.Tier, highest.place())
		default:
			highest = s
		}
		for _, m := range s.RunModes {
			if m != "interactive" && m != "autonomous" {
				bad(s.Line, "%q is no run mode: use interactive or autonomous", m)
			}
		}
		for _, p := range slices.Concat(s.When.Tools, s.When.WithoutTools) {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				bad(s.Line, "%q is no pattern of a tool's name", p)
			}
		}
		if s.When.Version != "" {
			if _, err := constraints(s.When.Version); err != nil {
				bad(s.Line, "when.version: %s", err)
			}
		}
		if s.Fill && s.Render == nil {
			for _, p := range placeholders(s.Text) {
				switch why := p.problem(s.Tier); {
				case why != "":
					bad(cmp.Or(s.TextLine, s.Line, 1)+p.line, "{{%s}} %s", p.name, why)
				}
			}
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return &Set{sections}, nil
}

func (s *Section) place() string {
	if s.File == "" {
		return s.Name
	}
	return fmt.Sprintf("%s:%d", s.File, max(1, s.Line))
}

// System gives the static and the org sections that hold, a part for each tier, which
// ends with a cache mark, and what they were made of. The same facts give the same
// bytes. f is not changed.
func (s *Set) System(f *Facts) (parts []model.SystemPart, made []model.Section) {
	if s == nil {
		return nil, nil
	}
	for _, tier := range []Tier{Static, Org} {
		var texts []string
		for i := range s.sections {
			sec := &s.sections[i]
			if sec.Tier != tier {
				continue
			}
			if text := sec.text(f); text != "" {
				texts = append(texts, text)
				made = append(made, Made(sec.Name, tier, text))
			}
		}
		if len(texts) > 0 {
			parts = append(parts, model.SystemPart{Text: strings.Join(texts, "\n\n"), Cache: true})
		}
	}
	return parts, made
}

// SectionKind is ahead of the names of sections where they are kinds of context.
const SectionKind = "section."

// Blocks gives the sections of tier turn as blocks of context, in order. One that does
// not hold has an empty text: what was said of it is over. f is not changed.
func (s *Set) Blocks(f *Facts) (blocks []Block) {
	if s == nil {
		return nil
	}
	for i := range s.sections {
		if sec := &s.sections[i]; sec.Tier == Turn {
			blocks = append(blocks, Block{Kind: SectionKind + strings.TrimPrefix(sec.Name, SectionKind), Text: sec.text(f)})
		}
	}
	return blocks
}

// Made notes a piece of a request.
func Made(name string, tier Tier, text string) model.Section {
	sum := sha256.Sum256([]byte(text))
	return model.Section{Name: name, Tier: string(tier), Hash: hex.EncodeToString(sum[:8]), Bytes: len(text)}
}

// Problem is what is wrong with a section.
type Problem struct {
	File    string // may be empty
	Line    int    // from 1
	Section string
	What    string
}

// Problems is everything that is wrong with a set.
type Problems []Problem

func (p Problems) Error() string {
	var b strings.Builder
	for i, x := range p {
		if i > 0 {
			b.WriteByte('\n')
		}
		if x.File != "" {
			fmt.Fprintf(&b, "%s:%d: ", x.File, x.Line)
		}
		fmt.Fprintf(&b, "section %q: %s", x.Section, x.What)
	}
	return b.String()
}
