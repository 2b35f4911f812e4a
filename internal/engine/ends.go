package engine

import (
	"context"

	"agentd/fault"
	"agentd/internal/run"
)

// Who waits for the end of a run, and who tells them.

// ended wakes who waits for the end of a run.
func (e *Engine) ended(ref Ref) {
	if e.node != nil {
		e.node.tell(note{Kind: noteEnd, Tenant: ref.Tenant, Run: ref.ID})
		return
	}
	e.wakeWaiters(ref)
}

func (e *Engine) wakeWaiters(ref Ref) {
	e.mu.Lock()
	waiting := e.waiters[ref]
	delete(e.waiters, ref)
	e.mu.Unlock()
	for _, c := range waiting {
		close(c)
	}
}

// Wait returns the run when it has ended. If ctx ends first it returns the run as
// it was, and the error.
func (e *Engine) Wait(ctx context.Context, ref Ref) (*Run, error) {
	for {
		c := make(chan struct{})
		e.mu.Lock()
		e.waiters[ref] = append(e.waiters[ref], c)
		e.mu.Unlock()
		r, err := e.Get(ctx, ref)
		if err != nil || run.Status(r.Status).Ended() {
			e.unwait(ref, c)
			return r, err
		}
		select {
		case <-c:
		case <-e.tick():
			e.unwait(ref, c)
		case <-ctx.Done():
			e.unwait(ref, c)
			return r, ctx.Err()
		case <-e.ctx.Done():
			return r, fault.New(fault.Unavailable, "the engine is closing")
		}
	}
}

func (e *Engine) unwait(ref Ref, c chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiters[ref]
	for i := range w {
		if w[i] == c {
			e.waiters[ref] = append(w[:i:i], w[i+1:]...)
			break
		}
	}
	if len(e.waiters[ref]) == 0 {
		delete(e.waiters, ref)
	}
}
