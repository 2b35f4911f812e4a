package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"agentd/internal/store"
)

func testInputs(f *fixture) {
	f.begin("s1", "r1")
	in := func(id string) *store.Input {
		return &store.Input{RunID: "r1", ID: id, Kind: "steer", Body: []byte(`{"text":"` + id + `"}`), Created: 5}
	}
	list := func() []string {
		return ids(ok[[]*store.Input](f)(f.store.Inputs(f.Context(), tenant, "r1")), func(i *store.Input) string { return i.ID })
	}
	equal(f, "empty", list(), []string{})
	// Oldest first means accepted first.
	f.commit(&store.Tx{Inputs: []*store.Input{in("c"), in("a")}})
	f.commit(&store.Tx{Inputs: []*store.Input{in("b")}})
	f.again()
	equal(f, "queue", list(), []string{"c", "a", "b"})
	take := &store.Tx{DropInputs: []store.InputRef{{RunID: "r1", ID: "c"}}, Entries: []*store.Entry{entry("s1", "c", "")}}
	f.commit(take)
	equal(f, "queue", list(), []string{"a", "b"})
	// Nobody can take it twice.
	f.refused(&store.Tx{DropInputs: take.DropInputs, Entries: []*store.Entry{entry("s1", "c2", "")}}, store.ErrNotFound)
	f.commit(&store.Tx{DropInputs: []store.InputRef{{RunID: "r1", ID: "b"}, {RunID: "r1", ID: "a"}}, Inputs: []*store.Input{in("d")}})
	equal(f, "queue", list(), []string{"d"})
}

