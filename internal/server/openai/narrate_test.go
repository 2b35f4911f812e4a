package openai

import (
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/engine"
)

// Who answers from a chat sees what would be done, as text that formats nothing.
func TestQuestionShowsTheCall(t *testing.T) {
	ask := func(kind, args string) string {
		return question(&engine.Run{Interrupts: []*engine.InterruptView{{ID: "r.i1", Kind: kind, Status: "open", Prompt: "May it?",
			ToolCall: &event.Tool{Name: "write", Args: []byte(args)}}}}, "r")
	}
	for _, tt := range []struct{ kind, args, want string }{
		{"approval", `{"path":"a.txt"}`, "\n  `write {\"path\":\"a.txt\"}`\n"},
		{"uncertain", `{}`, "\n  `write {}`\n"},
		{"approval", "{\"x\":\"` **b** ``\"}", "\n  ``` write {\"x\":\"` **b** ``\"} ```\n"},
		{"approval", `{"x":"` + strings.Repeat("é", 2000) + `"}`, "é…`\n"},
	} {
		if got := ask(tt.kind, tt.args); !strings.Contains(got, tt.want) {
			t.Errorf("%q is not in\n%s", tt.want, got)
		}
	}
	if got := ask("question", `{"secret":1}`); strings.Contains(got, "secret") {
		t.Error(got)
	}
}
