package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A run whose request gave a budget shows it, and what of it is used; waits for
// people do not count.
func TestBudgetIsShown(t *testing.T) {
	g := newGate()
	script := func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		switch step {
		case 0:
			return say("", call("a", "work", `{}`))
		case 1:
			return say("", call("b", AskUserQuestion, `{"question":"Why?"}`))
		}
		return say("Done.")
	}
	h := newHarness(t, script, gated("work", tool.Read, g))
	h.agents["test"].AskUser = true
	var passed atomic.Int64 // seconds
	h.engine.cfg.Now = func() time.Time { return time.Unix(1_800_000_000+passed.Load(), 0) }
	limits := BudgetLimits{MaxSteps: 9, MaxToolCalls: 5, MaxRunTimeSeconds: 1000, MaxOutputTokens: 70}
	r := h.begin(StartRequest{Overrides: Overrides{MaxSteps: 9, MaxToolCalls: 5, MaxRunTimeSeconds: 1000, MaxOutputTokens: 70}})
	if r.Budget == nil || r.Budget.Limits != limits || r.Budget.Used != (BudgetUsed{}) || r.Budget.Pots != nil {
		t.Errorf("at the start: %+v", r.Budget)
	}
	now := func(what string, want BudgetUsed) {
		t.Helper()
		got, err := h.engine.Get(t.Context(), ref(r.ID))
		if err != nil || got.Budget == nil || got.Budget.Limits != limits || got.Budget.Used != want {
			t.Errorf("%s: %+v, %v; want %+v", what, got.Budget, err, want)
		}
	}
	<-g.entered
	passed.Add(30)
	h.until("the call is in the store", func() bool {
		got, err := h.engine.Get(t.Context(), ref(r.ID))
		return err == nil && got.Budget != nil && got.Budget.Used.ToolCalls == 1
	})
	now("during the call", BudgetUsed{Steps: 1, ToolCalls: 1, RunTimeSeconds: 30})
	close(g.open)
	h.paused(r, 1)
	passed.Add(500)
	now("while a person thinks", BudgetUsed{Steps: 2, ToolCalls: 2, RunTimeSeconds: 30})
	h.restart()
	h.engine.cfg.Now = func() time.Time { return time.Unix(1_800_000_000+passed.Load(), 0) }
	now("after a restart", BudgetUsed{Steps: 2, ToolCalls: 2, RunTimeSeconds: 30})
	h.answer(AnswerRequest{Run: r.ID, Answer: text("because")})
	h.ends(r, "completed")
	passed.Add(500)
	now("after the end", BudgetUsed{Steps: 3, ToolCalls: 2, RunTimeSeconds: 30})
	if list, _, err := h.engine.List(t.Context(), "default", RunFilter{}); err != nil || len(list) != 1 || list[0].Budget != nil {
		t.Errorf("in a list: %+v, %v", list, err)
	}
}

// The limits of a budget hold.
func TestBudgetIsEnforced(t *testing.T) {
	again := func(context.Context, int, *model.Request) (*message.Message, error) {
		return say("", call("a", "echo", `{}`))
	}
	for _, tt := range []struct {
		limits BudgetLimits
		want   string
		used   BudgetUsed
	}{
		{BudgetLimits{MaxSteps: 3}, "max_steps", BudgetUsed{Steps: 3, ToolCalls: 3}},
		// The third was asked for and not executed.
		{BudgetLimits{MaxToolCalls: 2}, "max_tool_calls", BudgetUsed{Steps: 3, ToolCalls: 3}},
	} {
		h := newHarness(t, again, echoTool(tool.Read))
		r := h.begin(StartRequest{Overrides: Overrides{MaxSteps: tt.limits.MaxSteps, MaxToolCalls: tt.limits.MaxToolCalls}})
		r = h.wait(r)
		if r.StopReason != tt.want || r.Budget == nil || r.Budget.Limits != tt.limits || r.Budget.Used != tt.used {
			t.Errorf("%+v: %s %s, %+v", tt.limits, r.Status, r.StopReason, r.Budget)
		}
	}
	// Without one there is none to show.
	h := newHarness(t, oneCall("echo", `{}`), echoTool(tool.Read))
	if r := h.ends(h.run("go"), "completed"); r.Budget != nil {
		t.Errorf("%+v", r.Budget)
	}
	if _, err := h.engine.Get(t.Context(), ref("run_none")); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}
