//go:build unix

package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
)

var scenarioLine = regexp.MustCompile(`(?m)^([✓✗]) (\S+): (\d+) passed, (\d+) failed`)

// TestConformance plays the MCP conformance kit against agentd's client, for
// each revision with what the kit requires of it. What agentd does not do is
// listed, with the reason, in test/conformance/client: a failure that is not
// listed fails the test, and so does a listed one that passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	for revision, scenarios := range map[string]int{"2025-11-25": 25, "2026-07-28": 39} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			list := filepath.Join(built.root, "test", "conformance", "client", "expected-failures-"+revision+".yml")
			raw, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			var expected struct{ Client []string }
			if err := yaml.Unmarshal(raw, &expected); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			// The kit's own servers would listen everywhere.
			env := environment(dir, "NODE_OPTIONS=--import="+filepath.Join(built.npm, "loopback.mjs"))
			stdout, stderr, err := finish(t, dir, env, built.node, pkg("@modelcontextprotocol", "conformance", "dist", "index.js"), "client",
				"--command", built.conformanceClient, "--requirements", revision, "--expected-failures", list, "-o", filepath.Join(dir, "out"))
			ran := 0
			for _, m := range scenarioLine.FindAllStringSubmatch(stdout, -1) {
				ran++
				name, passed := m[2], m[1] == "✓"
				switch known := slices.Contains(expected.Client, name); {
				case !passed && !known:
					t.Errorf("%s fails: %s passed, %s failed", name, m[3], m[4])
				case passed && known:
					t.Errorf("%s passes: remove it from %s", name, list)
				}
			}
			if ran != scenarios {
				t.Errorf("%d scenarios ran, not %d", ran, scenarios)
			}
			if err != nil {
				t.Errorf("the kit: %v", err)
			}
			if t.Failed() {
				t.Logf("%s\n%s", tail(stdout, 8000), tail(stderr, 2000))
			}
		})
	}
}
