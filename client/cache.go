package client

import (
	"context"
	"net/http"
	"net/url"

	"agentd/event"
	"agentd/message"
)

// Cache is what the prompt caches of providers did for a session.
type Cache struct {
	SessionID string `json:"session_id"`
	// Steps are one page of them, oldest first; Total is of all. Cursor is where to go on,
	// "" at the end.
	Steps  []CacheStep `json:"steps"`
	Total  CacheTotal  `json:"total"`
	Cursor string      `json:"cursor,omitempty"`
}

// CacheStep is one reply. Its prompt has Input, CacheRead and CacheWrite tokens.
type CacheStep struct {
	RunID   string `json:"run_id"`
	Step    int    `json:"step"`
	Time    string `json:"ts"`
	Model   string `json:"model,omitempty"`
	EntryID string `json:"entry_id,omitempty"`

	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
	// Ratio is the part of the prompt that was read from the cache, 0 to 1.
	Ratio float64 `json:"cache_ratio"`
	// Cost is what the call cost, Saved what it would have cost more without a cache.
	Cost  message.Money `json:"cost_usd"`
	Saved message.Money `json:"saved_usd"`

	// ComparedRun and ComparedStep name the step before on the path of the reply, with which
	// this one is compared: after the session went back, not the one that was made last. They
	// are empty for the first one of a path.
	ComparedRun  string `json:"compared_run_id,omitempty"`
	ComparedStep int    `json:"compared_step,omitempty"`
	// WaitSeconds is how long after that request this one was made, CacheSeconds
	// how long the provider keeps what it has read, at the least; 0: nobody knows.
	WaitSeconds  float64 `json:"wait_seconds,omitempty"`
	CacheSeconds int64   `json:"cache_seconds,omitempty"`
	// Miss is why less was read than the request before left there: first, broken,
	// expired, small, provider (it did not have it any more) or none (it reports no
	// cache); "" if all of it was. Missed is how many tokens.
	Miss   string `json:"miss,omitempty"`
	Missed int64  `json:"missed_tokens,omitempty"`
	// Broken says what changed, if the request was no extension of the one before.
	Broken *event.CacheBreak `json:"broken,omitempty"`
}

// CacheTotal sums steps.
type CacheTotal struct {
	Steps      int           `json:"steps"`
	Input      int64         `json:"input"`
	CacheRead  int64         `json:"cache_read"`
	CacheWrite int64         `json:"cache_write"`
	Output     int64         `json:"output"`
	Ratio      float64       `json:"cache_ratio"`
	Cost       message.Money `json:"cost_usd"`
	Saved      message.Money `json:"saved_usd"`
	// Breaks and Expired count the steps that missed for that.
	Breaks  int `json:"breaks"`
	Expired int `json:"expired"`
}

// Cache gives what providers' prompt caches did for a session: steps after a cursor ("" for
// the first), at most limit (0: 50).
func (c *Client) Cache(ctx context.Context, sessionID, cursor string, limit int) (*Cache, error) {
	q := url.Values{}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	setLimit(q, limit)
	out := new(Cache)
	if err := c.call(ctx, out, http.MethodGet, nil, q, "sessions", sessionID, "cache"); err != nil {
		return nil, err
	}
	return out, nil
}
