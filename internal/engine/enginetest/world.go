package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Open makes the engines of a world, and has begun their Recover. Config has all but
// Cluster. The first and the last of them are spoken to; others, if they drive runs,
// need not be given.
type Open func(t *testing.T, cfg engine.Config) []*engine.Engine

// Alone is an engine without others.
func Alone(t *testing.T, cfg engine.Config) []*engine.Engine {
	return []*engine.Engine{Start(t, cfg)}
}

// Start makes an engine that lives as long as the test.
func Start(t *testing.T, cfg engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if _, err := e.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// Patience bounds how long a scenario waits for one thing.
const Patience = time.Minute

// World is where a scenario takes place.
type World struct {
	T *testing.T
	// Agents are the profiles by name; "test" is that of runs that name none.
	Agents Agents
	nodes  []*engine.Engine
	asked  int
	// Calls counts the calls of tools by name and key.
	Calls Counter
	runs  []string // in the order of their start, for what is compared
}

// New makes a world on a store in memory.
func New(t *testing.T, open Open, agents func(w *World) Agents) *World {
	t.Helper()
	st, err := sqlite.Open(":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return On(t, st, open, agents)
}

// On makes a world on a store.
func On(t *testing.T, st store.Store, open Open, agents func(w *World) Agents) *World {
	t.Helper()
	w := &World{T: t}
	w.Agents = agents(w)
	w.nodes = open(t, engine.Config{Store: st, Agents: w.Agents, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), AbandonAfter: 100 * time.Millisecond})
	return w
}

// Node gives the node to speak to next.
func (w *World) Node() *engine.Engine {
	w.asked++
	if w.asked%2 == 1 {
		return w.nodes[0]
	}
	return w.nodes[len(w.nodes)-1]
}

// Start starts a run.
func (w *World) Start(req engine.StartRequest) *engine.Run {
	w.T.Helper()
	if req.Input == nil {
		req.Input = Text("go")
	}
	r, err := w.Node().Start(w.T.Context(), req)
	if err != nil {
		w.T.Fatal(err)
	}
	w.runs = append(w.runs, r.ID)
	return r
}

// Ended waits for the end of a run.
func (w *World) Ended(id, status string) *engine.Run {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), Patience)
	defer cancel()
	r, err := w.Node().Wait(ctx, Ref(id))
	if err != nil || r.Status != status {
		w.T.Fatalf("run %s: %+v (%+v), %v", id, r, r.Error, err)
	}
	return r
}

// Asks waits until a run asks people something, and gives that.
func (w *World) Asks(id string) *engine.InterruptView {
	w.T.Helper()
	var r *engine.Run
	w.Until("run "+id+" asks", func() bool {
		var err error
		if r, err = w.Node().Get(w.T.Context(), Ref(id)); err != nil {
			w.T.Fatal(err)
		}
		return len(r.Interrupts) > 0 && r.Status == string(run.Paused)
	})
	return r.Interrupts[0]
}

// Answer answers an interrupt.
func (w *World) Answer(req engine.AnswerRequest) {
	w.T.Helper()
	if _, err := w.Node().Answer(w.T.Context(), req); err != nil {
		w.T.Fatal(err)
	}
}

// Until waits for something.
func (w *World) Until(what string, f func() bool) {
	w.T.Helper()
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	end := time.After(Patience)
	for !f() {
		select {
		case <-t.C:
		case <-end:
			w.T.Fatal("it did not come to this: " + what)
		}
	}
}

// Took is what a run, and its children, wrote: the conversation, what was told, and the
// inputs and effects, with names in place of what is random.
func (w *World) Took(id string) string {
	w.T.Helper()
	e := w.Node()
	var b strings.Builder
	r, err := e.Get(w.T.Context(), Ref(id))
	if err != nil {
		w.T.Fatal(err)
	}
	fmt.Fprintf(&b, "%s: %s %s\n", id, r.Status, r.StopReason)
	entries, err := e.Entries(w.T.Context(), engine.Ref{Tenant: store.DefaultTenant, ID: r.SessionID}, "", 0)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, x := range entries {
		b.WriteString("  " + entry(x) + "\n")
	}
	b.WriteString("  told:" + w.told(e, id) + "\n  did:\n")
	rows, _, err := e.Trace(w.T.Context(), Ref(id), 0, 10_000)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, line := range journal(w.T, rows) {
		b.WriteString("    " + line + "\n")
	}
	out := b.String()
	for n := 1; ; n++ {
		child := run.ChildID(id, n)
		if _, err := e.Get(w.T.Context(), Ref(child)); fault.KindOf(err) == fault.NotFound {
			return out
		}
		out += w.Took(child)
	}
}

