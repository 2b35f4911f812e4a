package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// What an executor needs that decides where runs are driven: nobody looks for work then.

// takes is whether this node looks for runs to drive by itself.
func (n *node) takes() bool { return n.cfg.Worker && n.cfg.Executor == nil }

func (n *node) isDraining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draining
}

// isResting is whether a run could not be driven here a moment ago.
func (n *node) isResting(ref Ref) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resting[ref]
}

// leaves is why this node does not drive a run that has something to do and that nobody
// drives: a newer one wrote it.
func (n *node) leaves(ctx context.Context, ref Ref) error {
	got, err := n.st.Claim(ctx, store.ClaimRequest{Look: true, Version: math.MaxInt32, Now: n.now(), Roots: 1, Limit: 1, Only: &store.RunRef{Tenant: ref.Tenant, ID: ref.ID}})
	switch {
	case err != nil:
		return internal("engine.Drive", err)
	case len(got) == 0:
		return nil
	}
	return tooNew(ref)
}

func tooNew(ref Ref) error {
	return &fault.Error{Op: "engine.Drive", Kind: fault.Unavailable, Err: fmt.Errorf("run %s has something to do that this node leaves to a newer one", ref.ID), Hint: "Try again at another node."}
}

// submitNext submits the run whose turn it is when another one, or a hold, has ended.
func (n *node) submitNext(session Ref, ended string) {
	if n.cfg.Executor == nil {
		return // who looks for work finds it
	}
	n.e.mu.Lock()
	defer n.e.mu.Unlock()
	if n.e.closed {
		return
	}
	n.e.wg.Add(1)
	go func() {
		defer n.e.wg.Done()
		next, err := n.e.ahead(n.e.ctx, session)
		if err == nil && strings.HasPrefix(next, "run_") && next != ended {
			n.e.submit(n.e.ctx, session, &store.Run{ID: next})
		}
	}()
}

// Waiting lists runs that have something to do and that no node drives, at most so
// many: mail and interrupts whose time is over first, then what was under way, then
// what is queued and has its turn, oldest first. Executors look there for what they
// were not told.
func (e *Engine) Waiting(ctx context.Context, most int) ([]Ref, error) {
	n := e.node
	if n == nil {
		return nil, nil
	}
	got, err := n.st.Claim(ctx, store.ClaimRequest{Look: true, Version: run.StateVersion, Now: n.now(), Roots: most, Limit: most})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		return nil, internal("engine.Waiting", err)
	}
	refs := make([]Ref, len(got))
	for i, c := range got {
		refs[i] = Ref{c.Tenant, c.ID}
	}
	return refs, nil
}
