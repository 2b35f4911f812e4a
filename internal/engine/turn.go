package engine

import (
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
)

// turnSettings fits the settings of a turn to what the run is: one without tools is not asked
// to call any, and neither is one with which a client goes on with a turn, by the
// results of calls that it performed.
func (d *driver) turnSettings(s *run.Settings) {
	msgs := d.conv.messages
	goesOn := len(d.spec.Prompt) == 0 && len(msgs) > 0 && msgs[len(msgs)-1].Role == message.RoleToolResult
	if n := len(d.spec.Prompt); n > 0 {
		last := d.conv.inputs[d.spec.Prompt[n-1]]
		goesOn = last != nil && last.Role == message.RoleToolResult
	}
	if goesOn || len(d.tools.set.Names()) == 0 || model.ToolChoice(d.spec.Overrides.ToolChoice) == model.ToolChoiceNone {
		s.MinToolCalls = 0
	}
}

// shown is the conversation as requests have it, with as many messages. less is after
// how many milliseconds reasoning was left out, 0 if there was none to leave out.
func (d *driver) shown() (msgs []message.Message, less int64) {
	after := d.agent.DropReasoning.Milliseconds()
	msgs = session.DropReasoning(d.conv.messages, after, run.Nudge)
	if len(msgs) > 0 && &msgs[0] != &d.conv.messages[0] {
		less = after
	}
	return msgs, less
}
