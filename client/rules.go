package client

import (
	"context"
	"net/http"
)

// Rule is what a person allowed for the rest of a session.
type Rule struct {
	ID   string `json:"rule_id"`
	Tool string `json:"tool"`
	// Allows says which calls, for people.
	Allows      string `json:"allows"`
	InterruptID string `json:"interrupt_id,omitempty"`
	By          string `json:"by,omitempty"`
	CreatedAt   string `json:"created_at"`
}

// Rules gives what people allowed for the rest of a session, oldest first.
func (c *Client) Rules(ctx context.Context, sessionID string) ([]*Rule, error) {
	var out struct {
		Rules []*Rule `json:"rules"`
	}
	err := c.call(ctx, &out, http.MethodGet, nil, nil, "sessions", sessionID, "rules")
	return out.Rules, err
}

// Revoke takes a rule of a session back, or all of them if rule is "".
func (c *Client) Revoke(ctx context.Context, sessionID, rule string) error {
	path := []string{"sessions", sessionID, "rules"}
	if rule != "" {
		path = append(path, rule)
	}
	return c.call(ctx, nil, http.MethodDelete, nil, nil, path...)
}
