package postgres

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

// atOnce runs f n times at once, on two stores, and gives the errors.
func atOnce(n int, stores []*Store, f func(i int, s *Store) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = f(i, stores[i%len(stores)])
		})
	}
	close(start)
	all.Wait()
	return errs
}

func oneWinner(t *testing.T, what string, errs []error, cause error) {
	t.Helper()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, cause) {
			t.Errorf("%s: a loser got %v", what, err)
		}
	}
	if won != 1 {
		t.Errorf("%s: %d of %d won", what, won, len(errs))
	}
}

// Two processes, as two stores: what may happen once happens once.
func TestTwoStores(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	stores := []*Store{openTest(t, url, nil), openTest(t, url, nil)}
	ctx := t.Context()
	commit := func(s *Store, tx *store.Tx) error {
		tx.Tenant = tenant
		return s.Commit(ctx, tx)
	}
	must := func(tx *store.Tx) {
		t.Helper()
		if err := commit(stores[0], tx); err != nil {
			t.Fatal(err)
		}
	}
	newRun := func(id, session, status string) *store.Run {
		return &store.Run{ID: id, SessionID: session, Created: 1, RunUpdate: store.RunUpdate{Status: status, Epoch: 1}}
	}
	session := func(id string) *store.Session { return &store.Session{ID: id, Created: 1, Updated: 1} }
	for round := range 10 {
		s, r := fmt.Sprint("s", round), fmt.Sprint("r", round)
		must(&store.Tx{NewSessions: []*store.Session{session(s)}, NewRuns: []*store.Run{newRun(r, s, "queued")}})
		oneWinner(t, "claim", atOnce(6, stores, func(i int, st *Store) error {
			return commit(st, &store.Tx{Fences: []store.Fence{{RunID: r, Epoch: 1}},
				Runs: []store.RunChange{{ID: r, RunUpdate: store.RunUpdate{Status: "running", Epoch: 2}}}})
		}), store.ErrFenced)
		oneWinner(t, "events", atOnce(6, stores, func(i int, st *Store) error {
			return commit(st, &store.Tx{Events: []*store.Event{{RunID: r, Seq: int64(10 - i), Type: "x"}, {RunID: r, Seq: int64(11 + i), Type: "x"}}})
		}), store.ErrConflict)
		must(&store.Tx{Runs: []store.RunChange{{ID: r, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 2}}}})
		oneWinner(t, "turn", atOnce(6, stores, func(i int, st *Store) error {
			return commit(st, &store.Tx{NewRuns: []*store.Run{newRun(fmt.Sprint(r, "-", i), s, "running")}})
		}), store.ErrSessionBusy)
		must(&store.Tx{NewInterrupts: []*store.Interrupt{{ID: "i" + r, RunID: r, Kind: "approval", InterruptAnswer: store.InterruptAnswer{Status: "open"}}}})
		oneWinner(t, "answer", atOnce(6, stores, func(i int, st *Store) error {
			return commit(st, &store.Tx{Answers: []store.InterruptChange{{ID: "i" + r, InterruptAnswer: store.InterruptAnswer{Status: "answered"}}}})
		}), store.ErrConflict)
		errs := atOnce(6, stores, func(i int, st *Store) error {
			x := newRun(fmt.Sprint("k", r, i), s, "queued")
			x.IdempotencyKey = "key " + r
			err := commit(st, &store.Tx{NewRuns: []*store.Run{x}})
			var exists *store.ExistsError
			if errors.As(err, &exists) {
				return store.ErrConflict
			}
			return err
		})
		oneWinner(t, "key", errs, store.ErrConflict)
	}
}

// Who takes over a run that another process still drives gets it as it is, or not at all.
func TestTakeover(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	a, b := openTest(t, url, nil), openTest(t, url, nil)
	w := &workload{}
	if err := w.start(t.Context(), a, "r"); err != nil {
		t.Fatal(err)
	}
	load := func(s *Store) *store.Run {
		t.Helper()
		r, err := s.Load(t.Context(), tenant, "r")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	claim := func(s *Store, r *store.Run) error {
		u := r.RunUpdate
		u.Epoch++
		return w.commit(t.Context(), s, &store.Tx{Fences: []store.Fence{{RunID: "r", Epoch: r.Epoch}}, Runs: []store.RunChange{{ID: "r", RunUpdate: u}}})
	}
	read := load(b)
	if err := w.step(t.Context(), a, "r", 1); err != nil { // acknowledged, and not in what b has read
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), tenant, "r"); err != nil { // somebody looks, which changes nothing
		t.Fatal(err)
	}
	if err := claim(b, read); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("a claim of what was changed meanwhile: %v", err)
	}
	if err := w.step(t.Context(), a, "r", 2); err != nil {
		t.Errorf("the one that drives: %v", err)
	}
	if err := claim(b, load(b)); err != nil {
		t.Errorf("a claim of what is there: %v", err)
	}
	if err := w.step(t.Context(), a, "r", 3); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the one that drove: %v", err)
	}
	if r := load(a); r.Seq != 2 || string(r.State) != "state 2" || r.Epoch != 2 {
		t.Errorf("%+v", r)
	}
}

