package engine

import (
	"context"
	"sync"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
)

// Readers of a run at one node want the same of the store at the same moment: when
// something was lost, when the run ends, when many come. They share the answer.

// lookup is one look into the store: what follows a number, and whether there is more.
type lookup struct {
	done   chan struct{}
	err    error
	gone   bool // there is no such run, or it could not be looked up
	ended  bool // the run has ended, and nothing was added after what is there
	more   bool // the rest has to be asked for
	events []event.Event
	form   form
}

// lookups are those of a stream, by the number that they start from.
type lookups struct {
	mu sync.Mutex
	// waiting have not begun, so that whoever wants the same may join; running have.
	waiting, running map[int64]*lookup
}

// look gives what the store has after a number, as of some moment after the call.
func (e *Engine) lookUp(ctx context.Context, s *stream, ref Ref, after int64) (*lookup, error) {
	q := &s.lookups
	q.mu.Lock()
	l, ahead := q.waiting[after], q.running[after]
	first := l == nil
	if first {
		if q.waiting == nil {
			q.waiting, q.running = map[int64]*lookup{}, map[int64]*lookup{}
		}
		l = &lookup{done: make(chan struct{})}
		q.waiting[after] = l
	}
	q.mu.Unlock()
	if first {
		if ahead != nil {
			<-ahead.done
		}
		q.mu.Lock()
		delete(q.waiting, after)
		q.running[after] = l
		q.mu.Unlock()
		l.fill(e, ref, after)
		q.mu.Lock()
		if q.running[after] == l {
			delete(q.running, after)
		}
		q.mu.Unlock()
		close(l.done)
	}
	select {
	case <-l.done:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fill asks the store. The row comes first: what is there after a run has ended is all
// there will be.
func (l *lookup) fill(e *Engine, ref Ref, after int64) {
	row, err := e.store.Run(e.ctx, ref.Tenant, ref.ID)
	if err != nil {
		l.err, l.gone = e.closingOr(err), true
		return
	}
	rows, err := e.store.Events(e.ctx, ref.Tenant, ref.ID, after, e.page)
	if err != nil {
		l.err = e.closingOr(err)
		return
	}
	full := len(rows) == e.page
	h := hydrator{}
	l.events, rows = h.some(e.ctx, e, ref.Tenant, rows, 4*chunkBytes)
	l.more = full || len(rows) > 0
	l.ended = run.Status(row.Status).Ended() && !l.more
}

// closingOr is what a look that the engine's own end cut off says, which is nothing that
// the reader did, or err.
func (e *Engine) closingOr(err error) error {
	if e.ctx.Err() != nil {
		return fault.New(fault.Unavailable, "the engine is closing")
	}
	return err
}
