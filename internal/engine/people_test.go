package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// answer answers an interrupt.
func (h *harness) answer(req AnswerRequest) *InterruptView {
	h.t.Helper()
	i, err := h.engine.Answer(h.t.Context(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return i
}

// oneCall calls a tool once, then says what it got.
func oneCall(name, args string) modelFunc {
	return func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("a", name, args))
		}
		return say("It said: " + req.Messages[len(req.Messages)-1].Text())
	}
}

// gone waits until nothing of a run is in memory.
func (h *harness) gone(r *Run) {
	h.t.Helper()
	for late := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		h.engine.mu.Lock()
		d, s := h.engine.drivers[ref(r.ID)], h.engine.streams[ref(r.ID)]
		h.engine.mu.Unlock()
		if d == nil && s == nil {
			return
		}
		if time.Now().After(late) {
			h.t.Fatalf("run %s is still in memory", r.ID)
		}
	}
}

func TestApprovalIsAnsweredAfterARestart(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{"n":1}`), asking(echoTool(tool.Once)))
	r := h.paused(h.run("go"), 1)
	i := r.Interrupts[0]
	if i.Kind != "approval" || i.ToolCall.Name != "echo" || string(i.ToolCall.Args) != `{"n":1}` || !strings.Contains(i.Prompt, "May echo run?") {
		t.Errorf("interrupt: %+v", i)
	}
	h.restart()
	h.paused(r, 1)
	i = h.answer(AnswerRequest{Run: r.ID, Decision: "approve", By: "kim"})
	if i.Status != "answered" || i.Decision != "approve" || i.AnsweredAt == "" {
		t.Errorf("interrupt: %+v", i)
	}
	r = h.ends(r, "completed")
	if r.Output != `It said: echo {"n":1}` {
		t.Errorf("output: %s", r.Output)
	}
}

func TestAPausedRunOccupiesNoMemory(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{}`), asking(echoTool(tool.Once)))
	first := h.paused(h.run("go"), 1)
	h.gone(first)
	// Goroutines that are kept for the next effects are no run's.
	kept := func() int {
		h.engine.workers.mu.Lock()
		defer h.engine.workers.mu.Unlock()
		return len(h.engine.workers.idle)
	}
	before := settled(func(int) bool { return true }) - kept()
	var more []*Run
	for range 20 {
		more = append(more, h.paused(h.run("go"), 1))
	}
	for _, r := range more {
		h.gone(r)
	}
	if after := settled(func(n int) bool { return n-kept() <= before }) - kept(); after > before {
		t.Errorf("%d goroutines with 1 paused run, %d with 21", before, after)
	}
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	if n := len(h.engine.waiters) + len(h.engine.drivers) + len(h.engine.streams); n != 0 {
		t.Errorf("%d things are still in memory", n)
	}
}

// settled gives the number of goroutines when it is good, or after a while.
func settled(good func(int) bool) int {
	n := runtime.NumGoroutine()
	for late := time.Now().Add(5 * time.Second); !good(n) && time.Now().Before(late); n = runtime.NumGoroutine() {
		runtime.Gosched()
	}
	return n
}

func TestRejectionTellsTheModelWhy(t *testing.T) {
	ran := &counter{}
	h := newHarness(t, oneCall("act", `{}`), asking(toolFunc{tool.Spec{Name: "act"}, func(context.Context, tool.Call) (tool.Result, error) {
		ran.add("act")
		return tool.TextResult("done"), nil
	}}))
	r := h.paused(h.run("go"), 1)
	h.answer(AnswerRequest{Interrupt: r.Interrupts[0].ID, Decision: "reject", Reason: "too dear"})
	r = h.ends(r, "completed")
	if r.Output != "It said: A person rejected this call: too dear" || len(ran.n) != 0 {
		t.Errorf("output %q, %v", r.Output, ran.n)
	}
}

