package client

import (
	"context"
	"net/http"
	"net/url"
)

// Schedule starts runs at certain times.
type Schedule struct {
	ID   string `json:"schedule_id"`
	Name string `json:"name"`
	// Source is config for those of the server's agentd.yaml, which can not be changed
	// here, else api.
	Source   string `json:"source"`
	Cron     string `json:"cron"`
	TimeZone string `json:"time_zone"`
	Profile  string `json:"profile"`
	Input    string `json:"input"`
	Session  string `json:"session"`
	WhenBusy string `json:"when_busy"`
	// SessionMode is ask, plan or edit, which each run sets; "" leaves the mode as it is.
	SessionMode string `json:"session_mode,omitempty"`
	CatchUp     string `json:"catch_up"`
	Paused      bool   `json:"paused"`
	// Next are the times that are due next, none while it is paused.
	Next []string `json:"next"`
	// LastRun is the run that was started last, or nil.
	LastRun *ScheduledRun `json:"last_run,omitempty"`
	// Problem is why it can start no runs, or "".
	Problem   string `json:"problem,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	UpdatedAt string `json:"updated_at,omitempty"`
}

// ScheduledRun is the run that a schedule started last.
type ScheduledRun struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	Status    string `json:"status"`
	// Due is the time that was due; empty: somebody triggered it.
	Due       string `json:"due,omitempty"`
	CreatedAt string `json:"created_at"`
}

// ScheduleRequest makes or changes a schedule: what is nil stays as it is, or is the
// default. A new one needs Name, Cron, Profile and Input.
type ScheduleRequest struct {
	Name        *string `json:"name,omitempty"`
	Cron        *string `json:"cron,omitempty"`
	TimeZone    *string `json:"time_zone,omitempty"` // default: UTC
	Profile     *string `json:"profile,omitempty"`
	Input       *string `json:"input,omitempty"`
	Session     *string `json:"session,omitempty"`      // new (the default) or one
	WhenBusy    *string `json:"when_busy,omitempty"`    // reject (the default), enqueue or interrupt
	SessionMode *string `json:"session_mode,omitempty"` // ask, plan or edit; "" (the default) leaves the mode of the session as it is
	CatchUp     *string `json:"catch_up,omitempty"`     // such as 2h; default: 0s
	Paused      *bool   `json:"paused,omitempty"`
}

// Schedules lists schedules, a page at a time. cursor is "" when there are no more.
func (c *Client) Schedules(ctx context.Context, cursor string, limit int) (schedules []*Schedule, next string, err error) {
	q := url.Values{}
	set(q, "cursor", cursor)
	setLimit(q, limit)
	var out struct {
		Schedules []*Schedule `json:"schedules"`
		Cursor    string      `json:"cursor"`
	}
	err = c.call(ctx, &out, http.MethodGet, nil, q, "schedules")
	return out.Schedules, out.Cursor, err
}

// Schedule gives a schedule.
func (c *Client) Schedule(ctx context.Context, id string) (*Schedule, error) {
	var s Schedule
	if err := c.call(ctx, &s, http.MethodGet, nil, nil, "schedules", id); err != nil {
		return nil, err
	}
	return &s, nil
}

// CreateSchedule makes a schedule. Names are unique: a repetition is a conflict. It
// takes a key with the scope admin, as changing and deleting one do.
func (c *Client) CreateSchedule(ctx context.Context, req ScheduleRequest) (*Schedule, error) {
	var s Schedule
	if err := c.call(ctx, &s, http.MethodPost, &req, nil, "schedules"); err != nil {
		return nil, err
	}
	return &s, nil
}

// UpdateSchedule changes a schedule; Paused stops it and lets it go on.
func (c *Client) UpdateSchedule(ctx context.Context, id string, req ScheduleRequest) (*Schedule, error) {
	var s Schedule
	if err := c.call(ctx, &s, http.MethodPatch, &req, nil, "schedules", id); err != nil {
		return nil, err
	}
	return &s, nil
}

// DeleteSchedule ends a schedule. The runs that it started stay.
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	return c.call(ctx, nil, http.MethodDelete, nil, nil, "schedules", id)
}

// TriggerSchedule starts a run of a schedule now, also of one that is paused, and gives
// its ids and status.
func (c *Client) TriggerSchedule(ctx context.Context, id string) (*Run, error) {
	var r Run
	if err := c.call(ctx, &r, http.MethodPost, nil, nil, "schedules", id, "trigger"); err != nil {
		return nil, err
	}
	return &r, nil
}
