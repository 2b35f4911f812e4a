package engine

import (
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/tool"
)

// Who answered is named where there are names.
func TestWhoAnsweredFirst(t *testing.T) {
	for by, want := range map[string]string{"": "(answered: approve at ", store.DefaultTenant: "(answered: approve at ", "terminal": "approve by terminal at "} {
		h := newHarness(t, oneCall("echo", `{}`), asking(echoTool(tool.Once)))
		r := h.paused(h.run("go"), 1)
		req := AnswerRequest{Interrupt: r.Interrupts[0].ID, Decision: "approve", By: by}
		h.answer(req)
		if _, err := h.engine.Answer(t.Context(), req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("answered by %q: %v", by, err)
		}
		h.ends(r, "completed")
	}
	row := &store.Interrupt{ID: "i", InterruptAnswer: store.InterruptAnswer{Status: "answered", Decision: "approve", AnsweredBy: "acme"}}
	if err := answeredAlready("acme", row); !strings.Contains(err.Error(), "approve by tenant acme at ") {
		t.Error(err)
	}
}

// What is hidden because nobody knows what must be, says why.
func TestHiddenSaysWhy(t *testing.T) {
	if got := string(hideAll("x", nil)); !strings.Contains(got, "this configuration does not have the profile") {
		t.Error(got)
	}
}
