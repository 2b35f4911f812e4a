package model

import (
	"strings"
	"testing"

	"agentd/message"
)

func TestEstimate(t *testing.T) {
	req := &Request{System: []SystemPart{{Text: strings.Repeat("x", 400)}}, Tools: []ToolSpec{{Name: "look", Description: "Looks.", Schema: []byte(`{"a":1234567}`)}},
		Messages: []message.Message{message.User(strings.Repeat("y", 80)), {Content: []message.Block{message.Image("AAAA", "image/png"), message.Call("c", "look", []byte(`{"at":"here"}`))}}}}
	// 400 + 4+6+13 + 80 + 4+13 bytes are 130 tokens, and an image.
	if got := PromptTokens(req); got != 1130 {
		t.Errorf("%d", got)
	}
	u := Estimate(req, &message.Message{Content: []message.Block{message.Text("five!")}})
	if u.Input != 1130 || u.Output != 2 || u.TotalTokens != 1132 || !u.Estimated || u.Cost != (message.Cost{}) {
		t.Errorf("%+v", u)
	}
	var sum message.Usage
	sum.Add(&message.Usage{Input: 1, TotalTokens: 1})
	if sum.Add(u); !sum.Estimated || sum.TotalTokens != 1133 {
		t.Errorf("%+v", sum)
	}
	if u := Estimate(&Request{}, &message.Message{}); u.TotalTokens != 0 {
		t.Errorf("%+v", u)
	}
}
