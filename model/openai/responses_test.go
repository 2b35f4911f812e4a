package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

const reasoningItem = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Six times seven."}],"encrypted_content":"gAAAAABo+/secret=="}`

// responsesHarness describes the Responses API: OpenAI's, or with azure Azure's.
func responsesHarness(path string, azure *Azure) modeltest.Harness {
	h := harness()
	h.New = func(t testing.TB, s modeltest.Server) model.Provider {
		base := strings.TrimSuffix(path, "/responses")
		p, err := New(Config{BaseURL: s.URL + base, Protocol: Responses, Azure: azure, Credential: s.Key, Options: &Options{
			Idle: s.Idle, Client: s.Client, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	h.API, h.Path, h.Fixtures, h.NoStop = APIResponses, path, "responses", true
	if azure != nil {
		h.Provider = "azure"
		if !azure.Token {
			h.Key = func(h http.Header) string { return h.Get("Api-Key") }
		}
	}
	h.Sign = func(b *message.Block) {
		b.Signature = "msg_1"
		if b.Type == message.BlockToolCall {
			b.Signature = strings.Replace(b.ID, "call", "fc", 1)
		}
	}
	h.Tiers = &modeltest.Tiers{Usual: "default", Half: "flex", Served: func(fixture []byte, word string) []byte {
		return bytes.ReplaceAll(fixture, []byte(`"object":"response"`), []byte(`"object":"response","service_tier":"`+word+`"`))
	}}
	h.MaxStops = 0 // it has no place for them
	h.Signature = reasoningItem
	h.Replay = reasoningItem + `,{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"42"}]}`
	h.Complete = func(fixture []byte) int {
		at := bytes.LastIndex(fixture, []byte("event: response.completed"))
		return at + bytes.Index(fixture[at:], []byte("\n\n")) + 2
	}
	h.Broken = map[string]model.Class{
		"broken_error": model.ClassServer, "broken_error_rate": model.ClassRateLimited, "broken_error_string": model.ClassOverloaded,
		"broken_failed": model.ClassServer, "broken_failed_rate": model.ClassRateLimited, "broken_overflow": model.ClassOverflow,
		"broken_flagged": model.ClassRefused, "broken_filter": model.ClassRefused, "broken_incomplete": model.ClassServer,
		"broken_cancelled": model.ClassServer, "broken_json": model.ClassMalformed, "broken_done": model.ClassTruncated,
		"broken_nothing": model.ClassTruncated, "broken_unfinished": model.ClassTruncated, "broken_refusal": model.ClassRefused,
		"broken_nameless": model.ClassMalformed,
	}
	h.Failures = append(h.Failures,
		modeltest.Failure{Name: "no such deployment", Status: 404, Body: `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, Class: model.ClassNotFound},
		modeltest.Failure{Name: "Azure's gateway refuses the key", Status: 401, Body: `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, Class: model.ClassAuth},
		modeltest.Failure{Name: "Azure's filter", Status: 400, Body: `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, Class: model.ClassRefused},
	)
	h.Messages = func(t testing.TB, body []byte) []json.RawMessage {
		items := decodeItems(t, body)
		if len(items) > 0 && bytes.HasPrefix(items[0], []byte(`{"role":"system"`)) {
			items = items[1:]
		}
		return items
	}
	h.IDs = func(t testing.TB, body []byte) (calls, results []string) {
		for _, raw := range decodeItems(t, body) {
			var m struct {
				Type   string
				CallID string `json:"call_id"`
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			switch m.Type {
			case "function_call":
				calls = append(calls, m.CallID)
			case "function_call_output":
				results = append(results, m.CallID)
			}
		}
		return calls, results
	}
	h.IDLimit = 64
	h.Wire = responsesWire()
	return h
}

func decodeItems(t testing.TB, body []byte) []json.RawMessage {
	t.Helper()
	var r struct{ Input []json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r.Input
}

func TestResponsesConformance(t *testing.T) {
	modeltest.Run(t, responsesHarness("/v1/responses", nil))
}

func FuzzResponses(f *testing.F) { modeltest.Fuzz(f, responsesHarness("/v1/responses", nil)) }

// encoded is the body of a request to Responses.
func encoded(t testing.TB, cfg Config, req *model.Request) string {
	t.Helper()
	cfg.Protocol = Responses
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	info := p.catalogue.Lookup(p.name, req.Model)
	b, failed := p.encodeResponses(req, &info)
	if failed != nil {
		t.Fatal(failed)
	}
	if !json.Valid(b) {
		t.Fatalf("not JSON: %s", b)
	}
	return string(b)
}

const itemTail = `,"stream":true,"store":false`

func TestResponsesBody(t *testing.T) {
	half := 0.5
	hi := []message.Message{message.User("hi")}
	const user = `"input":[{"role":"user","content":"hi"}]`
	const include = `,"include":["reasoning.encrypted_content"]`
	tool := []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}
	const tools = `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false}]`
	own, local := Config{}, Config{BaseURL: "http://127.0.0.1/v1", Provider: "local"}
	tests := []struct {
		name string
		cfg  Config
		req  model.Request
		want string
	}{
		{"least", own, model.Request{Model: "m", Messages: hi}, `{"model":"m",` + user + itemTail + `}`},
		{"system", own, model.Request{Model: "m", Messages: hi, System: []model.SystemPart{{Text: "a"}, {Text: " "}, {Text: "b"}}},
			`{"model":"m","input":[{"role":"system","content":"a\n\nb"},{"role":"user","content":"hi"}]` + itemTail + `}`},
		{"system of a model that reasons", own, model.Request{Model: "gpt-5", Messages: hi, System: []model.SystemPart{{Text: "a"}}},
			`{"model":"gpt-5","input":[{"role":"developer","content":"a"},{"role":"user","content":"hi"}]` + itemTail + include + `,"reasoning":{"summary":"auto"}}`},
		{"limits", own, model.Request{Model: "gpt-4.1", Messages: hi, MaxTokens: 99, Temperature: &half, TopP: &half, SessionID: "s"},
			`{"model":"gpt-4.1",` + user + itemTail + `,"max_output_tokens":99,"temperature":0.5,"top_p":0.5,"prompt_cache_key":"s"}`},
		{"least output", own, model.Request{Model: "gpt-4.1", Messages: hi, MaxTokens: 1}, `{"model":"gpt-4.1",` + user + itemTail + `,"max_output_tokens":16}`},
		{"cache key elsewhere", local, model.Request{Model: "m", Messages: hi, SessionID: "s"}, `{"model":"m",` + user + itemTail + `}`},
		{"long cache key", own, model.Request{Model: "m", Messages: hi, SessionID: strings.Repeat("s", 70)},
			`{"model":"m",` + user + itemTail + `,"prompt_cache_key":"` + shorten(strings.Repeat("s", 70), 64) + `"}`},
		{"effort", own, model.Request{Model: "gpt-5", Messages: hi, Temperature: &half, Thinking: model.ThinkingXHigh},
			`{"model":"gpt-5",` + user + itemTail + include + `,"reasoning":{"effort":"high","summary":"auto"}}`},
		{"effort of a newer model", own, model.Request{Model: "gpt-6-sol", Messages: hi, Thinking: model.ThinkingXHigh},
			`{"model":"gpt-6-sol",` + user + itemTail + include + `,"reasoning":{"effort":"xhigh","summary":"auto"}}`},
		{"no effort", own, model.Request{Model: "gpt-5.2", Messages: hi, Temperature: &half, Thinking: model.ThinkingOff},
			`{"model":"gpt-5.2",` + user + itemTail + include + `,"reasoning":{"effort":"none"},"temperature":0.5}`},
		{"effort left to the model", own, model.Request{Model: "gpt-5", Messages: hi, Thinking: model.ThinkingAdaptive},
			`{"model":"gpt-5",` + user + itemTail + include + `,"reasoning":{"summary":"auto"}}`},
		{"no summaries", Config{Options: &Options{Summaries: "none"}}, model.Request{Model: "gpt-5", Messages: hi}, `{"model":"gpt-5",` + user + itemTail + include + `}`},
		{"effort of an unknown model", local, model.Request{Model: "m", Messages: hi, Thinking: model.ThinkingLow},
			`{"model":"m",` + user + itemTail + include + `,"reasoning":{"effort":"low","summary":"auto"}}`},
		{"an unknown model that has reasoned", local, model.Request{Model: "m", Messages: []message.Message{{Role: message.RoleAssistant, API: APIResponses, Provider: "local", Model: "m",
			Content: []message.Block{{Type: message.BlockThinking, Signature: `{"type":"reasoning","summary":[]}`}}}, message.User("hi")}},
			`{"model":"m",` + user + itemTail + include + `,"reasoning":{"summary":"auto"}}`},
		{"no effort where there is none", own, model.Request{Model: "gpt-4.1", Messages: hi, Thinking: model.ThinkingHigh}, `{"model":"gpt-4.1",` + user + itemTail + `}`},
		{"tools", own, model.Request{Model: "m", Messages: hi, Tools: append(tool[:1:1], model.ToolSpec{Name: "g", Description: "d"})},
			`{"model":"m",` + user + strings.TrimSuffix(tools, "]") + `,{"type":"function","name":"g","description":"d","parameters":{"type":"object","properties":{}},"strict":false}]` + itemTail + `}`},
		{"no tool", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceNone}, `{"model":"m",` + user + tools + `,"tool_choice":"none"` + itemTail + `}`},
		{"some tool", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired, SingleToolCall: true},
			`{"model":"m",` + user + tools + `,"tool_choice":"required","parallel_tool_calls":false` + itemTail + `}`},
		{"this tool", own, model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: "f"}, `{"model":"m",` + user + tools + `,"tool_choice":{"type":"function","name":"f"}` + itemTail + `}`},
		{"a choice without tools", own, model.Request{Model: "m", Messages: hi, ToolChoice: model.ToolChoiceRequired, SingleToolCall: true}, `{"model":"m",` + user + itemTail + `}`},
		{"json", own, model.Request{Model: "m", Messages: hi, JSON: true}, `{"model":"m",` + user + itemTail + `,"text":{"format":{"type":"json_object"}}}`},
		{"schema", own, model.Request{Model: "m", Messages: hi, JSON: true, Schema: json.RawMessage(`{"type":"object"}`)},
			`{"model":"m",` + user + itemTail + `,"text":{"format":{"type":"json_schema","name":"answer","strict":false,"schema":{"type":"object"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := encoded(t, tt.cfg, &tt.req); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestResponsesItems(t *testing.T) {
	image := message.Image("aGk=", "image/png")
	const url = `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,aGk="}`
	think := message.Block{Type: message.BlockThinking, Text: "Six times seven.", Signature: reasoningItem}
	signed := func(b message.Block, s string) message.Block { b.Signature = s; return b }
	call := signed(message.Call("c1", "f", json.RawMessage(`{"a":1}`)), "fc_1")
	const calls = `"call_id":"c1","name":"f","arguments":"{\"a\":1}"}`
	text := signed(message.Text("a"), "msg_1 commentary")
	assistant := func(blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks}
	}
	from := func(m message.Message, api, provider, id string) message.Message {
		m.API, m.Provider, m.Model = api, provider, id
		return m
	}
	tests := []struct {
		name string
		msgs []message.Message
		want string
	}{
		{"parts", []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), image, message.Text("b")}}},
			`{"role":"user","content":[{"type":"input_text","text":"a"},` + url + `,{"type":"input_text","text":"b"}]}`},
		{"a whole reply", []message.Message{assistant(think, text, call)},
			reasoningItem + `,{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"a"}],"phase":"commentary"},` +
				`{"type":"function_call","id":"fc_1",` + calls},
		{"without its reasoning it has no ids", []message.Message{assistant(text, call)},
			`{"role":"assistant","content":"a","phase":"commentary"},{"type":"function_call",` + calls},
		{"reasoning that leads to nothing", []message.Message{assistant(text, think), message.User("b")},
			`{"role":"assistant","content":"a","phase":"commentary"},{"role":"user","content":"b"}`},
		{"reasoning alone", []message.Message{assistant(think), message.User("b")}, `{"role":"user","content":"b"}`},
		{"of another model", []message.Message{from(assistant(think, text, call), APIResponses, "openai", "other")},
			`{"role":"assistant","content":"Six times seven."},{"role":"assistant","content":"a"},{"type":"function_call",` + calls},
		{"of another provider", []message.Message{from(assistant(think, text, call), APIResponses, "azure", "m")},
			`{"role":"assistant","content":"Six times seven."},{"role":"assistant","content":"a"},{"type":"function_call",` + calls},
		{"of Chat", []message.Message{from(assistant(signed(think, "reasoning_content"), message.Text("a"), message.Call("c1", "f", json.RawMessage(`{"a":1}`))), API, "openai", "m")},
			`{"role":"assistant","content":"Six times seven."},{"role":"assistant","content":"a"},{"type":"function_call",` + calls},
		{"reasoning that is nowhere", []message.Message{assistant(signed(think, `{"type":"reasoning","id":"rs_1","summary":[]}`), text)}, `{"role":"assistant","content":"a","phase":"commentary"}`},
		{"reasoning of an open model", []message.Message{assistant(signed(think, `{"type":"reasoning","content":[{"type":"reasoning_text","text":"x"}]}`), message.Text("a"))},
			`{"type":"reasoning","content":[{"type":"reasoning_text","text":"x"}]},{"role":"assistant","content":"a"}`},
		{"a signature that is none", []message.Message{assistant(signed(think, `{"type":"reasoning","encrypted_content":"x"`), message.Text("a"))}, `{"role":"assistant","content":"a"}`},
		{"foreign ids", []message.Message{assistant(think, signed(message.Text("a"), "odd id\n"), signed(call, "toolu_1"))},
			reasoningItem + `,{"role":"assistant","content":"a","phase":"id\n"},{"type":"function_call",` + calls},
		{"results", []message.Message{message.ToolResult("c1", "f", true, message.Text("a"), image), message.ToolResult("c2", "f", false, image), message.ToolResult("c3", "f", false, message.Text("b"))},
			`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},` + url + `]},{"type":"function_call_output","call_id":"c2","output":[` + url + `]},` +
				`{"type":"function_call_output","call_id":"c3","output":"b"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := `{"model":"m","input":[` + tt.want + `]` + itemTail + `}`
			if got := encoded(t, Config{}, &model.Request{Model: "m", Messages: tt.msgs}); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// played answers a request with a fixture.
func played(t testing.TB, fixture string, req *model.Request) (*message.Message, error) {
	t.Helper()
	b, err := os.ReadFile("testdata/responses/" + fixture + ".sse")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(b)}}})
	if err != nil {
		t.Fatal(err)
	}
	req.Model, req.Messages = "gpt-5", []message.Message{message.User("hi")}
	return p.Generate(t.Context(), req, nil)
}

// The dialects of servers that speak the API in their own way.
func TestResponsesServers(t *testing.T) {
	think := func(text, signature string) message.Block {
		return message.Block{Type: message.BlockThinking, Text: text, Signature: signature}
	}
	signed := func(b message.Block, s string) message.Block { b.Signature = s; return b }
	const two = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}],"encrypted_content":"x"}`
	late := think("", `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA_late"}`)
	late.Redacted = true
	ok := signed(message.Text("ok"), "msg_1")
	for _, tt := range []struct {
		name    string
		content []message.Block
		stop    message.StopReason
	}{
		{"server_late_encryption", []message.Block{late, signed(message.Text("42"), "msg_1")}, message.StopEnd},
		{"server_whole", []message.Block{think("One.\n\nTwo.", two), signed(message.Text("ok"), "msg_1 final_answer"),
			signed(message.Call("call_1", "read", json.RawMessage(`{"path":"a"}`)), "fc_1")}, message.StopToolUse},
		{"server_two_parts", []message.Block{think("One.\n\nTwo.", two), ok}, message.StopEnd},
		{"server_open_model", []message.Block{think("raw thought", `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"raw thought"}]}`), ok}, message.StopEnd},
		{"server_bare", []message.Block{message.Text("ok")}, message.StopEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := played(t, tt.name, &model.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(m.Content, tt.content) || m.StopReason != tt.stop {
				t.Errorf("%+v", m)
			}
		})
	}
}

// A response that failed after it was counted has to be paid, too.
func TestResponsesUsageOfFailures(t *testing.T) {
	for _, name := range []string{"broken_failed", "broken_filter", "broken_refusal"} {
		_, err := played(t, name, &model.Request{})
		var e *model.Error
		if !errors.As(err, &e) || e.Usage == nil || e.Usage.Output != 7 || e.Usage.Reasoning != 3 || e.Usage.Cost.Total <= 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stop text ends the text, which Responses can not be asked for.
func TestResponsesStopTexts(t *testing.T) {
	for _, tt := range []struct {
		stop []string
		want string
	}{
		{[]string{"look"}, "I will "},
		{[]string{"l l"}, "I wil"},
		{[]string{"k.x", "will look!", "."}, "I will look"},
		{[]string{"I"}, ""},
		{[]string{"", "look.x", "nowhere"}, "I will look."},
	} {
		m, err := played(t, "tool", &model.Request{Stop: tt.stop})
		if err != nil {
			t.Fatal(err)
		}
		cut := tt.want != "I will look."
		if m.Text() != tt.want || cut != (len(m.ToolCalls()) == 0) || cut != (m.StopReason == message.StopEnd) || m.Usage.Output != 7 {
			t.Errorf("%q: %q, %+v", tt.stop, m.Text(), m)
		}
	}
}

func TestResponsesOldReasoningIsNotSent(t *testing.T) {
	item := func(n string) string {
		return `{"type":"reasoning","id":"rs_` + n + `","encrypted_content":"THINK` + n + `"}`
	}
	modeltest.OldReasoning(t, "", item("%[1]d"), func(t *testing.T, history []message.Message) string {
		for i := range history {
			for j := range history[i].Content {
				if b := &history[i].Content[j]; b.Type == message.BlockThinking {
					b.Signature = item(strings.TrimPrefix(b.Text, "THINK"))
				}
			}
		}
		return encoded(t, Config{}, &model.Request{Model: "m", Messages: session.DropReasoning(history, 300_000, nil)})
	})
}

// BenchmarkResponses is a whole call of a short answer without the network.
func BenchmarkResponses(b *testing.B) {
	for b.Loop() {
		if _, err := played(b, "text", &model.Request{}); err != nil {
			b.Fatal(err)
		}
	}
}
