// Package session turns the entries of a session's tree into the conversation
// that a model sees, and keeps that conversation valid whatever happened to the
// runs that wrote it.
package session

import (
	"slices"

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

// Item is a message of a conversation and where it is from.
type Item struct {
	// Entry is the id of its entry, "" for a message that nobody stored. Run is
	// the run that wrote it, "" if none did.
	Entry, Run string
	// Kept is whether it is older than the compaction that the conversation begins with.
	Kept bool
	message.Message
}

// Problem is an entry that a conversation goes on without, and why.
type Problem struct{ Entry, What string }

// Items gives the messages of a path, root first. An entry that can not be read is
// left out and reported: one bad row must not cost the session.
func Items(path []*store.Entry) (items []Item, problems []Problem) {
	if len(path) == 0 {
		return nil, nil
	}
	items = make([]Item, 0, len(path))
	var d message.Decoder
	for _, e := range path {
		switch {
		case e.Kind == KindMessage:
		case e.Kind == KindCustom, e.Kind == KindBranchSummary:
			switch m, ok, err := shown(e); {
			case err != nil:
				problems = append(problems, Problem{e.ID, "it is damaged"})
			case ok:
				items = append(items, Item{Entry: e.ID, Run: e.RunID, Message: m})
			}
			continue
		case silent(e.Kind):
			continue
		default:
			problems = append(problems, Problem{e.ID, "it is of a kind that this agentd does not know: " + e.Kind})
			continue
		}
		items = append(items, Item{Entry: e.ID, Run: e.RunID})
		it := &items[len(items)-1]
		if err := d.Decode(e.Body, &it.Message); err != nil || it.Role == "" {
			problems = append(problems, Problem{e.ID, "it is damaged"})
			items = items[:len(items)-1]
			continue
		}
		if Retold(&it.Message) {
			it.Details = nil // only entries of their own kinds are summaries
		}
	}
	return items, problems
}

// Texts gives the messages of items.
func Texts(items []Item) []message.Message {
	out := make([]message.Message, len(items))
	for i := range items {
		out[i] = items[i].Message
	}
	return out
}

// Heal makes a conversation acceptable to every provider: replies that failed or
// were aborted are dropped with what answered them, roles of the application's
// own are dropped, results without a call are dropped, and calls without a
// result get one that says so, in the order of the calls.
func Heal(msgs []message.Message) []message.Message {
	items := make([]Item, len(msgs))
	for i := range msgs {
		items[i].Message = msgs[i]
	}
	return Texts(HealItems(items))
}

// HealItems is [Heal] of messages that are known by their entries. What it adds has
// none.
func HealItems(items []Item) []Item {
	out := make([]Item, 0, len(items))
	var open []message.Block // calls of the last reply that have no result yet
	flush := func() {
		for _, c := range open {
			out = append(out, Item{Message: message.ToolResult(c.ID, c.Name, true, message.Text(Interrupted))})
		}
		open = nil
	}
	for _, m := range items {
		switch {
		case m.Custom():
			continue
		case m.Role == message.RoleToolResult:
			i := slices.IndexFunc(open, func(c message.Block) bool { return c.ID == m.ToolCallID })
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
