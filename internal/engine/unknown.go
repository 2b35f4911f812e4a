package engine

import (
	"context"
	"errors"
	"time"

	"agentd/internal/store"
)

// put commits a change that no driver makes. One whose outcome the store does not know
// is committed again until it does, as that of a driver is (see committer.write): it
// is made once. It goes on although ctx ends: the change might still happen, and nobody
// would know. What is left after all tries is ErrUnknown.
func (e *Engine) put(ctx context.Context, tx *store.Tx) error {
	ctx = context.WithoutCancel(ctx)
	for n := 0; ; n++ {
		err := e.store.Commit(ctx, tx)
		if !errors.Is(err, store.ErrUnknown) || n == commitTries-1 {
			return err
		}
		select {
		case <-time.After(commitPause << n):
		case <-e.ctx.Done():
			return err
		}
	}
}

// maybeAccepted is for a run whose acceptance nobody knows of: if it is there, it is
// driven when the store answers again, as any accepted run is; if not, it leaves its
// session's lane by then. The caller is told that it may have happened.
func (e *Engine) maybeAccepted(session Ref, runID string) {
	e.confirm(session, runID)
	e.driveLater(Ref{session.Tenant, runID})
}

// away reports, after a pause, whether err says that the store can not be reached and
// the same is worth another try: what failed is not the work but the way to what is
// known of it. It is false as soon as ctx or the engine ends.
func (e *Engine) away(ctx context.Context, err error) bool {
	if !errors.Is(err, store.ErrAway) && !errors.Is(err, store.ErrUnknown) {
		return false
	}
	select {
	case <-time.After(e.cfg.RetryPause):
		return ctx.Err() == nil && e.ctx.Err() == nil
	case <-ctx.Done():
	case <-e.ctx.Done():
	}
	return false
}
