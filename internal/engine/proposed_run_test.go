package engine

import (
	"context"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// gatedFamily is a family whose parent may start no subagent without approval, and
// whose runs record what they may not do.
func gatedFamily(t *testing.T) *harness {
	h := family(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		return say("I did: " + req.Messages[0].Text())
	}, echoTool(tool.Read))
	h.agents["test"].Rules = policy.Rules{Mode: policy.Always, Capture: true}
	return h
}

// A subagent that needs approval is proposed like any other call. Applied, it runs by
// itself; interactive runs ask, as ever.
func TestGatedSubagentsAreProposed(t *testing.T) {
	h := gatedFamily(t)
	r := h.ends(h.begin(StartRequest{Mode: Autonomous, User: "kim"}), "completed")
	if got := h.proposals(r); got != "p1 proposed " {
		t.Fatalf("proposals: %s", got)
	}
	if said := h.transcript(r.SessionID); !strings.Contains(said, "was recorded and not executed") || !strings.Contains(said, "its answer does not come here") {
		t.Errorf("the model was told %s", said)
	}
	if _, err := h.engine.Get(t.Context(), ref(r.ID+".c1")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a child was started: %v", err)
	}
	ps, err := h.engine.Apply(t.Context(), decision(r))
	if err != nil || len(ps) != 1 || ps[0].Status != "applied" {
		t.Fatalf("%+v %v", ps, err)
	}
	id := strings.Trim(string(ps[0].RealID), `"`)
	child := h.ends(&Run{ID: id}, "completed")
	if child.Output != "I did: Look it up." || child.Profile != "kid" || child.Mode != Autonomous || child.User != "kim" || child.ParentID != "" || child.SessionID == r.SessionID {
		t.Errorf("%+v", child)
	}
	h.paused(h.begin(StartRequest{}), 1)
}

// Whatever is lost, a proposal starts one run.
func TestProposedSubagentsStartOnce(t *testing.T) {
	for at := 1; at <= 3; at++ {
		for _, after := range []bool{false, true} {
			h := gatedFamily(t)
			r := h.ends(h.begin(StartRequest{Mode: Autonomous}), "completed")
			h.engine.Close()
			good := h.store
			h.store = &crashStore{Store: good, at: at, after: after, down: make(chan struct{})}
			h.start()
			_, _ = h.engine.Apply(t.Context(), decision(r)) // it may be through before the crash
			h.engine.Close()
			h.store = good
			h.start()
			ps, err := h.engine.Apply(t.Context(), decision(r))
			if err != nil || ps[0].Status != "applied" {
				t.Fatalf("commit %d after=%v: %+v %v", at, after, ps, err)
			}
			h.ends(&Run{ID: strings.Trim(string(ps[0].RealID), `"`)}, "completed")
			rows, _, err := h.store.Runs(t.Context(), store.DefaultTenant, store.RunFilter{})
			if err != nil || len(rows) != 2 {
				t.Errorf("commit %d after=%v: %d runs, %v", at, after, len(rows), err)
			}
		}
	}
}
