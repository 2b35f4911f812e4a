package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

func ref(id string) Ref { return Ref{store.DefaultTenant, id} }

// until waits for something that another goroutine brings about, in real time. How
// often it looks says nothing about how much time the others got.
func (h *harness) until(what string, ok func() bool) {
	h.t.Helper()
	late := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(late) {
			h.t.Fatalf("it never came to this: %s", what)
		}
		runtime.Gosched()
	}
}

func (h *harness) untilStatus(id, status string) {
	h.t.Helper()
	h.until(id+" is "+status, func() bool {
		r, err := h.engine.Get(context.Background(), ref(id))
		if err != nil {
			h.t.Fatal(err)
		}
		return r.Status == status
	})
}

// hang is a model that answers when its call ends.
func hang(ctx context.Context, _ int, _ *model.Request) (*message.Message, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A queued run that was loaded early (to take a steering message) starts from
// where the session is when its turn comes, not from where it was then.
func TestQueuedRunStartsFromTheSessionsPresentLeaf(t *testing.T) {
	release := make(chan struct{})
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		if req.Messages[len(req.Messages)-1].Text() == "a" {
			<-release
			return say("answer a")
		}
		return say("answer b")
	})
	h.engine.Close()
	hook := &inputsHook{Store: h.store}
	h.store = hook
	h.start()
	ctx := context.Background()
	ses, err := h.engine.CreateSession(ctx, SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	start := func(text string) *Run {
		r, err := h.engine.Start(ctx, StartRequest{SessionID: ses.ID, Input: []message.Block{message.Text(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a := start("a")
	h.untilStatus(a.ID, "running")
	b := start("b")
	hook.set(b.ID, func() {
		h.until("the message is there", func() bool { // else the run might be over before it comes
			h.engine.mu.Lock()
			d := h.engine.drivers[ref(b.ID)]
			h.engine.mu.Unlock()
			return d != nil && d.waiting()
		})
		close(release)
		h.untilStatus(a.ID, "completed")
	})
	if err := h.engine.Steer(ctx, ref(b.ID), []message.Block{message.Text("steer b")}); err != nil {
		t.Fatal(err)
	}
	h.wait(a)
	h.wait(b)
	const want = "user \"a\"\nassistant \"answer a\"\nuser \"b\"\nuser \"steer b\"\nassistant \"answer b\"\n"
	if got := h.transcript(ses.ID); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// inputsHook calls back when the inputs of a run are read.
type inputsHook struct {
	store.Store
	mu   sync.Mutex
	run  string
	hook func()
}

func (s *inputsHook) set(run string, hook func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.hook = run, hook
}

func (s *inputsHook) Inputs(ctx context.Context, tenant, id string) ([]*store.Input, error) {
	s.mu.Lock()
	hook := s.hook
	if id == s.run {
		s.hook = nil
	} else {
		hook = nil
	}
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	return s.Store.Inputs(ctx, tenant, id)
}

// A repetition under the same key is the first run, whatever when_busy says: it
// must not interrupt, or be refused because of, the run that it started itself.
func TestRepetitionMeetsItsOwnRun(t *testing.T) {
	h := newHarness(t, hang)
	ctx := context.Background()
	for _, busy := range []WhenBusy{Interrupt, Reject, Enqueue} {
		ses, err := h.engine.CreateSession(ctx, SessionRequest{})
		if err != nil {
			t.Fatal(err)
		}
		req := StartRequest{Input: []message.Block{message.Text("x")}, SessionID: ses.ID, WhenBusy: busy, IdempotencyKey: string(busy)}
		first, err := h.engine.Start(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		h.untilStatus(first.ID, "running")
		again, err := h.engine.Start(ctx, req)
		if err != nil || again.ID != first.ID || again.Status != "running" {
			t.Errorf("%s: %+v, %v", busy, again, err)
		}
		req.Input = []message.Block{message.Text("another")}
		if _, err := h.engine.Start(ctx, req); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: another request under the same key: %v", busy, err)
		}
	}
}

// A cancel that was on its way down a tree of runs when the process died reaches
// the children all the same.
func TestCancelChainSurvivesACrash(t *testing.T) {
	running := make(chan struct{}, 10)
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if strings.Contains(req.Messages[0].Text(), "child") {
			running <- struct{}{}
			return hang(ctx, step, req)
		}
		return say("", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"child"}`))
	})
	h.agents["test"].Subagents = []string{"test"}
	r := h.run("go")
	<-running
	h.engine.Close()
	// The parent's cancel is durable, the child's is not.
	row, err := h.store.Run(context.Background(), store.DefaultTenant, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	st, err := run.Decode(row.State)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := run.Step(st, run.CancelRequested{At: run.At{Now: 1}, Reason: "user"})
	if err != nil {
		t.Fatal(err)
	}
	u := row.RunUpdate
	u.State = tr.State.Encode()
	if err := h.store.Commit(context.Background(), &store.Tx{Tenant: store.DefaultTenant, Runs: []store.RunChange{{ID: r.ID, RunUpdate: u}}}); err != nil {
		t.Fatal(err)
	}
	h.start()
	parent, child := h.wait(r), h.wait(&Run{ID: r.ID + ".c1"})
	if parent.Status != "cancelled" || child.Status != "cancelled" || child.RootID != r.ID || child.SessionID == r.SessionID {
		t.Errorf("parent %+v\nchild %+v", parent, child)
	}
}

// What a person approved after a restart runs with the validated arguments, and
// approving takes the run up again from nothing but the store.
func TestApprovalAfterRestart(t *testing.T) {
	var got atomic.Value
	pay := toolFunc{tool.Spec{Name: "pay", Approval: "always", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		func(_ context.Context, c tool.Call) (tool.Result, error) {
			got.Store(string(c.Args))
			return tool.TextResult("paid"), nil
		}}
	for _, c := range []struct{ name, amended, want string }{{"as it was", "", `{"n":123}`}, {"amended", `{"n":7}`, `{"n":7}`}} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
				if step == 0 {
					return say("", call("c", "pay", `{"n":"123"}`))
				}
				return say("end")
			}, pay)
			r := h.run("go")
			h.untilStatus(r.ID, "paused_checkpoint")
			h.restart()
			ctx := context.Background()
			if _, err := h.engine.Answer(ctx, AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"n":"x"}`)}); fault.KindOf(err) != fault.Invalid {
				t.Errorf("invalid arguments are answered with %v", err)
			}
			answer := AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(c.amended), By: "someone"}
			if len(c.amended) == 0 {
				answer.Args = nil
			}
			if _, err := h.engine.Answer(ctx, answer); err != nil {
				t.Fatal(err)
			}
			if r = h.wait(r); r.Status != "completed" || got.Load() != c.want {
				t.Errorf("%s with %v", r.Status, got.Load())
			}
			_, err := h.engine.Answer(ctx, answer)
			if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "approve by someone") {
				t.Errorf("the second answer: %v", err)
			}
		})
	}
}

