package temporal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentd/fault"
	"agentd/internal/schedule"
)

const (
	fireWorkflow = "agentd.fire.workflow"
	fireActivity = "agentd.fire"
	// leastCatchUp is the least that Temporal takes.
	leastCatchUp = time.Minute
	// rearrange is how often each node brings Temporal's schedules up to date.
	rearrange = time.Minute
)

// Due is what a workflow knows of a schedule.
type Due struct {
	Schedule string `json:"schedule"`
	// At is the time that was due, in Unix seconds.
	At int64 `json:"at,omitempty"`
}

// schedules is what is done at certain times.
type schedules struct {
	load func(ctx context.Context) ([]schedule.Item, error)
	fire schedule.Fire
	kick chan struct{}
}

// Schedule has Temporal tell when items are due, from Work on: its schedules become what
// load gives, now, each minute and when Rearrange is called. It is called once, ahead of
// Work. Each time is told to one worker, and again while that fails.
func (x *Executor) Schedule(load func(ctx context.Context) ([]schedule.Item, error), fire schedule.Fire) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.schedules = &schedules{load, fire, make(chan struct{}, 1)}
	s := x.schedules
	x.wg.Go(func() { x.arrange(s) })
}

// Rearrange brings Temporal's schedules up to date soon. It does not wait.
func (x *Executor) Rearrange() {
	x.mu.Lock()
	s := x.schedules
	x.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// register registers what fires. It is there also for a worker whose configuration has
// no schedules.
func (s *schedules) register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(fires, workflow.RegisterOptions{Name: fireWorkflow})
	r.RegisterActivityWithOptions(func(ctx context.Context, d Due) error {
		err := s.fire(ctx, d.Schedule, time.Unix(d.At, 0).UTC())
		switch fault.KindOf(err) {
		case fault.Unavailable, fault.Timeout, fault.Internal:
			return later("the scheduled run can not be started now", err, 5*time.Second)
		}
		return nil // it was started, or never will be: the log says why
	}, activity.RegisterOptions{Name: fireActivity})
}

// fires is the workflow of one time. Like that of runs it must replay.
func fires(ctx workflow.Context, d Due) error {
	due, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime"))
	if !ok {
		due = workflow.GetInfo(ctx).WorkflowStartTime.Truncate(time.Minute) // somebody started it by hand
	}
	d.At = due.Unix()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: time.Hour})
	return workflow.ExecuteActivity(ctx, fireActivity, d).Get(ctx, nil)
}

// scheduleID is the id that a schedule has in Temporal.
func (q queues) scheduleID(id string) string { return q.prefix + "/" + id }

// arrange makes Temporal's schedules those that there are, now and again, until Close.
func (x *Executor) arrange(s *schedules) {
	for fails := 0; ; fails++ {
		wait := rearrange
		if err := x.arrangeOnce(s); err == nil {
			fails = -1
		} else {
			wait = min(time.Minute, time.Second<<min(fails, 6))
			if fails == 0 && x.ctx.Err() == nil {
				x.opts.Log.Warn("the schedules could not be handed to Temporal; it is tried again", "error", err)
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.kick:
			t.Stop()
		case <-x.ctx.Done():
			t.Stop()
			return
		}
	}
}

// arrangeOnce looks at what Temporal has before it looks at what there is: so what
// another node makes meanwhile is not taken for something that is gone. One that
// Temporal refuses keeps no other back: they are of all tenants.
func (x *Executor) arrangeOnce(s *schedules) error {
	ctx, cancel := context.WithTimeout(x.ctx, time.Minute)
	defer cancel()
	c := x.client.ScheduleClient()
	have := map[string]string{}
	list, err := c.List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return err
	}
	for list.HasNext() {
		e, err := list.Next()
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.ID, x.queues.scheduleID("")) {
			have[e.ID] = e.Note
		}
	}
	items, err := s.load(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, it := range items {
		id := x.queues.scheduleID(it.ID)
		if have[id] != noteOf(&it) && ctx.Err() == nil {
			if err := x.arrangeItem(ctx, c, &it); err != nil {
				failed = append(failed, fmt.Errorf("schedule %s (%s): %w", it.ID, it.Times.Cron(), err))
			}
		}
		delete(have, id)
	}
	for _, id := range slices.Sorted(maps.Keys(have)) {
		var gone *serviceerror.NotFound
		if err := c.GetHandle(ctx, id).Delete(ctx); err != nil && !errors.As(err, &gone) {
			failed = append(failed, fmt.Errorf("schedule %s, which is to go: %w", id, err))
		}
	}
	if len(failed) == 0 {
		return ctx.Err()
	}
	const most = 5 // are told of: they are tried again together
	return errors.Join(failed[:min(most, len(failed))]...)
}

// noteOf is what a schedule's note in Temporal says: which revision it is, and of what.
func noteOf(it *schedule.Item) string {
	return fmt.Sprintf("agentd %d: %s %s, %s", it.Revision, it.Times.Cron(), it.Times.Zone(), it.CatchUp)
}

// revisionOf is the revision that a note says, or -1.
func revisionOf(note string) int64 {
	var n int64
	if _, err := fmt.Sscanf(note, "agentd %d:", &n); err != nil {
		return -1
	}
	return n
}

func (x *Executor) arrangeItem(ctx context.Context, c client.ScheduleClient, it *schedule.Item) error {
	id, note := x.queues.scheduleID(it.ID), noteOf(it)
	spec := client.ScheduleSpec{CronExpressions: []string{it.Times.Lists()}, TimeZoneName: it.Times.Zone()}
	action := &client.ScheduleWorkflowAction{ID: "schedule/" + id, Workflow: fireWorkflow, Args: []any{Due{Schedule: it.ID}}, TaskQueue: x.queues.runs()}
	catchUp := max(it.CatchUp, leastCatchUp)
	_, err := c.Create(ctx, client.ScheduleOptions{ID: id, Spec: spec, Action: action, Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: catchUp, Note: note})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return c.GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		s := in.Description.Schedule
		if s.State == nil {
			s.State = &client.ScheduleState{}
		}
		if revisionOf(s.State.Note) > it.Revision {
			return nil, temporal.ErrSkipScheduleUpdate // another node knows more
		}
		s.Spec, s.Action, s.State.Note = &spec, action, note
		s.Policy = &client.SchedulePolicies{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: catchUp}
		return &client.ScheduleUpdate{Schedule: &s}, nil
	}})
}
