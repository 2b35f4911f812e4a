package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
	"agentd/message"
)

const stamp = "2026-01-02T03:04:05.000Z"

// fake is an engine in memory. Each profile has a script that plays its runs.
type fake struct {
	mu       sync.Mutex
	profiles []engine.ProfileView
	scripts  map[string]func(*fakeRun)
	runs     map[string]*fakeRun
	order    []string
	keys     map[string]string
	sessions map[string]*engine.SessionView
	asked    map[string]*engine.InterruptView
	// readerBuffer is how many events a reader may lag behind; 0 is any.
	readerBuffer int
	notReady     error
	// started and cancelled tell tests what happened.
	started   []engine.StartRequest
	created   []engine.SessionRequest
	cancelled chan string
	arrived   *sync.Cond
	steered   []string
	panics    bool
	answers   []engine.AnswerRequest
	// replayed counts the stored events that were read.
	replayed atomic.Int64
}

type fakeRun struct {
	e       *fake
	req     engine.StartRequest
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	view    engine.Run
	events  []event.Event
	changed chan struct{}
}

func newFake() *fake {
	e := &fake{
		profiles: []engine.ProfileView{{Name: "echo", Version: "1.0.0", Description: "says it again", Labels: []string{"test"}, Model: "script/echo"}, {Name: "manual"}},
		scripts:  map[string]func(*fakeRun){"echo": echo},
		runs:     map[string]*fakeRun{}, keys: map[string]string{}, sessions: map[string]*engine.SessionView{}, asked: map[string]*engine.InterruptView{},
		cancelled: make(chan string, 100),
	}
	e.arrived = sync.NewCond(&e.mu)
	return e
}

// wait gives a run as soon as it was started.
func (e *fake) wait(id string) *fakeRun {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.runs[id] == nil {
		e.arrived.Wait()
	}
	return e.runs[id]
}

// script adds a profile whose runs are played by f.
func (e *fake) script(name string, f func(*fakeRun)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.profiles = append(e.profiles, engine.ProfileView{Name: name, Version: "1"})
	e.scripts[name] = f
}

var usage = message.Usage{Input: 10, Output: 5, CacheRead: 2, Reasoning: 1, TotalTokens: 17, Cost: message.Cost{Total: message.Dollar / 100}}

// echo answers with the input, word by word.
func echo(r *fakeRun) {
	m := message.Message{Content: r.req.Input}
	r.emit(event.StepStarted, &event.Step{Model: "echo"})
	text := m.Text()
	for _, w := range strings.SplitAfter(text, " ") {
		r.emit(event.TextDelta, &event.Delta{Text: w})
	}
	r.emit(event.StepCompleted, &event.Step{Model: "echo", StopReason: "stop", Usage: &usage})
	r.emit(event.FinalText, &event.Text{Text: text})
	r.end(event.RunCompleted, "stop", text, nil)
}

// emit publishes an event.
func (r *fakeRun) emit(t event.Type, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.emitLocked(t, data)
}

func (r *fakeRun) emitLocked(t event.Type, data any) {
	n := int64(1)
	if d, ok := data.(*event.Delta); ok {
		n = int64(len(d.Text))
	}
	if n == 0 {
		return
	}
	if t == event.StepStarted {
		r.view.Steps++
	}
	r.view.LastSeq += n
	r.events = append(r.events, event.Event{RunID: r.view.ID, Seq: r.view.LastSeq, Time: 1_767_323_045_000, Type: t, Step: r.view.Steps, Data: data})
	close(r.changed)
	r.changed = make(chan struct{})
}

// end ends the run, once.
func (r *fakeRun) end(t event.Type, reason, output string, e *event.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view.EndedAt != "" {
		return
	}
	r.view.Status = strings.TrimPrefix(string(t), "run_")
	r.view.StopReason, r.view.Output, r.view.Error, r.view.EndedAt, r.view.Usage = reason, output, e, stamp, usage
	u := usage
	r.emitLocked(t, &event.Ended{StopReason: reason, Output: output, Error: e, Usage: &u, Steps: r.view.Steps})
}

