package openai

import (
	"encoding/json"
	"testing"

	"agentd/message"
	"agentd/model"
)

// A conversation may go on over the other API, whose tools are written differently.
func TestScratchOfBothAPIs(t *testing.T) {
	req := &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}, Scratch: &model.Scratch{},
		Tools: []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}}
	fresh := *req
	fresh.Scratch = nil
	chat, responses := body(t, Config{}, &fresh), encoded(t, Config{}, &fresh)
	for range 2 {
		if got := body(t, Config{}, req); got != chat {
			t.Errorf("chat: got\n%s\nwant\n%s", got, chat)
		}
		if got := encoded(t, Config{}, req); got != responses {
			t.Errorf("responses: got\n%s\nwant\n%s", got, responses)
		}
	}
}
