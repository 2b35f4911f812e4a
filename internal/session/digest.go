package session

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentd/internal/prompt"
	"agentd/message"
)

// SummaryPrompt is the instruction that ends a request for a summary. It says what
// the summary contains, under which headings, and between which tags it is written.
//
//go:embed summary.md
var SummaryPrompt string

// Brief says how much is told of messages that are summarised, in bytes.
type Brief struct {
	// Tool is for the arguments and for the result of a call, Thinking for reasoning,
	// of which nothing is told at 0.
	Tool, Thinking int
	// Text is for what people and the model said; 0: all of it.
	Text int
}

// Briefs are those that are tried in turn until a request for a summary fits.
var briefs = [...]Brief{{Tool: 2000, Thinking: 1200}, {Tool: 500, Thinking: 200}, {Tool: 200, Text: 4000}, {Tool: 80, Text: 1000}, {Tool: 40, Text: 200}}

// Transcript tells a conversation as plain texts, without calls, results and images,
// so that a model reads it and does not go on with it. Messages of the same side that
// follow each other are one. It begins with a person's. If all of it is more than room
// tokens, it is told in less detail; at last the middle is left out. room 0 is no limit.
func Transcript(msgs []message.Message, room int, count Count) []message.Message {
	var out []message.Message
	for _, b := range briefs {
		if out = transcript(msgs, b); room <= 0 || count.Tokens(out) <= room {
			return out
		}
	}
	// The beginning says what it is about, the end where it stands.
	var text strings.Builder
	for i := range out {
		fmt.Fprintf(&text, "[%s]\n%s\n\n", out[i].Role, out[i].Text())
	}
	for bytes := max(room*3, leastShort); ; bytes = max(bytes*9/10, leastShort) {
		out = []message.Message{message.User(middleOut(text.String(), bytes))}
		if bytes == leastShort || count.Tokens(out) <= room {
			return out
		}
	}
}

func transcript(msgs []message.Message, b Brief) (out []message.Message) {
	add := func(role message.Role, text string) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content[0].Text += "\n\n" + text
			return
		}
		if len(out) == 0 && role != message.RoleUser {
			out = append(out, message.User("[The conversation:]"))
		}
		out = append(out, message.Message{Role: role, Content: []message.Block{message.Text(text)}})
	}
	said := func(s string) string {
		if b.Text > 0 {
			return middleOut(s, b.Text)
		}
		return s
	}
	for i := range msgs {
		m := &msgs[i]
		switch {
		case m.Custom():
		case m.Role == message.RoleToolResult:
			what := "Result"
			if m.IsError {
				what = "Error"
			}
			add(message.RoleUser, fmt.Sprintf("[%s of %s: %s%s]", what, m.ToolName, middleOut(m.Text(), b.Tool), images(m)))
		case m.Role == message.RoleAssistant:
			var parts []string
			for j := range m.Content {
				switch c := &m.Content[j]; {
				case c.Type == message.BlockText:
					parts = append(parts, said(c.Text))
				case c.Type == message.BlockThinking && b.Thinking > 0 && c.Text != "":
					parts = append(parts, "[Thought: "+middleOut(c.Text, b.Thinking)+"]")
				case c.Type == message.BlockToolCall:
					parts = append(parts, "[Called "+c.Name+" with "+middleOut(string(c.Arguments), b.Tool)+"]")
				}
			}
			add(message.RoleAssistant, strings.Join(parts, "\n"))
		default:
			attached := ""
			for j := range m.Content {
				if c := &m.Content[j]; c.Context == prompt.References {
					attached += "\n\n[Attached: " + middleOut(c.Text, b.Tool) + "]"
				}
			}
			add(message.RoleUser, said(m.Text())+images(m)+attached)
		}
	}
	return out
}

