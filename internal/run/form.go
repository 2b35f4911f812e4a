package run

import (
	"encoding/json"

	"agentd/event"
	"agentd/message"
)

// An answer that has not the form that was asked for (JSON, a schema) is asked for
// once more. What is wrong with it is the caller's to find out: [ModelDone.Unfit].

// FormDetails marks the message that asks for another form. It is the machine's and no
// person's, like one with [NudgeDetails].
const FormDetails = `{"nudge":"output_format"}`

// reform asks the model for its answer in the form that was asked for, when it is about
// to end its turn with another one, and is whether it does. That is once a turn.
func (m *machine) reform(reply *message.Message, unfit string) bool {
	s := &m.State
	switch {
	case unfit == "":
		return false
	case s.Reformed, s.Closing != "" || reply.StopReason == message.StopLength || len(s.Steering) > 0,
		s.Settings.MaxSteps > 0 && s.TurnSteps >= s.Settings.MaxSteps:
		m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "format_missed", Prompt: "The answer has not the form that was asked for: " + unfit})
		return false
	}
	s.Reformed, s.Held = true, s.Output
	note := message.User("[This note is automatic, and not from the user.] Your answer can not be read as what was asked for: " + unfit +
		". Give the whole answer again, as one JSON value and nothing else: no words around it, no code fence.")
	note.Timestamp, note.Details = m.now, json.RawMessage(FormDetails)
	entry := s.nextEntry()
	m.write(AppendMessage{Entry: entry, Parent: s.Leaf, Message: &note})
	s.Leaf = entry
	m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "format_asked", Prompt: "The answer has not the form that was asked for, and is asked for once more: " + unfit})
	m.nextStep()
	return true
}
