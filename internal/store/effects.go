package store

import (
	"context"
	"encoding/json"
)

// Effect is a call that the home of a run wants made at a node of a pool: a row that
// the home writes together with the intent, that a node of the pool takes under its
// lease, and that holds the result until the home has taken it.
type Effect struct {
	// Key is the row's own, given by the store: a call that is asked for again under the
	// same ID is another row.
	Key    int64
	Tenant string
	RunID  string
	// ID is unique in the run.
	ID string
	// Kind and Body are the engine's. Version is what a node must understand to make it.
	Kind    string
	Body    json.RawMessage
	Version int
	// Pool is where it is made.
	Pool string
	// Class is read, idempotent or once: a call of the last is taken once, others again
	// when their owner has lost its lease.
	Class string
	// Status is one of the constants below; Node and Attempt are its owner and which
	// owner that is, counted from 1.
	Status  string
	Node    string
	Attempt int
	// Stop: the home wants it ended.
	Stop bool
	// Lost: it is started, and its owner has no lease any more.
	Lost bool
	// Result is the engine's.
	Result                  json.RawMessage
	Created, Started, Ended int64
}

// The statuses of effects.
const (
	EffectPending   = "pending"
	EffectStarted   = "started"
	EffectDone      = "done"
	EffectCancelled = "cancelled" // before anybody took it
)

// EffectOp is what a Tx does to effects.
type EffectOp int

// The operations. Those of a home name a run and an ID and are fenced like all it
// writes; those of a pool's node name a Key.
const (
	// AskEffect writes an effect, pending, unless the run has one with its ID.
	AskEffect EffectOp = iota + 1
	// StopEffect cancels one that is pending and marks one that is started with Stop.
	// To others it does nothing.
	StopEffect
	// CancelEffect cancels one that is pending, and does nothing to others.
	CancelEffect
	// DropEffect removes one, or without ID all of a Kind, if there are any.
	DropEffect
	// TakeEffect makes Node, which must have a lease (ErrLapsed), the owner. It is
	// refused with ErrConflict unless the effect is free: pending, or started without
	// Stop, of another class than once, and lost.
	TakeEffect
	// FinishEffect stores the Result of one that is started, whoever has it: the first
	// one counts, and later ones are refused with ErrConflict.
	FinishEffect
	// FreeEffect makes one pending again that Node took as Attempt and did not begin; it
	// changes nothing if that is not so.
	FreeEffect
)

// EffectChange is one operation.
type EffectChange struct {
	Op EffectOp
	Effect
	// Now is the caller's clock. A store that several machines share goes by its own
	// for leases.
	Now int64
}

// EffectClaim selects what a node takes: effects that are free, one of each run in
// turn, the oldest first.
type EffectClaim struct {
	Node    string
	Version int
	Now     int64
	// Pools are those that the node serves; Any is all of them.
	Pools []string
	Any   bool
	// Each is how many are taken of a pool; Room replaces it for some.
	Each int
	Room map[string]int
}

// room is how many of a pool are taken.
func (q *EffectClaim) room(pool string) int {
	if n, ok := q.Room[pool]; ok {
		return n
	}
	return q.Each
}

// Full lists the pools that have no room.
func (q *EffectClaim) Full() []string {
	full := []string{}
	for pool, n := range q.Room {
		if n <= 0 {
			full = append(full, pool)
		}
	}
	return full
}

// EffectPlace is a free effect.
type EffectPlace struct {
	Key           int64
	Tenant, Pool  string
	Attempt       int
	Status, Class string
}

// Choose gives those for which there is room, in their order.
func (q *EffectClaim) Choose(free []EffectPlace) (out []EffectPlace) {
	used := map[string]int{}
	for _, f := range free {
		if used[f.Pool] < q.room(f.Pool) {
			used[f.Pool]++
			out = append(out, f)
		}
	}
	return out
}

// EffectFilter selects effects: of a run (of those the one with an ID), those that a
// node has started, or those that are lost and that nobody takes (of class once, or
// with Stop). Exactly one of RunID, Node and Lost is set.
type EffectFilter struct {
	Tenant, RunID, ID string
	Node              string
	Lost              bool
	Now               int64
}

// PoolLoad is what there is of a pool's effects.
type PoolLoad struct {
	Pool             string
	Pending, Started int
	// Oldest is when the oldest pending one was written, or 0.
	Oldest int64
}

// Effects is the ledger of calls that are made at nodes of pools.
type Effects interface {
	// ClaimEffects takes effects for a node, at most a few hundred at a time. Two nodes
	// never take the same.
	ClaimEffects(ctx context.Context, q EffectClaim) ([]*Effect, error)
	// Effects lists effects, oldest first, without their Body.
	Effects(ctx context.Context, f EffectFilter) ([]*Effect, error)
	// Pools says how much there is of each pool, by name.
	Pools(ctx context.Context) ([]PoolLoad, error)
}
