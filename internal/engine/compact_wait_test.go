package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd/event"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A compaction whose summary always fails is not tried again in every step, whoever drives
// the run; it is told once, and an overflow is compacted all the same.
func TestACompactionThatFailsIsNotTriedInEveryStep(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := &windowed{window: 8000, noSummary: &model.Error{Class: model.ClassAuth, Provider: "fake", Message: "no"}}
		steps, gate := 0, newGate()
		w.answer = func(_ int, req *model.Request) (*message.Message, error) {
			if strings.Contains(conversationText(req), "many") {
				if steps++; steps <= 24 {
					return say("", call(fmt.Sprint("c", steps), "read", `{}`))
				}
			}
			return say("fine")
		}
		h := newHarness(t, w.generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			if w.mu.Lock(); restarts && steps == 3 {
				w.mu.Unlock()
				if err := gate.pass(ctx); err != nil {
					return tool.Result{}, err
				}
			} else {
				w.mu.Unlock()
			}
			return tool.TextResult(strings.Repeat("a line of text ", 10)), nil
		}})
		h.windowed(w, true)
		h.agents["test"].Compaction.RetryAfter = 10
		h.agents["test"].Compaction.Reserve = 2000
		id := ""
		for range 5 {
			id = h.says(id, strings.Repeat("word ", 1020)).SessionID
		}
		if len(w.summaries) > 0 {
			t.Fatal("it is compacted too early")
		}
		r := h.begin(StartRequest{SessionID: id, Input: []message.Block{message.Text("do many things")}})
		if restarts {
			<-gate.entered
			h.engine.Close()
			close(gate.open)
			h.start()
		}
		if r = h.wait(r); r.Status != "completed" || w.refused > 0 {
			t.Fatalf("%+v, %d refused", r, w.refused)
		}
		// Without a wait there would be one in nearly every step.
		if n := len(w.summaries); n < 2 || n > 3 {
			t.Errorf("restarts %v: %d summaries were asked for in %d steps", restarts, n, steps)
		}
		told := 0
		for _, ev := range h.events(r) {
			if c, ok := ev.Data.(*event.Checkpoint); ok && c.Kind == "compaction_failed" {
				told++
			}
		}
		if told != 1 {
			t.Errorf("restarts %v: it is told %d times", restarts, told)
		}
		// An overflow is not held back.
		w.answer = nil
		for len(h.compactions(id)) == 0 {
			if r := h.says(id, strings.Repeat("word ", 300)); r.Status != "completed" {
				t.Fatalf("%+v", r)
			}
		}
		if made := h.compactions(id); w.refused != 1 || len(made) != 1 || made[0].Reason != "overflow" {
			t.Errorf("restarts %v: %d refused, %+v", restarts, w.refused, made)
		}
	}
}