func images(m *message.Message) string {
	n := 0
	for i := range m.Content {
		if m.Content[i].Type == message.BlockImage {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " [an image]"
	}
	return fmt.Sprintf(" [%d images]", n)
}

// Extract takes the summary out of a reply: what is between its tags, else all of it
// without the analysis ahead of it. The summary and the analysis may themselves speak of
// tags.
func Extract(text string) string {
	const open, shut, thought = "<summary>", "</summary>", "</analysis>"
	begin := -1
	for at := 0; begin < 0; {
		i := strings.Index(text[at:], thought)
		if i < 0 {
			break
		}
		at += i + len(thought)
		if rest := strings.TrimLeft(text[at:], " \t\r\n"); strings.HasPrefix(rest, open) {
			begin = len(text) - len(rest)
		}
	}
	if begin < 0 {
		from := 0
		if i := strings.LastIndex(text, thought); i >= 0 {
			from = i + len(thought)
		} else if strings.HasPrefix(strings.TrimSpace(text), "<analysis>") && !strings.Contains(text, open) {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "<analysis>")) // it was cut off
		}
		i := strings.Index(text[from:], open)
		if i < 0 {
			return strings.TrimSpace(text[from:])
		}
		begin = from + i
	}
	text = text[begin+len(open):]
	if i := strings.LastIndex(text, shut); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

// Files gives the files that calls named, by what the tools do: reads says of a tool
// whether it only reads. A file that was changed is not among those that were read.
// Calls that failed do not count. earlier is an earlier compaction, or nil. If all names
// have more than limit bytes the oldest leave, those that were only read ahead of the
// others.
func Files(msgs []message.Message, reads func(tool string) bool, earlier *Compaction, limit int) (read, modified []string) {
	failed := map[string]bool{}
	for i := range msgs {
		if m := &msgs[i]; m.Role == message.RoleToolResult && m.IsError {
			failed[m.ToolCallID] = true
		}
	}
	if earlier != nil {
		read, modified = slices.Clone(earlier.ReadFiles), slices.Clone(earlier.ModifiedFiles)
	}
	for i := range msgs {
		for _, c := range msgs[i].ToolCalls() {
			if failed[c.ID] {
				continue
			}
			if reads(c.Name) {
				read = append(read, paths(c.Arguments)...)
			} else {
				modified = append(modified, paths(c.Arguments)...)
			}
		}
	}
	seen := map[string]bool{}
	newest := func(files []string) (out []string) {
		for _, f := range slices.Backward(files) {
			if seen[f] {
				continue
			}
			if seen[f] = true; len(f) < limit {
				limit -= len(f) + 1
				out = append(out, f)
			} else {
				limit = 0
			}
		}
		slices.Sort(out)
		return out
	}
	modified = newest(modified)
	return newest(read), modified
}

// pathKeys and pathsKeys are the members of arguments that name a file, and several.
func pathKeys() []string {
	return []string{"path", "file_path", "file", "filename", "source", "destination", "notebook_path"}
}
func pathsKeys() []string { return []string{"paths", "files", "file_paths"} }

// paths are the files that arguments name, in members that are called so.
func paths(args json.RawMessage) (out []string) {
	if !bytes.Contains(args, []byte(`"`)) {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return nil
	}
	add := func(s string) {
		if s != "" && len(s) <= 1024 && !strings.ContainsAny(s, "\n\r<>") {
			out = append(out, s)
		}
	}
	for _, key := range pathKeys() {
		var s string
		if json.Unmarshal(members[key], &s) == nil {
			add(s)
		}
	}
	for _, key := range pathsKeys() {
		var list []string
		if json.Unmarshal(members[key], &list) == nil {
			for _, s := range list {
				add(s)
			}
		}
	}
	return out
}

// Excerpts makes a summary of what was said without asking a model: it is worse, and
// always there. It has at most so many bytes, about.
func Excerpts(msgs []message.Message, earlier string, limit int) string {
	each := max(limit/24, 80)
	var b strings.Builder
	b.WriteString("(No model could be asked for a summary; these are excerpts.)\n")
	if earlier != "" {
		b.WriteString("\n## Earlier summary\n" + middleOut(earlier, limit/3) + "\n")
	}
	var asked []string
	answer := ""
	for i := range msgs {
		m := &msgs[i]
		text := strings.TrimSpace(m.Text())
		switch {
		case text == "" || m.Custom():
		case m.Role == message.RoleUser:
			asked = append(asked, "- "+middleOut(text, each))
		case m.Role == message.RoleAssistant:
			answer = text
		}
	}
	if n := len(asked); n > 12 {
		asked = append(append(asked[:2:2], fmt.Sprintf("- (%d more messages)", n-12)), asked[n-10:]...)
	}
	if len(asked) > 0 {
		b.WriteString("\n## User Messages\n" + strings.Join(asked, "\n") + "\n")
	}
	if answer != "" {
		b.WriteString("\n## Current Work\nThe last that was said: " + middleOut(answer, each*4) + "\n")
	}
	return middleOut(b.String(), limit)
}
