package timetable

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/schedule"
	"agentd/internal/store"
	"agentd/message"
)

// late is how late a run may be started that was due while a node was there.
const late = time.Minute

// keyPrefix begins the idempotency keys of a schedule's runs. What follows is the time
// in Unix seconds, so that the last of them is that of the newest run.
func keyPrefix(id string) string { return "schedule/" + id + "/" }

// itemID is what a runner calls a schedule: those of the configuration have no tenant
// in it, because their names are theirs alone.
func itemID(tenant, id string) string { return tenant + "/" + id }

// Load gives the items that a runner is to tell of: all but those that are paused.
func (t *Table) Load(ctx context.Context) ([]schedule.Item, error) {
	var items []schedule.Item
	for i := range t.fixed {
		f := &t.fixed[i]
		times, err := schedule.Parse(f.Cron, f.TimeZone)
		if err != nil || f.Paused {
			continue // what is wrong was refused when it was read
		}
		items = append(items, schedule.Item{ID: f.Name, Times: times, CatchUp: time.Duration(f.CatchUpMS) * time.Millisecond})
	}
	for cursor := ""; ; {
		rows, next, err := t.cfg.Store.Schedules(ctx, "", store.ScheduleFilter{AllTenants: true, Cursor: cursor, Limit: 500})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			p, err := planOf(row)
			var times *schedule.Times
			if err == nil {
				times, err = schedule.Parse(p.Cron, p.TimeZone)
			}
			if err != nil {
				t.cfg.Log.Error("a schedule can not be read and starts nothing", "schedule", row.ID, "tenant", row.Tenant, "error", err)
				continue
			}
			if !row.Paused {
				items = append(items, schedule.Item{ID: itemID(row.Tenant, row.ID), Times: times, CatchUp: time.Duration(p.CatchUpMS) * time.Millisecond,
					Since: time.UnixMilli(p.Since), Revision: row.Revision})
			}
		}
		if cursor = next; cursor == "" {
			return items, nil
		}
	}
}

// Run starts runs when they are due, until ctx ends. Every node of a store may do so.
func (t *Table) Run(ctx context.Context) {
	r := schedule.NewRunner(t.Fire)
	defer r.Close()
	look := time.NewTicker(t.cfg.Poll)
	defer look.Stop()
	for fails := 0; ; {
		items, err := t.Load(ctx)
		if err == nil {
			r.Set(items)
			fails = 0
		} else if ctx.Err() == nil {
			if fails++; fails == 1 {
				t.cfg.Log.Warn("the schedules can not be read; those that are known go on, and it is tried again", "error", err)
			}
		}
		select {
		case <-look.C:
		case <-t.kick:
		case <-ctx.Done():
			return
		}
	}
}

// due is a schedule with what its runs are made of.
type due struct {
	tenant, id, name string
	Plan
	times *schedule.Times
}

// Fire starts the run of a time that is due, unless it is over, or the schedule is no
// longer what it was. It is a schedule.Fire.
func (t *Table) Fire(ctx context.Context, item string, at time.Time) error {
	d, err := t.due(ctx, item, at)
	if d == nil || err != nil {
		return err
	}
	now := t.cfg.Now()
	if catchUp := time.Duration(d.CatchUpMS) * time.Millisecond; now.Sub(at) > late && (now.Sub(at) > catchUp+late || !d.times.Last(at, now).IsZero()) {
		t.cfg.Log.Warn("a scheduled run is left out: it is too late for it", "schedule", d.name, "due", at.Format(time.RFC3339))
		return nil
	}
	r, err := t.start(ctx, d, map[string]string{"due": at.UTC().Format(time.RFC3339)}, fmt.Sprint(keyPrefix(d.id), at.Unix()))
	switch {
	case err == nil:
		t.cfg.Log.Info("a scheduled run was started", "schedule", d.name, "due", at.Format(time.RFC3339), "run", r.ID)
	case fault.KindOf(err) == fault.Conflict:
		t.cfg.Log.Info("a scheduled run is left out: the last one is under way, or the schedule was changed as it was due", "schedule", d.name, "due", at.Format(time.RFC3339))
	default:
		t.cfg.Log.Error("a scheduled run can not be started", "schedule", d.name, "due", at.Format(time.RFC3339), "error", err)
	}
	return err
}

// due gives what is due, as it is now, or nil.
func (t *Table) due(ctx context.Context, item string, at time.Time) (*due, error) {
	tenant, id, made := strings.Cut(item, "/")
	if !made {
		for i := range t.fixed {
			if f := &t.fixed[i]; f.Name == item && !f.Paused {
				times, err := schedule.Parse(f.Cron, f.TimeZone)
				return &due{f.Tenant, f.Name, f.Name, f.Plan, times}, err
			}
		}
		return nil, nil // it was taken out of the configuration
	}
	row, p, err := t.row(ctx, engine.Ref{Tenant: tenant, ID: id})
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil // it was deleted
	}
	if err != nil {
		return nil, err
	}
	times, err := schedule.Parse(p.Cron, p.TimeZone)
	if err != nil || row.Paused || at.UnixMilli() < p.Since || !times.Next(at.Add(-time.Second)).Equal(at) {
		return nil, nil // it was paused or changed
	}
	return &due{tenant, id, row.Name, p, times}, nil
}

// Trigger starts a run of a schedule now, also of one that is paused. A key makes a
// repetition give the first run, which is then not shown as the schedule's last.
func (t *Table) Trigger(ctx context.Context, ref engine.Ref, key string) (*engine.Run, error) {
	d := &due{tenant: ref.Tenant, id: ref.ID}
	if f := t.find(ref); f != nil {
		d.name, d.Plan = f.Name, f.Plan
	} else {
		row, p, err := t.row(ctx, ref)
		if err != nil {
			return nil, err
		}
		d.name, d.Plan = row.Name, p
	}
	if key == "" {
		// It sorts behind what is due at this second, and ahead of what is due later.
		key = fmt.Sprint(keyPrefix(d.id), t.cfg.Now().Unix(), "+", t.cfg.NewID())
	}
	r, err := t.start(ctx, d, map[string]string{"triggered": "true"}, key)
	if err == nil {
		t.cfg.Log.Info("a schedule was triggered", "schedule", d.name, "run", r.ID)
	}
	return r, err
}

// start starts a run.
func (t *Table) start(ctx context.Context, d *due, meta map[string]string, key string) (*engine.Run, error) {
	meta["schedule"] = d.name
	if strings.HasPrefix(d.id, IDPrefix) {
		meta["schedule_id"] = d.id
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	req := engine.StartRequest{Tenant: d.tenant, Profile: d.Profile, Input: []message.Block{message.Text(d.Input)}, Mode: engine.Autonomous, SessionMode: d.SessionMode, Metadata: raw, Scheduled: true, IdempotencyKey: key}
	if d.Session == "one" {
		ses, err := t.session(ctx, d)
		if err != nil {
			return nil, err
		}
		req.SessionID, req.WhenBusy = ses.ID, engine.WhenBusy(d.WhenBusy)
	}
	return t.cfg.Runs.Start(ctx, req)
}

// session gives the session of all runs of a schedule.
func (t *Table) session(ctx context.Context, d *due) (*engine.SessionView, error) {
	title := d.Title
	if title == "" {
		title = d.name
	}
	return t.cfg.Runs.CreateSession(ctx, engine.SessionRequest{Tenant: d.tenant, Title: title, IdempotencyKey: "schedule/" + d.id})
}
