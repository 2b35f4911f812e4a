package engine

import (
	"context"
	"errors"
	"iter"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// replayPage is how many events a reader takes from the store at a time: what a
// reader holds does not grow with the run.
const replayPage = 512

// alone follows a run that only this engine can drive.
func (w *watcher) alone(ctx context.Context) {
	e := w.e
	s := e.acquire(w.ref)
	defer e.release(w.ref, s)
	// Reader first, store second: what happens in between comes twice
	// and is recognised by its number; nothing is missed.
	r, whole := s.subscribe(e.cfg.ReaderBuffer, w.seen)
	defer s.unsubscribe(r)
	if !whole && w.catchUp(ctx) {
		return
	}
	p := newPulse(w.idle, 0)
	defer p.stop()
	var spare []event.Event
	for {
		events, closed, err := r.next(ctx, e.ctx.Done(), p, spare)
		switch {
		case err != nil:
			w.fail(err)
			return
		case closed:
			w.fail(errNotDriven)
			return
		case len(events) == 0:
			if w.silent() {
				return
			}
		case w.give(events, nil, false):
			return
		}
		clear(events)
		spare = events
	}
}

// catchUp yields what is stored and reports whether that was all there is to come.
func (w *watcher) catchUp(ctx context.Context) (done bool) {
	e, ref := w.e, w.ref
	if _, err := e.store.Run(ctx, ref.Tenant, ref.ID); err != nil {
		w.fail(notFound("run", ref.ID, err))
		return true
	}
	if w.replay(ctx) {
		return true
	}
	row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
	switch {
	case err != nil:
		w.fail(internal("engine.Watch", err))
		return true
	case run.Status(row.Status).Ended():
		// It may have ended after the replay, or after was past the end.
		w.replay(ctx)
		return true
	case row.Status == string(run.Running) && !e.driving(ref):
		w.fail(errNotDriven)
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

// chunkBytes is how much text a reader is given at a time of what is stored; the last
// event of it may go beyond.
const chunkBytes = 64 << 10

// replay yields what is stored and reports whether that was the end.
func (w *watcher) replay(ctx context.Context) (done bool) {
	for {
		rows, err := w.e.store.Events(ctx, w.ref.Tenant, w.ref.ID, w.seen, w.e.page)
		if err != nil {
			w.fail(internal("engine.Watch", err))
			return true
		}
		more := len(rows) == w.e.page
		for len(rows) > 0 {
			var events []event.Event
			events, rows = w.h.some(ctx, w.e, w.ref.Tenant, rows, chunkBytes)
			if w.give(events, nil, more || len(rows) > 0) {
				return true
			}
		}
		if !more {
			return false
		}
	}
}

// some fills in rows up to so many bytes of text, and gives back the others.
func (h *hydrator) some(ctx context.Context, e *Engine, tenant string, rows []*store.Event, most int) (events []event.Event, rest []*store.Event) {
	n := 0
	for i, row := range rows {
		ev := h.event(ctx, e, tenant, row)
		events = append(events, ev)
		if n += weight(&ev); n >= most {
			return events, rows[i+1:]
		}
	}
	return events, nil
}

// weight is about how large an event is.
func weight(ev *event.Event) int {
	const rest = 200
	switch d := ev.Data.(type) {
	case *event.Delta:
		return rest + len(d.Text)
	case *event.Text:
		return rest + len(d.Text)
	case *event.Tool:
		return rest + len(d.Args) + len(d.Result) + len(d.Text)
	case *event.Ended:
		return rest + len(d.Output)
	}
	return rest
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
		h := hydrator{}
		for {
			rows, err := e.store.Events(ctx, ref.Tenant, ref.ID, after, e.page)
			if err != nil {
				yield(event.Event{}, internal("engine.Replay", err))
				return
			}
			for _, row := range rows {
				ev, ok := event.After(h.event(ctx, e, ref.Tenant, row), after)
				if ok && !yield(ev, nil) {
					return
				}
				after = max(after, row.Seq)
				if event.Type(row.Type).Terminal() {
					return
				}
			}
			if len(rows) < e.page {
				return
			}
		}
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
