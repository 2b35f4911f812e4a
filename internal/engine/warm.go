package engine

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"

	"agentd/internal/prefix"
	"agentd/internal/prompt"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// warmSessions keeps decoded conversations of long sessions between their runs: entries
// are written once, so what was read need not be read and decoded again with every turn.
// What is kept is bounded in bytes, and checked against the session's leaf each time.
type warmSessions struct {
	mu    sync.Mutex
	limit int64
	bytes int64
	all   map[Ref]*list.Element // of *warmSession
	used  list.List             // the one that was used last is first
}

type warmSession struct {
	session Ref
	leaf    string
	// items are sendable. They are shared with the runs that go on with them: nobody
	// changes them, or what they hold.
	items    []session.Item
	made     *session.Made // the compaction that they begin with, or nil
	problems []session.Problem
	settings session.Settings
	// hashed is what of them was hashed for the last request.
	hashed prefix.Seen
	// grown is whether something stands behind items in their memory.
	grown *atomic.Bool
	bytes int64
}

const (
	// warmEntries is how long a session must be to be kept: short ones are read faster.
	warmEntries = 64
	// itemBytes is what an item takes besides its texts.
	itemBytes = 400
)

func (w *warmSessions) get(session Ref) *warmSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	el := w.all[session]
	if el == nil {
		return nil
	}
	w.used.MoveToFront(el)
	return el.Value.(*warmSession)
}

func (w *warmSessions) put(s *warmSession) {
	if len(s.items) < warmEntries || s.bytes > w.limit/2 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if el := w.all[s.session]; el != nil {
		w.drop(el)
	}
	if w.all == nil {
		w.all = map[Ref]*list.Element{}
	}
	w.all[s.session] = w.used.PushFront(s)
	for w.bytes += s.bytes; w.bytes > w.limit; {
		w.drop(w.used.Back())
	}
}

// wants is whether the hashes of n messages are not kept yet with a session that is kept up
// to a leaf.
func (w *warmSessions) wants(session Ref, leaf string, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	el := w.all[session]
	if el == nil {
		return false
	}
	s := el.Value.(*warmSession)
	return s.leaf == leaf && s.hashed.Len() != n
}

// note keeps what was hashed of a session that is kept up to a leaf.
func (w *warmSessions) note(session Ref, leaf string, hashed prefix.Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	el := w.all[session]
	if el == nil || el.Value.(*warmSession).leaf != leaf || hashed.Len() == 0 {
		return
	}
	s := *el.Value.(*warmSession) // others have it
	more := hashed.Bytes() - s.hashed.Bytes()
	if s.bytes+more > w.limit/2 {
		return
	}
	s.hashed = hashed
	s.bytes += more
	el.Value = &s
	for w.bytes += more; w.bytes > w.limit; {
		w.drop(w.used.Back())
	}
}

func (w *warmSessions) drop(el *list.Element) {
	s := el.Value.(*warmSession)
	w.used.Remove(el)
	delete(w.all, s.session)
	w.bytes -= s.bytes
}

// kept gives the conversation up to a leaf out of what is kept and what was written
// since; nil if it has to be read as a whole. The items are not the caller's.
func (e *Engine) kept(ctx context.Context, ref Ref, leaf string) *warmSession {
	w := e.warm.get(ref)
	if w == nil || e.hooked() {
		return nil
	}
	if w.leaf == leaf {
		return w
	}
	rows, err := e.store.Entries(ctx, ref.Tenant, ref.ID, w.leaf, 0)
	if err != nil {
		return nil
	}
	byID := make(map[string]*store.Entry, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	var path []*store.Entry
	for id := leaf; id != w.leaf; {
		r := byID[id]
		if r == nil || r.Kind != session.KindMessage && !session.IsSetting(r.Kind) {
			return nil // another branch, or something that changes more than the end
		}
		delete(byID, id)
		path = append(path, r)
		id = r.Parent
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	items, problems := session.Items(path)
	sendable(items)
	next := &warmSession{session: ref, leaf: leaf, made: w.made, bytes: w.bytes + pathBytes(path), settings: w.settings, hashed: w.hashed, grown: new(atomic.Bool)}
	next.settings.Change(path)
	next.items = w.items
	if !w.grown.CompareAndSwap(false, true) {
		next.items = w.items[:len(w.items):len(w.items)] // somebody else was there
	}
	next.items = append(next.items, items...)
	next.problems = append(w.problems[:len(w.problems):len(w.problems)], problems...)
	e.warm.put(next)
	return next
}

// keep notes a conversation that was read as a whole. Its items are not the caller's any more.
func (e *Engine) keep(ref Ref, leaf string, path []*store.Entry, items []session.Item, made *session.Made, problems []session.Problem, bytes int64) {
	if e.hooked() || len(items) < warmEntries {
		return
	}
	e.warm.put(&warmSession{session: ref, leaf: leaf, items: items[:len(items):len(items)], made: made, problems: problems, bytes: pathBytes(path) + bytes, grown: new(atomic.Bool), settings: session.SettingsAt(path)})
}

func pathBytes(path []*store.Entry) (n int64) {
	for _, r := range path {
		n += int64(len(r.Body)) + itemBytes
	}
	return n
}

// sendable makes messages as they are sent, ahead of all else that is done to them: as
// with what a run writes, no words can be taken for context.
func sendable(items []session.Item) {
	withoutBadImages(items)
	for i := range items {
		prompt.Neutralize(&items[i].Message)
	}
}

// withoutBadImages replaces images that no provider takes: they may have been stored by an
// older agentd, or by another program.
func withoutBadImages(items []session.Item) {
	for i := range items {
		m := &items[i].Message
		for j := range m.Content {
			if m.Content[j].Type != message.BlockImage {
				continue
			}
			if err := m.Content[j].CheckImage(); err != nil {
				m.Content[j] = message.Text("[An image is left out: it " + err.Error() + ".]")
			}
		}
	}
}
