package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/internal/prompt"
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
	// Shortened are messages that stay and were too large, also for an earlier
	// compaction, in the order in which they were shortened.
	Shortened []Shortened `json:"shortened,omitempty"`
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

// Shortened is what was done to a message that was too large. At is when, in Unix
// milliseconds.
type Shortened struct {
	Entry string `json:"entry"`
	// Bytes is how many are left of each text; 0 with Images: all.
	Bytes int   `json:"bytes"`
	At    int64 `json:"at,omitempty"`
	// Form is the rule by which texts are shortened: 0 leaves their ends, 1 also lines of
	// the middle that matter.
	Form int `json:"form,omitempty"`
	// Images is how many of its images are replaced by notes, the first ones.
	Images int `json:"images,omitempty"`
}

// shortForm is the rule by which texts are shortened now.
const shortForm = 1

// Apply does it to a message. It always gives the same for the same.
func (s *Shortened) Apply(m message.Message) message.Message {
	if s.Images > 0 {
		if m, _ = dropImages(m, s.Images); s.Bytes == 0 {
			return m
		}
	}
	if s.Form == 0 {
		return shorten(m, s.Bytes, middleOut)
	}
	return shorten(m, s.Bytes, condense)
}

// dropImages replaces the first images of a message by notes of what was there, at most so
// many, and says how many those were.
func dropImages(m message.Message, most int) (message.Message, int) {
	n := 0
	for i := range m.Content {
		if b := &m.Content[i]; b.Type == message.BlockImage && n < most {
			if n == 0 {
				m.Content = slices.Clone(m.Content)
			}
			n++
			m.Content[i] = imageDropped(b)
		}
	}
	return m, n
}

// imageDropped is the note in place of an image.
func imageDropped(b *message.Block) message.Block {
	return message.Text(fmt.Sprintf("[An image (%s, %d KB) is left out here: it does not fit the context window.]", b.MimeType, (len(b.Data)*3/4+1023)/1024))
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

// Fit makes what the model reads of a compaction have at most so many tokens: the summary
// loses its middle, then names of files leave, those that were only read first, then
// the context, which is told again. count says how many tokens messages have.
func (c *Compaction) Fit(tokens int, count Count) {
	over := func() int {
		m, ok := c.Message(0)
		if !ok {
			return 0
		}
		return count.Tokens([]message.Message{m}) - tokens
	}
	shrink := func(least int, by func(string, int) string) {
		whole := c.Summary
		for bytes := len(whole) - over()*4 - 200; over() > 0 && len(c.Summary) > least; bytes = bytes * 9 / 10 {
			if c.Summary = by(whole, max(bytes, least)); bytes <= least {
				break
			}
		}
	}
	shrink(max(tokens*2, leastShort), condense)
	for over() > 0 && len(c.ReadFiles) > 0 {
		c.ReadFiles = c.ReadFiles[:len(c.ReadFiles)/2]
	}
	for over() > 0 && len(c.ModifiedFiles) > 0 {
		c.ModifiedFiles = c.ModifiedFiles[:len(c.ModifiedFiles)/2]
	}
	if over() > 0 {
		c.Context = nil
	}
	shrink(leastShort, middleOut)
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
	// Reply is the entry of the last reply ahead of it, and ReplyRun the run that it is
	// of; empty if there is none.
	Reply, ReplyRun string
}

// lastReply finds the newest reply of a path.
func (a *Ahead) lastReply(path []*store.Entry) (entry, run string) {
	c := a.cursor()
	for i := len(path) - 1; i >= 0; i-- {
		if e := path[i]; c.role(e) == message.RoleAssistant {
			return e.ID, e.RunID
		}
	}
	return "", ""
}

// Context gives what a model sees of a path: all of it, or what is left from its newest
// compaction on, which it gives as well. Messages are as they were stored; see [Reduce].
// A compaction that can not be read is reported, and the one before it counts, if there
// is one.
func Context(path []*store.Entry) (items []Item, made *Made, problems []Problem) {
	return (*Ahead)(nil).Context(path)
}

// Context is the [Context] of a path whose entries may have been read ahead.
func (a *Ahead) Context(path []*store.Entry) (items []Item, made *Made, problems []Problem) {
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
		kept, bad := a.Items(path[first:i])
		for j := range kept {
			kept[j].Kept = true
		}
		since, badSince := a.Items(path[i:])
		items = append(append(items, kept...), since...)
		made = &Made{Compaction: *c, At: e.Created}
		made.Reply, made.ReplyRun = a.lastReply(path[:i])
		return items, made, append(append(problems, bad...), badSince...)
	}
	items, bad := a.Items(path)
	return items, nil, append(problems, bad...)
}

