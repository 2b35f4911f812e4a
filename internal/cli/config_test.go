package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestConfigCheck(t *testing.T) {
	b := newBench(t)
	b.run("config", "check", b.configs).exits(0).says("ok: ")
	b.run("config", "check").exits(0).says("ok: ") // the embedded one
	bad := filepath.Join(b.configs, "agents", "bad.yaml")
	if err := os.WriteFile(bad, []byte("profile_name: bad\nmax_stepz: 3\nmax_tool_calls: many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run("config", "check", b.configs).exits(2).says("agents/bad.yaml:2:1", "max_stepz", "agents/bad.yaml:3:", "max_tool_calls").complains("must be fixed")
	b.run("run", "--configs", b.configs, "--data", b.data, "x").exits(2).complains("max_stepz")
	r := b.asJSON(func() *result { return b.run("config", "check", b.configs) }).exits(2)
	for _, p := range lines[map[string]json.RawMessage](r) {
		for _, key := range []string{"file", "line", "message", "severity"} {
			if len(p[key]) == 0 {
				t.Errorf("a problem has no %s: %v", key, p)
			}
		}
	}
	b.run("config", "check", filepath.Join(b.work, "none")).exits(2).says("there is no such folder")
}

func TestConfigInit(t *testing.T) {
	b := newBench(t)
	b.run("config", "init").exits(0).says(filepath.Join("configs", "agents", "default.yaml"))
	b.run("config", "check", "configs").exits(0)
	b.run("config", "init").exits(1).complains("there already")
	b.run("config", "init", "elsewhere").exits(0).says("elsewhere")
	// ./configs is found without being named.
	if err := os.WriteFile(filepath.Join("configs", "agents", "bad.yaml"), []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run("config", "check").exits(2).says("bad.yaml")
}
