package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"agentd/internal/store"
)

// pot is the pot of run r1, and capOf caps its money.
func runPot() store.PotRef { return store.PotRef{Kind: store.PotRun, ID: "r1"} }

func capOf(money int64) []store.PotCap {
	return []store.PotCap{{PotRef: runPot(), Max: store.PotLimits{Money: money}}}
}

func reserve(runID, key string, call, keep int64, caps []store.PotCap) *store.Tx {
	return &store.Tx{Reserves: []store.Reservation{{RunID: runID, Key: key, Call: store.Amounts{Money: call, Tokens: call * 10},
		Keep: store.Amounts{Money: keep, Tokens: keep * 10}, Pots: caps, Time: 7}}}
}

func settle(runID, how string, used int64) *store.Tx {
	return &store.Tx{Settles: []store.Settlement{{RunID: runID, How: how, Used: store.Amounts{Money: used, Tokens: used * 10}, Pots: []store.PotRef{runPot()}, Time: 8}}}
}

// holds checks money settled, held by all and held by a run; tokens are ten times that.
func (f *fixture) holds(ref store.PotRef, runID string, settled, held, own int64) {
	f.Helper()
	p := ok[[]store.Pot](f)(f.store.Pots(f.Context(), tenant, runID, []store.PotRef{ref}))[0]
	times := func(n int64) store.Amounts { return store.Amounts{Money: n, Tokens: n * 10} }
	if p.PotRef != ref || p.Settled != times(settled) || p.Held != times(held) || p.Own != times(own) {
		f.Fatalf("pot %v: %+v, want %d settled, %d held, %d of them by %s", ref, p, settled, held, own, runID)
	}
}

// testBudgets: reserved, settled, kept and released; a repetition repeats nothing.
func testBudgets(f *fixture) {
	f.begin("s1", "r1")
	f.holds(runPot(), "r1", 0, 0, 0)
	f.commit(reserve("r1", "a", 50, 20, capOf(100)))
	f.commit(reserve("r1", "a", 50, 20, capOf(100))) // after a crash, say
	f.again()
	f.holds(runPot(), "r1", 0, 70, 70)
	f.commit(settle("r1", store.SettledUsed, 30))
	f.holds(runPot(), "r1", 30, 20, 20)
	f.commit(settle("r1", store.SettledLost, 0)) // nothing is open any more
	f.holds(runPot(), "r1", 30, 20, 20)
	f.commit(reserve("r1", "b", 70, 0, capOf(100))) // what was kept may be used
	f.commit(settle("r1", store.SettledFree, 0))
	f.holds(runPot(), "r1", 30, 0, 0)
	f.commit(reserve("r1", "c", 40, 5, capOf(100)))
	f.commit(settle("r1", store.SettledLost, 0))
	f.holds(runPot(), "r1", 70, 5, 5)
	f.commit(settle("r1", store.SettledUsed, 1)) // known to be used, and nothing was held
	f.holds(runPot(), "r1", 71, 5, 5)
	f.commit(reserve("r1", "d", 20, 5, capOf(100)))
	f.commit(settle("r1", store.SettledLost, 22)) // the truth, if it is more
	f.holds(runPot(), "r1", 93, 5, 5)
	f.commit(&store.Tx{Settles: []store.Settlement{{RunID: "r1", Last: true, Time: 9}}})
	f.holds(runPot(), "r1", 93, 0, 0)
	f.refused(settle("no", store.SettledUsed, 1), store.ErrNotFound)
	f.refused(reserve("no", "a", 1, 0, capOf(100)), store.ErrNotFound)
	f.end("r1")
	f.refused(reserve("r1", "e", 1, 0, capOf(100)), store.ErrConflict)
}