func testInterrupts(f *fixture) {
	f.begin("s1", "r1")
	f.commit(&store.Tx{NewInterrupts: []*store.Interrupt{interrupt("i1", "r1")}})
	answer := store.InterruptAnswer{Status: "answered", Decision: "reject", Answer: []byte(`{"a":1}`), Reason: "no", AnsweredBy: "me", Answered: 77}
	tx := &store.Tx{Answers: []store.InterruptChange{{ID: "i1", InterruptAnswer: answer}}, Events: []*store.Event{event("r1", 1)}}
	f.commit(tx)
	f.again()
	// Again is refused with all that comes with it, whatever the answer.
	f.refused(&store.Tx{Answers: tx.Answers, Events: []*store.Event{event("r1", 2)}}, store.ErrConflict)
	f.refused(&store.Tx{Answers: []store.InterruptChange{{ID: "i1", InterruptAnswer: store.InterruptAnswer{Status: "expired"}}}}, store.ErrConflict)
	got := ok[*store.Interrupt](f)(f.store.Interrupt(f.Context(), tenant, "i1"))
	equal(f, "answer", got.InterruptAnswer, answer)
	equal(f, "session", got.SessionID, "s1")
	equal(f, "events", seqs(ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", 0, 0))), []int64{1})
	// Open and answered in one Tx.
	f.commit(&store.Tx{NewInterrupts: []*store.Interrupt{interrupt("i2", "r1")},
		Answers: []store.InterruptChange{{ID: "i2", InterruptAnswer: store.InterruptAnswer{Status: "cancelled"}}}})
	equal(f, "status", ok[*store.Interrupt](f)(f.store.Interrupt(f.Context(), tenant, "i2")).Status, "cancelled")
}

func testInterruptFilter(f *fixture) {
	f.begin("s1", "root")
	f.begin("s2", "child")
	f.begin("s3", "other")
	of := func(id, runID, rootID string) *store.Interrupt {
		i := interrupt(id, runID)
		i.RootID = rootID
		return i
	}
	f.commit(&store.Tx{NewInterrupts: []*store.Interrupt{of("i3", "root", ""), of("i1", "child", "root"), of("i2", "other", ""), of("i4", "child", "root")}})
	f.commit(&store.Tx{Answers: []store.InterruptChange{{ID: "i1", InterruptAnswer: store.InterruptAnswer{Status: "expired"}}}})
	f.again()
	for _, c := range []struct {
		filter store.InterruptFilter
		want   []string
	}{
		{store.InterruptFilter{}, []string{"i3", "i1", "i2", "i4"}},
		{store.InterruptFilter{Limit: 2}, []string{"i3", "i1"}},
		{store.InterruptFilter{Status: "open"}, []string{"i3", "i2", "i4"}},
		{store.InterruptFilter{RunID: "root"}, []string{"i3", "i1", "i4"}},
		{store.InterruptFilter{RunID: "child"}, []string{"i1", "i4"}},
		{store.InterruptFilter{RunID: "root", Status: "open"}, []string{"i3", "i4"}},
		{store.InterruptFilter{RunID: "no"}, []string{}},
	} {
		got, _ := f.interrupts(c.filter)
		equal(f, fmt.Sprintf("%+v", c.filter), got, c.want)
	}
}

func (f *fixture) interrupts(filter store.InterruptFilter) (list []string, cursor string) {
	f.Helper()
	is, cursor, err := f.store.Interrupts(f.Context(), tenant, filter)
	if err != nil {
		f.Fatal(err)
	}
	return ids(is, func(i *store.Interrupt) string { return i.ID }), cursor
}

func testInterruptPages(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	other := session("s1")
	f.commit(&store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{other}, NewRuns: []*store.Run{run("r1", "s1", "running")}})
	add := func(n int) {
		f.commit(&store.Tx{NewInterrupts: []*store.Interrupt{interrupt(fmt.Sprintf("i%02d", n), fmt.Sprint("r", 1+n%2))}})
		f.commit(&store.Tx{Tenant: "tenant-b", NewInterrupts: []*store.Interrupt{interrupt(fmt.Sprintf("i%02d", n), "r1")}})
	}
	for n := range 11 {
		add(n)
	}
	all, cursor := f.interrupts(store.InterruptFilter{})
	equal(f, "all", len(all), 11)
	equal(f, "cursor at the end", cursor, "")
	// Pages hold still while interrupts are added and answered.
	var got []string
	for filter, n := (store.InterruptFilter{Limit: 3}), 11; ; n++ {
		list, cursor := f.interrupts(filter)
		got = append(got, list...)
		if cursor == "" {
			break
		}
		equal(f, "size of a page", len(list), 3)
		filter.Cursor = cursor
		if n < 13 {
			add(n)
		}
		f.commit(&store.Tx{Answers: []store.InterruptChange{{ID: list[0], InterruptAnswer: store.InterruptAnswer{Status: "answered"}}}})
		f.again()
	}
	equal(f, "pages", got, append(all, "i11", "i12"))
	// With filters, and without a cursor where a page ends at the end.
	filter := store.InterruptFilter{RunID: "r1", Status: "open", Limit: 2}
	list, cursor := f.interrupts(filter)
	equal(f, "filtered", list, []string{"i02", "i04"})
	filter.Cursor, filter.Limit = cursor, 3
	list, cursor = f.interrupts(filter)
	equal(f, "filtered", list, []string{"i08", "i10", "i12"})
	equal(f, "cursor of the last page", cursor, "")
}

func testAnswerRace(f *fixture) {
	f.begin("s1", "r1")
	f.commit(&store.Tx{NewInterrupts: []*store.Interrupt{interrupt("i1", "r1")}})
	f.oneWinner(race(12, func(i int) error {
		return f.commitIn(f.Context(), &store.Tx{Answers: []store.InterruptChange{{ID: "i1",
			InterruptAnswer: store.InterruptAnswer{Status: "answered", AnsweredBy: fmt.Sprint(i)}}}})
	}), is(store.ErrConflict))
}

func testUsage(f *fixture) {
	const minute = 60_000
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	f.begin("s3", "r3")
	use := func(runID, sessionID, model string, time, n int64) *store.Usage {
		return &store.Usage{RunID: runID, SessionID: sessionID, Provider: "p", Model: model, Time: time,
			Input: n, Output: 10 * n, CacheRead: 100 * n, CacheWrite: 1000 * n, Cost: 1 << 40}
	}
	f.commit(&store.Tx{Usage: []*store.Usage{use("r1", "s1", "b", 10*minute, 1), use("r1", "s1", "a", 20*minute, 2)}})
	f.commit(&store.Tx{Usage: []*store.Usage{use("r2", "s2", "b", 30*minute, 4), use("", "s2", "b", 40*minute, 8), use("", "", "b", 50*minute, 16)}})
	// Calls of the same minute, in one Tx and in two, are told apart by what differs.
	f.commit(&store.Tx{Usage: []*store.Usage{use("r3", "s3", "c", 90*minute, 1), use("r3", "s3", "c", 90*minute+59_999, 2)}})
	f.commit(&store.Tx{Usage: []*store.Usage{use("r3", "s3", "c", 90*minute+5, 4), use("", "s3", "c", 90*minute, 8)}})
	f.again()
	sum := func(model string, calls, n int64) *store.UsageTotal {
		return &store.UsageTotal{Provider: "p", Model: model, Calls: calls, Input: n, Output: 10 * n, CacheRead: 100 * n, CacheWrite: 1000 * n, Cost: calls << 40}
	}
	for _, c := range []struct {
		filter store.UsageFilter
		want   []*store.UsageTotal
	}{
		{store.UsageFilter{}, []*store.UsageTotal{sum("a", 1, 2), sum("b", 4, 29), sum("c", 4, 15)}},
		{store.UsageFilter{RunID: "r1"}, []*store.UsageTotal{sum("a", 1, 2), sum("b", 1, 1)}},
		{store.UsageFilter{SessionID: "s2"}, []*store.UsageTotal{sum("b", 2, 12)}},
		{store.UsageFilter{SessionID: "s2", RunID: "r2"}, []*store.UsageTotal{sum("b", 1, 4)}},
		{store.UsageFilter{SessionID: "s1", RunID: "r2"}, nil},
		{store.UsageFilter{RunID: "no"}, nil},
		{store.UsageFilter{From: 20 * minute, To: 40 * minute}, []*store.UsageTotal{sum("a", 1, 2), sum("b", 1, 4)}},
		{store.UsageFilter{From: 41 * minute}, []*store.UsageTotal{sum("b", 1, 16), sum("c", 4, 15)}},
		{store.UsageFilter{RunID: "r3"}, []*store.UsageTotal{sum("c", 3, 7)}},
		{store.UsageFilter{SessionID: "s3"}, []*store.UsageTotal{sum("c", 4, 15)}},
		{store.UsageFilter{To: 10 * minute}, nil},
		// Minutes are not divided.
		{store.UsageFilter{From: 20*minute + 1, To: 30*minute + 1}, []*store.UsageTotal{sum("a", 1, 2), sum("b", 1, 4)}},
		{store.UsageFilter{From: 21 * minute, To: 30 * minute}, nil},
	} {
		equal(f, fmt.Sprintf("%+v", c.filter), ok[[]*store.UsageTotal](f)(f.store.Usage(f.Context(), tenant, c.filter)), c.want)
	}
}

func testBlobs(f *fixture) {
	a := newBlob("content", "text/plain", "a.txt")
	f.commit(&store.Tx{Blobs: []*store.Blob{a, newBlob("", "", "")}})
	// The same content again is fine and changes nothing.
	f.commit(&store.Tx{Blobs: []*store.Blob{newBlob("content", "text/html", "b.html")}})
	f.again()
	equal(f, "blob", ok[*store.Blob](f)(f.store.Blob(f.Context(), tenant, a.ID)), a)
	equal(f, "empty blob", len(ok[*store.Blob](f)(f.store.Blob(f.Context(), tenant, newBlob("", "", "").ID)).Data), 0)
	for _, id := range []string{"", "zz", a.ID[:10]} {
		if _, err := f.store.Blob(f.Context(), tenant, id); !errors.Is(err, store.ErrNotFound) {
			f.Errorf("blob %q: %v", id, err)
		}
	}
}

func testDrop(f *fixture) {
	f.begin("keep", "rkeep")
	e := entry("keep", "e1", "")
	f.commit(&store.Tx{Entries: []*store.Entry{e}, Events: []*store.Event{event("rkeep", 1)}, Usage: []*store.Usage{{RunID: "rkeep", Provider: "q"}}})
	tx := everything()
	f.commit(tx)
	before := ok[[]*store.UsageTotal](f)(f.store.Usage(f.Context(), tenant, store.UsageFilter{}))
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	for range 2 {
		f.notFound(tenant, "s1", "r1", "i1", tx.Blobs[0].ID)
		ctx := f.Context()
		// Usage is the bill: its sums do not fall.
		equal(f, "usage", ok[[]*store.UsageTotal](f)(f.store.Usage(ctx, tenant, store.UsageFilter{})), before)
		equal(f, "usage of the session", len(ok[[]*store.UsageTotal](f)(f.store.Usage(ctx, tenant, store.UsageFilter{SessionID: "s1"}))), 0)
		open, _ := f.interrupts(store.InterruptFilter{})
		equal(f, "interrupts", len(open), 0)
		runs, _, err := f.store.Runs(ctx, tenant, store.RunFilter{})
		if err != nil {
			f.Fatal(err)
		}
		equal(f, "runs", runIDs(runs), []string{"rkeep"})
		equal(f, "entries", ok[[]*store.Entry](f)(f.store.Entries(ctx, tenant, "keep", "", 0)), []*store.Entry{e})
		equal(f, "events", ok[[]*store.Event](f)(f.store.Events(ctx, tenant, "rkeep", 0, 0)), []*store.Event{event("rkeep", 1)})
		f.again()
	}
	// Its ids and its idempotency key are free again, and nothing of the old
	// session shows up in the new one.
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s1")}, NewRuns: []*store.Run{tx.NewRuns[0]}})
	ctx := f.Context()
	equal(f, "entries", len(ok[[]*store.Entry](f)(f.store.Entries(ctx, tenant, "s1", "", 0))), 0)
	equal(f, "events", len(ok[[]*store.Event](f)(f.store.Events(ctx, tenant, "r1", 0, 0))), 0)
	equal(f, "inputs", len(ok[[]*store.Input](f)(f.store.Inputs(ctx, tenant, "r1"))), 0)
	equal(f, "usage", len(ok[[]*store.UsageTotal](f)(f.store.Usage(ctx, tenant, store.UsageFilter{RunID: "r1"}))), 0)
	f.commit(&store.Tx{Events: []*store.Event{event("r1", 1)}})
}

// testConcurrent has writers of their own runs and readers of all of them. A
// reader must see a prefix of what a writer wrote, with state and events of
// the same Tx.
func testConcurrent(f *fixture) {
	const writers, commits = 16, 25
	for w := range writers {
		f.begin(fmt.Sprint("s", w), fmt.Sprint("r", w))
	}
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	var reading, writing sync.WaitGroup
	errs := make(chan error, writers*(commits+1))
	for i := range 4 {
		reading.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				if err := f.wholeAt(ctx, fmt.Sprint("r", n%writers)); err != nil && ctx.Err() == nil {
					errs <- err
					return
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			id := fmt.Sprint("r", w)
			for n := int64(1); n <= commits; n++ {
				c := change(id, "running", 1)
				c.Seq = 2 * n
				e := entry(fmt.Sprint("s", w), fmt.Sprintf("e%03d", n), "")
				e.RunID = id
				err := f.commitIn(f.Context(), &store.Tx{Fences: []store.Fence{{RunID: id, Epoch: 1}}, Runs: []store.RunChange{c},
					Entries: []*store.Entry{e}, Events: []*store.Event{event(id, 2*n-1), event(id, 2*n)}})
				if err != nil {
					errs <- fmt.Errorf("%s, commit %d: %w", id, n, err)
					return
				}
			}
		})
	}
	writing.Wait()
	cancel()
	reading.Wait()
	close(errs)
	for err := range errs {
		f.Error(err)
	}
	f.again()
	for w := range writers {
		id := fmt.Sprint("r", w)
		if err := f.wholeAt(f.Context(), id); err != nil {
			f.Error(err)
		}
		equal(f, id, ok[*store.Run](f)(f.store.Run(f.Context(), tenant, id)).Seq, 2*commits)
	}
}

