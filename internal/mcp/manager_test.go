package mcp

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// patience bounds what a test waits for; it is never the thing measured.
const patience = 30 * time.Second

func manage(t *testing.T, cfgs map[string]ServerConfig, opts *Options) *Manager {
	t.Helper()
	if opts == nil {
		opts = &Options{}
	}
	if opts.TerminateGrace == 0 {
		opts.TerminateGrace = 200 * time.Millisecond
	}
	if opts.MinPause == 0 {
		opts.MinPause = 10 * time.Millisecond
	}
	m, err := New(cfgs, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// toolsOf gives the tools of all servers by name and fails on problems.
func toolsOf(t *testing.T, m *Manager) map[string]tool.Tool {
	t.Helper()
	tools, problems := m.Tools(background(t), m.Names())
	for _, p := range problems {
		t.Fatalf("%s: %v", p.Server, p.Err)
	}
	out := map[string]tool.Tool{}
	for _, x := range tools {
		out[x.Spec().Name] = x
	}
	return out
}

// one connects to a single server and gives its tools.
func one(t *testing.T, cfg ServerConfig, opts *Options) (map[string]tool.Tool, *Manager) {
	t.Helper()
	m := manage(t, map[string]ServerConfig{"srv": cfg}, opts)
	return toolsOf(t, m), m
}

func call(args string) tool.Call {
	return tool.Call{ID: "c1", Key: "r1/1/c1", RunID: "r1", Args: json.RawMessage(args), Progress: func(tool.Progress) {}}
}

func textOf(r tool.Result) string {
	s := ""
	for _, b := range r.Content {
		s += b.Text
	}
	return s
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func said(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

func wantKind(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("error %v (%s), want kind %s", err, fault.KindOf(err), kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+" "+fault.HintOf(err), w) {
			t.Errorf("the error does not say %q: %v (%s)", w, err, fault.HintOf(err))
		}
	}
}

func TestEchoExample(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "echo")
	if out, err := exec.Command("go", "build", "-o", bin, "agentd/examples/mcp/echo").CombinedOutput(); err != nil {
		t.Fatalf("go build ./examples/mcp/echo: %v\n%s", err, out)
	}
	cfg := ServerConfig{Transport: "stdio", Command: bin, TrustHints: true}
	for _, protocol := range []string{"", protocolAuto, protocolModern} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			cfg.Protocol = protocol
			tools, m := one(t, cfg, nil)
			if len(tools) != 3 {
				t.Fatalf("tools %v", tools)
			}
			r, err := tools["uppercase"].Run(background(t), call(`{"text":"grüße <&>"}`))
			if err != nil || textOf(r) != "GRÜSSE <&>" && textOf(r) != "GRÜßE <&>" {
				t.Errorf("uppercase: %q, %v", textOf(r), err)
			}
			r, err = tools["add_numbers"].Run(background(t), call(`{"a":2,"b":40}`))
			if err != nil || string(r.Details) != `{"sum":42}` || textOf(r) != `{"sum":42}` {
				t.Errorf("add_numbers: %s %q, %v", r.Details, textOf(r), err)
			}
			spec := tools["echo"].Spec()
			if spec.Effect != tool.Read || spec.Source != "mcp:srv" || spec.Label != "echo" || !json.Valid(spec.Schema) {
				t.Errorf("spec %+v", spec)
			}
			st := m.Status()[0]
			want := protocolModern
			if protocol == "" {
				want = protocolLegacy
			}
			if st.State != Ready || st.Tools != 3 || st.Program != "echo" || st.Protocol != want {
				t.Errorf("status %+v, want protocol %s", st, want)
			}
		})
	}
}

