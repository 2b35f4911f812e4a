package sim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// openAI speaks Chat Completions.
type openAI struct{}

// oaiBad is a 400 of OpenAI.
func oaiBad(param, code, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", param: param, code: code,
		message: fmt.Sprintf(format, args...)}
}

// parse implements protocol.
func (openAI) parse(r *http.Request, body string, _ bool) (*request, *apiError) {
	root := gjson.Parse(body)
	if badText(body) >= 0 || !gjson.Valid(body) || !root.IsObject() {
		return nil, oaiBad("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
	}
	p := oaiParser{req: &request{}}
	var fail *apiError
	root.ForEach(func(key, v gjson.Result) bool {
		fail = p.top(key.String(), v)
		return fail == nil
	})
	if fail != nil {
		return nil, fail
	}
	if deployment := r.PathValue("deployment"); deployment != "" { // Azure: the path says it
		p.req.Model = deployment
	}
	switch {
	case p.req.Model == "":
		return nil, oaiBad("", "", "you must provide a model parameter")
	case !p.messages.Exists():
		return nil, oaiBad("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	case p.streamOptions && !p.req.stream:
		return nil, oaiBad("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case p.maxTokens && p.maxCompletion:
		return nil, oaiBad("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case p.choice && p.tools == 0:
		return nil, oaiBad("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	case p.parallel && p.tools == 0:
		return nil, oaiBad("parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	p.req.NoTools = p.req.NoTools || p.tools == 0
	p.req.prefix.begin(p.req.Model)
	if fail := p.caching.apply(p.req); fail != nil {
		return nil, fail
	}
	if p.toolsRaw != "" {
		p.req.prefix.stream(p.toolsRaw)
	}
	p.req.prefix.stream(p.schemaRaw)
	if fail := p.conversation(); fail != nil {
		return nil, fail
	}
	p.req.PromptTokens = script.Tokens(p.req.prefix.size)
	return p.req, nil
}

// oaiParser is a request being read.
type oaiParser struct {
	req                      *request
	messages                 gjson.Result
	toolsRaw, schemaRaw      string
	caching                  oaiCaching
	tools                    int
	choice, parallel         bool
	streamOptions            bool
	maxTokens, maxCompletion bool
}

// top reads one key of the request.
func (p *oaiParser) top(key string, v gjson.Result) *apiError {
	wrong := func(want string) *apiError {
		return oaiBad(key, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", key, want, jsonType(v))
	}
	if v.Type == gjson.Null {
		return nil // null is as good as nothing
	}
	switch key {
	case "model":
		if v.Type != gjson.String {
			return wrong("a string")
		}
		p.req.Model = v.String()
	case "messages":
		if !v.IsArray() {
			return wrong("an array of objects")
		}
		p.messages = v
	case "stream":
		if !v.IsBool() {
			return wrong("a boolean")
		}
		p.req.stream = v.Bool()
	case "stream_options":
		if !v.IsObject() {
			return wrong("an object")
		}
		p.streamOptions = true
		p.req.includeUsage = v.Get("include_usage").Bool()
	case "max_tokens", "max_completion_tokens":
		if v.Type != gjson.Number {
			return wrong("an integer")
		}
		if v.Num < 1 {
			return oaiBad(key, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %s instead.", key, v.Raw)
		}
		p.maxTokens = p.maxTokens || key == "max_tokens"
		p.maxCompletion = p.maxCompletion || key != "max_tokens"
		p.req.MaxTokens = int(min(v.Num, 1<<30))
	case "stop":
		p.req.Stop = strs(v)
		if len(p.req.Stop) > 4 {
			return oaiBad("stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(p.req.Stop))
		}
	case "prompt_cache_key":
		p.req.Session = v.String()
	case "prompt_cache_retention", "prompt_cache_options":
		p.caching.read(key, v)
	case "response_format":
		p.schemaRaw = v.Get("json_schema").Raw // it stands ahead of the messages
	case "reasoning_effort":
		p.req.NoThinking = v.String() == "none"
	case "tool_choice":
		p.choice = true
		p.req.NoTools = v.String() == "none"
	case "parallel_tool_calls":
		if !v.IsBool() {
			return wrong("a boolean")
		}
		p.parallel = true
		p.req.OneCall = !v.Bool()
	case "tools":
		if !v.IsArray() {
			return wrong("an array of objects")
		}
		p.toolsRaw = v.Raw
		return p.toolList(v)
	}
	return nil
}

func (p *oaiParser) toolList(v gjson.Result) (fail *apiError) {
	i := 0
	v.ForEach(func(_, t gjson.Result) bool {
		at := fmt.Sprintf("tools[%d]", i)
		i++
		fn := t.Get("function")
		switch typ := t.Get("type").String(); {
		case typ == "":
			fail = oaiBad(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
		case typ != "function":
			// custom tools have no schema to check
		case !fn.Exists():
			fail = oaiBad(at+".function", "missing_required_parameter", "Missing required parameter: '%s.function'.", at)
		default:
			fail = oaiFunction(at, fn)
		}
		return fail == nil
	})
	p.tools = i
	return fail
}

func oaiFunction(at string, fn gjson.Result) *apiError {
	name := fn.Get("name").String()
	if name == "" {
		return oaiBad(at+".function.name", "missing_required_parameter", "Missing required parameter: '%s.function.name'.", at)
	}
	if !idRE.MatchString(name) || len(name) > 64 {
		return oaiBad(at+".function.name", "invalid_value", "Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	}
	if s := fn.Get("parameters"); s.IsObject() && s.Raw != "{}" && s.Get("type").String() != "object" {
		got := s.Get("type").String()
		if got == "" {
			got = "None"
		}
		return oaiBad(at+".function.parameters", "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", name, got)
	}
	return nil
}

// conversation reads the messages.
func (p *oaiParser) conversation() (fail *apiError) {
	names := map[string]string{} // of all calls, by id
	var open []string            // ids without a result, of the newest calls
	last, i := -1, 0             // where those calls are
	orphan := func() *apiError {
		return oaiBad(fmt.Sprintf("messages.[%d].role", last), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	p.messages.ForEach(func(_, m gjson.Result) bool {
		p.req.prefix.stream(m.Raw)
		msg := oaiMessage{index: i}
		if fail = msg.read(m); fail != nil {
			return false
		}
		if msg.role != "tool" && len(open) > 0 {
			fail = orphan()
			return false
		}
		if msg.role != "assistant" {
			p.req.prefix.ending()
		}
		switch msg.role {
		case "system", "developer":
			p.req.System = append(p.req.System, msg.text)
			last = -1
		case "user":
			last = -1
			p.req.Messages = append(p.req.Messages, script.Message{Role: message.RoleUser, Text: msg.text})
		case "assistant":
			last = -1
			for _, c := range msg.calls {
				names[c.ID] = c.Name
				open = append(open, c.ID)
				last = i
			}
			p.req.Messages = append(p.req.Messages, script.Message{Role: message.RoleAssistant, Text: msg.text, Calls: msg.calls})
		case "tool":
			at := -1
			for j, id := range open {
				if id == msg.callID {
					at = j
				}
			}
			switch {
			case last < 0:
				fail = oaiBad(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
				return false
			case at < 0:
				fail = oaiBad(fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", msg.callID)
				return false
			}
			open = append(open[:at:at], open[at+1:]...)
			p.req.Messages = append(p.req.Messages, script.Message{Role: message.RoleToolResult, Text: msg.text, CallID: msg.callID, Name: names[msg.callID]})
		}
		i++
		return true
	})
	switch {
	case fail != nil:
		return fail
	case i == 0:
		return oaiBad("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case len(open) > 0:
		return orphan()
	}
	return nil
}

// oaiMessage is one message being read.
type oaiMessage struct {
	index              int
	role, text, callID string
	calls              []script.Call
	hasContent         bool
}

// read reads a message and checks what can be checked without the others.
func (m *oaiMessage) read(v gjson.Result) *apiError {
	if !v.IsObject() {
		at := m.at()
		return oaiBad(at, "invalid_type", "Invalid type for '%s': expected an object, but got %s instead.", at, jsonType(v))
	}
	var calls gjson.Result
	var fail *apiError
	v.ForEach(func(key, f gjson.Result) bool {
		switch key.String() {
		case "role":
			m.role = f.String()
		case "content":
			if fail == nil {
				fail = oaiImages(m.at(), f)
			}
			m.text, m.hasContent = contentText(f), f.Type != gjson.Null
		case "tool_call_id":
			m.callID = f.String()
		case "tool_calls":
			calls = f
		}
		return true
	})
	switch m.role {
	case "system", "developer", "user", "assistant", "tool":
	case "":
		at := m.at()
		return oaiBad(at+".role", "missing_required_parameter", "Missing required parameter: '%s.role'.", at)
	default:
		return oaiBad(m.at()+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.role)
	}
	if fail != nil {
		return fail
	}
	if fail := m.toolCalls(calls); fail != nil {
		return fail
	}
	switch {
	case m.role == "tool" && m.callID == "":
		at := m.at() + ".tool_call_id"
		return oaiBad(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
	case calls.IsArray() && len(m.calls) == 0:
		at := m.at() + ".tool_calls"
		return oaiBad(at, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	case !m.hasContent && len(m.calls) == 0 && !v.Get("refusal").Exists() && !v.Get("audio").Exists():
		return oaiBad(m.at()+".content", "invalid_type", "Invalid value for 'content': expected a string, got null.")
	}
	return nil
}

// at is the message's place in the request.
func (m *oaiMessage) at() string { return fmt.Sprintf("messages[%d]", m.index) }

// toolCalls reads the calls of an assistant message.
func (m *oaiMessage) toolCalls(calls gjson.Result) (fail *apiError) {
	missing := func(key string) *apiError {
		at := fmt.Sprintf("%s.tool_calls[%d].%s", m.at(), len(m.calls), key)
		return oaiBad(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
	}
	calls.ForEach(func(_, c gjson.Result) bool {
		call := script.Call{ID: c.Get("id").String(), Name: c.Get("function.name").String()}
		if c.Get("type").String() == "custom" {
			call.Name = c.Get("custom.name").String()
		} else if args := c.Get("function.arguments"); args.Type != gjson.String {
			at := fmt.Sprintf("%s.tool_calls[%d].function.arguments", m.at(), len(m.calls))
			fail = oaiBad(at, "invalid_type", "Invalid type for '%s': expected a string, but got %s instead.", at, jsonType(args))
			return false
		}
		switch {
		case call.Name != "" && (!idRE.MatchString(call.Name) || len(call.Name) > 64):
			at := fmt.Sprintf("%s.tool_calls[%d].function.name", m.at(), len(m.calls))
			fail = oaiBad(at, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
		case call.ID == "":
			fail = missing("id")
		case call.Name == "":
			fail = missing("function.name")
		case slices.ContainsFunc(m.calls, func(o script.Call) bool { return o.ID == call.ID }):
			fail = oaiBad(m.at()+".tool_calls", "", "Duplicate value for 'tool_call_id' of '%s' in '%s.tool_calls'.", call.ID, m.at())
		}
		m.calls = append(m.calls, call)
		return fail == nil
	})
	return fail
}

// contentText is the text of a content: a string, or the texts of its parts.
func contentText(v gjson.Result) string {
	if !v.IsArray() {
		return v.String()
	}
	var b strings.Builder
	v.ForEach(func(_, part gjson.Result) bool {
		b.WriteString(part.Get("text").String())
		return true
	})
	return b.String()
}

// strs is a string or a list of strings.
func strs(v gjson.Result) []string {
	if v.Type == gjson.String {
		return []string{v.String()}
	}
	var out []string
	v.ForEach(func(_, s gjson.Result) bool {
		out = append(out, s.String())
		return true
	})
	return out
}

// jsonType names the type of a value as OpenAI does.
func jsonType(v gjson.Result) string {
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return "null"
	case v.IsArray():
		return "an array"
	case v.IsObject():
		return "an object"
	case v.IsBool():
		return "a boolean"
	case v.Type == gjson.Number:
		return "a number"
	}
	return "a string"
}

// idRE is what both services accept as the name of a tool.
var idRE = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
