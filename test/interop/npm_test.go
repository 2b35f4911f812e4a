//go:build unix

package interop

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// node runs a script of test/npm against an address; each of its checks is a
// test.
func node(t *testing.T, script, url string) {
	t.Helper()
	dir := t.TempDir()
	stdout, stderr, err := finish(t, dir, environment(dir, "AGENTD_URL="+url), built.node, filepath.Join(built.npm, script))
	ran, promised := 0, -1
	for lines := bufio.NewScanner(strings.NewReader(stdout)); lines.Scan(); {
		var line struct {
			Check, Error string
			Done         *int
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // of the packages
		}
		switch {
		case line.Done != nil:
			promised = *line.Done
		case line.Check != "":
			ran++
			t.Run(line.Check, func(t *testing.T) {
				if line.Error != "" {
					t.Error(line.Error)
				}
			})
		}
	}
	if err != nil || ran == 0 || ran != promised {
		t.Errorf("%s ran %d of %d checks, %v:\n%s\n%s", script, ran, promised, err, tail(stdout, 2000), tail(stderr, 4000))
	}
}

// facade starts an agent with a tool of the server and a file for it to find.
func facade(t *testing.T) *world {
	t.Helper()
	w := start(t, setup{scripts: []string{"facade.yaml"}, agents: map[string]string{"facade": "tools: {builtin: [workspace]}"}})
	write(t, filepath.Join(w.work, "present.txt"), "hello\n")
	return w
}

func TestFacadeOpenAI(t *testing.T) {
	t.Parallel()
	node(t, "facade-openai.mjs", facade(t).url)
}

func TestFacadeAISDK(t *testing.T) {
	t.Parallel()
	node(t, "facade-ai.mjs", facade(t).url)
}

func TestFacadeLangChain(t *testing.T) {
	t.Parallel()
	node(t, "facade-langchain.mjs", facade(t).url)
}

// The simulator is held to what the providers' own clients expect: what passes
// against it should pass against them.
func TestSimOpenAI(t *testing.T) {
	t.Parallel()
	node(t, "sim-openai.mjs", simulate(t, nil, "sim.yaml"))
}

func TestSimAnthropic(t *testing.T) {
	t.Parallel()
	node(t, "sim-anthropic.mjs", simulate(t, nil, "sim.yaml"))
}
