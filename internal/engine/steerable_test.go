package engine

import (
	"errors"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/message"
	"agentd/tool"
)

// What steering can not give is refused, not ignored.
func TestSteeringRefusesWhatCanNotApply(t *testing.T) {
	g := newGate()
	h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Read, g))
	other := *h.agents["test"]
	other.Profile = "other"
	h.agents["other"] = &other
	r := h.run("go")
	<-g.entered
	steer := func(change func(*StartRequest)) (*Run, error) {
		req := StartRequest{SessionID: r.SessionID, WhenBusy: Steer, Input: []message.Block{message.Text("and this")}}
		change(&req)
		return h.engine.Start(t.Context(), req)
	}
	half := 0.5
	for field, change := range map[string]func(*StartRequest){
		"profile":   func(q *StartRequest) { q.Profile = "other" },
		"mode":      func(q *StartRequest) { q.Mode = Autonomous },
		"budget":    func(q *StartRequest) { q.Overrides.MaxSteps = 3 },
		"tools":     func(q *StartRequest) { q.Overrides.ClientTools = []ClientTool{{Name: "mine"}} },
		"overrides": func(q *StartRequest) { q.Overrides.Temperature = &half },
	} {
		got, err := steer(change)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Conflict || f.Field != field || !strings.Contains(err.Error(), r.ID) {
			t.Errorf("%s: %+v, %v", field, got, err)
		}
	}
	for name, change := range map[string]func(*StartRequest){
		"nothing else":        func(*StartRequest) {},
		"the same":            func(q *StartRequest) { q.Profile, q.Mode = "test@1.0.0", Interactive },
		"a default of others": func(q *StartRequest) { q.Profile, q.Defaulted = "other", true },
	} {
		if got, err := steer(change); err != nil || got.ID != r.ID {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	close(g.open)
	r = h.ends(r, "completed")
	if got := strings.Count(h.transcript(r.SessionID), `"and this"`); got != 3 {
		t.Errorf("the run took %d messages:\n%s", got, h.transcript(r.SessionID))
	}
}
