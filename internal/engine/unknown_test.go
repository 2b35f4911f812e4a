package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/postgres/pgtest"
	"agentd/message"
	"agentd/model"
)

// vagueStore does not know what became of its n-th commit, which happened or did not.
// Asked again with the same Tx it does: at once, or after more tries than the engine
// makes.
type vagueStore struct {
	store.Store
	mu       sync.Mutex
	at       int
	happens  bool
	patience int // answers of ErrUnknown
	n        int
	tx       *store.Tx
	made     bool
}

func (s *vagueStore) Commit(ctx context.Context, tx *store.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx != s.tx {
		if s.n++; s.n != s.at {
			return s.Store.Commit(ctx, tx)
		}
		s.tx = tx
		if s.happens {
			if err := s.Store.Commit(ctx, tx); err != nil {
				return err
			}
			s.made = true
		}
	}
	if s.patience > 0 {
		s.patience--
		return fmt.Errorf("the wire is cut: %w", store.ErrUnknown)
	}
	if s.made {
		return nil
	}
	s.made = true
	return s.Store.Commit(ctx, tx)
}

// A commit of which nobody knows whether it happened is settled: the run goes on as if
// nothing had been, and no tool runs twice.
func TestUnknownCommit(t *testing.T) {
	plain, _, _ := crashHarness(t, 0, false)
	first := plain.wait(plain.run("go"))
	want := plain.transcript(first.SessionID)
	for at := 1; at <= 12; at++ {
		for _, happens := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d happens=%v", at, happens), func(t *testing.T) {
				calls := &counter{}
				script, tools := workload(calls)
				h := newHarness(t, script, tools...)
				h.engine.Close()
				h.agents["test"].Subagents = []string{"test"}
				h.store = &vagueStore{Store: h.store, at: at, happens: happens, patience: 2}
				h.start()
				r := h.wait(h.run("go"))
				if got := h.transcript(r.SessionID); got != want || r.Status != "completed" {
					t.Errorf("%s: the transcript differs:\n%s\nwant\n%s", r.Status, got, want)
				}
				for key, n := range calls.n {
					if n > 1 {
						t.Errorf("%s ran %d times", key, n)
					}
				}
			})
		}
	}
}

// A run of whose acceptance nobody ever heard is driven all the same if it is there,
// and leaves its session free if it is not.
func TestUnknownStart(t *testing.T) {
	for _, happens := range []bool{false, true} {
		t.Run(fmt.Sprint("happens=", happens), func(t *testing.T) {
			h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("done") })
			ses, err := h.engine.CreateSession(t.Context(), SessionRequest{})
			if err != nil {
				t.Fatal(err)
			}
			h.engine.Close()
			h.store = &vagueStore{Store: h.store, at: 1, happens: happens, patience: 1 << 30}
			h.start()
			req := StartRequest{SessionID: ses.ID, Input: []message.Block{message.Text("go")}}
			if _, err := h.engine.Start(t.Context(), req); !errors.Is(err, store.ErrUnknown) {
				t.Fatalf("Start: %v", err)
			}
			// Behind it, and not for ever.
			r, err := h.engine.Start(t.Context(), StartRequest{SessionID: ses.ID, WhenBusy: Enqueue, Input: req.Input})
			if err != nil {
				t.Fatal(err)
			}
			h.wait(r)
			rows, _, err := h.store.Runs(t.Context(), store.DefaultTenant, store.RunFilter{Status: "completed"})
			if err != nil {
				t.Fatal(err)
			}
			if n := map[bool]int{true: 2, false: 1}[happens]; len(rows) != n {
				t.Errorf("%d runs have completed, want %d", len(rows), n)
			}
		})
	}
}

