package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// A step may bring more blocks than a mark looks back: the end of the request before is
// marked again, wherever it is.
func TestEndOfThePreviousRequestIsMarked(t *testing.T) {
	call := func(id string) message.Block {
		return message.Block{Type: message.BlockToolCall, ID: id, Name: "t", Arguments: json.RawMessage(`{}`)}
	}
	reply := func(content ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: content}
	}
	var calls []message.Block
	var results []message.Message
	for i := range 30 {
		id := fmt.Sprint("c", i)
		calls = append(calls, message.Text(fmt.Sprint("now ", i)), call(id))
		results = append(results, message.ToolResult(id, "t", false, message.Text(fmt.Sprint("result ", i))))
	}
	batch := append([]message.Message{message.User("first"), reply(calls...)}, results...)
	for _, tt := range []struct {
		name   string
		msgs   []message.Message
		system int
		want   []string // what stands right ahead of each mark
	}{
		{"the first", batch[:1], 1, []string{"part 0", "first"}},
		{"after a batch", batch, 1, []string{"part 0", "first", "result 29"}},
		{"after an answer", append(batch[:len(batch):len(batch)], reply(message.Text("done")), message.User("next")), 2, []string{"part 0", "part 1", "result 29", "next"}},
		{"two messages in a row", append(batch[:len(batch):len(batch)], reply(message.Text("done")), message.User("one"), message.User("two")), 1, []string{"part 0", "result 29", "two"}},
		{"three parts", append(batch[:1:1], reply(message.Text("done")), message.User("next")), 3, []string{"part 0", "part 2", "first", "next"}},
	} {
		req := &model.Request{Model: "m", Messages: tt.msgs, CacheLast: true}
		for i := range tt.system {
			req.System = append(req.System, model.SystemPart{Text: fmt.Sprint("part ", i), Cache: true})
		}
		got := strings.Split(body(t, Config{}, req), `,"cache_control":{"type":"ephemeral"}`)
		if len(got) != len(tt.want)+1 {
			t.Errorf("%s: %d marks, want %d", tt.name, len(got)-1, len(tt.want))
			continue
		}
		for i, want := range tt.want {
			before := strings.TrimSuffix(strings.TrimSuffix(got[i], "]"), "}")
			if !strings.HasSuffix(before, `"`+want+`"`) {
				t.Errorf("%s: mark %d comes after %s, want %s", tt.name, i, before[max(0, len(before)-60):], want)
			}
		}
	}
}
