package temporal

import (
	"context"
	"errors"
	"strings"
	"time"

	enums "go.temporal.io/api/enums/v1"
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
	// rearrange is how often a worker brings Temporal's schedules up to date.
	rearrange = 10 * time.Minute
)

// Due is what a workflow knows of a schedule.
type Due struct {
	Schedule string `json:"schedule"`
	// At is the time that was due, in Unix seconds.
	At int64 `json:"at,omitempty"`
}

// schedules is what a worker does at certain times.
type schedules struct {
	items []schedule.Item
	fire  schedule.Fire
}

// Schedule has Temporal tell when items are due, from Work on: its schedules become
// these. It is called once, ahead of Work. Each time is told to one worker, and again
// while that fails.
func (x *Executor) Schedule(items []schedule.Item, fire schedule.Fire) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.schedules = &schedules{items, fire}
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

// arrange makes Temporal's schedules those of the configuration, now and again.
func (x *Executor) arrange(s *schedules, stop <-chan struct{}) {
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
		case <-stop:
			t.Stop()
			return
		case <-x.ctx.Done():
			t.Stop()
			return
		}
	}
}

func (x *Executor) arrangeOnce(s *schedules) error {
	ctx, cancel := context.WithTimeout(x.ctx, time.Minute)
	defer cancel()
	c := x.client.ScheduleClient()
	want := map[string]bool{}
	for _, it := range s.items {
		want[x.queues.scheduleID(it.ID)] = true
		if err := x.arrangeItem(ctx, c, &it); err != nil {
			return err
		}
	}
	list, err := c.List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return err
	}
	for list.HasNext() {
		e, err := list.Next()
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.ID, x.queues.scheduleID("")) && !want[e.ID] {
			if err := c.GetHandle(ctx, e.ID).Delete(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Executor) arrangeItem(ctx context.Context, c client.ScheduleClient, it *schedule.Item) error {
	id := x.queues.scheduleID(it.ID)
	spec := client.ScheduleSpec{CronExpressions: []string{it.Times.Cron()}, TimeZoneName: it.Times.Zone()}
	action := &client.ScheduleWorkflowAction{ID: "schedule/" + id, Workflow: fireWorkflow, Args: []any{Due{Schedule: it.ID}}, TaskQueue: x.queues.runs()}
	catchUp := max(it.CatchUp, leastCatchUp)
	_, err := c.Create(ctx, client.ScheduleOptions{ID: id, Spec: spec, Action: action, Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: catchUp})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return c.GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		s := in.Description.Schedule
		s.Spec, s.Action = &spec, action
		s.Policy = &client.SchedulePolicies{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: catchUp}
		return &client.ScheduleUpdate{Schedule: &s}, nil
	}})
}
