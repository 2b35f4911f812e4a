package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/internal/store"
	"agentd/message"
)

// Compaction is the body of a compaction entry: from it on, what was said before is a
// summary and the messages from FirstKept on. Nothing is deleted; the path to the root
// is as it was.
type Compaction struct {
	// Summary stands for what is not kept; empty if everything is.
	Summary string `json:"summary,omitempty"`
	// FirstKept is the entry of the first message that stays; empty: none does.
	FirstKept string `json:"first_kept,omitempty"`
	// Shortened are the entries of messages that stay and were too large, ShortenedTo is
	// how many bytes are left of each of their texts.
	Shortened   []string `json:"shortened,omitempty"`
	ShortenedTo int      `json:"shortened_to,omitempty"`
	// ReadFiles and ModifiedFiles are the files of all calls that the summary stands
	// for, also through earlier summaries. A file is in one of the lists.
	ReadFiles     []string `json:"read_files,omitempty"`
	ModifiedFiles []string `json:"modified_files,omitempty"`
	// Context is what was said beside people's words and still holds.
	Context []message.Block `json:"context,omitempty"`
	// Reason is why, as [run.Compact] says. Model wrote the summary; empty: it is made of
	// excerpts.
	Reason string         `json:"reason,omitempty"`
	Model  string         `json:"model,omitempty"`
	Usage  *message.Usage `json:"usage,omitempty"`
	// TokensBefore and TokensAfter are about how large the conversation was and is.
	TokensBefore int `json:"tokens_before,omitempty"`
	TokensAfter  int `json:"tokens_after,omitempty"`
}

// summaryDetails marks the message that a summary is read as.
const summaryDetails = `{"summary":true}`

// Summary is whether a message is the summary of what came before it.
func Summary(m *message.Message) bool {
	return m.Role == message.RoleUser && string(m.Details) == summaryDetails
}

// Message is what the model reads of a compaction that was made at a time, in Unix
// milliseconds; false if that is nothing.
func (c *Compaction) Message(at int64) (message.Message, bool) {
	if c.Summary == "" && len(c.ReadFiles)+len(c.ModifiedFiles) == 0 {
		return message.Message{}, false
	}
	var b strings.Builder
	b.WriteString("The conversation up to here is replaced by this summary of it. Go on from it; do not mention it unless you are asked.\n\n<summary>\n")
	b.WriteString(strings.ReplaceAll(strings.TrimSpace(c.Summary), "</summary>", "</ summary>"))
	b.WriteString("\n</summary>")
	writeFiles(&b, c.ReadFiles, c.ModifiedFiles)
	m := message.Message{Role: message.RoleUser, Content: append(slices.Clone(c.Context), message.Text(b.String()))}
	m.Timestamp, m.Details = at, json.RawMessage(summaryDetails)
	return m, true
}

func writeFiles(b *strings.Builder, read, modified []string) {
	list := func(tag string, files []string) {
		if len(files) > 0 {
			fmt.Fprintf(b, "\n\n<%s>\n%s\n</%s>", tag, strings.Join(files, "\n"), tag)
		}
	}
	list("files-read", read)
	list("files-modified", modified)
}

// Made is a compaction that counts, and when it was made, in Unix milliseconds.
type Made struct {
	Compaction
	At int64
}

// Context gives what a model sees of a path: all of it, or what is left from its newest
// compaction on, which it gives as well. One that can not be read is reported, and the
// one before it counts, if there is one.
func Context(path []*store.Entry) (items []Item, made *Made, problems []Problem) {
	for i := len(path) - 1; i >= 0; i-- {
		e := path[i]
		if e.Kind != KindCompaction {
			continue
		}
		c, first, why := readCompaction(path, i)
		if why != "" {
			problems = append(problems, Problem{e.ID, why})
			continue
		}
		if m, ok := c.Message(e.Created); ok {
			items = append(items, Item{Entry: e.ID, Run: e.RunID, Message: m})
		}
		kept, bad := Items(path[first:])
		for j := range kept {
			if slices.Contains(c.Shortened, kept[j].Entry) {
				kept[j].Message = Shorten(kept[j].Message, c.ShortenedTo)
			}
		}
		return append(items, kept...), &Made{*c, e.Created}, append(problems, bad...)
	}
	items, bad := Items(path)
	return items, nil, append(problems, bad...)
}

// readCompaction reads the compaction at a place of a path, and finds the first entry
// that it keeps; why is not empty if it is unusable.
func readCompaction(path []*store.Entry, at int) (c *Compaction, first int, why string) {
	// Files of others call the first entry that is kept by another name.
	body := struct {
		Compaction
		FirstKeptID string `json:"firstKeptId"`
	}{}
	if err := json.Unmarshal(path[at].Body, &body); err != nil {
		return nil, 0, "it is damaged"
	}
	c = &body.Compaction
	if c.FirstKept == "" {
		c.FirstKept = body.FirstKeptID
	}
	if c.FirstKept == "" {
		return c, at, ""
	}
	for first = at - 1; first >= 0; first-- {
		if path[first].ID == c.FirstKept {
			return c, first, ""
		}
	}
	return nil, 0, "the entry that it keeps the conversation from is gone: " + c.FirstKept
}

// leastShort is what is left of a text at least.
const leastShort = 256

// Shorten leaves the beginning and the end of each text and of each call's arguments
// that is longer than so many bytes. It always gives the same for the same.
func Shorten(m message.Message, bytes int) message.Message {
	bytes = max(bytes, leastShort)
	out := make([]message.Block, 0, len(m.Content))
	for _, b := range m.Content {
		switch {
		case b.Type == message.BlockThinking && len(b.Text) > bytes:
			continue // it is signed, and worth nothing in part
		case b.Type == message.BlockText && len(b.Text) > bytes:
			b.Text = middleOut(b.Text, bytes)
		case b.Type == message.BlockToolCall && len(b.Arguments) > bytes:
			note, err := json.Marshal(map[string]string{"left_out": middleOut(string(b.Arguments), bytes/2)})
			if err == nil {
				b.Arguments = note
			}
		}
		out = append(out, b)
	}
	m.Content = out
	return m
}

// middleOut leaves out the middle of a text.
func middleOut(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	head, tail := bytes*2/3, len(s)-bytes/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d bytes are left out here: the whole does not fit the context window …]\n%s", s[:head], tail-head, s[tail:])
}
