package llmwire

import (
	"bytes"
	"slices"

	"agentd/message"
	"agentd/model"
)

// Encoder writes messages for one provider. A unit is the run of messages that
// must be written together, such as the results of one batch of tool calls.
type Encoder interface {
	// Unit returns how many of msgs, at least one, make the first unit.
	Unit(msgs []message.Message) int
	// Append writes a unit: zero or more JSON objects, each after a comma.
	// mark is where, counted from the start of what it wrote, a cache mark
	// may be put in; negative if nowhere.
	Append(dst []byte, unit []message.Message) (out []byte, mark int)
}

// History keeps the encoded form of a conversation, so that a request of n+1
// messages encodes one. Every reuse is checked against a copy of what was
// encoded, field by field: an edited history is encoded again from the first
// difference. The zero value is ready.
type History struct {
	key   string
	units []unit
	buf   []byte
}

type unit struct {
	messages []message.Message
	end      int // of its bytes in buf
	mark     int // in buf, or negative
}

// Encode returns the encoded messages, each after a comma, and the place for a
// cache mark in the last unit that has one (negative if there is none). key
// names everything else that the encoding depends on. The bytes are only valid
// until the next call.
func (h *History) Encode(key string, msgs []message.Message, enc Encoder) (encoded []byte, mark int) {
	if key != h.key {
		h.key, h.units = key, h.units[:0]
	}
	kept := 0
	rest := msgs
	for kept < len(h.units) && len(rest) > 0 {
		n := enc.Unit(rest)
		if !sameMessages(h.units[kept].messages, rest[:n]) {
			break
		}
		kept++
		rest = rest[n:]
	}
	clear(h.units[kept:])
	h.units = h.units[:kept]
	h.buf = h.buf[:h.end()]
	for len(rest) > 0 {
		n := enc.Unit(rest)
		from := len(h.buf)
		h.buf, mark = enc.Append(h.buf, rest[:n])
		if mark >= 0 {
			mark += from
		}
		h.units = append(h.units, unit{messages: snapshot(rest[:n]), end: len(h.buf), mark: mark})
		rest = rest[n:]
	}
	mark = -1
	for i := len(h.units) - 1; i >= 0 && mark < 0; i-- {
		mark = h.units[i].mark
	}
	return h.buf, mark
}

// Previous is the place for a cache mark where the request before this one ended: in
// the last unit ahead of the newest reply that has one; negative if there is none. What
// was cached there is found however much came since.
func (h *History) Previous() int {
	i := len(h.units) - 1
	for i >= 0 && h.units[i].messages[0].Role != message.RoleAssistant {
		i--
	}
	for i--; i >= 0; i-- {
		if m := h.units[i].mark; m >= 0 {
			return m
		}
	}
	return -1
}

func (h *History) end() int {
	if len(h.units) == 0 {
		return 0
	}
	return h.units[len(h.units)-1].end
}

// snapshot copies what an encoder may look at. Strings cannot change, slices
// can, and so those are copied.
func snapshot(msgs []message.Message) []message.Message {
	out := slices.Clone(msgs)
	for i := range out {
		out[i].Content = slices.Clone(out[i].Content)
		for j := range out[i].Content {
			out[i].Content[j].Arguments = bytes.Clone(out[i].Content[j].Arguments)
		}
		out[i].Details, out[i].Usage = nil, nil
	}
	return out
}

// sameMessages reports whether messages look the same to an encoder. It looks at
// the whole history ahead of every call and copies nothing; comparing a string with
// itself costs nothing either, so an untouched history is cheap.
func sameMessages(a, b []message.Message) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func same(a, b *message.Message) bool {
	if len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		x, y := &a.Content[i], &b.Content[i]
		if x.Type != y.Type || x.Text != y.Text || x.Signature != y.Signature || x.Redacted != y.Redacted ||
			x.Data != y.Data || x.MimeType != y.MimeType || x.ID != y.ID || x.Name != y.Name || !bytes.Equal(x.Arguments, y.Arguments) {
			return false
		}
	}
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolName == b.ToolName && a.IsError == b.IsError &&
		a.API == b.API && a.Provider == b.Provider && a.Model == b.Model && a.StopReason == b.StopReason
}

// Tools keeps the encoded form of tool definitions, as History does for
// messages.
type Tools struct {
	specs []model.ToolSpec
	buf   []byte
}

// Encode returns the tools as write writes them, and only calls it when they
// changed; nil if there are none. The bytes are only valid until the next call.
func (t *Tools) Encode(specs []model.ToolSpec, write func(dst []byte, specs []model.ToolSpec) []byte) []byte {
	if len(specs) == 0 {
		return nil
	}
	equal := slices.EqualFunc(t.specs, specs, func(a, b model.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	})
	if !equal || t.buf == nil {
		t.buf = write(t.buf[:0], specs)
		t.specs = slices.Clone(specs)
		for i := range t.specs {
			t.specs[i].Schema = bytes.Clone(t.specs[i].Schema)
		}
	}
	return t.buf
}
