package gemini

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

func body(t testing.TB, req *model.Request) string {
	t.Helper()
	p, err := New(Config{})
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

func TestGeneration(t *testing.T) {
	for id, want := range map[string]int{"gemini-2.5-flash": 2, "gemini-3-pro-preview": 3, "gemini-3.8-flash": 3, "gemini-4-argon": 4, "models/gemini-4-argon": 4,
		"gemini-flash-latest": 1024, "gemma-3-27b-it": 0, "x": 0, "": 0} {
		if got := generation(id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}

func TestBody(t *testing.T) {
	half := 0.5
	hi := []message.Message{message.User("hi")}
	const user = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	tool := []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object"}`)}}
	const tools = `"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}}]}],`
	schema := json.RawMessage(`{"type":"object"}`)
	config := func(s string) string { return `{` + user + `,"generationConfig":{` + s + `}}` }
	thinking := func(s string) string { return config(`"thinkingConfig":{` + s + `}`) }
	for _, tt := range []struct {
		name string
		req  model.Request
		want string
	}{
		{"least", model.Request{Model: "m", Messages: hi}, config("")},
		{"system", model.Request{Model: "m", Messages: hi, System: []model.SystemPart{{Text: "a", Cache: true}, {Text: " "}, {Text: "b"}}},
			`{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]},` + user + `,"generationConfig":{}}`},
		{"limits", model.Request{Model: "gemini-2.5-flash", Messages: hi, MaxTokens: 9, Temperature: &half, TopP: &half, Stop: []string{"a", "b"}, SessionID: "s"},
			config(`"maxOutputTokens":9,"temperature":0.5,"topP":0.5,"stopSequences":["a","b"]`)},
		{"models that do not sample", model.Request{Model: "gemini-4-argon", Messages: hi, Temperature: &half, TopP: &half}, config("")},
		{"tools", model.Request{Model: "m", Messages: hi, Tools: append(tool[:1:1], model.ToolSpec{Name: "g", Description: "d"}), SingleToolCall: true},
			`{"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}},{"name":"g","description":"d"}]}],` + user + `,"generationConfig":{}}`},
		{"a tool that takes anything", model.Request{Model: "m", Messages: hi, Tools: []model.ToolSpec{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"x":true}}`)}}},
			`{"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"x":{}}}}]}],` + user + `,"generationConfig":{}}`},
		{"no tool", model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceNone},
			`{` + tools + `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},` + user + `,"generationConfig":{}}`},
		{"some tool", model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: model.ToolChoiceRequired},
			`{` + tools + `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},` + user + `,"generationConfig":{}}`},
		{"this tool", model.Request{Model: "m", Messages: hi, Tools: tool, ToolChoice: "f"},
			`{` + tools + `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},` + user + `,"generationConfig":{}}`},
		{"a choice without tools", model.Request{Model: "m", Messages: hi, ToolChoice: model.ToolChoiceRequired}, config("")},
		{"json", model.Request{Model: "m", Messages: hi, JSON: true}, config(`"responseMimeType":"application/json"`)},
		{"schema", model.Request{Model: "m", Messages: hi, Schema: schema}, config(`"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}`)},
		{"json beside tools", model.Request{Model: "gemini-3.8-flash", Messages: hi, JSON: true, Tools: tool},
			`{` + tools + user + `,"generationConfig":{"responseMimeType":"application/json"}}`},
		{"json beside tools of an older model", model.Request{Model: "gemini-2.5-pro", Messages: hi, JSON: true, Tools: tool, System: []model.SystemPart{{Text: "a"}}},
			`{"systemInstruction":{"parts":[{"text":"a"},{"text":"Answer with one JSON value and nothing else."}]},` + tools + user + `,"generationConfig":{}}`},

		{"thinking off", model.Request{Model: "gemini-2.5-flash", Messages: hi, Thinking: model.ThinkingOff}, thinking(`"thinkingBudget":0`)},
		{"thinking as little as can be", model.Request{Model: "gemini-2.5-pro", Messages: hi, Thinking: model.ThinkingOff}, thinking(`"thinkingBudget":128`)},
		{"thinking by the model", model.Request{Model: "gemini-2.5-pro", Messages: hi, Thinking: model.ThinkingAdaptive}, thinking(`"thinkingBudget":-1,"includeThoughts":true`)},
		{"thinking by budget", model.Request{Model: "gemini-2.5-pro", Messages: hi, Thinking: model.ThinkingHigh}, thinking(`"thinkingBudget":16384,"includeThoughts":true`)},
		{"thinking by a large budget", model.Request{Model: "gemini-2.5-flash", Messages: hi, Thinking: model.ThinkingXHigh}, thinking(`"thinkingBudget":24576,"includeThoughts":true`)},
		{"thinking leaves room for the answer", model.Request{Model: "gemini-2.5-pro", Messages: hi, Thinking: model.ThinkingHigh, MaxTokens: 4096},
			config(`"maxOutputTokens":4096,"thinkingConfig":{"thinkingBudget":3072,"includeThoughts":true}`)},
		{"thinking by level", model.Request{Model: "gemini-3.6-flash", Messages: hi, Thinking: model.ThinkingMinimal}, thinking(`"thinkingLevel":"MINIMAL","includeThoughts":true`)},
		{"the nearest level", model.Request{Model: "gemini-3.8-flash", Messages: hi, Thinking: model.ThinkingMinimal}, thinking(`"thinkingLevel":"LOW","includeThoughts":true`)},
		{"the highest level", model.Request{Model: "gemini-4-hydrogen", Messages: hi, Thinking: model.ThinkingXHigh}, thinking(`"thinkingLevel":"XHIGH","includeThoughts":true`)},
		{"the highest level there is", model.Request{Model: "gemini-4-argon", Messages: hi, Thinking: model.ThinkingXHigh}, thinking(`"thinkingLevel":"HIGH","includeThoughts":true`)},
		{"the most", model.Request{Model: "gemini-4-hydrogen", Messages: hi, Thinking: model.ThinkingMax}, thinking(`"thinkingLevel":"XHIGH","includeThoughts":true`)},
		{"unknown model, the most", model.Request{Model: "gemini-9-x", Messages: hi, Thinking: model.ThinkingMax}, thinking(`"thinkingLevel":"HIGH","includeThoughts":true`)},
		{"off, of a model that always thinks", model.Request{Model: "gemini-4-argon", Messages: hi, Thinking: model.ThinkingOff}, thinking(`"thinkingLevel":"LOW"`)},
		{"adaptive level", model.Request{Model: "gemini-4-argon", Messages: hi, Thinking: model.ThinkingAdaptive}, thinking(`"includeThoughts":true`)},
		{"unknown model", model.Request{Model: "gemini-9-x", Messages: hi, Thinking: model.ThinkingMedium}, thinking(`"thinkingLevel":"MEDIUM","includeThoughts":true`)},
		{"unknown model, off", model.Request{Model: "gemini-9-x", Messages: hi, Thinking: model.ThinkingOff}, thinking(`"thinkingLevel":"LOW"`)},
		{"unknown model, as little as can be", model.Request{Model: "gemini-flash-latest", Messages: hi, Thinking: model.ThinkingMinimal}, thinking(`"thinkingLevel":"LOW","includeThoughts":true`)},
		{"unknown model, as much as can be", model.Request{Model: "gemini-9-x", Messages: hi, Thinking: model.ThinkingXHigh}, thinking(`"thinkingLevel":"HIGH","includeThoughts":true`)},
		{"a budget that all can have", model.Request{Model: "gemini-2.5-flash-lite", Messages: hi, Thinking: model.ThinkingHigh, MaxTokens: 1600},
			config(`"maxOutputTokens":1600,"thinkingConfig":{"thinkingBudget":576,"includeThoughts":true}`)},
		{"no room for thoughts", model.Request{Model: "gemini-2.5-flash-lite", Messages: hi, Thinking: model.ThinkingHigh, MaxTokens: 1200},
			config(`"maxOutputTokens":1200,"thinkingConfig":{"thinkingBudget":0}`)},
		{"no room for thoughts of one that always thinks", model.Request{Model: "gemini-2.5-pro", Messages: hi, Thinking: model.ThinkingHigh, MaxTokens: 100},
			config(`"maxOutputTokens":100,"thinkingConfig":{"thinkingBudget":128,"includeThoughts":true}`)},
		{"names begin with a letter", model.Request{Model: "m", Messages: hi, Tools: []model.ToolSpec{{Name: "-g"}, {Name: "3d"}}, ToolChoice: "3d"},
			`{"tools":[{"functionDeclarations":[{"name":"_-g"},{"name":"_3d"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["_3d"]}},` + user + `,"generationConfig":{}}`},
		{"unknown old model", model.Request{Model: "gemini-2.9", Messages: hi, Thinking: model.ThinkingLow}, thinking(`"thinkingBudget":2048,"includeThoughts":true`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := body(t, &tt.req); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	p, _ := New(Config{})
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if _, failed := p.encode(&model.Request{Model: "m", Messages: hi, TopP: &bad}, &model.Info{}); failed == nil || failed.Class != model.ClassInvalid {
			t.Errorf("%v: %v", bad, failed)
		}
	}
}

func TestHiddenThoughts(t *testing.T) {
	p, err := New(Config{Options: &Options{HideThoughts: true}})
	if err != nil {
		t.Fatal(err)
	}
	info := p.catalogue.Lookup("gemini", "gemini-3.8-flash")
	b, _ := p.encode(&model.Request{Model: info.ID, Messages: []message.Message{message.User("hi")}, Thinking: model.ThinkingLow}, &info)
	if !strings.Contains(string(b), `"thinkingConfig":{"thinkingLevel":"LOW"}`) {
		t.Errorf("%s", b)
	}
}

func TestMessages(t *testing.T) {
	const old, modern = "gemini-2.5-pro", "gemini-3.8-flash"
	image := message.Image("aGk=", "image/png")
	const inline = `{"inlineData":{"mimeType":"image/png","data":"aGk="}}`
	call := func(id, sig string) message.Block {
		c := message.Call(id, "f", json.RawMessage(`{"a":1}`))
		c.Signature = sig
		return c
	}
	think := func(sig string) message.Block {
		return message.Block{Type: message.BlockThinking, Text: "hm", Signature: sig}
	}
	own := func(blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks, API: API, Provider: "gemini", Model: modern}
	}
	foreign := func(blocks ...message.Block) message.Message {
		return message.Message{Role: message.RoleAssistant, Content: blocks, API: "anthropic-messages", Provider: "anthropic", Model: "claude-opus-5"}
	}
	of := func(m message.Message, id string) message.Message { m.Model = id; return m }
	const gone = `{"role":"user","parts":[{"text":"(What was said before is missing.)"}]},`
	signedText := message.Block{Type: message.BlockText, Text: "a", Signature: "c2ln"}
	for _, tt := range []struct {
		name, model string
		msgs        []message.Message
		want        string
	}{
		{"parts", modern, []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("a"), image, message.Text(" "), message.Text("b")}}},
			`{"role":"user","parts":[{"text":"a"},` + inline + `,{"text":"b"}]}`},
		{"a signature goes back on its part", modern, []message.Message{own(think(""), signedText, call("c1", "c2ln"), call("c2", ""))},
			gone + `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a","thoughtSignature":"c2ln"},{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"c2","name":"f","args":{"a":1}}}]}`},
		{"signed nothing is kept, unsigned is not", modern, []message.Message{own(message.Block{Type: message.BlockText, Signature: "c2ln"}, message.Text(""))},
			gone + `{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"}]}`},
		{"no signature that the API could not read", modern, []message.Message{own(message.Block{Type: message.BlockText, Text: "a", Signature: "not base64!"}, call("c1", "?"))},
			gone + `{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"skip_thought_signature_validator"}]}`},
		{"another model's thinking is text, its calls carry Google's word", modern, []message.Message{foreign(think("EqQB"), call("toolu_1", "x"), call("toolu_2", ""))},
			gone + `{"role":"model","parts":[{"text":"hm"},{"functionCall":{"id":"toolu_1","name":"f","args":{"a":1}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"toolu_2","name":"f","args":{"a":1}}}]}`},
		{"also of another Gemini", modern, []message.Message{of(own(signedText, call("c1", "c2ln")), "gemini-4-argon")},
			gone + `{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"skip_thought_signature_validator"}]}`},
		{"older models know neither ids nor signatures of calls", old, []message.Message{foreign(call("toolu_1", "")), message.ToolResult("toolu_1", "f", false, message.Text("r"))},
			gone + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}}]}`},
		{"results come in the order of their calls", old, []message.Message{foreign(call("c1", ""), call("c2", "")), message.ToolResult("c2", "f", false, message.Text("b")), message.ToolResult("c1", "f", false, message.Text("a"))},
			gone + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"f","args":{"a":1}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"a"}}},{"functionResponse":{"name":"f","response":{"output":"b"}}}]}`},
		{"names of the history begin with a letter", old, []message.Message{foreign(message.Call("c1", "3d", json.RawMessage(`{}`))), message.ToolResult("c1", "3d", false, message.Text("a"))},
			gone + `{"role":"model","parts":[{"functionCall":{"name":"_3d","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"_3d","response":{"output":"a"}}}]}`},
		{"results of a batch are one message", modern, []message.Message{message.User("x"), message.ToolResult("c1", "f", false, message.Text("a")), message.ToolResult("c2", "g", true, message.Text("b"))},
			`{"role":"user","parts":[{"text":"x"}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"a"}}},{"functionResponse":{"id":"c2","name":"g","response":{"error":"b"}}}]}`},
		{"images are parts of their result", modern, []message.Message{message.ToolResult("c1", "f", false, message.Text("a"), image), message.ToolResult("c2", "f", false, image)},
			`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"a"},"parts":[` + inline + `]}},{"functionResponse":{"id":"c2","name":"f","response":{"output":"(see the attached image)"},"parts":[` + inline + `]}}]}`},
		{"or follow the batch", old, []message.Message{message.ToolResult("c1", "f", false, message.Text("a"), image), message.ToolResult("c2", "f", false, image), message.User("b")},
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"a"}}},{"functionResponse":{"name":"f","response":{"output":"(see the attached image)"}}}]},` +
				`{"role":"user","parts":[{"text":"Images of the tool results above:"},` + inline + `,` + inline + `]},{"role":"user","parts":[{"text":"b"}]}`},
		{"broken arguments", old, []message.Message{own(message.Call("c1", "f", json.RawMessage(`{"a":`)))},
			gone + `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := `{"contents":[` + tt.want + `],"generationConfig":{}}`
			if got := body(t, &model.Request{Model: tt.model, Messages: tt.msgs}); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
