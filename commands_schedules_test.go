package agentd

import (
	"os"
	"path/filepath"
	"testing"

	"agentd/internal/store/postgres/pgtest"
)

// A command on a store that servers share starts none of the scheduled runs of the
// configuration that it happens to have.
func TestCommandsStartNoScheduledRuns(t *testing.T) {
	url, configs := pgtest.Start(t, "fsync = off").NewURL(), t.TempDir()
	for name, text := range map[string]string{
		"agentd.yaml":   "schedules:\n  - {name: nightly, cron: \"0 3 * * *\", profile: p, input: \"Have a look around\"}\n",
		"agents/p.yaml": "profile_name: p\nprimary_model: {provider: openai, model: m, base_url: \"http://127.0.0.1:9/v1\"}\n",
	} {
		path := filepath.Join(configs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dormant := range []bool{false, true} {
		rt, err := Open(t.Context(), Config{Configs: configs, Data: url, Dormant: dormant, Env: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		if starts := rt.endSchedules != nil; starts == dormant {
			t.Errorf("dormant %v: starts scheduled runs %v", dormant, starts)
		}
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}
}
