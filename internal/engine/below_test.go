package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// delegate is a model that starts a subagent and repeats what it says.
func delegate(profile string) modelFunc {
	return func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("k", CreateSubagent, `{"subagent_type":"`+profile+`","prompt":"Do it."}`))
		}
		return say(profile + " says: " + req.Messages[len(req.Messages)-1].Text())
	}
}

// act is a tool that needs approval.
func act(calls *counter) tool.Tool {
	return asking(toolFunc{tool.Spec{Name: "act"}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		calls.add(c.Key)
		return tool.TextResult("done"), nil
	}})
}

// dynasty is a harness of three levels, the lowest of which acts.
func dynasty(t *testing.T) (*harness, *counter) {
	t.Helper()
	calls := &counter{}
	h := newHarness(t, delegate("kid"))
	h.agents["test"].Subagents = []string{"kid"}
	h.agents["kid"] = testAgent(t, delegate("grandkid"))
	h.agents["kid"].Profile, h.agents["kid"].Subagents = "kid", []string{"grandkid"}
	h.agents["grandkid"] = testAgent(t, oneCall("act", `{"n":1}`), act(calls))
	h.agents["grandkid"].Profile = "grandkid"
	return h, calls
}

// checkpoints gives what a run's events say about interrupts.
func checkpoints(events []event.Event) string {
	var s []string
	for _, ev := range events {
		if d, ok := ev.Data.(*event.Checkpoint); ok {
			what := strings.TrimPrefix(string(ev.Type), "checkpoint_") + " " + d.InterruptID + d.RunID[strings.LastIndexByte(d.RunID, '.')+1:]
			s = append(s, strings.TrimSpace(what+" "+d.Decision))
		}
	}
	return strings.Join(s, ", ")
}

// A question two levels down is the question of every run above it.
func TestAQuestionClimbsToTheRoot(t *testing.T) {
	h, calls := dynasty(t)
	r := h.paused(h.run("go"), 1)
	i := r.Interrupts[0]
	if low := r.ID + ".c1.c1"; i.ID != low+".i1" || i.RunID != low || i.ToolCall.Name != "act" {
		t.Errorf("interrupt: %+v", i)
	}
	for _, id := range []string{r.ID + ".c1", r.ID + ".c1.c1"} {
		if c := h.paused(&Run{ID: id}, 1); c.Interrupts[0].ID != i.ID {
			t.Errorf("interrupts of %s: %+v", id, c.Interrupts[0])
		}
	}
	for _, id := range []string{r.ID, r.ID + ".c1", r.ID + ".c1.c1"} {
		h.gone(&Run{ID: id})
	}
	// Answered at the root and at a run in the middle, it is one question.
	if _, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID + ".c1", Interrupt: r.ID + ".i1", Decision: "approve"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an interrupt that is not there: %v", err)
	}
	h.answer(AnswerRequest{Run: r.ID, Interrupt: i.ID, Decision: "approve", Reason: "go on"})
	if _, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID + ".c1", Interrupt: i.ID, Decision: "approve"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second answer: %v", err)
	}
	r = h.ends(r, "completed")
	if r.Output != "kid says: grandkid says: It said: done" || len(r.Interrupts) != 0 || len(calls.n) != 1 {
		t.Errorf("%+v, calls %v", r, calls.n)
	}
	id := i.ID
	for run, want := range map[string]string{
		r.ID:            "required " + id + "c1, resolved " + id + "c1 approve",
		r.ID + ".c1":    "required " + id + "c1, resolved " + id + "c1 approve",
		r.ID + ".c1.c1": "required " + id + ", resolved " + id + " approve",
	} {
		events := h.events(&Run{ID: run})
		if got := checkpoints(events); got != want {
			t.Errorf("%s tells %s", run, got)
		}
		if strings.Contains(kinds(events), "run_resumed") {
			t.Errorf("%s tells of a restart: %s", run, kinds(events))
		}
	}
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Checkpoint); ok && ev.Type == event.CheckpointRequired &&
			(d.RunID != r.ID+".c1.c1" || d.Prompt != i.Prompt || d.ToolCall == nil || string(d.ToolCall.Args) != `{"n":1}`) {
			t.Errorf("the root tells %+v", d)
		}
	}
}

// A run that has something else to do is not paused; when it has not any more, an
// event says that the time has come to look.
func TestARunIsPausedWhenOnlyPeopleBelowItAreAwaited(t *testing.T) {
	g := newGate()
	h := family(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("a", "act", `{}`), call("s", "slow", `{}`))
		}
		return say("Done.")
	}, act(&counter{}), gated("slow", tool.Read, g))
	r := h.run("go")
	<-g.entered
	h.until("the root tells of the question", func() bool { return strings.Contains(h.stored(r), "checkpoint_required") })
	if now, err := h.engine.Get(t.Context(), ref(r.ID)); err != nil || now.Status != "running" || len(now.Interrupts) != 1 {
		t.Errorf("while the child works: %+v, %v", now, err)
	}
	close(g.open)
	now := h.paused(r, 1)
	if got := h.stored(r); !strings.HasSuffix(got, "checkpoint_required tool_completed checkpoint_info") && !strings.HasSuffix(got, "tool_completed checkpoint_required checkpoint_info") {
		t.Errorf("events: %s", got)
	}
	h.answer(AnswerRequest{Run: r.ID, Interrupt: now.Interrupts[0].ID, Decision: "reject", Reason: "no"})
	h.ends(r, "completed")
}

