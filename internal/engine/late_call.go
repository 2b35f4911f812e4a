package engine

import (
	"bytes"
	"encoding/json"
	"slices"

	"agentd/event"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// CallByName is the tool through which a model calls tools that its conversation's list
// does not have. Nothing but requests knows it: such a call is one of the tool that it
// names from the moment at which the reply is there, with everything that belongs to it.
const CallByName = "call_tool"

// callByName is how requests have it. It must never change within a version that anybody
// uses: it is a part of what caches go by.
var callByName = tool.Spec{Name: CallByName,
	Description: "Calls a tool that is not among your tools, or that changed. Such tools, if there are any, are described in the context of kind " + toolsContext + " beside a person's words. Call all others directly.",
	Schema:      json.RawMessage(`{"type":"object","properties":{"tool":{"type":"string","description":"The tool's name."},"arguments":{"type":"object","description":"Its arguments, by its schema.","additionalProperties":true}},"required":["tool","arguments"]}`)}

// maxToolName is how long names of tools may be, as [tool.NewSet] has it.
const maxToolName = 64

// unwrap reads what a call of [CallByName] calls. Models that write the arguments as a
// text are understood. ok is false if it does not say what to call.
func unwrap(raw json.RawMessage) (name string, args json.RawMessage, ok bool) {
	var c struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(raw, &c) != nil || c.Tool == "" || len(c.Tool) > maxToolName || c.Tool == CallByName {
		return "", nil, false
	}
	args = bytes.TrimSpace(c.Arguments)
	var text string
	if len(args) > 0 && args[0] == '"' && json.Unmarshal(args, &text) == nil {
		args = bytes.TrimSpace([]byte(text))
	}
	switch {
	case len(args) == 0 || string(args) == "null":
		args = json.RawMessage("{}")
	case args[0] != '{' || !json.Valid(args):
		return "", nil, false
	}
	return c.Tool, args, true
}

// wrap gives the call as requests have it: always the same for the same.
func wrap(b *message.Block) message.Block {
	out := *b
	args := message.AppendString([]byte(`{"tool":`), b.Name)
	args = append(append(append(args, `,"arguments":`...), b.Arguments...), '}')
	out.Name, out.Arguments, out.Via = b.Via, args, ""
	return out
}

// direct makes the calls of a reply that went through [CallByName] calls of what they
// call, and tells readers that they began. m is not changed.
func (g *generation) direct(m *message.Message) *message.Message {
	out := unwrapped(m)
	for i := range m.Content {
		if b := &m.Content[i]; b.Type == message.BlockToolCall && b.Name == CallByName {
			g.publishStart(&out.Content[i])
		}
	}
	return out
}

// unwrapped is a reply whose calls that went through [CallByName] are calls of what they
// call. m is not changed.
func unwrapped(m *message.Message) *message.Message {
	out := m
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type != message.BlockToolCall || b.Name != CallByName {
			continue
		}
		if name, args, ok := unwrap(b.Arguments); ok {
			if out == m {
				c := *m
				c.Content = append([]message.Block(nil), m.Content...)
				out = &c
			}
			to := &out.Content[i]
			to.Name, to.Arguments, to.Via = name, args, CallByName
		}
	}
	return out
}

func (g *generation) publishStart(b *message.Block) {
	if g.silent || slices.Contains(g.nameless, b.ID) {
		return
	}
	g.d.stream.publishLive(event.Event{RunID: g.d.ref.ID, Time: g.d.e.now(), Step: g.step, Type: event.ToolInputStarted,
		Data: &event.Tool{ToolCallID: b.ID, Name: b.Name}})
}

// asCalled gives messages as the model wrote and read them: with calls through the tool
// that it called. The conversation's own are given back where there are none. What is
// made of a reply is kept, so that who compares requests finds the very same.
func (c *conversation) asCalled(msgs []message.Message) []message.Message {
	var out []message.Message
	via := map[string]string{} // of the calls of the newest reply, by id
	for i := range msgs {
		m := &msgs[i]
		switch m.Role {
		case message.RoleAssistant:
			clear(via)
			for j := range m.Content {
				if b := &m.Content[j]; b.Via != "" {
					via[b.ID] = b.Via
				}
			}
			if len(via) == 0 {
				continue
			}
			if out == nil {
				out = append(out, msgs...)
			}
			out[i].Content = c.wrapped(m.Content)
		case message.RoleToolResult:
			if name := via[m.ToolCallID]; name != "" {
				out[i].ToolName = name
			}
		}
	}
	if out == nil {
		return msgs
	}
	return out[:len(out):len(out)]
}

func (c *conversation) wrapped(content []message.Block) []message.Block {
	if out, ok := c.wraps[&content[0]]; ok && len(out) == len(content) {
		return out
	}
	out := make([]message.Block, len(content))
	for i := range content {
		if out[i] = content[i]; out[i].Via != "" {
			out[i] = wrap(&content[i])
		}
	}
	if c.wraps == nil || len(c.wraps) > 2*len(c.messages) { // contents that changed are not asked for again
		c.wraps = map[*message.Block][]message.Block{}
	}
	c.wraps[&content[0]] = out
	return out
}

// held is whether a piece of a reply is told later, when it is known what it calls.
func (g *generation) held(ev *model.StreamEvent) bool {
	return g.gateway && ev.ToolCall != nil && ev.ToolCall.Name == CallByName
}