func TestAmendedArguments(t *testing.T) {
	spec := tool.Spec{Name: "act", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":10},"to":{"type":"string"}},"required":["n","to"]}`)}
	h := newHarness(t, oneCall("act", `{"n":1,"to":"me"}`), asking(toolFunc{spec, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult(string(c.Args)), nil
	}}))
	r := h.paused(h.run("go"), 1)
	before := h.stored(r)
	_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"n":99}`)})
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Field != "args" || !strings.Contains(err.Error(), "n") || !strings.Contains(err.Error(), "to") {
		t.Errorf("an amendment with two mistakes: %v", err)
	}
	for _, bad := range []string{`{"n":`, `[]`, `"x"`} {
		if _, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(bad)}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("amendment %s: %v", bad, err)
		}
	}
	if _, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "reject", Args: json.RawMessage(`{"n":2,"to":"you"}`)}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a rejection with arguments: %v", err)
	}
	h.paused(r, 1)
	if after := h.stored(r); after != before {
		t.Errorf("refused answers changed the run:\n%s\n%s", before, after)
	}
	// The amendment reaches the tool, also when the process ends in between.
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"n":2,"to":"you"}`)})
	r = h.ends(r, "completed")
	if r.Output != `It said: {"n":2,"to":"you"}` {
		t.Errorf("output: %s", r.Output)
	}
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Tool); ok && ev.Type == event.ToolStarted && (d.Decision != "amended" || string(d.Args) != `{"n":2,"to":"you"}`) {
			t.Errorf("tool_started: %+v", d)
		}
	}
}

// stored gives the types of what is stored of a run that has not ended.
func (h *harness) stored(r *Run) string {
	h.t.Helper()
	events, err := h.engine.Events(h.t.Context(), ref(r.ID), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return kinds(events)
}

func TestASecondAnswerIsAConflictThatSaysWhatHappened(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{}`), asking(echoTool(tool.Once)))
	r := h.paused(h.run("go"), 1)
	id := r.Interrupts[0].ID
	const people = 8
	errs := make([]error, people)
	var all sync.WaitGroup
	for n := range people {
		all.Go(func() {
			_, errs[n] = h.engine.Answer(t.Context(), AnswerRequest{Interrupt: id, Decision: "approve", By: fmt.Sprint("person ", n)})
		})
	}
	all.Wait()
	winner, won := "", 0
	for n, err := range errs {
		if err == nil {
			winner, won = fmt.Sprint("person ", n), won+1
		}
	}
	if won != 1 {
		t.Fatalf("%d of %d answers were accepted: %v", won, people, errs)
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	_, late := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: id, Decision: "reject"})
	_, byRun := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "reject"})
	for _, err := range append(errs, late, byRun) {
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "answered: approve by "+winner) {
			t.Errorf("a second answer: %v, and %s was first", err, winner)
		}
	}
	h.ends(r, "completed")
}

func TestInterruptsAreAnsweredInAnyOrder(t *testing.T) {
	three := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`), call("c", "echo", `{"n":3}`))
		}
		return say("Done.")
	}
	const want = `user "go"
assistant [a echo {"n":1}] [b echo {"n":2}] [c echo {"n":3}]
toolResult "echo {\"n\":1}" for a error=false
toolResult "A person rejected this call: not that" for b error=true
toolResult "echo {\"n\":3}" for c error=false
assistant "Done."
`
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			// Idempotent: a call may be under way when the process ends.
			h := newHarness(t, three, asking(echoTool(tool.Idempotent)))
			r := h.paused(h.run("go"), 3)
			_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"})
			if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "3 interrupts are open") {
				t.Errorf("an answer to none of three: %v", err)
			}
			for n, i := range order {
				if n == 1 {
					h.restart()
				}
				req := AnswerRequest{Run: r.ID, Interrupt: r.Interrupts[i].ID, Decision: "approve"}
				if i == 1 {
					req.Decision, req.Reason = "reject", "not that"
				}
				h.answer(req)
			}
			h.ends(r, "completed")
			if got := h.transcript(r.SessionID); got != want {
				t.Errorf("transcript:\n%s", got)
			}
		})
	}
}

