package storetest

import "agentd/internal/store"

// testRecent: what was used lately, by a tenant and by one user of it.
func testRecent(f *fixture) {
	const now = 100 * 60_000
	session := func(id string, ephemeral bool, at int64) *store.Session {
		return &store.Session{ID: id, Ephemeral: ephemeral, Created: at, Updated: at}
	}
	run := func(id, session, user, parent string, at int64) *store.Run {
		return &store.Run{ID: id, SessionID: session, User: user, ParentID: parent, Created: at, RunUpdate: store.RunUpdate{Status: "completed"}}
	}
	used := func(run, user string, at, n int64) *store.Usage {
		return &store.Usage{RunID: run, User: user, Provider: "p", Model: "m", Time: at, Input: n, Output: 1, CacheRead: 1, CacheWrite: 1}
	}
	f.commit(&store.Tx{
		NewSessions: []*store.Session{session("old", false, 1000), session("a", false, now), session("b", true, now), session("c", false, now)},
		NewRuns: []*store.Run{run("r0", "old", "kim", "", 1000), run("r1", "a", "kim", "", now), run("r2", "b", "", "", now), run("r3", "c", "kim", "r1", now),
			run("r4", "a", "kim", "", 2000)},
		Usage: []*store.Usage{used("r0", "kim", 1000, 1000), used("r1", "kim", now, 10), used("r2", "", now, 20), used("r3", "kim", now, 30), used("r1", "kim", now, 10), used("r4", "kim", 2000, 500)},
	})
	f.commit(&store.Tx{Tenant: "other", NewSessions: []*store.Session{session("a", false, now)}, NewRuns: []*store.Run{run("r1", "a", "kim", "", now)},
		Usage: []*store.Usage{used("r1", "kim", now, 7)}})
	for range 2 {
		for _, tt := range []struct {
			tenant       string
			filter       store.RecentFilter
			runs, tokens int64
		}{
			{tenant, store.RecentFilter{Since: now}, 2, 82},
			{tenant, store.RecentFilter{Since: now + 59_999}, 2, 82},
			{tenant, store.RecentFilter{Since: now, One: true, User: "kim"}, 1, 59},
			{tenant, store.RecentFilter{Since: now, One: true}, 1, 23},
			{tenant, store.RecentFilter{Since: now, One: true, User: "lee"}, 0, 0},
			{tenant, store.RecentFilter{Since: now + 60_000}, 0, 0},
			{"other", store.RecentFilter{Since: now, One: true, User: "kim"}, 1, 10},
			{"nobody", store.RecentFilter{}, 0, 0},
		} {
			runs, tokens, err := f.store.Recent(f.Context(), tt.tenant, tt.filter)
			if err != nil || runs != tt.runs || tokens != tt.tokens {
				f.Errorf("%s %+v: %d runs, %d tokens, %v; want %d and %d", tt.tenant, tt.filter, runs, tokens, err, tt.runs, tt.tokens)
			}
		}
		got := ok[[]*store.UsageTotal](f)(f.store.Usage(f.Context(), tenant, store.UsageFilter{User: "kim"}))
		equal(f, "usage of a user", got, []*store.UsageTotal{{Provider: "p", Model: "m", Calls: 5, Input: 1550, Output: 5, CacheRead: 5, CacheWrite: 5}})
		f.again()
	}
	// Usage outlives what it was used in.
	f.commit(&store.Tx{DropSessions: []string{"old", "a", "b", "c"}})
	got := ok[[]*store.UsageTotal](f)(f.store.Usage(f.Context(), tenant, store.UsageFilter{User: "kim"}))
	equal(f, "calls of a user", got[0].Calls, int64(5))
}
