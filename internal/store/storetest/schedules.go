package storetest

import (
	"encoding/json"
	"strings"
	"sync"

	"agentd/fault"
	"agentd/internal/store"
)

func schedule(id, tenant string) *store.Schedule {
	return &store.Schedule{ID: id, Name: "name of " + id, Tenant: tenant, Plan: json.RawMessage(`{"cron":"0 3 * * *"}`), Created: 1000,
		ScheduleUpdate: store.ScheduleUpdate{Revision: 1, Updated: 1000}}
}

func testSchedules(f *fixture) {
	const other = "tenant-b"
	ctx := f.Context()
	full := schedule("s1", tenant)
	full.Paused = true
	filled(f, full)
	f.commit(&store.Tx{NewSchedules: []*store.Schedule{full, schedule("s2", tenant)}})
	f.commit(&store.Tx{Tenant: other, NewSchedules: []*store.Schedule{schedule("s1", other)}}) // ids are each tenant's
	f.again()
	equal(f, "schedule", ok[*store.Schedule](f)(f.store.Schedule(ctx, tenant, "s1")), full)
	equal(f, "schedule of the other", ok[*store.Schedule](f)(f.store.Schedule(ctx, other, "s1")), schedule("s1", other))
	for _, at := range [][2]string{{other, "s2"}, {tenant, "no"}, {"nobody", "s1"}} {
		if _, err := f.store.Schedule(ctx, at[0], at[1]); fault.KindOf(err) != fault.NotFound {
			f.Fatalf("%v: %v", at, err)
		}
	}
	list := func(tenant string, sf store.ScheduleFilter, want string, more bool) string {
		f.Helper()
		s, cursor, err := f.store.Schedules(ctx, tenant, sf)
		if got := strings.Join(ids(s, func(s *store.Schedule) string { return s.Tenant + "/" + s.ID }), " "); err != nil || got != want || (cursor != "") != more {
			f.Fatalf("%q %+v: %q, cursor %q, %v; want %q", tenant, sf, got, cursor, err, want)
		}
		return cursor
	}
	list(tenant, store.ScheduleFilter{}, "tenant-a/s1 tenant-a/s2", false)
	list("nobody", store.ScheduleFilter{}, "", false)
	cursor := list("", store.ScheduleFilter{AllTenants: true, Limit: 2}, "tenant-a/s1 tenant-a/s2", true)
	list("", store.ScheduleFilter{AllTenants: true, Limit: 2, Cursor: cursor}, "tenant-b/s1", false)
	cursor = list(tenant, store.ScheduleFilter{Limit: 1}, "tenant-a/s1", true)
	list(other, store.ScheduleFilter{Cursor: cursor}, "tenant-b/s1", false)
	if _, _, err := f.store.Schedules(ctx, tenant, store.ScheduleFilter{Cursor: "?"}); fault.KindOf(err) != fault.Invalid {
		f.Fatalf("a cursor that is none: %v", err)
	}

	// A change says what it changes; names are unique in a tenant.
	change := store.ScheduleChange{ID: "s1", Name: "another name", Plan: json.RawMessage(`{"cron":"0 4 * * *"}`), ScheduleUpdate: store.ScheduleUpdate{Revision: 2, Updated: 2000}}
	f.refused(&store.Tx{Tenant: "nobody", Schedules: []store.ScheduleChange{change}}, store.ErrNotFound)
	f.commit(&store.Tx{Schedules: []store.ScheduleChange{change}})
	f.refused(&store.Tx{Schedules: []store.ScheduleChange{change}}, store.ErrConflict)
	want := schedule("s1", tenant)
	want.Name, want.Plan, want.ScheduleUpdate = change.Name, change.Plan, change.ScheduleUpdate
	equal(f, "changed", ok[*store.Schedule](f)(f.store.Schedule(ctx, tenant, "s1")), want)
	equal(f, "the other's", ok[*store.Schedule](f)(f.store.Schedule(ctx, other, "s1")), schedule("s1", other))
	taken := change
	taken.Name, taken.Revision = "name of s2", 3
	f.refused(&store.Tx{Schedules: []store.ScheduleChange{taken}}, store.ErrConflict)
	again := schedule("s3", tenant)
	again.Name = "name of s2"
	f.refused(&store.Tx{NewSchedules: []*store.Schedule{again}}, store.ErrConflict)
	f.refused(&store.Tx{NewSchedules: []*store.Schedule{schedule("s2", tenant)}}, store.ErrConflict)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			c := change
			c.Revision = 3
			errs[i] = f.commitIn(ctx, &store.Tx{Schedules: []store.ScheduleChange{c}})
		})
	}
	wg.Wait()
	f.oneWinner(errs, func(err error) bool { return fault.KindOf(err) == fault.Conflict })

	f.refused(&store.Tx{Tenant: other, DropSchedules: []string{"s2"}}, store.ErrNotFound)
	f.commit(&store.Tx{DropSchedules: []string{"s2"}})
	f.refused(&store.Tx{DropSchedules: []string{"s2"}}, store.ErrNotFound)
	f.again()
	list("", store.ScheduleFilter{AllTenants: true}, "tenant-a/s1 tenant-b/s1", false)

	for name, broken := range map[string]func(s *store.Schedule){
		"no id":          func(s *store.Schedule) { s.ID = "" },
		"no name":        func(s *store.Schedule) { s.Name = "" },
		"no plan":        func(s *store.Schedule) { s.Plan = nil },
		"no revision":    func(s *store.Schedule) { s.Revision = 0 },
		"another tenant": func(s *store.Schedule) { s.Tenant = other },
	} {
		s := schedule("s9", tenant)
		broken(s)
		if err := f.commitIn(ctx, &store.Tx{NewSchedules: []*store.Schedule{s}}); fault.KindOf(err) != fault.Invalid {
			f.Errorf("%s: %v", name, err)
		}
	}
}

// The run whose key is the last of those with a prefix is found, whenever it was made.
func testLastKeyed(f *fixture) {
	ctx := f.Context()
	for _, c := range [][2]string{{"r2", "schedule/a/200"}, {"r1", "schedule/a/100"}, {"r3", "schedule/ab/300"}, {"r4", "schedule/a0"}, {"r5", ""}} {
		r := run(c[0], "s"+c[0], "completed")
		r.IdempotencyKey = c[1]
		f.commit(&store.Tx{NewSessions: []*store.Session{{ID: r.SessionID, Created: 1, Updated: 1}}, NewRuns: []*store.Run{r}})
	}
	f.again()
	for prefix, want := range map[string]string{"schedule/a/": "r2", "schedule/ab/": "r3", "schedule/c/": "", "schedule/a/1": "r1"} {
		r, err := f.store.LastKeyed(ctx, tenant, prefix)
		if want == "" {
			if fault.KindOf(err) != fault.NotFound {
				f.Errorf("%s: %+v, %v", prefix, r, err)
			}
			continue
		}
		if err != nil || r.ID != want {
			f.Errorf("%s: %+v, %v", prefix, r, err)
		}
	}
	if _, err := f.store.LastKeyed(ctx, "tenant-b", "schedule/a/"); fault.KindOf(err) != fault.NotFound {
		f.Errorf("another tenant: %v", err)
	}
}
