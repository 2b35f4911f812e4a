package server_test

import (
	"context"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/server"
	"agentd/internal/timetable"
)

// planned are the schedules of a tenant: sch_1 is there.
type planned struct{}

func (planned) view() *timetable.View {
	return &timetable.View{ID: "sch_1", Name: "nightly", Source: "api", Cron: "0 3 * * *", TimeZone: "UTC", Profile: "test", Input: "x", Session: "new", WhenBusy: "reject", CatchUp: "0s",
		Next: []string{"2026-01-02T03:00:00Z"}}
}

func (p planned) List(_ context.Context, _, cursor string, limit int) ([]*timetable.View, string, error) {
	if cursor != "" {
		return nil, "", nil
	}
	return []*timetable.View{p.view()}, "next", nil
}

func (p planned) Get(_ context.Context, ref engine.Ref) (*timetable.View, error) {
	if ref.ID != "sch_1" {
		return nil, fault.New(fault.NotFound, "there is no schedule "+ref.ID)
	}
	return p.view(), nil
}

func (p planned) Create(_ context.Context, _ string, req timetable.Request) (*timetable.View, error) {
	v := p.view()
	v.Name = *req.Name
	return v, nil
}

func (p planned) Update(ctx context.Context, ref engine.Ref, req timetable.Request) (*timetable.View, error) {
	v, err := p.Get(ctx, ref)
	if err == nil && req.Paused != nil {
		v.Paused = *req.Paused
	}
	return v, err
}

func (p planned) Delete(ctx context.Context, ref engine.Ref) error {
	_, err := p.Get(ctx, ref)
	return err
}

func (p planned) Trigger(ctx context.Context, ref engine.Ref, key string) (*engine.Run, error) {
	_, err := p.Get(ctx, ref)
	return &engine.Run{ID: "run_" + key, SessionID: "ses_1", Status: "queued"}, err
}

func TestSchedules(t *testing.T) {
	a := start(t, &server.Options{Schedules: planned{}})
	const one = `{"schedule_id":"sch_1","name":"nightly","source":"api","cron":"0 3 * * *","time_zone":"UTC","profile":"test","input":"x","session":"new","when_busy":"reject","catch_up":"0s","paused":false,"next":["2026-01-02T03:00:00Z"]}`
	for _, c := range []struct {
		method, path, body, header string
		status                     int
		want                       string
	}{
		{"GET", "/schedules?limit=1", "", "", 200, `{"schedules":[` + one + `],"cursor":"next"}`},
		{"GET", "/schedules?cursor=next", "", "", 200, `{"schedules":[]}`},
		{"GET", "/schedules?limit=x", "", "", 400, `limit`},
		{"POST", "/schedules", `{"name":"n","cron":"0 3 * * *","profile":"test","input":"x"}`, "", 201, `"name":"n"`},
		{"POST", "/schedules", `{"name":"n","evry":"day"}`, "", 400, `evry`},
		{"GET", "/schedules/sch_1", "", "", 200, one},
		{"GET", "/schedules/sch_2", "", "", 404, `no schedule sch_2`},
		{"PATCH", "/schedules/sch_1", `{"paused":true}`, "", 200, `"paused":true`},
		{"PATCH", "/schedules/sch_2", `{"paused":true}`, "", 404, `no schedule sch_2`},
		{"POST", "/schedules/sch_1/trigger", "", "Idempotency-Key: k", 201, `{"run_id":"run_k","session_id":"ses_1","status":"queued"}`},
		{"POST", "/schedules/sch_2/trigger", "", "", 404, `no schedule sch_2`},
		{"POST", "/schedules/sch_1/trigger", `{"a":1}`, "", 400, `a`},
		{"DELETE", "/schedules/sch_1", "", "", 204, ``},
		{"DELETE", "/schedules/sch_2", "", "", 404, `no schedule sch_2`},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{c.header}
		}
		if r := a.do(c.method, c.path, c.body, headers...); r.status != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	if r := start(t, nil).do("GET", "/schedules", ""); r.status != 501 {
		t.Errorf("without any: %d %s", r.status, r.body)
	}
}
