package client_test

import (
	"testing"

	"agentd/client"
	"agentd/fault"
)

func TestSchedules(t *testing.T) {
	c, _, _ := serve(t)
	ctx := timeout(t)
	text := func(s string) *string { return &s }
	yes := true
	req := client.ScheduleRequest{Name: text("nightly"), Cron: text("0 3 * * *"), Profile: text("demo"), Input: text("Have a look"), Paused: &yes}
	s, err := c.CreateSchedule(ctx, req)
	if err != nil || s.ID == "" || s.Source != "api" || !s.Paused || s.TimeZone != "UTC" || s.CatchUp != "0s" {
		t.Fatal(s, err)
	}
	if _, err := c.CreateSchedule(ctx, req); fault.KindOf(err) != fault.Conflict {
		t.Errorf("made twice: %v", err)
	}
	no := false
	if s, err = c.UpdateSchedule(ctx, s.ID, client.ScheduleRequest{Paused: &no, TimeZone: text("Europe/Berlin")}); err != nil || s.Paused || len(s.Next) != 3 || s.TimeZone != "Europe/Berlin" {
		t.Errorf("%+v, %v", s, err)
	}
	r, err := c.TriggerSchedule(ctx, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, c, r.ID, 0)
	if got, err := c.Schedule(ctx, s.ID); err != nil || got.LastRun == nil || got.LastRun.RunID != r.ID || got.LastRun.Status != client.Completed {
		t.Errorf("%+v, %v", got, err)
	}
	if all, next, err := c.Schedules(ctx, "", 1); err != nil || len(all) != 1 || next != "" {
		t.Errorf("%+v, %q, %v", all, next, err)
	}
	if err := c.DeleteSchedule(ctx, s.ID); err != nil {
		t.Error(err)
	}
	if err := c.DeleteSchedule(ctx, s.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
}
