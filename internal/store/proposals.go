package store

import (
	"context"
	"encoding/json"
)

// Proposal is a call that a run recorded instead of making it. It goes with the
// run's session.
type Proposal struct {
	// ID is unique in the tenant.
	ID, RunID, CallID, Name string
	// Effect and Key are those that the call would have had.
	Effect, Key string
	Args        json.RawMessage
	// Temp stands for the id of what the call makes, Predicted is the output that
	// the model was given, Reason why the call was not made.
	Temp, Predicted, Reason string
	Created                 int64
	ProposalUpdate
}

// ProposalUpdate is the part of a proposal that changes. Status is proposed,
// applying, applied, failed or discarded.
type ProposalUpdate struct {
	Status string
	// Result is the tool's text, Real the id that took the place of Temp, as JSON.
	Result string
	Real   json.RawMessage
	By     string
	// Decided is when it was applied or discarded.
	Decided int64
}

// ProposalChange changes a proposal that is in status From. If it is in another
// the whole Tx is refused with ErrConflict.
type ProposalChange struct {
	ID, From string
	ProposalUpdate
}

// ProposalReader reads proposals.
type ProposalReader interface {
	// Proposals gives the proposals of a run and, if it is a root, of those below
	// it, in the order in which they were made.
	Proposals(ctx context.Context, tenant, runID string) ([]*Proposal, error)
}
