package timetable

import (
	"testing"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/store"
)

// A schedule that has become wrong (its profile is gone, a schedule of the configuration
// has its name now, its plan can not be read) can still be stopped, put right and deleted.
func TestWhatBecameWrongCanBeStopped(t *testing.T) {
	r := open(t)
	v := made(t, r.table(), "acme", request("nightly", "0 3 * * *"))
	ref := engine.Ref{Tenant: "acme", ID: v.ID}
	table := r.table(nightly("acme"))
	table.cfg.Knows = func(string, string) error { return fault.New(fault.NotFound, "no profile is named so") }
	if v, err := table.Update(t.Context(), ref, Request{Paused: p(true)}); err != nil || !v.Paused {
		t.Errorf("%+v, %v", v, err)
	}
	for _, req := range []Request{{Paused: p(false)}, {Profile: p("demo")}} {
		if _, err := table.Update(t.Context(), ref, req); fault.KindOf(err) != fault.Invalid {
			t.Errorf("it goes on without its profile: %v", err)
		}
	}
	table = r.table(nightly("acme"))
	if _, err := table.Update(t.Context(), ref, Request{Name: p("nightly"), Paused: p(false)}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("it takes the name of another: %v", err)
	}
	if _, err := table.Update(t.Context(), ref, Request{Name: p("mine"), Paused: p(false)}); err != nil {
		t.Error(err)
	}
	row, err := r.st.Schedule(t.Context(), "acme", v.ID)
	if err != nil {
		t.Fatal(err)
	}
	row.Revision++
	if err := r.st.Commit(t.Context(), &store.Tx{Tenant: "acme", Schedules: []store.ScheduleChange{{ID: row.ID, Name: row.Name, Plan: []byte("{"), ScheduleUpdate: row.ScheduleUpdate}}}); err != nil {
		t.Fatal(err)
	}
	if v, err := table.Get(t.Context(), ref); err != nil || v.Problem == "" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := table.Delete(t.Context(), ref); err != nil {
		t.Errorf("it says to delete it, and can not be deleted: %v", err)
	}
}
