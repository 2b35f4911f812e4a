package run

import (
	"strconv"

	"agentd/message"
)

// Capture records a call as a proposal that a person decides about after the run,
// and lets the model go on as if it had been executed.
const Capture Decision = "capture"

// RecordProposal writes a proposal. Temp stands for the id of what the call would
// make, in Predicted, the output that the model was given, and in later calls.
type RecordProposal struct {
	ID, CallID, Name, Effect, Key string
	Temp, Predicted, Reason       string
}

func (RecordProposal) writeKind() string { return "RecordProposal" }

// capture settles a call with its predicted output.
func (m *machine) capture(i int, reason string) {
	s := &m.State
	c := &s.Calls[i]
	s.Proposed++
	id := s.RunID + ".p" + strconv.Itoa(s.Proposed)
	temp := "tmp." + id
	predicted := `{"proposal_id":"` + id + `","status":"proposed","id":"` + temp + `"}` + "\n" +
		"The call was recorded and not executed: a person decides about it after the run. Go on as if it had succeeded. " +
		"Where a later call needs the id of what this one makes, write " + temp + "; the real one takes its place. Do not repeat the call."
	if c.Kind == kindSpawn {
		predicted += " When it is applied, the subagent runs by itself: its answer does not come here, so do the rest without it."
	}
	m.write(RecordProposal{ID: id, CallID: c.ID, Name: c.Name, Effect: c.Effect, Key: s.Key(c.ID), Temp: temp, Predicted: predicted, Reason: reason})
	r := message.ToolResult(c.ID, c.Name, false, message.Text(predicted))
	m.resolved(i, &r, "captured", reason)
}
