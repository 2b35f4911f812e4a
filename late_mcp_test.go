package agentd

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/sim"
	"agentd/model/script"
)

const lateScript = `name: late
turns:
  - when: {user: "closer"}
    tool_calls: [{name: call_tool, arguments: {tool: zoom, arguments: {id: "7"}}}, {name: drop, arguments: {}}]
fallthrough: "You said: {{.User}}"
`

// The tools of an MCP server change while agentd is down. By the rules of each provider the
// session's next requests read all that was sent before, because the profile has its
// conversations keep their lists.
func TestASessionKeepsItsCacheWhenAServersToolsChange(t *testing.T) {
	s, err := script.Parse("late.yaml", []byte(lateScript))
	if err != nil {
		t.Fatal(err)
	}
	for provider, model := range map[string]string{"anthropic": "claude-sonnet-5", "openai": "gpt-5.4", "gemini": "gemini-3.8-flash"} {
		t.Run(provider, func(t *testing.T) {
			server := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
			defer server.Close()
			url := server.URL
			if provider == "openai" {
				url += "/v1"
			}
			rules := strings.Repeat("A rule of this house. ", 1000)
			dir := profiles(t, map[string]string{"late": fmt.Sprintf("system_prompt: %q\napproval_mode: never\ntools: {mcp_servers: [one], late: gateway}\nprimary_model: {provider: %s, model: %s, base_url: %q}\n", rules, provider, model, url)})
			if err := os.Mkdir(filepath.Join(dir, "mcp"), 0o700); err != nil {
				t.Fatal(err)
			}
			data := t.TempDir()
			open := func(tools ...string) *Runtime {
				servers := fmt.Sprintf("servers:\n  one: {transport: http, url: %q, protocol: '2025-11-25'}\n", offering(t, tools...).URL)
				if err := os.WriteFile(filepath.Join(dir, "mcp", "servers.yaml"), []byte(servers), 0o600); err != nil {
					t.Fatal(err)
				}
				rt, err := Open(t.Context(), Config{Configs: dir, Data: data, Workspace: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				return rt
			}
			turn := func(rt *Runtime, session, text string) *Run {
				t.Helper()
				r, err := rt.Start(t.Context(), StartRequest{Profile: "late", SessionID: session, Input: Text(text)})
				if err == nil {
					r, err = rt.Wait(t.Context(), r.ID)
				}
				if err != nil || r.Status != "completed" {
					t.Fatalf("%q: %v %+v", text, err, r)
				}
				return r
			}
			rt := open("keep", "drop")
			session := turn(rt, "", "hello").SessionID
			if err := rt.Close(); err != nil {
				t.Fatal(err)
			}
			rt = open("keep", "zoom")
			defer rt.Close()
			r := turn(rt, session, "look closer")
			turn(rt, session, "thank you")
			var started []string
			for ev, err := range rt.Replay(t.Context(), r.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := ev.Data.(*event.Tool); ok && ev.Type == event.ToolStarted {
					started = append(started, d.Name)
				}
			}
			if strings.Join(started, " ") != "zoom" {
				t.Errorf("started: %v", started)
			}
			history, err := rt.Cache(t.Context(), session, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(history.Steps); n != 4 {
				t.Fatalf("%d steps", n)
			}
			before := int64(0)
			for i, step := range history.Steps {
				if step.Broken != nil {
					t.Errorf("step %d: %+v", i, step.Broken)
				}
				if left := before - before%128; i > 0 && step.CacheRead < left*98/100 {
					t.Errorf("step %d read %d of %d", i, step.CacheRead, left)
				}
				before = step.Input + step.CacheRead + step.CacheWrite
			}
		})
	}
}