// testBudgetRefused: the error says what is used and held, and nothing is changed.
func testBudgetRefused(f *fixture) {
	f.begin("s1", "r1")
	f.begin("s2", "r2")
	f.commit(reserve("r1", "a", 30, 10, capOf(100)))
	f.commit(settle("r1", store.SettledUsed, 25))
	f.commit(reserve("r2", "a", 20, 5, capOf(100)))
	day := store.PotRef{Kind: store.PotDay, ID: "2026-01-02"}
	want := func(tx *store.Tx, e store.ExhaustedError) {
		f.Helper()
		tx.Tenant = tenant
		err := f.store.Commit(f.Context(), tx)
		var got *store.ExhaustedError
		if !errors.As(err, &got) || *got != e || !errors.Is(err, store.ErrExhausted) {
			f.Fatalf("got %v, want %+v", err, e)
		}
	}
	both := append([]store.PotCap{{PotRef: day, Max: store.PotLimits{Tokens: 1000}}}, capOf(100)...)
	want(reserve("r1", "b", 50, 1, both), store.ExhaustedError{PotRef: runPot(), Limit: store.LimitCost, Cap: 100, Used: 25, Held: 25, Need: 51})
	want(reserve("r1", "b", 100, 1, both), store.ExhaustedError{PotRef: day, Limit: store.LimitTokens, Cap: 1000, Need: 1010})
	f.holds(runPot(), "r1", 25, 35, 10)
	f.holds(day, "r1", 0, 0, 0)
	f.commit(&store.Tx{Raises: []store.PotRaise{{PotRef: runPot(), By: store.PotLimits{Money: 1}, Time: 8}}})
	f.commit(reserve("r1", "b", 50, 1, both)) // to the cent
	f.holds(day, "r1", 0, 51, 51)
	// Amounts without end are more than any cap, and not less than nothing.
	huge := reserve("r2", "a", 1<<62, 1<<62, capOf(1<<62))
	huge.Reserves[0].Call.Tokens, huge.Reserves[0].Keep.Tokens = 0, 0
	want(huge, store.ExhaustedError{PotRef: runPot(), Limit: store.LimitCost, Cap: 1<<62 + 1, Used: 25, Held: 51, Need: 1<<63 - 1})
	// Calls and failures are counted, and refused when they are used up.
	count := func(calls, failures int64) {
		f.commit(&store.Tx{Counts: []store.PotCount{{Pots: []store.PotRef{runPot()}, Calls: calls, Failures: failures, Time: 9}}})
	}
	counted := []store.PotCap{{PotRef: runPot(), Max: store.PotLimits{Calls: 3, Failures: 2}}}
	count(3, 1)
	f.commit(reserve("r1", "c", 1, 0, counted))
	count(1, 0)
	want(reserve("r1", "c", 1, 0, counted), store.ExhaustedError{PotRef: runPot(), Limit: store.LimitCalls, Cap: 3, Used: 4})
	count(-2, 1)
	want(reserve("r1", "c", 1, 0, counted), store.ExhaustedError{PotRef: runPot(), Limit: store.LimitFailures, Cap: 2, Used: 2})
}

// testBudgetReplaced: a run holds for one call at a time. Another one settles what
// was held for the last as lost, and pots that it does not name are let go.
func testBudgetReplaced(f *fixture) {
	f.begin("s1", "r1")
	day := func(d string) store.PotRef { return store.PotRef{Kind: store.PotDay, ID: d} }
	caps := func(d string) []store.PotCap {
		return append(capOf(100), store.PotCap{PotRef: day(d), Max: store.PotLimits{Money: 100}})
	}
	f.commit(reserve("r1", "a", 40, 10, caps("2026-01-02")))
	f.commit(reserve("r1", "b", 30, 10, caps("2026-01-03")))
	f.holds(runPot(), "r1", 40, 40, 40)
	f.holds(day("2026-01-02"), "r1", 40, 0, 0)
	f.holds(day("2026-01-03"), "r1", 0, 40, 40)
	f.refused(reserve("r1", "c", 31, 0, caps("2026-01-03")), store.ErrExhausted)
	f.commit(reserve("r1", "c", 30, 0, caps("2026-01-03")))
	f.holds(runPot(), "r1", 70, 30, 30)
}

