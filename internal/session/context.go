// Package session turns the entries of a session's tree into the conversation
// that a model sees, and keeps that conversation valid whatever happened to the
// runs that wrote it.
package session

import (
	"encoding/json"

	"agentd/internal/store"
	"agentd/message"
)

// Kinds of entries.
const (
	KindMessage    = "message"
	KindCompaction = "compaction"
	// KindRollback continues a path from before a run that was rolled back. It
	// has no message.
	KindRollback = "rollback"
)

// Interrupted is what the model reads in place of a result that never came.
const Interrupted = "Tool execution was interrupted."

// Messages gives the messages of a path, root first. An entry that can not be
// read is left out and reported: one bad row must not cost the session.
func Messages(path []*store.Entry) (msgs []message.Message, bad []string) {
	for _, e := range path {
		if e.Kind != KindMessage {
			continue
		}
		var m message.Message
		if err := json.Unmarshal(e.Body, &m); err != nil {
			bad = append(bad, e.ID)
			continue
		}
		msgs = append(msgs, m)
	}
	return msgs, bad
}

// Heal makes a conversation acceptable to every provider: replies that failed or
// were aborted are dropped with what answered them, roles of the application's
// own are dropped, results without a call are dropped, and calls without a
// result get one that says so, in the order of the calls.
func Heal(msgs []message.Message) []message.Message {
	out := make([]message.Message, 0, len(msgs))
	var open []message.Block // calls of the last reply that have no result yet
	flush := func() {
		for _, c := range open {
			out = append(out, message.ToolResult(c.ID, c.Name, true, message.Text(Interrupted)))
		}
		open = nil
	}
	for _, m := range msgs {
		switch {
		case m.Custom():
			continue
		case m.Role == message.RoleToolResult:
			i := indexOf(open, m.ToolCallID)
			if i < 0 {
				continue
			}
			open = append(open[:i:i], open[i+1:]...)
			out = append(out, m)
		case m.Role == message.RoleAssistant && (m.StopReason == message.StopError || m.StopReason == message.StopAborted):
			continue
		default:
			flush()
			out = append(out, m)
			if m.Role == message.RoleAssistant {
				open = m.ToolCalls()
			}
		}
	}
	flush()
	return out
}

func indexOf(calls []message.Block, id string) int {
	for i := range calls {
		if calls[i].ID == id {
			return i
		}
	}
	return -1
}
