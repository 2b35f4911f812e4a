package engine

import (
	"context"
	"errors"

	"agentd/fault"
	"agentd/internal/store"
)

// Ready says whether the engine can take runs: it is open and not about to end, commits
// go through, it has a lease if it shares its store, and the store answers.
func (e *Engine) Ready(ctx context.Context) error {
	e.mu.Lock()
	closed, broken := e.closed, e.broken.Load()
	e.mu.Unlock()
	switch {
	case closed:
		return fault.New(fault.Unavailable, "the engine is closed")
	case broken != nil:
		return &fault.Error{Kind: fault.Unavailable, Err: *broken, Hint: "The store refuses commits: look at disk space and permissions. Runs go on by themselves when it takes them again."}
	case e.node != nil && e.node.isDraining():
		return fault.New(fault.Unavailable, "this node is about to end and hands over what it drives")
	}
	if e.node != nil && e.node.lease() == "" {
		return &fault.Error{Kind: fault.Unavailable, Err: errors.New("this node has no lease on the store that it shares with others"), Hint: "It joins again by itself when the store answers in time."}
	}
	_, _, err := e.store.Sessions(ctx, store.DefaultTenant, store.SessionFilter{Limit: 1})
	return err
}
