package storetest

import (
	"errors"
	"fmt"
	"strings"

	"agentd/internal/store"
)

// named logs which case is tested, for the message of a failure.
func (f *fixture) named(name string) *fixture {
	f.Helper()
	f.Logf("case: %s", name)
	return f
}

// notFound wants every read of these ids to fail with ErrNotFound.
func (f *fixture) notFound(tenant, sessionID, runID, interruptID, blobID string) {
	f.Helper()
	ctx := f.Context()
	for name, read := range map[string]func() error{
		"Session":         func() error { _, err := f.store.Session(ctx, tenant, sessionID); return err },
		"Entry":           func() error { _, err := f.store.Entry(ctx, tenant, sessionID, "e1"); return err },
		"Entries":         func() error { _, err := f.store.Entries(ctx, tenant, sessionID, "", 0); return err },
		"Path":            func() error { _, err := f.store.Path(ctx, tenant, sessionID, "e1"); return err },
		"Path to nothing": func() error { _, err := f.store.Path(ctx, tenant, sessionID, ""); return err },
		"Run":             func() error { _, err := f.store.Run(ctx, tenant, runID); return err },
		"Inputs":          func() error { _, err := f.store.Inputs(ctx, tenant, runID); return err },
		"Events":          func() error { _, err := f.store.Events(ctx, tenant, runID, 0, 0); return err },
		"Trace":           func() error { _, err := f.store.Trace(ctx, tenant, runID, 0, 0); return err },
		"Interrupt":       func() error { _, err := f.store.Interrupt(ctx, tenant, interruptID); return err },
		"Blob":            func() error { _, err := f.store.Blob(ctx, tenant, blobID); return err },
	} {
		if err := read(); !errors.Is(err, store.ErrNotFound) {
			f.Errorf("%s: got error %v, want ErrNotFound", name, err)
		}
	}
}

// nothing wants every list of a tenant to be empty.
func (f *fixture) nothing(tenant string) {
	f.Helper()
	ctx := f.Context()
	sessions, _, err := f.store.Sessions(ctx, tenant, store.SessionFilter{})
	if err != nil || len(sessions) > 0 {
		f.Errorf("Sessions: %d, %v", len(sessions), err)
	}
	sessions, _, err = f.store.Sessions(ctx, tenant, store.SessionFilter{Ephemeral: true})
	if err != nil || len(sessions) > 0 {
		f.Errorf("ephemeral Sessions: %d, %v", len(sessions), err)
	}
	for _, filter := range []store.RunFilter{{}, {SessionID: "s1"}, {RootID: "r0"}, {ParentID: "rp"}, {Status: "failed"}} {
		runs, _, err := f.store.Runs(ctx, tenant, filter)
		if err != nil || len(runs) > 0 {
			f.Errorf("Runs %+v: %d, %v", filter, len(runs), err)
		}
	}
	for _, filter := range []store.InterruptFilter{{}, {RunID: "r1"}, {RunID: "r0"}} {
		is, _, err := f.store.Interrupts(ctx, tenant, filter)
		if err != nil || len(is) > 0 {
			f.Errorf("Interrupts %+v: %d, %v", filter, len(is), err)
		}
	}
	for _, filter := range []store.UsageFilter{{}, {RunID: "r1"}, {SessionID: "s1"}} {
		us, err := f.store.Usage(ctx, tenant, filter)
		if err != nil || len(us) > 0 {
			f.Errorf("Usage %+v: %d, %v", filter, len(us), err)
		}
	}
}

