package timetable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
)

// runs is what starts runs: as rows of the store, so that a key makes one.
type runs struct {
	st   *sqlite.Store
	mu   sync.Mutex
	fail error // of a start that happened all the same
	n    int
	told []string
	mode string // of the session, as the last start had it
}

func (r *runs) fails(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

func (r *runs) Start(ctx context.Context, req engine.StartRequest) (*engine.Run, error) {
	r.mu.Lock()
	r.n++
	r.mode = req.SessionMode
	id, fail := fmt.Sprint("run_", time.Now().UnixNano(), "_", r.n), r.fail
	r.mu.Unlock()
	ses, tx := req.SessionID, &store.Tx{Tenant: req.Tenant}
	if ses == "" {
		ses = "ses_" + id
		tx.NewSessions = []*store.Session{{ID: ses, Created: 1, Updated: 1}}
	}
	tx.NewRuns = []*store.Run{{ID: id, SessionID: ses, Created: time.Now().UnixMilli(), Mode: req.Mode, IdempotencyKey: req.IdempotencyKey, Metadata: req.Metadata, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 1}}}
	err := r.st.Commit(ctx, tx)
	var exists *store.ExistsError
	switch {
	case errors.As(err, &exists):
		id, err = exists.RunID, nil
	case err == nil:
		r.mu.Lock()
		r.told = append(r.told, fmt.Sprint(req.Input[0].Text, " ", time.Now().UTC().Format("15:04:05")))
		r.mu.Unlock()
	}
	if err == nil {
		err = fail
	}
	return &engine.Run{ID: id, SessionID: ses, Status: "queued"}, err
}

func (r *runs) CreateSession(ctx context.Context, req engine.SessionRequest) (*engine.SessionView, error) {
	id := "ses_" + strings.ReplaceAll(req.IdempotencyKey, "/", "_") + "_" + req.Title
	err := r.st.Commit(ctx, &store.Tx{Tenant: req.Tenant, NewSessions: []*store.Session{{ID: id, Created: 1, Updated: 1, IdempotencyKey: req.IdempotencyKey, RequestHash: req.Title}}})
	var exists *store.ExistsError
	if errors.As(err, &exists) && exists.SameRequest {
		err = nil
	}
	return &engine.SessionView{ID: id}, err
}

