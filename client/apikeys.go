package client

import (
	"context"
	"net/http"
	"net/url"
)

// Key is an API key. Managing keys takes one with the scope admin.
type Key struct {
	ID     string `json:"key_id"`
	Tenant string `json:"tenant"`
	Name   string `json:"name,omitempty"`
	// Scopes are of run, read, answer and admin; none includes another.
	Scopes []string `json:"scopes"`
	// Status is active, expired or revoked.
	Status    string `json:"status"`
	CreatedAt string `json:"created_at"`
	ExpiresAt string `json:"expires_at,omitempty"`
	RevokedAt string `json:"revoked_at,omitempty"`
	// LastUsedAt is no more exact than an hour.
	LastUsedAt string `json:"last_used_at,omitempty"`
	// Secret is what callers show. Only [Client.CreateKey] gives it.
	Secret string `json:"key,omitempty"`
}

// KeyRequest asks for an API key; every field may be empty.
type KeyRequest struct {
	// Tenant is the caller's own; the operator's tenant may name any.
	Tenant string   `json:"tenant,omitempty"`
	Name   string   `json:"name,omitempty"`
	Scopes []string `json:"scopes,omitempty"` // none: run, read and answer
	// ExpiresAt is RFC 3339; empty: never.
	ExpiresAt string `json:"expires_at,omitempty"`
}

// KeyFilter selects keys.
type KeyFilter struct {
	// Tenant is whose; empty: all that the caller may see.
	Tenant string
	// Cursor is what the page before gave.
	Cursor string
	// Limit is at most 200; 0 means 50.
	Limit int
}

// CreateKey makes an API key. Its Secret is in the answer and nowhere else: if the
// answer was lost, revoke the key and make another.
func (c *Client) CreateKey(ctx context.Context, req KeyRequest) (*Key, error) {
	var k Key
	if err := c.call(ctx, &k, http.MethodPost, &req, nil, "keys"); err != nil {
		return nil, err
	}
	return &k, nil
}

// Keys lists API keys, oldest first, a page at a time. next is "" when there are
// no more.
func (c *Client) Keys(ctx context.Context, f KeyFilter) (keys []*Key, next string, err error) {
	q := url.Values{}
	set(q, "tenant", f.Tenant)
	set(q, "cursor", f.Cursor)
	setLimit(q, f.Limit)
	var out struct {
		Keys   []*Key `json:"keys"`
		Cursor string `json:"cursor"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "keys")
	return out.Keys, out.Cursor, err
}

// RevokeKey ends an API key, for good, and what it has open.
func (c *Client) RevokeKey(ctx context.Context, id string) (*Key, error) {
	var k Key
	if err := c.call(ctx, &k, http.MethodDelete, nil, nil, "keys", id); err != nil {
		return nil, err
	}
	return &k, nil
}
