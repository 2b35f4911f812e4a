package sim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// gemini speaks generateContent.
type gemini struct{}

// gemBad is a 400 of Google.
func gemBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// skipSignature is the word that Google documents for calls that another model made.
const skipSignature = "skip_thought_signature_validator"

// geminiNumber finds the version of a model in its id, times ten: 38 of gemini-3.8-flash.
// Ids that say none, scripts' own among them, are the newest.
func geminiNumber(id string) int {
	m := geminiRE.FindStringSubmatch(id)
	if m == nil {
		return 1000
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return major*10 + min(minor, 9)
}

var (
	geminiRE     = regexp.MustCompile(`^gemini-(\d{1,3})(?:\.(\d{1,3}))?(?:-|$)`)
	geminiNameRE = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)
)

// geminiSign is the signature of what a model said: a call by its name, a text by itself.
func geminiSign(model, what string) string { return script.Sign(model + "\x00" + what) }

// parse implements protocol. The model and whether the reply is streamed are in the path.
func (gemini) parse(r *http.Request, body string, _ bool) (*request, *apiError) {
	id, method, _ := strings.Cut(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], ":")
	p := gemParser{req: &request{google: true}, number: geminiNumber(id)}
	p.req.Model = id
	p.req.stream = method == "streamGenerateContent" && r.URL.Query().Get("alt") == "sse"
	p.req.list = method == "streamGenerateContent" && !p.req.stream
	root := gjson.Parse(body)
	if badText(body) >= 0 || !gjson.Valid(body) || !root.IsObject() {
		return nil, gemBad("Invalid JSON payload received. Parsing terminated before end of input.")
	}
	var fail *apiError
	root.ForEach(func(key, v gjson.Result) bool {
		fail = p.top(camel(key.String()), key.String(), v)
		return fail == nil
	})
	if fail != nil {
		return nil, fail
	}
	switch {
	case len(p.contents.Array()) == 0:
		return nil, gemBad("* GenerateContentRequest.contents: contents is not specified\n")
	case p.choice && p.tools == 0:
		return nil, gemBad("Function calling config is set without function_declarations.")
	case p.asJSON && p.tools > 0 && p.number < 30:
		return nil, gemBad("Function calling with a response mime type: 'application/json' is unsupported")
	}
	p.req.NoTools = p.req.NoTools || p.tools == 0
	p.req.NoThinking = p.req.NoThinking || !p.thoughts
	// The order of the prompt, and so of the cache: system, tools, contents.
	p.req.prefix.begin(p.req.Model)
	p.req.prefix.stream(p.systemRaw)
	p.req.prefix.stream(p.toolsRaw)
	if fail := p.conversation(); fail != nil {
		return nil, fail
	}
	p.req.PromptTokens = script.Tokens(p.req.prefix.size)
	return p.req, nil
}

// gemParser is a request being read.
type gemParser struct {
	req                 *request
	number              int // of the model
	contents            gjson.Result
	systemRaw, toolsRaw string
	tools               int
	names               []string
	choice, asJSON      bool
	thoughts            bool // are shown
}

