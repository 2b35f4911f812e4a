package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

const tenant = "tenant-a"

// workload is runs that each write changes one after the other, the way drivers do:
// fenced, with an entry, an event and the run's row. Some start children, some are not
// fenced at all.
type workload struct {
	acked atomic.Int64 // changes whose Commit returned nil
	again atomic.Int64 // changes that were committed again after ErrUnknown
}

func entryOfStep(run string, n int64) *store.Entry {
	return &store.Entry{SessionID: "s-" + run, ID: fmt.Sprintf("e%06d", n), Kind: "message", RunID: run, Created: n, Body: fmt.Appendf(nil, `{"n":%d}`, n)}
}

func eventOfStep(run string, n int64) *store.Event {
	return &store.Event{RunID: run, Seq: n, Time: 1000 + n, Type: "text_delta", Step: 1, Data: fmt.Appendf(nil, `{"n":%d}`, n)}
}

// progress waits for n more changes.
func (w *workload) progress(t *testing.T, n int64) {
	t.Helper()
	for want, until := w.acked.Load()+n, time.Now().Add(time.Minute); w.acked.Load() < want; {
		if time.Now().After(until) {
			t.Errorf("%d changes in a minute", w.acked.Load()-want+n)
			return
		}
		<-time.After(time.Millisecond)
	}
}

// commit makes a change as its owner would: until it is told what became of it.
func (w *workload) commit(ctx context.Context, s store.Store, tx *store.Tx) error {
	tx.Tenant = tenant
	for {
		err := s.Commit(ctx, tx)
		if errors.Is(err, store.ErrUnknown) {
			w.again.Add(1)
			continue
		}
		if err == nil {
			w.acked.Add(1)
		}
		return err
	}
}

// start makes the session and the run.
func (w *workload) start(ctx context.Context, s store.Store, run string) error {
	return w.commit(ctx, s, &store.Tx{NewSessions: []*store.Session{{ID: "s-" + run, Created: 1, Updated: 1}},
		NewRuns: []*store.Run{{ID: run, SessionID: "s-" + run, Created: 1, RunUpdate: store.RunUpdate{Status: "running", Epoch: 1}}}})
}

// step is the n-th change of a run. Every third has the row of the run alone: nothing
// but its name and place tells it from another.
func (w *workload) step(ctx context.Context, s store.Store, run string, n int64) error {
	tx := &store.Tx{Fences: []store.Fence{{RunID: run, Epoch: 1}},
		Runs: []store.RunChange{{ID: run, RunUpdate: store.RunUpdate{Status: "running", Epoch: 1, Seq: n, Steps: int(n), State: fmt.Appendf(nil, "state %d", n)}}}}
	if n%3 != 0 {
		tx.Entries = []*store.Entry{entryOfStep(run, n)}
		tx.Leaves = []store.Leaf{{SessionID: "s-" + run, EntryID: tx.Entries[0].ID, Updated: n}}
		tx.Events = []*store.Event{eventOfStep(run, n)}
		tx.Usage = []*store.Usage{{RunID: run, Provider: "p", Model: "m", Time: 1, Input: 1}}
	}
	if err := w.commit(ctx, s, tx); err != nil {
		return fmt.Errorf("%s, change %d: %w", run, n, err)
	}
	if n%5 != 0 {
		return nil
	}
	// A message comes in, which no driver fences.
	if err := w.commit(ctx, s, &store.Tx{Inputs: []*store.Input{{RunID: run, ID: fmt.Sprintf("in%06d", n), Kind: "steer"}}}); err != nil {
		return fmt.Errorf("%s, input %d: %w", run, n, err)
	}
	return nil
}

