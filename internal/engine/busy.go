package engine

import (
	"context"
	"errors"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// whenBusy deals with the active run of the session. A run that it returns took
// the input.
func (e *Engine) whenBusy(ctx context.Context, req *StartRequest, ses Ref) (*Run, error) {
	active, err := e.ahead(ctx, ses)
	if err != nil || active == "" {
		return nil, err
	}
	ref := Ref{ses.Tenant, active}
	if req.IdempotencyKey != "" {
		// The active run may be of this very request: one that its client sent again
		// must not end what it started.
		row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, nil // it is being accepted, and comes first
		case err != nil:
			return nil, internal("engine.Start", err)
		case row.IdempotencyKey == req.IdempotencyKey:
			return e.startFailed(ctx, req.Tenant, &store.ExistsError{RunID: row.ID, SameRequest: row.RequestHash == req.hash()})
		}
	}
	switch req.WhenBusy {
	case Reject:
		return nil, busy(active)
	case Steer:
		if err := e.steerable(ctx, req, ref); err != nil {
			return nil, err
		}
		switch err := e.enqueue(ctx, ref, "steer", req.blocks()); {
		case err == nil:
			return e.Get(ctx, ref)
		case fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.NotFound:
			return nil, err
		}
		// It ended meanwhile: a run of its own, then.
	case Interrupt, Rollback:
		reason := "interrupted by a new message"
		if req.WhenBusy == Rollback {
			reason = "rolled back for a new message"
		}
		// One that has ended meanwhile stays as it is: it was not interrupted.
		_, err := e.cancel(ctx, ref, run.CancelRequested{Reason: reason, Rollback: req.WhenBusy == Rollback})
		if err != nil && fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.NotFound {
			return nil, err
		}
	}
	return nil, nil
}
