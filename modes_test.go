package agentd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"agentd/internal/policy"
	"agentd/message"
	"agentd/tool"
)

// shellTool says which commands it was given.
type shellTool struct{ name string }

func (s shellTool) Spec() tool.Spec {
	return tool.Spec{Name: s.name, Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)}
}

func (shellTool) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.TextResult("ran " + string(c.Args)), nil
}

// A profile says which tools run command lines, and what its modes allow besides.
func TestModesOfAProfile(t *testing.T) {
	dir := profiles(t, map[string]string{"a": `primary_model: {provider: script, model: m, script: s.yaml}
tools: {builtin: [extra]}
models: [{provider: script, model: other}]
approval_mode: never
mode: plan
modes: {ask: {tools: ["sh_*"]}, plan: {commands: {"sh_*": command}, files: {"oth*": "plans/*.md"}, text: PLAN}}
`})
	script := `turns:
- tool_calls:
  - {name: sh_x, arguments: {command: 'git status | head -5'}}
- tool_calls:
  - {name: sh_x, arguments: {command: 'git status; rm -rf x'}}
- tool_calls:
  - {name: other, arguments: {command: 'ls'}}
- text: done
`
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: t.TempDir(), Data: t.TempDir(), Tools: []tool.Tool{shellTool{"sh_x"}, shellTool{"other"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	a, err := rt.agents.Agent(t.Context(), "", "a")
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Modes{Tools: map[string][]string{"ask": {"sh_x"}}, Commands: map[string]string{"sh_x": "command"}, Files: map[string]string{"other": "plans/*.md"}}
	if !reflect.DeepEqual(a.Modes.Allows, want) || a.Modes.First != "plan" || len(a.Choices) != 1 || a.Choices[0].Name != "script/other" {
		t.Errorf("%+v, %+v", a.Modes, a.Choices)
	}
	r, err := rt.Start(t.Context(), StartRequest{Profile: "a", Input: []message.Block{message.Text("go")}})
	if err == nil {
		r, err = rt.Wait(t.Context(), r.ID)
	}
	if err != nil || r.Status != "completed" || r.SessionMode != "plan" {
		t.Fatalf("%v %+v", err, r)
	}
	entries, err := rt.Entries(t.Context(), r.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, e := range entries {
		if e.Message != nil && e.Message.Role == message.RoleToolResult {
			results = append(results, e.Message.Text())
		}
	}
	if len(results) != 3 || !strings.HasPrefix(results[0], "ran ") || !strings.Contains(results[1], "mode plan") || !strings.Contains(results[1], "rm") || !strings.Contains(results[2], "other may only write plans/*.md") {
		t.Errorf("%q", results)
	}
	if len(entries[0].Context) == 0 || !strings.Contains(entries[0].Context[0].Text, "PLAN") {
		t.Errorf("%+v", entries[0])
	}
}
