package agentd

import (
	"context"

	"agentd/internal/engine"
)

// CompactRequest asks for a compaction.
type CompactRequest = engine.CompactRequest

// Compact starts a run that replaces the older part of a session's conversation by a
// summary, after the runs that are under way. Of req it takes SessionID, Profile (empty:
// that of the session's last run), WhenBusy (enqueue or reject), IdempotencyKey, User and
// Compact. The run ends as completed, with the stop reason compacted or
// nothing_to_compact. History is not deleted.
func (rt *Runtime) Compact(ctx context.Context, req StartRequest) (*Run, error) {
	if err := rt.writable("Compact"); err != nil {
		return nil, err
	}
	req.Tenant = rt.ref("").Tenant
	if rt.dormant { // the runs of the session are ahead, also one that was interrupted
		if _, err := rt.engine.RecoverSession(ctx, rt.ref(req.SessionID)); err != nil {
			return nil, err
		}
	}
	return rt.engine.Compact(ctx, req)
}