// check wants every change of a run there, once.
func (w *workload) check(t *testing.T, s store.Store, run string, steps int64) {
	t.Helper()
	r, err := s.Run(t.Context(), tenant, run)
	if err != nil {
		t.Error(err)
		return
	}
	if r.Seq != steps || int64(r.Steps) != steps || string(r.State) != fmt.Sprintf("state %d", steps) {
		t.Errorf("%s has seq %d, %d steps and %q after %d changes", run, r.Seq, r.Steps, r.State, steps)
	}
	var entries []*store.Entry
	var events []*store.Event
	inputs, calls := 0, int64(0)
	for n := int64(1); n <= steps; n++ {
		if n%3 != 0 {
			entries, events, calls = append(entries, entryOfStep(run, n)), append(events, eventOfStep(run, n)), calls+1
		}
		if n%5 == 0 {
			inputs++
		}
	}
	gotEntries, err1 := s.Entries(t.Context(), tenant, "s-"+run, "", 0)
	gotEvents, err2 := s.Events(t.Context(), tenant, run, 0, 0)
	gotInputs, err3 := s.Inputs(t.Context(), tenant, run)
	usage, err4 := s.Usage(t.Context(), tenant, store.UsageFilter{RunID: run})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Error(err)
		return
	}
	if !reflect.DeepEqual(gotEntries, entries) || !reflect.DeepEqual(gotEvents, events) || len(gotInputs) != inputs {
		t.Errorf("%s has %d entries of %d, %d events of %d, %d inputs of %d", run, len(gotEntries), len(entries), len(gotEvents), len(events), len(gotInputs), inputs)
	}
	if len(usage) != 1 || usage[0].Calls != calls || usage[0].Input != calls {
		t.Errorf("%s used %+v, and made %d calls", run, usage, calls)
	}
}

// drive runs the workload on two stores until stop is closed, and checks it.
func (w *workload) drive(t *testing.T, url string, o *Options, runs int, stop <-chan struct{}) {
	t.Helper()
	stores := []*Store{openTest(t, url, o), openTest(t, url, o)}
	steps := make([]int64, runs)
	errs := make(chan error, runs)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			s, run := stores[i%2], fmt.Sprint("r", i)
			if err := w.start(t.Context(), s, run); err != nil {
				errs <- err
				return
			}
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := w.step(t.Context(), s, run, n); err != nil {
					errs <- err
					return
				}
				steps[i] = n
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	for _, s := range stores {
		t.Logf("%+v", s.Stats())
	}
	for i := range runs {
		w.check(t, stores[(i+1)%2], fmt.Sprint("r", i), steps[i])
	}
	report, err := stores[0].Check(t.Context(), store.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Check != "events" && f.Check != "usage" { // the workload tells no end
			t.Errorf("%+v", f)
		}
	}
}

