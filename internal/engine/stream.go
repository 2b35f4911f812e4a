package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentd/event"
)

// ErrSlowReader ends a Watch whose reader fell too far behind. Watching again
// from the last number it saw loses nothing.
var ErrSlowReader = errors.New("the reader is too slow: go on from the last event it saw")

// reserve is how far published numbers may run ahead of the committed ones. The
// commit that a crash loses can not have published more than that.
const reserve = 1 << 24

// stream numbers the events of a run and hands them to its readers. Events of a
// commit are numbered when they are handed in and published when the commit
// is durable; what comes after them waits its turn.
type stream struct {
	mu   sync.Mutex
	refs int // drivers and readers that hold the stream
	seq  int64
	// limit is the highest number that may be published before the next commit.
	limit int64
	// sent is the highest number that readers were given.
	sent  int64
	queue []*batchEvents
	// live are the events published ahead of their commit, deltas joined.
	live []liveEvent
	subs map[*reader]struct{}
	// early are all events of the run that readers were given so far, if whole:
	// while they are few, who comes early needs nothing from the store.
	early []event.Event
	whole bool
	// feeds are who reads it on a shared store.
	feeds feeds
	// lookups are what those want of the store.
	lookups lookups
}

// maxEarly bounds early.
const maxEarly = 64

// batchEvents are events that wait for their commit, or for one ahead of them.
type batchEvents struct {
	events []event.Event
	ready  bool
	// taken are the live events that the same commit contains. They are kept
	// for readers who come after they were sent and before it is durable.
	taken []event.Event
}

// liveEvent is a published event that no commit contains yet. The text of a
// delta grows in text.
type liveEvent struct {
	event.Event
	text  []byte
	block int
	// waiting: it is behind a commit under way and not published yet.
	waiting bool
}

func (l *liveEvent) materialise() event.Event {
	e := l.Event
	if e.Type.Delta() {
		e.Data = &event.Delta{Text: string(l.text), Block: l.block}
	}
	return e
}

// publishLive numbers and publishes an event that is under way.
func (s *stream) publishLive(ev event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(1)
	d, isDelta := ev.Data.(*event.Delta)
	if isDelta {
		n = int64(len(d.Text))
	}
	// Behind a commit under way there is room: that commit raises the limit.
	waiting := len(s.queue) > 0
	if !waiting && s.seq+n > s.limit {
		return // nobody may see a number that a crash could give out again
	}
	s.seq += n
	ev.Seq = s.seq
	if k := len(s.live) - 1; isDelta && k >= 0 && s.live[k].Type == ev.Type && s.live[k].block == d.Block && s.live[k].waiting == waiting {
		s.live[k].text = append(s.live[k].text, d.Text...)
		s.live[k].Seq = s.seq
	} else {
		l := liveEvent{Event: ev, waiting: waiting}
		if isDelta {
			l.text, l.block = append(make([]byte, 0, 512), d.Text...), d.Block
		}
		s.live = append(s.live, l)
	}
	if waiting {
		s.queue = append(s.queue, &batchEvents{events: []event.Event{ev}, ready: true})
		return
	}
	s.send(ev)
}

// dropLive forgets the deltas of a reply that failed. Why it had to wait stays true.
func (s *stream) dropLive() {
	s.mu.Lock()
	s.live = slices.DeleteFunc(s.live, func(l liveEvent) bool { return l.Type != event.CheckpointInfo })
	s.mu.Unlock()
}

// open numbers the events of a commit that is about to be made and takes in what
// was published ahead of it. all is everything the commit must contain, in order.
func (s *stream) open(events []event.Event) (b *batchEvents, all []event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b = &batchEvents{events: events}
	for i := range s.live {
		b.taken = append(b.taken, s.live[i].materialise())
	}
	all = slices.Clone(b.taken)
	s.live = s.live[:0]
	for i := range events {
		s.seq++
		events[i].Seq = s.seq
	}
	s.queue = append(s.queue, b)
	return b, append(all, events...)
}

// last is the highest number given out.
func (s *stream) last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// start sets where numbers begin for a driver.
func (s *stream) start(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole, s.early = seq == 0 && s.seq == 0, nil
	s.seq, s.limit, s.sent = max(s.seq, seq), seq, max(s.sent, seq)
	s.queue, s.live = nil, nil
	s.feeds.tail.clear()
}

