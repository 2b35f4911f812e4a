package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// begin starts a run with more than an input.
func (h *harness) begin(req StartRequest) *Run {
	h.t.Helper()
	if req.Input == nil {
		req.Input = []message.Block{message.Text("go")}
	}
	r, err := h.engine.Start(h.t.Context(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// cancel cancels a run.
func (h *harness) cancel(r *Run) {
	h.t.Helper()
	if _, err := h.engine.Cancel(h.t.Context(), ref(r.ID), "enough"); err != nil {
		h.t.Fatal(err)
	}
}

// ends waits for a run and fails if it did not end as it should.
func (h *harness) ends(r *Run, status string) *Run {
	h.t.Helper()
	r = h.wait(r)
	if r.Status != status {
		h.t.Fatalf("the run is %s (%s), not %s: %+v", r.Status, r.StopReason, status, r.Error)
	}
	return r
}

// gate is where a fake waits until the test, or the end of its call, lets it go.
type gate struct{ entered, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 100), make(chan struct{})} }

// pass waits for the gate; it returns ctx's error if that ends first.
func (g gate) pass(ctx context.Context) error {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gated is a tool that waits at a gate.
func gated(name string, effect tool.Effect, g gate) tool.Tool {
	return toolFunc{tool.Spec{Name: name, Effect: effect}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		if err := g.pass(ctx); err != nil {
			return tool.Result{}, err
		}
		return tool.TextResult(name + " is done"), nil
	}}
}

// streamer is a model that says something and then waits at a gate.
type streamer struct {
	text string
	g    gate
}

func (s streamer) Generate(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	m, _ := say(s.text)
	emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
	emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: s.text, Partial: m})
	if err := s.g.pass(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

func TestCancelReachesAStreamingModel(t *testing.T) {
	g := newGate()
	h := newHarness(t, nil)
	h.agents["test"].Models[0].Provider = streamer{"Half a sen", g}
	r := h.run("hello")
	<-g.entered
	began := time.Now()
	h.cancel(r)
	r = h.ends(r, "cancelled")
	if d := time.Since(began); d > time.Second {
		t.Errorf("it took %v", d)
	}
	// What streamed is kept, marked as broken off, and is not an answer.
	if got, want := h.transcript(r.SessionID), "user \"hello\"\nassistant \"Half a sen\"\n"; got != want {
		t.Errorf("transcript:\n%s", got)
	}
	entries, err := h.engine.Entries(t.Context(), Ref{store.DefaultTenant, r.SessionID}, "", 0)
	if err != nil || entries[1].Message.StopReason != message.StopAborted {
		t.Errorf("the reply ends with %+v, %v", entries[1].Message, err)
	}
	if r.Output != "" {
		t.Errorf("the output is %q", r.Output)
	}
}

func TestCancelReachesARunningTool(t *testing.T) {
	g := newGate()
	h := newHarness(t, twoTools, gated("echo", tool.Read, g))
	r := h.run("go")
	<-g.entered
	<-g.entered
	began := time.Now()
	h.cancel(r)
	r = h.ends(r, "cancelled")
	if d := time.Since(began); d > time.Second {
		t.Errorf("it took %v", d)
	}
	const want = `user "go"
assistant "I will look." [a echo {"n":1}] [b echo {"n":2}]
toolResult "context canceled" for a error=true
toolResult "context canceled" for b error=true
`
	if got := h.transcript(r.SessionID); got != want {
		t.Errorf("transcript:\n%s", got)
	}
	if got, want := kinds(h.events(r)), "run_started step_started text_delta tool_input_started tool_input_started step_completed tool_started tool_started tool_failed tool_failed run_cancelled"; got != want {
		t.Errorf("events: %s", got)
	}
}

// A model or a tool that does not listen can not hold the run up: after a second
// it is abandoned, and a tool's outcome is called unknown.
func TestWhatIgnoresACancelIsAbandoned(t *testing.T) {
	t.Run("tool", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			deaf := make(chan struct{}) // nothing but the test's end opens it
			defer close(deaf)
			h := newHarness(t, twoTools, toolFunc{tool.Spec{Name: "echo"}, func(context.Context, tool.Call) (tool.Result, error) {
				<-deaf
				return tool.TextResult("too late"), nil
			}})
			h.abandoned(`user "go"
assistant "I will look." [a echo {"n":1}] [b echo {"n":2}]
toolResult "echo did not end when it was told to (the run is ending) and was abandoned; it may still happen." for a error=true
toolResult "echo did not end when it was told to (the run is ending) and was abandoned; it may still happen." for b error=true
`)
		})
	})
	t.Run("model", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			deaf := make(chan struct{})
			defer close(deaf)
			h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) {
				<-deaf
				return say("Too late.")
			})
			h.abandoned("user \"go\"\n")
		})
	})
	t.Run("TransformContext", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			deaf := make(chan struct{})
			defer close(deaf)
			h := newHarness(t, listener)
			h.engine.cfg.TransformContext = func(context.Context, Ref, []message.Message) ([]message.Message, error) {
				<-deaf
				return nil, nil
			}
			h.abandoned("user \"go\"\n")
		})
	})
}

