package agentd

import (
	"context"

	"agentd/internal/engine"
)

// Proposal is a call that an autonomous run recorded instead of making it.
type Proposal = engine.ProposalView

// DecideRequest says which proposals of a run are meant.
type DecideRequest = engine.DecideRequest

// Proposals lists what a run and those below it recorded, in order.
func (rt *Runtime) Proposals(ctx context.Context, runID string) ([]*Proposal, error) {
	return rt.engine.Proposals(ctx, rt.ref(runID))
}

// ApplyProposals makes the calls that were proposed, in order, each once, and stops
// at the first that fails.
func (rt *Runtime) ApplyProposals(ctx context.Context, req DecideRequest) ([]*Proposal, error) {
	if err := rt.writable("ApplyProposals"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.Apply(ctx, req)
}

// DiscardProposals decides that proposals are never applied.
func (rt *Runtime) DiscardProposals(ctx context.Context, req DecideRequest) ([]*Proposal, error) {
	if err := rt.writable("DiscardProposals"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.Discard(ctx, req)
}
