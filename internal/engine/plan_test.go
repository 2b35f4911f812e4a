package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"agentd/fault"
)

func TestAPlanWaitsForAPerson(t *testing.T) {
	plan := func(t *testing.T) (*harness, *Run) {
		h := newHarness(t, oneCall(ProposePlan, `{"plan":"1. look\n2. act"}`))
		h.agents["test"].Plans = true
		r := h.paused(h.run("go"), 1)
		if i := r.Interrupts[0]; i.Kind != "plan" || i.Prompt != "1. look\n2. act" {
			t.Fatalf("interrupt: %+v", i)
		}
		return h, r
	}
	for _, c := range []struct {
		name, output string
		answer       AnswerRequest
	}{
		{"approved", "It said: A person approved the plan. Go on with it.", AnswerRequest{Decision: "approve"}},
		{"changed", "It said: A person approved the plan with changes. Go on with it as it is now:\n1. look",
			AnswerRequest{Decision: "approve", Args: json.RawMessage(`{"plan":"1. look"}`)}},
		{"rejected", "It said: A person did not approve the plan: too fast", AnswerRequest{Decision: "reject", Reason: "too fast"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, r := plan(t)
			h.restart()
			c.answer.Run = r.ID
			i := h.answer(c.answer)
			if r = h.ends(r, "completed"); r.Output != c.output {
				t.Errorf("output: %s", r.Output)
			}
			// The second answer learns what the first one was.
			_, err := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: i.ID, Decision: "approve"})
			if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "answered: "+c.answer.Decision) || !strings.Contains(err.Error(), c.answer.Reason) {
				t.Errorf("a second answer: %v", err)
			}
		})
	}
	t.Run("invalid changes leave it open", func(t *testing.T) {
		h, r := plan(t)
		_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"plan":""}`)})
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("an empty plan: %v", err)
		}
		h.paused(r, 1)
	})
}
