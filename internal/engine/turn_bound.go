package engine

import (
	"encoding/json"
	"strconv"

	"agentd/internal/run"
	"agentd/message"
)

// readLess is noted with a reply to a request from which reasoning was left out: what it
// used says nothing of one that has it again, because the profile, or another one of the
// session, leaves it out later or never. after is in milliseconds.
func readLess(after int64) json.RawMessage {
	return json.RawMessage(`{"reasoning_left_out_after":` + strconv.FormatInt(after, 10) + `}`)
}

// noteLess notes with a reply that its request had less than the conversation.
func (a *asked) noteLess(in run.Input, paid *grant) {
	if c, ok := in.(cured); ok {
		in = c.Input
	}
	switch done, ok := in.(run.ModelDone); {
	case !ok:
	case paid != nil && paid.cut:
		done.Message.Details = json.RawMessage(readCut)
	case a.less > 0 && len(done.Message.Details) == 0:
		done.Message.Details = readLess(a.less)
	}
}

// readAsMuch is whether a reply was made of as much, at least, as a request has of the
// same messages that leaves reasoning out after so many milliseconds (0: never). What is
// left out after a time is left out after a shorter one, too.
func readAsMuch(m *message.Message, after int64) bool {
	if len(m.Details) == 0 {
		return true
	}
	var less struct {
		After int64 `json:"reasoning_left_out_after"`
	}
	return json.Unmarshal(m.Details, &less) == nil && less.After > 0 && after > 0 && after <= less.After
}
