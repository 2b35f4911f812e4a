package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/message"
)

// OldReasoning checks that reasoning of answered turns is left out of what is sent when
// the prompt is cold (five minutes), and that of the tool calls of the present turn goes
// back as it came. The adapter says what its blocks are signed with, how the n-th thought,
// "THINKn", stands in a request, and what it sends of a history.
func OldReasoning(t *testing.T, signature, thought string, sent func(t *testing.T, history []message.Message) string) {
	t.Helper()
	think := func(n int) message.Block {
		return message.Block{Type: message.BlockThinking, Text: fmt.Sprint("THINK", n), Signature: signature}
	}
	reply := func(at int64, blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks, Timestamp: at}
	}
	user := func(at int64, text string) message.Message {
		m := message.User(text)
		m.Timestamp = at
		return m
	}
	call := func(id string) message.Block { return message.Call(id, "f", json.RawMessage(`{}`)) }
	result := func(id string) message.Message { return message.ToolResult(id, "f", false, message.Text("r")) }
	for _, tt := range []struct {
		second int64 // when the second message came
		want   []bool
	}{{2_000 + 299_999, []bool{true, true, true, true}}, {2_000 + 300_000, []bool{false, false, true, true}}} {
		got := sent(t, []message.Message{user(1_000, "go"), reply(1_500, think(0), call("a")), result("a"), reply(2_000, think(1), message.Text("Done.")),
			user(tt.second, "go on"), reply(tt.second+1, think(2), call("b")), result("b"), reply(tt.second+2, think(3), call("c")), result("c")})
		for n, want := range tt.want {
			if there := strings.Contains(got, fmt.Sprintf(thought, n)); there != want || strings.Contains(got, fmt.Sprint("THINK", n)) != want {
				t.Errorf("thought %d is sent: %t\n%s", n, there, got)
			}
		}
		for _, has := range []string{"Done.", `"f"`, "go on"} {
			if !strings.Contains(got, has) {
				t.Errorf("%s is not in %s", has, got)
			}
		}
	}
}