// whole is what all runs wrote, and which calls were made.
func (w *World) whole() string {
	var b strings.Builder
	var names []string
	for i, id := range w.runs {
		b.WriteString(w.Took(id))
		names = append(names, id, fmt.Sprint("run ", i+1))
	}
	b.WriteString(strings.Join(w.Calls.All(), "\n"))
	return strings.NewReplacer(names...).Replace(b.String())
}

func entry(x *engine.EntryView) string {
	m := x.Message
	if m == nil {
		return x.Kind
	}
	s := string(m.Role)
	for _, c := range m.Content {
		if c.Type == message.BlockToolCall {
			s += fmt.Sprintf(" [%s %s %s]", c.ID, c.Name, c.Arguments)
		} else {
			s += fmt.Sprintf(" %q", c.Text)
		}
	}
	if m.Role == message.RoleToolResult {
		s += fmt.Sprintf(" for %s error=%v", m.ToolCallID, m.IsError)
	}
	return s
}

// told gives the kinds of a run's events; what ends together has no order.
func (w *World) told(e *engine.Engine, id string) string {
	evs, err := e.Events(w.T.Context(), Ref(id), 0)
	if err != nil {
		w.T.Fatal(err)
	}
	var s []string
	for _, ev := range evs {
		k := string(ev.Type)
		if ev.Type.Delta() && len(s) > 0 && s[len(s)-1] == k {
			continue
		}
		s = append(s, k)
	}
	sortRuns(s, func(k string) bool {
		return k == string(event.ToolCompleted) || k == string(event.ToolFailed) || k == string(event.SubagentCompleted) || k == string(event.SubagentStarted) || k == string(event.ToolStarted)
	})
	return " " + strings.Join(s, " ")
}

// journal gives the inputs of a run and the effects that came of them.
func journal(t *testing.T, rows []engine.TraceView) []string {
	var out, last []string
	for _, r := range rows {
		if r.Input == (run.TimerFired{}).Kind() && len(r.Effects) == 0 {
			continue // somebody else looked at the clock, too, and was later
		}
		row := []string{strings.TrimSpace(r.Input + " " + callOf(t, r.Data))}
		for _, do := range r.Effects {
			row = append(row, strings.TrimSpace("-> "+do.Kind+" "+callOf(t, do.Data)))
		}
		if r.Input == (run.Resumed{}).Kind() && slices.Equal(row, last) {
			continue // a run that waits for one below it looks as often as it is told to
		}
		out, last = append(out, row...), row
	}
	// Of calls that end together the last one has the effect of all.
	sortRuns(out, func(l string) bool { return strings.HasPrefix(l, run.ToolDone{}.Kind()) })
	return out
}

// callOf gives the call that an input or an effect is of, or "".
func callOf(t *testing.T, data json.RawMessage) string {
	var of struct {
		Call   string `json:"call"`
		CallID string `json:"call_id"`
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &of); err != nil {
			t.Fatalf("a row of the journal: %v: %s", err, data)
		}
	}
	return of.Call + of.CallID
}

// sortRuns sorts each stretch of neighbours that may be in any order.
func sortRuns(s []string, any func(string) bool) {
	for from := 0; from < len(s); from++ {
		to := from
		for to < len(s) && any(s[to]) {
			to++
		}
		slices.Sort(s[from:to])
		from = max(from, to-1)
	}
}

// Ref names a run of the default tenant.
func Ref(id string) engine.Ref { return engine.Ref{Tenant: store.DefaultTenant, ID: id} }

// Text is an input of one text.
func Text(s string) []message.Block { return []message.Block{message.Text(s)} }

// Agents are profiles by name.
type Agents map[string]*engine.Agent

