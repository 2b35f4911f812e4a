package agentd

import (
	"context"

	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/timetable"
)

type (
	// Schedule is what starts runs at certain times, as callers see it.
	Schedule = timetable.View
	// ScheduleRequest makes or changes a schedule: what is nil stays as it is, or is
	// the default.
	ScheduleRequest = timetable.Request
)

// newTimetable makes the timetable of a configuration and its store.
func (rt *Runtime) newTimetable(conf *profile.Config) *timetable.Table {
	var fixed []timetable.Fixed
	for _, s := range conf.Settings.Schedules {
		fixed = append(fixed, timetable.Fixed{Name: s.Name, Tenant: s.Tenant, Paused: s.Paused, Plan: timetable.Plan{Cron: s.Cron, TimeZone: s.TimeZone,
			Profile: s.Profile, Input: s.Input, Session: s.Session, WhenBusy: s.WhenBusy, SessionMode: s.SessionMode, CatchUpMS: s.CatchUp.Std().Milliseconds()}})
	}
	return timetable.New(timetable.Config{Store: rt.store, Runs: rt.engine, Fixed: fixed, Log: rt.log, Max: conf.Settings.Limits.MaxSchedules,
		Poll:  conf.Settings.Cluster.ScheduleInterval.Std(),
		Knows: func(_, name string) error { return rt.Knows(name) },
		Changed: func() {
			if rt.distributor != nil {
				rt.distributor.x.Rearrange()
			}
		}})
}

// schedule starts runs when they are due. Every node of a store does: a run has a key
// of its schedule and the time that was due, so that there is one of it.
func (rt *Runtime) schedule() {
	if rt.dormant {
		return // it comes and goes
	}
	if rt.distributor != nil {
		rt.distributor.x.Schedule(rt.timetable.Load, rt.timetable.Fire)
		return
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		rt.timetable.Run(ctx)
	}()
	rt.endSchedules = func() {
		end()
		<-done
	}
}

// Schedules lists schedules: those of the configuration by name, then those that people
// made, oldest first. cursor is "" when there are no more.
func (rt *Runtime) Schedules(ctx context.Context, cursor string, limit int) (schedules []*Schedule, next string, err error) {
	return rt.timetable.List(ctx, rt.tenant, cursor, limit)
}

// Schedule gives a schedule.
func (rt *Runtime) Schedule(ctx context.Context, id string) (*Schedule, error) {
	return rt.timetable.Get(ctx, rt.ref(id))
}

// CreateSchedule makes a schedule. A name that is taken is a conflict.
func (rt *Runtime) CreateSchedule(ctx context.Context, req ScheduleRequest) (*Schedule, error) {
	if err := rt.writable("CreateSchedule"); err != nil {
		return nil, err
	}
	return rt.timetable.Create(ctx, rt.tenant, req)
}

// UpdateSchedule changes a schedule that people made; Paused stops it and lets it go on.
func (rt *Runtime) UpdateSchedule(ctx context.Context, id string, req ScheduleRequest) (*Schedule, error) {
	if err := rt.writable("UpdateSchedule"); err != nil {
		return nil, err
	}
	return rt.timetable.Update(ctx, rt.ref(id), req)
}

// DeleteSchedule ends a schedule that people made. The runs that it started stay.
func (rt *Runtime) DeleteSchedule(ctx context.Context, id string) error {
	if err := rt.writable("DeleteSchedule"); err != nil {
		return err
	}
	return rt.timetable.Delete(ctx, rt.ref(id))
}

// TriggerSchedule starts a run of a schedule now, also of one that is paused.
func (rt *Runtime) TriggerSchedule(ctx context.Context, id string) (*Run, error) {
	if err := rt.writable("TriggerSchedule"); err != nil {
		return nil, err
	}
	return rt.timetable.Trigger(ctx, rt.ref(id), "")
}

var _ timetable.Runs = (*engine.Engine)(nil)
