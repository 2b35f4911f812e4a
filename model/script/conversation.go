package script

import (
	"agentd/message"
	"agentd/model"
)

// Conversation is what a script knows of a request, whatever protocol it came in.
type Conversation struct {
	Model string
	// Session tells conversations apart that begin alike; may be empty.
	Session string
	// System are the parts of the system prompt.
	System   []string
	Messages []Message
	// NoTools says that the request allows no tool call. Scripted calls are
	// then left out.
	NoTools bool
	// OneCall says that the request allows one tool call in a reply. The others
	// of a scripted reply are then left out.
	OneCall bool
	// NoThinking says that the request turned thinking off.
	NoThinking bool
	// MaxTokens bounds the reply, in tokens; 0 means no bound.
	MaxTokens int
	// Stop are texts that end the reply.
	Stop []string
	// CallPrefix begins the ids of tool calls; empty means "call_".
	CallPrefix string
	// PromptTokens is the size of the whole prompt.
	PromptTokens int64
}

// Message is one message of a conversation: of the user, of the assistant, or one
// result of a tool.
type Message struct {
	Role message.Role
	Text string
	// Calls are the tool calls of an assistant message.
	Calls []Call
	// CallID, Name and IsError belong to a tool result.
	CallID, Name string
	IsError      bool
}

// Call is a tool call in the history.
type Call struct{ ID, Name string }

// FromRequest returns the conversation of a request. Assistant messages that
// ended in an error or were aborted do not count: no provider is sent them.
func FromRequest(req *model.Request) *Conversation {
	c := &Conversation{Model: req.Model, Session: req.SessionID, MaxTokens: req.MaxTokens, Stop: req.Stop,
		NoTools:    len(req.Tools) == 0 || req.ToolChoice == model.ToolChoiceNone,
		OneCall:    req.SingleToolCall,
		NoThinking: req.Thinking == model.ThinkingOff,
		Messages:   make([]Message, 0, len(req.Messages))}
	size := 0
	for _, part := range req.System {
		c.System = append(c.System, part.Text)
		size += len(part.Text)
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Custom() || m.Role == message.RoleAssistant && (m.StopReason == message.StopError || m.StopReason == message.StopAborted) {
			continue
		}
		out := Message{Role: m.Role, Text: m.Text()}
		for j := range m.Content {
			b := &m.Content[j]
			size += len(b.Text) + len(b.Arguments) + len(b.Data)
			if b.Type == message.BlockToolCall {
				size += len(b.Name)
				if m.Role == message.RoleAssistant {
					out.Calls = append(out.Calls, Call{b.ID, b.Name})
				}
			}
		}
		if m.Role == message.RoleToolResult {
			out.CallID, out.Name, out.IsError = m.ToolCallID, m.ToolName, m.IsError
		}
		c.Messages = append(c.Messages, out)
	}
	c.PromptTokens = Tokens(size)
	return c
}

// Tokens is the number of tokens that n bytes count as: a quarter, rounded up.
func Tokens(n int) int64 { return int64(n+3) / 4 }

// start is the index of the user message at which the script begins: the last one
// that does not interrupt a turn. A user message that follows tool results, or
// another user message, goes on with the turn.
func (c *Conversation) start(never bool) int {
	if never {
		return 0
	}
	start, open := 0, false
	for i := range c.Messages {
		m := &c.Messages[i]
		switch m.Role {
		case message.RoleUser:
			if !open {
				start, open = i, true
			}
		case message.RoleAssistant:
			open = len(m.Calls) > 0
		default:
			open = true
		}
	}
	return start
}

// view is the conversation at one step of a script: the data of its templates.
type view struct {
	c          *Conversation
	start, end int // the messages of this pass, up to the step
	fresh      int // where the results that the step answers begin
	step       int
}