// abandoned cancels a run that does not listen and checks what is left of it.
func (h *harness) abandoned(want string) {
	h.t.Helper()
	h.engine.cfg.AbandonAfter = time.Second
	r := h.run("go")
	synctest.Wait()
	began := time.Now()
	h.cancel(r)
	r = h.ends(r, "cancelled")
	if d := time.Since(began); d != time.Second {
		h.t.Errorf("it took %v", d)
	}
	if got := h.transcript(r.SessionID); got != want {
		h.t.Errorf("transcript:\n%s", got)
	}
}

func TestCancelOfARunThatWaitsForItsTurn(t *testing.T) {
	g := newGate()
	h := newHarness(t, twoTools, gated("echo", tool.Read, g))
	first := h.run("first")
	<-g.entered
	second := h.begin(StartRequest{SessionID: first.SessionID})
	third := h.begin(StartRequest{SessionID: first.SessionID, Input: []message.Block{message.Text("third")}})
	h.cancel(second)
	h.ends(second, "cancelled")
	if got := kinds(h.events(second)); got != "run_cancelled" {
		t.Errorf("events: %s", got)
	}
	close(g.open)
	h.ends(first, "completed")
	h.ends(third, "completed")
	if got := h.transcript(first.SessionID); strings.Contains(got, `"go"`) || !strings.Contains(got, `"third"`) {
		t.Errorf("transcript:\n%s", got)
	}
}

func TestCancelOfARunThatWaitsForAPerson(t *testing.T) {
	h := newHarness(t, twoTools, asking(echoTool(tool.Once)))
	r := h.run("go")
	h.paused(r, 2)
	h.cancel(r)
	r = h.ends(r, "cancelled")
	all, _, err := h.engine.Interrupts(t.Context(), store.DefaultTenant, InterruptFilter{RunID: r.ID})
	if err != nil || len(all) != 2 || all[0].Status != "cancelled" || all[1].Status != "cancelled" {
		t.Errorf("interrupts: %+v, %v", all, err)
	}
	if len(r.Interrupts) != 0 {
		t.Errorf("a run that ended still asks: %+v", r.Interrupts)
	}
	_, err = h.engine.Answer(t.Context(), AnswerRequest{Interrupt: all[0].ID, Decision: "approve"})
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("an answer after the end: %v", err)
	}
}

func TestCancelTwiceAndCancelAfterTheEnd(t *testing.T) {
	g := newGate()
	h := newHarness(t, twoTools, gated("echo", tool.Read, g))
	r := h.run("go")
	<-g.entered
	h.cancel(r)
	h.cancel(r)
	h.ends(r, "cancelled")
	h.cancel(r)
	close(g.open)
	done := h.run("again")
	h.ends(done, "completed")
	_, err := h.engine.Cancel(t.Context(), ref(done.ID), "")
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "has ended: completed") {
		t.Errorf("a cancel after the end: %v", err)
	}
	_, err = h.engine.Cancel(t.Context(), Ref{store.DefaultTenant, "run_x"}, "")
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("a cancel of no run: %v", err)
	}
}

// A cancel that was accepted counts, even if the process ends before the run does.
func TestCancelSurvivesARestart(t *testing.T) {
	stubborn := make(chan struct{})
	entered := make(chan struct{}, 2)
	h := newHarness(t, twoTools, toolFunc{tool.Spec{Name: "echo"}, func(context.Context, tool.Call) (tool.Result, error) {
		entered <- struct{}{}
		<-stubborn
		return tool.TextResult("too late"), nil
	}})
	defer close(stubborn)
	h.engine.cfg.AbandonAfter = time.Hour
	r := h.run("go")
	<-entered
	<-entered
	h.cancel(r)
	h.abandon()
	r = h.ends(r, "cancelled")
	if got := h.transcript(r.SessionID); strings.Count(got, "it may have happened") != 2 {
		t.Errorf("transcript:\n%s", got)
	}
}

// abandon is a crash of an engine whose effects do not end: nobody waits for them.
func (h *harness) abandon() {
	h.t.Helper()
	h.engine.mu.Lock()
	h.engine.closed = true
	h.engine.mu.Unlock()
	h.engine.stop()
	if n := h.engine.node; n != nil {
		n.end() // as if its lease were over
	}
	h.start()
}

// asking makes a tool that needs a person's approval.
func asking(t tool.Tool) tool.Tool {
	f := t.(toolFunc)
	f.spec.Approval = "always"
	return f
}

// paused waits until a run waits for people, with so many interrupts.
func (h *harness) paused(r *Run, interrupts int) *Run {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	for range h.engine.Watch(ctx, ref(r.ID), 0) {
		now, err := h.engine.Get(ctx, ref(r.ID))
		if err != nil {
			h.t.Fatal(err)
		}
		if now.Status == "paused_checkpoint" {
			if len(now.Interrupts) != interrupts {
				h.t.Fatalf("%d interrupts are open, not %d", len(now.Interrupts), interrupts)
			}
			return now
		}
	}
	h.t.Fatalf("run %s does not wait for anybody", r.ID)
	return nil
}

func text(s string) json.RawMessage { raw, _ := json.Marshal(s); return raw }
