package cli

import (
	"os"
	"path/filepath"
	"testing"

	"agentd/client"
)

// What starts runs at certain times is made, changed, paused, triggered and deleted, in
// a data folder as on a server.
func TestSchedules(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.configs, "agentd.yaml"), []byte("schedules:\n  - {name: fixed, cron: '0 4 * * *', profile: talk, input: Good morning}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.here("schedules", "create", "--name", "nightly", "--cron", "0 3 * * *").exits(2).complains("--profile and --input")
	b.here("schedules", "create", "--name", "nightly", "--cron", "0 3 * *", "--profile", "talk", "--input", "Good night").exits(2).complains("cron", "five fields")
	b.here("schedules", "create", "--name", "nightly", "--cron", "0 3 * * *", "--profile", "talk", "--input", "Good night").exits(0).says("nightly", "03:00:00", "0 3 * * * (UTC)")
	b.here("schedules", "create", "--name", "nightly", "--cron", "0 3 * * *", "--profile", "talk", "--input", "Good night").exits(1).complains("another schedule is named nightly")
	s := lines[client.Schedule](b.here("schedules", "ls", "--json").exits(0))
	if len(s) != 2 || s[0].Source != "config" || s[1].Name != "nightly" || len(s[1].Next) != 3 {
		t.Fatalf("%+v", s)
	}
	b.here("schedules", "update", "nightly").exits(2).complains("say what is to change")
	b.here("schedules", "update", "nightly", "--time-zone", "Europe/Berlin", "--session", "one", "--session-mode", "plan").exits(0).says("(Europe/Berlin)", "reject", "session mode", "plan")
	b.here("schedules", "update", "nightly", "--session-mode", "fast").exits(2).complains("session_mode", "ask, plan or edit")
	b.here("schedules", "pause", s[1].ID).exits(0).says("paused")
	b.here("schedules", "ls").exits(0).says("SCHEDULE", "fixed", "nightly", "paused")
	r := lines[client.Run](b.here("schedules", "trigger", "nightly", "--json").exits(0))[0]
	b.here("schedules", "show", "nightly").exits(0).says(r.ID, "triggered")
	b.here("schedules", "resume", "nightly").exits(0)
	b.here("schedules", "pause", "fixed").exits(1).complains("is in agentd.yaml")
	b.here("schedules", "rm", "nothing").exits(1).complains("there is no schedule nothing")
	b.here("schedules", "rm", "nightly").exits(0).says("is deleted")
	b.here("schedules", "show", s[1].ID).exits(1).complains("there is no schedule " + s[1].ID)
}
