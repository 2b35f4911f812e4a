package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentd/event"
)

// On a store that nodes share, whoever reads a run's events may be at another node
// than who drives it, and the run may move. What comes live is therefore only taken
// where it follows what the reader has seen: each piece says which number was ahead
// of it, and up to which number the store has everything. Where something is missing,
// the reader takes it from the store as soon as it is there.

// piece is some events that follow each other.
type piece struct {
	prev, durable int64
	events        []event.Event
	// look: something may have been missed.
	look bool
	// whole: it is all that is live, and what is ahead of it is in the store.
	whole bool
	// form is shared by who gets the piece.
	form *form
}

// feed is a reader of a stream that may miss something.
type feed struct {
	mu    sync.Mutex
	items []piece
	held  int // events in items
	limit int
	slow  bool
	wake  chan struct{}
	// sleeps: the reader waits to be woken.
	sleeps bool
	turns  *turns
	turn   int  // guarded by turns, as is
	lined  bool // in its queue
}

func (f *feed) put(p piece) {
	f.mu.Lock()
	switch {
	case f.slow:
	case f.held+len(p.events) > f.limit:
		f.slow, f.items = true, nil
	case len(p.events) == 0 && len(f.items) > 0 && len(f.items[len(f.items)-1].events) == 0:
		// Both only say that there is something in the store.
		last := &f.items[len(f.items)-1]
		last.look, last.durable = last.look || p.look, max(last.durable, p.durable)
	default:
		f.items, f.held = append(f.items, p), f.held+len(p.events)
	}
	wake := f.sleeps
	f.sleeps = false
	f.mu.Unlock()
	if wake {
		f.turns.ready(f)
	}
}

// awake is for a reader that runs without having been woken, or ends: it needs no turn.
func (f *feed) awake() {
	f.mu.Lock()
	f.sleeps = false
	f.mu.Unlock()
	f.turns.taken(f)
}

// next waits for pieces. It gives the list away; spare is used for the next one. None
// come when nothing did for as long as the reader wants to know of.
func (f *feed) next(ctx context.Context, done <-chan struct{}, p *pulse, spare []piece) (items []piece, err error) {
	p.rest()
	for {
		f.mu.Lock()
		slow := f.slow
		if len(f.items) > 0 {
			items, f.items, f.held = f.items, spare[:0], 0
		}
		f.sleeps = !slow && len(items) == 0
		f.mu.Unlock()
		switch {
		case slow:
			return nil, ErrSlowReader
		case len(items) > 0:
			return items, nil
		}
		select {
		case <-f.wake:
			f.turns.taken(f)
		case <-p.beat():
			f.awake()
			switch idle, look := p.due(); {
			case look:
				f.put(piece{look: true})
			case idle:
				return nil, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-done:
			return nil, errNotDriven
		}
	}
}

// feeds are a stream's readers on a shared store, and whoever passes its events on to
// other nodes. Guarded by the stream's mu.
type feeds struct {
	readers map[*feed]struct{}
	tap     func(piece)
	// durable is the highest number that a commit of this driver contains.
	durable int64
	// tail is what comes from another node; asked is when that was asked for what is
	// missing of it.
	tail  tail
	asked time.Time
}

// feed gives events that follow prev to who reads. The stream is locked.
func (s *stream) feed(prev int64, events []event.Event) {
	if len(s.feeds.readers) == 0 && s.feeds.tap == nil || len(events) == 0 {
		return
	}
	p := piece{prev: prev, durable: s.feeds.durable, events: slices.Clone(events), form: s.feeds.form()}
	for f := range s.feeds.readers {
		f.put(p)
	}
	if s.feeds.tap != nil {
		s.feeds.tap(p)
	}
}

// form is what readers of a piece share, if there are several.
func (f *feeds) form() *form {
	if len(f.readers) < 2 {
		return nil
	}
	return &form{}
}

// committed notes how far the store has everything. The stream is locked.
func (s *stream) committed(batches []*batchEvents) {
	for _, b := range batches {
		if n := len(b.events); n > 0 {
			s.feeds.durable = max(s.feeds.durable, b.events[n-1].Seq)
		}
	}
}

// lively is what was sent and is in no commit yet. The stream is locked.
func (s *stream) lively() (p piece, some bool) {
	p.durable = s.feeds.durable
	add := func(ev event.Event) {
		if ev.Seq > s.sent {
			return
		}
		if !some {
			p.prev, some = ev.Seq-1, true
			if d, ok := ev.Data.(*event.Delta); ok && ev.Type.Delta() {
				p.prev = ev.Seq - int64(len(d.Text))
			}
		}
		p.events = append(p.events, ev)
	}
	for _, b := range s.queue {
		for _, ev := range b.taken {
			add(ev)
		}
	}
	for i := range s.live {
		if s.live[i].Seq <= s.sent {
			add(s.live[i].materialise())
		}
	}
	return p, some
}

// follow adds a reader, who first gets what is live, and says whether there was anybody
// or anything to get it from: if not, the run's home has to be asked.
func (s *stream) follow(limit int, t *turns) (f *feed, known bool) {
	f = &feed{limit: limit, wake: make(chan struct{}, 1), turns: t}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feeds.readers == nil {
		s.feeds.readers = map[*feed]struct{}{}
	}
	known = len(s.feeds.readers) > 0
	s.feeds.readers[f] = struct{}{}
	p, some := s.lively()
	if !some {
		p, some = s.feeds.tail.piece()
	}
	if some {
		f.put(p)
	}
	return f, known || some
}

func (s *stream) unfollow(f *feed) {
	s.mu.Lock()
	if delete(s.feeds.readers, f); len(s.feeds.readers) == 0 {
		s.feeds.tail.clear()
	}
	s.mu.Unlock()
	f.awake()
}

// relay hands on what another node sent, and reports whether something ahead of it is
// missing that the home should be asked for.
func (s *stream) relay(p piece) (ask bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.feeds.readers) == 0 {
		return false
	}
	if len(p.events) > 0 {
		p.form = s.feeds.form()
		ask = s.feeds.tail.add(&p)
	}
	for f := range s.feeds.readers {
		f.put(p)
	}
	return ask && s.feeds.mayAsk()
}