// camel is the name of a field in the form that the API documents; it takes snake case,
// too.
func camel(key string) string {
	parts := strings.Split(key, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

// unknown refuses the members of an object that the API does not have.
func unknown(v gjson.Result, at string, known ...string) (fail *apiError) {
	v.ForEach(func(key, _ gjson.Result) bool {
		for _, k := range known {
			if k == camel(key.String()) {
				return true
			}
		}
		fail = noField(key.String(), at)
		return false
	})
	return fail
}

func noField(key, at string) *apiError {
	if at != "" {
		at = " at '" + at + "'"
	}
	return gemBad("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", key, at)
}

// top reads one key of the request.
func (p *gemParser) top(key, given string, v gjson.Result) *apiError {
	switch key {
	case "contents":
		if !v.IsArray() {
			return gemBad("Invalid value at 'contents' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), %s", v.Raw)
		}
		p.contents = v
	case "systemInstruction":
		if fail := unknown(v, "system_instruction", "role", "parts"); fail != nil {
			return fail
		}
		p.systemRaw = v.Raw
		v.Get("parts").ForEach(func(_, part gjson.Result) bool {
			p.req.System = append(p.req.System, part.Get("text").String())
			return true
		})
	case "tools":
		p.toolsRaw = v.Raw
		return p.toolList(v)
	case "toolConfig":
		p.choice = v.Get("functionCallingConfig.mode").Exists()
		p.req.NoTools = v.Get("functionCallingConfig.mode").String() == "NONE"
	case "generationConfig":
		return p.config(v)
	case "safetySettings", "cachedContent", "serviceTier", "store", "model":
	default:
		return noField(given, "")
	}
	return nil
}

func (p *gemParser) toolList(v gjson.Result) (fail *apiError) {
	v.ForEach(func(_, set gjson.Result) bool {
		set.Get("functionDeclarations").ForEach(func(_, fn gjson.Result) bool {
			at := fmt.Sprintf("tools[0].function_declarations[%d]", p.tools)
			name := fn.Get("name").String()
			schema := fn.Get("parametersJsonSchema")
			fail = unknown(fn, at, "name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior")
			switch {
			case fail != nil:
			case !geminiNameRE.MatchString(name):
				fail = gemBad("* GenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.", at)
			case schema.Exists() && fn.Get("parameters").Exists():
				fail = gemBad("* GenerateContentRequest.%s: only one of parameters and parameters_json_schema may be set.", at)
			case schema.Exists() && schema.Get("type").String() != "object":
				fail = gemBad("* GenerateContentRequest.%s.parameters_json_schema: schema must be of type object", at)
			}
			for _, n := range p.names {
				if fail == nil && n == name {
					fail = gemBad("Duplicate function declaration found: %s", name)
				}
			}
			p.names = append(p.names, name)
			p.tools++
			return fail == nil
		})
		return fail == nil
	})
	return fail
}

// config reads generationConfig.
func (p *gemParser) config(v gjson.Result) *apiError {
	if fail := unknown(v, "generation_config", "temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "responseMimeType", "responseSchema",
		"responseJsonSchema", "presencePenalty", "frequencyPenalty", "seed", "thinkingConfig", "mediaResolution", "responseModalities", "responseLogprobs", "logprobs"); fail != nil {
		return fail
	}
	if t := v.Get("temperature"); t.Exists() && (t.Type != gjson.Number || t.Num < 0 || t.Num > 2) {
		return gemBad("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n")
	}
	if m := v.Get("maxOutputTokens"); m.Exists() {
		if m.Num < 1 {
			return gemBad("* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.\n")
		}
		p.req.MaxTokens = int(min(m.Num, 1<<30))
	}
	p.req.Stop = strs(v.Get("stopSequences"))
	if len(p.req.Stop) > 5 {
		return gemBad("* GenerateContentRequest.generation_config.stop_sequences: the number of stop_sequences must be at most 5.\n")
	}
	mime := v.Get("responseMimeType").String()
	p.asJSON = mime == "application/json"
	if (v.Get("responseJsonSchema").Exists() || v.Get("responseSchema").Exists()) && !p.asJSON {
		return gemBad("* GenerateContentRequest.generation_config.response_mime_type: must be application/json if a response schema is set.\n")
	}
	if t := v.Get("thinkingConfig"); t.Exists() {
		return p.thinking(t)
	}
	return nil
}

func (p *gemParser) thinking(v gjson.Result) *apiError {
	if fail := unknown(v, "generation_config.thinking_config", "includeThoughts", "thinkingBudget", "thinkingLevel"); fail != nil {
		return fail
	}
	p.thoughts = v.Get("includeThoughts").Bool()
	budget, level := v.Get("thinkingBudget"), strings.ToUpper(v.Get("thinkingLevel").String())
	switch {
	case budget.Exists() && level != "":
		return gemBad("You can only set only one of thinking budget and thinking level.")
	case budget.Exists() && p.number >= 40 && p.number < 1000:
		return gemBad("Thinking budget is not supported for this model.")
	case budget.Exists() && budget.Num < -1:
		return gemBad("The thinking budget %s is invalid. Please choose a value between 0 and 24576.", budget.Raw)
	case budget.Num > 0 && budget.Num < 512 && strings.HasPrefix(p.req.Model, "gemini-2.5-flash-lite"):
		return gemBad("The thinking budget %s is invalid. Please choose a value between 512 and 24576.", budget.Raw)
	case budget.Exists() && budget.Num >= 0 && budget.Num < 128 && strings.HasPrefix(p.req.Model, "gemini-2.5-pro"):
		return gemBad("The thinking budget %s is invalid. Please choose a value between 128 and 32768.", budget.Raw)
	case level != "" && p.number < 30:
		return gemBad("Thinking level is not supported for this model.")
	case level == "MINIMAL" && p.number >= 37 && p.number < 1000, level == "XHIGH" && p.number < 40:
		return gemBad("Thinking level %s is not supported for this model.", level)
	}
	switch level {
	case "", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH":
	default:
		return gemBad("Invalid value at 'generation_config.thinking_config.thinking_level' (type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), %q", level)
	}
	p.req.NoThinking = budget.Exists() && budget.Num == 0
	return nil
}

// conversation reads the contents.
func (p *gemParser) conversation() *apiError {
	all := p.contents.Array()
	turn := 0 // where the present turn begins: the last content of the user that is no result
	for i := range all {
		if all[i].Get("role").String() != "model" && !all[i].Get("parts.#(functionResponse)").Exists() {
			turn = i
		}
	}
	var open []script.Call // of the content before
	for i, c := range all {
		p.req.prefix.stream(c.Raw)
		m := gemContent{p: p, index: i, role: c.Get("role").String(), now: i > turn}
		if fail := m.read(c); fail != nil {
			return fail
		}
		switch {
		case len(m.results) > 0 && len(open) == 0:
			return gemBad("Please ensure that function response turn comes immediately after a function call turn.")
		case len(m.results) != len(open):
			return gemBad("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		case len(m.calls) > 0 && (i == 0 || all[i-1].Get("role").String() == "model"):
			return gemBad("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		for j := range m.results {
			r := &m.results[j]
			if r.CallID == "" { // matched by their order
				r.CallID = open[j].ID
			}
			if k := callOf(open, r.CallID); k < 0 || open[k].Name != r.Name {
				return gemBad("Please ensure that the function response id and name match those of the function call: %s", r.Name)
			}
		}
		p.req.Messages = append(p.req.Messages, m.results...)
		switch {
		case m.role == "model":
			p.req.Messages = append(p.req.Messages, script.Message{Role: message.RoleAssistant, Text: m.text.String(), Calls: m.calls})
		case len(m.results) == 0:
			p.req.Messages = append(p.req.Messages, script.Message{Role: message.RoleUser, Text: m.text.String()})
		}
		open = m.calls
	}
	switch {
	case len(open) > 0:
		return gemBad("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	case all[len(all)-1].Get("role").String() == "model" && p.number >= 36:
		return gemBad("Requests ending with a model turn are not supported.")
	}
	return nil
}

func callOf(calls []script.Call, id string) int {
	for i := range calls {
		if calls[i].ID == id {
			return i
		}
	}
	return -1
}

// gemContent is one content being read.
type gemContent struct {
	p       *gemParser
	index   int
	role    string
	now     bool // in the present turn, in which signatures are wanted
	text    strings.Builder
	calls   []script.Call
	results []script.Message
}

func (m *gemContent) read(c gjson.Result) *apiError {
	at := fmt.Sprintf("contents[%d]", m.index)
	if m.role != "" && m.role != "user" && m.role != "model" && m.role != "function" {
		return gemBad("Please use a valid role: user, model.")
	}
	if fail := unknown(c, at, "role", "parts"); fail != nil {
		return fail
	}
	parts := c.Get("parts").Array()
	if len(parts) == 0 {
		return gemBad("* GenerateContentRequest.%s.parts: contents.parts must not be empty.\n", at)
	}
	for j, part := range parts {
		if fail := m.part(part, fmt.Sprintf("%s.parts[%d]", at, j), j); fail != nil {
			return fail
		}
	}
	return nil
}

func (m *gemContent) part(v gjson.Result, at string, position int) *apiError {
	if fail := unknown(v, at, "text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
		"codeExecutionResult", "videoMetadata", "mediaResolution", "partMetadata"); fail != nil {
		return fail
	}
	signature := v.Get("thoughtSignature").String()
	if signature != "" && signature != skipSignature {
		if _, err := base64.StdEncoding.DecodeString(signature); err != nil {
			return gemBad("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed for %q", at, signature)
		}
	}
	text, call, result, image := v.Get("text"), v.Get("functionCall"), v.Get("functionResponse"), v.Get("inlineData")
	switch {
	case call.Exists():
		return m.call(call, signature, at, position)
	case result.Exists():
		return m.result(result, at)
	case image.Exists():
		return gemImage(image, at)
	case text.Exists() && (text.String() != "" || signature != ""):
		// One that came without a text may be sent back alone.
		if signature != "" && signature != skipSignature && text.String() != "" && signature != geminiSign(m.p.req.Model, text.String()) {
			return gemBad("Corrupted thought signature.")
		}
		if !v.Get("thought").Bool() {
			m.text.WriteString(text.String())
		}
		return nil
	case v.Get("fileData").Exists(), v.Get("executableCode").Exists(), v.Get("codeExecutionResult").Exists():
		return nil
	}
	return gemBad("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field\n", at)
}

func (m *gemContent) call(v gjson.Result, signature, at string, position int) *apiError {
	name := v.Get("name").String()
	if fail := unknown(v, at+".function_call", "id", "name", "args"); fail != nil {
		return fail
	}
	switch args := v.Get("args"); {
	case m.role != "model":
		return gemBad("Please ensure that function call turns have the role model.")
	case !geminiNameRE.MatchString(name):
		return gemBad("* GenerateContentRequest.%s.function_call.name: Name cannot be empty or has characters that are not allowed.\n", at)
	case args.Exists() && !args.IsObject():
		return gemBad("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct), %s", at, args.Raw)
	case signature != "" && signature != skipSignature && signature != geminiSign(m.p.req.Model, name):
		return gemBad("Corrupted thought signature.")
	case signature == "" && len(m.calls) == 0 && m.now && m.p.number >= 30:
		return gemBad("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", name, position)
	}
	id := v.Get("id").String()
	if id == "" {
		id = fmt.Sprintf("unnamed_%d_%d", m.index, len(m.calls))
	}
	if callOf(m.calls, id) >= 0 {
		return gemBad("Duplicate function call id: %s", id)
	}
	m.calls = append(m.calls, script.Call{ID: id, Name: name})
	return nil
}

func (m *gemContent) result(v gjson.Result, at string) *apiError {
	if fail := unknown(v, at+".function_response", "id", "name", "response", "parts", "willContinue", "scheduling"); fail != nil {
		return fail
	}
	response := v.Get("response")
	media := v.Get("parts").Array()
	switch {
	case m.role == "model":
		return gemBad("Please ensure that function response turns have the role user.")
	case v.Get("name").String() == "":
		return gemBad("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.\n", at)
	case !response.IsObject():
		return gemBad("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct), %s", at, response.Raw)
	case len(media) > 0 && m.p.number < 30:
		return gemBad("Multimodal function responses are not supported for this model.")
	}
	for _, one := range media {
		if fail := gemImage(one.Get("inlineData"), at+".function_response"); fail != nil {
			return fail
		}
	}
	out := script.Message{Role: message.RoleToolResult, CallID: v.Get("id").String(), Name: v.Get("name").String(), Text: response.Get("output").String()}
	if failed := response.Get("error"); failed.Exists() {
		out.Text, out.IsError = failed.String(), true
	}
	m.results = append(m.results, out)
	return nil
}

// gemImage checks what a part brings inline.
func gemImage(v gjson.Result, at string) *apiError {
	mime, data := v.Get("mimeType").String(), v.Get("data").String()
	raw, err := base64.StdEncoding.DecodeString(data)
	switch {
	case mime == "":
		return gemBad("* GenerateContentRequest.%s.inline_data.mime_type: MIME type is required\n", at)
	case err != nil || data == "":
		return gemBad("Invalid value at '%s.inline_data.data' (TYPE_BYTES), Base64 decoding failed for %q", at, data[:min(len(data), 20)])
	case strings.HasPrefix(string(raw), "BROKEN"):
		return gemBad("Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
	}
	return nil
}
