package client

import (
	"context"
	"net/http"
	"net/url"

	"agentd/message"
)

// Pot is how much of a budget is used that several runs share.
type Pot struct {
	// Kind is run (ID and the runs below it), session or tenant_day (ID is the date, UTC).
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// Limits contain what people allowed beyond them; 0 is none.
	Limits PotAmounts `json:"limits"`
	Used   PotAmounts `json:"used"`
	// Held is reserved by calls under way, and for closing answers.
	Held      PotAmounts `json:"held"`
	UpdatedAt string     `json:"updated_at,omitempty"`
}

// PotAmounts are amounts of a budget.
type PotAmounts struct {
	CostUSD      message.Money `json:"cost_usd,omitempty"`
	Tokens       int64         `json:"tokens,omitempty"`
	ToolCalls    int64         `json:"tool_calls,omitempty"`
	ToolFailures int64         `json:"tool_failures,omitempty"`
}

// PotFilter selects budgets; empty fields select all.
type PotFilter struct {
	Kind, ID, Cursor string
	Limit            int // 0: the server's default
}

// Budgets lists budgets that runs share, the newest first. cursor is "" when there
// are no more.
func (c *Client) Budgets(ctx context.Context, f PotFilter) (pots []*Pot, cursor string, err error) {
	q := url.Values{}
	set(q, "kind", f.Kind)
	set(q, "id", f.ID)
	set(q, "cursor", f.Cursor)
	setLimit(q, f.Limit)
	var out struct {
		Budgets []*Pot `json:"budgets"`
		Cursor  string `json:"cursor"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "budgets")
	return out.Budgets, out.Cursor, err
}
