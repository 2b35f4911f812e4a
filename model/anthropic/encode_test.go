package anthropic

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

func TestBody(t *testing.T) {
	half := 0.5
	hi := []message.Message{message.User("hi")}
	const user = `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"stream":true`
	const mark = `,"cache_control":{"type":"ephemeral"}`
	tool := []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}
	const tools = `"tools":[{"name":"f","input_schema":{"type":"object"}}],`
	system := func(n int) []model.SystemPart {
		parts := make([]model.SystemPart, n)
		for i := range parts {
			parts[i] = model.SystemPart{Text: "s", Cache: true}
		}
		return parts
	}
	none := Config{}
	tests := []struct {
		name string
		cfg  Config
		req  model.Request
		want string
	}{
		{"least", none, model.Request{Model: "m", Messages: hi}, `{"model":"m","max_tokens":4096,` + user + `}`},
		{"limit of the catalogue", none, model.Request{Model: "claude-haiku-4-5", Messages: hi}, `{"model":"claude-haiku-4-5","max_tokens":32000,` + user + `}`},
		{"system and marks", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, CacheLast: true, System: []model.SystemPart{{Text: "a", Cache: true}, {Text: " "}, {Text: "b"}}},
			`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"a"` + mark + `},{"type":"text","text":"b"}],` + strings.Replace(user, `"hi"`, `"hi"`+mark, 1) + `}`},
		{"settings", none, model.Request{Model: "claude-haiku-4-5", MaxTokens: 9, Messages: hi, Temperature: &half, TopP: &half, Stop: []string{"a", " ", "b"}},
			`{"model":"claude-haiku-4-5","max_tokens":9,` + user + `,"temperature":0.5,"top_p":0.5,"stop_sequences":["a","b"]}`},
		{"no sampling with models that refuse it", none, model.Request{Model: "claude-opus-5", MaxTokens: 9, Messages: hi, Temperature: &half},
			`{"model":"claude-opus-5","max_tokens":9,` + user + `}`},
		{"tools", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: append(tool[:1:1], model.ToolSpec{Name: "g", Description: "d"})},
			`{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","description":"d","input_schema":{"type":"object","properties":{}}}],` + user + `}`},
		{"schemas of tools", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"$schema":"x","oneOf":[{"required":["a"]}],"properties":{"a":{"anyOf":[{}]}},"type":["object"]}`)}}},
			`{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object","$schema":"x","properties":{"a":{"anyOf":[{}]}}}}],` + user + `}`},
		{"no tool", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceNone}, `{"model":"m","max_tokens":9,` + tools + user + `,"tool_choice":{"type":"none"}}`},
		{"some tool", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired}, `{"model":"m","max_tokens":9,` + tools + user + `,"tool_choice":{"type":"any"}}`},
		{"this tool, and so no thinking", none, model.Request{Model: "claude-haiku-4-5", MaxTokens: 9000, Messages: hi, Tools: tool, ToolChoice: "f", Thinking: model.ThinkingLow},
			`{"model":"claude-haiku-4-5","max_tokens":9000,` + tools + user + `,"tool_choice":{"type":"tool","name":"f"},"thinking":{"type":"disabled"}}`},
		{"no forcing of models that refuse it", none, model.Request{Model: "claude-opus-5-5", MaxTokens: 9, Messages: hi, Tools: tool, ToolChoice: "f", Thinking: model.ThinkingLow},
			`{"model":"claude-opus-5-5","max_tokens":9,` + tools + user + `,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		{"one call at a time", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: tool, SingleToolCall: true},
			`{"model":"m","max_tokens":9,` + tools + user + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		{"one call at a time of some tool", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired, SingleToolCall: true},
			`{"model":"m","max_tokens":9,` + tools + user + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}}`},
		{"one call of this tool", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: tool, ToolChoice: "f", SingleToolCall: true},
			`{"model":"m","max_tokens":9,` + tools + user + `,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}`},
		{"one call at a time of no tool", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceNone, SingleToolCall: true},
			`{"model":"m","max_tokens":9,` + tools + user + `,"tool_choice":{"type":"none"}}`},
		{"one call at a time without tools", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, SingleToolCall: true}, `{"model":"m","max_tokens":9,` + user + `}`},
		{"json", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, JSON: true}, `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"` + jsonOnly + `"}],` + user + `}`},
		{"schema", none, model.Request{Model: "m", MaxTokens: 9, Messages: hi, JSON: true, Schema: json.RawMessage(`{"type":"object"}`)},
			`{"model":"m","max_tokens":9,` + user + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := body(t, tt.cfg, &tt.req); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	t.Run("never more than four marks", func(t *testing.T) {
		for _, last := range []bool{true, false} {
			got := body(t, none, &model.Request{Model: "m", Messages: hi, System: system(9), CacheLast: last})
			if n := strings.Count(got, "cache_control"); n != 4 || strings.Contains(got, `"hi"`+mark) != last {
				t.Errorf("%d marks: %s", n, got)
			}
		}
		got := body(t, none, &model.Request{Model: "m", Messages: hi, System: system(9), CacheLast: true})
		parts := strings.Split(got[:strings.Index(got, `"messages"`)], `"type":"text"`)
		for i, part := range parts[1:] {
			if has := strings.Contains(part, "cache_control"); has != (i < 2 || i == 8) {
				t.Errorf("part %d: %s, want marks on the first two and the last", i, part)
			}
		}
		got = body(t, Config{Options: &Options{CacheHour: true}}, &model.Request{Model: "m", Messages: hi, System: system(1), CacheLast: true})
		if strings.Count(got, `{"type":"ephemeral","ttl":"1h"}`) != 2 {
			t.Errorf("an hour: %s", got)
		}
	})
}

