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
	if goesOn || len(d.tools.set.Names()) == 0 || model.ToolChoice(d.spec.Overrides.ToolChoice) == model.ToolChoiceNone {
		s.MinToolCalls = 0
	}
}

// shown is the conversation as requests have it, with as many messages.
func (d *driver) shown() []message.Message {
	return session.DropReasoning(d.conv.messages, d.agent.DropReasoning.Milliseconds(), run.Nudge)
}