// ask opens an interrupt and pauses the run.
func (r *fakeRun) ask(id, kind, prompt string, pause bool) {
	i := &engine.InterruptView{ID: id, RunID: r.view.ID, SessionID: r.view.SessionID, Kind: kind, Status: "open", Prompt: prompt, CreatedAt: stamp,
		ToolCall: &event.Tool{ToolCallID: "c1", Name: "delete", Args: json.RawMessage(`{"path":"x"}`)}}
	r.e.mu.Lock()
	r.e.asked[id] = i
	r.e.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Interrupts = append(r.view.Interrupts, i)
	if pause {
		r.view.Status = "paused_checkpoint"
	}
	r.emitLocked(event.CheckpointRequired, &event.Checkpoint{InterruptID: id, Kind: kind, Prompt: prompt})
}

func (e *fake) Start(_ context.Context, req engine.StartRequest) (*engine.Run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.panics {
		panic("the engine is broken")
	}
	name, version, _ := strings.Cut(req.Profile, "@")
	if name == "" {
		name = "echo"
	}
	i := slices.IndexFunc(e.profiles, func(p engine.ProfileView) bool {
		return p.Name == name && (version == "" || version == p.Version)
	})
	if i < 0 {
		return nil, &fault.Error{Op: "engine.Start", Kind: fault.NotFound, Field: "profile", Err: fmt.Errorf("no profile %q", req.Profile), Hint: "GET /profiles lists them."}
	}
	if req.IdempotencyKey != "" {
		if id, ok := e.keys[req.IdempotencyKey]; ok {
			if !reflect.DeepEqual(e.runs[id].req, req) {
				return nil, fault.New(fault.Conflict, "another request has this idempotency key")
			}
			return e.runs[id].get(), nil
		}
	}
	if req.SessionID == "" {
		id := fmt.Sprintf("s%d", len(e.sessions)+1)
		e.sessions[id] = &engine.SessionView{ID: id, CreatedAt: stamp, UpdatedAt: stamp}
		return e.startLocked(req, id, e.profiles[i]), nil
	}
	if e.sessions[req.SessionID] == nil {
		return nil, &fault.Error{Kind: fault.NotFound, Field: "session_id", Err: errors.New("no such session")}
	}
	return e.startLocked(req, req.SessionID, e.profiles[i]), nil
}

func (e *fake) startLocked(req engine.StartRequest, session string, p engine.ProfileView) *engine.Run {
	id := fmt.Sprintf("r%d", len(e.runs)+1)
	r := &fakeRun{e: e, req: req, changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.view = engine.Run{ID: id, SessionID: session, RootID: id, Profile: p.Name, ProfileVersion: p.Version, Mode: engine.Interactive, Status: "running", Metadata: req.Metadata, CreatedAt: stamp, StartedAt: stamp}
	if req.Mode != "" {
		r.view.Mode = req.Mode
	}
	if n := req.Overrides.MaxSteps; n > 0 {
		r.view.Budget = &engine.Budget{Limits: engine.BudgetLimits{MaxSteps: n}, Used: engine.BudgetUsed{Steps: 1, RunTimeSeconds: 0.5}}
	}
	e.runs[id] = r
	e.order = append(e.order, id)
	e.arrived.Broadcast()
	e.started = append(e.started, req)
	if req.IdempotencyKey != "" {
		e.keys[req.IdempotencyKey] = id
	}
	r.emit(event.RunStarted, &event.Started{SessionID: session, Profile: p.Name, Mode: r.view.Mode})
	if f := e.scripts[p.Name]; f != nil {
		go f(r)
	}
	return r.get()
}

func (r *fakeRun) get() *engine.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.view
	return &v
}

func (e *fake) run(id string) (*fakeRun, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[id]; r != nil {
		return r, nil
	}
	return nil, &fault.Error{Op: "engine.Get", Kind: fault.NotFound, Err: fmt.Errorf("no run %q", id), Hint: "GET /runs lists them."}
}

func (e *fake) lastStart() engine.StartRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.started[len(e.started)-1]
}