func open(t *testing.T) *runs {
	t.Helper()
	st, err := sqlite.Open(":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &runs{st: st}
}

func (r *runs) table(fixed ...Fixed) *Table {
	return New(Config{Store: r.st, Runs: r, Fixed: fixed, Max: 5, Knows: func(_, name string) error {
		if name != "demo" {
			return fault.New(fault.NotFound, "no profile is named "+name)
		}
		return nil
	}})
}

func p[T any](v T) *T { return &v }

func request(name, cron string) Request {
	return Request{Name: p(name), Cron: p(cron), Profile: p("demo"), Input: p(name)}
}

func made(t *testing.T, table *Table, tenant string, req Request) *View {
	t.Helper()
	v, err := table.Create(t.Context(), tenant, req)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func nightly(tenant string) Fixed {
	return Fixed{Name: "nightly", Tenant: tenant, Plan: Plan{Cron: "0 3 * * *", Profile: "demo", Input: "nightly", Session: "new", WhenBusy: "reject"}}
}

func TestSchedulesArePlannedByPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight
		r := open(t)
		table := r.table(nightly("acme"), nightly("other"))
		req := request("hourly", "0 * * * *")
		req.TimeZone, req.CatchUp, req.Session, req.WhenBusy = p("Europe/Berlin"), p("90m"), p("one"), p("enqueue")
		v := made(t, table, "acme", req)
		if v.Source != "api" || v.CatchUp != "1h30m0s" || !slices.Equal(v.Next, []string{"2000-01-01T01:00:00Z", "2000-01-01T02:00:00Z", "2000-01-01T03:00:00Z"}) || v.LastRun != nil || v.Problem != "" || v.CreatedAt == "" {
			t.Errorf("%+v", v)
		}
		all := func(tenant string, limit int) string {
			var names []string
			for cursor, first := "", true; first || cursor != ""; first = false {
				page, next, err := table.List(t.Context(), tenant, cursor, limit)
				if err != nil || len(page) > limit {
					t.Fatal(len(page), err)
				}
				for _, v := range page {
					names = append(names, v.Source+" "+v.Name)
				}
				cursor = next
			}
			return strings.Join(names, ", ")
		}
		made(t, table, "acme", request("weekly", "0 3 * * 1"))
		for _, limit := range []int{1, 2, 3, 50} {
			if got := all("acme", limit); got != "config nightly, api hourly, api weekly" {
				t.Errorf("%d a page: %s", limit, got)
			}
			if got := all("other", limit) + all("nobody", limit); got != "config nightly" {
				t.Errorf("others, %d a page: %s", limit, got)
			}
		}
		// Changes; what is not given stays.
		ref := engine.Ref{Tenant: "acme", ID: v.ID}
		time.Sleep(time.Minute)
		if v, _ = table.Update(t.Context(), ref, Request{Paused: p(true), Input: p("more")}); v == nil || !v.Paused || v.Input != "more" || v.Cron != "0 * * * *" || len(v.Next) != 0 || v.UpdatedAt == v.CreatedAt {
			t.Errorf("%+v", v)
		}
		if got, err := table.Get(t.Context(), ref); err != nil || got.Input != "more" {
			t.Errorf("%+v, %v", got, err)
		}
		if err := table.Delete(t.Context(), ref); err != nil {
			t.Error(err)
		}
		// What others have, what is gone and what is written elsewhere.
		for name, c := range map[string]struct {
			ref  engine.Ref
			kind fault.Kind
		}{"gone": {ref, fault.NotFound}, "of another": {engine.Ref{Tenant: "nobody", ID: "nightly"}, fault.NotFound}, "configuration": {engine.Ref{Tenant: "acme", ID: "nightly"}, fault.Conflict}} {
			if _, err := table.Update(t.Context(), c.ref, Request{Paused: p(true)}); fault.KindOf(err) != c.kind || fault.HintOf(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
			if err := table.Delete(t.Context(), c.ref); fault.KindOf(err) != c.kind {
				t.Errorf("%s: %v", name, err)
			}
			if c.kind == fault.Conflict {
				continue
			}
			if _, err := table.Get(t.Context(), c.ref); fault.KindOf(err) != c.kind {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := table.Trigger(t.Context(), c.ref, ""); fault.KindOf(err) != c.kind {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.st.Close()
	})
}

func TestWhatIsNoSchedule(t *testing.T) {
	r := open(t)
	table := r.table(nightly("acme"))
	for field, change := range map[string]func(*Request){
		"cron":         func(q *Request) { q.Cron = p("0 3 * *") },
		"time_zone":    func(q *Request) { q.TimeZone = p("Mars") },
		"profile":      func(q *Request) { q.Profile = p("nobody") },
		"input":        func(q *Request) { q.Input = nil },
		"session":      func(q *Request) { q.Session = p("two") },
		"when_busy":    func(q *Request) { q.WhenBusy = p("steer") },
		"session_mode": func(q *Request) { q.SessionMode = p("fast") },
		"catch_up":     func(q *Request) { q.CatchUp = p("8760h") },
		"name":         func(q *Request) { q.Name = p("sch_1") },
	} {
		req := request("x", "0 3 * * *")
		change(&req)
		var f *fault.Error
		if _, err := table.Create(t.Context(), "acme", req); !errors.As(err, &f) || f.Kind != fault.Invalid || f.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	v := made(t, table, "acme", request("x", "0 3 * * *"))
	for _, name := range []string{"x", "nightly"} {
		if _, err := table.Create(t.Context(), "acme", request(name, "0 3 * * *")); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s is taken: %v", name, err)
		}
	}
	made(t, table, "acme", request("y", "0 3 * * *"))
	if _, err := table.Update(t.Context(), engine.Ref{Tenant: "acme", ID: v.ID}, Request{Name: p("y")}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("y is taken: %v", err)
	}
	for i := range 3 {
		made(t, table, "acme", request(fmt.Sprint("z", i), "0 3 * * *"))
	}
	if _, err := table.Create(t.Context(), "acme", request("more", "0 3 * * *")); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "max_schedules") {
		t.Errorf("too many: %v", err)
	}
	made(t, table, "other", request("more", "0 3 * * *"))
}

// TestNodesAgree: two nodes tell of each time and there is one run, also when a node
// dies right after it started one; pauses and changes count everywhere at once, and new
// ones are known soon, with what was due meanwhile.
func TestNodesAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t)
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		a, b := r.table(nightly("acme")), r.table(nightly("acme"))
		for _, table := range []*Table{a, b} {
			wg.Go(func() { table.Run(ctx) })
		}
		r.fails(fault.New(fault.Unavailable, "the answer was lost")) // it is told again, by both
		v := made(t, a, "acme", request("often", "*/10 * * * *"))
		time.Sleep(9*time.Minute + 58*time.Second)
		late := made(t, a, "acme", request("late", "10 * * * *")) // b does not know it when it is due
		time.Sleep(10 * time.Minute)
		r.fails(nil)
		ref := engine.Ref{Tenant: "acme", ID: v.ID}
		if _, err := b.Update(t.Context(), ref, Request{Paused: p(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) // 0:20 was two seconds after that
		if _, err := a.Update(t.Context(), ref, Request{Paused: p(false), Cron: p("5 * * * *"), Input: p("changed")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Hour + 10*time.Minute)
		for _, id := range []string{v.ID, late.ID} {
			if err := b.Delete(t.Context(), engine.Ref{Tenant: "acme", ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Hour)
		end()
		wg.Wait()
		want := []string{"often 00:10:00", "late 00:10:00", "changed 01:05:00", "late 01:10:00", "changed 02:05:00", "late 02:10:00", "nightly 03:00:00", "changed 03:05:00", "late 03:10:00"}
		slices.Sort(want)
		slices.Sort(r.told)
		if !slices.Equal(r.told, want) {
			t.Errorf("told %v\nwant %v", r.told, want)
		}
		r.st.Close()
	})
}

// TestANodeDiesThatMadeASchedule: another one knows it within Poll, and starts what was
// due in between.
func TestANodeDiesThatMadeASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t)
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		b := r.table()
		time.Sleep(9*time.Minute + 55*time.Second)
		wg.Go(func() { b.Run(ctx) })
		synctest.Wait()
		made(t, r.table(), "acme", request("x", "*/10 * * * *")) // nobody runs this table
		time.Sleep(time.Minute)
		end()
		wg.Wait()
		if !slices.Equal(r.told, []string{"x 00:10:05"}) {
			t.Errorf("%v", r.told)
		}
		r.st.Close()
	})
}

func TestTheLastRunIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t)
		table := r.table(nightly("acme"))
		req := request("hourly", "0 * * * *")
		req.Session = p("one")
		v := made(t, table, "acme", req)
		last := func(id, due string) string {
			t.Helper()
			v, err := table.Get(t.Context(), engine.Ref{Tenant: "acme", ID: id})
			if err != nil || v.LastRun == nil || v.LastRun.Due != due || v.LastRun.Status != "completed" {
				t.Fatalf("%+v, %v", v, err)
			}
			return v.LastRun.RunID
		}
		ctx, end := context.WithTimeout(t.Context(), 4*time.Hour+time.Minute)
		defer end()
		table.Run(ctx)
		last(v.ID, "2000-01-01T04:00:00Z")
		last("nightly", "2000-01-01T03:00:00Z")
		for _, id := range []string{v.ID, "nightly"} {
			one, err := table.Trigger(t.Context(), engine.Ref{Tenant: "acme", ID: id}, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := last(id, ""); got != one.ID {
				t.Errorf("%s is not %s", got, one.ID)
			}
			two, err := table.Trigger(t.Context(), engine.Ref{Tenant: "acme", ID: id}, "")
			if err != nil || two.ID == one.ID {
				t.Errorf("%+v, %v", two, err)
			}
			a, err1 := table.Trigger(t.Context(), engine.Ref{Tenant: "acme", ID: id}, "mine"+id)
			b, err2 := table.Trigger(t.Context(), engine.Ref{Tenant: "acme", ID: id}, "mine"+id)
			if errors.Join(err1, err2) != nil || a.ID != b.ID || a.ID == two.ID {
				t.Errorf("%+v, %+v", a, b)
			}
		}
		// All in one session, also under another name.
		if _, err := table.Update(t.Context(), engine.Ref{Tenant: "acme", ID: v.ID}, Request{Name: p("renamed")}); err != nil {
			t.Fatal(err)
		}
		if _, err := table.Trigger(t.Context(), engine.Ref{Tenant: "acme", ID: v.ID}, ""); err != nil {
			t.Error(err)
		}
		if rows, _, err := r.st.Sessions(t.Context(), "acme", store.SessionFilter{}); err != nil || !slices.ContainsFunc(rows, func(s *store.Session) bool { return strings.HasSuffix(s.ID, "_hourly") }) {
			t.Error(err)
		}
		r.st.Close()
	})
}

