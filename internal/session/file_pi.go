package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"agentd/internal/store"
	"agentd/message"
)

// piVersion is the newest version of Pi's session files that is read.
const piVersion = 3

// maxFileWarnings bounds how many warnings a file has.
const maxFileWarnings = 20

func (f *File) warn(line int, format string, args ...any) {
	switch n := len(f.Warnings); {
	case n < maxFileWarnings:
		f.Warnings = append(f.Warnings, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
	case n == maxFileWarnings:
		f.Warnings = append(f.Warnings, "there are more lines like these")
	}
}

// piEntry has the members of all types of Pi's entries.
type piEntry struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Parent    *string         `json:"parentId"`
	Timestamp string          `json:"timestamp"`
	Message   json.RawMessage `json:"message"`

	Provider      string          `json:"provider"`
	ModelID       string          `json:"modelId"`
	ThinkingLevel string          `json:"thinkingLevel"`
	Summary       string          `json:"summary"`
	FirstKept     string          `json:"firstKeptEntryId"`
	FirstKeptAt   *int            `json:"firstKeptEntryIndex"` // version 1
	TokensBefore  int64           `json:"tokensBefore"`
	FromID        string          `json:"fromId"`
	CustomType    string          `json:"customType"`
	Data          json.RawMessage `json:"data"`
	Content       json.RawMessage `json:"content"`
	Display       *bool           `json:"display"`
	Details       json.RawMessage `json:"details"`
	TargetID      string          `json:"targetId"`
	Label         *string         `json:"label"`
	Name          string          `json:"name"`
}

// readPi reads the lines behind the header of a file of Pi. Version 1 is a line of
// entries without ids. Entries whose parent is not there become roots.
func readPi(f *File, h *fileHeader, lines *lineReader) error {
	p := &piReader{f: f, linear: h.Version < 2, at: map[string]string{"": ""}, parents: map[string]string{}}
	for {
		raw, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := lines.entry(len(f.Entries)); err != nil {
			return err
		}
		p.line(lines.n, raw)
	}
	f.Leaf = p.at[p.last]
	return nil
}

type piReader struct {
	f      *File
	linear bool
	// at are the entries that stand for Pi's, by their ids: those that have no entry
	// of their own here are stood for by their parents.
	at   map[string]string
	last string
	// index are the ids of version 1, in which entries name each other by number.
	index []string
	// parents are those of the entries, by their ids.
	parents map[string]string
}

func (p *piReader) line(n int, raw []byte) {
	var l piEntry
	if err := json.Unmarshal(raw, &l); err != nil {
		p.f.warn(n, "left out: it is not an entry: %v", err)
		return
	}
	if p.linear {
		l.ID, l.Parent = "line"+strconv.Itoa(n), &p.last
		p.index = append(p.index, l.ID)
	}
	if err := fileID("id", l.ID); err != nil {
		p.f.warn(n, "left out: %v", err)
		return
	}
	if _, taken := p.at[l.ID]; taken {
		p.f.warn(n, "left out: the id %q is taken by an earlier line", clip(l.ID))
		return
	}
	e := &store.Entry{ID: l.ID}
	if l.Parent != nil {
		at, there := p.at[*l.Parent]
		if !there {
			p.f.warn(n, "there is no entry %q ahead of it: it begins a tree of its own", clip(*l.Parent))
		}
		e.Parent = at
	}
	var err error
	if e.Created, err = readTime(l.Timestamp); err != nil {
		p.f.warn(n, "timestamp: %v", err)
	}
	p.last = l.ID
	p.at[l.ID] = e.Parent // until it is known that it can be kept
	kept, err := p.body(e, &l)
	if err != nil {
		p.f.warn(n, "left out: %v", err)
	}
	if kept {
		p.at[l.ID], p.parents[e.ID] = e.ID, e.Parent
		p.f.Entries = append(p.f.Entries, e)
	}
}