// A cancel of the root reaches the run that asks, also when none of them is in memory.
func TestCancelOfARunThatWaitsForAPersonBelow(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			h, calls := dynasty(t)
			r := h.paused(h.run("go"), 1)
			if restart {
				h.restart()
			}
			h.cancel(r)
			r = h.ends(r, "cancelled")
			for _, id := range []string{r.ID + ".c1", r.ID + ".c1.c1"} {
				if c, err := h.engine.Get(t.Context(), ref(id)); err != nil || c.Status != "cancelled" {
					t.Errorf("%s: %+v, %v", id, c, err)
				}
			}
			if got := checkpoints(h.events(r)); !strings.HasSuffix(got, "c1 cancelled") || strings.Count(got, "required") != strings.Count(got, "resolved") {
				t.Errorf("events: %s", got)
			}
			if i, err := h.engine.Interrupt(t.Context(), ref(r.ID+".c1.c1.i1")); err != nil || i.Status != "cancelled" || len(calls.n) != 0 {
				t.Errorf("interrupt: %+v, %v, calls %v", i, err, calls.n)
			}
		})
	}
}

// TestCrashWhilePeopleBelowAreAsked kills the engine at every commit of a tree
// in which people are asked at the lowest level, before and after the commit is
// durable. The next engine asks the same, at the root, and goes on with the answer.
func TestCrashWhilePeopleBelowAreAsked(t *testing.T) {
	commits := crashBelow(t, 0, false)
	if commits < 12 {
		t.Fatalf("%d commits", commits)
	}
	for at := 1; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) { crashBelow(t, at, after) })
		}
	}
}

func crashBelow(t *testing.T, at int, after bool) int {
	h, calls := dynasty(t)
	h.engine.Close()
	cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
	h.store = cs
	h.start()
	r, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("go")})
	if err != nil {
		if at == 1 {
			return 0 // it was never acknowledged
		}
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		select {
		case <-cs.down:
			stop()
		case <-ctx.Done():
		}
	}()
	h.answerAtTheRoot(ctx, r)
	stop()
	h.engine.Close()
	cs.mu.Lock()
	cs.at = 0
	n := cs.n
	cs.mu.Unlock()
	h.restart()
	h.answerAtTheRoot(t.Context(), r)
	r = h.ends(r, "completed")
	if want := "kid says: grandkid says: It said: "; !strings.HasPrefix(r.Output, want) {
		t.Errorf("output: %s", r.Output)
	}
	for key, n := range calls.n {
		if n > 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
	for _, id := range []string{r.ID, r.ID + ".c1"} {
		got := checkpoints(h.events(&Run{ID: id}))
		if open, closed := strings.Count(got, "required"), strings.Count(got, "resolved"); open != closed || open < 1 && at == 0 {
			t.Errorf("%s tells %s", id, got)
		}
	}
	left, err := h.store.Unfinished(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("unfinished: %+v, %v", left, err)
	}
	return n
}

// answerAtTheRoot follows a root run and answers what it asks, until it ends or
// ctx does. It looks at the run when an event says so, as a client would.
func (h *harness) answerAtTheRoot(ctx context.Context, r *Run) {
	h.t.Helper()
	for _, err := range h.engine.Watch(ctx, ref(r.ID), 0) {
		if err != nil {
			return
		}
		now, err := h.engine.Get(ctx, ref(r.ID))
		if err != nil || run.Status(now.Status).Ended() {
			return
		}
		if now.Status != "paused_checkpoint" {
			continue
		}
		if len(now.Interrupts) == 0 {
			continue // it has just been answered
		}
		i := now.Interrupts[0]
		_, err = h.engine.Answer(ctx, AnswerRequest{Tenant: store.DefaultTenant, Run: r.ID, Interrupt: i.ID,
			Decision: map[string]string{"approval": "approve", "uncertain": "done"}[i.Kind]})
		if err != nil && ctx.Err() == nil && !slices.Contains([]fault.Kind{fault.Conflict, fault.Unavailable}, fault.KindOf(err)) {
			h.t.Error(err)
		}
	}
}

// A child may end while its parent is not in memory, and the process with it,
// before the parent heard of it.
func TestCrashRightAfterAChildThatAskedHasEnded(t *testing.T) {
	h, _ := dynasty(t)
	h.alone = true // nodes tell it by mail, in the commit
	h.restart()
	r := h.paused(h.run("go"), 1)
	for _, id := range []string{r.ID, r.ID + ".c1", r.ID + ".c1.c1"} {
		h.gone(&Run{ID: id})
	}
	h.engine.Close()
	// An engine without Recover, whose process ends with the commit of the child.
	inner, down := h.store, false
	s := &flaky{Store: inner, which: func(_ int, tx *store.Tx) error {
		if !down && len(tx.Runs) > 0 && tx.Runs[0].ID == r.ID+".c1.c1" {
			down = true
			if err := inner.Commit(t.Context(), tx); err != nil {
				return err
			}
		}
		return store.ErrFenced
	}}
	e, err := New(Config{Store: s, Agents: h.agents, Log: h.log})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = e.Cancel(t.Context(), ref(r.ID+".c1.c1"), "enough") // it may tell either
	e.Close()
	if c, err := h.engine.Get(t.Context(), ref(r.ID+".c1.c1")); err != nil || c.Status != "cancelled" {
		t.Fatalf("the child: %+v, %v", c, err)
	}
	h.start()
	if r = h.ends(r, "completed"); !strings.HasPrefix(r.Output, "kid says: grandkid says: Subagent cancelled") {
		t.Errorf("output: %s", r.Output)
	}
}
