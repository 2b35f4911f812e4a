package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/store"
)

// DeleteSession deletes a session with its runs and the sessions of their
// subagents. What their model calls used stays in the sums. One with an active
// run is a conflict.
func (e *Engine) DeleteSession(ctx context.Context, ref Ref) error {
	return e.drop(ctx, ref, nil)
}

// drop deletes a session and what descends from it, unless ok has something
// against it once nothing can start there any more.
func (e *Engine) drop(ctx context.Context, ref Ref, ok func(*store.Session) bool) error {
	id := e.cfg.NewID()
	hold := func(session string) error {
		lane := Ref{ref.Tenant, session}
		if e.holdLane(lane, id) {
			return nil
		}
		active, err := e.ahead(ctx, lane)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(active, "run_") {
			return busy(active)
		}
		return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s of session %s is active", active, session), Hint: "Cancel the run first."}
	}
	if err := hold(ref.ID); err != nil {
		return err
	}
	defer e.leave(ref, id)
	ses, err := e.store.Session(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return notFound("session", ref.ID, err)
	}
	if ok != nil && !ok(ses) {
		return nil
	}
	family, err := e.store.Family(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return notFound("session", ref.ID, err)
	}
	for _, child := range family[1:] {
		if err := hold(child); err != nil {
			return err
		}
		defer e.leave(Ref{ref.Tenant, child}, id)
	}
	// If ctx ended during the commit it might still happen, after the lanes
	// are free again.
	if err := e.put(ctx, &store.Tx{Tenant: ref.Tenant, DropSessions: family}); err != nil {
		switch {
		case errors.Is(err, store.ErrNotFound):
			return notFound("session", ref.ID, err)
		case errors.Is(err, store.ErrSessionBusy):
			// A run was accepted behind the hold; it comes first.
			return &fault.Error{Kind: fault.Conflict, Err: err, Hint: "Cancel the run first."}
		}
		return internal("engine.DeleteSession", err)
	}
	return nil
}

const (
	// sweepEvery is how often expired sessions are looked for.
	sweepEvery = time.Minute
	// sweepMost bounds what one pass deletes, so that runs do not wait for the
	// store; when there is more, the next pass comes after sweepPause.
	sweepMost  = 64
	sweepPause = time.Second
)

// sweep deletes ephemeral sessions whose time is over until the engine closes.
func (e *Engine) sweep() {
	defer e.wg.Done()
	for {
		pause := sweepEvery
		if e.sweepOnce() {
			pause = sweepPause
		}
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
			return
		}
	}
}

// sweepOnce makes one pass, and reports whether there may be more to delete.
func (e *Engine) sweepOnce() (more bool) {
	before := e.cfg.Now().Add(-e.cfg.KeepEphemeral).UnixMilli()
	refs, err := e.store.Expired(e.ctx, before, sweepMost)
	if err != nil {
		if e.ctx.Err() == nil {
			e.log.Error("expired sessions can not be looked for", "error", err)
		}
		return false
	}
	dropped := 0
	for _, r := range refs {
		if e.ctx.Err() != nil {
			return false
		}
		// Whoever came back to it in the meantime keeps it.
		err := e.drop(e.ctx, Ref(r), func(s *store.Session) bool { return s.Updated < before })
		switch kind := fault.KindOf(err); {
		case err == nil:
			dropped++
		case kind == fault.Conflict || kind == fault.NotFound || e.ctx.Err() != nil:
			// In use again, or gone.
		default:
			// The next one would fail as well.
			e.log.Error("an expired session can not be deleted", "session", r.ID, "error", err)
			return false
		}
	}
	if dropped > 0 {
		e.log.Debug("deleted expired sessions", "sessions", dropped)
	}
	return dropped > 0 && len(refs) == sweepMost
}
