package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"agentd/event"
	"agentd/fault"
	"agentd/message"
)

// Start accepts a run; it is durable when Start returns. Of the run it gives the
// ids and the status, [Client.Run] gives the rest.
func (c *Client) Start(ctx context.Context, req StartRequest) (*Run, error) {
	var r Run
	if err := c.create(ctx, &r, req.IdempotencyKey, &req, "runs"); err != nil {
		return nil, err
	}
	return &r, nil
}

// create sends what makes something, with its idempotency key.
func (c *Client) create(ctx context.Context, into any, key string, body any, path ...string) error {
	hr, err := c.request(ctx, http.MethodPost, body, nil, path...)
	if err != nil {
		return err
	}
	if key != "" {
		hr.Header.Set("Idempotency-Key", key)
	}
	return c.do(hr, into)
}

// Run gives a run.
func (c *Client) Run(ctx context.Context, id string) (*Run, error) {
	var r Run
	if err := c.call(ctx, &r, http.MethodGet, nil, nil, "runs", id); err != nil {
		return nil, err
	}
	return &r, nil
}

// Runs lists runs, newest first, without their outputs. cursor is "" when there
// are no more.
func (c *Client) Runs(ctx context.Context, f RunFilter) (runs []*Run, cursor string, err error) {
	q := url.Values{}
	set(q, "session_id", f.SessionID)
	set(q, "status", f.Status)
	set(q, "cursor", f.Cursor)
	setLimit(q, f.Limit)
	var out struct {
		Runs   []*Run `json:"runs"`
		Cursor string `json:"cursor"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "runs")
	return out.Runs, out.Cursor, err
}

// Cancel asks a run to stop and gives it as it is then. Cancelling a run that
// ended otherwise is a conflict.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*Run, error) {
	var r Run
	body := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	if err := c.call(ctx, &r, http.MethodPost, body, nil, "runs", id, "cancel"); err != nil {
		return nil, err
	}
	return &r, nil
}

// Steer gives a running run a message, which the model gets after the tools under way,
// and blocks of context that go with it.
func (c *Client) Steer(ctx context.Context, id string, input []message.Block, about ...ContextBlock) error {
	return c.say(ctx, id, "steer", input, about)
}

// FollowUp gives a run a message for when it would otherwise end, and blocks of context
// that go with it.
func (c *Client) FollowUp(ctx context.Context, id string, input []message.Block, about ...ContextBlock) error {
	return c.say(ctx, id, "follow_up", input, about)
}

func (c *Client) say(ctx context.Context, id, how string, input []message.Block, about []ContextBlock) error {
	body := struct {
		Input         []message.Block `json:"input"`
		ContextBlocks []ContextBlock  `json:"context_blocks,omitempty"`
	}{input, about}
	return c.call(ctx, nil, http.MethodPost, body, nil, "runs", id, how)
}

// eventsPage is how many events are asked for at a time.
const eventsPage = 1000

// Replay yields the stored events of a run with numbers above after, without
// waiting for more. It asks for a page at a time: what it holds does not grow with
// the run. An error is the last thing it yields.
func (c *Client) Replay(ctx context.Context, id string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for after := after; ; { // it may be ranged over again
			var page struct {
				Events  []event.Event `json:"events"`
				LastSeq int64         `json:"last_seq"`
				More    bool          `json:"more"`
			}
			q := url.Values{"stream": {"false"}, "limit": {strconv.Itoa(eventsPage)}, "after": {strconv.FormatInt(after, 10)}}
			if err := c.call(ctx, &page, http.MethodGet, nil, q, "runs", id, "events"); err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, ev := range page.Events {
				if !yield(ev, nil) {
					return
				}
			}
			if !page.More || page.LastSeq <= after { // a server that gives no progress is not asked for ever
				return
			}
			after = page.LastSeq
		}
	}
}

// Events is Replay in a list: all of it is in memory.
func (c *Client) Events(ctx context.Context, id string, after int64) ([]event.Event, error) {
	var all []event.Event
	for ev, err := range c.Replay(ctx, id, after) {
		if err != nil {
			return nil, err
		}
		all = append(all, ev)
	}
	return all, nil
}

// Answer answers an interrupt and gives it back. A second answer is a conflict.
func (c *Client) Answer(ctx context.Context, req AnswerRequest) (*Interrupt, error) {
	var path []string
	switch {
	case req.Run != "":
		path = []string{"runs", req.Run, "input"}
	case req.Interrupt != "":
		path = []string{"interrupts", req.Interrupt}
		req.Interrupt = ""
	default:
		return nil, &fault.Error{Kind: fault.Invalid, Err: errors.New("the answer names neither a run nor an interrupt")}
	}
	var i Interrupt
	if err := c.call(ctx, &i, http.MethodPost, &req, nil, path...); err != nil {
		return nil, err
	}
	return &i, nil
}

// Interrupt gives an interrupt.
func (c *Client) Interrupt(ctx context.Context, id string) (*Interrupt, error) {
	var i Interrupt
	if err := c.call(ctx, &i, http.MethodGet, nil, nil, "interrupts", id); err != nil {
		return nil, err
	}
	return &i, nil
}

// Interrupts lists interrupts by status ("open", or "" for all), oldest first, at
// most limit (0: 50) a page. next is "" when there are no more.
func (c *Client) Interrupts(ctx context.Context, status, cursor string, limit int) (interrupts []*Interrupt, next string, err error) {
	q := url.Values{}
	set(q, "status", status)
	set(q, "cursor", cursor)
	setLimit(q, limit)
	var out struct {
		Interrupts []*Interrupt `json:"interrupts"`
		Cursor     string       `json:"cursor"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "interrupts")
	return out.Interrupts, out.Cursor, err
}

