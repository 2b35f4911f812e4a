package engine

import (
	"context"
	"iter"
	"sync"
	"time"

	"agentd/event"
)

// Batch is what a reader gets at a time.
type Batch struct {
	// Events follow what the reader was given before. They are none where nothing came
	// for as long as the reader asked to be told of. They are shared and must not be
	// changed.
	Events []event.Event
	// More: the next batch is there already, so that who writes can wait for it.
	More bool
	// form is for all readers who get the same; nil: nobody else does.
	form *form
}

// form is what one reader made of events, for others.
type form struct {
	once sync.Once
	raw  []byte
	err  error
}

// Form gives what encode makes of the events. It is made once for all readers in the
// process who get the same events, so every reader must bring the same encode, and
// nobody may change the result.
func (b *Batch) Form(encode func([]event.Event) ([]byte, error)) ([]byte, error) {
	f := b.form
	if f == nil {
		return encode(b.Events)
	}
	f.once.Do(func() { f.raw, f.err = encode(b.Events) })
	return f.raw, f.err
}

// Watch yields the events of a run with numbers above after: first those that
// are stored, then those that come, until the terminal event. It yields an error
// once, as its last element: ErrSlowReader, ctx's error, or a *fault.Error.
//
// The events and their payloads are shared: they must not be changed.
func (e *Engine) Watch(ctx context.Context, ref Ref, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for b, err := range e.Follow(ctx, ref, after, 0) {
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for i := range b.Events {
				if !yield(b.Events[i], nil) {
					return
				}
			}
		}
	}
}

// Follow is Watch for those who write what they are given: all that is there at a time
// comes at a time. With idle, a batch without events comes whenever there was none for
// so long.
func (e *Engine) Follow(ctx context.Context, ref Ref, after int64, idle time.Duration) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		w := &watcher{e: e, ref: ref, seen: after, idle: idle, yield: yield}
		if e.node != nil {
			w.shared(ctx)
			return
		}
		w.alone(ctx)
	}
}

// watcher is one Follow under way.
type watcher struct {
	e     *Engine
	ref   Ref
	seen  int64
	idle  time.Duration
	yield func(Batch, error) bool
	h     hydrator
}

// fail yields an error, which is the end.
func (w *watcher) fail(err error) { w.yield(Batch{}, err) }

// silent yields that nothing came, and reports whether that was the end.
func (w *watcher) silent() (done bool) { return !w.yield(Batch{}, nil) }

// give yields what the reader has not seen of some events, which f is for, and reports
// whether that was the end.
func (w *watcher) give(events []event.Event, f *form, more bool) (done bool) {
	if len(events) == 0 {
		return false
	}
	last := &events[len(events)-1]
	done = last.Type.Terminal() // also for a position beyond the end
	if last.Seq <= w.seen {
		return done
	}
	if before(&events[0]) < w.seen {
		var rest []event.Event
		for i := range events {
			if ev, ok := event.After(events[i], w.seen); ok {
				rest = append(rest, ev)
			}
		}
		events, f = rest, nil
	}
	w.seen = last.Seq
	return !w.yield(Batch{Events: events, More: more && !done, form: f}, nil) || done
}

// before is the highest number that can be ahead of an event.
func before(ev *event.Event) int64 {
	if d, ok := ev.Data.(*event.Delta); ok && ev.Type.Delta() {
		return ev.Seq - int64(len(d.Text))
	}
	return ev.Seq - 1
}
