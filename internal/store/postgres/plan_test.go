package postgres

import (
	"fmt"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

// A step of a run changes its rows in place: no index is written for them.
func TestStepsChangeRowsInPlace(t *testing.T) {
	c := pgtest.Start(t)
	s := openTest(t, c.NewURL(), &Options{Connections: 2})
	w := &workload{}
	for i := range 4 {
		run := fmt.Sprint("r", i)
		if err := w.start(t.Context(), s, run); err != nil {
			t.Fatal(err)
		}
		for n := int64(1); n <= 60; n++ {
			if err := w.step(t.Context(), s, run, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What sessions count is shown a moment after they did.
	if _, err := s.pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil && code(err) != "42883" { // from version 15
		t.Fatal(err)
	}
	s.pool.Reset()
	if err := s.Commit(t.Context(), &store.Tx{Tenant: tenant, NewSessions: []*store.Session{{ID: "last", Created: 1, Updated: 1}}}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if err := query(t.Context(), s.pool, "SELECT relname::text, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname IN ('runs', 'sessions', 'usage') AND n_tup_upd > 0", func(r row) error {
		seen++
		if all, hot := r.Int(1), r.Int(2); hot*10 < all*8 {
			t.Errorf("table %s: %d of %d changes were in place", r.Text(0), hot, all)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("nothing was counted")
	}
}

// Lists and lookups go by indexes, however many rows there are.
func TestReadsUseIndexes(t *testing.T) {
	c := pgtest.Start(t)
	s := openTest(t, c.NewURL(), &Options{Connections: 1})
	if err := (&workload{}).start(t.Context(), s, "r"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"INSERT INTO tenants (id) SELECT 'x' || g FROM generate_series(1, 20) g",
		"INSERT INTO sessions (tenant, id, created, minute, updated, ephemeral) SELECT 1 + g % 5, 'x' || g, g, g / 100, g, g % 2 FROM generate_series(1, 20000) g",
		`INSERT INTO runs (tenant, session, id, status, epoch, seq, steps, created, started, ended, root_id, parent_id, idempotency_key)
			SELECT 1 + g % 5, g, 'x' || g, CASE WHEN g % 1000 = 0 THEN 'running' ELSE 'completed' END, 1, 1, 1, g, g, g, 'x' || g / 3, 'x' || g / 2, ('k' || g)::bytea FROM generate_series(2, 20000) g`,
		"INSERT INTO entries (session, id, kind, created) SELECT 1 + g % 2000, 'e' || g, 'message', g FROM generate_series(1, 40000) g",
		"INSERT INTO journal (run, last_seq, entries, body) SELECT 1 + g % 2000, g, 0, '' FROM generate_series(1, 40000) g",
		`INSERT INTO interrupts (tenant, run, id, kind, created, expires, status, answered)
			SELECT 1 + g % 5, 1 + g, 'i' || g, 'question', g, g % 50, CASE WHEN g % 500 = 0 THEN 'open' ELSE 'answered' END, 0 FROM generate_series(1, 20000) g`,
		"ANALYZE",
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ctx, id := t.Context(), "x500"
	// The server itself counts what was read whole.
	scans := func() map[string]int64 {
		t.Helper()
		_, _ = s.pool.Exec(ctx, "SELECT pg_stat_force_next_flush()")
		s.pool.Reset()
		m := map[string]int64{}
		if err := query(ctx, s.pool, "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE relname IN ('sessions', 'runs', 'entries', 'journal', 'interrupts')", func(r row) error {
			m[r.Text(0)] = r.Int(1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, read := range map[string]func() error{
		"Run":         func() error { _, err := s.Run(ctx, "x3", id); return ignore(err) },
		"Runs":        func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{Limit: 10}); return err },
		"Runs of":     func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{SessionID: id}); return err },
		"Runs below":  func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{ParentID: id}); return err },
		"Runs by key": func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{IdempotencyKey: "k7"}); return err },
		"Unfinished":  func() error { _, err := s.Unfinished(ctx); return err },
		"Session":     func() error { _, err := s.Session(ctx, "x3", id); return ignore(err) },
		"Sessions":    func() error { _, _, err := s.Sessions(ctx, "x3", store.SessionFilter{Limit: 10}); return err },
		"Entries":     func() error { _, err := s.Entries(ctx, "x3", id, "", 10); return ignore(err) },
		"Path":        func() error { _, err := s.Path(ctx, "x3", id, "e1"); return ignore(err) },
		"Events":      func() error { _, err := s.Events(ctx, "x3", id, 0, 10); return ignore(err) },
		"Interrupts":  func() error { _, _, err := s.Interrupts(ctx, "x3", store.InterruptFilter{Limit: 10}); return err },
		"Open ones":   func() error { _, _, err := s.Interrupts(ctx, "x3", store.InterruptFilter{Status: "open"}); return err },
		"Of a run":    func() error { _, _, err := s.Interrupts(ctx, "x3", store.InterruptFilter{RunID: id}); return err },
		"Expiring":    func() error { _, err := s.Expiring(ctx); return err },
		"Expired":     func() error { _, err := s.Expired(ctx, 60_000, 10); return err },
		"Family":      func() error { _, err := s.Family(ctx, "x3", id); return ignore(err) },
	} {
		before := scans()
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for table, n := range scans() {
			if n > before[table] {
				t.Errorf("%s reads all of table %s", name, table)
			}
		}
	}
}

func ignore(err error) error { return unknownIsNone(err) }
