package prompt

import (
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Parts is what a request is made of.
type Parts struct {
	Model    string
	System   []model.SystemPart
	Sections []model.Section
	Messages []message.Message
	Tools    []tool.Spec
	Options  Options
	Session  string
	Scratch  *model.Scratch
}

// Options are what a profile and a caller say about sampling.
type Options struct {
	MaxTokens   int
	Temperature *float64
	TopP        *float64
	Stop        []string
	Thinking    model.ThinkingLevel
	ToolChoice  model.ToolChoice
	// SingleToolCall asks for one tool call at a time.
	SingleToolCall bool
	JSON           bool
	Schema         []byte
}

// Tools gives the specs as models get them.
func Tools(specs []tool.Spec) []model.ToolSpec {
	out := make([]model.ToolSpec, len(specs))
	for i, s := range specs {
		out[i] = model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema}
	}
	return out
}

// Build makes a request. The last message ends a cacheable prefix: the next
// request starts with all of this one.
func Build(p *Parts) *model.Request {
	o := p.Options
	return &model.Request{
		Model: p.Model, System: p.System, Sections: p.Sections, Messages: p.Messages, Tools: Tools(p.Tools),
		ToolChoice: o.ToolChoice, SingleToolCall: o.SingleToolCall, MaxTokens: o.MaxTokens, Temperature: o.Temperature, TopP: o.TopP,
		Stop: o.Stop, Thinking: o.Thinking, JSON: o.JSON, Schema: o.Schema,
		CacheLast: true, SessionID: p.Session, Scratch: p.Scratch,
	}
}