func TestThinking(t *testing.T) {
	shown := Config{Options: &Options{ThinkingDisplay: "summarized"}}
	for _, tt := range []struct {
		cfg   Config
		model string
		level model.ThinkingLevel
		max   int
		want  string
	}{
		{Config{}, "claude-haiku-4-5", "", 9000, ``},
		{Config{}, "claude-haiku-4-5", model.ThinkingOff, 9000, `"thinking":{"type":"disabled"}`},
		{Config{}, "claude-haiku-4-5", model.ThinkingMinimal, 9000, `"thinking":{"type":"enabled","budget_tokens":1024}`},
		{Config{}, "claude-haiku-4-5", model.ThinkingHigh, 64_000, `"thinking":{"type":"enabled","budget_tokens":16384}`},
		{Config{}, "claude-haiku-4-5", model.ThinkingMax, 64_000, `"thinking":{"type":"enabled","budget_tokens":62976}`},
		{Config{}, "claude-haiku-4-5", model.ThinkingHigh, 9000, `"thinking":{"type":"enabled","budget_tokens":7976}`},
		{Config{}, "claude-haiku-4-5", model.ThinkingHigh, 2000, ``},
		{shown, "claude-haiku-4-5", model.ThinkingLow, 9000, `"thinking":{"type":"enabled","budget_tokens":2048,"display":"summarized"}`},
		{Config{}, "claude-opus-4-6", model.ThinkingXHigh, 9000, `"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`},
		{shown, "claude-opus-5-5", model.ThinkingAdaptive, 9000, `"thinking":{"type":"adaptive","display":"summarized"}`},
		{Config{}, "claude-opus-5-5", model.ThinkingOff, 9000, `"output_config":{"effort":"low"}`},
		{Config{}, "claude-sonnet-5-5", model.ThinkingOff, 9000, `"thinking":{"type":"between_tools"}`},
		{Config{}, "unknown", model.ThinkingMinimal, 9000, `"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}`},
		{Config{}, "unknown", model.ThinkingOff, 9000, ``},
	} {
		req := &model.Request{Model: tt.model, Thinking: tt.level, MaxTokens: tt.max, Messages: []message.Message{message.User("hi")}}
		got := body(t, tt.cfg, req)
		_, got, _ = strings.Cut(got, `"stream":true`)
		if got = strings.TrimPrefix(strings.TrimSuffix(got, "}"), ","); got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.model, tt.level, got, tt.want)
		}
	}
}

