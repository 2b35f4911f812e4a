package agentd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/schedule"
)

// late is how late a run may be started that was due while a server was there.
const late = time.Minute

// schedule starts runs when they are due. Every node of a store does: a run has a key
// of its schedule and the time that was due, so that there is one of it.
func (rt *Runtime) schedule(all []profile.Schedule) {
	plans := map[string]*plan{}
	var items []schedule.Item
	for _, s := range all {
		times, err := schedule.Parse(s.Cron, s.TimeZone)
		if err != nil || s.Paused {
			continue // what is wrong was refused when it was read
		}
		it := schedule.Item{ID: s.Name, Times: times, CatchUp: s.CatchUp.Std()}
		plans[s.Name] = &plan{s, it}
		items = append(items, it)
	}
	fire := func(ctx context.Context, id string, due time.Time) error {
		p := plans[id]
		if p == nil {
			return nil // it was taken out of the configuration
		}
		return rt.fire(ctx, p, due)
	}
	if rt.distributor != nil {
		rt.distributor.x.Schedule(items, fire)
		return
	}
	if len(items) == 0 {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		schedule.Run(ctx, items, fire)
	}()
	rt.endSchedules = func() {
		end()
		<-done
	}
}

// plan is a schedule with its times.
type plan struct {
	profile.Schedule
	item schedule.Item
}

// fire starts the run of a time, unless that is over.
func (rt *Runtime) fire(ctx context.Context, p *plan, due time.Time) error {
	now := time.Now()
	if now.Sub(due) > late && (now.Sub(due) > p.item.CatchUp+late || !p.item.Times.Last(due, now).IsZero()) {
		rt.log.Warn("a scheduled run is left out: it is too late for it", "schedule", p.Name, "due", due.Format(time.RFC3339))
		return nil
	}
	meta, err := json.Marshal(map[string]string{"schedule": p.Name, "due": due.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	req := engine.StartRequest{Tenant: p.Tenant, Profile: p.Profile, Input: Text(p.Input), Mode: engine.Autonomous, Metadata: meta, Scheduled: true,
		IdempotencyKey: fmt.Sprintf("schedule/%s/%d", p.Name, due.Unix())}
	if p.Session == "one" {
		ses, err := rt.engine.CreateSession(ctx, engine.SessionRequest{Tenant: p.Tenant, Title: p.Name, IdempotencyKey: "schedule/" + p.Name})
		if err != nil {
			return err
		}
		req.SessionID, req.WhenBusy = ses.ID, engine.WhenBusy(p.WhenBusy)
	}
	r, err := rt.engine.Start(ctx, req)
	switch {
	case err == nil:
		rt.log.Info("a scheduled run was started", "schedule", p.Name, "due", due.Format(time.RFC3339), "run", r.ID)
	case fault.KindOf(err) == fault.Conflict:
		rt.log.Info("a scheduled run is left out: the last one is under way, or the schedule was changed as it was due", "schedule", p.Name, "due", due.Format(time.RFC3339))
	default:
		rt.log.Error("a scheduled run can not be started", "schedule", p.Name, "due", due.Format(time.RFC3339), "error", err)
	}
	return err
}
