package server_test

import (
	"context"

	"agentd/internal/engine"
)

func (e *fake) Cache(ctx context.Context, session engine.Ref, cursor string, limit int) (*engine.CacheView, error) {
	if _, err := e.Session(ctx, session); err != nil {
		return nil, err
	}
	v := &engine.CacheView{SessionID: session.ID, Steps: []engine.CacheStep{{RunID: "r", Step: 1, Time: "2026-11-21T12:00:00.000Z", Input: 1}}}
	if cursor == "" && limit == 1 {
		v.Cursor = "1"
	}
	return v, nil
}
