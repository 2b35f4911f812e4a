//go:build unix

package interop

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

func everything(args ...string) []string {
	return append([]string{pkg("@modelcontextprotocol", "server-everything", "dist", "index.js")}, args...)
}

// everythingHTTP starts server-everything over HTTP.
func everythingHTTP(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"--import", filepath.Join(built.npm, "loopback.mjs")}, everything("streamableHttp")...)
	return begin(t, dir, environment(dir, "PORT=0"), built.node, args...).says(t, `listens on (http://127\.0\.0\.1:\d+)`) + "/mcp"
}

// TestEverything calls the reference server's tools over both transports, with
// a model of either provider.
func TestEverything(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			s := setup{scripts: []string{"everything.yaml"}, agents: map[string]string{"everything": "tools: {mcp_servers: [everything]}"},
				servers: map[string]any{"everything": map[string]any{"transport": "stdio", "command": built.node, "args": everything("stdio")}}}
			if transport == "http" {
				s.servers["everything"] = map[string]any{"transport": "http", "url": everythingHTTP(t)}
				s.anthropic = []string{"everything"}
			}
			w := start(t, s)
			r := w.do(t, "everything", "Call everything.", nil).completed()
			if got := r.result("echo").Result; !strings.Contains(got, "grüße, 世界") {
				t.Errorf("echo: %q", got)
			}
			if got := r.result("get-sum").Result; !strings.Contains(got, "42") {
				t.Errorf("get-sum: %q", got)
			}
			var weather struct{ Temperature *float64 }
			if m := w.stored(t, r, "get-structured-content"); json.Unmarshal(m.Details, &weather) != nil || weather.Temperature == nil {
				t.Errorf("get-structured-content: details %s, text %q", m.Details, m.Text())
			}
			if m := w.stored(t, r, "get-tiny-image"); !slices.ContainsFunc(m.Content, func(b message.Block) bool {
				return b.Type == message.BlockImage && b.MimeType == "image/png" && b.Data != ""
			}) {
				t.Errorf("get-tiny-image: %+v", m.Content)
			}
			const long = "trigger-long-running-operation"
			if got := r.result(long).Result; !strings.Contains(got, "4") {
				t.Errorf("%s: %q", long, got)
			}
			// The last notifications may come after the result, and are dropped then.
			steps := r.tools(event.ToolProgress, long)
			if len(steps) < 2 {
				t.Errorf("%d notifications of progress", len(steps))
			}
			for i, p := range steps {
				if p.Total != 4 || i > 0 && p.Progress <= steps[i-1].Progress {
					t.Errorf("progress %d: %v of %v", i, p.Progress, p.Total)
				}
			}
			if !strings.Contains(r.run.Output, "The sum: ") || !strings.Contains(r.run.Output, "42") {
				t.Errorf("the answer: %q", r.run.Output)
			}
			w.cancelled(t, "everything", "Run forever.", long)
			// The server, which goes on working on what was cancelled, still serves.
			w.do(t, "everything", "Call everything again.", nil).completed().result("get-sum")
		})
	}
}

// stored gives a tool's result as the session keeps it.
func (w *world) stored(t *testing.T, r *record, tool string) *message.Message {
	t.Helper()
	entries, err := w.client.Entries(t.Context(), r.run.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Message != nil && e.Message.ToolName == tool {
			return e.Message
		}
	}
	t.Fatalf("the session has no result of %s", tool)
	return nil
}

// cancelled runs an agent until the tool reports progress, cancels the run and
// checks that it ends so.
func (w *world) cancelled(t *testing.T, agent, input, tool string) {
	t.Helper()
	asked := false
	r := w.do(t, agent, input, func(id string, e event.Event) {
		if p, ok := e.Data.(*event.Tool); !ok || e.Type != event.ToolProgress || p.Name != tool || asked {
			return
		}
		asked = true
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := w.client.Cancel(ctx, id, "enough"); err != nil {
			t.Error(err)
		}
	})
	if !asked || r.run.Status != client.Cancelled {
		t.Errorf("asked %v, the run is %s: %+v", asked, r.run.Status, r.run.Error)
		r.dump()
	}
}