func TestMessages(t *testing.T) {
	image := message.Image("aGk=", "image/png")
	const source = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`
	think := message.Block{Type: message.BlockThinking, Text: "hm", Signature: "sig"}
	hidden := message.Block{Type: message.BlockThinking, Redacted: true, Signature: "data"}
	call := message.Call("c.1", "f", json.RawMessage(`{"a":1}`))
	const use = `{"type":"tool_use","id":"c_1","name":"f","input":{"a":1}}`
	const mark = `,"cache_control":{"type":"ephemeral"}`
	assistant := func(blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks}
	}
	foreign := assistant(think, hidden, message.Text("a"))
	foreign.API = "openai-completions"
	tests := []struct {
		name string
		msgs []message.Message
		want string
	}{
		{"parts", []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), image, message.Text(" "), message.Text("b")}}},
			`{"role":"user","content":[{"type":"text","text":"a"},` + source + `,{"type":"text","text":"b"` + mark + `}]}`},
		{"an image at the end", []message.Message{{Role: message.RoleUser, Content: []message.Block{image}}},
			`{"role":"user","content":[` + strings.TrimSuffix(source, "}") + mark + `}]}`},
		{"thinking, withheld thinking, calls", []message.Message{assistant(think, hidden, message.Text("a"), call)},
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"data"},{"type":"text","text":"a"},` + strings.TrimSuffix(use, "}") + mark + `}]}`},
		{"no mark on thinking", []message.Message{message.User("x"), assistant(message.Text("a"), think)},
			`{"role":"user","content":[{"type":"text","text":"x"` + mark + `}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"hm","signature":"sig"}]}`},
		{"of another API", []message.Message{foreign}, `{"role":"assistant","content":[{"type":"text","text":"hm"},{"type":"text","text":"a"` + mark + `}]}`},
		{"without a signature", []message.Message{assistant(message.Block{Type: message.BlockThinking, Text: "hm"}, message.Text("a"))},
			`{"role":"assistant","content":[{"type":"text","text":"hm"},{"type":"text","text":"a"` + mark + `}]}`},
		{"a batch of results", []message.Message{message.ToolResult("c.1", "f", false, message.Text("a"), image), message.ToolResult("c2", "f", true), message.User("b")},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c_1","content":[{"type":"text","text":"a"},` + source + `]},` +
				`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"(no tool output)"}],"is_error":true}]},{"role":"user","content":[{"type":"text","text":"b"` + mark + `}]}`},
		{"a batch at the end", []message.Message{message.ToolResult("c1", "f", true, message.Text("a"))},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a"}],"is_error":true` + mark + `}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.want, `{"role":"assistant"`) {
				tt.want = beginningGone + tt.want // the API wants a user's message first
			}
			want := `{"model":"m","max_tokens":9,"messages":[` + tt.want + `],"stream":true}`
			if got := body(t, Config{}, &model.Request{Model: "m", MaxTokens: 9, CacheLast: true, Messages: tt.msgs}); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestImpossibleNumbers(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	_, failed := p.encode(&model.Request{Model: "m", Messages: []message.Message{message.User("hi")}, TopP: &nan}, &model.Info{})
	if failed == nil || failed.Class != model.ClassInvalid {
		t.Errorf("%v", failed)
	}
}

// BenchmarkEncode is the request after 40 messages, with and without what was
// kept from the request before.
func BenchmarkEncode(b *testing.B) {
	p, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	req := modeltest.Request("claude-haiku-4-5", modeltest.Conversation(12)[:40])
	info := p.catalogue.Lookup("anthropic", req.Model)
	for name, scratch := range map[string]*model.Scratch{"fresh": nil, "scratch": {}} {
		b.Run(name, func(b *testing.B) {
			req.Scratch = scratch
			b.ReportAllocs()
			for b.Loop() {
				if _, failed := p.encode(req, &info); failed != nil {
					b.Fatal(failed)
				}
			}
		})
	}
}
