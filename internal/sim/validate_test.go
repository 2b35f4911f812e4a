package sim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func post(h http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	if strings.HasPrefix(path, "/v1/messages") {
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOpenAIRefuses(t *testing.T) {
	const (
		user = `{"role":"user","content":"x"}`
		call = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"a","arguments":"{}"}}]}`
		res1 = `{"role":"tool","tool_call_id":"c1","content":"r"}`
		res2 = `{"role":"tool","tool_call_id":"c2","content":"r"}`
	)
	msgs := func(m ...string) string { return `{"model":"m","messages":[` + strings.Join(m, ",") + `]}` }
	with := func(rest string) string { return `{"model":"m","messages":[` + user + `],` + rest + `}` }
	tests := []struct{ name, body, param, msg string }{
		{"not JSON", `{"model":`, "", "could not parse the JSON body"},
		{"not an object", `[]`, "", "could not parse the JSON body"},
		{"no body", ``, "", "could not parse the JSON body"},
		{"no model", `{"messages":[` + user + `]}`, "", "you must provide a model parameter"},
		{"model is a number", `{"model":3,"messages":[` + user + `]}`, "model", "expected a string, but got a number"},
		{"no messages", `{"model":"m"}`, "messages", "Missing required parameter: 'messages'"},
		{"no message", msgs(), "messages", "empty array"},
		{"messages is a string", `{"model":"m","messages":"hi"}`, "messages", "expected an array of objects, but got a string"},
		{"message is a string", msgs(`"hi"`), "messages[0]", "expected an object"},
		{"no role", msgs(`{"content":"x"}`), "messages[0].role", "Missing required parameter"},
		{"bad role", msgs(user, `{"role":"robot","content":"x"}`), "messages[1].role", "Invalid value: 'robot'"},
		{"no content", msgs(`{"role":"user"}`), "messages[0].content", "expected a string, got null"},
		{"result without call", msgs(user, res1), "messages.[1].role", "must be a response to a preceeding message with 'tool_calls'"},
		{"result of another call", msgs(user, call, `{"role":"tool","tool_call_id":"c9","content":"r"}`), "messages.[2].tool_call_id", "'c9' not found"},
		{"result twice", msgs(user, call, res1, res1), "messages.[3].tool_call_id", "'c1' not found"},
		{"result without id", msgs(user, call, `{"role":"tool","content":"r"}`), "messages[2].tool_call_id", "Missing required parameter"},
		{"calls without results", msgs(user, call), "messages.[1].role", "did not have response messages: c1, c2"},
		{"a call without result", msgs(user, call, res1, user), "messages.[1].role", "did not have response messages: c2"},
		{"result after an interruption", msgs(user, call, res1, res2, user, res1), "messages.[5].role", "preceeding message"},
		{"call without id", msgs(user, `{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"a","arguments":"{}"}}]}`), "messages[1].tool_calls[0].id", "Missing"},
		{"call without name", msgs(user, `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"arguments":"{}"}}]}`), "messages[1].tool_calls[0].function.name", "Missing"},
		{"arguments are an object", msgs(user, `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":{}}}]}`), "messages[1].tool_calls[0].function.arguments", "expected a string, but got an object"},
		{"no calls", msgs(user, `{"role":"assistant","content":"x","tool_calls":[]}`), "messages[1].tool_calls", "empty array"},
		{"one id twice", msgs(user, strings.Replace(call, "c2", "c1", 1)), "messages[1].tool_calls", "Duplicate value for 'tool_call_id' of 'c1'"},
		{"stream_options alone", with(`"stream_options":{"include_usage":true}`), "stream_options", "only allowed when 'stream' is enabled"},
		{"stream is a string", with(`"stream":"true"`), "stream", "expected a boolean"},
		{"both limits", with(`"max_tokens":5,"max_completion_tokens":5`), "max_tokens", "at the same time"},
		{"limit zero", with(`"max_completion_tokens":0`), "max_completion_tokens", "below minimum value"},
		{"limit is a string", with(`"max_tokens":"5"`), "max_tokens", "expected an integer"},
		{"five stops", with(`"stop":["a","b","c","d","e"]`), "stop", "maximum length 4"},
		{"tool_choice alone", with(`"tool_choice":"auto"`), "tool_choice", "only allowed when 'tools' are specified"},
		{"parallel_tool_calls alone", with(`"parallel_tool_calls":false`), "parallel_tool_calls", "only allowed when 'tools' are specified"},
		{"parallel_tool_calls is a string", with(`"parallel_tool_calls":"no"`), "parallel_tool_calls", "expected a boolean"},
		{"tools is an object", with(`"tools":{}`), "tools", "expected an array"},
		{"tool without type", with(`"tools":[{"function":{"name":"a"}}]`), "tools[0].type", "Missing"},
		{"tool without function", with(`"tools":[{"type":"function","name":"a"}]`), "tools[0].function", "Missing"},
		{"tool without name", with(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "Missing"},
		{"tool name", with(`"tools":[{"type":"function","function":{"name":"a.b"}}]`), "tools[0].function.name", "does not match pattern"},
		{"tool schema", with(`"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"string"}}}]`), "tools[0].function.parameters", `got 'type: "string"'`},
	}
	h := New(Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(h, "/v1/chat/completions", tt.body)
			e := gjson.Get(w.Body.String(), "error")
			if w.Code != 400 || e.Get("type").String() != "invalid_request_error" || e.Get("param").String() != tt.param ||
				!strings.Contains(e.Get("message").String(), tt.msg) || !e.Get("code").Exists() || w.Header().Get("X-Request-Id") == "" {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	for name, body := range map[string]string{
		"results in another order": msgs(user, call, res2, res1),
		"developer and nulls":      `{"model":"m","stop":null,"tools":null,"stream":null,"messages":[{"role":"developer","content":"s"},` + user + `]}`,
		"text and calls":           msgs(user, strings.Replace(call, "null", `"t"`, 1), res1, res2, `{"role":"assistant","content":"done"}`, user),
		"refusal instead of text":  msgs(user, `{"role":"assistant","content":null,"refusal":"no"}`, user),
		"unknown keys":             with(`"store":false,"metadata":{"a":"b"},"x":[1]`),
		"custom tool":              with(`"tools":[{"type":"custom","custom":{"name":"a"}}]`),
		"empty schema":             with(`"tools":[{"type":"function","function":{"name":"a","parameters":{}}}]`),
		"empty content":            msgs(`{"role":"user","content":""}`),
	} {
		if w := post(h, "/v1/chat/completions", body); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestAnthropicRefuses(t *testing.T) {
	const (
		user  = `{"role":"user","content":"x"}`
		call  = `{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"t1","name":"a","input":{}},{"type":"tool_use","id":"t2","name":"a","input":{}}]}`
		res1  = `{"type":"tool_result","tool_use_id":"t1","content":"r"}`
		res2  = `{"type":"tool_result","tool_use_id":"t2"}`
		cache = `,"cache_control":{"type":"ephemeral"}`
		hour  = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	)
	msgs := func(m ...string) string {
		return `{"model":"m","max_tokens":9,"messages":[` + strings.Join(m, ",") + `]}`
	}
	says := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	text := func(extra string) string { return `{"type":"text","text":"x"` + extra + `}` }
	with := func(rest string) string {
		return `{"model":"m","max_tokens":9,"messages":[` + user + `],` + rest + `}`
	}
	tool := func(rest string) string { return with(`"tools":[{` + rest + `}]`) }
	tests := []struct{ name, body, msg string }{
		{"not JSON", `{"model":`, "not valid JSON"},
		{"not an object", `[]`, "valid dictionary"},
		{"no model", `{"max_tokens":9,"messages":[` + user + `]}`, "model: Field required"},
		{"model is a number", `{"model":1,"max_tokens":9,"messages":[` + user + `]}`, "model: Input should be a valid string"},
		{"no max_tokens", `{"model":"m","messages":[` + user + `]}`, "max_tokens: Field required"},
		{"max_tokens zero", `{"model":"m","max_tokens":0,"messages":[` + user + `]}`, "greater than or equal to 1"},
		{"max_tokens is a string", `{"model":"m","max_tokens":"9","messages":[` + user + `]}`, "max_tokens: Input should be a valid integer"},
		{"no messages", `{"model":"m","max_tokens":9}`, "messages: Field required"},
		{"messages is a string", `{"model":"m","max_tokens":9,"messages":"x"}`, "messages: Input should be a valid list"},
		{"no message", msgs(), "at least one message is required"},
		{"message is a string", msgs(`"x"`), "messages.0: Input should be a valid dictionary"},
		{"no role", msgs(`{"content":"x"}`), "messages.0.role: Field required"},
		{"bad role", msgs(user, `{"role":"tool","content":"x"}`), `Unexpected role "tool"`},
		{"no content", msgs(`{"role":"user"}`), "messages.0.content: Field required"},
		{"content is a number", msgs(`{"role":"user","content":3}`), "messages.0.content: Input should be a valid list"},
		{"assistant first", msgs(`{"role":"assistant","content":"x"}`), `first message must use the "user" role`},
		{"empty content", msgs(`{"role":"user","content":""}`), "messages.0: all messages must have non-empty content"},
		{"no blocks", msgs(says("user")), "messages.0: all messages must have non-empty content"},
		{"block without type", msgs(says("user", `{}`)), "messages.0.content.0.type: Field required"},
		{"empty text", msgs(says("user", `{"type":"text","text":""}`)), "text content blocks must be non-empty"},
		{"trailing space", msgs(user, `{"role":"assistant","content":"so "}`), "cannot end with trailing whitespace"},
		{"result without call", msgs(says("user", res1)), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1"},
		{"result too late", msgs(user, call, says("user", res1, res2), `{"role":"assistant","content":"ok"}`, says("user", res1)), "messages.4.content.0: unexpected `tool_use_id`"},
		{"result twice", msgs(user, call, says("user", res1, res1)), "each tool_use must have a single result"},
		{"result without id", msgs(user, call, says("user", `{"type":"tool_result"}`)), "tool_result.tool_use_id: Field required"},
		{"result of the assistant", msgs(user, says("assistant", res1)), "can only be in `user` messages"},
		{"calls without results", msgs(user, call, user), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1, t2. Each"},
		{"a call without result", msgs(user, call, says("user", res1), `{"role":"assistant","content":"x"}`), "immediately after: t2. Each"},
		{"text before the results", msgs(user, call, says("user", text(""), res1, res2)), "without `tool_result` blocks immediately after"},
		{"calls at the end", msgs(user, call), "immediately after: t1, t2"},
		{"one id twice", msgs(user, strings.Replace(call, "t2", "t1", 1)), "messages.1.content.2: `tool_use` ids must be unique"},
		{"one id in two messages", msgs(user, call, says("user", res1, res2), call), "`tool_use` ids must be unique"},
		{"bad id", msgs(user, strings.Replace(call, "t1", "t.1", 1)), "messages.1.content.1.tool_use.id: String should match pattern"},
		{"call without id", msgs(user, says("assistant", `{"type":"tool_use","name":"a","input":{}}`)), "tool_use.id: Field required"},
		{"call without name", msgs(user, says("assistant", `{"type":"tool_use","id":"i","input":{}}`)), "tool_use.name: Field required"},
		{"call without input", msgs(user, says("assistant", `{"type":"tool_use","id":"i","name":"a"}`)), "tool_use.input: Input should be a valid dictionary"},
		{"call of the user", msgs(says("user", `{"type":"tool_use","id":"i","name":"a","input":{}}`)), "can only be in `assistant` messages"},
		{"changed thinking", msgs(user, says("assistant", `{"type":"thinking","thinking":"a","signature":"x"}`, text("")), user), "Invalid `signature` in `thinking` block"},
		{"unsigned thinking", msgs(user, says("assistant", `{"type":"thinking","thinking":"a"}`, text("")), user), "signature: Field required"},
		{"thinking of the user", msgs(says("user", `{"type":"thinking","thinking":"a","signature":"x"}`)), "can only be in `assistant` messages"},
		{"five marks", msgs(says("user", text(cache), text(cache), text(cache), text(cache), text(cache))), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"marks everywhere", `{"model":"m","max_tokens":9,"cache_control":{"type":"ephemeral"},"tools":[{"name":"a","input_schema":{"type":"object"}` + cache + `}],"system":[` + text(cache) + `,` + text(cache) + `],"messages":[` + says("user", text(cache), text("")) + `]}`, "Found 5."},
		{"hour after five minutes", msgs(says("user", text(cache), text(hour))), "ttl='1h' cache_control block must not come after"},
		{"empty system text", with(`"system":[{"type":"text","text":""}]`), "text content blocks must be non-empty"},
		{"system image", with(`"system":[{"type":"image"}]`), "system.0.type"},
		{"system is an object", with(`"system":{}`), "system: Input should be a valid list"},
		{"stream is a string", with(`"stream":"yes"`), "stream: Input should be a valid boolean"},
		{"temperature", with(`"temperature":1.5`), "temperature: range: 0..1"},
		{"budget too small", with(`"thinking":{"type":"enabled","budget_tokens":10}`), "greater than or equal to 1024"},
		{"budget missing", with(`"thinking":{"type":"enabled"}`), "budget_tokens: Field required"},
		{"budget over the limit", with(`"thinking":{"type":"enabled","budget_tokens":2048}`), "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{"thinking type", with(`"thinking":{"type":"deep"}`), "Input tag 'deep'"},
		{"blank stop", with(`"stop_sequences":[" "]`), "must contain non-whitespace"},
		{"tool_choice alone", with(`"tool_choice":{"type":"auto"}`), "tool_choice"},
		{"tools is an object", with(`"tools":{}`), "tools: Input should be a valid list"},
		{"tool without name", tool(`"input_schema":{"type":"object"}`), "tools.0.custom.name: Field required"},
		{"tool name", tool(`"name":"a.b","input_schema":{"type":"object"}`), "should match pattern"},
		{"tool without schema", tool(`"name":"a"`), "tools.0.custom.input_schema: Field required"},
		{"schema without type", tool(`"name":"a","input_schema":{}`), "input_schema.type: Field required"},
		{"schema type", tool(`"name":"a","input_schema":{"type":"array"}`), "Input should be 'object'"},
		{"schema oneOf", tool(`"name":"a","input_schema":{"type":"object","oneOf":[]}`), "does not support oneOf"},
		{"two tools of one name", with(`"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]`), "Tool names must be unique"},
	}
	h := New(Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := post(h, "/v1/messages", tt.body)
			v := gjson.Parse(w.Body.String())
			if w.Code != 400 || v.Get("type").String() != "error" || v.Get("error.type").String() != "invalid_request_error" ||
				!strings.Contains(v.Get("error.message").String(), tt.msg) || v.Get("request_id").String() != w.Header().Get("Request-Id") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	for name, body := range map[string]string{
		"results in two messages":   msgs(user, call, says("user", res2), says("user", res1)),
		"results, then text":        msgs(user, call, says("user", res2, res1, text(""))),
		"system among the messages": msgs(user, `{"role":"system","content":"be brief"}`),
		"assistant in two messages": msgs(user, `{"role":"assistant","content":"a"}`, call, says("user", res1, res2)),
		"prefill":                   msgs(user, `{"role":"assistant","content":"a"}`),
		"image":                     msgs(says("user", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`)),
		"redacted thinking":         msgs(user, says("assistant", `{"type":"redacted_thinking","data":"AA"}`, text("")), user),
		"server tool":               tool(`"type":"web_search_20250305","name":"web_search"`),
		"unknown keys":              with(`"metadata":{"user_id":"u"},"context_management":{},"x":null`),
		"hour before five minutes":  msgs(says("user", text(hour), text(cache))),
		"budget under the limit":    `{"model":"m","max_tokens":3000,"thinking":{"type":"enabled","budget_tokens":2048},"messages":[` + user + `]}`,
		"adaptive and turned off":   with(`"thinking":{"type":"disabled"}`),
	} {
		if w := post(h, "/v1/messages", body); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest("POST", "/v1/messages", strings.NewReader(msgs(user)))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "anthropic-version: header is required") {
		t.Errorf("without a version: %d %s", w.Code, w.Body)
	}
}

// Whatever comes in, the answer is one of the service's, and a good body is JSON.
func fuzzPath(f *testing.F, path string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	h := New(Options{})
	f.Fuzz(func(t *testing.T, body string) {
		w := post(h, path, body)
		if w.Code != 200 && w.Code != 400 && !strings.Contains(w.Body.String(), "unknown format") { // Ollama's 500 for an image that is none
			t.Fatalf("status %d for %q", w.Code, body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !gjson.Valid(w.Body.String()) {
			t.Fatalf("the answer is not JSON: %s", w.Body)
		}
	})
}

func FuzzOpenAI(f *testing.F) {
	fuzzPath(f, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"stop":["x"],"max_tokens":3,"messages":[{"role":"user","content":[{"type":"text","text":"x\u0000"}]},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":null}]}`,
		`{"model":"m","tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}],"tool_choice":"none","messages":[]}`)
}

func FuzzAnthropic(f *testing.F) {
	fuzzPath(f, "/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","max_tokens":5,"stream":true,"cache_control":{"type":"ephemeral"},"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"a","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":[{"cache_control":{},"type":"text","text":"\ud800"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"a","input":{"cache_control":"cache_control"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}]}]}]}`)
}
