package engine

import (
	"context"
	"errors"
	"fmt"

	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// A conversation goes on whatever became of one of its entries: what can not be
// read, what is of a newer agentd, and what a provider refuses is left out, and
// said to be: in the run's first event, in the log, in the session's entries and by
// the doctor.

// origin is where a message of a conversation is from.
type origin struct {
	entry string // "" for one that nobody stored
	run   string
	own   bool // of the run itself
	// kept: it is older than the compaction that the conversation begins with.
	kept bool
}

// load takes in what was read.
func (c *conversation) load(items []session.Item, own string) {
	more := 0
	if len(items) >= warmEntries {
		more = 16 // of the run: its first message need not copy all others
	}
	c.messages = make([]message.Message, len(items), len(items)+more)
	c.origins = make([]origin, len(items), len(items)+more)
	for i := range items {
		it := &items[i]
		c.messages[i] = it.Message
		c.origins[i] = origin{entry: it.Entry, run: it.Run, own: it.Run == own, kept: it.Kept}
	}
	c.tell()
}

// tell notes what the messages say beside people's words.
func (c *conversation) tell() {
	c.told = nil
	for i := range c.messages {
		c.told = c.told.See(&c.messages[i])
	}
}

// maxWarnings bounds how many entries are named in an event.
const maxWarnings = 5

// warnings say what the conversation has to do without.
func (c *conversation) warnings() (w []string) {
	for i, p := range c.problems {
		if i == maxWarnings {
			return append(w, fmt.Sprintf("and %d more entries are left out", len(c.problems)-i))
		}
		w = append(w, "entry "+p.Entry+" of the conversation is left out: "+p.What)
	}
	return w
}

// path gives the entries from the root to a leaf. If the way breaks, it begins
// behind the gap, which is the id of the entry that is missing. Messages are read ahead
// where that is asked for, and the store can; their entries have no bodies then.
func (e *Engine) path(ctx context.Context, ref Ref, leaf string, ahead *session.Ahead) (path []*store.Entry, gap string, err error) {
	if s, ok := e.store.(store.AheadReader); ok && ahead != nil {
		path, err = s.PathAhead(ctx, ref.Tenant, ref.ID, leaf, ahead.Read)
	} else {
		path, err = e.store.Path(ctx, ref.Tenant, ref.ID, leaf)
	}
	if err == nil {
		return path, "", nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, "", internal("engine.path", err) // it may be readable later
	}
	if _, err := e.store.Session(ctx, ref.Tenant, ref.ID); err != nil {
		return nil, "", notFound("session", ref.ID, err)
	}
	all, err := e.store.Entries(ctx, ref.Tenant, ref.ID, "", 0)
	if err != nil {
		return nil, "", internal("engine.path", err)
	}
	byID := make(map[string]*store.Entry, len(all))
	for _, row := range all {
		byID[row.ID] = row
	}
	for id := leaf; id != ""; {
		row := byID[id]
		if row == nil {
			gap = id
			break
		}
		delete(byID, id) // a circle ends where it began
		path = append(path, row)
		id = row.Parent
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, gap, nil
}

// leaveOut applies what was found out about entries. items are not changed.
func (d *driver) leaveOut(ctx context.Context, items []session.Item) ([]session.Item, error) {
	made := d.conv.made
	if made != nil {
		d.conv.reduced = made.At
	}
	if d.fresh != nil {
		return items, nil // nobody has found out anything
	}
	rows, err := d.e.store.Quarantined(ctx, d.ref.Tenant, d.row.SessionID)
	if err != nil {
		return nil, internal("engine.load", err)
	}
	if n := len(rows); n > 0 {
		d.conv.reduced = max(d.conv.reduced, rows[n-1].Created)
	}
	return session.Reduce(items, made, rows), nil
}

// notes say of entries why models are not shown them.
func (e *Engine) notes(ctx context.Context, ref Ref, path []*store.Entry, gap string) (map[string]string, error) {
	rows, err := e.store.Quarantined(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, internal("engine.Entries", err)
	}
	notes := map[string]string{}
	for _, q := range rows {
		what := map[string]string{session.LeaveImages: "its images", session.LeaveText: "all but the beginning of its text"}[q.What]
		if what == "" {
			what = "all of it"
		}
		notes[q.EntryID] = what + ": " + q.Reason
	}
	_, bad := session.Items(path)
	_, _, worse := session.Context(path) // a compaction that can not be read
	for _, p := range append(bad, worse...) {
		notes[p.Entry] = p.What
	}
	if gap != "" && len(path) > 0 {
		notes[path[0].ID] = "what was said before: entry " + gap + " is gone"
	}
	return notes, nil
}
