package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The reference memory server keeps what agents remember, and what it keeps is read by
// the next conversation.
func TestMemoryProvider(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "graph.jsonl")
	w := start(t, setup{scripts: []string{"remember.yaml"}, agents: map[string]string{"remember": "memory_enabled: true\nmemory_provider: graph\nread_policy: always"},
		servers: map[string]any{"graph": map[string]any{"transport": "stdio", "command": built.node,
			"args": []string{pkg("@modelcontextprotocol", "server-memory", "dist", "index.js")}, "env": map[string]string{"MEMORY_FILE_PATH": file}}}})
	for range 2 {
		r := w.do(t, "remember", "Remember that I like engines.", nil).completed()
		if got := r.result("remember").Result; !strings.Contains(got, "Ada likes engines") {
			t.Errorf("remember: %q", got)
		}
	}
	if got, err := os.ReadFile(file); err != nil || strings.Count(string(got), "[Preferences] Ada likes engines") != 1 || !strings.Contains(string(got), `"name":"agentd/default"`) {
		t.Errorf("the memory holds %q, %v", got, err)
	}
	if r := w.do(t, "remember", "What is remembered?", nil).completed(); !strings.Contains(r.run.Output, "Known: - Ada likes engines") {
		t.Errorf("the answer: %q", r.run.Output)
	}
}