// body fills in the kind and the body of an entry, and reports whether there is one.
func (p *piReader) body(e *store.Entry, l *piEntry) (bool, error) {
	data := func(kind string, v any) (bool, error) {
		raw, err := json.Marshal(v)
		if err != nil {
			return false, err
		}
		e.Kind = kind
		e.Body, err = CheckData(kind, raw)
		return err == nil, err
	}
	switch l.Type {
	case "message":
		return p.message(e, l)
	case "model_change":
		return data(KindModelChange, ModelChange{Provider: l.Provider, Model: l.ModelID})
	case "thinking_level_change":
		return data(KindThinkingChange, ThinkingChange{Level: l.ThinkingLevel})
	case "compaction":
		first := l.FirstKept
		if p.linear && l.FirstKeptAt != nil {
			// Numbers count the header as the first.
			if i := *l.FirstKeptAt - 1; i >= 0 && i < len(p.index) {
				first = p.index[i]
			}
		}
		summary, read, modified := piFiles(l.Summary, l.Details)
		return data(KindCompaction, Compaction{Summary: summary, FirstKept: p.kept(e.Parent, first), ReadFiles: read, ModifiedFiles: modified, TokensBefore: int(l.TokensBefore)})
	case "branch_summary":
		b := BranchSummary{}
		b.Summary, b.ReadFiles, b.ModifiedFiles = piFiles(l.Summary, l.Details)
		b.From = p.at[l.FromID] // "root" is none
		return data(KindBranchSummary, b)
	case "label":
		target, there := p.at[l.TargetID]
		if !there || target == "" {
			return false, fmt.Errorf("targetId: there is no entry %q ahead of it", clip(l.TargetID))
		}
		b := Label{Target: target}
		if l.Label != nil {
			b.Label = *l.Label
		}
		return data(KindLabel, b)
	case "custom":
		c := Custom{Type: l.CustomType}
		if len(l.Data) > 0 && string(l.Data) != "null" {
			c.Data = l.Data
		}
		return data(KindCustom, c)
	case "custom_message":
		return p.custom(e, l.CustomType, l.Content, l.Details, l.Display)
	case "session_info":
		p.f.Title = strings.TrimSpace(l.Name)
		return false, nil
	}
	return false, fmt.Errorf("type: %q is no kind of entry that is known", clip(l.Type))
}

// kept is the entry that a compaction behind parent keeps the conversation from, of Pi's
// id. One that was left out is stood for by what comes behind it, not ahead of it: what is
// ahead is summarised.
func (p *piReader) kept(parent, first string) string {
	at, there := p.at[first]
	if !there || at == first {
		return at
	}
	behind := ""
	for id := parent; id != "" && id != at; id = p.parents[id] {
		behind = id
	}
	return behind
}

// piFiles are the files of a summary of Pi, which says them in details and, between tags,
// at the end of its text: they are said once.
func piFiles(text string, details json.RawMessage) (summary string, read, modified []string) {
	var d struct{ ReadFiles, ModifiedFiles []string }
	if json.Unmarshal(details, &d) != nil || len(d.ReadFiles)+len(d.ModifiedFiles) == 0 {
		return text, nil, nil
	}
	for _, tag := range []string{"modified-files", "read-files"} { // in the order of their ends
		end := strings.TrimSpace(text)
		if from := strings.LastIndex(end, "<"+tag+">"); from > 0 && strings.HasSuffix(end, "</"+tag+">") {
			text = strings.TrimSpace(end[:from])
		}
	}
	return text, d.ReadFiles, d.ModifiedFiles
}

func (p *piReader) custom(e *store.Entry, kind string, content, details json.RawMessage, display *bool) (bool, error) {
	c := Custom{Type: kind, Display: display}
	if len(details) > 0 && string(details) != "null" {
		c.Data = details
	}
	var err error
	if c.Content, err = piContent(content); err != nil {
		return false, err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	e.Kind = KindCustom
	e.Body, err = CheckData(KindCustom, raw)
	return err == nil, err
}

// piBlock is a block as Pi writes it.
type piBlock struct {
	message.Block
	TextSignature     string `json:"textSignature"`
	Thinking          string `json:"thinking"`
	ThinkingSignature string `json:"thinkingSignature"`
	ThoughtSignature  string `json:"thoughtSignature"`
}

func piContent(raw json.RawMessage) ([]message.Block, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []message.Block{message.Text(text)}, nil
	}
	var in []piBlock
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	out := make([]message.Block, 0, len(in))
	for _, b := range in {
		switch b.Type {
		case message.BlockText:
			b.Signature = b.TextSignature
		case message.BlockThinking:
			b.Text, b.Signature = b.Thinking, b.ThinkingSignature
		case message.BlockToolCall:
			b.Block = message.Block{Type: b.Type, ID: b.ID, Name: b.Name, Arguments: b.Arguments, Signature: b.ThoughtSignature}
			if len(b.Arguments) == 0 {
				b.Arguments = json.RawMessage("{}")
			}
		}
		out = append(out, b.Block)
	}
	return out, nil
}

