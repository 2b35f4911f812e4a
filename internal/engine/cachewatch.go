package engine

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"agentd/event"
	"agentd/internal/prefix"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// Requests of a conversation extend each other, because providers' caches go by the
// beginning. What was sent is therefore noted beside each reply, in hashes, and a request
// that is no extension of the one before it says what of it is another: cache_broken. The
// note is in the run's trace, with the reply, so that the next run finds it wherever it is
// driven.

// cacheWatch is what a driver knows of the last request of its session.
type cacheWatch struct {
	mu      sync.Mutex // a call that was abandoned may still be looking
	printer prefix.Printer
	// before is the record of the request that was answered last, print its print; the
	// latter is nil if another driver made it.
	before *prefix.Record
	run    string // of before
	print  *prefix.Print
}

// looked is what was found of one request.
type looked struct {
	print  *prefix.Print
	record *prefix.Record
	before *prefix.Record
	broken *event.CacheBreak
}

// replyAt names a reply of the conversation.
type replyAt struct{ run, entry string }

// maxReplies bounds how many replies are asked for their request: those of another
// agentd, or of a client's own history, have none.
const maxReplies = 3

// replies gives the newest replies of a conversation, the newest first; where a compaction
// left none, the one ahead of it.
func (d *driver) replies(n int) (out []replyAt) {
	for i := min(n, len(d.conv.origins)) - 1; i >= 0 && len(out) < maxReplies; i-- {
		if o := d.conv.origins[i]; d.conv.messages[i].Role == message.RoleAssistant && o.entry != "" {
			at := replyAt{o.run, o.entry}
			if o.own {
				at.run = d.ref.ID
			}
			if at.run != "" {
				out = append(out, at)
			}
		}
	}
	if made := d.conv.made; len(out) == 0 && made != nil && made.Reply != "" && made.ReplyRun != "" {
		out = append(out, replyAt{made.ReplyRun, made.Reply})
	}
	return out
}

// lookAt compares a request with the one before it. What asks to close the answer is said
// beside the conversation, and no part of what the next request has to begin with.
func (a *asked) lookAt(ctx context.Context, req *model.Request, c *cure) {
	seen := *req
	own := len(a.origins)
	if a.closing != nil && len(seen.Messages) > 0 {
		seen.Messages = seen.Messages[:len(seen.Messages)-1]
	}
	lead := len(seen.Messages) - own // examples; unknown where the application made the messages
	if a.d.e.hooked() {
		lead = len(seen.Messages)
	}
	entry := func(i int) string {
		if i -= lead; i < 0 || i >= own {
			return ""
		}
		return a.origins[i].entry
	}
	if !a.awaitLook(ctx) {
		return
	}
	if a.d.e.hooked() || len(seen.Messages)-a.d.caching.hashed() < manyMessages {
		a.look(ctx, &seen, entry, c)
		return
	}
	done := make(chan struct{})
	a.looking.Store(&done)
	if !a.d.e.beside(func() {
		defer close(done)
		a.look(a.d.ctx, &seen, entry, c) // the call may be over sooner
	}) {
		close(done)
	}
}

// manyMessages is how many messages that were not hashed before are hashed beside the
// call, which need not wait for it, and not ahead of it.
const manyMessages = 128

// hashed is of how many messages there are hashes.
func (w *cacheWatch) hashed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.printer.Kept()
}

// resume goes on with what was hashed before, unless more has been since.
func (w *cacheWatch) resume(s prefix.Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.printer.Kept() == 0 {
		w.printer.Resume(s)
	}
}