// wholeAt checks that a run of testConcurrent has every event up to its Seq.
func (f *fixture) wholeAt(ctx context.Context, id string) error {
	r, err := f.store.Run(ctx, tenant, id)
	if err != nil {
		return err
	}
	es, err := f.store.Events(ctx, tenant, id, 0, 0)
	if err != nil {
		return err
	}
	if int64(len(es)) < r.Seq || len(es)%2 != 0 {
		return fmt.Errorf("%s has seq %d and %d events", id, r.Seq, len(es))
	}
	for i, e := range es {
		if want := event(id, int64(i+1)); !reflect.DeepEqual(e, want) {
			return fmt.Errorf("%s: event %d is %s", id, i+1, show(e))
		}
	}
	return nil
}

func testReadYourWrites(f *fixture) {
	f.begin("s1", "r1")
	for n := int64(1); n <= 50; n++ {
		f.commit(&store.Tx{Events: []*store.Event{event("r1", n)}})
		// From any goroutine, many times at once, on any connection.
		for _, err := range race(4, func(int) error {
			es, err := f.store.Events(f.Context(), tenant, "r1", n-1, 0)
			if err == nil && (len(es) != 1 || es[0].Seq != n) {
				err = fmt.Errorf("event %d was committed and not read", n)
			}
			return err
		}) {
			if err != nil {
				f.Fatal(err)
			}
		}
	}
}