// Agent implements engine.Agents.
func (a Agents) Agent(_ context.Context, _, name string) (*engine.Agent, error) {
	name, _, _ = strings.Cut(name, "@")
	if name == "" {
		name = "test"
	}
	if ag, ok := a[name]; ok {
		return ag, nil
	}
	return nil, &fault.Error{Kind: fault.NotFound, Err: fmt.Errorf("no profile is named %q", name)}
}

// Outline implements engine.Agents.
func (a Agents) Outline(ctx context.Context, tenant, name string) (*engine.Agent, error) {
	return a.Agent(ctx, tenant, name)
}

// Redactor implements engine.Agents.
func (a Agents) Redactor(string, string) (engine.Redact, error) { return nil, nil }

// Profiles implements engine.Agents.
func (a Agents) Profiles(context.Context, string) ([]engine.ProfileView, error) { return nil, nil }

// Agent makes a profile of a script and tools.
func Agent(t *testing.T, script Script, tools ...tool.Tool) *engine.Agent {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Agent{Profile: "test", Version: "1.0.0", Tools: set, Settings: run.Settings{MaxSteps: 50, Retry: run.Retry{Max: 3, BaseMS: 1, LimitMS: 1000}},
		Models: []engine.Model{{Provider: script, ID: "m", Name: "fake/m"}}, ModelIdle: time.Minute, ToolTimeout: time.Minute}
}

// Script answers a request; it is told how many replies there were since the last
// message of the user.
type Script func(ctx context.Context, step int, req *model.Request) (*message.Message, error)

// Generate implements model.Provider.
func (f Script) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
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
	if err != nil || emit == nil {
		return m, err
	}
	emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
	for i, b := range m.Content {
		if b.Type == message.BlockText {
			emit(model.StreamEvent{Type: model.StreamTextDelta, Index: i, Delta: b.Text, Partial: m})
		}
	}
	return m, nil
}

// Say is a reply.
func Say(text string, calls ...message.Block) (*message.Message, error) {
	m := &message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Provider: "fake", Model: "m", Usage: &message.Usage{Input: 10, Output: 5, TotalTokens: 15}}
	if text != "" {
		m.Content = append(m.Content, message.Text(text))
	}
	if m.Content = append(m.Content, calls...); len(calls) > 0 {
		m.StopReason = message.StopToolUse
	}
	return m, nil
}

// Steps calls tools one after the other and then ends.
func Steps(names ...string) Script {
	return func(_ context.Context, n int, _ *model.Request) (*message.Message, error) {
		if n < len(names) {
			return Say("", Call(fmt.Sprint(names[n], n+1), names[n], `{"n":`+fmt.Sprint(n)+`}`))
		}
		return Say("done")
	}
}

// Call is a tool call of a reply.
func Call(id, name, args string) message.Block { return message.Call(id, name, json.RawMessage(args)) }

// Tool is a tool made of a function.
type Tool struct {
	S tool.Spec
	F func(ctx context.Context, c tool.Call) (tool.Result, error)
}

// Spec implements tool.Tool.
func (t Tool) Spec() tool.Spec {
	s := t.S
	if s.Schema == nil {
		s.Schema = json.RawMessage(`{"type":"object"}`)
	}
	return s
}

// Run implements tool.Tool.
func (t Tool) Run(ctx context.Context, c tool.Call) (tool.Result, error) { return t.F(ctx, c) }

// Counter counts.
type Counter struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts one.
func (c *Counter) Add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key]++
}

// Count gives how often a key was counted.
func (c *Counter) Count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

// All gives what was counted, sorted.
func (c *Counter) All() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for k, n := range c.n {
		out = append(out, fmt.Sprintf("%s: %d", k, n))
	}
	slices.Sort(out)
	return out
}

// Counting is a tool that counts its calls by name and key, and echoes.
func (w *World) Counting(name string, effect tool.Effect, sequential bool) tool.Tool {
	return Tool{tool.Spec{Name: name, Effect: effect, Sequential: sequential}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		w.Calls.Add(name + " " + c.Key)
		return tool.TextResult(name + " did " + string(c.Args)), nil
	}}
}
