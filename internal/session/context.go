// Package session turns the entries of a session's tree into the conversation
// that a model sees, and keeps that conversation valid whatever happened to the
// runs that wrote it.
package session

import (
	"runtime"
	"slices"
	"sync"

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
	items = make([]Item, len(path))
	n := 0
	for _, of := range parallel(len(path), func(from, to int) (p part) {
		p.from, p.to, p.problems = from, from, nil
		var d message.Decoder
		for _, e := range path[from:to] {
			ok, what := items[p.to].read(&d, e)
			switch {
			case ok:
				p.to++
			case what != "":
				p.problems = append(p.problems, Problem{e.ID, what})
			}
		}
		return p
	}) {
		if n != of.from {
			copy(items[n:], items[of.from:of.to])
		}
		n += of.to - of.from
		problems = append(problems, of.problems...)
	}
	clear(items[n:])
	return items[:n], problems
}

// part is what of a path was read on one processor: items from an index to another.
type part struct {
	from, to int
	problems []Problem
}

// least is how many entries are worth a goroutine of their own.
const least = 128

// parallel calls f for all of n, in parts that are read at the same time, and gives what
// came of them in order.
func parallel(n int, f func(from, to int) part) []part {
	k := max(1, min(n/least, runtime.GOMAXPROCS(0)))
	out := make([]part, k)
	var wg sync.WaitGroup
	for i := range k - 1 {
		wg.Go(func() { out[i] = f(i*n/k, (i+1)*n/k) })
	}
	out[k-1] = f((k-1)*n/k, n)
	wg.Wait()
	return out
}

// read makes an item of an entry; false if there is none of it, and what is wrong with
// the entry, if anything is.
func (it *Item) read(d *message.Decoder, e *store.Entry) (ok bool, wrong string) {
	*it = Item{Entry: e.ID, Run: e.RunID}
	switch {
	case e.Kind == KindMessage:
		return it.message(d, e, e.Body)
	case e.Kind == KindCustom, e.Kind == KindBranchSummary:
		m, ok, err := shown(e)
		if err != nil {
			return false, "it is damaged"
		}
		it.Message = m
		return ok, ""
	case silent(e.Kind):
		return false, ""
	}
	return false, "it is of a kind that this agentd does not know: " + e.Kind
}

// message is read for an entry that is a message, with its body.
func (it *Item) message(d *message.Decoder, e *store.Entry, body []byte) (ok bool, wrong string) {
	it.Entry = e.ID
	if err := d.Decode(body, &it.Message); err != nil || it.Role == "" {
		return false, "it is damaged"
	}
	if Retold(&it.Message) {
		it.Details = nil // only entries of their own kinds are summaries
	}
	return true, ""
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
// none. items are not changed; where nothing is to be done it gives them back.
func HealItems(items []Item) []Item {
	var out []Item // what items begin with until the first is left out or added
	same := 0
	put := func(it *Item, of int) {
		if out == nil && of == same {
			same++
			return
		}
		if out == nil {
			out = append(make([]Item, 0, len(items)+8), items[:same]...)
		}
		out = append(out, *it)
	}
	var open []*message.Block // calls of the last reply that have no result yet
	flush := func() {
		for _, c := range open {
			put(&Item{Message: message.ToolResult(c.ID, c.Name, true, message.Text(Interrupted))}, -1)
		}
		open = open[:0]
	}
	for i := range items {
		m := &items[i]
		switch {
		case m.Custom():
			continue
		case m.Role == message.RoleToolResult:
			at := slices.IndexFunc(open, func(c *message.Block) bool { return c.ID == m.ToolCallID })
			if at < 0 {
				continue
			}
			open = slices.Delete(open, at, at+1)
			put(m, i)
		case m.Role == message.RoleAssistant && (m.StopReason == message.StopError || m.StopReason == message.StopAborted):
			continue
		default:
			flush()
			put(m, i)
			if m.Role == message.RoleAssistant {
				for j := range m.Content {
					if m.Content[j].Type == message.BlockToolCall {
						open = append(open, &m.Content[j])
					}
				}
			}
		}
	}
	flush()
	if out == nil {
		return items[:same:same]
	}
	return out
}
