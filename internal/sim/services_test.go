package sim

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestGeminiRefuses(t *testing.T) {
	const (
		user = `{"role":"user","parts":[{"text":"x"}]}`
		sig  = `,"thoughtSignature":"skip_thought_signature_validator"`
		call = `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"a","args":{}}` + sig + `},{"functionCall":{"id":"c2","name":"a"}}]}`
		res1 = `{"functionResponse":{"id":"c1","name":"a","response":{"output":"r"}}}`
		res2 = `{"functionResponse":{"id":"c2","name":"a","response":{"error":"r"}}}`
		both = `{"role":"user","parts":[` + res1 + `,` + res2 + `]}`
		fn   = `"tools":[{"functionDeclarations":[{"name":"a"}]}]`
	)
	says := func(c ...string) string { return `{"contents":[` + strings.Join(c, ",") + `]}` }
	parts := func(role, p string) string { return `{"role":"` + role + `","parts":[` + p + `]}` }
	with := func(rest string) string { return `{"contents":[` + user + `],` + rest + `}` }
	config := func(c string) string { return with(`"generationConfig":{` + c + `}`) }
	const modern, old, four = "gemini-3.8-flash", "gemini-2.5-pro", "gemini-4-argon"
	for _, tt := range []struct{ name, model, body, msg string }{
		{"not JSON", modern, `{"contents":`, "Invalid JSON payload"},
		{"half a surrogate pair", modern, says(parts("user", `{"text":"\ud83d"}`)), "Invalid JSON payload"},
		{"no contents", modern, `{}`, "contents is not specified"},
		{"contents is a string", modern, `{"contents":"x"}`, "Invalid value at 'contents'"},
		{"unknown field", modern, with(`"messages":[]`), `Unknown name "messages": Cannot find field`},
		{"unknown field of a part", modern, says(parts("user", `{"txt":"x"}`)), `Unknown name "txt" at 'contents[0].parts[0]'`},
		{"unknown setting", modern, config(`"max_tokens":3`), `Unknown name "max_tokens" at 'generation_config'`},
		{"bad role", modern, says(parts("assistant", `{"text":"x"}`)), "Please use a valid role: user, model."},
		{"no parts", modern, says(`{"role":"user","parts":[]}`), "contents.parts must not be empty"},
		{"empty part", modern, says(parts("user", `{}`)), "required oneof field 'data' must have one initialized field"},
		{"empty text", modern, says(parts("user", `{"text":""}`)), "required oneof field 'data'"},
		{"a call first", modern, says(call, both), "function call turn comes immediately after a user turn"},
		{"a call after the model", modern, says(user, parts("model", `{"text":"x"}`), call, both), "function call turn comes immediately after a user turn"},
		{"a result without call", modern, says(user, both), "function response turn comes immediately after a function call turn"},
		{"one result of two", modern, says(user, call, parts("user", res1)), "number of function response parts is equal"},
		{"no results", modern, says(user, call), "number of function response parts is equal"},
		{"calls without results", modern, says(user, call, user), "number of function response parts is equal"},
		{"another name", modern, says(user, call, parts("user", res1+","+strings.Replace(res2, `"a"`, `"b"`, 1))), "id and name match"},
		{"another id", modern, says(user, call, parts("user", res1+","+strings.Replace(res2, `"c2"`, `"c9"`, 1))), "id and name match"},
		{"one id twice", modern, says(user, strings.Replace(call, "c2", "c1", 1), both), "Duplicate function call id: c1"},
		{"a call of the user", modern, says(user, strings.Replace(call, "model", "user", 1), both), "role model"},
		{"no name", modern, says(user, strings.Replace(call, `"name":"a",`, "", 1), both), "Name cannot be empty"},
		{"arguments as a string", modern, says(user, strings.Replace(call, `{}}`, `"{}"}`, 1), both), "function_call.args"},
		{"a response as a string", modern, says(user, call, parts("user", res1+","+strings.Replace(res2, `{"error":"r"}`, `"r"`, 1))), "function_response.response"},
		{"no signature", modern, says(user, strings.Replace(call, sig, "", 1), both), "Function call is missing a thought_signature"},
		{"no base64", modern, says(user, strings.Replace(call, "skip_thought_signature_validator", "!", 1), both), "Base64 decoding failed"},
		{"a signature of another", modern, says(user, strings.Replace(call, "skip_thought_signature_validator", "c2ln", 1), both), "Corrupted thought signature"},
		{"a text's signature of another", modern, says(user, parts("model", `{"text":"x","thoughtSignature":"c2ln"}`), user), "Corrupted thought signature"},
		{"the model last", modern, says(user, parts("model", `{"text":"x"}`)), "ending with a model turn"},
		{"images in results of old models", old, says(user, call, parts("user", strings.Replace(res1, `"response"`, `"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}],"response"`, 1)+","+res2)), "Multimodal function responses"},
		{"image without type", modern, says(parts("user", `{"inlineData":{"data":"aGk="}}`)), "MIME type is required"},
		{"image that is no base64", modern, says(parts("user", `{"inlineData":{"mimeType":"image/png","data":"?"}}`)), "Base64 decoding failed"},
		{"image that is none", modern, says(parts("user", `{"inlineData":{"mimeType":"image/png","data":"QlJPS0VO"}}`)), "Unable to process input image"},
		{"tool name", modern, with(`"tools":[{"functionDeclarations":[{"name":"1 a"}]}]`), "Invalid function name"},
		{"tool twice", modern, with(`"tools":[{"functionDeclarations":[{"name":"a"},{"name":"a"}]}]`), "Duplicate function declaration found: a"},
		{"two schemas", modern, with(`"tools":[{"functionDeclarations":[{"name":"a","parameters":{},"parametersJsonSchema":{"type":"object"}}]}]`), "only one of parameters"},
		{"schema of a text", modern, with(`"tools":[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"string"}}]}]`), "must be of type object"},
		{"OpenAI's schema", modern, with(`"tools":[{"functionDeclarations":[{"name":"a","input_schema":{}}]}]`), `Unknown name "input_schema"`},
		{"a choice without tools", modern, with(`"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`), "without function_declarations"},
		{"temperature", modern, config(`"temperature":3`), "range [0.0, 2.0]"},
		{"limit zero", modern, config(`"maxOutputTokens":0`), "must be positive"},
		{"six stops", modern, config(`"stopSequences":["a","b","c","d","e","f"]`), "at most 5"},
		{"a schema without JSON", modern, config(`"responseJsonSchema":{}`), "response_mime_type"},
		{"JSON beside tools", old, with(fn + `,"generationConfig":{"responseMimeType":"application/json"}`), "Function calling with a response mime type"},
		{"budget and level", modern, config(`"thinkingConfig":{"thinkingBudget":1,"thinkingLevel":"LOW"}`), "only one of thinking budget"},
		{"a budget of Gemini 4", four, config(`"thinkingConfig":{"thinkingBudget":1}`), "Thinking budget is not supported"},
		{"a budget that is too small", "gemini-2.5-flash-lite", config(`"thinkingConfig":{"thinkingBudget":511}`), "between 512 and 24576"},
		{"a budget that Pro can not have", old, config(`"thinkingConfig":{"thinkingBudget":0}`), "between 128 and 32768"},
		{"a budget below nothing", old, config(`"thinkingConfig":{"thinkingBudget":-2}`), "is invalid"},
		{"a level of Gemini 2", old, config(`"thinkingConfig":{"thinkingLevel":"LOW"}`), "Thinking level is not supported"},
		{"a level that is gone", modern, config(`"thinkingConfig":{"thinkingLevel":"MINIMAL"}`), "level MINIMAL is not supported"},
		{"a level that is to come", modern, config(`"thinkingConfig":{"thinkingLevel":"XHIGH"}`), "level XHIGH is not supported"},
		{"a level of nobody", modern, config(`"thinkingConfig":{"thinkingLevel":"A_LOT"}`), "thinking_level"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(New(Options{}), "/v1beta/models/"+tt.model+":generateContent", tt.body)
			e := gjson.Get(w.Body.String(), "error")
			if w.Code != 400 || e.Get("code").Int() != 400 || e.Get("status").String() != "INVALID_ARGUMENT" || !strings.Contains(e.Get("message").String(), tt.msg) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	for name, c := range map[string]struct{ model, body string }{
		"snake case":                  {modern, `{"system_instruction":{"parts":[{"text":"s"}]},"contents":[` + user + `],"generation_config":{"max_output_tokens":5}}`},
		"results":                     {modern, says(user, call, both)},
		"without ids":                 {old, strings.NewReplacer(`"id":"c1",`, "", `"id":"c2",`, "", sig, "").Replace(says(user, call, both))},
		"unsigned in an earlier turn": {modern, says(user, strings.Replace(call, sig, "", 1), both, parts("model", `{"text":"x"}`), user)},
		"a signed nothing":            {modern, says(user, parts("model", `{"text":"","thoughtSignature":"c2ln"}`), user)},
		"JSON beside tools":           {modern, with(fn + `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{}}`)},
		"the model last":              {old, says(user, parts("model", `{"text":"x"}`))},
		"xhigh":                       {four, config(`"thinkingConfig":{"thinkingLevel":"XHIGH"}`)},
	} {
		if w := post(New(Options{}), "/v1beta/models/"+c.model+":generateContent", c.body); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestOllamaRefuses(t *testing.T) {
	with := func(rest string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],` + rest + `}`
	}
	msg := func(m string) string { return `{"model":"m","messages":[` + m + `]}` }
	for _, tt := range []struct{ name, body, msg string }{
		{"no body", ``, "missing request body"},
		{"not JSON", `x`, "invalid character 'x' looking for beginning of value"},
		{"no model", `{"messages":[]}`, "model is required"},
		{"model is a number", `{"model":3}`, "cannot unmarshal number into Go struct field ChatRequest.model of type string"},
		{"messages is a string", `{"model":"m","messages":"x"}`, "cannot unmarshal string"},
		{"content is a list", msg(`{"role":"user","content":[{"type":"text","text":"x"}]}`), "cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"},
		{"stream is a string", with(`"stream":"no"`), "ChatRequest.stream of type bool"},
		{"a thought of nobody", with(`"think":"a lot"`), `invalid think value: "a lot"`},
		{"a thought as a number", with(`"think":3`), "think must be a boolean or string"},
		{"format", with(`"format":"xml"`), "invalid format"},
		{"options", with(`"options":[]`), "ChatRequest.options"},
		{"stop is a string", with(`"options":{"stop":"x"}`), `option "stop" must be of type array`},
		{"tools is an object", with(`"tools":{}`), "ChatRequest.tools"},
		{"parameters is a string", with(`"tools":[{"type":"function","function":{"name":"a","parameters":"x"}}]`), "tools.function.parameters"},
		{"a property that may be anything", with(`"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"properties":{"y":true}}}}}}]`), "cannot unmarshal bool"},
		{"a schema of several types", with(`"tools":[{"type":"function","function":{"name":"a","parameters":{"type":["object"]}}}]`), "tools.function.parameters.type"},
		{"arguments as a string", msg(`{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":"{}"}}]}`), "tool_calls.function.arguments"},
		{"image that is no base64", msg(`{"role":"user","images":["?"]}`), "illegal base64 data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(New(Options{}), "/api/chat", tt.body)
			if w.Code != 400 || !strings.Contains(gjson.Get(w.Body.String(), "error").String(), tt.msg) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	if w := post(New(Options{}), "/api/chat", msg(`{"role":"user","images":["QlJPS0VO"]}`)); w.Code != 500 || !strings.Contains(w.Body.String(), "unknown format") {
		t.Errorf("an image that is none: %d %s", w.Code, w.Body)
	}
	for name, body := range map[string]string{
		"unknown keys":          with(`"x":1,"options":{"y":2},"keep_alive":-1,"truncate":false`),
		"nulls":                 with(`"tools":null,"format":null,"think":null`),
		"results without calls": msg(`{"role":"tool","tool_name":"a","content":"x"}`),
		"the assistant last":    msg(`{"role":"user","content":"x"},{"role":"assistant","content":"so"}`),
		"a level":               with(`"think":"high","stream":false`),
	} {
		if w := post(New(Options{}), "/api/chat", body); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func FuzzGemini(f *testing.F) {
	fuzzPath(f, "/v1beta/models/gemini-3.8-flash:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`,
		`{"system_instruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"x\u0000"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},{"role":"model","parts":[{"functionCall":{"name":"a"},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":1}}}]}],"generationConfig":{"stopSequences":["x"],"thinkingConfig":{"includeThoughts":true}}}`,
		`{"tools":[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"object"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"contents":[]}`)
}

func FuzzOllama(f *testing.F) {
	fuzzPath(f, "/api/chat", `{"model":"m","stream":false,"messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","think":"low","format":{},"options":{"num_predict":3,"stop":["x"]},"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":{}}}]},{"role":"tool","tool_name":"a","content":null,"images":["aGk="]}]}`)
}
