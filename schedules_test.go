package agentd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/schedule"
)

func scheduled(t *testing.T) *Runtime {
	t.Helper()
	rt, err := Open(t.Context(), Config{Data: ":memory:", Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func planOf(t *testing.T, s profile.Schedule) *plan {
	t.Helper()
	times, err := schedule.Parse("* * * * *", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Name, s.Profile, s.Input, s.Tenant = "minutely", "demo", "have a look", "default"
	return &plan{s, schedule.Item{ID: s.Name, Times: times, CatchUp: s.CatchUp.Std()}}
}

func (rt *Runtime) all(t *testing.T) []*Run {
	t.Helper()
	runs, _, err := rt.engine.List(t.Context(), rt.tenant, engine.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// TestADueTimeStartsOneRun: whoever tells of it, and however often.
func TestADueTimeStartsOneRun(t *testing.T) {
	rt := scheduled(t)
	p, due := planOf(t, profile.Schedule{Session: "new"}), time.Now().Truncate(time.Minute)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := rt.fire(t.Context(), p, due); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	runs := rt.all(t)
	if len(runs) != 1 || runs[0].Mode != "autonomous" || !strings.Contains(string(runs[0].Metadata), `"schedule":"minutely"`) {
		t.Errorf("%d runs: %+v", len(runs), runs)
	}
}

func TestRunsOfOneSession(t *testing.T) {
	rt := scheduled(t)
	p, due := planOf(t, profile.Schedule{Session: "one", WhenBusy: "enqueue"}), time.Now().Truncate(time.Minute)
	for i := range 3 {
		if err := rt.fire(t.Context(), p, due.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	runs := rt.all(t)
	if len(runs) != 3 || runs[0].SessionID != runs[1].SessionID || runs[1].SessionID != runs[2].SessionID {
		t.Errorf("%d runs: %+v", len(runs), runs)
	}
}

func TestWhatIsTooLateIsLeftOut(t *testing.T) {
	rt := scheduled(t)
	for _, c := range []struct {
		catchUp time.Duration
		ago     time.Duration
		cron    string
		want    int
	}{
		{0, 2 * time.Hour, "0 0 1 1 *", 0},
		{3 * time.Hour, 2 * time.Hour, "0 0 1 1 *", 1},
		{3 * time.Hour, 2 * time.Hour, "* * * * *", 1}, // there was a later one: no second run
	} {
		p := planOf(t, profile.Schedule{Session: "new", CatchUp: profile.Duration(c.catchUp)})
		var err error
		if p.item.Times, err = schedule.Parse(c.cron, ""); err != nil {
			t.Fatal(err)
		}
		if err := rt.fire(t.Context(), p, time.Now().Add(-c.ago)); err != nil {
			t.Fatal(err)
		}
		if n := len(rt.all(t)); n != c.want {
			t.Errorf("%s, %v ago: %d runs, want %d", c.cron, c.ago, n, c.want)
		}
	}
}

func TestSchedulesAreChecked(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `schedules:
  - {name: a, cron: "0 3 * *", profile: demo, input: x}
  - {name: a, cron: "0 3 * * *", time_zone: Mars, profile: nobody, input: x}
`
	if err := os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{Configs: dir, Data: ":memory:"})
	if err == nil {
		t.Fatal("it opened")
	}
	for _, want := range []string{"schedules[0].cron: has not five fields", "another schedule is named", `no time zone is named "Mars"`, "no profile is named"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// TestEnginesThatCanNotBe: what is wrong is said before anything runs, without secrets.
func TestEnginesThatCanNotBe(t *testing.T) {
	for _, c := range []struct{ engine, want string }{
		{"temporal://127.0.0.1:7233/x", "one process alone"},
		{"temporal://secret@127.0.0.1", "has a user"},
		{"temporal:", "has no host"},
		{"cadence://127.0.0.1", "does not begin with temporal://"},
	} {
		_, err := Open(context.Background(), Config{Data: ":memory:", Engine: c.engine})
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.engine, err)
		}
	}
	if _, err := temporalTLS(&profile.Temporal{CAFile: "/no/such/file"}); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}
