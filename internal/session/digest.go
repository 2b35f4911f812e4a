package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentd/internal/prompt"
	"agentd/message"
)

// brief says how much is told of messages that are summarised, in bytes.
type brief struct {
	// tool is for the arguments and for the result of a call, thinking for reasoning,
	// of which nothing is told at 0.
	tool, thinking int
	// text is for what the model said, person for what people did; 0: all of it.
	text, person int
}

// briefs are those that are tried in turn until a summary can be asked for: people's own
// words are the last that is cut.
var briefs = [...]brief{{tool: 2000, thinking: 1200}, {tool: 500, thinking: 200}, {tool: 200, text: 4000}, {tool: 80, text: 1000, person: 8000}, {tool: 40, text: 200, person: 1000}}

// Digest tells a conversation as plain texts, without calls, results and images, so that
// a model reads it and does not go on with it, in parts of at most room tokens: each is for
// a request of its own, and there are at most so many. Messages of the same side that
// follow each other are one; each part begins with a person's. What does not fit is told in
// less detail; at last the middle of all is left out. At room 0 there is one part. count says
// how many tokens messages have.
func Digest(msgs []message.Message, room, requests int, count Count) [][]message.Message {
	for _, b := range briefs {
		told := transcript(msgs, b)
		if room <= 0 {
			return [][]message.Message{told}
		}
		tokens := count.Tokens(told)
		if tokens <= room {
			return [][]message.Message{told}
		}
		if tokens/room > requests {
			continue // dividing a long text into very many parts takes long
		}
		if parts := split(told, room, count); len(parts) <= requests {
			return parts
		}
	}
	// The beginning says what it is about, the end where it stands.
	var text strings.Builder
	for _, m := range transcript(msgs, briefs[len(briefs)-1]) {
		fmt.Fprintf(&text, "[%s]\n%s\n\n", m.Role, m.Text())
	}
	for bytes := max(room*4-linesNote, leastShort); ; bytes = max(bytes*9/10, leastShort) {
		out := []message.Message{message.User(condense(text.String(), bytes))}
		if bytes == leastShort || count.Tokens(out) <= room {
			return [][]message.Message{out}
		}
	}
}

// goesOn begins a part that is not the first.
const goesOn = "[The conversation goes on:]"

// split divides texts into parts of at most room tokens.
func split(told []message.Message, room int, count Count) (parts [][]message.Message) {
	text := func(role message.Role, s string) message.Message {
		return message.Message{Role: role, Content: []message.Block{message.Text(s)}}
	}
	var part []message.Message
	left, begun := room, false                                                                 // begun: there is more in the part than how it begins
	add := func(m message.Message, tokens int) { part, left = append(part, m), left-tokens-1 } // what is rounded together may be more
	next := func() { parts, part, left, begun = append(parts, part), nil, room, false }
	for i := range told {
		role, s := told[i].Role, told[i].Text()
		for s != "" {
			if len(part) == 0 && role != message.RoleUser && len(parts) > 0 {
				add(message.User(goesOn), count.Tokens([]message.Message{message.User(goesOn)}))
			}
			all := text(role, s)
			tokens := count.Tokens([]message.Message{all})
			if tokens <= left {
				add(all, tokens)
				begun = true
				break
			}
			at := len(s) * max(left, 0) / tokens
			for at = lineEnd(s, at); at > 0; at = lineEnd(s, at*9/10) {
				if tokens = count.Tokens([]message.Message{text(role, s[:at])}); tokens <= left {
					break
				}
			}
			if at == 0 && !begun { // there is next to no room: more than it, and so an end
				at = runeStart(s, min(leastShort, len(s)))
				tokens = left
			}
			if at > 0 {
				add(text(role, s[:at]), tokens)
				s = s[at:]
			}
			next()
		}
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// lineEnd is where a text may be divided: at most so far, and not in a line if there is an
// end of one, nor in a word; 0 if all of it had better come behind.
func lineEnd(text string, most int) int {
	if most < leastShort {
		return 0
	}
	if at := strings.LastIndexByte(text[:most], '\n'); at > most/4 {
		return at + 1
	}
	if at := strings.LastIndexByte(text[:most], ' '); at > most/4 {
		return at + 1
	}
	return runeStart(text, most)
}

// runeStart is the last beginning of a character that is not behind at, or the end.
func runeStart(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

func transcript(msgs []message.Message, b brief) (out []message.Message) {
	var side []string // what is said by the side that speaks, joined at once
	shut := func() {
		if n := len(out); n > 0 && len(side) > 0 {
			out[n-1].Content[0].Text = strings.Join(side, "\n\n")
		}
		side = nil
	}
	defer shut()
	add := func(role message.Role, text string) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			if side == nil {
				side = append(side, out[n-1].Content[0].Text)
			}
			side = append(side, text)
			return
		}
		shut()
		if len(out) == 0 && role != message.RoleUser {
			out = append(out, message.User("[The conversation:]"))
		}
		out = append(out, message.Message{Role: role, Content: []message.Block{message.Text(text)}})
	}
	said := func(s string, most int) string {
		if most > 0 {
			return condense(s, most)
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
			add(message.RoleUser, fmt.Sprintf("[%s of %s: %s%s]", what, m.ToolName, condense(m.Text(), b.tool), imageNote(m)))
		case m.Role == message.RoleAssistant:
			var parts []string
			for j := range m.Content {
				switch c := &m.Content[j]; {
				case c.Type == message.BlockText:
					parts = append(parts, said(c.Text, b.text))
				case c.Type == message.BlockThinking && b.thinking > 0 && c.Text != "":
					parts = append(parts, "[Thought: "+condense(c.Text, b.thinking)+"]")
				case c.Type == message.BlockToolCall:
					parts = append(parts, "[Called "+c.Name+" with "+condense(string(c.Arguments), b.tool)+"]")
				}
			}
			add(message.RoleAssistant, strings.Join(parts, "\n"))
		default:
			attached := ""
			for j := range m.Content {
				if c := &m.Content[j]; c.Context == prompt.References {
					attached += "\n\n[Attached: " + condense(c.Text, b.tool) + "]"
				}
			}
			add(message.RoleUser, said(m.Text(), b.person)+imageNote(m)+attached)
		}
	}
	return out
}

func imageNote(m *message.Message) string {
	switch n := images(m); n {
	case 0:
		return ""
	case 1:
		return " [an image]"
	default:
		return fmt.Sprintf(" [%d images]", n)
	}
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