// A session that is deleted while others write to it takes everything with it, or
// stays.
func TestDropRaces(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	stores := []*Store{openTest(t, url, nil), openTest(t, url, nil)}
	ctx := t.Context()
	blob := &store.Blob{ID: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Data: []byte("x")}
	for round := range 15 {
		s := fmt.Sprint("s", round)
		done := func(id string) *store.Run {
			return &store.Run{ID: id, SessionID: s, Created: 1, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 1, Ended: 1}}
		}
		if err := stores[0].Commit(ctx, &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: s, Created: 1, Updated: 1}, {ID: s + "-other", Created: 1, Updated: 1}},
			NewRuns: []*store.Run{done("r" + s)}, Blobs: []*store.Blob{blob}, BlobUses: []store.BlobUse{{SessionID: s, BlobID: blob.ID}}}); err != nil {
			t.Fatal(err)
		}
		for i, err := range atOnce(6, stores, func(i int, st *Store) error {
			tx := &store.Tx{Tenant: tenant}
			switch i {
			case 0:
				tx.DropSessions = []string{s}
			case 1:
				tx.NewRuns = []*store.Run{done(fmt.Sprint("r", s, "-", i))}
			case 2:
				tx.Entries = []*store.Entry{{SessionID: s, ID: "e", Kind: "message"}}
			case 3:
				tx.Events = []*store.Event{{RunID: "r" + s, Seq: 1, Type: "x"}}
			case 4:
				tx.Fences = []store.Fence{{RunID: "r" + s, Epoch: 1}}
				tx.Runs = []store.RunChange{{ID: "r" + s, RunUpdate: store.RunUpdate{Status: "completed", Epoch: 1, Ended: 1, Steps: 7}}}
				tx.Trace = []*store.Trace{{RunID: "r" + s, Kind: "x"}}
			case 5:
				tx.Blobs, tx.BlobUses = []*store.Blob{blob}, []store.BlobUse{{SessionID: s + "-other", BlobID: blob.ID}}
			}
			return st.Commit(ctx, tx)
		}) {
			if err != nil && (i == 0 || i == 5 || !errors.Is(err, store.ErrNotFound)) {
				t.Errorf("round %d, %d: %v", round, i, err)
			}
		}
		if _, err := stores[1].Blob(ctx, tenant, blob.ID); err != nil {
			t.Errorf("the blob that the other session uses: %v", err)
		}
	}
	report, err := stores[0].Check(ctx, store.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Check == "orphans" {
			t.Errorf("%+v", f)
		}
	}
	if report.Sessions != 15 || report.Blobs != 1 {
		t.Errorf("%+v", report)
	}
}

// Nodes that start at once on an empty database make one schema.
func TestMigrationsAtOnce(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	for _, err := range atOnce(8, []*Store{nil}, func(i int, _ *Store) error {
		s, err := Open(t.Context(), url, &Options{Connections: 2})
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Commit(t.Context(), &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: fmt.Sprint(i), Created: 1, Updated: 1}}})
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	s := openTest(t, url, &Options{ReadOnly: true})
	if list, _, err := s.Sessions(t.Context(), tenant, store.SessionFilter{}); err != nil || len(list) != 8 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
	if err := s.Commit(t.Context(), &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: "x"}}}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a change of a store that is read: %v", err)
	}
	// What is newer, older or somebody else's is refused.
	w := openTest(t, url, nil)
	exec := func(sql string) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("UPDATE schema_version SET version = 9999")
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		if _, err := Open(t.Context(), url, o); !errors.Is(err, store.ErrTooNew) {
			t.Errorf("a newer schema: %v", err)
		}
	}
	exec("CREATE SCHEMA other; CREATE TABLE other.x (y int)")
	if _, err := Open(t.Context(), c.URL("other"), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a schema of something else: %v", err)
	}
	if _, err := Open(t.Context(), c.URL("nothing"), &Options{ReadOnly: true}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a schema that is not there: %v", err)
	}
}

