package engine

import (
	"context"
	"errors"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Tools that clients bring have names that clients choose: to the observer, whose
// metrics have labels of names, they are as unknown as those that a model makes up.
func TestClientToolsAreNotKnownToTheObserver(t *testing.T) {
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("a", "chosen_by_a_client", `{"n":"no number"}`), call("b", "echo", `{}`))
		}
		return say("done")
	}, echoTool(tool.Read))
	w := &witness{}
	h.engine.cfg.Observer = w
	with := Overrides{ClientTools: []ClientTool{{Name: "chosen_by_a_client", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}}
	h.ends(h.begin(StartRequest{Overrides: with}), "completed")
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range w.tools {
		known[s.Name] = s.Known
	}
	if known["chosen_by_a_client"] || !known["echo"] || len(known) != 2 {
		t.Errorf("known: %v", known)
	}
}

// Whoever asked to apply proposals may lose the right to while one of them is made:
// that one is made, and no other is begun.
func TestApplyingEndsWithTheRightTo(t *testing.T) {
	gone := errors.New("the key was revoked")
	ctx, revoke := context.WithCancelCause(t.Context())
	made := &counter{}
	create := asking(toolFunc{tool.Spec{Name: "create", Effect: tool.Once}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		made.add(c.ID)
		revoke(gone)
		return tool.TextResult("made-1"), nil
	}})
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("a", "create", `{}`), call("b", "create", `{}`))
		}
		return say("Proposed.")
	}, create)
	h.agents["test"].Rules.Capture = true
	r := h.autonomous()
	if _, err := h.engine.Apply(ctx, decision(r)); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	if got := h.proposals(r); got != `p1 applied "made-1", p2 proposed ` || made.n["a"] != 1 || made.n["b"] != 0 {
		t.Errorf("proposals: %s, made %v", got, made.n)
	}
	if _, err := h.engine.Apply(t.Context(), decision(r)); err != nil {
		t.Fatal(err)
	}
	if got := h.proposals(r); got != `p1 applied "made-1", p2 applied "made-1"` || made.n["a"] != 1 || made.n["b"] != 1 {
		t.Errorf("proposals: %s, made %v", got, made.n)
	}
}
