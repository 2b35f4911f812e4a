package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/fault"
	agentlogs "agentd/internal/logs"
	"agentd/tool"
)

func TestCallTimeout(t *testing.T) {
	cfg, file := child(t, "never answers")
	cfg.Timeouts.Call = 150 * time.Millisecond
	tools, _ := one(t, cfg, nil)
	_, err := tools["act"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Timeout, `server "srv"`, "took longer than 150ms", "timeouts.call")
	eventually(t, "the server is told", func() bool { return strings.Contains(said(file), "cancelled ") })
	cfg.Tools = map[string]ToolConfig{"act": {Timeout: 50 * time.Millisecond}}
	tools, _ = one(t, cfg, nil)
	_, err = tools["act"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Timeout, "50ms")
}

func TestCancelReturnsAtOnceAndLateProgressIsDropped(t *testing.T) {
	cfg, file := child(t, "ignores cancel")
	tools, _ := one(t, cfg, nil)
	ctx, cancel := context.WithCancelCause(background(t))
	var mu sync.Mutex
	over, late, seen := false, 0, 0
	c := call(`{}`)
	c.Progress = func(p tool.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if seen++; p.Message != "tick" {
			t.Errorf("progress %+v", p)
		}
		if over {
			late++
		}
		if seen == 3 {
			cancel(errors.New("the user pressed stop"))
		}
	}
	_, err := tools["act"].Run(ctx, c)
	mu.Lock()
	over = true
	mu.Unlock()
	wantKind(t, err, fault.Cancelled, "the user pressed stop")
	eventually(t, "the server is told", func() bool { return strings.Contains(said(file), "cancelled ") })
	// The server goes on; another call shows that its news have been read.
	short, stop := context.WithTimeout(background(t), 100*time.Millisecond)
	defer stop()
	if _, err := tools["other"].Run(short, call(`{}`)); err == nil {
		t.Error("the server answered")
	}
	mu.Lock()
	defer mu.Unlock()
	if late > 0 {
		t.Errorf("%d late messages of progress", late)
	}
}

func TestFloodsAndHugeResults(t *testing.T) {
	tests := []struct {
		mode string
		kind fault.Kind
		want string
	}{
		{"floods", "", "done flooding"},
		{"huge, id first", fault.TooLarge, "larger than 10 MiB"},
		{"huge, id last", fault.TooLarge, "larger than 10 MiB"},
		{"huge, no id", fault.Unavailable, "more than 10 MiB"},
		{"wrong result", fault.Unavailable, "not the result of a tool"},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			cfg, _ := child(t, tt.mode)
			tools, _ := one(t, cfg, nil)
			n := 0
			c := call(`{}`)
			c.Progress = func(tool.Progress) { n++ }
			r, err := tools["act"].Run(background(t), c)
			if tt.kind != "" {
				wantKind(t, err, tt.kind, tt.want)
				return
			}
			if err != nil || textOf(r) != tt.want {
				t.Fatalf("%q, %v", textOf(r), err)
			}
			if n == 0 || n > 30_000 {
				t.Errorf("%d messages of progress came through", n)
			}
		})
	}
}

func TestServerThatReadsNoInput(t *testing.T) {
	cfg, _ := child(t, "deaf")
	cfg.Timeouts.Call = 200 * time.Millisecond
	tools, m := one(t, cfg, nil)
	big := `{"x":"` + strings.Repeat("y", 1<<20) + `"}`
	for range 2 {
		_, err := tools["act"].Run(background(t), call(big))
		wantKind(t, err, fault.Timeout)
	}
	began := time.Now()
	m.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %s", took)
	}
}