func testAtomic(f *fixture) {
	// The last part is refused, so that nothing before it may stay.
	tx := everything()
	tx.DropSessions = []string{"no such session"}
	f.refused(tx, store.ErrNotFound)
	for range 2 {
		f.notFound(tenant, "s1", "r1", "i1", tx.Blobs[0].ID)
		f.nothing(tenant)
		f.again()
	}

	// Nor may changes of what exists.
	f.begin("s1", "r1")
	f.commit(&store.Tx{Entries: []*store.Entry{entry("s1", "e1", "")}, Inputs: []*store.Input{{RunID: "r1", ID: "e9"}},
		NewInterrupts: []*store.Interrupt{interrupt("i1", "r1")}})
	f.refused(&store.Tx{
		Leaves: []store.Leaf{{SessionID: "s1", EntryID: "e1", Updated: 9000}}, Runs: []store.RunChange{change("r1", "completed", 7)},
		DropInputs: []store.InputRef{{RunID: "r1", ID: "e9"}}, Events: []*store.Event{event("r1", 1)},
		Answers:      []store.InterruptChange{{ID: "i1", InterruptAnswer: store.InterruptAnswer{Status: "answered"}}},
		DropSessions: []string{"s1", "no such session"}}, store.ErrNotFound)
	ctx := f.Context()
	equal(f, "session", ok[*store.Session](f)(f.store.Session(ctx, tenant, "s1")), session("s1"))
	equal(f, "run", ok[*store.Run](f)(f.store.Run(ctx, tenant, "r1")).RunUpdate, store.RunUpdate{Status: "running", Epoch: 1})
	equal(f, "inputs", len(ok[[]*store.Input](f)(f.store.Inputs(ctx, tenant, "r1"))), 1)
	equal(f, "interrupt", ok[*store.Interrupt](f)(f.store.Interrupt(ctx, tenant, "i1")).Status, "open")
	// What the refused Tx did must not be remembered either: the epoch is still
	// 1, event 1 is still free.
	f.commit(&store.Tx{Fences: []store.Fence{{RunID: "r1", Epoch: 1}}, Events: []*store.Event{event("r1", 1)}})
}

func testNeighbours(f *fixture) {
	f.begin("s1", "r1")
	// Many Tx at once, every third refused in another way.
	errs := race(60, func(i int) error {
		id := fmt.Sprintf("n%02d", i)
		tx := &store.Tx{NewSessions: []*store.Session{session(id)}, NewRuns: []*store.Run{run(id, id, "running")}, Events: []*store.Event{event(id, 1)}}
		switch i % 9 {
		case 2:
			tx.Fences = []store.Fence{{RunID: "r1", Epoch: 5}}
		case 5:
			tx.NewRuns = append(tx.NewRuns, run(id+"x", "s1", "running"))
		case 8:
			tx.Answers = []store.InterruptChange{{ID: "no", InterruptAnswer: store.InterruptAnswer{Status: "answered"}}}
		}
		return f.commitIn(f.Context(), tx)
	})
	for i, err := range errs {
		want := map[int]error{2: store.ErrFenced, 5: store.ErrSessionBusy, 8: store.ErrNotFound}[i%9]
		if !errors.Is(err, want) || (want == nil && err != nil) {
			f.Errorf("Tx %d: got error %v, want %v", i, err, want)
		}
		id := fmt.Sprintf("n%02d", i)
		_, err := f.store.Run(f.Context(), tenant, id)
		if (want == nil) != (err == nil) {
			f.Errorf("Tx %d: run: %v", i, err)
		}
	}
}

