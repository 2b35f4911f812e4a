package prompt

import (
	"strings"

	"agentd/message"
)

// Block is a piece of context that goes with a message: the open page, a file tree, the
// date.
type Block struct {
	// Kind names it: small letters, digits, _, . and -, at most 64. There is one of
	// a kind in force at a time.
	Kind string
	// Text is what it says. Empty: what was said of this kind no longer holds.
	Text string
}

// References is the kind of what a person attached. It belongs to the words of its
// message, and is sent with each that has it.
const References = "references"

// Skill is the kind of a skill that a person's words call. Like [References] it belongs
// to its message, and is sent with each that has it; unlike them it goes over a compaction
// as long as the person has said nothing else.
const Skill = "skill"

// The kinds of what agentd says of itself: what is remembered, the mode of the session, and
// how tools are others than in the list of the conversation.
const (
	MemoryKind = "memory"
	ModeKind   = "session_mode"
	ToolsKind  = "available_tools"
)

// Own reports whether context of a kind is said by agentd alone: no client and no file may
// bring it.
func Own(kind string) bool {
	switch kind {
	case MemoryKind, ModeKind, ToolsKind, Skill:
		return true
	}
	return strings.HasPrefix(kind, SectionKind)
}

// Kind reports whether s can name a kind of context.
func Kind(s string) bool { return isName(s) }

// Content gives the block as it is sent and stored.
func (b *Block) Content() message.Block {
	text := "<context kind=\"" + b.Kind + "\" removed=\"true\"></context>"
	if b.Text != "" {
		text = "<context kind=\"" + b.Kind + "\">\n" + inside(strings.ToValidUTF8(b.Text, "\uFFFD")) + "\n</context>"
	}
	return message.Block{Type: message.BlockText, Text: text, Context: b.Kind}
}

// over is whether a block of a message says that something no longer holds.
func over(b *message.Block) bool { return strings.HasSuffix(b.Text, " removed=\"true\"></context>") }

// Told is what a conversation was told last of each kind, as it was sent. Nil is
// one that was told nothing.
type Told map[string]string

// See takes in a message of the conversation, and gives the map, which is made if need be.
func (t Told) See(m *message.Message) Told {
	if m.Role != message.RoleUser {
		return t
	}
	for i := range m.Content {
		b := &m.Content[i]
		if b.Context == "" || b.Type != message.BlockText {
			continue
		}
		if t == nil {
			t = Told{}
		}
		t[b.Context] = b.Text
	}
	return t
}

// News is whether a block says something that the conversation was not told.
func (t Told) News(b *message.Block) bool {
	if b.Context == References || b.Context == Skill {
		return true
	}
	last, told := t[b.Context]
	if !told {
		return !over(b)
	}
	return last != b.Text
}

// InForce gives what holds at the end of messages, in the order in which it was told
// first: what has to be told again once they are summarised.
func InForce(msgs []message.Message) (out []message.Block) {
	place := map[string]int{}
	for i := range msgs {
		if msgs[i].Role != message.RoleUser {
			continue
		}
		if at, ok := place[Skill]; ok && saysMore(&msgs[i]) {
			out = append(out[:at], out[at+1:]...)
			delete(place, Skill)
			for kind, p := range place {
				if p > at {
					place[kind] = p - 1
				}
			}
		}
		for _, b := range msgs[i].Content {
			if b.Context == "" || b.Context == References || b.Type != message.BlockText {
				continue
			}
			if at, ok := place[b.Context]; ok {
				out[at] = b
			} else {
				place[b.Context] = len(out)
				out = append(out, b)
			}
		}
	}
	kept := out[:0]
	for i := range out {
		if !over(&out[i]) {
			kept = append(kept, out[i])
		}
	}
	return kept
}

// saysMore is whether a message is words of a person: not a summary or a note, which
// have details.
func saysMore(m *message.Message) bool {
	if len(m.Details) > 0 {
		return false
	}
	for i := range m.Content {
		if m.Content[i].Context == "" {
			return true
		}
	}
	return false
}

// tag is what begins a block of context, remembered what begins the block of what
// agents remember.
const (
	tag        = "context"
	remembered = "remembered_context"
)

// inside makes a text safe to stand inside a block: nothing in it can begin or end one.
func inside(s string) string { return escape(s, true) }

// neutral makes a text of people or tools unlike a block of context: what would begin
// one does not. Its end needs no care where nothing was begun.
func neutral(s string) string { return escape(s, false) }

// escape writes &lt; for the < of tags that look like a block's. Letters of any case
// and spaces count, because models read them all the same.
func escape(s string, ends bool) string {
	var b strings.Builder
	from := 0
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '<')
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		if !looksLike(s[i+1:], ends) {
			continue
		}
		b.WriteString(s[from:i])
		b.WriteString("&lt;")
		from = i + 1
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// looksLike is whether what follows a < is the rest of a block's beginning
// (context kind) or, with ends, of its end (/context).
func looksLike(s string, ends bool) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	if fold(s, remembered) {
		return true
	}
	if rest, ok := strings.CutPrefix(s, "/"); ok {
		return ends && fold(strings.TrimLeft(rest, " \t\r\n"), tag)
	}
	if !fold(s, tag) {
		return false
	}
	rest := s[len(tag):]
	trimmed := strings.TrimLeft(rest, " \t\r\n/")
	return len(trimmed) < len(rest) && fold(trimmed, "kind")
}

func fold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Neutral gives a message whose texts can not be taken for context: the words of
// people, and everything that tools say. What was put beside a person's words stays, as do
// replies of models. m is not changed; it is given back where nothing is to be done.
// The same message gives the same bytes.
func Neutral(m message.Message) message.Message {
	Neutralize(&m)
	return m
}

// Neutralize makes a message what [Neutral] gives. Its content is not changed but
// replaced, where there is something to do.
func Neutralize(m *message.Message) {
	if m.Role != message.RoleUser && m.Role != message.RoleToolResult {
		return
	}
	copied := false
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type != message.BlockText || b.Context != "" && m.Role == message.RoleUser {
			continue
		}
		text := neutral(b.Text)
		if len(text) == len(b.Text) && b.Context == "" {
			continue
		}
		if !copied {
			m.Content, copied = append([]message.Block(nil), m.Content...), true
		}
		m.Content[i].Text, m.Content[i].Context = text, ""
	}
}
