package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Proposal is a call that an autonomous run recorded instead of making it.
type Proposal struct {
	ID         string          `json:"proposal_id"`
	RunID      string          `json:"run_id"`
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`
	// TempID stands for the id of what the call makes; RealID took its place.
	TempID    string          `json:"temp_id"`
	RealID    json.RawMessage `json:"real_id,omitempty"`
	Predicted string          `json:"predicted"`
	Reason    string          `json:"reason"`
	// Status is proposed, applying, applied, failed or discarded.
	Status    string `json:"status"`
	Result    string `json:"result,omitempty"`
	By        string `json:"by,omitempty"`
	CreatedAt string `json:"created_at"`
	DecidedAt string `json:"decided_at,omitempty"`
}

// DecideRequest says which proposals of a run are meant.
type DecideRequest struct {
	// Proposal is empty for all that are left.
	Proposal string `json:"proposal_id,omitempty"`
	// Uncertain says of a call that may have happened, because its outcome was lost:
	// "retry", or "done", with RealID as the id of what it made.
	Uncertain string `json:"uncertain,omitempty"`
	RealID    string `json:"real_id,omitempty"`
}

// Proposals lists what a run and those below it recorded, in order.
func (c *Client) Proposals(ctx context.Context, runID string) ([]*Proposal, error) {
	return c.proposals(ctx, http.MethodGet, nil, "runs", runID, "proposals")
}

// Apply makes the calls that were proposed, in order, each once. It stops at the
// first that fails. Waiting for long tools is ctx's matter.
func (c *Client) Apply(ctx context.Context, runID string, req DecideRequest) ([]*Proposal, error) {
	return c.proposals(ctx, http.MethodPost, &req, "runs", runID, "proposals", "apply")
}

// Discard decides that proposals are never applied.
func (c *Client) Discard(ctx context.Context, runID string, req DecideRequest) ([]*Proposal, error) {
	return c.proposals(ctx, http.MethodPost, &req, "runs", runID, "proposals", "discard")
}

func (c *Client) proposals(ctx context.Context, method string, body any, path ...string) ([]*Proposal, error) {
	var out struct {
		Proposals []*Proposal `json:"proposals"`
	}
	err := c.call(ctx, &out, method, body, nil, path...)
	return out.Proposals, err
}
