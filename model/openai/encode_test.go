package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

func body(t testing.TB, cfg Config, req *model.Request) string {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	info := p.catalogue.Lookup(p.name, req.Model)
	b, failed := p.encode(req, &info)
	if failed != nil {
		t.Fatal(failed)
	}
	if !json.Valid(b) {
		t.Fatalf("not JSON: %s", b)
	}
	return string(b)
}

const tail = `,"stream":true,"stream_options":{"include_usage":true}`

func TestBody(t *testing.T) {
	half := 0.5
	hi := []message.Message{message.User("hi")}
	const user = `"messages":[{"role":"user","content":"hi"}]`
	tool := []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	own, local := Config{Protocol: Chat}, Config{BaseURL: "http://127.0.0.1/v1", Provider: "local"}
	tests := []struct {
		name string
		cfg  Config
		req  model.Request
		want string
	}{
		{"least", own, model.Request{Model: "m", Messages: hi}, `{"model":"m",` + user + tail + `}`},
		{"system", own, model.Request{Model: "m", Messages: hi, System: []model.SystemPart{{Text: "a"}, {Text: " "}, {Text: "b"}}},
			`{"model":"m","messages":[{"role":"system","content":"a\n\nb"},{"role":"user","content":"hi"}]` + tail + `}`},
		{"limits at OpenAI", own, model.Request{Model: "gpt-4.1", Messages: hi, MaxTokens: 9, Temperature: &half, TopP: &half, Stop: []string{"a", "b"}, SessionID: "s"},
			`{"model":"gpt-4.1",` + user + tail + `,"max_completion_tokens":9,"temperature":0.5,"top_p":0.5,"stop":["a","b"],"prompt_cache_key":"s"}`},
		{"limits elsewhere", local, model.Request{Model: "m", Messages: hi, MaxTokens: 9, SessionID: "s"},
			`{"model":"m",` + user + tail + `,"max_tokens":9}`},
		{"options", Config{BaseURL: "http://127.0.0.1/v1", Options: &Options{MaxTokensField: "max_new", PromptCacheKey: Yes}}, model.Request{Model: "m", Messages: hi, MaxTokens: 9, SessionID: "s"},
			`{"model":"m",` + user + tail + `,"max_new":9,"prompt_cache_key":"s"}`},
		{"a day", Config{Options: &Options{CacheRetention: "24h"}}, model.Request{Model: "m", Messages: hi, SessionID: "s"},
			`{"model":"m",` + user + tail + `,"prompt_cache_key":"s","prompt_cache_retention":"24h"}`},
		{"reasoning models do not sample", own, model.Request{Model: "gpt-5", Messages: hi, Temperature: &half, Thinking: model.ThinkingXHigh},
			`{"model":"gpt-5",` + user + tail + `,"reasoning_effort":"high"}`},
		{"unless they do not reason", own, model.Request{Model: "gpt-5.2", Messages: hi, Temperature: &half, Thinking: model.ThinkingOff},
			`{"model":"gpt-5.2",` + user + tail + `,"reasoning_effort":"none","temperature":0.5}`},
		{"effort of an unknown model", local, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingLow, Temperature: &half},
			`{"model":"m",` + user + tail + `,"reasoning_effort":"low","temperature":0.5}`},
		{"effort left to the model", local, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingAdaptive}, `{"model":"m",` + user + tail + `}`},
		{"no effort where there is none", own, model.Request{Model: "gpt-4.1", Messages: hi, Thinking: model.ThinkingHigh}, `{"model":"gpt-4.1",` + user + tail + `}`},
		{"tools", own, model.Request{Model: "m", Messages: hi, Tools: append(tool[:1:1], model.ToolSpec{Name: "g", Description: "d"})},
			`{"model":"m",` + user + strings.TrimSuffix(tools, "]") + `,{"type":"function","function":{"name":"g","description":"d","parameters":{"type":"object","properties":{}}}}]` + tail + `}`},
		{"no tool", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceNone}, `{"model":"m",` + user + tools + `,"tool_choice":"none"` + tail + `}`},
		{"some tool", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired}, `{"model":"m",` + user + tools + `,"tool_choice":"required"` + tail + `}`},
		{"this tool", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: "f"}, `{"model":"m",` + user + tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}` + tail + `}`},
		{"a choice without tools", own, model.Request{Model: "m", Messages: hi, ToolChoice: model.ToolChoiceRequired}, `{"model":"m",` + user + tail + `}`},
		{"one call at a time", own, model.Request{Model: "m", Messages: hi, Tools: tool, SingleToolCall: true}, `{"model":"m",` + user + tools + `,"parallel_tool_calls":false` + tail + `}`},
		{"some tool, one call at a time", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired, SingleToolCall: true},
			`{"model":"m",` + user + tools + `,"tool_choice":"required","parallel_tool_calls":false` + tail + `}`},
		{"one call at a time of no tools", own, model.Request{Model: "m", Messages: hi, SingleToolCall: true}, `{"model":"m",` + user + tail + `}`},
		{"one call at a time of a model that refuses it", own, model.Request{Model: "o4-mini-2025-04-16", Messages: hi, Tools: tool, SingleToolCall: true},
			`{"model":"o4-mini-2025-04-16",` + user + tools + tail + `}`},
		{"json", own, model.Request{Model: "m", Messages: hi, JSON: true}, `{"model":"m",` + user + tail + `,"response_format":{"type":"json_object"}}`},
		{"schema", own, model.Request{Model: "m", Messages: hi, JSON: true, Schema: json.RawMessage(`{"type":"object"}`)},
			`{"model":"m",` + user + tail + `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := body(t, tt.cfg, &tt.req); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	image := message.Image("aGk=", "image/png")
	const url = `{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}`
	call := message.Call("c1", "f", json.RawMessage(`{"a":1}`))
	const calls = `"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
	think := message.Block{Type: message.BlockThinking, Text: "hm", Signature: "reasoning"}
	assistant := func(blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks}
	}
	tests := []struct {
		name string
		msgs []message.Message
		want string
	}{
		{"parts", []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), image, message.Text("b")}}},
			`{"role":"user","content":[{"type":"text","text":"a"},` + url + `,{"type":"text","text":"b"}]}`},
		{"only an image", []message.Message{{Role: message.RoleUser, Content: []message.Block{image}}}, `{"role":"user","content":[` + url + `]}`},
		{"two texts", []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), message.Text("b")}}},
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"calls without text", []message.Message{assistant(call)}, `{"role":"assistant","content":null,` + calls + `}`},
		{"text, thinking, calls", []message.Message{assistant(think, message.Text("a"), call)}, `{"role":"assistant","content":"a","reasoning":"hm",` + calls + `}`},
		{"thinking of another API", []message.Message{assistant(message.Block{Type: message.BlockThinking, Text: "hm", Signature: "EqQB"}, message.Text("a"))}, `{"role":"assistant","content":"a"}`},
		{"broken arguments", []message.Message{assistant(message.Call("c1", "f", json.RawMessage(`{"a":`)))},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"images of a batch follow it", []message.Message{
			message.ToolResult("c1", "f", false, message.Text("a"), image), message.ToolResult("c2", "f", false, image), message.User("b")},
			`{"role":"tool","tool_call_id":"c1","content":"a"},{"role":"tool","tool_call_id":"c2","content":"(see the attached image)"},` +
				`{"role":"user","content":[{"type":"text","text":"Images of the tool results above:"},` + url + `,` + url + `]},{"role":"user","content":"b"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := `{"model":"m","messages":[` + tt.want + `]` + tail + `}`
			if got := body(t, Config{Protocol: Chat}, &model.Request{Model: "m", Messages: tt.msgs}); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestImpossibleNumbers(t *testing.T) {
	p, err := New(Config{Protocol: Chat})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1)} {
		_, failed := p.encode(&model.Request{Model: "m", Messages: []message.Message{message.User("hi")}, Temperature: &f}, &model.Info{})
		if failed == nil || failed.Class != model.ClassInvalid {
			t.Errorf("%v: %v", f, failed)
		}
	}
}

// BenchmarkEncode is the request after 40 messages, with and without what was
// kept from the request before.
func BenchmarkEncode(b *testing.B) {
	p, err := New(Config{Protocol: Chat})
	if err != nil {
		b.Fatal(err)
	}
	req := modeltest.Request("gpt-5", modeltest.Conversation(12)[:40])
	info := p.catalogue.Lookup("openai", req.Model)
	b.Run("fresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, failed := p.encode(req, &info); failed != nil {
				b.Fatal(failed)
			}
		}
	})
	b.Run("scratch", func(b *testing.B) {
		req.Scratch = &model.Scratch{}
		b.ReportAllocs()
		for b.Loop() {
			if _, failed := p.encode(req, &info); failed != nil {
				b.Fatal(failed)
			}
		}
	})
}

// BenchmarkCall is a whole call of a short answer without the network.
func BenchmarkCall(b *testing.B) {
	for b.Loop() {
		if _, err := play(b, "text"); err != nil {
			b.Fatal(err)
		}
	}
}

// Models that reason take no stop texts: the reply is cut here.
func TestStopsOfReasoning(t *testing.T) {
	req := &model.Request{Model: "gpt-5", Messages: []message.Message{message.User("hi")}, Stop: []string{"END"}}
	if got := body(t, Config{Protocol: Chat}, req); strings.Contains(got, "END") {
		t.Error(got)
	}
	req.Model = "gpt-4.1"
	if got := body(t, Config{Protocol: Chat}, req); !strings.Contains(got, `"stop":["END"]`) {
		t.Error(got)
	}
}