func TestServerThatCanNotConnectBreaksNoOther(t *testing.T) {
	good, _ := child(t, "good")
	mute, _ := child(t, "mute")
	mute.Timeouts.Connect = 300 * time.Millisecond
	probing, _ := child(t, "mute")
	probing.Timeouts.Connect = 300 * time.Millisecond
	probing.Protocol = protocolAuto
	fails, _ := child(t, "refuses to start")
	m := manage(t, map[string]ServerConfig{
		"good": good, "mute": mute, "probing": probing, "fails": fails,
		"absent": {Transport: "stdio", Command: "no-such-program-here"},
		"closed": {Transport: "http", URL: "http://127.0.0.1:1/mcp"},
	}, nil)
	tools, problems := m.Tools(background(t), append(m.Names(), "unknown"))
	if len(tools) != 2 {
		t.Errorf("%d tools of the good server, want 2", len(tools))
	}
	want := map[string]string{
		"mute": "did not complete the handshake within 300ms", "probing": "did not complete the handshake",
		"fails": "its last words: no database: set DATABASE_URL", "absent": "not found", "closed": "connection refused", "unknown": "no MCP server is named",
	}
	for _, p := range problems {
		if w := want[p.Server]; w == "" || !strings.Contains(p.Err.Error(), w) || fault.HintOf(p.Err) == "" {
			t.Errorf("%s: %v (%s)", p.Server, p.Err, fault.HintOf(p.Err))
		}
		delete(want, p.Server)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
	for _, st := range m.Status() {
		if (st.State == Ready) != (st.Name == "good") {
			t.Errorf("%s is %s: %s", st.Name, st.State, st.Error)
		}
	}
}

func TestEnvironmentIsIsolated(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-very-secret")
	t.Setenv("SOMETHING_ELSE", "private")
	cfg, _ := child(t, "env")
	cfg.Env["GIVEN"] = "on purpose"
	cfg.Env["LANG"] = "C"
	tools, _ := one(t, cfg, nil)
	r, err := tools["act"].Run(background(t), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(textOf(r), "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "HOME", "LANG", "TMPDIR", "GIVEN", modeVar, fileVar:
		default:
			t.Errorf("the server sees %s", name)
		}
	}
	if !strings.Contains(textOf(r), "GIVEN=on purpose") || !strings.Contains(textOf(r), "LANG=C") || !strings.Contains(textOf(r), "PATH=") {
		t.Errorf("missing from %q", textOf(r))
	}
}

func TestLinesThatAreNotJSONAreDropped(t *testing.T) {
	cfg, _ := child(t, "chatty")
	tools, _ := one(t, cfg, nil)
	for range 3 {
		r, err := tools["act"].Run(background(t), call(`{"x":1}`))
		if err != nil || textOf(r) != `did act with {"x":1}` {
			t.Fatalf("%q, %v", textOf(r), err)
		}
	}
}

func TestServerDiesDuringACall(t *testing.T) {
	cfg, file := child(t, "dies")
	tools, m := one(t, cfg, nil)
	_, err := tools["act"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Unavailable, `server "srv"`, "act", "it may have happened")
	if n := strings.Count(said(file), "call "); n != 1 {
		t.Errorf("a call that must not be repeated was sent %d times", n)
	}
	// The next call finds the server started again.
	_, err = tools["act"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Unavailable)
	if n := strings.Count(said(file), "call "); n != 2 {
		t.Errorf("after the restart %d calls were seen, want 2", n)
	}
	if st := m.Status()[0]; st.Restarts < 1 {
		t.Errorf("status %+v", st)
	}
}

func TestSafeCallsAreRepeated(t *testing.T) {
	cfg, file := child(t, "dies once")
	cfg.Effects = map[string]tool.Effect{"act": tool.Idempotent}
	cfg.Retries.Backoff = time.Millisecond
	tools, _ := one(t, cfg, nil)
	r, err := tools["act"].Run(background(t), call(`{}`))
	if err != nil || textOf(r) != "back again" {
		t.Fatalf("%q, %v", textOf(r), err)
	}
	if got := said(file); got != "call act r1/1/c1\ncall act r1/1/c1\n" {
		t.Errorf("the server saw %q: two attempts with one key are wanted", got)
	}
	none := 0
	cfg, file = child(t, "dies once")
	cfg.Effects = map[string]tool.Effect{"*": tool.Read}
	cfg.Retries.Max = &none
	tools, _ = one(t, cfg, nil)
	_, err = tools["act"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Unavailable)
	if n := strings.Count(said(file), "call "); n != 1 {
		t.Errorf("%d attempts with max: 0", n)
	}
}
