package engine

import (
	"context"
	"slices"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// RecoverSession goes on with the unfinished runs of one session and returns how
// many there are: whoever recovers nothing else does this before a run there, which
// they are ahead of.
func (e *Engine) RecoverSession(ctx context.Context, session Ref) (int, error) {
	if e.node != nil && !e.node.cfg.Named {
		return 0, nil // nodes take what there is
	}
	all, err := e.store.Unfinished(ctx)
	if err != nil {
		return 0, &fault.Error{Op: "engine.RecoverSession", Kind: fault.Unavailable, Err: err}
	}
	refs := slices.DeleteFunc(all, func(r store.RunRef) bool {
		return r.Tenant != session.Tenant || r.SessionID != session.ID || e.lined(session, r.ID)
	})
	if e.node != nil {
		for _, r := range refs {
			e.node.name(Ref{r.Tenant, r.ID})
		}
		return len(refs), nil
	}
	e.goOn(refs)
	return len(refs), nil
}

// Resume goes on with an unfinished run and all that belongs to it: the runs of its
// session and those of its tree.
func (e *Engine) Resume(ctx context.Context, ref Ref) error {
	row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return notFound("run", ref.ID, err)
	}
	if run.Status(row.Status).Ended() {
		return ended(row)
	}
	if e.node != nil {
		e.node.name(ref)
		if _, err := e.RecoverSession(ctx, Ref{ref.Tenant, row.SessionID}); err != nil {
			return err
		}
		return e.node.exec.Wake(ctx, ref)
	}
	all, err := e.store.Unfinished(ctx)
	if err != nil {
		return &fault.Error{Op: "engine.Resume", Kind: fault.Unavailable, Err: err}
	}
	top := row.RootID
	if top == "" {
		top = row.ID
	}
	e.goOn(slices.DeleteFunc(all, func(r store.RunRef) bool {
		return r.Tenant != ref.Tenant || r.SessionID != row.SessionID && !within(r.ID, top) || e.lined(Ref{r.Tenant, r.SessionID}, r.ID)
	}))
	return nil
}

// UnfinishedRun is a run that has not ended.
type UnfinishedRun struct{ ID, Status string }

// Unfinished lists the runs of a tenant that have not ended, oldest first. Those of
// an engine that ended without them are among these until somebody goes on.
func (e *Engine) Unfinished(ctx context.Context, tenant string) ([]UnfinishedRun, error) {
	refs, err := e.store.Unfinished(ctx)
	if err != nil {
		return nil, internal("engine.Unfinished", err)
	}
	var runs []UnfinishedRun
	for _, r := range refs {
		if r.Tenant == tenant {
			runs = append(runs, UnfinishedRun{ID: r.ID, Status: r.Status})
		}
	}
	return runs, nil
}