// TestWhatIsTooLateIsLeftOut: of what nobody told in time, and of what was changed since.
func TestWhatIsTooLateIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			cron, catchUp string
			ago           time.Duration
			want          int
		}{
			{"0 1 * * *", "0s", 30 * time.Second, 1},
			{"0 1 * * *", "0s", 2 * time.Minute, 0},
			{"0 1 * * *", "3h", 2 * time.Hour, 1},
			{"0 * * * *", "3h", 2 * time.Hour, 0}, // there was a later one
			{"5 1 * * *", "3h", time.Minute, 0},   // it is no time of it
		} {
			r := open(t)
			table := r.table()
			req := request("x", c.cron)
			req.CatchUp = p(c.catchUp)
			v := made(t, table, "acme", req)
			from := time.Now()
			due := from.Truncate(24 * time.Hour).Add(time.Hour)
			for !due.After(from) {
				due = due.Add(24 * time.Hour)
			}
			time.Sleep(time.Until(due.Add(c.ago)))
			if err := table.Fire(t.Context(), "acme/"+v.ID, due); err != nil || len(r.told) != c.want {
				t.Errorf("%s, %s, %v late: %d runs, %v", c.cron, c.catchUp, c.ago, len(r.told), err)
			}
			r.st.Close()
		}
	})
}

// TestRunsHaveTheSessionModeOfTheirSchedule: of the configuration and of those that
// people made, where it can be changed and taken back.
func TestRunsHaveTheSessionModeOfTheirSchedule(t *testing.T) {
	r := open(t)
	fixed := nightly("acme")
	fixed.SessionMode = engine.ModeAsk
	table := r.table(fixed)
	starts := func(id, want string) {
		t.Helper()
		ref := engine.Ref{Tenant: "acme", ID: id}
		if _, err := table.Trigger(t.Context(), ref, ""); err != nil {
			t.Fatal(err)
		}
		if v, err := table.Get(t.Context(), ref); err != nil || r.mode != want || v.SessionMode != want {
			t.Errorf("%s starts a run in mode %q, not %q: %+v, %v", id, r.mode, want, v, err)
		}
	}
	starts("nightly", engine.ModeAsk)
	req := request("hourly", "0 * * * *")
	req.SessionMode = p(engine.ModePlan)
	v := made(t, table, "acme", req)
	starts(v.ID, engine.ModePlan)
	for _, mode := range []string{engine.ModeEdit, ""} {
		if _, err := table.Update(t.Context(), engine.Ref{Tenant: "acme", ID: v.ID}, Request{SessionMode: p(mode)}); err != nil {
			t.Fatal(err)
		}
		starts(v.ID, mode)
	}
}
