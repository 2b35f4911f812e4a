package session

import (
	"bytes"
	"encoding/json"
	"strings"

	"agentd/message"
)

// Told is what a client was told by a run: one answer, whatever the run did for it.
type Told struct {
	Text string
	// Calls are those that were left to the client.
	Calls []message.Block
}

// Follow finds the entry up to which a tree has the history of a client that keeps it
// itself, and how many of the messages that are; "" and 0 if it has none. Messages are
// the same if they say the same, but for space around the text of an answer. told says
// what the client was told by a run; false: nobody knows.
//
// Of several ways with the same messages it is the one that the session stands on, or
// else the newest. What is shown to models behind that and is no message goes along, above all
// a compaction: the client can not know of it.
func (t *Tree) Follow(history []message.Message, told func(run string) (Told, bool)) (at string, n int) {
	front := []*Node{nil} // nil is the beginning
	for i := range history {
		var next []*Node
		seen := map[*Node]bool{}
		add := func(c *Node) {
			if !seen[c] {
				seen[c] = true
				next = append(next, c)
			}
		}
		for _, f := range front {
			t.said(f, func(c *Node, m *message.Message) {
				if c.says(m, &history[i]) {
					add(c)
				}
				if m.Role != message.RoleAssistant || history[i].Role != message.RoleAssistant || c.RunID == "" || m.Model == "" && m.Provider == "" {
					return
				}
				// The first reply of a run: what became of it all was told at once.
				end := c.end()
				if end == c && seen[c] {
					return
				}
				if was, ok := told(c.RunID); ok && sameAnswer(was.Text, was.Calls, &history[i]) {
					add(end)
				}
			})
		}
		if len(next) == 0 {
			break
		}
		front, n = next, i+1
	}
	for _, f := range front {
		if f == nil {
			continue
		}
		if best := t.byID[at]; best == nil || f.OnPath && !best.OnPath || f.OnPath == best.OnPath && f.ID > best.ID {
			at = f.ID
		}
	}
	if end := t.byID[at]; end != nil {
		at = end.marked().ID
	}
	return at, n
}

// marked is the last of the entries behind this one that are no messages of anybody's and
// change what models are shown: on the way that the session stands on, or else along the
// newest compactions. It is the entry itself if there are none.
func (n *Node) marked() *Node {
	last := n
	for {
		var next *Node
		for _, c := range n.Children {
			switch {
			case c.Kind == KindMessage:
			case c.OnPath, c.Kind == KindCompaction && (next == nil || !next.OnPath):
				next = c
			}
		}
		if next == nil {
			return last
		}
		if n = next; n.Kind == KindCompaction || n.Kind == KindBranchSummary || n.Kind == KindCustom {
			last = n
		}
	}
}

// said calls each with the messages that come next behind an entry, nil for the
// beginning, over what clients are not told: marks, an application's own, failed replies.
func (t *Tree) said(at *Node, each func(c *Node, m *message.Message)) {
	next := t.Roots()
	if at != nil {
		next = at.Children
	}
	for len(next) > 0 {
		var over []*Node
		for _, c := range next {
			var m message.Message
			if c.Kind != KindMessage || json.Unmarshal(c.Body, &m) != nil || m.Custom() {
				over = append(over, c.Children...)
				continue
			}
			each(c, &m)
			if m.Role == message.RoleAssistant && (m.StopReason == message.StopError || m.StopReason == message.StopAborted) {
				over = append(over, c.Children...)
			}
		}
		next = over
	}
}

// end is the last entry of the run that wrote this one, from here on.
func (n *Node) end() *Node {
	for {
		next := n
		for _, c := range n.Children {
			if c.RunID == n.RunID && (c.Kind == KindMessage || c.Kind == KindCompaction) {
				next = c
			}
		}
		if next == n {
			return n
		}
		n = next
	}
}

// says is whether an entry's message is what a client's history has.
func (n *Node) says(m, h *message.Message) bool {
	if m.Role != h.Role {
		return false
	}
	switch m.Role {
	case message.RoleAssistant:
		return sameAnswer(m.Text(), m.ToolCalls(), h)
	case message.RoleToolResult:
		return m.ToolCallID == h.ToolCallID && sameContent(m.Content, h.Content)
	}
	// What was put beside the words clients were not told.
	_, own := m.Split()
	_, theirs := h.Split()
	return sameContent(own, theirs)
}

func sameAnswer(text string, calls []message.Block, h *message.Message) bool {
	theirs := h.ToolCalls()
	if len(calls) != len(theirs) || strings.TrimSpace(text) != strings.TrimSpace(h.Text()) {
		return false
	}
	for i := range calls {
		if calls[i].ID != theirs[i].ID || calls[i].Name != theirs[i].Name || !sameJSON(calls[i].Arguments, theirs[i].Arguments) {
			return false
		}
	}
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	norm := func(raw json.RawMessage) []byte {
		if len(bytes.TrimSpace(raw)) == 0 {
			return []byte("{}")
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			return raw
		}
		out, err := json.Marshal(v)
		if err != nil {
			return raw
		}
		return out
	}
	return bytes.Equal(norm(a), norm(b))
}

func sameContent(a, b []message.Block) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Text != b[i].Text || a[i].Data != b[i].Data || a[i].MimeType != b[i].MimeType {
			return false
		}
	}
	return true
}
