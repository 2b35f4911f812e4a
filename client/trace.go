package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// Trace is one input of a run with the effects that it led to.
type Trace struct {
	// N counts from 1.
	N    int    `json:"n"`
	Time string `json:"ts"`
	// Input is its kind, Data what it holds besides messages.
	Input   string          `json:"input"`
	Data    json.RawMessage `json:"data,omitempty"`
	Effects []TraceEffect   `json:"effects,omitempty"`
	// Prompt is what was sent ahead of the conversation in a model call, in order; of
	// a call that had the same as the one before, and of other inputs, it is missing.
	Prompt []TraceSection `json:"prompt,omitempty"`
}

// TraceSection is a piece of the prompt.
type TraceSection struct {
	Name string `json:"name"`
	Tier string `json:"tier"` // static, org or turn
	// Hash is of its text, Bytes its length.
	Hash  string `json:"hash"`
	Bytes int    `json:"bytes"`
}

// TraceEffect is what was to be done because of an input.
type TraceEffect struct {
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Trace lists a run's inputs and effects after a number (0: from the start), at
// most limit (0: 200). more is whether there are others.
func (c *Client) Trace(ctx context.Context, id string, after, limit int) (rows []*Trace, more bool, err error) {
	q := url.Values{}
	if after > 0 {
		q.Set("after", strconv.Itoa(after))
	}
	setLimit(q, limit)
	var out struct {
		Trace []*Trace `json:"trace"`
		More  bool     `json:"more"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "runs", id, "trace")
	return out.Trace, out.More, err
}
