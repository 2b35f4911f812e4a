package agentd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/event"
	"agentd/tool"
)

// putTool changes something.
type putTool struct{}

func (putTool) Spec() tool.Spec {
	return tool.Spec{Name: "put", Description: "Puts.", Classes: []string{"write"}, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (putTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.TextResult("put"), nil
}

// The keys of a turn, and their defaults, reach runs.
func TestKeysOfATurn(t *testing.T) {
	script := func(file string) string {
		return "primary_model: {provider: script, model: m, script: " + file + "}\ntools: {builtin: [workspace, extra]}\n"
	}
	dir := profiles(t, map[string]string{
		"plain": script("puts.yaml"),
		"own":   script("puts.yaml") + "max_approvals_per_turn: 2\ndrop_reasoning_after: 1m\n",
		"keen":  script("reads.yaml") + "min_tool_calls: 1\ncache_tool_calls: [file_*]\n",
	})
	call := func(name, args string, n int) string {
		return strings.Repeat("{name: "+name+", arguments: "+args+"}, ", n)
	}
	for name, text := range map[string]string{
		"puts.yaml": "turns:\n  - tool_calls: [" + call("put", "{}", 7) + "]\n  - text: done\n",
		"reads.yaml": "restart: never\nturns:\n  - text: I guess.\n  - tool_calls: [" + call("file_read", "{file_path: a}", 1) + call("glob", "{pattern: '*'}", 1) +
			"]\n  - tool_calls: [" + call("file_read", "{file_path: a}", 1) + call("glob", "{pattern: '*'}", 1) + "]\n  - text: I know.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "a"), []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: files, Data: t.TempDir(), Tools: []tool.Tool{putTool{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for name, want := range map[string]struct {
		approvals int
		after     time.Duration
	}{"plain": {5, 5 * time.Minute}, "own": {2, time.Minute}} {
		a, err := rt.agents.Agent(t.Context(), "", name)
		if err != nil || a.DropReasoning != want.after || a.Settings.MinToolCalls != 0 || len(a.CacheTools) != 0 {
			t.Fatal(name, a, err)
		}
		r, err := rt.Start(t.Context(), StartRequest{Profile: name, Input: Text("go")})
		if err != nil {
			t.Fatal(err)
		}
		asked, refused := 0, 0
		for ev, err := range rt.Watch(t.Context(), r.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch d := ev.Data.(type) {
			case *event.Tool:
				if ev.Type == event.ToolFailed && strings.Contains(d.Result, "max_approvals_per_turn") {
					refused++
				}
			case *event.Checkpoint:
				if ev.Type == event.CheckpointRequired {
					asked++
					if _, err := rt.Answer(t.Context(), AnswerRequest{Interrupt: d.InterruptID, Decision: "approve"}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if r, err = rt.Wait(t.Context(), r.ID); err != nil || r.Status != "completed" || asked != want.approvals || refused != 7-want.approvals {
			t.Errorf("%s: asked %d, refused %d; %+v, %v", name, asked, refused, r, err)
		}
	}
	r, err := rt.Start(t.Context(), StartRequest{Profile: "keen", Input: Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = rt.Wait(t.Context(), r.ID); err != nil || r.Output != "I know." {
		t.Fatal(r, err)
	}
	events, err := rt.Events(t.Context(), r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, ev := range events {
		switch d := ev.Data.(type) {
		case *event.Tool:
			if ev.Type == event.ToolCompleted {
				seen = append(seen, strings.TrimSpace(d.Name+" "+d.Decision))
			}
		case *event.Checkpoint:
			seen = append(seen, d.Kind)
		}
	}
	// Calls of one reply end in any order.
	if got := strings.Join(seen, ", "); strings.Count(got, "file_read cached") != 1 || strings.Count(got, "glob") != 2 || strings.Contains(got, "glob cached") || strings.Count(got, "nudged") != 1 {
		t.Errorf("it went %s", got)
	}
}
