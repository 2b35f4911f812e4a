package engine

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// family is a harness whose agent "test" starts a child of profile "kid" beside
// another call. The child does what script says.
func family(t *testing.T, script modelFunc, tools ...tool.Tool) *harness {
	t.Helper()
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("k", CreateSubagent, `{"subagent_type":"kid","prompt":"Look it up."}`), call("e", "echo", `{}`))
		}
		for _, m := range req.Messages {
			if m.ToolCallID == "k" {
				return say("My child says: " + m.Text())
			}
		}
		return say("I have no child.")
	}, echoTool(tool.Read))
	h.agents["test"].Subagents = []string{"kid"}
	h.agents["kid"] = testAgent(t, script, tools...)
	h.agents["kid"].Profile = "kid"
	return h
}

// child gives the first child of a run.
func (h *harness) child(r *Run) *Run {
	h.t.Helper()
	c, err := h.engine.Get(h.t.Context(), ref(r.ID+".c1"))
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func TestChildRunHasASessionOfItsOwn(t *testing.T) {
	h := family(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		return say("42")
	})
	r := h.ends(h.run("go"), "completed")
	if r.Output != "My child says: 42" {
		t.Errorf("output: %s", r.Output)
	}
	c := h.child(r)
	if c.RootID != r.ID || c.ParentID != r.ID || c.SessionID == r.SessionID || c.Profile != "kid" || c.Status != "completed" || c.Mode != r.Mode {
		t.Errorf("child: %+v", c)
	}
	if got := h.transcript(c.SessionID); got != "user \"Look it up.\"\nassistant \"42\"\n" {
		t.Errorf("the child's session:\n%s", got)
	}
	if got := h.transcript(r.SessionID); strings.Contains(got, "Look it up.\"\n") {
		t.Errorf("the parent's session:\n%s", got)
	}
	var told []string
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Subagent); ok {
			told = append(told, string(ev.Type)+" "+d.RunID+" "+d.ToolCallID+" "+d.Profile+" "+d.Status)
		}
	}
	if want := "subagent_started " + c.ID + " k kid |subagent_completed " + c.ID + " k kid completed"; strings.Join(told, "|") != want {
		t.Errorf("events: %q", told)
	}
}

func TestAChildsFailureIsItsParentsNews(t *testing.T) {
	h := family(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		return nil, &model.Error{Class: model.ClassAuth, Provider: "fake", Message: "the key is wrong"}
	})
	r := h.ends(h.run("go"), "completed")
	if !strings.HasPrefix(r.Output, "My child says: Subagent failed: ") || !strings.Contains(r.Output, "the key is wrong") {
		t.Errorf("output: %s", r.Output)
	}
}

func TestASubagentThatIsNotAllowed(t *testing.T) {
	h := family(t, nil)
	h.agents["test"].Subagents = []string{"another"}
	r := h.ends(h.run("go"), "completed")
	if _, err := h.engine.Get(t.Context(), ref(r.ID+".c1")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the child: %v", err)
	}
}

func TestCancelReachesTheChild(t *testing.T) {
	g := newGate()
	h := family(t, oneCall("slow", `{}`), gated("slow", tool.Read, g))
	r := h.run("go")
	<-g.entered
	h.cancel(r)
	r = h.ends(r, "cancelled")
	if c := h.child(r); c.Status != "cancelled" {
		t.Errorf("child: %+v", c)
	}
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Subagent); ok && ev.Type == event.SubagentCompleted && d.Status != "cancelled" {
			t.Errorf("the parent tells that its child %s", d.Status)
		}
	}
	if got := h.transcript(r.SessionID); !strings.Contains(got, "Subagent cancelled") {
		t.Errorf("transcript:\n%s", got)
	}
}

// A child can be cancelled alone; its parent goes on.
func TestCancelOfAChildAlone(t *testing.T) {
	g := newGate()
	h := family(t, oneCall("slow", `{}`), gated("slow", tool.Read, g))
	r := h.run("go")
	<-g.entered
	h.cancel(h.child(r))
	r = h.ends(r, "completed")
	if !strings.HasPrefix(r.Output, "My child says: Subagent cancelled") {
		t.Errorf("output: %s", r.Output)
	}
}

func TestCrashWhileAChildRuns(t *testing.T) {
	g := newGate()
	calls := &counter{}
	h := family(t, oneCall("slow", `{}`), toolFunc{tool.Spec{Name: "slow", Effect: tool.Idempotent}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		calls.add(c.Key)
		if err := g.pass(ctx); err != nil {
			return tool.Result{}, err
		}
		return tool.TextResult("found"), nil
	}})
	r := h.run("go")
	<-g.entered
	h.restart()
	<-g.entered
	h.restart()
	close(g.open)
	r = h.ends(r, "completed")
	if r.Output != "My child says: It said: found" {
		t.Errorf("output: %s", r.Output)
	}
	runs, err := h.store.Unfinished(t.Context())
	if err != nil || len(runs) != 0 {
		t.Errorf("unfinished: %v, %v", runs, err)
	}
	all, _, err := h.engine.List(t.Context(), store.DefaultTenant, RunFilter{})
	if err != nil || len(all) != 2 {
		t.Errorf("%d runs, %v", len(all), err)
	}
	if n := calls.n[r.ID+".c1/1/slow"] + calls.n[r.ID+".c1/1/a"]; len(calls.n) != 1 || n != 3 {
		t.Errorf("calls: %v", calls.n)
	}
}