// Who repairs or copies has the store alone, also after the server was away.
func TestPresence(t *testing.T) {
	c := pgtest.Start(t)
	url := c.NewURL()
	alone := &Options{Exclusive: true, RetryFor: 20 * time.Second}
	s := openTest(t, url, &Options{RetryFor: 20 * time.Second})
	_, err := Open(t.Context(), url, alone)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "in use by agentd") {
		t.Fatalf("a store that is in use: %v", err)
	}
	c.Kill(t)
	c.Restart(t)
	session := func(id string) *store.Tx {
		return &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: id, Created: 1, Updated: 1}}}
	}
	if err := s.Commit(t.Context(), session("a")); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(20 * time.Second); ; {
		x, err := Open(t.Context(), url, alone)
		if fault.KindOf(err) == fault.Conflict {
			break
		}
		if err == nil {
			err = x.Close()
		}
		if err != nil || time.Now().After(until) {
			t.Fatalf("the place was not taken again: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	x := openTest(t, url, alone)
	if _, err := Open(t.Context(), url, nil); fault.KindOf(err) != fault.Conflict {
		t.Errorf("beside one that has it alone: %v", err)
	}
	if err := x.Commit(t.Context(), session("b")); err != nil {
		t.Error(err)
	}
	// Readers disturb nobody.
	openTest(t, url, &Options{ReadOnly: true})
}

// Nobody sees a password.
func TestPasswords(t *testing.T) {
	const secret = "se/cr%et@1"
	for _, url := range []string{
		"postgres://me:se%2Fcr%25et%401@127.0.0.1:1/db",
		"postgres://me@127.0.0.1:1/db?password=se%2Fcr%25et%401",
		"postgres://me:se/cr%et@1@127.0.0.1:1/db",
		"postgres://me:se%2Fcr%25et%401@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://me:se%2Fcr%25et%401@127.0.0.1:1/db?connect_timeout=nonsense",
	} {
		_, err := Open(t.Context(), url, &Options{RetryFor: 10 * time.Millisecond})
		if err == nil || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", url, err)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			for _, s := range []string{secret, "se%2Fcr", "cr%et", "cr%25et"} {
				if strings.Contains(e.Error(), s) || strings.Contains(Redacted(url), s) {
					t.Errorf("%q is in %q or in %q", s, e.Error(), Redacted(url))
				}
			}
		}
		if !HasPassword(url) {
			t.Errorf("%s: no password is seen", url)
		}
	}
	if HasPassword("postgres://me@host/db") {
		t.Error("a password that is not there")
	}
	t.Setenv("PGPASSWORD", secret)
	if tg := openTarget(t, "postgres://me@host/db"); tg.pool.ConnConfig.Password != secret {
		t.Error("PGPASSWORD is not used")
	}
}

// What people, models and tools write may be any bytes; ids may not.
func TestAnyBytes(t *testing.T) {
	s := openTest(t, pgtest.Start(t).NewURL(), nil)
	const odd = "a\x00b\xff\\x41"
	ctx := t.Context()
	run := &store.Run{ID: "r", SessionID: "s", Created: 1, ParentCall: odd, IdempotencyKey: odd, RunUpdate: store.RunUpdate{Status: "running", StopReason: odd}}
	i := &store.Interrupt{ID: "i", RunID: "r", SessionID: "s", CallID: odd, Kind: "question", Prompt: odd,
		InterruptAnswer: store.InterruptAnswer{Status: "open", Decision: odd, Reason: odd, AnsweredBy: odd}}
	p := &store.Proposal{ID: "r.p1", RunID: "r", CallID: odd, Name: odd, Effect: "once", Key: odd, Temp: odd, Predicted: odd, Reason: odd,
		ProposalUpdate: store.ProposalUpdate{Status: "proposed", Result: odd, By: odd}}
	if err := s.Commit(ctx, &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: "s", Title: odd, IdempotencyKey: odd}}, NewRuns: []*store.Run{run},
		NewInterrupts: []*store.Interrupt{i}, NewProposals: []*store.Proposal{p}, Usage: []*store.Usage{{Provider: odd, Model: odd}},
		NewRules: []*store.Rule{{SessionID: "s", ID: "u", Tool: odd, Pattern: []byte("{}"), Text: odd, By: odd}}}); err != nil {
		t.Fatal(err)
	}
	ses, err1 := s.Session(ctx, tenant, "s")
	r, err2 := s.Run(ctx, tenant, "r")
	gotI, err3 := s.Interrupt(ctx, tenant, "i")
	ps, err4 := s.Proposals(ctx, tenant, "r")
	us, err5 := s.Usage(ctx, tenant, store.UsageFilter{})
	rules, err6 := s.Rules(ctx, tenant, "s")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	if ses.Title != odd || r.ParentCall != odd || r.StopReason != odd || gotI.Prompt != odd || gotI.AnsweredBy != odd || !reflect.DeepEqual(ps[0], p) ||
		us[0].Model != odd || rules[0].Tool != odd {
		t.Errorf("%+v %+v %+v %+v %+v %+v", ses, r, gotI, ps[0], us[0], rules[0])
	}
	if _, err := s.Run(ctx, tenant, odd); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an id that can not be: %v", err)
	}
	if runs, _, err := s.Runs(ctx, odd, store.RunFilter{Status: odd}); err != nil || len(runs) != 0 {
		t.Errorf("a filter that can not be: %v, %v", runs, err)
	}
	if err := s.Commit(ctx, &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: odd}}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an id that can not be: %v", err)
	}
}