// views returns the view of each step of the pass, the open one last.
func (c *Conversation) views(never bool, all bool) []view {
	start := c.start(never)
	var vs []view
	fresh, step := start, 0
	for i := start; i < len(c.Messages); i++ {
		if c.Messages[i].Role == message.RoleAssistant {
			if all {
				vs = append(vs, view{c, start, i, fresh, step})
			}
			fresh = i + 1
			step++
		}
	}
	return append(vs, view{c, start, len(c.Messages), fresh, step})
}

// user is the newest user text at the step.
func (v *view) user() string {
	for i := v.end - 1; i >= 0; i-- {
		if v.c.Messages[i].Role == message.RoleUser {
			return v.c.Messages[i].Text
		}
	}
	return ""
}

// holds reports whether the condition is met at the step.
func (w *when) holds(v *view) bool {
	if w.user != nil && !w.user.MatchString(v.user()) {
		return false
	}
	if w.system != nil {
		met := false
		for _, s := range v.c.System {
			met = met || w.system.MatchString(s)
		}
		if !met {
			return false
		}
	}
	if w.tool == "" && w.result == nil && w.failed == nil {
		return true
	}
	for _, m := range v.c.Messages[v.fresh:v.end] {
		if m.Role == message.RoleToolResult && (w.tool == "" || w.tool == m.Name) &&
			(w.result == nil || w.result.MatchString(m.Text)) && (w.failed == nil || *w.failed == m.IsError) {
			return true
		}
	}
	return false
}

// pick returns the turn that answers the conversation, nil for none, and the view
// its templates see. It replays the choice of the earlier steps of this pass, so
// it needs no memory: the same request always gets the same turn.
func (s *Script) pick(c *Conversation) (*turn, *view) {
	vs := c.views(s.never, s.conditional)
	last := &vs[len(vs)-1]
	if !s.conditional {
		left := last.step
		for _, t := range s.turns {
			if left < t.repeat {
				return t, last
			}
			left -= t.repeat
		}
		return nil, last
	}
	used := make([]int, len(s.turns))
	var chosen *turn
	for i := range vs {
		chosen = nil
		at := -1
		for j, t := range s.turns {
			if t.when != nil && used[j] < t.repeat && t.when.holds(&vs[i]) {
				at = j
				break
			}
		}
		for j := 0; at < 0 && j < len(s.turns); j++ {
			if s.turns[j].when == nil && used[j] < s.turns[j].repeat {
				at = j
			}
		}
		if at >= 0 {
			used[at]++
			chosen = s.turns[at]
		}
	}
	return chosen, last
}

// FNV-1a, written out because hash/fnv allocates and takes bytes.
const (
	fnvSeed  = 14695981039346656037
	fnvPrime = 1099511628211
)

func mix(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return (h ^ 0xff) * fnvPrime // so that "a","b" differs from "ab",""
}

func mixInt(h uint64, n int) uint64 {
	for range 8 {
		h = (h ^ uint64(n&0xff)) * fnvPrime
		n >>= 8
	}
	return h
}

// bounded is the part of a text that identity looks at.
func bounded(s string) string { return s[:min(len(s), 512)] }

// identity is a number that stands for the position in the conversation. It
// contains the ids of the calls before it, so that it never comes back within one
// conversation, even when a compaction made that shorter. It looks back to the
// last message with calls only, so that its cost does not grow with the history.
func (c *Conversation) identity() uint64 {
	h := mixInt(mix(fnvSeed, c.Model), len(c.Messages))
	for i := len(c.Messages) - 1; i >= 0; i-- {
		m := &c.Messages[i]
		h = mixInt(mix(mix(h, string(m.Role)), bounded(m.Text)), len(m.Text))
		for _, call := range m.Calls {
			h = mix(h, call.ID)
		}
		if len(m.Calls) > 0 {
			break
		}
	}
	return h
}

// digest is a number that stands for the whole conversation.
func (c *Conversation) digest() uint64 {
	h := mix(mix(fnvSeed, c.Model), c.Session)
	for _, s := range c.System {
		h = mix(h, s)
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		h = mix(mix(mix(h, string(m.Role)), m.Text), m.CallID)
		for _, call := range m.Calls {
			h = mix(h, call.ID)
		}
	}
	return h
}