func (e *fake) Get(_ context.Context, ref engine.Ref) (*engine.Run, error) {
	r, err := e.run(ref.ID)
	if err != nil {
		return nil, err
	}
	return r.get(), nil
}

func (e *fake) List(_ context.Context, _ string, f engine.RunFilter) ([]*engine.Run, string, error) {
	e.mu.Lock()
	ids := slices.Clone(e.order)
	e.mu.Unlock()
	slices.Reverse(ids)
	var out []*engine.Run
	for _, id := range ids {
		if f.Cursor != "" && len(id) <= len(f.Cursor) && id >= f.Cursor {
			continue
		}
		r, _ := e.run(id)
		v := r.get()
		if f.SessionID != "" && v.SessionID != f.SessionID || f.Status != "" && v.Status != f.Status {
			continue
		}
		if len(out) == f.Limit {
			return out, out[len(out)-1].ID, nil
		}
		out = append(out, v)
	}
	return out, "", nil
}

func (e *fake) Cancel(_ context.Context, ref engine.Ref, reason string) (*engine.Run, error) {
	r, err := e.run(ref.ID)
	if err != nil {
		return nil, err
	}
	if r.get().EndedAt != "" {
		return nil, fault.New(fault.Conflict, "the run has ended")
	}
	r.end(event.RunCancelled, "cancelled", "", nil)
	r.cancel()
	e.cancelled <- ref.ID + ": " + reason
	return r.get(), nil
}

func (e *fake) input(kind string, ref engine.Ref, in []message.Block, about []engine.ContextBlock) error {
	if _, err := e.run(ref.ID); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	said := kind + " " + in[0].Text
	for _, b := range about {
		said += " with " + b.Kind + "=" + b.Text
	}
	e.steered = append(e.steered, said)
	return nil
}

func (e *fake) Steer(_ context.Context, ref engine.Ref, in []message.Block, about ...engine.ContextBlock) error {
	return e.input("steer", ref, in, about)
}

func (e *fake) FollowUp(_ context.Context, ref engine.Ref, in []message.Block, about ...engine.ContextBlock) error {
	return e.input("follow_up", ref, in, about)
}

func (e *fake) Answer(_ context.Context, req engine.AnswerRequest) (*engine.InterruptView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = append(e.answers, req)
	id := req.Interrupt
	for _, i := range e.asked {
		if id == "" && i.RunID == req.Run && i.Status == "open" {
			id = i.ID
		}
	}
	i := e.asked[id]
	if i == nil {
		return nil, fault.New(fault.NotFound, "no such interrupt")
	}
	if i.Status != "open" {
		return nil, fault.New(fault.Conflict, "the interrupt was answered before")
	}
	v := *i
	v.Status, v.Decision, v.Answer, v.Reason, v.AnsweredAt = "answered", req.Decision, req.Answer, req.Reason, stamp
	e.asked[id] = &v
	return &v, nil
}

func (e *fake) Interrupts(_ context.Context, _ string, f engine.InterruptFilter) ([]*engine.InterruptView, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*engine.InterruptView
	for _, i := range e.asked {
		if (f.Status == "" || i.Status == f.Status) && (f.RunID == "" || i.RunID == f.RunID) && i.ID > f.Cursor {
			out = append(out, i)
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID < out[b].ID })
	if len(out) > f.Limit {
		return out[:f.Limit], out[f.Limit-1].ID, nil
	}
	return out, "", nil
}

func (e *fake) Interrupt(_ context.Context, ref engine.Ref) (*engine.InterruptView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.asked[ref.ID]; i != nil {
		return i, nil
	}
	return nil, fault.New(fault.NotFound, "no such interrupt")
}

func (e *fake) Trace(_ context.Context, ref engine.Ref, after, limit int) (rows []engine.TraceView, more bool, err error) {
	if _, err := e.run(ref.ID); err != nil {
		return nil, false, err
	}
	for n := after + 1; n <= 3 && len(rows) < limit; n++ {
		rows = append(rows, engine.TraceView{N: n, Time: stamp, Input: "ModelDone"})
	}
	return rows, after+len(rows) < 3, nil
}

