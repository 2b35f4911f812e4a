package server_test

import (
	"context"
	"iter"
	"time"

	"agentd/event"
	"agentd/internal/engine"
)

func (e *fake) Watch(ctx context.Context, ref engine.Ref, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for b, err := range e.Follow(ctx, ref, after, 0) {
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if !yield(b.Events[0], nil) {
				return
			}
		}
	}
}

// Follow tells each event by itself.
func (e *fake) Follow(ctx context.Context, ref engine.Ref, after int64, idle time.Duration) iter.Seq2[engine.Batch, error] {
	return func(give func(engine.Batch, error) bool) {
		yield := func(ev event.Event, err error) bool { return give(engine.Batch{Events: []event.Event{ev}}, err) }
		silent := func() <-chan time.Time {
			if idle == 0 {
				return nil
			}
			return time.After(idle)
		}
		r, err := e.run(ref.ID)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		next := 0
		for live := false; ; live = true {
			r.mu.Lock()
			events, changed := r.events[next:], r.changed
			r.mu.Unlock()
			if live && e.readerBuffer > 0 && len(events) > e.readerBuffer {
				yield(event.Event{}, engine.ErrSlowReader)
				return
			}
			next += len(events)
			for _, ev := range events {
				ev, ok := event.After(ev, after)
				if ok && (!yield(ev, nil) || ev.Type.Terminal()) {
					return
				}
				if ev.Type.Terminal() {
					return
				}
			}
			select {
			case <-changed:
			case <-silent():
				if !give(engine.Batch{}, nil) {
					return
				}
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}
