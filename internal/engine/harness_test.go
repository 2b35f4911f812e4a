package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// harness is an engine on a store in memory with agents made of functions.
type harness struct {
	t      *testing.T
	store  store.Store
	engine *Engine
	agents agents
	log    *slog.Logger
	// keep is how long ephemeral sessions are kept.
	keep  time.Duration
	depth int // of subagents; 0: the default
	// limits are those of artifacts.
	limits ArtifactLimits
	alone  bool
}

type agents map[string]*Agent

func (a agents) Agent(_ context.Context, _, name string) (*Agent, error) {
	name, _, _ = strings.Cut(name, "@")
	if name == "" {
		name = "test"
	}
	if ag, ok := a[name]; ok {
		return ag, nil
	}
	return nil, &fault.Error{Kind: fault.NotFound, Err: fmt.Errorf("no profile is named %q", name)}
}

func (a agents) Outline(ctx context.Context, tenant, name string) (*Agent, error) {
	return a.Agent(ctx, tenant, name)
}

func (a agents) Redactor(string, string) (Redact, error) { return nil, nil }

func (a agents) Profiles(context.Context, string) ([]ProfileView, error) { return nil, nil }

func newHarness(t *testing.T, script modelFunc, tools ...tool.Tool) *harness {
	t.Helper()
	s, err := openStore(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h := &harness{t: t, store: s, agents: agents{"test": testAgent(t, script, tools...)}, log: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	h.start()
	return h
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (h *harness) start() {
	h.t.Helper()
	e, err := New(Config{Store: h.store, Agents: h.agents, Log: h.log, AbandonAfter: 100 * time.Millisecond, KeepEphemeral: h.keep,
		MaxSubagentDepth: h.depth, Artifacts: h.limits, Cluster: h.cluster()})
	if err != nil {
		h.t.Fatal(err)
	}
	h.engine = e
	h.t.Cleanup(func() { e.Close() })
	if _, err := e.Recover(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// restart is a crash: the engine goes, the store stays.
func (h *harness) restart() {
	h.t.Helper()
	h.engine.Close()
	h.start()
}

func testAgent(t *testing.T, script modelFunc, tools ...tool.Tool) *Agent {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return &Agent{Profile: "test", Version: "1.0.0", Tools: set,
		Settings: run.Settings{MaxSteps: 50, Retry: run.Retry{Max: 3, BaseMS: 1, LimitMS: 1000}},
		Models:   []Model{{Provider: script, ID: "m", Name: "fake/m"}}, ModelIdle: time.Minute, ToolTimeout: time.Minute}
}

// modelFunc answers a request; it sees how many replies the model gave since the
// last user message.
type modelFunc func(ctx context.Context, step int, req *model.Request) (*message.Message, error)

func (f modelFunc) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	step := 0
	for _, m := range req.Messages {
		switch m.Role {
		case message.RoleUser:
			step = 0
		case message.RoleAssistant:
			step++
		}
	}
	m, err := f(ctx, step, req)
	if err != nil {
		return nil, err
	}
	if emit != nil {
		emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
		for i, b := range m.Content {
			if b.Type == message.BlockText {
				for _, word := range strings.SplitAfter(b.Text, " ") {
					emit(model.StreamEvent{Type: model.StreamTextDelta, Index: i, Delta: word, Partial: m})
				}
			}
			if b.Type == message.BlockToolCall {
				emit(model.StreamEvent{Type: model.StreamToolStart, Index: i, ToolCall: &b, Partial: m})
			}
		}
	}
	return m, nil
}

func say(text string, calls ...message.Block) (*message.Message, error) {
	m := &message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Provider: "fake", Model: "m",
		Usage: &message.Usage{Input: 10, Output: 5, TotalTokens: 15}}
	if text != "" {
		m.Content = append(m.Content, message.Text(text))
	}
	m.Content = append(m.Content, calls...)
	if len(calls) > 0 {
		m.StopReason = message.StopToolUse
	}
	return m, nil
}

func call(id, name, args string) message.Block { return message.Call(id, name, json.RawMessage(args)) }

// toolFunc is a tool made of a function.
type toolFunc struct {
	spec tool.Spec
	f    func(ctx context.Context, c tool.Call) (tool.Result, error)
}

func (t toolFunc) Spec() tool.Spec {
	s := t.spec
	if s.Schema == nil {
		s.Schema = json.RawMessage(`{"type":"object"}`)
	}
	return s
}
func (t toolFunc) Run(ctx context.Context, c tool.Call) (tool.Result, error) { return t.f(ctx, c) }

func echoTool(effect tool.Effect) tool.Tool {
	return toolFunc{tool.Spec{Name: "echo", Effect: effect}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult("echo " + string(c.Args)), nil
	}}
}

func (h *harness) run(input string) *Run {
	h.t.Helper()
	r, err := h.engine.Start(context.Background(), StartRequest{Input: []message.Block{message.Text(input)}})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *harness) wait(r *Run) *Run {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := h.engine.Wait(ctx, Ref{store.DefaultTenant, r.ID})
	if err != nil {
		h.t.Fatalf("run %s did not end: %v (it is %+v)", r.ID, err, out)
	}
	return out
}

// events gives a run's whole stream, and fails if its numbers do not rise.
func (h *harness) events(r *Run) []event.Event {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out []event.Event
	last := int64(0)
	for ev, err := range h.engine.Watch(ctx, Ref{store.DefaultTenant, r.ID}, 0) {
		if err != nil {
			h.t.Fatalf("watch: %v after %s", err, kinds(out))
		}
		if ev.Seq <= last {
			h.t.Fatalf("event %d %s after %d", ev.Seq, ev.Type, last)
		}
		last = ev.Seq
		out = append(out, ev)
	}
	return out
}

func kinds(events []event.Event) string {
	var s []string
	for _, e := range events {
		k := string(e.Type)
		if len(s) > 0 && e.Type.Delta() && s[len(s)-1] == k {
			continue
		}
		s = append(s, k)
	}
	return strings.Join(s, " ")
}

// transcript is the session as the model sees it, without times.
func (h *harness) transcript(sessionID string) string {
	h.t.Helper()
	entries, err := h.engine.Entries(context.Background(), Ref{store.DefaultTenant, sessionID}, "", 0)
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		m := e.Message
		if m == nil {
			fmt.Fprintf(&b, "%s\n", e.Kind)
			continue
		}
		fmt.Fprintf(&b, "%s", m.Role)
		for _, c := range m.Content {
			switch c.Type {
			case message.BlockToolCall:
				fmt.Fprintf(&b, " [%s %s %s]", c.ID, c.Name, c.Arguments)
			default:
				fmt.Fprintf(&b, " %q", c.Text)
			}
		}
		if m.Role == message.RoleToolResult {
			fmt.Fprintf(&b, " for %s error=%v", m.ToolCallID, m.IsError)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// counter counts calls by key.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
}

// of gives how often a key was counted.
func (c *counter) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}