// awaitLook waits for a look that began beside a call. It is false if the call is to end
// sooner. The driver itself never waits: a look reads the store, and who cancels the run
// is heard meanwhile.
func (a *asked) awaitLook(ctx context.Context) bool {
	if done := a.looking.Load(); done != nil {
		select {
		case <-*done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// look compares a request with the one before it. entry names its messages. It runs
// outside the driver's goroutine.
func (a *asked) look(ctx context.Context, req *model.Request, entry func(int) string, c *cure) {
	d, w := a.d, &a.d.caching
	w.mu.Lock()
	defer w.mu.Unlock()
	w.printer.Mutable = d.e.hooked()
	l := &looked{print: w.printer.Print(req, a.m.Name, entry)}
	old := w.print
	if w.before == nil || len(a.replies) == 0 || w.before.Entry != a.replies[0].entry {
		w.before, w.run, w.print, old = nil, "", nil, nil
		w.before, w.run = d.lastRequest(ctx, a.replies)
	}
	l.before = w.before
	if w.before != nil && !w.before.Extended(l.print) {
		if old == nil {
			old = d.rebuilt(ctx, w.run, w.before)
		}
		if l.broken = prefix.Compare(old, l.print); l.broken == nil || l.broken.Old == (prefix.Hash(0)).String() {
			l.broken = &event.CacheBreak{Part: prefix.PartMessage, Change: "unknown"}
		}
		l.broken.Reason = a.breakReason(ctx, l.broken, c)
	}
	l.record = prefix.NewRecord(l.print, w.before)
	if w.before != nil {
		l.record.Run, l.record.Before = w.run, w.before.Entry
	}
	l.record.Time = d.e.now()
	a.looked.Store(l)
}

// breakReason says why a part is another one, where the engine made it so.
func (a *asked) breakReason(ctx context.Context, b *event.CacheBreak, c *cure) string {
	switch {
	case a.closing != nil && b.Part == prefix.PartSettings && b.Name == "tool_choice":
		return "closing"
	case b.Part != prefix.PartMessage:
		return ""
	case c != nil:
		return "left_out"
	}
	if b.Change == prefix.Changed && a.made != nil && slices.ContainsFunc(a.made.Shortened, func(s session.Shortened) bool { return s.Entry == b.EntryID }) {
		return "compaction"
	}
	// The entry of one that was just made may not be committed yet.
	if a.made != nil && b.EntryID != "" && len(a.origins) > 0 && !a.origins[0].kept && a.origins[0].entry == b.EntryID {
		return "compaction"
	}
	if b.EntryID != "" {
		row, err := a.d.e.store.Entry(ctx, a.d.ref.Tenant, a.d.row.SessionID, b.EntryID)
		if err == nil && row.Kind == session.KindCompaction {
			return "compaction"
		}
	}
	if a.less > 0 && b.Change == prefix.Changed {
		return "reasoning_dropped"
	}
	return ""
}

// lastRequest finds the record of the newest reply that has one.
func (d *driver) lastRequest(ctx context.Context, replies []replyAt) (*prefix.Record, string) {
	if len(replies) == 0 {
		return nil, ""
	}
	if r, ok := d.e.prefixes.get(Ref{d.ref.Tenant, d.row.SessionID}, replies[0].entry); ok {
		return r, replies[0].run
	}
	for _, at := range replies {
		for _, r := range d.e.records(ctx, Ref{d.ref.Tenant, at.run}) {
			if r.Entry == at.entry {
				return r, at.run
			}
		}
	}
	return nil, ""
}

// rebuilt gives the print of a request that was answered, as far as it can be found.
func (d *driver) rebuilt(ctx context.Context, runID string, last *prefix.Record) *prefix.Print {
	runs := map[string][]*prefix.Record{}
	find := func(runID, entry string) *prefix.Record {
		if runID == "" || ctx.Err() != nil {
			return nil
		}
		rows, ok := runs[runID]
		if !ok {
			rows = d.e.records(ctx, Ref{d.ref.Tenant, runID})
			runs[runID] = rows
		}
		i := slices.IndexFunc(rows, func(r *prefix.Record) bool { return r.Entry == entry })
		if i < 0 {
			return nil
		}
		return rows[i]
	}
	whole := find(runID, last.Entry)
	if whole == nil {
		whole = last
	}
	p, _ := prefix.Rebuild(whole, func(r *prefix.Record) *prefix.Record { return find(r.Run, r.Before) })
	return p
}

// recordRows is how many rows of a trace are read at a time.
const recordRows = 512

// traceRows reads rows of a run's trace. A store that fails is asked again, as it is for a
// commit: for a moment in which it is busy a cache must not be lost, nor a break be told
// that nobody can explain. After that it is done without: it only saves and explains, and
// no session is to stand still for it.
func (e *Engine) traceRows(ctx context.Context, ref Ref, after int) (rows []*store.Trace, err error) {
	for n := range commitTries {
		rows, err = e.store.Trace(ctx, ref.Tenant, ref.ID, after, recordRows)
		if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrNotFound) {
			return rows, err
		}
		select {
		case <-time.After(commitPause << n):
		case <-ctx.Done():
			return nil, err
		}
	}
	e.log.Warn("what an earlier request was can not be read: its prompt cache may be lost", "run", ref.ID, "error", err)
	return nil, err
}

// replyNote is what a trace has beside a reply.
type replyNote struct {
	Cache   json.RawMessage `json:"cache"`
	Toolset json.RawMessage `json:"toolset"`
}

// replyNotes gives what a run's trace has beside its replies, oldest first. What can not
// be read is left out.
func (e *Engine) replyNotes(ctx context.Context, ref Ref) iter.Seq[*replyNote] {
	return func(yield func(*replyNote) bool) {
		for after := 0; ; after += recordRows {
			rows, err := e.traceRows(ctx, ref, after)
			if err != nil {
				return
			}
			for _, row := range rows {
				if row.Kind != (run.ModelDone{}).Kind() {
					continue
				}
				var n replyNote
				if json.Unmarshal(row.Body, &n) == nil && !yield(&n) {
					return
				}
			}
			if len(rows) < recordRows {
				return
			}
		}
	}
}

// records gives the records of a run's requests, oldest first. What can not be read is
// left out: it only explains.
func (e *Engine) records(ctx context.Context, ref Ref) (out []*prefix.Record) {
	for n := range e.replyNotes(ctx, ref) {
		if r := prefix.Decode(n.Cache); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// answered takes in the reply to the request that was looked at: it gives what is stored
// of the request, and tells of a break.
func (d *driver) answered(b *batch, in run.ModelDone) {
	d.cacheNote, d.toolsNote = nil, nil
	if d.asking == nil || d.reply == nil {
		return
	}
	ask := d.asking
	l, late := ask.looked.Load(), ask.late
	d.asking = nil
	if l == nil {
		return
	}
	r := *l.record
	r.Entry = d.reply.entry
	if u := in.Message.Usage; u != nil {
		r.Prompt, r.Read, r.Written = u.Prompt(), u.CacheRead, u.CacheWrite
	}
	if l.broken != nil {
		broken := *l.broken
		broken.Lost = max(0, l.before.Prompt-r.Read)
		b.events = append(b.events, event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: d.state.Step, Type: event.CacheBroken, Data: &broken})
	}
	d.noteToolset(&r, late, l.before)
	raw, err := json.Marshal(&r)
	if err != nil {
		return
	}
	d.cacheNote = raw
	short := r
	short.Messages, short.Tools, short.System = nil, nil, nil
	w := &d.caching
	w.mu.Lock()
	w.before, w.run, w.print = &short, d.ref.ID, l.print
	w.mu.Unlock()
	d.noteHashes(ask)
	// If it is never committed no conversation has its entry.
	d.e.prefixes.put(Ref{d.ref.Tenant, d.row.SessionID}, &short)
}

// noteHashes keeps with the session what was hashed of a request, as far as it is of what is
// kept of the session. The next run reads again what this one says, so that the hashes of
// that are of no use to it, and would hold on to memory that nobody counts.
func (d *driver) noteHashes(ask *asked) {
	n := slices.IndexFunc(ask.origins, func(o origin) bool { return o.own })
	if n < 0 {
		n = len(ask.origins)
	}
	session := Ref{d.ref.Tenant, d.row.SessionID}
	if n += len(d.agent.Examples); !d.e.warm.wants(session, d.conv.read, n) {
		return
	}
	w := &d.caching
	w.mu.Lock()
	seen := w.printer.Seen(n)
	w.mu.Unlock()
	d.e.warm.note(session, d.conv.read, seen)
}

// recentPrefixes are the last requests of sessions that were driven here lately, so that
// their next runs need not look them up.
type recentPrefixes struct {
	mu       sync.Mutex
	cur, old map[Ref]*prefix.Record
}

// maxRecent bounds recentPrefixes, at some 300 bytes each, twice.
const maxRecent = 2048

func (p *recentPrefixes) get(session Ref, entry string) (*prefix.Record, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.cur[session]
	if r == nil {
		r = p.old[session]
	}
	return r, r != nil && r.Entry == entry
}

func (p *recentPrefixes) put(session Ref, r *prefix.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur == nil || len(p.cur) >= maxRecent && p.cur[session] == nil {
		p.old, p.cur = p.cur, map[Ref]*prefix.Record{}
	}
	p.cur[session] = r
}