func testCancelled(f *fixture) {
	f.begin("s1", "r1")
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if err := f.commitIn(ctx, &store.Tx{NewSessions: []*store.Session{session("s2")}}); !errors.Is(err, context.Canceled) {
		f.Errorf("Commit: %v", err)
	}
	for name, read := range map[string]func() error{
		"Session":  func() error { _, err := f.store.Session(ctx, tenant, "s1"); return err },
		"Sessions": func() error { _, _, err := f.store.Sessions(ctx, tenant, store.SessionFilter{}); return err },
		"Runs":     func() error { _, _, err := f.store.Runs(ctx, tenant, store.RunFilter{}); return err },
		"Events":   func() error { _, err := f.store.Events(ctx, tenant, "r1", 0, 0); return err },
		"Path":     func() error { _, err := f.store.Path(ctx, tenant, "s1", ""); return err },
	} {
		if err := read(); !errors.Is(err, context.Canceled) {
			f.Errorf("%s: %v", name, err)
		}
	}
	// The store is none the worse for it.
	if _, err := f.store.Session(f.Context(), tenant, "s2"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("a Tx whose context had ended before Commit: %v", err)
	}
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}})

	// Contexts that end during commits: each Tx is all there or not at all.
	errs := race(32, func(i int) error {
		ctx, cancel := context.WithCancel(f.Context())
		go cancel()
		id := fmt.Sprint("c", i)
		err := f.commitIn(ctx, &store.Tx{NewSessions: []*store.Session{session(id)}, NewRuns: []*store.Run{run(id, id, "running")}})
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	f.commit(&store.Tx{NewSessions: []*store.Session{session("last")}}) // after all of them
	for i, err := range errs {
		if err != nil {
			f.Error(err)
		}
		id := fmt.Sprint("c", i)
		_, err1 := f.store.Session(f.Context(), tenant, id)
		_, err2 := f.store.Run(f.Context(), tenant, id)
		if (err1 == nil) != (err2 == nil) {
			f.Errorf("half a Tx: session %v, run %v", err1, err2)
		}
	}
}

func testClosed(f *fixture) {
	f.begin("s1", "r1")
	for range 2 {
		if err := f.store.Close(); err != nil {
			f.Fatalf("Close: %v", err)
		}
	}
	if err := f.commitIn(f.Context(), &store.Tx{NewSessions: []*store.Session{session("s2")}}); err == nil {
		f.Error("Commit after Close: no error")
	}
	if _, err := f.store.Session(f.Context(), tenant, "s1"); err == nil || errors.Is(err, store.ErrNotFound) {
		f.Errorf("Session after Close: %v", err)
	}
}
