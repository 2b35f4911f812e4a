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
		`INSERT INTO pots (tenant, kind, id, money, tokens, calls, failures, held_money, held_tokens, more_money, more_tokens, more_calls, more_failures, updated)
			SELECT 1 + g % 5, 'run', 'x' || g, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 20000) g`,
		"INSERT INTO inputs (run, id, kind, created) SELECT g, 'in' || g, 'steer', 1 FROM generate_series(2, 20000) g",
		"INSERT INTO proposals (run, id, call_id, name, effect, idem_key, created, status, decided) SELECT g, 'x' || g || '.p1', '', '', 'once', '', 1, 'proposed', 0 FROM generate_series(2, 20000) g",
		"INSERT INTO session_rules (session, id, tool, pattern, created) SELECT 1 + g % 2000, 'u' || g, '', '', g FROM generate_series(1, 20000) g",
		"INSERT INTO blobs (tenant, hash, created) SELECT 1, int8send(g), 1 FROM generate_series(1, 20000) g",
		"INSERT INTO blob_uses (session, blob) SELECT 1 + g % 2000, g FROM generate_series(1, 20000) g",
		"INSERT INTO holds (run, pot, money, tokens, keep_money, keep_tokens) SELECT g, g, 0, 0, 0, 0 FROM generate_series(2, 20000) g",
		"INSERT INTO artifacts (session, hash, size, created, expired) SELECT 1 + g % 2000, int8send(g), 1, g, 0 FROM generate_series(1, 20000) g",
		"INSERT INTO quarantine (session, entry, what, created) SELECT 1 + g % 2000, 'e' || g, 'text', g FROM generate_series(1, 20000) g",
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
		if err := query(ctx, s.pool, "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE relname IN ('sessions', 'runs', 'entries', 'journal', 'interrupts', 'pots', 'holds', 'artifacts', 'quarantine', 'inputs', 'proposals', 'session_rules', 'blobs', 'blob_uses')", func(r row) error {
			m[r.Text(0)] = r.Int(1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, read := range map[string]func() error{
		"Run":          func() error { _, err := s.Run(ctx, "x3", id); return ignore(err) },
		"Runs":         func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{Limit: 10}); return err },
		"Runs of":      func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{SessionID: id}); return err },
		"Runs below":   func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{ParentID: id}); return err },
		"Runs by key":  func() error { _, _, err := s.Runs(ctx, "x3", store.RunFilter{IdempotencyKey: "k7"}); return err },
		"Last of keys": func() error { _, err := s.LastKeyed(ctx, "x3", "k7"); return err },
		"Unfinished":   func() error { _, err := s.Unfinished(ctx); return err },
		"Session":      func() error { _, err := s.Session(ctx, "x3", id); return ignore(err) },
		"Sessions":     func() error { _, _, err := s.Sessions(ctx, "x3", store.SessionFilter{Limit: 10}); return err },
		"Entries":      func() error { _, err := s.Entries(ctx, "x3", id, "", 10); return ignore(err) },
		"Path":         func() error { _, err := s.Path(ctx, "x3", id, "e1"); return ignore(err) },
		"Events":       func() error { _, err := s.Events(ctx, "x3", id, 0, 10); return ignore(err) },
		"Interrupts":   func() error { _, _, err := s.Interrupts(ctx, "x3", store.InterruptFilter{Limit: 10}); return err },
		"Open ones":    func() error { _, _, err := s.Interrupts(ctx, "x3", store.InterruptFilter{Status: "open"}); return err },
		"Of a run":     func() error { _, _, err := s.Interrupts(ctx, "x3", store.InterruptFilter{RunID: id}); return err },
		"Expiring":     func() error { _, err := s.Expiring(ctx); return err },
		"Recent":       func() error { _, _, err := s.Recent(ctx, "x3", store.RecentFilter{Since: 1 << 50}); return err },
		"Pots": func() error {
			_, err := s.Pots(ctx, "x3", id, []store.PotRef{{Kind: "run", ID: "x7"}, {Kind: "run", ID: id}})
			return err
		},
		"ListPots":  func() error { _, _, err := s.ListPots(ctx, "x3", store.PotFilter{Limit: 10}); return err },
		"Artifacts": func() error { _, err := s.Artifacts(ctx, "x3", id); return ignore(err) },
		"Uses":      func() error { _, err := s.ArtifactUses(ctx, "x3", "0000000000000007"); return ignore(err) },
		"Overdue": func() error {
			_, err := s.Overdue(ctx, store.Retention{Before: 9}, &store.SessionRef{Tenant: "x3", ID: "x503"}, 5)
			return ignore(err)
		},
		"Quarantined": func() error { _, err := s.Quarantined(ctx, "x3", id); return ignore(err) },
		"Reserve": func() error {
			pots := []store.PotCap{{PotRef: store.PotRef{Kind: "run", ID: "x1000"}}, {PotRef: store.PotRef{Kind: "run", ID: "x1005"}}}
			return s.Commit(ctx, &store.Tx{Tenant: tenant, Reserves: []store.Reservation{{RunID: "x1000", Key: "k", Pots: pots}},
				Settles: []store.Settlement{{RunID: "x1000", How: store.SettledLost, Pots: []store.PotRef{pots[0].PotRef}}}})
		},
		"Change": func() error {
			return s.Commit(ctx, &store.Tx{Tenant: tenant, DropInputs: []store.InputRef{{RunID: "x1000", ID: "in1000"}},
				Proposals: []store.ProposalChange{{ID: "x1000.p1", From: "proposed", ProposalUpdate: store.ProposalUpdate{Status: "discarded"}}},
				DropRules: []store.RuleRef{{SessionID: "x1000", ID: "u1000"}}, Events: []*store.Event{{RunID: "x1000", Seq: 1 << 40, Type: "x"}},
				ExpireArtifacts: []store.ArtifactExpiry{{SessionID: "x1000", ID: "00000000000003e8"}}})
		},
		"Drop":    func() error { return s.Commit(ctx, &store.Tx{Tenant: tenant, DropSessions: []string{"x2000"}}) },
		"Expired": func() error { _, err := s.Expired(ctx, 60_000, 10); return err },
		"Family":  func() error { _, err := s.Family(ctx, "x3", id); return ignore(err) },
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