// CreateSession makes an empty session. With an IdempotencyKey it can be repeated.
func (c *Client) CreateSession(ctx context.Context, req SessionRequest) (*Session, error) {
	var s Session
	if err := c.create(ctx, &s, req.IdempotencyKey, &req, "sessions"); err != nil {
		return nil, err
	}
	return &s, nil
}

// Session gives a session.
func (c *Client) Session(ctx context.Context, id string) (*Session, error) {
	var s Session
	if err := c.call(ctx, &s, http.MethodGet, nil, nil, "sessions", id); err != nil {
		return nil, err
	}
	return &s, nil
}

// Sessions lists sessions, most recently used first, a page at a time. next is
// "" when there are no more.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) (sessions []*Session, next string, err error) {
	q := url.Values{}
	set(q, "cursor", f.Cursor)
	setLimit(q, f.Limit)
	if f.Ephemeral {
		set(q, "ephemeral", "true")
	}
	var out struct {
		Sessions []*Session `json:"sessions"`
		Cursor   string     `json:"cursor"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "sessions")
	return out.Sessions, out.Cursor, err
}

// DeleteSession deletes a session with its runs and their subagents'. One with an active run is a
// conflict.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.call(ctx, nil, http.MethodDelete, nil, nil, "sessions", id)
}

// entriesPage is how many entries are asked for at a time.
const entriesPage = 200

// Entries gives a session's conversation, oldest first.
func (c *Client) Entries(ctx context.Context, sessionID string) ([]*Entry, error) {
	var all []*Entry
	for after := ""; ; {
		q := url.Values{"limit": {strconv.Itoa(entriesPage)}}
		set(q, "after", after)
		var page struct {
			Entries []*Entry `json:"entries"`
		}
		if err := c.call(ctx, &page, http.MethodGet, nil, q, "sessions", sessionID, "entries"); err != nil {
			return nil, err
		}
		all = append(all, page.Entries...)
		n := len(page.Entries)
		if n < entriesPage || page.Entries[n-1].ID <= after {
			return all, nil
		}
		after = page.Entries[n-1].ID
	}
}

// Profiles lists the agents that the server has, by name.
func (c *Client) Profiles(ctx context.Context) ([]Profile, error) {
	var out struct {
		Profiles []Profile `json:"profiles"`
	}
	err := c.call(ctx, &out, http.MethodGet, nil, nil, "profiles")
	return out.Profiles, err
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setLimit(q url.Values, limit int) {
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
}