func TestQuestion(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer AnswerRequest
		want   string
	}{
		{"answered", AnswerRequest{Answer: text("blue")}, "It said: blue"},
		{"answered in full", AnswerRequest{Decision: "answer", Answer: text("none of them")}, "It said: none of them"},
		{"not answered", AnswerRequest{Decision: "reject", Reason: "ask somebody else"}, "It said: The person did not answer: ask somebody else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, oneCall(AskUserQuestion, `{"question":"Which colour?","choices":["red","blue"]}`))
			h.agents["test"].AskUser = true
			r := h.paused(h.run("go"), 1)
			if i := r.Interrupts[0]; i.Kind != "question" || i.Prompt != "Which colour?" || !strings.Contains(string(i.Schema), `"red"`) {
				t.Errorf("interrupt: %+v", i)
			}
			for _, bad := range []AnswerRequest{{Decision: "approve"}, {}, {Decision: "answer"}, {Answer: json.RawMessage(`{`)}, {Answer: json.RawMessage(`{"colour":"blue"}`)}} {
				bad.Run = r.ID
				if _, err := h.engine.Answer(t.Context(), bad); fault.KindOf(err) != fault.Invalid {
					t.Errorf("answer %+v: %v", bad, err)
				}
			}
			tt.answer.Run = r.ID
			h.answer(tt.answer)
			if r = h.ends(r, "completed"); r.Output != tt.want {
				t.Errorf("output: %s", r.Output)
			}
		})
	}
}

// An answer that does not fit what was asked is refused with all that is wrong,
// and the interrupt stays open.
func TestAnswersAreHeldAgainstTheSchema(t *testing.T) {
	h := newHarness(t, oneCall(AskUserQuestion, `{"question":"Where to?","schema":{"type":"object",
		"properties":{"n":{"type":"integer","maximum":10},"to":{"type":"string"}},"required":["n","to"],"additionalProperties":false}}`))
	h.agents["test"].AskUser = true
	r := h.paused(h.run("go"), 1)
	before := h.stored(r)
	for bad, want := range map[string][]string{`{"n":99,"x":1}`: {"n: ", "to: is missing", "x: is not known here"}, `"home"`: {"must be object, not string"}, `[]`: {"must be object, not array"}} {
		_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Answer: json.RawMessage(bad)})
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Field != "answer" || f.Hint == "" {
			t.Errorf("answer %s: %v", bad, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), "\n- "+w) {
				t.Errorf("answer %s: %q is not in: %v", bad, w, err)
			}
		}
	}
	r = h.paused(r, 1)
	if after := h.stored(r); after != before || r.Interrupts[0].Status != "open" {
		t.Errorf("refused answers changed the run: %+v\n%s\n%s", r.Interrupts[0], before, after)
	}
	// A form that was typed as text, on the command line, is read as one.
	i := h.answer(AnswerRequest{Run: r.ID, Answer: text(`{"to": "you", "n": "2"}`)})
	if string(i.Answer) != `{"n":2,"to":"you"}` {
		t.Errorf("answer: %s", i.Answer)
	}
	if r = h.ends(r, "completed"); r.Output != `It said: {"n":2,"to":"you"}` {
		t.Errorf("output: %s", r.Output)
	}
}

func TestNobodyIsAskedInAnAutonomousRun(t *testing.T) {
	h := newHarness(t, oneCall(AskUserQuestion, `{"question":"Which colour?"}`), asking(echoTool(tool.Once)))
	h.agents["test"].AskUser = true
	r := h.ends(h.begin(StartRequest{Mode: Autonomous}), "completed")
	if !strings.Contains(r.Output, `There is no tool "ask_user_question"`) {
		t.Errorf("output: %s", r.Output)
	}
	h.agents["test"].Models[0].Provider = oneCall("echo", `{}`)
	r = h.ends(h.begin(StartRequest{Mode: Autonomous}), "completed")
	if !strings.Contains(r.Output, "this run is autonomous") {
		t.Errorf("output: %s", r.Output)
	}
}