// A child that asks a person is answered through its root, and through itself.
func TestAChildsQuestion(t *testing.T) {
	for _, by := range []string{"root", "child", "interrupt"} {
		t.Run(by, func(t *testing.T) {
			h := family(t, oneCall("act", `{}`), asking(toolFunc{tool.Spec{Name: "act"}, func(context.Context, tool.Call) (tool.Result, error) {
				return tool.TextResult("done"), nil
			}}))
			r := h.run("go")
			id := r.ID + ".c1.i1"
			h.until("the child asks", func() bool {
				i, err := h.engine.Interrupt(t.Context(), ref(id))
				return err == nil && i.Status == "open"
			})
			open, _, err := h.engine.Interrupts(t.Context(), store.DefaultTenant, InterruptFilter{Status: "open", RunID: r.ID})
			if err != nil || len(open) != 1 || open[0].ID != id || open[0].RunID != r.ID+".c1" {
				t.Errorf("the root's interrupts: %+v, %v", open, err)
			}
			h.restart()
			req := map[string]AnswerRequest{"root": {Run: r.ID}, "child": {Run: r.ID + ".c1"}, "interrupt": {Interrupt: id}}[by]
			req.Decision = "approve"
			h.answer(req)
			if r = h.ends(r, "completed"); r.Output != "My child says: It said: done" {
				t.Errorf("output: %s", r.Output)
			}
		})
	}
}

// A child does not need a slot of its own: parents that wait for children would
// starve them.
func TestChildrenDoNotWaitForSlots(t *testing.T) {
	h := family(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("42") })
	h.engine.slots.free = 1
	for _, r := range []*Run{h.run("go"), h.run("go"), h.run("go")} {
		h.ends(r, "completed")
	}
}

// A parent that fails the whole run takes its children with it.
func TestAbortReachesTheChild(t *testing.T) {
	g := newGate()
	h := family(t, oneCall("slow", `{}`), gated("slow", tool.Read, g))
	r := h.run("go")
	<-g.entered
	delete(h.agents, "test")
	h.restart()
	r = h.ends(r, "failed")
	if r.StopReason != "profile_gone" {
		t.Errorf("%+v", r)
	}
	c := h.wait(&Run{ID: r.ID + ".c1"})
	if c.Status != "cancelled" {
		t.Errorf("child: %+v", c)
	}
}

// Details of a child's result name the child for programs.
func TestAChildsResultNamesTheChild(t *testing.T) {
	h := family(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("42") })
	r := h.ends(h.run("go"), "completed")
	entries, err := h.engine.Entries(t.Context(), ref(r.SessionID), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Run, Session string
		Status       string
	}
	for _, e := range entries {
		if e.Message.ToolCallID == "k" {
			var raw map[string]json.RawMessage
			if err := json.Unmarshal(e.Message.Details, &raw); err != nil {
				t.Fatal(err)
			}
			_ = json.Unmarshal(raw["run_id"], &d.Run)
			_ = json.Unmarshal(raw["session_id"], &d.Session)
			_ = json.Unmarshal(raw["status"], &d.Status)
		}
	}
	if c := h.child(r); d.Run != c.ID || d.Session != c.SessionID || d.Status != "completed" {
		t.Errorf("details: %+v, the child is %+v", d, c)
	}
}

// Profiles may name each other; how deep that goes is bounded, also over a restart.
func TestSubagentsAreNestedSoDeepAndNoDeeper(t *testing.T) {
	var calls atomic.Int32
	entered := make(chan struct{})
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if calls.Add(1) == 3 { // the lowest run's first step
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if step == 0 {
			return say("", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"Go on."}`))
		}
		return say("I heard: " + req.Messages[len(req.Messages)-1].Text())
	})
	h.engine.Close()
	h.agents["test"].Subagents = []string{"test"}
	h.depth = 2
	h.start()
	r := h.run("go")
	<-entered
	h.restart()
	r = h.ends(r, "completed")
	const want = "I heard: I heard: I heard: Not executed: this run is a subagent at depth 2, and subagents may be nested 2 deep (limits.max_subagent_depth)."
	if !strings.HasPrefix(r.Output, want) {
		t.Errorf("output: %s", r.Output)
	}
	all, _, err := h.engine.List(t.Context(), store.DefaultTenant, RunFilter{})
	if err != nil || len(all) != 3 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

// A child that is loaded again knows how deep it is.
func TestTheDepthOfASubagentSurvivesARestart(t *testing.T) {
	h, _ := dynasty(t)
	r := h.paused(h.run("go"), 1)
	h.restart()
	for depth, id := range []string{r.ID, r.ID + ".c1", r.ID + ".c1.c1"} {
		row, err := h.store.Run(t.Context(), store.DefaultTenant, id)
		if err != nil {
			t.Fatal(err)
		}
		var sp spec
		if err := json.Unmarshal(row.Spec, &sp); err != nil || sp.Depth != depth {
			t.Errorf("%s is at depth %d, %v", id, sp.Depth, err)
		}
	}
}
