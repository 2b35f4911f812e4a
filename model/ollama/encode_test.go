package ollama

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"agentd/message"
	"agentd/model"
)

func body(t testing.TB, o *Options, can Abilities, req *model.Request) string {
	t.Helper()
	p, err := New(Config{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	info := p.catalogue.Lookup(p.name, req.Model)
	b, failed := p.encode(req, &info, can)
	if failed != nil {
		t.Fatal(failed)
	}
	if !json.Valid(b) {
		t.Fatalf("not JSON: %s", b)
	}
	return string(b)
}

const tail = `,"stream":true,"truncate":false,"shift":false`

func TestBody(t *testing.T) {
	half := 0.5
	hi := []message.Message{message.User("hi")}
	const user = `"messages":[{"role":"user","content":"hi"}]`
	tool := []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],`
	all, levels, none := everything(), Abilities{Thinking: true, Levels: true}, Abilities{}
	think := func(s string) string { return `{"model":"m",` + user + tail + `,"think":` + s + `,"options":{}}` }
	least := `{"model":"m",` + user + tail + `,"options":{}}`
	for _, tt := range []struct {
		name string
		o    *Options
		can  Abilities
		req  model.Request
		want string
	}{
		{"least", nil, all, model.Request{Model: "m", Messages: hi, SessionID: "s"}, least},
		{"system", nil, all, model.Request{Model: "m", Messages: hi, System: []model.SystemPart{{Text: "a"}, {Text: " "}, {Text: "b"}}},
			`{"model":"m","messages":[{"role":"system","content":"a\n\nb"},{"role":"user","content":"hi"}]` + tail + `,"options":{}}`},
		{"options", &Options{NumCtx: 32_768, KeepAlive: 90 * time.Second}, all, model.Request{Model: "m", Messages: hi, MaxTokens: 9, Temperature: &half, TopP: &half, Stop: []string{"a", "b"}},
			`{"model":"m",` + user + tail + `,"keep_alive":"90s","options":{"num_ctx":32768,"num_predict":9,"temperature":0.5,"top_p":0.5,"stop":["a","b"]}}`},
		{"stays loaded", &Options{KeepAlive: -1}, all, model.Request{Model: "m", Messages: hi}, `{"model":"m",` + user + tail + `,"keep_alive":-1,"options":{}}`},
		{"tools", nil, all, model.Request{Model: "m", Messages: hi, Tools: append(tool[:1:1], model.ToolSpec{Name: "g", Description: "d"})},
			`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g","description":"d","parameters":{"type":"object","properties":{}}}}],` + user + tail + `,"options":{}}`},
		{"a tool that takes anything", nil, all, model.Request{Model: "m", Messages: hi, Tools: []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"x":true},"additionalProperties":false}`)}}},
			`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{}},"additionalProperties":false}}}],` + user + tail + `,"options":{}}`},
		{"no tool", nil, all, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceNone}, least},
		{"some tool is the model's choice", nil, all, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired}, `{"model":"m",` + tools + user + tail + `,"options":{}}`},
		{"json", nil, all, model.Request{Model: "m", Messages: hi, JSON: true}, `{"model":"m",` + user + tail + `,"format":"json","options":{}}`},
		{"schema", nil, all, model.Request{Model: "m", Messages: hi, JSON: true, Schema: json.RawMessage(`{"type":"object"}`)}, `{"model":"m",` + user + tail + `,"format":{"type":"object"},"options":{}}`},
		{"json beside tools", nil, all, model.Request{Model: "m", Messages: hi, JSON: true, Tools: tool, System: []model.SystemPart{{Text: "a"}}},
			`{"model":"m",` + tools + `"messages":[{"role":"system","content":"a\n\nAnswer with one JSON value and nothing else."},{"role":"user","content":"hi"}]` + tail + `,"options":{}}`},
		{"json once tools are out of reach", nil, all, model.Request{Model: "m", Messages: hi, JSON: true, Tools: tool, ToolChoice: model.ToolChoiceNone}, `{"model":"m",` + user + tail + `,"format":"json","options":{}}`},
		{"thinking", nil, all, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingHigh}, think("true")},
		{"thinking off", nil, all, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingOff}, think("false")},
		{"thinking of a model that can not", nil, none, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingHigh}, least},
		{"thinking by level", nil, levels, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingXHigh}, think(`"high"`)},
		{"thinking by the highest level", nil, levels, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingMax}, think(`"high"`)},
		{"thinking by the lowest level", nil, levels, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingMinimal}, think(`"low"`)},
		{"thinking as it likes", nil, levels, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingAdaptive}, think(`"medium"`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := body(t, tt.o, tt.can, &tt.req); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	p, _ := New(Config{})
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if _, failed := p.encode(&model.Request{Model: "m", Messages: hi, TopP: &bad}, &model.Info{}, all); failed == nil || failed.Class != model.ClassInvalid {
			t.Errorf("%v: %v", bad, failed)
		}
	}
}

func TestMessages(t *testing.T) {
	image := message.Image("aGk=", "image/png")
	call := message.Call("c|1", "f", json.RawMessage(`{"a":1}`))
	const calls = `"tool_calls":[{"id":"c_1","function":{"index":0,"name":"f","arguments":{"a":1}}}]`
	think := message.Block{Type: message.BlockThinking, Text: "hm", Signature: "EqQB"}
	reply := func(maker string, blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks, Model: maker}
	}
	blind := everything()
	blind.Images = false
	for _, tt := range []struct {
		name string
		can  Abilities
		msgs []message.Message
		want string
	}{
		{"texts and images", everything(), []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), image, message.Text("b")}}},
			`{"role":"user","content":"a\n\nb","images":["aGk="]}`},
		{"only an image", everything(), []message.Message{{Role: message.RoleUser, Content: []message.Block{image}}}, `{"role":"user","content":"","images":["aGk="]}`},
		{"images of a model that sees none", blind, []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), image, image, message.Text("b")}}},
			`{"role":"user","content":"a\n\n[An image is left out: this model takes none.]\n\nb"}`},
		{"own thinking", everything(), []message.Message{reply("m", think, message.Text("a"), call)}, `{"role":"assistant","content":"a","thinking":"hm",` + calls + `}`},
		{"another's thinking", everything(), []message.Message{reply("other", think, message.Text("a"), call)}, `{"role":"assistant","content":"hm\n\na",` + calls + `}`},
		{"calls without text", everything(), []message.Message{reply("m", call)}, `{"role":"assistant","content":"",` + calls + `}`},
		{"images of a batch follow it", everything(), []message.Message{
			message.ToolResult("c|1", "f", false, message.Text("a"), image), message.ToolResult("c2", "g", true, image), message.User("b")},
			`{"role":"tool","content":"a","tool_name":"f","tool_call_id":"c_1"},{"role":"tool","content":"(see the attached image)","tool_name":"g","tool_call_id":"c2"},` +
				`{"role":"user","content":"Images of the tool results above:","images":["aGk=","aGk="]},{"role":"user","content":"b"}`},
		{"images in results of a model that sees none", blind, []message.Message{message.ToolResult("c2", "g", false, image)},
			`{"role":"tool","content":"[An image is left out: this model takes none.]","tool_name":"g","tool_call_id":"c2"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := `{"model":"m","messages":[` + tt.want + `]` + tail + `,"options":{}}`
			if got := body(t, nil, tt.can, &model.Request{Model: "m", Messages: tt.msgs}); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
