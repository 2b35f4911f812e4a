package prompt

import (
	"reflect"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

func TestBuildIsAFunctionOfItsParts(t *testing.T) {
	temperature := 0.2
	p := &Parts{Model: "m", System: []model.SystemPart{{Text: "be good", Cache: true}}, Messages: []message.Message{message.User("hi")},
		Tools:   []tool.Spec{{Name: "a", Description: "A", Schema: []byte(`{"type":"object"}`), Classes: []string{"write"}}},
		Options: Options{MaxTokens: 7, Temperature: &temperature, Stop: []string{"x"}, Thinking: model.ThinkingLow, ToolChoice: "a", SingleToolCall: true, JSON: true}, Session: "s"}
	a, b := Build(p), Build(p)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("two requests of the same parts differ: %+v %+v", a, b)
	}
	want := &model.Request{Model: "m", System: p.System, Messages: p.Messages, Tools: []model.ToolSpec{{Name: "a", Description: "A", Schema: []byte(`{"type":"object"}`)}},
		ToolChoice: "a", SingleToolCall: true, MaxTokens: 7, Temperature: &temperature, Stop: []string{"x"}, Thinking: model.ThinkingLow, JSON: true, CacheLast: true, SessionID: "s"}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("got %+v\nwant %+v", a, want)
	}
}