// A message that a run accepted and never took is handed back when it ends.
func TestQueuedMessagesAreHandedBack(t *testing.T) {
	h := newHarness(t, hang)
	r := h.run("go")
	h.untilStatus(r.ID, "running")
	ctx := context.Background()
	if err := h.engine.Steer(ctx, ref(r.ID), []message.Block{message.Text("IMPORTANT")}); err != nil {
		t.Fatal(err)
	}
	if err := h.engine.FollowUp(ctx, ref(r.ID), []message.Block{message.Text("later")}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Cancel(ctx, ref(r.ID), ""); err != nil {
		t.Fatal(err)
	}
	h.wait(r)
	events := h.events(r)
	if end := events[len(events)-1].Data.(*event.Ended); fmt.Sprint(end.Returned) != "[IMPORTANT later]" {
		t.Errorf("returned %q", end.Returned)
	}
	if err := h.engine.Steer(ctx, ref(r.ID), []message.Block{message.Text("x")}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("steering an ended run: %v", err)
	}
}

// A slot that is free goes to the run that waits for it, whoever waited before.
func TestSlotsAreHandedOver(t *testing.T) {
	s := &slots{free: 1}
	drivers := make([]*driver, 4)
	for i := range drivers {
		drivers[i] = &driver{row: &store.Run{}, wake: make(chan struct{}, 1)}
	}
	a, b, c, resumed := drivers[0], drivers[1], drivers[2], drivers[3]
	if !s.take(a) || s.take(b) || s.take(c) || s.take(c) {
		t.Fatal("one slot is given to one driver")
	}
	s.force(resumed) // counts, waits for nobody
	s.give(b)        // cancelled while it waited
	s.give(a)
	if s.take(c) {
		t.Error("c has a slot though the resumed run has it")
	}
	s.give(resumed)
	if !s.take(c) || s.free != 0 {
		t.Errorf("c waits though a slot is free (%d)", s.free)
	}
}

// A run whose stored state is damaged fails; its session goes on.
func TestDamagedStateFailsTheRun(t *testing.T) {
	gate := make(chan struct{}, 1)
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if req.Messages[len(req.Messages)-1].Text() == "second" {
			return say("ok")
		}
		gate <- struct{}{}
		return hang(ctx, step, req)
	})
	r := h.run("go")
	<-gate
	h.untilStatus(r.ID, "running")
	h.engine.Close()
	row, err := h.store.Run(context.Background(), store.DefaultTenant, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	u := row.RunUpdate
	u.State = []byte(`{"v":1,"status":"?"}`)
	if err := h.store.Commit(context.Background(), &store.Tx{Tenant: store.DefaultTenant, Runs: []store.RunChange{{ID: r.ID, RunUpdate: u}}}); err != nil {
		t.Fatal(err)
	}
	h.start()
	if r = h.wait(r); r.Status != "failed" || r.Error == nil || !strings.Contains(r.Error.Message, "damaged") {
		t.Errorf("%+v, error %+v", r, r.Error)
	}
	second, err := h.engine.Start(context.Background(), StartRequest{SessionID: r.SessionID, Input: []message.Block{message.Text("second")}})
	if err != nil {
		t.Fatal(err)
	}
	if second = h.wait(second); second.Output != "ok" {
		t.Errorf("%+v", second)
	}
}