// message takes in a message. Pi's own roles become what Pi makes of them for models:
// what a person ran in the shell is a user's message, unless it was to stay apart.
func (p *piReader) message(e *store.Entry, l *piEntry) (bool, error) {
	var in struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`

		CustomType string          `json:"customType"`
		Details    json.RawMessage `json:"details"`
		Display    *bool           `json:"display"`

		Command  string `json:"command"`
		Output   string `json:"output"`
		ExitCode *int   `json:"exitCode"`
		Apart    bool   `json:"excludeFromContext"`
		Summary  string `json:"summary"`
	}
	if len(l.Message) == 0 {
		return false, errors.New("message: is missing")
	}
	if err := json.Unmarshal(l.Message, &in); err != nil {
		return false, fmt.Errorf("message: %w", err)
	}
	switch in.Role {
	case "hookMessage", "custom":
		return p.custom(e, in.CustomType, in.Content, in.Details, in.Display)
	case "bashExecution":
		c := Custom{Type: "bashExecution", Data: compact(l.Message)}
		if !in.Apart {
			text := "Ran `" + in.Command + "`\n"
			if in.Output == "" {
				text += "(no output)"
			} else {
				text += "```\n" + in.Output + "\n```"
			}
			if in.ExitCode != nil && *in.ExitCode != 0 {
				text += "\n\nCommand exited with code " + strconv.Itoa(*in.ExitCode)
			}
			c.Content = []message.Block{message.Text(text)}
		}
		raw, err := json.Marshal(c)
		if err != nil {
			return false, err
		}
		e.Kind = KindCustom
		e.Body, err = CheckData(KindCustom, raw)
		return err == nil, err
	case "user", "assistant", "toolResult":
	default:
		return false, fmt.Errorf("message.role: %q is not known", clip(in.Role))
	}
	content, err := piContent(in.Content)
	if err != nil {
		return false, fmt.Errorf("message.%w", err)
	}
	var with map[string]json.RawMessage
	if err := json.Unmarshal(l.Message, &with); err != nil {
		return false, err
	}
	delete(with, "content")
	usage := with["usage"]
	delete(with, "usage")
	var m message.Message
	raw, err := json.Marshal(with)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return false, fmt.Errorf("message: %w", err)
	}
	m.Content = content
	if m.Usage, err = piUsage(usage); err != nil {
		return false, fmt.Errorf("message.usage: %w", err)
	}
	if string(m.Details) == "null" {
		m.Details = nil
	}
	if err := CheckMessage(&m); err != nil {
		return false, err
	}
	e.Kind = KindMessage
	e.Body, err = bodyOf(&m)
	return err == nil, err
}

// piUsage reads what a call used. Pi counts money in floating point.
func piUsage(raw json.RawMessage) (*message.Usage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var in struct {
		Input       int64 `json:"input"`
		Output      int64 `json:"output"`
		CacheRead   int64 `json:"cacheRead"`
		CacheWrite  int64 `json:"cacheWrite"`
		Reasoning   int64 `json:"reasoning"`
		TotalTokens int64 `json:"totalTokens"`
		Cost        struct{ Input, Output, CacheRead, CacheWrite, Total float64 }
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	money := func(f float64) message.Money {
		if f = math.Round(f * float64(message.Dollar)); math.Abs(f) > 1<<53 {
			return 0 // no call costs that
		}
		return message.Money(f)
	}
	return &message.Usage{Input: in.Input, Output: in.Output, CacheRead: in.CacheRead, CacheWrite: in.CacheWrite, Reasoning: in.Reasoning, TotalTokens: in.TotalTokens,
		Cost: message.Cost{Input: money(in.Cost.Input), Output: money(in.Cost.Output), CacheRead: money(in.Cost.CacheRead), CacheWrite: money(in.Cost.CacheWrite), Total: money(in.Cost.Total)}}, nil
}
