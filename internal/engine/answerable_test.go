package engine

import (
	"strings"
	"testing"

	"agentd/fault"
	"agentd/tool"
)

// A server that was started with another configuration does not end what waits for a
// person by taking the answer.
func TestAnAnswerDoesNotEndARunWhoseProfileIsMissing(t *testing.T) {
	h := newHarness(t, said, asking(echoTool(tool.Once)))
	r := h.paused(h.run(`{"n":1}`), 1)
	saved := h.agents["test"]
	delete(h.agents, "test")
	h.restart()
	_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"})
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), `no profile is named "test"`) || !strings.Contains(fault.HintOf(err), "still open") {
		t.Fatalf("%v", err)
	}
	h.paused(r, 1)
	h.agents["test"] = saved
	h.restart()
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve"})
	h.ends(r, "completed")
}