// testBudgetsApart: pots of tenants have nothing to do with each other, and those of
// a session go with it.
func testBudgetsApart(f *fixture) {
	f.begin("s1", "r1")
	other := &store.Tx{Tenant: "tenant-b", NewSessions: []*store.Session{session("s1")}, NewRuns: []*store.Run{run("r1", "s1", "running")}}
	f.commit(other)
	caps := append(capOf(100), store.PotCap{PotRef: store.PotRef{Kind: store.PotSession, ID: "s1"}}, store.PotCap{PotRef: store.PotRef{Kind: store.PotDay, ID: "2026-01-02"}})
	f.commit(reserve("r1", "a", 90, 0, caps))
	tx := reserve("r1", "a", 100, 0, caps)
	tx.Tenant = "tenant-b"
	f.commit(tx)
	f.commit(settle("r1", store.SettledUsed, 80))
	f.holds(runPot(), "r1", 80, 0, 0)
	list := func(tenant string, filter store.PotFilter) (ids []string) {
		f.Helper()
		for {
			pots, cursor, err := f.store.ListPots(f.Context(), tenant, filter)
			if err != nil {
				f.Fatal(err)
			}
			for _, p := range pots {
				ids = append(ids, p.Kind+" "+p.ID)
			}
			if filter.Cursor = cursor; cursor == "" {
				return ids
			}
		}
	}
	equal(f, "all", list(tenant, store.PotFilter{Limit: 2}), []string{"tenant_day 2026-01-02", "session s1", "run r1"})
	equal(f, "sessions", list(tenant, store.PotFilter{Kind: store.PotSession}), []string{"session s1"})
	equal(f, "another's", list(tenant, store.PotFilter{ID: "s2"}), nil)
	f.end("r1")
	f.commit(&store.Tx{DropSessions: []string{"s1"}})
	equal(f, "without the session", list(tenant, store.PotFilter{}), []string{"tenant_day 2026-01-02"})
	equal(f, "of the other tenant", len(list("tenant-b", store.PotFilter{})), 3)
	if _, _, err := f.store.ListPots(f.Context(), tenant, store.PotFilter{Cursor: "tea"}); err == nil {
		f.Fatal("a wrong cursor was taken")
	}
}

// testBudgetRace: whoever reserves at the same time, a cap is never passed.
func testBudgetRace(f *fixture) {
	const runs, rounds, limit = 8, 40, 1000
	for i := range runs {
		f.begin(fmt.Sprint("s", i), fmt.Sprint("r", i))
	}
	var granted, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			id := fmt.Sprint("r", i)
			for n := range rounds {
				call, keep := int64(1+(i*7+n*13)%30), int64(n%5)
				tx := reserve(id, fmt.Sprint("k", n), call, keep, []store.PotCap{{PotRef: runPot(), Max: store.PotLimits{Money: limit}}})
				tx.Tenant = tenant
				switch err := f.store.Commit(f.Context(), tx); {
				case errors.Is(err, store.ErrExhausted):
					refused.Add(1)
					continue
				case err != nil:
					f.Errorf("reserve: %v", err)
					return
				}
				granted.Add(1)
				p, err := f.store.Pots(f.Context(), tenant, id, []store.PotRef{runPot()})
				if err != nil || p[0].Settled.Money+p[0].Held.Money > limit || p[0].Own.Money != call+keep {
					f.Errorf("the pot has %+v, %v", p, err)
				}
				done := settle(id, []string{store.SettledUsed, store.SettledLost, store.SettledFree}[n%3], call/2)
				done.Tenant = tenant
				if err := f.store.Commit(f.Context(), done); err != nil {
					f.Errorf("settle: %v", err)
				}
			}
			if err := f.store.Commit(f.Context(), &store.Tx{Tenant: tenant, Settles: []store.Settlement{{RunID: id, Last: true}}}); err != nil {
				f.Errorf("settle: %v", err)
			}
		})
	}
	wg.Wait()
	p := ok[[]store.Pot](f)(f.store.Pots(f.Context(), tenant, "r0", []store.PotRef{runPot()}))[0]
	if p.Settled.Money > limit || p.Settled.Money < limit-60 || p.Held != (store.Amounts{}) || granted.Load() == 0 || refused.Load() == 0 {
		f.Fatalf("in the end: %+v, %d granted, %d refused", p, granted.Load(), refused.Load())
	}
}

// testBudgetFenced: a driver that was taken over reserves nothing.
func testBudgetFenced(f *fixture) {
	f.begin("s1", "r1")
	tx := reserve("r1", "a", 1, 0, capOf(10))
	tx.Fences = []store.Fence{{RunID: "r1", Epoch: 99}}
	f.refused(tx, store.ErrFenced)
	f.holds(runPot(), "r1", 0, 0, 0)
}
