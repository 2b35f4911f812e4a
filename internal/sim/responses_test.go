package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	oaioption "github.com/openai/openai-go/v3/option"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/tidwall/gjson"

	"agentd/model/script"
)

func TestResponsesRefuses(t *testing.T) {
	const (
		user = `{"role":"user","content":"x"}`
		call = `{"type":"function_call","call_id":"c1","name":"a","arguments":"{}"}`
		out  = `{"type":"function_call_output","call_id":"c1","output":"r"}`
		said = `{"role":"assistant","content":"t"}`
		of   = "0123456789abcdef"
	)
	sealed := func(id, content string) string {
		return fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":%q}`, id, content)
	}
	think := sealed("rs_"+of, seal("rs_"+of, "hm"))
	withID := func(item, id string) string { return strings.Replace(item, `{`, `{"id":"`+id+`",`, 1) }
	in := func(items ...string) string { return `{"model":"m","input":[` + strings.Join(items, ",") + `]}` }
	with := func(rest string) string { return `{"model":"m","input":"x",` + rest + `}` }
	tool := func(rest string) string { return with(`"tools":[{` + rest + `}]`) }
	h := New(Options{})
	for _, tt := range []struct{ name, body, param, msg string }{
		{"not JSON", `{"model":`, "", "could not parse the JSON body"},
		{"half a pair", in(`{"role":"user","content":"\ud83d"}`), "", "could not parse the JSON body"},
		{"no model", `{"input":"x"}`, "model", "Missing required parameter"},
		{"model is a number", `{"model":1,"input":"x"}`, "model", "expected a string, but got a number"},
		{"no input", `{"model":"m"}`, "input", "Missing required parameter"},
		{"input is an object", `{"model":"m","input":{}}`, "input", "an array of objects or a string"},
		{"nothing", in(), "input", "empty array"},
		{"of Chat", with(`"messages":[]`), "messages", "moved to 'input'"},
		{"of Chat", with(`"max_tokens":5`), "max_tokens", "moved to 'max_output_tokens'"},
		{"of Chat", with(`"response_format":{}`), "response_format", "moved to 'text.format'"},
		{"stop texts", with(`"stop":["a"]`), "stop", "Unknown parameter: 'stop'"},
		{"stream is a string", with(`"stream":"yes"`), "stream", "expected a boolean"},
		{"instructions are a list", with(`"instructions":[]`), "instructions", "expected a string"},
		{"a limit that is too low", with(`"max_output_tokens":15`), "max_output_tokens", "Expected a value >= 16, but got 15"},
		{"a long cache key", with(`"prompt_cache_key":"` + strings.Repeat("k", 65) + `"`), "prompt_cache_key", "maximum length 64"},
		{"what is kept nowhere", with(`"previous_response_id":"resp_1"`), "previous_response_id", "'resp_1' not found"},
		{"include is a string", with(`"include":"x"`), "include", "an array of strings"},
		{"a format without a name", with(`"text":{"format":{"type":"json_schema","schema":{}}}`), "text.format.name", "Missing"},
		{"a choice alone", with(`"tool_choice":"required"`), "tool_choice", "must be specified with 'tools'"},
		{"a tool of Chat", tool(`"type":"function","function":{"name":"a"}`), "tools[0].name", "Missing"},
		{"tool without type", tool(`"name":"a"`), "tools[0].type", "Missing"},
		{"tool name", tool(`"type":"function","name":"a.b"`), "tools[0].name", "does not match pattern"},
		{"tool schema", tool(`"type":"function","name":"a","strict":false,"parameters":{"type":"array"}`), "tools[0].parameters", `got 'type: "array"'`},
		{"a schema that is not strict", tool(`"type":"function","name":"a","parameters":{"type":"object"}`), "tools[0].parameters", "'additionalProperties' is required"},
		{"an item that is a string", in(`"x"`), "input[0]", "expected an object"},
		{"an item of no kind", in(`{"x":1}`), "input[0].type", "Missing"},
		{"an item of another kind", in(`{"type":"tool"}`), "input[0]", "Invalid value: 'tool'"},
		{"a role", in(`{"role":"tool","content":"x"}`), "input[0].role", "Invalid value: 'tool'"},
		{"no content", in(`{"role":"user"}`), "input[0].content", "Missing"},
		{"a part of Chat", in(user, `{"role":"user","content":[{"type":"text","text":"x"}]}`), "input[1].content[0]", "Invalid value: 'text'"},
		{"a part of the user", in(`{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`), "input[0].content[0]", "'output_text'"},
		{"an image that can not be read", in(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,QlJPS0VO"}]}`), "input", "does not represent a valid image"},
		{"an image of a result", in(user, call, `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/png;base64,QlJPS0VO"}]}`), "input", "does not represent a valid image"},
		{"a call without its output", in(user, call), "input", "No tool output found for function call c1."},
		{"an output without its call", in(user, out), "input", "No tool call found for function call output with call_id c1."},
		{"call without id", in(user, `{"type":"function_call","name":"a","arguments":"{}"}`), "input[1].call_id", "Missing"},
		{"call without name", in(user, `{"type":"function_call","call_id":"c1","arguments":"{}"}`), "input[1].name", "Missing"},
		{"arguments are an object", in(user, `{"type":"function_call","call_id":"c1","name":"a","arguments":{}}`), "input[1].arguments", "expected a string, but got an object"},
		{"a long id", in(user, strings.Replace(call, "c1", strings.Repeat("c", 65), 1)), "input[1].call_id", "maximum length 64"},
		{"an id of another kind", in(user, withID(call, "toolu_1"), out), "input[1].id", "begins with 'fc'"},
		{"output without id", in(user, call, `{"type":"function_call_output","output":"x"}`), "input[2].call_id", "Missing"},
		{"no output", in(user, call, `{"type":"function_call_output","call_id":"c1"}`), "input[2].output", "Missing"},
		{"reasoning without a summary", in(user, `{"type":"reasoning","encrypted_content":"x"}`, said), "input[1].summary", "Missing"},
		{"reasoning that was changed", in(user, strings.Replace(think, "gAAAAAB", "gAAAAABx", 1), said), "", "could not be verified. Reason: Encrypted content could not be decrypted"},
		{"reasoning of another item", in(user, strings.Replace(think, `"rs_0`, `"rs_1`, 1), said), "", "item_id did not match"},
		{"reasoning that leads nowhere", in(user, think, user), "input", "without its required following item"},
		{"reasoning at the end", in(user, think), "input", "without its required following item"},
		{"a text without its reasoning", in(user, withID(said, "msg_"+of+"r1")), "input", "'msg_" + of + "r1' of type 'message' was provided without its required 'reasoning' item: 'rs_" + of + "'"},
		{"a call without its reasoning", in(user, withID(call, "fc_"+of+"r1"), out), "input", "of type 'function_call' was provided without its required 'reasoning' item"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := post(h, "/v1/responses", tt.body)
			e := gjson.Get(w.Body.String(), "error")
			if w.Code != 400 || e.Get("type").String() != "invalid_request_error" || e.Get("param").String() != tt.param || !strings.Contains(e.Get("message").String(), tt.msg) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	for name, body := range map[string]string{
		"reasoning that is not there":  in(user, `{"type":"reasoning","id":"rs_1","summary":[]}`, said),
		"an item that is not there":    in(user, `{"type":"item_reference","id":"msg_1"}`),
		"reasoning with a null inside": in(user, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`, said),
	} {
		if w := post(h, "/v1/responses", body); w.Code != 404 || !strings.Contains(w.Body.String(), "Items are not persisted") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	for name, body := range map[string]string{
		"a string":                with(`"stream":null`),
		"roles":                   in(`{"role":"developer","content":"s"}`, `{"type":"message","role":"system","content":[{"type":"input_text","text":"s"}]}`, user),
		"a whole reply":           in(user, think, withID(said, "msg_"+of+"r1"), withID(call, "fc_"+of+"r2"), out),
		"a reply without ids":     in(user, said, call, out, user),
		"ids without reasoning":   in(user, withID(said, "msg_"+of+"n0"), withID(call, "fc_"+of+"n1"), out),
		"two outputs":             in(user, call, strings.ReplaceAll(call, "c1", "c2"), strings.ReplaceAll(out, "c1", "c2"), out),
		"a strict tool":           tool(`"type":"function","name":"a","parameters":{"type":"object","properties":{},"additionalProperties":false}`),
		"a tool that is not":      tool(`"type":"function","name":"a","strict":false,"parameters":{"type":"object"}`),
		"a tool of the service":   tool(`"type":"web_search"`),
		"a choice without a tool": with(`"tool_choice":"none"`),
		"an image":                in(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_text","text":"x"}]}`),
	} {
		if w := post(h, "/v1/responses", body); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func resRequest(text string) sdk.ResponseNewParams {
	tool := func(name string) sdk.ToolUnionParam {
		return sdk.ToolUnionParam{OfFunction: &sdk.FunctionToolParam{Name: name, Strict: openai.Bool(false), Parameters: map[string]any{"type": "object"}}}
	}
	return sdk.ResponseNewParams{Model: "m", Store: openai.Bool(false), Instructions: openai.String("be brief"),
		Include: []sdk.ResponseIncludable{"reasoning.encrypted_content"}, Reasoning: shared.ReasoningParam{Summary: "auto"},
		Tools: []sdk.ToolUnionParam{tool("grep"), tool("glob")},
		Input: sdk.ResponseNewParamsInputUnion{OfInputItemList: sdk.ResponseInputParam{sdk.ResponseInputItemParamOfMessage(text, sdk.EasyInputMessageRoleUser)}}}
}

// resCall makes a call, streamed or not, and returns the response and its streamed text.
func resCall(ctx context.Context, c openai.Client, p sdk.ResponseNewParams, stream bool) (*sdk.Response, string, error) {
	if !stream {
		r, err := c.Responses.New(ctx, p)
		if err != nil {
			return nil, "", err
		}
		return r, r.OutputText(), nil
	}
	s := c.Responses.NewStreaming(ctx, p)
	defer s.Close()
	var end *sdk.Response
	text, number := "", int64(0)
	for s.Next() {
		e := s.Current()
		if e.SequenceNumber != number {
			return nil, "", fmt.Errorf("event %d is numbered %d", number, e.SequenceNumber)
		}
		number++
		switch e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.completed":
			r := e.AsResponseCompleted().Response
			end = &r
		}
	}
	if err := s.Err(); err != nil {
		return nil, "", err
	}
	if end == nil {
		return nil, "", errors.New("the stream has no end")
	}
	return end, text, nil
}

func TestResponsesSDK(t *testing.T) {
	for _, stream := range []bool{false, true} {
		c := oaiClient(t, sdkScript)
		p := resRequest("x")
		r, text, err := resCall(t.Context(), c, p, stream)
		if err != nil {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if len(r.Output) != 4 || text != `I look for "x".` || r.OutputText() != text || r.Status != "completed" || r.Usage.InputTokens == 0 {
			t.Fatalf("stream %v: first response %s", stream, r.RawJSON())
		}
		if th := r.Output[0].AsReasoning(); len(th.Summary) != 1 || th.Summary[0].Text != "Let me see." || th.EncryptedContent != seal(th.ID, "Let me see.") {
			t.Errorf("stream %v: reasoning %+v", stream, th)
		}
		list := p.Input.OfInputItemList
		reasoning, said := r.Output[0].AsReasoning().ToParam(), r.Output[1].AsMessage().ToParam()
		list = append(list, sdk.ResponseInputItemUnionParam{OfReasoning: &reasoning}, sdk.ResponseInputItemUnionParam{OfOutputMessage: &said})
		for i, item := range r.Output[2:] {
			call := item.AsFunctionCall()
			if want := []string{`{"pattern":"a\nb","n":3}`, `{"pattern":"*"}`}[i]; call.Arguments != want || call.CallID == "" {
				t.Errorf("stream %v: call %+v", stream, call)
			}
			param := call.ToParam()
			list = append(list, sdk.ResponseInputItemUnionParam{OfFunctionCall: &param})
		}
		for _, item := range r.Output[2:] {
			result := sdk.ResponseInputItemParamOfFunctionCallOutput("found it")
			result.OfFunctionCallOutput.CallID = openai.String(item.AsFunctionCall().CallID)
			list = append(list, result)
		}
		p.Input.OfInputItemList = list
		r, text, err = resCall(t.Context(), c, p, stream)
		if err != nil {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if text != "grep=found it glob=found it " || r.OutputText() != text {
			t.Errorf("stream %v: second response %s", stream, r.RawJSON())
		}
		if u := r.Usage; u.InputTokens != 16 || u.OutputTokens != 7 || u.TotalTokens != 23 || u.InputTokensDetails.CachedTokens != 5 {
			t.Errorf("stream %v: usage %+v", stream, u)
		}
	}
}

func TestResponsesSDKErrors(t *testing.T) {
	for _, stream := range []bool{false, true} {
		c := oaiClient(t, sdkScript)
		_, _, err := resCall(t.Context(), c, resRequest("fail"), stream)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != 429 || e.Code != "rate_limit_exceeded" || e.Response.Header.Get("Retry-After") != "7" {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if _, text, err := resCall(t.Context(), c, resRequest("fail"), stream); err != nil || text != "recovered" {
			t.Errorf("stream %v: second attempt %q, %v", stream, text, err)
		}
		if _, _, err := resCall(t.Context(), c, resRequest("cut"), stream); err == nil {
			t.Errorf("stream %v: a dropped connection gave no error", stream)
		}
	}
}

// Azure's paths need a key, a version where they have one, and say the deployment.
func TestAzurePaths(t *testing.T) {
	srv := httptest.NewServer(New(Options{Scripts: []*script.Script{mustScript(t, "models: [mine, m]\nturns: [{text: \"hi\"}]")}}))
	t.Cleanup(srv.Close)
	const res, chat = `{"model":"m","input":"x"}`, `{"messages":[{"role":"user","content":"x"}]}`
	for _, tt := range []struct {
		path, body, header string
		status             int
		says               string
	}{
		{"/openai/v1/responses", res, "Api-Key", 200, `"model":"m"`},
		{"/openai/v1/responses?api-version=preview", res, "Authorization", 200, `"model":"m"`},
		{"/openai/v1/responses", res, "", 401, "Access denied due to invalid subscription key"},
		{"/openai/v1/chat/completions", `{"model":"m",` + chat[1:], "Api-Key", 200, "chat.completion"},
		{"/openai/v1/models", "", "Api-Key", 405, "use GET"},
		{"/openai/responses?api-version=2025-04-01-preview", res, "Api-Key", 200, `"model":"m"`},
		{"/openai/responses?api-version=2024-12-01-preview", res, "Api-Key", 400, "enabled only for api-version 2025-03-01-preview and later"},
		{"/openai/responses", res, "Api-Key", 404, "Resource not found"},
		{"/openai/deployments/mine/chat/completions?api-version=2024-10-21", chat, "Api-Key", 200, `"model":"mine"`},
		{"/openai/deployments/mine/chat/completions", chat, "Api-Key", 404, "Resource not found"},
		{"/openai/deployments/nobody/chat/completions?api-version=2024-10-21", chat, "Api-Key", 404, "does not exist"},
		{"/openai/deployments/mine/audio?api-version=2024-10-21", chat, "Api-Key", 404, "Resource not found"},
		{"/openai/files?api-version=2024-10-21", chat, "Api-Key", 404, "Resource not found"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.header != "" {
			r.Header.Set(tt.header, "Bearer k")
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		_ = w.Write(&b)
		if w.StatusCode != tt.status || !strings.Contains(b.String(), tt.says) {
			t.Errorf("%s: %s", tt.path, b.String())
		}
	}
	// And with the official SDK.
	c := openai.NewClient(oaioption.WithBaseURL(srv.URL+"/openai/v1"), oaioption.WithHeader("Api-Key", "k"), oaioption.WithMaxRetries(0))
	if _, text, err := resCall(t.Context(), c, resRequest("x"), true); err != nil || text != "hi" {
		t.Errorf("%q, %v", text, err)
	}
}

// FuzzResponses looks for an input that the simulator panics at.
func FuzzResponses(f *testing.F) {
	f.Add(`{"type":"reasoning","summary":[],"encrypted_content":"gAAAAABx.y"}`)
	f.Add(`{"type":"function_call","call_id":"c","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}`)
	f.Add(`{"role":"assistant","content":[3]},4`)
	h := New(Options{})
	f.Fuzz(func(t *testing.T, items string) {
		if w := post(h, "/v1/responses", `{"model":"m","stream":true,"input":[`+items+`]}`); w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
