package agentd

import (
	"context"

	"agentd/internal/engine"
)

// Cache is what the prompt caches of providers did for a session; CacheStep is one
// reply, CacheTotal the sum of all.
type (
	Cache      = engine.CacheView
	CacheStep  = engine.CacheStep
	CacheTotal = engine.CacheTotal
)

// Cache gives what providers' caches did for a session: steps after a cursor ("" for the
// first), at most limit (0: all), and the sum of all.
func (rt *Runtime) Cache(ctx context.Context, sessionID, cursor string, limit int) (*Cache, error) {
	return rt.engine.Cache(ctx, rt.ref(sessionID), cursor, limit)
}