// Connections that are cut in the middle of commits lose nothing that was acknowledged,
// and no change is made twice.
func TestTerminatedBackends(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	w, stop := &workload{}, make(chan struct{})
	killed := 0
	var killing sync.WaitGroup
	openTest(t, url, nil) // the schema is there
	killing.Go(func() {
		defer close(stop)
		admin, err := openTarget(t, c.URL("public")).connect(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		defer closeSoon(admin)
		for i := 0; killed < 150 || w.acked.Load() < 200; i++ {
			<-time.After(time.Duration(1+i%7) * 5 * time.Millisecond)
			// Those that do something, and now and then all.
			err := query(t.Context(), admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agentd' AND pid <> pg_backend_pid()
				AND (state = 'active' AND query NOT LIKE 'SELECT pg_try%' OR $1)`, func(r row) error {
				killed++
				return nil
			}, i%10 == 9)
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	w.drive(t, url, &Options{Connections: 4}, 8, stop)
	killing.Wait()
	t.Logf("%d changes, %d connections cut, %d committed again by their owner", w.acked.Load(), killed, w.again.Load())
}

func openTarget(t *testing.T, url string) *target {
	t.Helper()
	o := &Options{}
	o.defaults()
	tg, err := parse(url, o)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

// A server that is ended at once, again and again, loses nothing that was acknowledged:
// commits wait for it.
func TestImmediateRestarts(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	openTest(t, url, nil)
	w, stop := &workload{}, make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.drive(t, url, &Options{Connections: 4, RetryFor: 30 * time.Second}, 8, stop)
	}()
	for i := range 5 {
		w.progress(t, int64(20+7*i)) // in the middle of whatever comes next
		c.Kill(t)
		c.Restart(t)
	}
	w.progress(t, 30)
	close(stop)
	<-done
	t.Logf("%d changes, %d committed again by their owner", w.acked.Load(), w.again.Load())
}

// A server that stays away longer than the store waits leaves the outcome unknown; the
// same Tx settles it.
func TestUnknown(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	s := openTest(t, url, &Options{RetryFor: 300 * time.Millisecond})
	w := &workload{}
	if err := w.start(t.Context(), s, "r"); err != nil {
		t.Fatal(err)
	}
	tx := &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: "late", Created: 1, Updated: 1}}}
	c.Kill(t)
	err := s.Commit(t.Context(), tx)
	if err == nil {
		t.Fatal("a commit without a server")
	}
	if _, err := s.Session(t.Context(), tenant, "s-r"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a read without a server: %v", err)
	}
	c.Restart(t)
	for errors.Is(err, store.ErrUnknown) || err != nil {
		if err = s.Commit(t.Context(), tx); err != nil && t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Session(t.Context(), tenant, "late"); err != nil {
		t.Error(err)
	}
	// It goes away in the middle of a commit, which waits for somebody's lock.
	admin, err := s.target.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeSoon(admin)
	if _, err := admin.Exec(t.Context(), "BEGIN; SELECT * FROM runs FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	tx = &store.Tx{Tenant: tenant, Fences: []store.Fence{{RunID: "r", Epoch: 1}}, Events: []*store.Event{eventOfStep("r", 1)},
		Runs: []store.RunChange{{ID: "r", RunUpdate: store.RunUpdate{Status: "running", Epoch: 1, Seq: 1}}}}
	result := make(chan error, 1)
	go func() { result <- s.Commit(t.Context(), tx) }()
	for waits := false; !waits; {
		if waits, err = get(t.Context(), admin, "SELECT 1 FROM pg_locks WHERE NOT granted", func(row) {}); err != nil {
			t.Fatal(err)
		}
	}
	c.Kill(t)
	if err := <-result; !errors.Is(err, store.ErrUnknown) || fault.KindOf(err) != fault.Unavailable || len(tx.Attempt) == 0 {
		t.Fatalf("a commit whose server went away: %v", err)
	}
	c.Restart(t)
	if err := w.commit(t.Context(), s, tx); err != nil && !errors.Is(err, store.ErrAway) {
		t.Fatal(err)
	}
	for tx.Attempt != nil {
		_ = w.commit(t.Context(), s, tx)
	}
	if events, err := s.Events(t.Context(), tenant, "r", 0, 0); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// A change that was made although nobody heard of it is not made again, also by a store
// that has just been opened, and not by a server that comes to it late.
func TestNamesOfChanges(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	s := openTest(t, url, nil)
	w := &workload{}
	if err := w.start(t.Context(), s, "r"); err != nil {
		t.Fatal(err)
	}
	fenced := func(n int64) *change {
		tx := &store.Tx{Tenant: tenant, Fences: []store.Fence{{RunID: "r", Epoch: 1}},
			Runs: []store.RunChange{{ID: "r", RunUpdate: store.RunUpdate{Status: "running", Epoch: 1, Seq: n}}}}
		id, err := s.newID()
		if err != nil {
			t.Fatal(err)
		}
		return &change{tx: tx, tenant: s.tenants[tenant], id: id, fenced: "r"}
	}
	seq := func() int64 {
		r, err := s.Run(t.Context(), tenant, "r")
		if err != nil {
			t.Fatal(err)
		}
		return r.Seq
	}
	first, second := fenced(1), fenced(2)
	if o, err := s.attempt(t.Context(), first); o != made {
		t.Fatalf("outcome %d, %v", o, err)
	}
	// Its answer was lost: it is sent again, by whomever.
	other := openTest(t, url, nil)
	first.tx.Attempt = first.id[:]
	if err := other.Commit(t.Context(), first.tx); err != nil || seq() != 1 {
		t.Errorf("again: %v, seq %d", err, seq())
	}
	second.expects = first.id
	if o, err := s.attempt(t.Context(), second); o != made {
		t.Fatalf("outcome %d, %v", o, err)
	}
	// The first comes once more, from a server that did not know that its client had gone.
	if o, _ := s.attempt(t.Context(), first); o == made || seq() != 2 {
		t.Errorf("a change from the past: outcome %d, seq %d", o, seq())
	}
	// With another epoch it is fenced off, and says so.
	if err := w.commit(t.Context(), s, &store.Tx{Fences: []store.Fence{{RunID: "r", Epoch: 1}},
		Runs: []store.RunChange{{ID: "r", RunUpdate: store.RunUpdate{Status: "running", Epoch: 2, Seq: 3}}}}); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context(), fenced(9).tx); !errors.Is(err, store.ErrFenced) || seq() != 3 {
		t.Errorf("a stale driver: %v, seq %d", err, seq())
	}
	// One without a fence.
	tx := &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: "once", Created: 1, Updated: 1}}}
	name := commitID{1, 2, 3}
	for range 3 {
		tx.Attempt = name[:]
		if err := other.Commit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Commit(t.Context(), tx); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another change of the same: %v", err)
	}
}