func TestListChanged(t *testing.T) {
	cfg, _ := child(t, "changes")
	tools, m := one(t, cfg, nil)
	if tools["other"] == nil || tools["fresh"] != nil {
		t.Fatalf("tools %v", tools)
	}
	if _, err := tools["act"].Run(background(t), call(`{}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is seen", func() bool {
		after := toolsOf(t, m)
		return after["fresh"] != nil && after["other"] == nil
	})
	// What was handed out before still works.
	if _, err := tools["other"].Run(background(t), call(`{}`)); err != nil {
		t.Errorf("an old tool: %v", err)
	}
}

func TestIdleServerIsPinged(t *testing.T) {
	cfg, file := child(t, "no ping")
	cfg.Timeouts.Connect = 2 * time.Second
	_, m := one(t, cfg, &Options{PingEvery: 20 * time.Millisecond})
	eventually(t, "the silent server is started anew", func() bool { return m.Status()[0].Restarts > 0 })
	if !strings.Contains(said(file), "ping") {
		t.Error("no ping was seen")
	}
	cfg, file = child(t, "good")
	_, m = one(t, cfg, &Options{PingEvery: 10 * time.Millisecond})
	eventually(t, "five pings", func() bool { return strings.Count(said(file), "ping") >= 5 })
	if st := m.Status()[0]; st.State != Ready || st.Restarts != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestConcurrencyLimit(t *testing.T) {
	cfg, file := child(t, "never answers")
	cfg.ConcurrencyLimit = 2
	cfg.Tools = map[string]ToolConfig{"other": {ConcurrencyLimit: 1}}
	tools, m := one(t, cfg, nil)
	ctx, cancel := context.WithCancel(background(t))
	var wg sync.WaitGroup
	for _, name := range []string{"other", "other", "act", "act", "act"} {
		wg.Go(func() { _, _ = tools[name].Run(ctx, call(`{}`)) })
	}
	eventually(t, "two run and three wait", func() bool {
		st := m.Status()[0]
		return st.Running == 2 && st.Waiting == 3 && strings.Count(said(file), "call ") == 2
	})
	if n := strings.Count(said(file), "call other"); n > 1 {
		t.Errorf("%d calls of a tool with limit 1", n)
	}
	cancel()
	wg.Wait()
	if st := m.Status()[0]; st.Running != 0 || st.Waiting != 0 {
		t.Errorf("status %+v", st)
	}
	cfg, _ = child(t, "never answers")
	cfg.ConcurrencyLimit = 1
	cfg.Timeouts.Call = 100 * time.Millisecond
	tools, _ = one(t, cfg, nil)
	errs := make(chan error, 2)
	for range 2 {
		go func() { _, err := tools["act"].Run(background(t), call(`{}`)); errs <- err }()
	}
	for range 2 {
		wantKind(t, <-errs, fault.Timeout, "100ms")
	}
}

func TestAllowDenyAndLogs(t *testing.T) {
	var logs syncBuffer
	cfg, _ := child(t, "good")
	cfg.Denylist = []Rule{{Tool: "oth*"}, {Tool: "act", Args: `"path":"/etc`}}
	cfg.Redaction = []string{"*token*", "/sk-[a-z]+/"}
	tools, m := one(t, cfg, &Options{Log: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if tools["other"] != nil {
		t.Error("a denied tool is offered")
	}
	_, err := tools["act"].Run(background(t), call(`{"path":"\u002fetc/passwd"}`))
	wantKind(t, err, fault.Forbidden, "denylist", "act")
	r, err := tools["act"].Run(background(t), call(`{"path":"/tmp","Access_Token":"hunter2","note":"use sk-abc here"}`))
	if err != nil || !strings.Contains(textOf(r), "hunter2") {
		t.Fatalf("%q, %v: the call itself is not redacted", textOf(r), err)
	}
	text := logs.String()
	for _, secret := range []string{"hunter2", "sk-abc"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
	for _, w := range []string{"server=srv", "tool=act", "outcome=ok", "outcome=forbidden", "duration="} {
		if !strings.Contains(text, w) {
			t.Errorf("%s is not in the log", w)
		}
	}
	if got := string(m.Redact("srv", "act", json.RawMessage(`{"token":"x","n":12345678901234567890}`))); got != `{"n":12345678901234567890,"token":"[redacted]"}` {
		t.Errorf("redacted: %s", got)
	}
}

// A server that answers a call with an error works: the tool failed.
func TestErrorAnswerIsTheToolsFailure(t *testing.T) {
	var logs syncBuffer
	cfg, file := child(t, "fails")
	cfg.Redaction = []string{"/sk-[a-z]+/"}
	cfg.Effects = map[string]tool.Effect{"act": tool.Read}
	tools, m := one(t, cfg, &Options{Log: policyLog(t, &logs, agentlogs.Redacted)})
	for range 2 {
		r, err := tools["act"].Run(background(t), call(`{}`))
		if err != nil || !r.IsError || textOf(r) != "act failed: no such table: t1 of sk-abc (code -32000)" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	text := logs.String()
	if !strings.Contains(text, "outcome=error") || !strings.Contains(text, "no such table") || strings.Contains(text, "unavailable") || strings.Contains(text, "sk-abc") {
		t.Errorf("the log: %s", text)
	}
	if n := strings.Count(said(file), "call act"); n != 2 {
		t.Errorf("%d calls: an answer was taken for none", n)
	}
	if st := m.Status()[0]; st.State != Ready || st.Restarts != 0 {
		t.Errorf("status %+v", st)
	}
}

// Where logs show hashes they show nothing of what is said to servers, nor of what
// servers say.
func TestLogsOfCallsFollowThePayloadPolicy(t *testing.T) {
	for policy, want := range map[agentlogs.Policy]bool{agentlogs.Redacted: true, agentlogs.Hashes: false} {
		var logs syncBuffer
		cfg, _ := child(t, "fails")
		tools, _ := one(t, cfg, &Options{Log: policyLog(t, &logs, policy)})
		if r, err := tools["act"].Run(background(t), call(`{"path":"/home/jane"}`)); err != nil || !r.IsError {
			t.Fatalf("%+v, %v", r, err)
		}
		text := logs.String()
		for _, said := range []string{"/home/jane", "no such table"} {
			if strings.Contains(text, said) != want {
				t.Errorf("%s: %q is in the log: %v\n%s", policy, said, !want, text)
			}
		}
	}
}

// policyLog is a log at level debug that shows what is said as a policy says.
func policyLog(t *testing.T, w io.Writer, p agentlogs.Policy) *slog.Logger {
	t.Helper()
	h, err := agentlogs.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}), agentlogs.Options{Level: slog.LevelDebug, Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	return slog.New(h)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