func testTenants(f *fixture) {
	const other = "tenant-b"
	tx := everything()
	f.commit(tx)
	f.notFound(other, "s1", "r1", "i1", tx.Blobs[0].ID)
	f.nothing(other)

	// What another tenant has cannot be changed or used either.
	for name, tx := range map[string]*store.Tx{
		"fence":        {Fences: []store.Fence{{RunID: "r1", Epoch: 3}}, NewSessions: []*store.Session{session("x")}},
		"run":          {NewRuns: []*store.Run{run("r2", "s1", "queued")}},
		"entry":        {Entries: []*store.Entry{entry("s1", "e9", "")}},
		"leaf":         {Leaves: []store.Leaf{{SessionID: "s1", EntryID: "e1"}}},
		"change":       {Runs: []store.RunChange{change("r1", "completed", 9)}},
		"input":        {Inputs: []*store.Input{{RunID: "r1", ID: "e9"}}},
		"drop input":   {DropInputs: []store.InputRef{{RunID: "r1", ID: "e3"}}},
		"interrupt":    {NewInterrupts: []*store.Interrupt{interrupt("i9", "r1")}},
		"answer":       {Answers: []store.InterruptChange{{ID: "i1", InterruptAnswer: store.InterruptAnswer{Status: "expired"}}}},
		"event":        {Events: []*store.Event{event("r1", 99)}},
		"usage":        {Usage: []*store.Usage{{RunID: "r1"}}},
		"blob use":     {BlobUses: []store.BlobUse{{SessionID: "s1", BlobID: tx.Blobs[0].ID}}},
		"drop session": {DropSessions: []string{"s1"}},
	} {
		tx.Tenant = other
		f.named(name).refused(tx, store.ErrNotFound)
	}

	// The same ids, keys and content are free for the other tenant.
	tx = everything()
	tx.Tenant = other
	f.commit(tx)
	f.again()
	ctx := f.Context()
	f.commit(&store.Tx{Tenant: other, DropSessions: []string{"s1"}})
	equal(f, "run", ok[*store.Run](f)(f.store.Run(ctx, tenant, "r1")), everything().NewRuns[0])
	equal(f, "path", len(ok[[]*store.Entry](f)(f.store.Entries(ctx, tenant, "s1", "", 0))), 2)
	equal(f, "trace", len(ok[[]*store.Trace](f)(f.store.Trace(ctx, tenant, "r1", 0, 0))), 1)
	equal(f, "blob", ok[*store.Blob](f)(f.store.Blob(ctx, tenant, everything().Blobs[0].ID)), everything().Blobs[0])
	f.notFound(other, "s1", "r1", "i1", strings.Repeat("0", 64))
}

func testWriteOnce(f *fixture) {
	first := everything()
	f.commit(first)
	for name, tx := range map[string]*store.Tx{
		"session":   {NewSessions: []*store.Session{session("s1")}},
		"run":       {NewRuns: []*store.Run{run("r1", "s1", "queued")}},
		"entry":     {Entries: []*store.Entry{entry("s1", "e1", "")}},
		"input":     {Inputs: []*store.Input{{RunID: "r1", ID: "e3"}}},
		"interrupt": {NewInterrupts: []*store.Interrupt{interrupt("i1", "r1")}},
		"event":     {Events: []*store.Event{event("r1", 5)}},
	} {
		f.named(name).refused(tx, store.ErrConflict)
	}
	f.again()
	ctx := f.Context()
	equal(f, "entry", ok[*store.Entry](f)(f.store.Entry(ctx, tenant, "s1", "e1")), first.Entries[0])
	equal(f, "events", ok[[]*store.Event](f)(f.store.Events(ctx, tenant, "r1", 0, 0)), first.Events)
	// An entry of another session may have the same id.
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}, Entries: []*store.Entry{entry("s2", "e1", "")}})
}

func testFence(f *fixture) {
	f.begin("s1", "r1")
	old := []store.Fence{{RunID: "r1", Epoch: 1}}
	write := func(seq int64) *store.Tx { return &store.Tx{Fences: old, Events: []*store.Event{event("r1", seq)}} }
	f.commit(write(1)) // before the take-over
	f.commit(&store.Tx{Fences: old, Runs: []store.RunChange{change("r1", "running", 2)}})
	f.refused(write(2), store.ErrFenced) // after it
	f.refused(&store.Tx{Fences: old, Runs: []store.RunChange{change("r1", "failed", 1)}}, store.ErrFenced)
	f.again()
	f.refused(write(2), store.ErrFenced)
	// Every fence of a Tx counts.
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s2")}, NewRuns: []*store.Run{run("r2", "s2", "running")}})
	f.refused(&store.Tx{Fences: []store.Fence{{RunID: "r2", Epoch: 1}, old[0]}, Events: []*store.Event{event("r2", 1)}}, store.ErrFenced)
	f.commit(&store.Tx{Fences: []store.Fence{{RunID: "r2", Epoch: 1}, {RunID: "r1", Epoch: 2}}, Events: []*store.Event{event("r1", 2)}})
	equal(f, "events", seqs(ok[[]*store.Event](f)(f.store.Events(f.Context(), tenant, "r1", 0, 0))), []int64{1, 2})
}

