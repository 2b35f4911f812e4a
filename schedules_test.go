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
)

// TestSchedulesStartRuns: those of the configuration and those that people make, once
// each, whoever tells of them and however often.
func TestSchedulesStartRuns(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "agents"), os.DirFS("configs/agents")),
		os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte("schedules:\n  - {name: nightly, cron: '* * * * *', profile: demo, input: have a look, session_mode: ask, paused: false}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Data: ":memory:", Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	text := func(s string) *string { return &s }
	made, err := rt.CreateSchedule(t.Context(), ScheduleRequest{Name: text("mine"), Cron: text("0 0 1 1 *"), Profile: text("demo"), Input: text("have a look"), Session: text("one"), SessionMode: text("plan")})
	if err != nil {
		t.Fatal(err)
	}
	due := time.Now().Truncate(time.Minute)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := rt.timetable.Fire(t.Context(), "nightly", due); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r, err := rt.TriggerSchedule(t.Context(), made.ID)
	if err == nil {
		r, err = rt.Wait(t.Context(), r.ID)
	}
	if err != nil || r.Status != "completed" || r.Mode != "autonomous" || r.SessionMode != "plan" || !strings.Contains(string(r.Metadata), `"schedule":"mine"`) {
		t.Errorf("%+v, %v", r, err)
	}
	all, _, err := rt.Schedules(t.Context(), "", 0)
	if err != nil || len(all) != 2 || all[0].LastRun == nil || all[1].LastRun == nil || all[1].LastRun.RunID != r.ID || all[1].LastRun.Status != "completed" {
		t.Fatalf("%+v, %v", all, err)
	}
	runs, _, err := rt.engine.List(t.Context(), rt.tenant, engine.RunFilter{})
	nightly := 0
	for _, r := range runs {
		if strings.Contains(string(r.Metadata), due.UTC().Format(time.RFC3339)) {
			nightly++
			if ended, err := rt.Wait(t.Context(), r.ID); err != nil || ended.SessionMode != "ask" {
				t.Errorf("%+v, %v", ended, err)
			}
		}
	}
	if err != nil || nightly != 1 {
		t.Errorf("%d runs of one time, %v", nightly, err)
	}
	if v, err := rt.UpdateSchedule(t.Context(), made.ID, ScheduleRequest{Profile: text("nobody")}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%+v, %v", v, err)
	}
	if err := rt.DeleteSchedule(t.Context(), made.ID); err != nil {
		t.Error(err)
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
  - {name: sch_1, cron: "0 3 * * *", profile: demo, input: x}
`
	if err := os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{Configs: dir, Data: ":memory:"})
	if err == nil {
		t.Fatal("it opened")
	}
	for _, want := range []string{"schedules[0].cron: has not five fields", "another schedule is named", "begins with sch_", `no time zone is named "Mars"`, "no profile is named"} {
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
