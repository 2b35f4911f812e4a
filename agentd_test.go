package agentd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd"
	"agentd/event"
	"agentd/fault"
	"agentd/message"
	"agentd/tool"
)

// write makes a configs folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const greeter = `profile_name: greeter
primary_model: {provider: script, model: m, script: scripts/greet.yaml}
tools: {builtin: [shout]}
`

const greetScript = `name: greet
turns:
  - tool_calls: [{name: shout, arguments: {text: "{{.User}}"}}]
  - text: "The tool says: {{.Last.Text}}"
`

// shout is a tool of the embedding program.
type shout struct{ calls *int }

func (shout) Spec() tool.Spec {
	return tool.Spec{Name: "shout", Description: "Says it louder.", Effect: tool.Read,
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)}
}

func (s shout) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	*s.calls++
	var args struct{ Text string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, err
	}
	return tool.TextResult(strings.ToUpper(args.Text)), nil
}

func TestEmbedding(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	calls := 0
	cfg := agentd.Config{Configs: write(t, map[string]string{"agents/greeter.yaml": greeter, "scripts/greet.yaml": greetScript}),
		Data: t.TempDir(), Tools: []tool.Tool{shout{&calls}}}
	rt, err := agentd.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rt.Start(ctx, agentd.StartRequest{Profile: "greeter", Input: agentd.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	var last event.Event
	for ev, err := range rt.Watch(ctx, r.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = ev
	}
	if last.Type != event.RunCompleted {
		t.Errorf("the last event is %s", last.Type)
	}
	if r, err = rt.Wait(ctx, r.ID); err != nil || r.Output != "The tool says: HELLO" || calls != 1 {
		t.Errorf("run %+v, %v; %d calls", r, err, calls)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	// The same data, another process: the session goes on.
	if rt, err = agentd.Open(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := rt.Start(ctx, agentd.StartRequest{Profile: "greeter", SessionID: r.SessionID, Input: agentd.Text("again")}); err != nil {
		t.Fatal(err)
	}
	runs, _, err := rt.Runs(ctx, r.SessionID, "", "", 0)
	if err != nil || len(runs) != 2 {
		t.Errorf("%d runs in the session, %v", len(runs), err)
	}
}

// An application adds a kind of message of its own without a change to agentd.
func TestApplicationsOwnMessages(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var saw []string
	rt, err := agentd.Open(ctx, agentd.Config{
		Configs: write(t, map[string]string{
			"agents/echo.yaml":    "profile_name: echo\nprimary_model: {provider: script, model: m, script: scripts/e.yaml}\n",
			"scripts/e.yaml":      "name: e\nfallthrough: \"ok\"\n",
			"agents/another.yaml": "profile_name: another\nprimary_model: {provider: script, model: m, script: scripts/e.yaml}\n"}),
		TransformContext: func(_ context.Context, _ string, msgs []message.Message) ([]message.Message, error) {
			return append(msgs, message.User("(remember the time)")), nil
		},
		ConvertToLLM: func(msgs []message.Message) []message.Message {
			for i := range msgs {
				if msgs[i].Role == "notification" {
					msgs[i].Role = message.RoleUser
				}
			}
			for _, m := range msgs {
				saw = append(saw, string(m.Role)+" "+m.Text())
			}
			return msgs
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	ses, err := rt.CreateSession(ctx, agentd.SessionRequest{Title: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Append(ctx, ses.ID, message.Message{Role: "notification", Content: agentd.Text("the build is red")}); err != nil {
		t.Fatal(err)
	}
	r, err := rt.Start(ctx, agentd.StartRequest{Profile: "echo", SessionID: ses.ID, Input: agentd.Text("what is new?")})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = rt.Wait(ctx, r.ID); err != nil || r.Status != "completed" {
		t.Fatal(r, err)
	}
	want := []string{"user the build is red", "user what is new?", "user (remember the time)"}
	if fmt.Sprint(saw) != fmt.Sprint(want) {
		t.Errorf("the model saw %q, want %q", saw, want)
	}
	entries, err := rt.Entries(ctx, ses.ID)
	if err != nil || len(entries) != 3 || entries[0].Message.Role != "notification" {
		t.Errorf("entries %+v, %v", entries, err)
	}
}

func TestOpenListsEveryProblem(t *testing.T) {
	dir := write(t, map[string]string{"agents/a.yaml": "profile_name: a\nmax_stepps: 3\nprimary_model: {provider: nobody, model: m}\n"})
	_, err := agentd.Open(context.Background(), agentd.Config{Configs: dir})
	if fault.KindOf(err) != fault.Invalid {
		t.Fatalf("kind %s: %v", fault.KindOf(err), err)
	}
	for _, want := range []string{"a.yaml:2", "max_stepps", "max_steps", "a.yaml:3", "nobody"} {
		if !strings.Contains(err.Error()+fault.HintOf(err), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
}
