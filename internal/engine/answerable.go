package engine

import (
	"context"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// canGoOn refuses an answer to a run whose agent, or that of a run above it, can not be
// made here: its profile is not in this configuration, or has no model with a key. The
// answer would end the run. As it is, it waits until a process with the right
// configuration is there.
func (e *Engine) canGoOn(ctx context.Context, tenant string, row *store.Interrupt) error {
	for id := row.RunID; id != ""; id = run.ParentID(id) {
		r, err := e.store.Run(ctx, tenant, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return internal("engine.Answer", err)
		}
		if _, err := e.cfg.Agents.Outline(ctx, tenant, r.Profile); err != nil {
			return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s can not go on here: %w", id, err),
				Hint: "The interrupt is still open: answer it where the configuration has profile " + r.Profile + ", or cancel the run."}
		}
	}
	return nil
}
