package timetable

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"agentd/internal/engine"
	"agentd/internal/schedule"
	"agentd/internal/store"
)

// View is a schedule as clients see it.
type View struct {
	ID   string `json:"schedule_id"`
	Name string `json:"name"`
	// Source is config for those of agentd.yaml, which can not be changed here, else api.
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
	LastRun *LastRun `json:"last_run,omitempty"`
	// Problem is why it can start no runs, or "".
	Problem   string `json:"problem,omitempty"`
	CreatedAt string `json:"created_at,omitempty"`
	UpdatedAt string `json:"updated_at,omitempty"`
}

// LastRun is the run that a schedule started last.
type LastRun struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	Status    string `json:"status"`
	// Due is the time that was due; empty: a person triggered it.
	Due       string `json:"due,omitempty"`
	CreatedAt string `json:"created_at"`
}

// nextTimes is how many due times are shown.
const nextTimes = 3

// fixedCursor begins cursors of the configuration's schedules, which are listed ahead
// of the others. No other cursor begins so.
const fixedCursor = "config."

// List lists the schedules of a tenant: those of the configuration by name, then those
// that people made, oldest first. next is "" at the end. 0 as limit means 50.
func (t *Table) List(ctx context.Context, tenant, cursor string, limit int) (views []*View, next string, err error) {
	if limit <= 0 {
		limit = 50
	}
	after, fixed := strings.CutPrefix(cursor, fixedCursor)
	if cursor == "" || fixed {
		for i := range t.fixed {
			f := &t.fixed[i]
			if f.Tenant != tenant || f.Name <= after {
				continue
			}
			if len(views) == limit {
				return views, fixedCursor + views[limit-1].ID, nil
			}
			v, err := t.viewFixed(ctx, f)
			if err != nil {
				return nil, "", err
			}
			views = append(views, v)
		}
		cursor = ""
		if len(views) == limit {
			rows, _, err := t.cfg.Store.Schedules(ctx, tenant, store.ScheduleFilter{Limit: 1})
			if err == nil && len(rows) > 0 {
				next = fixedCursor + views[limit-1].ID
			}
			return views, next, err
		}
	}
	rows, next, err := t.cfg.Store.Schedules(ctx, tenant, store.ScheduleFilter{Cursor: cursor, Limit: limit - len(views)})
	if err != nil {
		return nil, "", err
	}
	for _, row := range rows {
		v, err := t.view(ctx, row)
		if err != nil {
			return nil, "", err
		}
		views = append(views, v)
	}
	return views, next, nil
}

// Get gives a schedule.
func (t *Table) Get(ctx context.Context, ref engine.Ref) (*View, error) {
	if f := t.find(ref); f != nil {
		return t.viewFixed(ctx, f)
	}
	row, _, err := t.row(ctx, ref)
	if row == nil {
		return nil, err
	}
	return t.view(ctx, row)
}

func (t *Table) viewFixed(ctx context.Context, f *Fixed) (*View, error) {
	v := &View{ID: f.Name, Name: f.Name, Source: "config", Paused: f.Paused}
	return v, t.fill(ctx, v, f.Tenant, f.Plan)
}

func (t *Table) view(ctx context.Context, row *store.Schedule) (*View, error) {
	v := &View{ID: row.ID, Name: row.Name, Source: "api", Paused: row.Paused, CreatedAt: stamp(row.Created), UpdatedAt: stamp(row.Updated)}
	p, err := planOf(row)
	if err != nil {
		v.Problem = err.Error()
	}
	return v, t.fill(ctx, v, row.Tenant, p)
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func (t *Table) fill(ctx context.Context, v *View, tenant string, p Plan) error {
	v.Cron, v.TimeZone, v.Profile, v.Input, v.Session, v.WhenBusy, v.SessionMode = p.Cron, p.TimeZone, p.Profile, p.Input, p.Session, p.WhenBusy, p.SessionMode
	v.CatchUp = (time.Duration(p.CatchUpMS) * time.Millisecond).String()
	if v.TimeZone == "" {
		v.TimeZone = "UTC"
	}
	times, err := schedule.Parse(p.Cron, p.TimeZone)
	if err == nil {
		err = t.cfg.Knows(tenant, p.Profile)
	}
	if err != nil && v.Problem == "" {
		v.Problem = err.Error()
	}
	v.Next = []string{}
	for at := t.cfg.Now(); !v.Paused && times != nil && len(v.Next) < nextTimes; {
		if at = times.Next(at); at.IsZero() {
			break
		}
		v.Next = append(v.Next, at.UTC().Format(time.RFC3339))
	}
	r, err := t.cfg.Store.LastKeyed(ctx, tenant, keyPrefix(v.ID))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var meta struct {
		Due string `json:"due"`
	}
	_ = json.Unmarshal(r.Metadata, &meta) // a run that says nothing of it was due all the same
	v.LastRun = &LastRun{RunID: r.ID, SessionID: r.SessionID, Status: r.Status, Due: meta.Due, CreatedAt: stamp(r.Created)}
	return nil
}