func (e *fake) Replay(_ context.Context, ref engine.Ref, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r, err := e.run(ref.ID)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		r.mu.Lock()
		events := slices.Clone(r.events)
		r.mu.Unlock()
		for _, ev := range events {
			if ev, ok := event.After(ev, after); ok {
				e.replayed.Add(1)
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
}

func (e *fake) CreateSession(_ context.Context, req engine.SessionRequest) (*engine.SessionView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.created = append(e.created, req)
	s := &engine.SessionView{ID: fmt.Sprintf("s%d", len(e.sessions)+1), Title: req.Title, Metadata: req.Metadata, CreatedAt: stamp, UpdatedAt: stamp}
	e.sessions[s.ID] = s
	return s, nil
}

func (e *fake) Session(_ context.Context, ref engine.Ref) (*engine.SessionView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.sessions[ref.ID]; s != nil {
		return s, nil
	}
	return nil, fault.New(fault.NotFound, "no such session")
}

func (e *fake) Sessions(_ context.Context, _ string, f engine.SessionFilter) ([]*engine.SessionView, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*engine.SessionView
	for _, s := range e.sessions {
		if s.Ephemeral == f.Ephemeral {
			out = append(out, s)
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID < out[b].ID })
	if len(out) > f.Limit {
		return out[:f.Limit], out[f.Limit-1].ID, nil
	}
	return out, "", nil
}

func (e *fake) Compact(ctx context.Context, req engine.StartRequest) (*engine.Run, error) {
	if _, err := e.Session(ctx, engine.Ref{Tenant: req.Tenant, ID: req.SessionID}); err != nil {
		return nil, err
	}
	if len(req.Compact.Instructions) > 4096 {
		return nil, fault.New(fault.TooLarge, "instructions")
	}
	req.Input = []message.Block{message.Text("compacted: " + req.Compact.Instructions)}
	return e.Start(ctx, req)
}

func (e *fake) DeleteSession(_ context.Context, ref engine.Ref) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[ref.ID] == nil {
		return fault.New(fault.NotFound, "no such session")
	}
	delete(e.sessions, ref.ID)
	return nil
}

func (e *fake) Entries(ctx context.Context, ref engine.Ref, after string, _ int) ([]*engine.EntryView, error) {
	if _, err := e.Session(ctx, ref); err != nil {
		return nil, err
	}
	if after != "" {
		return nil, nil
	}
	m := message.User("hello")
	reply := message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("hi"), message.Call("c1", "look", nil)}, Usage: &usage, StopReason: message.StopToolUse}
	result := message.ToolResult("c1", "look", false, message.Text("seen"))
	return []*engine.EntryView{{ID: "e1", Kind: "message", RunID: "r1", CreatedAt: stamp, Message: &m},
		{ID: "e2", Parent: "e1", Kind: "message", CreatedAt: stamp, Message: &reply}, {ID: "e3", Parent: "e2", Kind: "message", CreatedAt: stamp, Message: &result},
		{ID: "e4", Parent: "e3", Kind: "label", CreatedAt: stamp, Data: json.RawMessage(`{"label":"here"}`)}}, nil
}

func (e *fake) Profiles(context.Context, string) ([]engine.ProfileView, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.profiles), nil
}

func (e *fake) Artifact(_ context.Context, ref engine.Ref) (string, string, []byte, error) {
	if ref.ID != "a1" {
		return "", "", nil, fault.New(fault.NotFound, "no such artifact")
	}
	return `re"port é.html`, "text/html", []byte("<script>alert(1)</script>"), nil
}

func (e *fake) Usage(_ context.Context, _ string, from, to int64, _, _ string) ([]engine.UsageView, error) {
	if from >= to && to != 0 {
		return nil, nil
	}
	return []engine.UsageView{{Provider: "openai", Model: "m", Calls: 2, Input: 10, Output: 5, Cost: message.Dollar / 4}, {Provider: "script", Model: "echo", Calls: 1}}, nil
}

func (e *fake) Ready(context.Context) error { return e.notReady }
