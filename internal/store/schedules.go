package store

import (
	"context"
	"encoding/json"
)

// Schedule starts runs of a tenant at certain times. It is a plan alone: what was
// started is found by the keys of the runs.
type Schedule struct {
	// ID is unique in the tenant, and so is Name.
	ID, Name string
	// Tenant is whose it is: that of the Tx which makes it.
	Tenant string
	// Plan is the engine's.
	Plan    json.RawMessage
	Created int64
	ScheduleUpdate
}

// ScheduleUpdate is the part of a schedule that changes without its plan.
type ScheduleUpdate struct {
	Paused bool
	// Revision rises by one with each change, beginning at 1.
	Revision int64
	Updated  int64
}

// ScheduleChange changes a schedule. If its revision is not the one before
// ScheduleUpdate.Revision the whole Tx is refused with ErrConflict, and so is a name
// that another one has.
type ScheduleChange struct {
	ID, Name string
	Plan     json.RawMessage
	ScheduleUpdate
}

// ScheduleFilter selects schedules.
type ScheduleFilter struct {
	// AllTenants selects those of every tenant; the tenant of the call is ignored.
	AllTenants bool
	Limit      int // 0: 50
	Cursor     string
}

// ScheduleReader reads schedules.
type ScheduleReader interface {
	Schedule(ctx context.Context, tenant, id string) (*Schedule, error)
	// Schedules lists schedules, oldest first. The cursor is "" at the end.
	Schedules(ctx context.Context, tenant string, f ScheduleFilter) (s []*Schedule, cursor string, err error)
	// LastKeyed gives the run whose idempotency key begins with a prefix and is the
	// last of those, without State and Spec. What it costs does not depend on how many
	// there are.
	LastKeyed(ctx context.Context, tenant, prefix string) (*Run, error)
}
