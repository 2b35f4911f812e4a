package sqlite

import (
	"slices"
	"testing"

	"agentd/internal/store"
)

// What the doctor says of calls for pools, as for PostgreSQL.
func TestTheDoctorLooksAtCallsForPools(t *testing.T) {
	s := openTest(t, Memory, nil)
	for _, id := range []string{"live", "over"} {
		if err := s.Commit(t.Context(), &store.Tx{Tenant: "t", NewSessions: []*store.Session{{ID: "s-" + id, Created: 1, Updated: 1}},
			NewRuns: []*store.Run{{ID: id, SessionID: "s-" + id, Created: 1, RunUpdate: store.RunUpdate{Status: "running"}}},
			Effects: []store.EffectChange{{Op: store.AskEffect, Effect: store.Effect{RunID: id, ID: "tool/a", Kind: "tool", Pool: "tool.gpu", Class: "once", Version: 1, Created: 1}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"UPDATE runs SET status = 'completed', ended = 5 WHERE id = 'over'",
		"INSERT INTO effects (run, id, kind, pool, class, version, status, stop, attempt, created, started, ended) SELECT key, 'tool/b', 'tool', 'tool.gpu', 'once', 1, 'started', 0, 0, 1, 0, 0 FROM runs WHERE id = 'live'",
		"INSERT INTO effects (run, id, kind, pool, class, version, status, stop, attempt, created, started, ended) VALUES (9999, 'tool/a', 'tool', 'tool', 'once', 1, 'done', 0, 1, 1, 0, 0)",
	} {
		if _, _, err := s.writer.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	check := func(repair bool) (out []string) {
		t.Helper()
		r, err := s.Check(t.Context(), store.CheckOptions{Repair: repair, Now: 9})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Check == "effects" || f.Where == "table effects" {
				out = append(out, f.Check+" "+f.Severity+" "+f.Where)
			}
		}
		return out
	}
	want := []string{"orphans warning table effects", "effects warning t: run over", "effects notice pool tool.gpu", "effects error t: run live, call tool/b"}
	for _, repair := range []bool{false, true} {
		if got := check(repair); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if got := check(false); !slices.Equal(got, want[2:3]) {
		t.Errorf("after the repair: %q", got)
	}
}