// onPostgres gives a harness whose store is in PostgreSQL.
func onPostgres(t *testing.T, url string, calls *counter) *harness {
	t.Helper()
	script, tools := workload(calls)
	h := newHarness(t, script, tools...)
	h.engine.Close()
	h.agents["test"].Subagents = []string{"test"}
	s, err := postgres.Open(t.Context(), url, &postgres.Options{RetryFor: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h.store = s
	h.start()
	return h
}

// The crash at every commit, on PostgreSQL.
func TestCrashAtEveryCommitOnPostgres(t *testing.T) {
	c := pgtest.Start(t, "fsync = off") // it is the engine that crashes
	plain := onPostgres(t, c.NewURL(), &counter{})
	cs := &crashStore{Store: plain.store, down: make(chan struct{})}
	plain.engine.Close()
	plain.store = cs
	plain.start()
	r := plain.wait(plain.run("go"))
	want, commits := plain.transcript(r.SessionID), cs.n
	if r.Status != "completed" || commits < 8 {
		t.Fatalf("the uninterrupted run: %+v with %d commits", r, commits)
	}
	for at := 1; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				calls := &counter{}
				h := onPostgres(t, c.NewURL(), calls)
				h.engine.Close()
				cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
				h.store = cs
				h.start()
				crashRun(t, h, cs, calls, want)
			})
		}
	}
}

// Runs go on through a server that is ended at once, again and again: each ends as an
// uninterrupted one would, and no tool runs twice.
func TestRunsSurvivePostgres(t *testing.T) {
	c := pgtest.Start(t)
	calls := &counter{}
	h := onPostgres(t, c.NewURL(), calls)
	first := h.wait(h.run("go"))
	want := h.transcript(first.SessionID)
	clear(calls.n)
	for round := range 4 {
		var runs []*Run
		for range 6 {
			runs = append(runs, h.run("go"))
		}
		c.Kill(t)
		c.Restart(t)
		for _, r := range runs {
			if r = h.wait(r); r.Status != "completed" || h.transcript(r.SessionID) != want {
				t.Errorf("round %d: %s %+v:\n%s\nwant\n%s", round, r.Status, r.Error, h.transcript(r.SessionID), want)
			}
		}
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for key, n := range calls.n {
		if strings.HasPrefix(key, "once ") && n != 24 {
			t.Errorf("%s ran %d times in 24 runs", key, n)
		}
	}
}

// Two processes, as two engines with a store each, drive what is in one database at the
// same time: the second takes up, while the first is at it, what is under way. One of
// them has each run, and it ends as an uninterrupted one would; no once tool runs twice.
func TestTwoEnginesOnPostgres(t *testing.T) {
	c := pgtest.Start(t)
	calls := &counter{}
	url := c.NewURL()
	a := onPostgres(t, url, calls)
	// Without subagents: who waits for a run hears of it where it is driven.
	script, tools := workload(calls)
	a.agents["test"] = testAgent(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 2 {
			return say("finished")
		}
		return script(ctx, step, req)
	}, tools...)
	a.restart()
	want := a.transcript(a.wait(a.run("go")).SessionID)
	calls.mu.Lock()
	clear(calls.n)
	calls.mu.Unlock()
	const rounds, each = 4, 6
	for range rounds {
		var runs []*Run
		for range each {
			runs = append(runs, a.run("go"))
		}
		b := onPostgres(t, url, calls)
		b.agents["test"] = a.agents["test"]
		b.restart()
		for _, r := range runs {
			ref, uncertain := Ref{store.DefaultTenant, r.ID}, false
			for until := time.Now().Add(30 * time.Second); ; {
				got, err := b.engine.Get(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				if run.Status(got.Status).Ended() {
					r = got
					break
				}
				for _, i := range got.Interrupts {
					uncertain = true
					_, _ = b.engine.Answer(t.Context(), AnswerRequest{Interrupt: i.ID, Decision: "done"}) // or in the next round
				}
				if time.Now().After(until) {
					t.Fatalf("it did not end: %+v", got)
				}
				<-time.After(5 * time.Millisecond)
			}
			if got := b.transcript(r.SessionID); r.Status != "completed" || !uncertain && got != want {
				t.Errorf("%s %+v:\n%s\nwant\n%s", r.Status, r.Error, got, want)
			}
		}
		a.engine.Close()
		a = b
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for key, n := range calls.n {
		if strings.HasPrefix(key, "once ") && n > rounds*each {
			t.Errorf("%s ran %d times in %d runs", key, n, rounds*each)
		}
	}
}
