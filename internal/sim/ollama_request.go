package sim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// ollama speaks /api/chat.
type ollama struct{}

// ollBad is a 400 of Ollama.
func ollBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// ollType is what Go's decoder, which Ollama reads requests with, says of a value of a
// wrong type.
func ollType(v gjson.Result, field, want string) *apiError {
	got := "object"
	switch {
	case v.Type == gjson.String:
		got = "string"
	case v.Type == gjson.Number:
		got = "number"
	case v.IsBool():
		got = "bool"
	case v.IsArray():
		got = "array"
	}
	return ollBad("json: cannot unmarshal %s into Go struct field ChatRequest.%s of type %s", got, field, want)
}

// parse implements protocol.
func (ollama) parse(_ *http.Request, body string, _ bool) (*request, *apiError) {
	root := gjson.Parse(body)
	switch {
	case body == "":
		return nil, ollBad("missing request body")
	case !gjson.Valid(body) || !root.IsObject():
		return nil, ollBad("invalid character '%c' looking for beginning of value", body[0])
	}
	p := ollParser{req: &request{}}
	p.req.stream = true // unless it says otherwise
	var fail *apiError
	root.ForEach(func(key, v gjson.Result) bool {
		fail = p.top(key.String(), v)
		return fail == nil
	})
	if fail != nil {
		return nil, fail
	}
	if p.req.Model == "" {
		return nil, ollBad("model is required")
	}
	p.req.NoTools = p.tools == 0
	p.req.prefix.begin(p.req.Model)
	p.req.prefix.none = true // it says nothing of what it keeps
	p.req.prefix.stream(p.toolsRaw)
	if fail := p.conversation(); fail != nil {
		return nil, fail
	}
	p.req.PromptTokens = script.Tokens(p.req.prefix.size)
	return p.req, nil
}

// ollParser is a request being read.
type ollParser struct {
	req      *request
	messages gjson.Result
	toolsRaw string
	tools    int
}

// top reads one key of the request; what Ollama does not know it ignores.
func (p *ollParser) top(key string, v gjson.Result) *apiError {
	if v.Type == gjson.Null {
		return nil
	}
	switch key {
	case "model":
		if v.Type != gjson.String {
			return ollType(v, key, "string")
		}
		p.req.Model = v.String()
	case "messages":
		if !v.IsArray() {
			return ollType(v, key, "[]api.Message")
		}
		p.messages = v
	case "stream":
		if !v.IsBool() {
			return ollType(v, key, "bool")
		}
		p.req.stream = v.Bool()
	case "think":
		switch s := v.String(); {
		case v.IsBool():
			p.req.NoThinking = !v.Bool()
		case v.Type != gjson.String:
			return ollBad("think must be a boolean or string (\"high\", \"medium\", \"low\", true, or false)")
		case s != "high" && s != "medium" && s != "low":
			return ollBad("invalid think value: %q (must be \"high\", \"medium\", \"low\", true, or false)", s)
		}
	case "format":
		if !v.IsObject() && v.String() != "json" && v.String() != "" {
			return ollBad("invalid format: %s; expected \"json\" or a valid JSON Schema object", v.Raw)
		}
	case "options":
		if !v.IsObject() {
			return ollType(v, key, "map[string]interface {}")
		}
		p.req.MaxTokens = max(0, int(min(v.Get("num_predict").Num, 1<<30)))
		p.req.Stop = strs(v.Get("stop"))
		if stop := v.Get("stop"); stop.Exists() && !stop.IsArray() {
			return ollBad("option \"stop\" must be of type array")
		}
	case "tools":
		if !v.IsArray() {
			return ollType(v, key, "api.Tools")
		}
		p.toolsRaw = v.Raw
		return p.toolList(v)
	}
	return nil
}

func (p *ollParser) toolList(v gjson.Result) (fail *apiError) {
	v.ForEach(func(_, t gjson.Result) bool {
		params := t.Get("function.parameters")
		switch {
		case params.Exists() && !params.IsObject():
			fail = ollType(params, "tools.function.parameters", "api.ToolFunctionParameters")
		case params.Get("type").Exists() && params.Get("type").Type != gjson.String:
			fail = ollType(params.Get("type"), "tools.function.parameters.type", "string")
		default:
			fail = ollProperties(params)
		}
		p.tools++
		return fail == nil
	})
	return fail
}

// ollProperties refuses properties that are no objects: the schema `true` is none.
func ollProperties(params gjson.Result) (fail *apiError) {
	params.Get("properties").ForEach(func(_, p gjson.Result) bool {
		if !p.IsObject() {
			fail = ollType(p, "tools.function.parameters.properties", "api.ToolProperty")
			return false
		}
		fail = ollProperties(p)
		return fail == nil
	})
	return fail
}

// conversation reads the messages. Ollama puts them into the model's template as they
// are: results need no calls.
func (p *ollParser) conversation() (fail *apiError) {
	var open []script.Call // without a result
	p.messages.ForEach(func(_, m gjson.Result) bool {
		p.req.prefix.stream(m.Raw)
		content := m.Get("content")
		if content.Exists() && content.Type != gjson.String && content.Type != gjson.Null {
			fail = ollType(content, "messages.content", "string")
			return false
		}
		if fail = ollImages(m.Get("images")); fail != nil {
			return false
		}
		text := content.String()
		switch role := m.Get("role").String(); role {
		case "system":
			p.req.System = append(p.req.System, text)
		case "assistant":
			msg := script.Message{Role: message.RoleAssistant, Text: text}
			if msg.Calls, fail = ollCalls(m.Get("tool_calls"), len(p.req.Messages)); fail != nil {
				return false
			}
			open = msg.Calls
			p.req.Messages = append(p.req.Messages, msg)
		case "tool":
			msg := script.Message{Role: message.RoleToolResult, Text: text, Name: m.Get("tool_name").String(), CallID: m.Get("tool_call_id").String()}
			at := slices.IndexFunc(open, func(c script.Call) bool {
				return msg.CallID != "" && c.ID == msg.CallID || msg.CallID == "" && (msg.Name == "" || c.Name == msg.Name)
			})
			if at >= 0 {
				msg.CallID, msg.Name = open[at].ID, open[at].Name
				open = slices.Delete(slices.Clone(open), at, at+1)
			}
			p.req.Messages = append(p.req.Messages, msg)
		default:
			p.req.Messages = append(p.req.Messages, script.Message{Role: message.RoleUser, Text: text})
		}
		return true
	})
	return fail
}

func ollCalls(v gjson.Result, index int) (calls []script.Call, fail *apiError) {
	v.ForEach(func(_, c gjson.Result) bool {
		args := c.Get("function.arguments")
		if args.Exists() && !args.IsObject() {
			fail = ollType(args, "messages.tool_calls.function.arguments", "map[string]interface {}")
		}
		id := c.Get("id").String()
		if id == "" {
			id = fmt.Sprintf("unnamed_%d_%d", index, len(calls))
		}
		calls = append(calls, script.Call{ID: id, Name: c.Get("function.name").String()})
		return fail == nil
	})
	return calls, fail
}

func ollImages(v gjson.Result) (fail *apiError) {
	v.ForEach(func(_, image gjson.Result) bool {
		raw, err := base64.StdEncoding.DecodeString(image.String())
		switch {
		case err != nil:
			fail = ollBad("%v", err)
		case len(raw) >= 6 && string(raw[:6]) == "BROKEN":
			fail = &apiError{status: http.StatusInternalServerError, message: "Failed to create new sequence: failed to process inputs: image: unknown format"}
		}
		return fail == nil
	})
	return fail
}