func testFenceRace(f *fixture) {
	f.begin("s1", "r1")
	for epoch := int64(1); epoch < 20; epoch++ {
		f.oneWinner(race(8, func(int) error {
			return f.commitIn(f.Context(), &store.Tx{Fences: []store.Fence{{RunID: "r1", Epoch: epoch}},
				Runs: []store.RunChange{change("r1", "running", epoch+1)}})
		}), is(store.ErrFenced))
	}
}

func testSessionBusy(f *fixture) {
	f.begin("s1", "r1")
	second := func(status string) *store.Tx { return &store.Tx{NewRuns: []*store.Run{run("r2", "s1", status)}} }
	f.refused(second("running"), store.ErrSessionBusy)
	f.refused(second("paused_checkpoint"), store.ErrSessionBusy)
	f.commit(second("queued"))
	f.refused(&store.Tx{Runs: []store.RunChange{change("r2", "running", 1)}}, store.ErrSessionBusy)
	f.commit(&store.Tx{Runs: []store.RunChange{change("r1", "paused_checkpoint", 1)}})
	f.refused(&store.Tx{Runs: []store.RunChange{change("r2", "running", 1)}}, store.ErrSessionBusy)
	f.again()
	f.refused(&store.Tx{Runs: []store.RunChange{change("r2", "running", 1)}}, store.ErrSessionBusy)
	// One Tx may end the first and start the second.
	f.commit(&store.Tx{Runs: []store.RunChange{change("r1", "completed", 1), change("r2", "running", 1)}})
	equal(f, "run", ok[*store.Run](f)(f.store.Run(f.Context(), tenant, "r2")).Status, "running")
	// Another session is not concerned.
	f.begin("s2", "r3")
}

func testSessionBusyRace(f *fixture) {
	f.commit(&store.Tx{NewSessions: []*store.Session{session("s1")}})
	f.oneWinner(race(16, func(i int) error {
		return f.commitIn(f.Context(), &store.Tx{NewRuns: []*store.Run{run(fmt.Sprint("r", i), "s1", "running")}})
	}), is(store.ErrSessionBusy))
}

// keyed creates a session and a run with an idempotency key.
func keyed(runID, key, hash string) *store.Tx {
	r := run(runID, "s-"+runID, "queued")
	r.IdempotencyKey, r.RequestHash = key, hash
	return &store.Tx{NewSessions: []*store.Session{session("s-" + runID)}, NewRuns: []*store.Run{r}}
}

func testIdempotency(f *fixture) {
	f.commit(keyed("r1", "key", "hash"))
	for range 2 {
		for _, c := range []struct {
			hash string
			same bool
		}{{"hash", true}, {"other", false}, {"", false}} {
			var exists *store.ExistsError
			err := f.commitIn(f.Context(), keyed("r2", "key", c.hash))
			if !errors.As(err, &exists) || exists.RunID != "r1" || exists.SameRequest != c.same {
				f.Fatalf("hash %q: got error %v (%+v), want run r1, same %v", c.hash, err, exists, c.same)
			}
		}
		f.again()
	}
	// Also where it is the very same Tx, whose session and run exist as well.
	var exists *store.ExistsError
	r := keyed("r1", "key", "hash").NewRuns[0]
	if err := f.commitIn(f.Context(), &store.Tx{NewRuns: []*store.Run{r}}); !errors.As(err, &exists) || !exists.SameRequest {
		f.Fatalf("the same run again: %v", err)
	}
	// Other keys and no key are free.
	f.commit(keyed("r2", "key2", "hash"))
	f.commit(keyed("r3", "", ""))
	f.commit(keyed("r4", "", ""))
	tx := keyed("r1", "key", "hash")
	tx.Tenant = "tenant-b"
	f.commit(tx)
}

func testIdempotencyRace(f *fixture) {
	f.oneWinner(race(16, func(i int) error {
		return f.commitIn(f.Context(), keyed(fmt.Sprint("r", i), "key", "hash"))
	}), func(err error) bool {
		var exists *store.ExistsError
		return errors.As(err, &exists) && exists.SameRequest
	})
	runs, _, err := f.store.Runs(f.Context(), tenant, store.RunFilter{})
	if err != nil || len(runs) != 1 {
		f.Fatalf("%d runs, %v", len(runs), err)
	}
}
