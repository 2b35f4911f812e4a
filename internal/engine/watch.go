package engine

import (
	"context"
	"errors"
	"iter"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
)

// replayPage is how many events a reader takes from the store at a time: what a
// reader holds does not grow with the run.
const replayPage = 512

// Watch yields the events of a run with numbers above after: first those that
// are stored, then those that come, until the terminal event. It yields an error
// once, as its last element: ErrSlowReader, ctx's error, or a *fault.Error.
//
// The events and their payloads are shared: they must not be changed.
func (e *Engine) Watch(ctx context.Context, ref Ref, after int64) iter.Seq2[event.Event, error] {
	if e.node != nil {
		return e.followRun(ctx, ref, after)
	}
	return func(yield func(event.Event, error) bool) {
		s := e.acquire(ref)
		defer e.release(ref, s)
		// Reader first, store second: what happens in between comes twice
		// and is recognised by its number; nothing is missed.
		r, whole := s.subscribe(e.cfg.ReaderBuffer, after)
		defer s.unsubscribe(r)
		w := &watcher{e: e, ref: ref, seen: after, yield: yield}
		if !whole && w.catchUp(ctx) {
			return
		}
		var spare []event.Event
		for {
			events, closed, err := r.next(ctx, e.ctx.Done(), spare)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if closed {
				yield(event.Event{}, errNotDriven)
				return
			}
			for i := range events {
				if w.give(events[i]) {
					return
				}
			}
			clear(events)
			spare = events
		}
	}
}

// catchUp yields what is stored and reports whether that was all there is to come.
func (w *watcher) catchUp(ctx context.Context) (done bool) {
	e, ref := w.e, w.ref
	if _, err := e.store.Run(ctx, ref.Tenant, ref.ID); err != nil {
		w.yield(event.Event{}, notFound("run", ref.ID, err))
		return true
	}
	if w.replay(ctx) {
		return true
	}
	row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
	switch {
	case err != nil:
		w.yield(event.Event{}, internal("engine.Watch", err))
		return true
	case run.Status(row.Status).Ended():
		// It may have ended after the replay, or after was past the end.
		w.replay(ctx)
		return true
	case row.Status == string(run.Running) && !e.driving(ref):
		w.yield(event.Event{}, errNotDriven)
		return true
	}
	return false
}

var errNotDriven = &fault.Error{Kind: fault.Unavailable, Err: errors.New("this process does not drive the run any more"),
	Hint: "Connect again from the last event you saw."}

// driving is whether a driver of this engine has the run, or is just done with it.
func (e *Engine) driving(ref Ref) bool {
	e.mu.Lock()
	d := e.drivers[ref]
	e.mu.Unlock()
	if d != nil && d.ctx.Err() == nil {
		return true
	}
	// A driver that is done ends its context, too, as the last thing it does.
	row, err := e.store.Run(e.ctx, ref.Tenant, ref.ID)
	return err == nil && row.Status != string(run.Running)
}

// watcher is one Watch under way.
type watcher struct {
	e     *Engine
	ref   Ref
	seen  int64
	yield func(event.Event, error) bool
	h     hydrator
}

// give yields what the reader has not seen of an event and reports whether that
// was the end.
func (w *watcher) give(ev event.Event) (done bool) {
	ev, ok := event.After(ev, w.seen)
	if !ok {
		return ev.Type.Terminal() // a position beyond the end
	}
	w.seen = ev.Seq
	return !w.yield(ev, nil) || ev.Type.Terminal()
}

// replay yields what is stored and reports whether that was the end.
func (w *watcher) replay(ctx context.Context) (done bool) {
	for {
		rows, err := w.e.store.Events(ctx, w.ref.Tenant, w.ref.ID, w.seen, w.e.page)
		if err != nil {
			w.yield(event.Event{}, internal("engine.Watch", err))
			return true
		}
		for _, row := range rows {
			if w.give(w.h.event(ctx, w.e, w.ref.Tenant, row)) {
				return true
			}
		}
		if len(rows) < w.e.page {
			return false
		}
	}
}

// Replay yields the stored events of a run with numbers above after, without
// waiting for more. It takes them from the store in batches, so that a reader
// that stops early pays for little and one that goes on holds little. An error
// is the last thing it yields.
func (e *Engine) Replay(ctx context.Context, ref Ref, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if _, err := e.store.Run(ctx, ref.Tenant, ref.ID); err != nil {
			yield(event.Event{}, notFound("run", ref.ID, err))
			return
		}
		w := &watcher{e: e, ref: ref, seen: after, yield: yield}
		w.replay(ctx)
	}
}

// Events is Replay in a list: all of it is in memory.
func (e *Engine) Events(ctx context.Context, ref Ref, after int64) ([]event.Event, error) {
	var out []event.Event
	for ev, err := range e.Replay(ctx, ref, after) {
		if err != nil {
			return out, err
		}
		out = append(out, ev)
	}
	return out, nil
}
