package llmwire

import (
	"cmp"
	"encoding/json"
	"strings"

	"agentd/internal/jsonrepair"
	"agentd/message"
	"agentd/model"
)

// Reply puts an assistant message together from the pieces of a stream and
// emits the stream events on the way: start once, and for each block its start,
// its deltas and its end. Blocks are numbered in the order they are opened.
type Reply struct {
	// Message is the message so far. Set what is known about it before Start.
	Message message.Message

	emit    func(model.StreamEvent)
	stops   Stops
	started bool
	parts   []*part
}

// part is what is known of a block beside the block itself.
type part struct {
	text   strings.Builder
	call   *message.Block // as given to the events of a tool call
	closed bool
	half   []byte // what the last delta cut a character in
}

// NewReply returns an empty reply. emit may be nil.
func NewReply(emit func(model.StreamEvent)) *Reply {
	return &Reply{Message: message.Message{Role: message.RoleAssistant, Content: []message.Block{}}, emit: emit}
}

// StopAt ends the reply at the first of these texts that its text has, for stop texts that
// the provider was not asked for. Blocks that are opened after it are left out: their index
// is negative, and what is done to them has no effect.
func (r *Reply) StopAt(texts []string) { r.stops = NewStops(texts) }

// Stopped reports whether the reply was ended by a text of [Reply.StopAt].
func (r *Reply) Stopped() bool { return r.stops.Hit() }

// Start emits the start event, once.
func (r *Reply) Start() {
	if !r.started {
		r.started = true
		r.send(model.StreamEvent{Type: model.StreamStart})
	}
}

func (r *Reply) send(e model.StreamEvent) {
	if r.emit != nil {
		e.Partial = &r.Message
		r.emit(e)
	}
}

// Open begins a block and returns its index. Of a tool call, b has the id and
// the name.
func (r *Reply) Open(b message.Block) int {
	r.Start()
	if r.stops.Hit() {
		return -1
	}
	i := len(r.Message.Content)
	p := &part{}
	e := model.StreamEvent{Index: i}
	switch b.Type {
	case message.BlockToolCall:
		b.Arguments = json.RawMessage("{}")
		call := b
		p.call = &call
		e.Type, e.ToolCall = model.StreamToolStart, p.call
	case message.BlockThinking:
		e.Type = model.StreamThinkingStart
	default:
		e.Type = model.StreamTextStart
	}
	r.Message.Content = append(r.Message.Content, b)
	r.parts = append(r.parts, p)
	r.send(e)
	return i
}

// Rename completes the id and the name of a tool call that came later than its
// start. Empty values change nothing, and neither does another value than the one that was
// told already: whoever follows the reply knows the call by it.
func (r *Reply) Rename(i int, id, name string) {
	if i < 0 {
		return
	}
	b := &r.Message.Content[i]
	if (id == "" || b.ID != "") && (name == "" || b.Name != "") {
		return
	}
	b.ID, b.Name = cmp.Or(b.ID, id), cmp.Or(b.Name, name)
	call := *b
	r.parts[i].call = &call
}

// Delta adds the text of a JSON string to block i: text, thinking, or a piece
// of argument JSON.
func (r *Reply) Delta(i int, raw []byte) {
	if i < 0 || !IsString(raw) || r.parts[i].closed {
		return
	}
	raw = r.parts[i].seam(raw)
	if r.stops.Any() && r.Message.Content[i].Type == message.BlockText {
		if raw = AppendString(nil, r.stops.Next(String(raw))); len(raw) <= 2 {
			return
		}
	}
	r.add(i, raw)
}

// add is Delta of what was not held back.
func (r *Reply) add(i int, raw []byte) {
	p, b := r.parts[i], &r.Message.Content[i]
	before := p.text.Len()
	if in := raw[1 : len(raw)-1]; plain(in) {
		p.text.Write(in)
	} else {
		unescape(&p.text, in)
	}
	all := p.text.String()
	if len(all) == before {
		return
	}
	e := model.StreamEvent{Index: i, Delta: all[before:]}
	switch b.Type {
	case message.BlockToolCall:
		e.Type, e.ToolCall = model.StreamToolDelta, p.call
	case message.BlockThinking:
		b.Text = all
		e.Type = model.StreamThinkingDelta
	default:
		b.Text = all
		e.Type = model.StreamTextDelta
	}
	r.send(e)
}

// Sign adds to the signature of block i.
func (r *Reply) Sign(i int, s string) {
	if i >= 0 {
		r.Message.Content[i].Signature += s
	}
}

// Len is the number of characters that block i has so far.
func (r *Reply) Len(i int) int { return r.parts[i].text.Len() }

// Close ends block i. The arguments of a tool call become a valid JSON object.
func (r *Reply) Close(i int) {
	if i < 0 || r.parts[i].closed {
		return
	}
	p, b := r.parts[i], &r.Message.Content[i]
	if b.Type == message.BlockText { // what is held back is a text's
		if rest := r.stops.Rest(); rest != "" {
			r.add(i, AppendString(nil, rest))
		}
	}
	p.closed = true
	e := model.StreamEvent{Index: i, Content: b.Text}
	switch b.Type {
	case message.BlockToolCall:
		b.Arguments, _ = jsonrepair.Object([]byte(p.text.String()))
		call := *b
		p.call = &call
		e.Type, e.ToolCall, e.Content = model.StreamToolEnd, p.call, string(b.Arguments)
	case message.BlockThinking:
		e.Type = model.StreamThinkingEnd
	default:
		e.Type = model.StreamTextEnd
	}
	r.send(e)
}

// CloseAll ends every open block, in order.
func (r *Reply) CloseAll() {
	r.Start()
	for i := range r.parts {
		r.Close(i)
	}
}

// Calls is the number of tool calls so far.
func (r *Reply) Calls() int {
	n := 0
	for i := range r.Message.Content {
		if r.Message.Content[i].Type == message.BlockToolCall {
			n++
		}
	}
	return n
}

// Nameless reports whether a tool call has no name, and so cannot be made.
func (r *Reply) Nameless() bool {
	for i := range r.Message.Content {
		if b := &r.Message.Content[i]; b.Type == message.BlockToolCall && b.Name == "" {
			return true
		}
	}
	return false
}
