//go:build unix

package interop

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLLMProbe runs llmprobe's tests of /v1/models and chat completions against
// the face and compares their outcomes with a baseline. What it says about
// intelligence is left out: the model is a script.
func TestLLMProbe(t *testing.T) {
	t.Parallel()
	// Prompts below 1,024 tokens are not cached.
	prompt := strings.Repeat("You are careful. ", 100)
	w := start(t, setup{scripts: []string{"probe.yaml"}, agents: map[string]string{"probe": "system_prompt: " + prompt}})
	dir := t.TempDir()
	// Every outcome counts here, so its exit code says nothing more.
	stdout, stderr, err := finish(t, dir, environment(dir), built.node, pkg("llmprobe", "bin", "dist", "llmprobe.mjs"), w.url+"/v1",
		"-m", "probe", "-k", "none", "--full", "--no-bench", "--no-save", "--timeout", "5", "--json")
	var report struct {
		Conformance struct {
			Results []struct {
				ID, Surface, Outcome, Reason string
				Failures                     []struct{ Message string }
			}
		}
	}
	if jsonErr := json.Unmarshal([]byte(stdout), &report); jsonErr != nil {
		t.Fatalf("llmprobe: %v, %v\n%s\n%s", err, jsonErr, tail(stdout, 1000), tail(stderr, 2000))
	}
	got, why := map[string]string{}, map[string]string{}
	for _, r := range report.Conformance.Results {
		if r.Surface != "models" && r.Surface != "chat" {
			continue
		}
		got[r.ID], why[r.ID] = r.Outcome, r.Reason
		for _, f := range r.Failures {
			why[r.ID] += " " + f.Message
		}
	}
	if len(got) < 40 {
		t.Fatalf("only %d tests ran:\n%s", len(got), tail(stdout, 2000))
	}
	file := filepath.Join("testdata", "llmprobe.json")
	if *update {
		raw, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if got[id] != want[id] {
			t.Errorf("%s: %q, the baseline has %q:%s", id, got[id], want[id], why[id])
		}
	}
	if t.Failed() {
		t.Log("if this is as it should be, write the baseline anew: go test -run TestLLMProbe . -update (in test/interop), and read the diff")
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if got[id] != "pass" {
			t.Logf("%s: %s: %s", id, got[id], why[id])
		}
	}
}