// A once call that was under way when the process ended is not run again. Who is
// asked about it decides; where nobody is, the model is told.
func TestUncertainCallAfterARestart(t *testing.T) {
	for _, tt := range []struct {
		name, mode string
		answer     AnswerRequest
		want       string
		runs       int
	}{
		{"retry", Interactive, AnswerRequest{Decision: "retry"}, "It said: act is done", 2},
		{"skip", Interactive, AnswerRequest{Decision: "skip", Reason: "leave it"}, "It said: agentd was restarted while this call ran; a person decided not to repeat it: leave it", 1},
		{"done", Interactive, AnswerRequest{Decision: "done", Answer: text("Ticket 7 exists.")}, "It said: agentd was restarted while this call ran; a person checked that it happened. Ticket 7 exists.", 1},
		{"autonomous", Autonomous, AnswerRequest{}, "It said: agentd was restarted while this call ran. It may or may not have happened, and it was not run again. Check before you repeat it.", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := &counter{}
			g := newGate()
			h := newHarness(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act"}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
				calls.add(c.Key)
				if err := g.pass(ctx); err != nil {
					return tool.Result{}, err
				}
				return tool.TextResult("act is done"), nil
			}})
			r := h.begin(StartRequest{Mode: tt.mode})
			<-g.entered
			h.restart()
			close(g.open)
			if tt.mode == Interactive {
				now := h.paused(r, 1)
				if i := now.Interrupts[0]; i.Kind != "uncertain" || !strings.Contains(i.Prompt, "It may have happened") {
					t.Errorf("interrupt: %+v", i)
				}
				if _, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"}); fault.KindOf(err) != fault.Invalid {
					t.Errorf("approve: %v", err)
				}
				tt.answer.Run = r.ID
				h.answer(tt.answer)
			}
			if r = h.ends(r, "completed"); r.Output != tt.want {
				t.Errorf("output: %s", r.Output)
			}
			key := r.ID + "/1/a"
			if len(calls.n) != 1 || calls.n[key] != tt.runs {
				t.Errorf("calls by key: %v, want %d of %s", calls.n, tt.runs, key)
			}
			var resumed []string
			for _, ev := range h.events(r) {
				if d, ok := ev.Data.(*event.Resumed); ok {
					resumed = append(resumed, d.Uncertain...)
				}
			}
			if !slices.Equal(resumed, []string{"a"}) {
				t.Errorf("run_resumed names %v", resumed)
			}
		})
	}
}

func TestAnswersToWhatIsNotThere(t *testing.T) {
	h := newHarness(t, twoTools, echoTool(tool.Read))
	r := h.ends(h.run("go"), "completed")
	for _, tt := range []struct {
		req  AnswerRequest
		kind fault.Kind
	}{
		{AnswerRequest{Interrupt: "run_x.i1", Decision: "approve"}, fault.NotFound},
		{AnswerRequest{Run: "run_x", Decision: "approve"}, fault.NotFound},
		{AnswerRequest{Run: r.ID, Decision: "approve"}, fault.Conflict},
		{AnswerRequest{Tenant: "other", Run: r.ID, Decision: "approve"}, fault.NotFound},
	} {
		if _, err := h.engine.Answer(t.Context(), tt.req); fault.KindOf(err) != tt.kind {
			t.Errorf("%+v: %v", tt.req, err)
		}
	}
	if _, err := h.engine.Interrupt(t.Context(), Ref{store.DefaultTenant, "x"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no interrupt: %v", err)
	}
}