func TestFilesystem(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, setup{scripts: []string{"files.yaml"}, agents: map[string]string{"files": "tools: {mcp_servers: [files]}"}, anthropic: []string{"files"},
		servers: map[string]any{"files": map[string]any{"transport": "stdio", "command": built.node,
			"args": []string{pkg("@modelcontextprotocol", "server-filesystem", "dist", "index.js"), dir}}}})
	r := w.do(t, "files", dir, nil).completed()
	const text = "one\ntwo ünï\n"
	if got, err := os.ReadFile(filepath.Join(dir, "note.txt")); err != nil || string(got) != text {
		t.Errorf("the file holds %q, %v", got, err)
	}
	r.result("write_file")
	if got := r.result("read_text_file").Result; got != text {
		t.Errorf("read: %q", got)
	}
	if got := r.result("list_directory").Result; !strings.Contains(got, "[FILE] note.txt") {
		t.Errorf("list: %q", got)
	}
	if got := r.failure("get_file_info"); !strings.Contains(got.Result, "outside allowed directories") {
		t.Errorf("outside of the folder: %+v", got)
	}
	if !strings.Contains(r.run.Output, "two ünï") {
		t.Errorf("the answer: %q", r.run.Output)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "graph.jsonl")
	w := start(t, setup{scripts: []string{"graph.yaml"}, agents: map[string]string{"graph": "tools: {mcp_servers: [graph]}"},
		servers: map[string]any{"graph": map[string]any{"transport": "stdio", "command": built.node,
			"args": []string{pkg("@modelcontextprotocol", "server-memory", "dist", "index.js")}, "env": map[string]string{"MEMORY_FILE_PATH": file}}}})
	r := w.do(t, "graph", "Remember Ada.", nil).completed()
	r.result("create_entities")
	if got := r.result("search_nodes").Result; !strings.Contains(got, "likes engines") {
		t.Errorf("search: %q", got)
	}
	if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), `"name":"Ada"`) {
		t.Errorf("the memory holds %q, %v", got, err)
	}
	if r.run.Output != "Known: Ada" {
		t.Errorf("the answer: %q", r.run.Output)
	}
}

// TestMCPGo uses a server made with another implementation of the protocol, on
// each transport and revision that both speak.
func TestMCPGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, transport, protocol string }{
		{"stdio", "stdio", ""},
		{"stdio modern", "stdio", "2026-07-28"},
		{"http legacy", "http", "2025-11-25"},
		{"http modern", "http", "2026-07-28"},
		{"http auto", "http", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := map[string]any{"transport": c.transport, "trust_hints": true}
			if c.transport == "stdio" {
				server["command"] = built.mcpgoPeer
			} else {
				dir := t.TempDir()
				server["url"] = begin(t, dir, environment(dir), built.mcpgoPeer, "-http").says(t, `listens on (http://127\.0\.0\.1:\d+/mcp)`)
			}
			if c.protocol != "" {
				server["protocol"] = c.protocol
			}
			w := start(t, setup{scripts: []string{"mcpgo.yaml"}, agents: map[string]string{"mcpgo": "tools: {mcp_servers: [peer]}"}, servers: map[string]any{"peer": server}})
			r := w.do(t, "mcpgo", "Try the tools.", nil).completed()
			if got := r.result("add").Result; got != "42" {
				t.Errorf("add: %q", got)
			}
			if got := w.stored(t, r, "add").Details; string(got) != `{"sum":42}` {
				t.Errorf("the details of add: %s", got)
			}
			if got := r.failure("refuse"); got.Result != "not today" {
				t.Errorf("refuse: %+v", got)
			}
			if got := r.failure("break"); !strings.Contains(got.Result, "broken inside") {
				t.Errorf("break: %+v", got)
			}
			if r.run.Output != "The sum is 42." {
				t.Errorf("the answer: %q", r.run.Output)
			}
			w.cancelled(t, "mcpgo", "Please wait.", "wait")
			// The server was told.
			if got := w.do(t, "mcpgo", "Was it cancelled?", nil).completed().run.Output; got != "a wait was cancelled" {
				t.Errorf("after a cancelled call: %q", got)
			}
		})
	}
}
