package engine

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"agentd/event"
	"agentd/internal/run"
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
}

// feed is a reader of a stream that may miss something.
type feed struct {
	mu    sync.Mutex
	items []piece
	held  int // events in items
	limit int
	slow  bool
	wake  chan struct{}
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
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// next waits for pieces, at most so long.
func (f *feed) next(ctx context.Context, done <-chan struct{}, patience time.Duration) (items []piece, err error) {
	t := time.NewTimer(patience)
	defer t.Stop()
	for {
		f.mu.Lock()
		items, f.items, f.held = f.items, nil, 0
		slow := f.slow
		f.mu.Unlock()
		switch {
		case slow:
			return nil, ErrSlowReader
		case len(items) > 0:
			return items, nil
		}
		select {
		case <-f.wake:
		case <-t.C:
			return []piece{{look: true}}, nil
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
}

// feed gives events that follow prev to who reads. The stream is locked.
func (s *stream) feed(prev int64, events []event.Event) {
	if len(s.feeds.readers) == 0 && s.feeds.tap == nil || len(events) == 0 {
		return
	}
	p := piece{prev: prev, durable: s.feeds.durable, events: slices.Clone(events)}
	for f := range s.feeds.readers {
		f.put(p)
	}
	if s.feeds.tap != nil {
		s.feeds.tap(p)
	}
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

// follow adds a reader, who first gets what is live.
func (s *stream) follow(limit int) *feed {
	f := &feed{limit: limit, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feeds.readers == nil {
		s.feeds.readers = map[*feed]struct{}{}
	}
	s.feeds.readers[f] = struct{}{}
	if p, some := s.lively(); some {
		f.put(p)
	}
	return f
}

func (s *stream) unfollow(f *feed) {
	s.mu.Lock()
	delete(s.feeds.readers, f)
	s.mu.Unlock()
}

// relay hands on what another node sent.
func (s *stream) relay(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds.readers {
		f.put(p)
	}
}

// pass has everything passed on to f, from what is live on; nil ends it. It does
// nothing for a stream that is passed on already.
func (s *stream) pass(f func(piece)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f != nil && s.feeds.tap != nil {
		return
	}
	s.feeds.tap = f
	if f == nil {
		return
	}
	if p, some := s.lively(); some {
		f(p)
	}
}

// followed is whether somebody reads here.
func (s *stream) followed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds.readers) > 0
}

// followRun is Watch on a store that nodes share: whoever drives the run, and however
// often that changes.
func (e *Engine) followRun(ctx context.Context, ref Ref, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		s := e.acquire(ref)
		defer e.release(ref, s)
		f := s.follow(e.cfg.ReaderBuffer)
		defer s.unfollow(f)
		w := &watcher{e: e, ref: ref, seen: after, yield: yield}
		if w.look(ctx) {
			return
		}
		e.node.announce(ref)
		for {
			items, err := f.next(ctx, e.ctx.Done(), e.node.patience())
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, p := range items {
				// A piece without events says that there is something in the store.
				if (p.look || p.durable > w.seen && (p.prev > w.seen || len(p.events) == 0)) && w.look(ctx) {
					return
				}
				if p.prev > w.seen {
					continue // something ahead of it is in nobody's hands yet
				}
				for _, ev := range p.events {
					if w.give(ev) {
						return
					}
				}
			}
		}
	}
}

// look yields what the store has and reports whether that was all there is to come.
func (w *watcher) look(ctx context.Context) (done bool) {
	if w.replay(ctx) {
		return true
	}
	row, err := w.e.store.Run(ctx, w.ref.Tenant, w.ref.ID)
	switch {
	case err != nil:
		w.yield(event.Event{}, notFound("run", w.ref.ID, err))
		return true
	case run.Status(row.Status).Ended():
		w.replay(ctx)
		return true
	}
	return false
}