// asks is whether somebody reads here and the home may be asked for what is missing.
func (s *stream) asks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds.readers) > 0 && s.feeds.mayAsk()
}

// mayAsk is whether the last time is long enough ago: what was asked for may be on its
// way, and a bus that is full does not become emptier by more.
func (f *feeds) mayAsk() bool {
	now := time.Now()
	if now.Sub(f.asked) < askAgain {
		return false
	}
	f.asked = now
	return true
}

// askAgain is how long a node waits before it asks for what is missing once more.
const askAgain = 2 * time.Second

// lacks is whether readers here may lack what the home has and no commit contains.
func (s *stream) lacks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds.readers) > 0 && len(s.feeds.tail.events) == 0
}

// pass has everything passed on to f from now on; nil ends it. What is live and not in
// the store goes first, if whole or if nothing was passed on until now.
func (s *stream) pass(f func(piece), whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := s.feeds.tap == nil
	s.feeds.tap = f
	if f == nil || !whole && !began {
		return
	}
	if p, some := s.lively(); some {
		p.whole = true
		f(p)
	}
}

// followed is whether somebody reads here.
func (s *stream) followed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds.readers) > 0
}

// shared follows a run on a store that nodes share: whoever drives it, and however often
// that changes.
func (w *watcher) shared(ctx context.Context) {
	e := w.e
	s := e.acquire(w.ref)
	defer e.release(w.ref, s)
	f, known := s.follow(e.cfg.ReaderBuffer, &e.node.turns)
	defer s.unfollow(f)
	if w.look(ctx, s) {
		return
	}
	if !known {
		e.node.announce(w.ref, true)
	}
	p := newPulse(w.idle, e.node.patience())
	defer p.stop()
	var items []piece
	for {
		var err error
		clear(items)
		if items, err = f.next(ctx, e.ctx.Done(), p, items); err != nil {
			w.fail(err)
			return
		}
		p.patience = e.node.patience()
		if len(items) == 0 && w.silent() {
			return
		}
		for i := range items {
			x := &items[i]
			// A piece without events says that there is something in the store.
			if (x.look || x.durable > w.seen && (x.prev > w.seen || len(x.events) == 0)) && w.look(ctx, s) {
				return
			}
			// Without what is ahead of it it waits: that is in nobody's hands yet.
			if x.prev <= w.seen && w.give(x.events, x.form, i < len(items)-1) {
				return
			}
		}
	}
}

// look yields what the store has and reports whether that was all there is to come.
func (w *watcher) look(ctx context.Context, s *stream) (done bool) {
	for {
		l, err := w.e.lookUp(ctx, s, w.ref, w.seen)
		switch {
		case err != nil:
			w.fail(err)
			return true
		case l.gone:
			w.fail(notFound("run", w.ref.ID, l.err))
			return true
		case l.err != nil:
			w.fail(internal("engine.Watch", l.err))
			return true
		case w.give(l.events, &l.form, l.more):
			return true
		case !l.more:
			return l.ended
		}
	}
}
