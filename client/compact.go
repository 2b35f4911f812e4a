package client

import "context"

// CompactRequest asks for a compaction; every field may be empty.
type CompactRequest struct {
	// Profile says whose models write the summary; empty: that of the session's last run.
	Profile string `json:"profile,omitempty"`
	// Instructions are added to what the model is told, such as what to dwell on; at
	// most 4096 bytes.
	Instructions string `json:"instructions,omitempty"`
	// WhenBusy says what to do if the session has an active run: enqueue (also "") or
	// reject.
	WhenBusy string `json:"when_busy,omitempty"`
	// IdempotencyKey makes a repetition return the first run.
	IdempotencyKey string `json:"-"`
}

// Compact starts a run that replaces the older part of a session's conversation by a
// summary, and gives its ids and status. It ends as completed, with the stop reason
// compacted or nothing_to_compact. History is not deleted.
func (c *Client) Compact(ctx context.Context, sessionID string, req CompactRequest) (*Run, error) {
	var r Run
	if err := c.create(ctx, &r, req.IdempotencyKey, &req, "sessions", sessionID, "compact"); err != nil {
		return nil, err
	}
	return &r, nil
}