func TestAdapterThatGivesNothing(t *testing.T) {
	h := newHarness(t, nil)
	h.agents["test"].Models = []Model{{Provider: nothing{}, ID: "m", Name: "n/m"}}
	h.agents["test"].Settings.Retry.Max = 0
	if r := h.wait(h.run("x")); r.Status != "failed" || r.Error.Kind != string(model.ClassMalformed) {
		t.Errorf("%+v", r)
	}
}

type nothing struct{}

func (nothing) Generate(context.Context, *model.Request, func(model.StreamEvent)) (*message.Message, error) {
	return nil, nil
}

// A forced tool choice forces one call, not a call after every result.
func TestForcedToolChoiceIsForTheFirstStep(t *testing.T) {
	var calls atomic.Int64
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		calls.Add(1)
		if req.ToolChoice == model.ToolChoiceRequired {
			return say("", call("c", "echo", `{}`))
		}
		return say("x")
	}, echoTool(tool.Read))
	r, err := h.engine.Start(context.Background(), StartRequest{Input: []message.Block{message.Text("x")}, Overrides: Overrides{ToolChoice: "required"}})
	if err != nil {
		t.Fatal(err)
	}
	if r = h.wait(r); calls.Load() != 2 || r.StopReason != "stop" {
		t.Errorf("%d model calls, %s", calls.Load(), r.StopReason)
	}
}

// A profile or a request asks for one tool call at a time; a request can not ask
// for more than its profile.
func TestSingleToolCall(t *testing.T) {
	asked := make(chan bool, 1)
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		asked <- req.SingleToolCall
		return say("x")
	})
	for _, c := range []struct{ profile, request bool }{{false, false}, {false, true}, {true, false}} {
		h.agents["test"].Options.SingleToolCall = c.profile
		h.ends(h.begin(StartRequest{Overrides: Overrides{SingleToolCall: c.request}}), "completed")
		if got := <-asked; got != (c.profile || c.request) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A model's defaults are for what neither the profile nor the request says.
func TestModelDefaults(t *testing.T) {
	half := 0.5
	asked := make(chan *model.Request, 1)
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		asked <- req
		return say("x")
	})
	h.agents["test"].Models[0].MaxTokens, h.agents["test"].Models[0].Thinking = 15_000, model.ThinkingLow
	for _, c := range []struct {
		name     string
		profile  prompt.Options
		request  Overrides
		max      int
		thinking model.ThinkingLevel
	}{
		{"nothing said", prompt.Options{}, Overrides{}, 15_000, model.ThinkingLow},
		{"the profile", prompt.Options{MaxTokens: 20_000, Thinking: model.ThinkingHigh}, Overrides{}, 20_000, model.ThinkingHigh},
		{"the request", prompt.Options{}, Overrides{MaxOutputTokens: 5000, Thinking: "off"}, 5000, model.ThinkingOff},
		{"a short answer", prompt.Options{}, Overrides{MaxOutputTokens: 100}, 100, ""},
		{"a short answer with thoughts", prompt.Options{}, Overrides{MaxOutputTokens: 100, Thinking: "low"}, 100, model.ThinkingLow},
		{"a temperature", prompt.Options{Temperature: &half}, Overrides{}, 15_000, ""},
		{"top_p", prompt.Options{}, Overrides{TopP: &half}, 15_000, ""},
	} {
		h.agents["test"].Options = c.profile
		h.ends(h.begin(StartRequest{Overrides: c.request}), "completed")
		if got := <-asked; got.MaxTokens != c.max || got.Thinking != c.thinking {
			t.Errorf("%s: %d tokens, thinking %q", c.name, got.MaxTokens, got.Thinking)
		}
	}
}

// What a provider counted of a failed call is counted.
func TestUsageOfFailedCallsCounts(t *testing.T) {
	var n atomic.Int64
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		if n.Add(1) < 3 {
			return nil, &model.Error{Class: model.ClassTruncated, Provider: "fake", Usage: &message.Usage{Input: 1000, Output: 1000, TotalTokens: 2000}}
		}
		return say("x")
	})
	r := h.wait(h.run("x"))
	sums, err := h.engine.Usage(context.Background(), store.DefaultTenant, 0, 0, "", "")
	if err != nil || len(sums) != 1 || sums[0].Calls != 3 || sums[0].Input != 2010 || r.Usage.TotalTokens != 4015 {
		t.Errorf("usage %+v, %+v, %v", r.Usage, sums, err)
	}
}
