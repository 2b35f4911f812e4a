package run

import (
	"encoding/json"
	"strconv"

	"agentd/event"
	"agentd/message"
)

// What holds for one turn: how many approvals people are asked for, and that an
// answer without the calls that it should rest on is asked for once more.

// NudgeDetails marks the message that asks the model again. It is the machine's and
// no person's, and ends no turn.
const NudgeDetails = `{"nudge":"min_tool_calls"}`

// Nudge is whether a message is the machine's own, which asks the model again.
func Nudge(m *message.Message) bool {
	return m.Role == message.RoleUser && (string(m.Details) == NudgeDetails || string(m.Details) == FormDetails)
}

// newTurn forgets what was counted since the last user message.
func (m *machine) newTurn() {
	s := &m.State
	s.TurnSteps, s.TurnAsked, s.TurnCalls = 0, 0, 0
	s.Streaks, s.Closing = nil, "" // whoever writes knows something new
	s.Nudged, s.Reformed, s.Held = false, false, ""
	m.forget()
}

// askedEnough is whether no more approvals may be asked for in this turn. Questions
// and plans are the model's own wish, calls in doubt and budgets are not the model's:
// none of them counts.
func (m *machine) askedEnough(kind string) bool {
	s := &m.State
	return kind == kindApproval && s.Settings.MaxApprovals > 0 && s.TurnAsked >= s.Settings.MaxApprovals
}

func (m *machine) approvalsUsedUp() string {
	return "Not executed: it needs a person's approval, and people are asked for " + strconv.Itoa(m.State.Settings.MaxApprovals) +
		" approvals at most for one message (max_approvals_per_turn). Make no more calls that need one: finish with what there is, or say in your answer what is left and ask the user in text how to go on."
}

// countCalls counts the calls of a batch that were made, or that a person or a
// capture decided about. What was refused before it came to that is not one.
func (m *machine) countCalls() {
	s := &m.State
	for i := range s.Calls {
		if c := &s.Calls[i]; !c.IsError || c.Failed || c.Interrupt != "" {
			s.TurnCalls++
		}
	}
}

// nudge asks the model again when it is about to end its turn with fewer calls than
// it should make, and is whether it does. That is once a turn, and never where a call
// could not be made anyway.
func (m *machine) nudge(reply *message.Message) bool {
	s := &m.State
	set := &s.Settings
	switch {
	case set.MinToolCalls == 0 || s.TurnCalls >= set.MinToolCalls || s.Nudged:
		return false
	case s.Closing != "" || reply.StopReason == message.StopLength || len(s.Steering) > 0:
		return false
	case set.MaxSteps > 0 && s.TurnSteps >= set.MaxSteps, set.MaxToolCalls > 0 && s.ToolCalls >= set.MaxToolCalls, s.Model.Calls != nil && *s.Model.Calls <= 0:
		return false
	}
	s.Nudged, s.Held = true, s.Output
	had := "none"
	if s.TurnCalls > 0 {
		had = strconv.Itoa(s.TurnCalls)
	}
	text := "[This note is automatic, and not from the user.] Before you answer, tools are to be called at least " + times(set.MinToolCalls) +
		"; so far there was " + had + ". Call the tools that your answer should rest on, and then give the whole answer. If no tool can help, give your answer again as it is to stand."
	note := message.User(text)
	note.Timestamp, note.Details = m.now, json.RawMessage(NudgeDetails)
	entry := s.nextEntry()
	m.write(AppendMessage{Entry: entry, Parent: s.Leaf, Message: &note})
	s.Leaf = entry
	m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "nudged", Prompt: "The model answers after " + strconv.Itoa(s.TurnCalls) + " tool calls, and " + strconv.Itoa(set.MinToolCalls) + " are wanted (min_tool_calls): it is asked once more."})
	m.nextStep()
	return true
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// holds ends a turn whose nudge led to nothing: the answer that there was stands.
func (m *machine) holds(why string) {
	m.holdsFor(why)
	m.finalText()
	m.endOfTurn("stop")
}

// holdsAtEnd is holds of a run whose time is up: it can do nothing more, not for a
// message either, but it had answered.
func (m *machine) holdsAtEnd() {
	s := &m.State
	m.holdsFor(m.failure().Message)
	m.tell(event.FinalText, &event.Text{EntryID: s.Output})
	m.finish(Completed, "stop", nil)
}

func (m *machine) holdsFor(why string) {
	m.State.Held = ""
	m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "nudge_failed", Prompt: "The model was asked once more and gave no answer, so the one before stands: " + why})
}

// finalText tells the answer that there was before. Its text is in its entry.
func (m *machine) finalText() {
	if s := &m.State; s.Output != "" && len(s.Steering) == 0 {
		m.tell(event.FinalText, &event.Text{EntryID: s.Output})
	}
}