// publish is called when the commit of the batches is durable.
func (s *stream) publish(batches []*batchEvents, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = max(s.limit, limit)
	s.committed(batches)
	for _, b := range batches {
		b.ready = true
	}
	n := 0
	for n < len(s.queue) && s.queue[n].ready {
		s.send(s.queue[n].events...)
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
	if len(s.queue) == 0 {
		for i := range s.live {
			s.live[i].waiting = false
		}
	}
}

func (s *stream) send(events ...event.Event) {
	if len(events) > 0 {
		s.feed(s.sent, events)
		s.sent = events[len(events)-1].Seq
		if s.whole = s.whole && len(s.early)+len(events) <= maxEarly; s.whole {
			s.early = append(s.early, events...)
		} else {
			s.early = nil
		}
	}
	for r := range s.subs {
		r.put(events)
	}
}

// reader is one who watches.
type reader struct {
	mu     sync.Mutex
	buf    []event.Event
	limit  int
	slow   bool
	closed bool
	wake   chan struct{}
}

func (r *reader) put(events []event.Event) {
	r.mu.Lock()
	if !r.slow {
		if len(r.buf)+len(events) > r.limit {
			r.slow, r.buf = true, nil
		} else {
			r.buf = append(r.buf, events...)
		}
	}
	r.mu.Unlock()
	r.signal()
}

func (r *reader) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next waits for events. It gives the buffer away; spare is reused for the next. None
// come when the pulse beats.
func (r *reader) next(ctx context.Context, done <-chan struct{}, p *pulse, spare []event.Event) (events []event.Event, closed bool, err error) {
	p.rest()
	for {
		r.mu.Lock()
		switch {
		case r.slow:
			r.mu.Unlock()
			return nil, false, ErrSlowReader
		case len(r.buf) > 0:
			events, r.buf = r.buf, spare[:0]
			r.mu.Unlock()
			return events, false, nil
		case r.closed:
			r.mu.Unlock()
			return nil, true, nil
		}
		r.mu.Unlock()
		select {
		case <-r.wake:
		case <-p.beat():
			if idle, _ := p.due(); idle {
				return nil, false, nil
			}
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-done:
			return nil, true, nil
		}
	}
}

// subscribe adds a reader, who first gets what is live or, if whole, all events
// since the run began that matter to one who has seen those up to after.
func (s *stream) subscribe(limit int, after int64) (r *reader, whole bool) {
	r = &reader{limit: limit, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs == nil {
		s.subs = map[*reader]struct{}{}
	}
	s.subs[r] = struct{}{}
	// A buffer that is half full with them would soon be taken for that of a slow
	// reader; and one who has seen the end waits for nothing.
	if n := len(s.early); s.whole && n <= limit/2 && !(n > 0 && s.early[n-1].Type.Terminal() && s.early[n-1].Seq <= after) {
		r.buf = append(r.buf, s.early...)
		return r, true
	}
	for _, b := range s.queue {
		for _, ev := range b.taken {
			if ev.Seq <= s.sent {
				r.buf = append(r.buf, ev)
			}
		}
	}
	for i := range s.live {
		if s.live[i].Seq <= s.sent {
			r.buf = append(r.buf, s.live[i].materialise())
		}
	}
	return r, false
}

func (s *stream) unsubscribe(r *reader) {
	s.mu.Lock()
	delete(s.subs, r)
	s.mu.Unlock()
}

// closeReaders tells readers that this process no longer drives the run.
func (s *stream) closeReaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole, s.early = false, nil
	for r := range s.subs {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.signal()
	}
}

// acquire gives the run's stream and keeps it alive until release.
func (e *Engine) acquire(ref Ref) *stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acquireLocked(ref)
}

func (e *Engine) acquireLocked(ref Ref) *stream {
	s := e.streams[ref]
	if s == nil {
		s = &stream{}
		e.streams[ref] = s
	}
	s.refs++
	return s
}

func (e *Engine) release(ref Ref, s *stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.refs--
	if s.refs == 0 && e.streams[ref] == s {
		delete(e.streams, ref)
	}
}
