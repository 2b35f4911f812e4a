package server_test

import (
	"context"
	"encoding/json"

	"agentd/fault"
	"agentd/internal/engine"
)

// Proposals implements server.Proposals: the fake's runs have one proposal, "p1".
func (e *fake) Proposals(ctx context.Context, ref engine.Ref) ([]*engine.ProposalView, error) {
	if _, err := e.Get(ctx, ref); err != nil {
		return nil, err
	}
	return []*engine.ProposalView{{ID: "p1", RunID: ref.ID, ToolCallID: "c", Tool: "write", Args: json.RawMessage(`{"path":"a"}`), TempID: "tmp.p1",
		Predicted: "{}", Reason: "it needs approval", Status: "proposed", CreatedAt: "2026-01-01T00:00:00.000Z"}}, nil
}

// Apply implements server.Proposals.
func (e *fake) Apply(ctx context.Context, req engine.DecideRequest) ([]*engine.ProposalView, error) {
	return e.decided(ctx, req, "applied")
}

// Discard implements server.Proposals.
func (e *fake) Discard(ctx context.Context, req engine.DecideRequest) ([]*engine.ProposalView, error) {
	return e.decided(ctx, req, "discarded")
}

func (e *fake) decided(ctx context.Context, req engine.DecideRequest, status string) ([]*engine.ProposalView, error) {
	all, err := e.Proposals(ctx, engine.Ref{Tenant: req.Tenant, ID: req.Run})
	if err != nil {
		return nil, err
	}
	if req.Proposal != "" && req.Proposal != "p1" {
		return nil, fault.New(fault.NotFound, "no such proposal")
	}
	all[0].Status, all[0].By = status, req.By
	return all, nil
}
