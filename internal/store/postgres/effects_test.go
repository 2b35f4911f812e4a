package postgres

import (
	"fmt"
	"slices"
	"testing"

	"agentd/internal/store"
	"agentd/internal/store/postgres/pgtest"
)

// What the doctor says of calls for pools: what is left over of runs that have ended, or
// are gone, is deleted, and so is what nobody can make; a pool without a node is a notice.
func TestTheDoctorLooksAtCallsForPools(t *testing.T) {
	s, w := openTest(t, pgtest.Start(t, "fsync = off").NewURL(), &Options{Exclusive: true}), &workload{}
	for _, id := range []string{"live", "over"} {
		if err := w.start(t.Context(), s, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"UPDATE runs SET status = 'completed', ended = 5 WHERE id = 'over'",
		"INSERT INTO effects (run, id, kind, pool, class, version, status, stop, attempt, created, started, ended) SELECT key, 'tool/a', 'tool', 'tool.gpu', 'once', 1, 'pending', 0, 0, 1, 0, 0 FROM runs",
		"INSERT INTO effects (run, id, kind, pool, class, version, status, stop, attempt, created, started, ended) SELECT key, 'tool/b', 'tool', 'tool.gpu', 'once', 1, 'started', 0, 0, 1, 0, 0 FROM runs WHERE id = 'live'",
		"INSERT INTO effects (run, id, kind, pool, class, version, status, stop, attempt, created, started, ended) VALUES (9999, 'tool/a', 'tool', 'tool', 'once', 1, 'done', 0, 1, 1, 0, 0)",
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
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
				out = append(out, fmt.Sprint(f.Check, " ", f.Severity, " ", f.Where))
			}
		}
		return out
	}
	want := []string{"orphans warning table effects", "effects warning " + tenant + ": run over", "effects notice pool tool.gpu", "effects error " + tenant + ": run live, call tool/b"}
	for _, repair := range []bool{false, true} {
		if got := check(repair); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if got := check(false); !slices.Equal(got, want[2:3]) {
		t.Errorf("after the repair: %q", got)
	}
	if left, err := s.Effects(t.Context(), store.EffectFilter{Tenant: tenant, RunID: "live"}); err != nil || len(left) != 1 || left[0].ID != "tool/a" {
		t.Errorf("left: %v, %v", left, err)
	}
}