// Reduce does to messages what was done to them when it was found out that they are
// too large, or refused, in the same order: who reads a conversation again has to see it
// as who kept it. made is the compaction that it begins with, or nil. left is ordered by
// time.
//
// items are not changed; where nothing was done it gives them back.
func Reduce(items []Item, made *Made, left []*store.Quarantine) []Item {
	if len(left) == 0 && (made == nil || len(made.Shortened) == 0) {
		return items
	}
	items = slices.Clone(items)
	at := make(map[string]int, len(items))
	for i := range items {
		at[items[i].Entry] = i
	}
	leave := func(q *store.Quarantine) {
		if i, ok := at[q.EntryID]; ok {
			items[i].Message = LeaveOut(items[i].Message, q.What, q.Reason)
		}
	}
	if made != nil {
		for _, s := range made.Shortened {
			for len(left) > 0 && left[0].Created <= s.At {
				leave(left[0])
				left = left[1:]
			}
			if i, ok := at[s.Entry]; ok {
				items[i].Message = s.Apply(items[i].Message)
			}
		}
	}
	for _, q := range left {
		leave(q)
	}
	return items
}

func decodeCompaction(raw []byte) (*Compaction, error) {
	// Files of others call the first entry that is kept by another name.
	body := struct {
		Compaction
		FirstKeptID string `json:"firstKeptId"`
	}{}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	if body.FirstKept == "" {
		body.FirstKept = body.FirstKeptID
	}
	return &body.Compaction, nil
}

// readCompaction reads the compaction at a place of a path, and finds the first entry
// that it keeps; why is not empty if it is unusable.
func readCompaction(path []*store.Entry, at int) (c *Compaction, first int, why string) {
	c, err := decodeCompaction(path[at].Body)
	if err != nil {
		return nil, 0, "it is damaged"
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

// Carry gives the blocks of context that still hold at the end of messages, with at most
// about so many tokens together: larger ones are shortened, and if they are too many the
// last are left out. What is not carried over as it was is told again with the next
// message that has it. At 0 there is no limit.
func Carry(msgs []message.Message, tokens int, count Count) []message.Block {
	held := []message.Message{{Role: message.RoleUser, Content: prompt.InForce(msgs)}}
	if tokens <= 0 || count.Tokens(held) <= tokens {
		return held[0].Content
	}
	c := Cut{Short: shortest(held, tokens, count)}
	held = c.Stays(held)
	for len(held[0].Content) > 0 && count.Tokens(held) > tokens {
		held[0].Content = held[0].Content[:len(held[0].Content)-1]
	}
	return held[0].Content
}

// leastShort is what is left of a text at least.
const leastShort = 256

// shorten leaves so many bytes of each text and of each call's arguments that is longer,
// by a rule.
func shorten(m message.Message, bytes int, rule func(string, int) string) message.Message {
	bytes = max(bytes, leastShort)
	out := make([]message.Block, 0, len(m.Content))
	for _, b := range m.Content {
		switch {
		case b.Type == message.BlockThinking && len(b.Text) > bytes:
			continue // it is signed, and worth nothing in part
		case b.Type == message.BlockText && len(b.Text) > bytes:
			b.Text = rule(b.Text, bytes)
		case b.Type == message.BlockToolCall && len(b.Arguments) > bytes:
			b.Arguments = shortArguments(b.Arguments, bytes, rule)
		}
		out = append(out, b)
	}
	if len(out) == 0 && len(m.Content) > 0 {
		out = append(out, message.Text("[A thought is left out here: the whole does not fit the context window.]"))
	}
	m.Content = out
	return m
}

// shortArguments leaves a part of arguments, as one member, and the files that they name:
// lists of files are made of them later.
func shortArguments(args json.RawMessage, bytes int, rule func(string, int) string) json.RawMessage {
	var members map[string]json.RawMessage
	text := string(args)
	out := map[string]json.RawMessage{}
	if json.Unmarshal(args, &members) == nil {
		var earlier string
		if json.Unmarshal(members["left_out"], &earlier) == nil {
			text = earlier // it was shortened before
		}
		left := bytes / 4
		for _, key := range append(pathKeys(), pathsKeys()...) {
			if raw := members[key]; len(raw) > 0 && len(raw) <= left {
				out[key], left = raw, left-len(raw)
			}
		}
	}
	var err error
	if out["left_out"], err = json.Marshal(rule(text, bytes/2)); err != nil {
		return args
	}
	short, err := json.Marshal(out)
	if err != nil {
		return args
	}
	return short
}

// leftOut ends what stands in the place of a middle that was left out.
const leftOut = " bytes are left out here: the whole does not fit the context window …]"

// IsCut is whether a text lacks its middle, or says that it does.
func IsCut(text string) bool { return strings.Contains(text, leftOut) }

// middleOut leaves out the middle of a text.
func middleOut(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	head, tail := middle(s, bytes)
	return fmt.Sprintf("%s\n[… %d"+leftOut+"\n%s", s[:head], tail-head, s[tail:])
}

// middle is what is left out of a text of which so many bytes stay.
func middle(s string, bytes int) (head, tail int) {
	head, tail = bytes*2/3, len(s)-bytes/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return head, tail
}
