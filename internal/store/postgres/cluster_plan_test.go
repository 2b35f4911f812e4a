package postgres

import (
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

// What nodes ask all the time goes by indexes, however many runs wait for people and
// however many are driven.
func TestNodesReadByIndexes(t *testing.T) {
	c := pgtest.Start(t, "fsync = off")
	s := openTest(t, c.NewURL(), &Options{Connections: 1})
	if err := (&workload{}).start(t.Context(), s, "r"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"INSERT INTO tenants (id) SELECT 'x' || g FROM generate_series(1, 20) g",
		"INSERT INTO sessions (tenant, id, created, minute, updated, ephemeral) SELECT 1 + g % 5, 'x' || g, g, g / 100, g, 0 FROM generate_series(1, 40000) g",
		`INSERT INTO runs (tenant, session, id, status, epoch, seq, steps, created, started, ended, parent_id)
			SELECT 1 + g % 5, 1 + g, 'x' || g, CASE WHEN g % 20 = 0 THEN 'running' ELSE 'paused_checkpoint' END, 1, 1, 1, g, g, g, CASE WHEN g % 10 = 0 THEN 'x' || (g + 1) END FROM generate_series(2, 30000) g`,
		"INSERT INTO nodes (id, version, worker, started, until) VALUES ('n1', 1, 1, 1, 99999999999999), ('n2', 1, 1, 1, 99999999999999)",
		"INSERT INTO claims (run, node, needs) SELECT key, 'n1', 0 FROM runs WHERE status = 'running' AND key > 1",
		`INSERT INTO interrupts (tenant, run, id, kind, created, expires, status, answered)
			SELECT tenant, key, 'i' || key, 'question', 1, 99999999999999, 'open', 0 FROM runs WHERE status = 'paused_checkpoint'`,
		"INSERT INTO mail (run, id, kind, created, applied) SELECT key, 'm' || key, 'k', 1, 1 FROM runs WHERE key % 2 = 0",
		"INSERT INTO mail (run, id, kind, created, applied) SELECT key, 'w' || key, 'k', 1, 0 FROM runs WHERE key % 3000 = 5",
		"ANALYZE",
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	scans := func() map[string]int64 {
		t.Helper()
		_, _ = s.pool.Exec(ctx, "SELECT pg_stat_force_next_flush()")
		s.pool.Reset()
		s.ahead.Reset()
		m := map[string]int64{}
		if err := query(ctx, s.pool, "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE relname IN ('sessions', 'runs', 'interrupts', 'mail')", func(r row) error {
			m[r.Text(0)] = r.Int(1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, read := range map[string]func() error{
		"Claim": func() error {
			got, err := s.Claim(ctx, store.ClaimRequest{Look: true, Version: 1, Roots: 1000, Limit: 64})
			if len(got) != 11 {
				t.Errorf("%d runs have something to do", len(got))
			}
			return err
		},
		"Claim of a full node": func() error {
			_, err := s.Claim(ctx, store.ClaimRequest{Look: true, Version: 1, Limit: 64})
			return err
		},
		"Claim of one": func() error {
			_, err := s.Claim(ctx, store.ClaimRequest{Look: true, Version: 1, Roots: 1, Limit: 1, Only: &store.RunRef{Tenant: "x3", ID: "x500"}})
			return err
		},
		"Mail":    func() error { _, err := s.Mail(ctx, "x3", "x500"); return ignore(err) },
		"Outcome": func() error { _, err := s.Outcome(ctx, "x3", "x500", "m7"); return ignore(err) },
		"Ahead":   func() error { _, err := s.Ahead(ctx, "x3", "x500", 0); return ignore(err) },
		"Claimed": func() error { _, err := s.Claimed(ctx, "n2"); return err },
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
