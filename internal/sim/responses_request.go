package sim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// responses speaks OpenAI's Responses API. What it shares with Chat Completions (errors,
// models) is that protocol's.
type responses struct{ openAI }

// resParams are the parameters of a request. The service refuses others, those of Chat
// Completions among them.
var resParams = regexp.MustCompile(`^(background|context_management|conversation|include|input|instructions|max_output_tokens|max_tool_calls|metadata|model|parallel_tool_calls|` +
	`previous_response_id|prompt|prompt_cache_key|prompt_cache_options|prompt_cache_retention|reasoning|safety_identifier|service_tier|store|stream|stream_options|temperature|` +
	`text|tool_choice|tools|top_logprobs|top_p|truncation|user)$`)

// minOutput is the least that max_output_tokens may be.
const minOutput = 16

// parse implements protocol.
func (responses) parse(r *http.Request, body string, _ bool) (*request, *apiError) {
	root := gjson.Parse(body)
	if badText(body) >= 0 || !gjson.Valid(body) || !root.IsObject() {
		return openAI{}.parse(r, "", false) // the same words
	}
	p := resParser{req: &request{}}
	var fail *apiError
	root.ForEach(func(key, v gjson.Result) bool {
		fail = p.top(key.String(), v)
		return fail == nil
	})
	if fail != nil {
		return nil, fail
	}
	switch {
	case p.req.Model == "":
		return nil, oaiBad("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	case !p.input.Exists():
		return nil, oaiBad("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	case p.choice && p.tools == 0:
		return nil, oaiBad("tool_choice", "", "Tool choices other than 'auto' or 'none' must be specified with 'tools' parameter.")
	}
	p.req.NoTools = p.req.NoTools || p.tools == 0
	p.req.prefix.begin(p.req.Model)
	if fail := p.caching.apply(p.req); fail != nil {
		return nil, fail
	}
	p.req.prefix.stream(p.toolsRaw)
	p.req.prefix.stream(p.schemaRaw)
	if p.instructions.Exists() {
		p.req.prefix.stream(p.instructions.Raw)
		p.req.prefix.ending()
		p.req.System = append(p.req.System, p.instructions.String())
	}
	if fail := p.conversation(); fail != nil {
		return nil, fail
	}
	p.req.PromptTokens = script.Tokens(p.req.prefix.size)
	return p.req, nil
}

// resParser is a request being read.
type resParser struct {
	req                 *request
	input, instructions gjson.Result
	toolsRaw, schemaRaw string
	caching             oaiCaching
	tools               int
	choice              bool
}

// top reads one key of the request.
func (p *resParser) top(key string, v gjson.Result) *apiError {
	wrong := func(want string) *apiError {
		return oaiBad(key, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", key, want, jsonType(v))
	}
	switch key {
	case "messages", "response_format", "max_tokens", "max_completion_tokens", "reasoning_effort":
		to := map[string]string{"messages": "input", "response_format": "text.format", "reasoning_effort": "reasoning.effort"}[key]
		if to == "" {
			to = "max_output_tokens"
		}
		return oaiBad(key, "unsupported_parameter", "Unsupported parameter: '%s'. In the Responses API, this parameter has moved to '%s'. Try again with the new parameter.", key, to)
	}
	if !resParams.MatchString(key) {
		return oaiBad(key, "unknown_parameter", "Unknown parameter: '%s'.", key)
	}
	if v.Type == gjson.Null {
		return nil
	}
	switch key {
	case "model":
		if v.Type != gjson.String {
			return wrong("a string")
		}
		p.req.Model = v.String()
	case "input":
		if !v.IsArray() && v.Type != gjson.String {
			return oaiBad(key, "invalid_type", "Invalid type for 'input': expected one of an array of objects or a string, but got %s instead.", jsonType(v))
		}
		p.input = v
	case "instructions":
		if v.Type != gjson.String {
			return wrong("a string")
		}
		p.instructions = v
	case "stream", "store":
		if !v.IsBool() {
			return wrong("a boolean")
		}
		if key == "stream" {
			p.req.stream = v.Bool()
		}
	case "previous_response_id":
		return &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", param: key, code: "previous_response_not_found",
			message: fmt.Sprintf("Previous response with id '%s' not found.", v.String())}
	case "include":
		if !v.IsArray() {
			return wrong("an array of strings")
		}
		p.req.encrypted = slices.Contains(strs(v), "reasoning.encrypted_content")
	case "reasoning":
		if !v.IsObject() {
			return wrong("an object")
		}
		p.req.NoThinking = v.Get("effort").String() == "none"
		p.req.summaries = v.Get("summary").String() != ""
	case "max_output_tokens":
		if v.Type != gjson.Number {
			return wrong("an integer")
		}
		if v.Num < minOutput {
			return oaiBad(key, "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %s instead.", minOutput, v.Raw)
		}
		p.req.MaxTokens = int(min(v.Num, 1<<30))
	case "prompt_cache_key":
		if len(v.String()) > 64 {
			return oaiBad(key, "string_above_max_length", "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", len(v.String()))
		}
		p.req.Session = v.String()
	case "prompt_cache_retention", "prompt_cache_options":
		p.caching.read(key, v)
	case "tool_choice":
		p.choice = v.String() != "auto" && v.String() != "none"
		p.req.NoTools = v.String() == "none"
	case "parallel_tool_calls":
		if !v.IsBool() {
			return wrong("a boolean")
		}
		p.req.OneCall = !v.Bool()
	case "text":
		return p.format(v.Get("format"))
	case "tools":
		if !v.IsArray() {
			return wrong("an array of objects")
		}
		p.toolsRaw = v.Raw
		return p.toolList(v)
	}
	return nil
}

// format checks how the answer should look.
func (p *resParser) format(f gjson.Result) *apiError {
	if f.Get("type").String() != "json_schema" {
		return nil
	}
	for _, key := range []string{"name", "schema"} {
		if !f.Get(key).Exists() {
			return oaiBad("text.format."+key, "missing_required_parameter", "Missing required parameter: 'text.format.%s'.", key)
		}
	}
	p.schemaRaw = f.Get("schema").Raw // it stands ahead of the input
	return nil
}

func (p *resParser) toolList(v gjson.Result) (fail *apiError) {
	v.ForEach(func(_, t gjson.Result) bool {
		at := fmt.Sprintf("tools[%d]", p.tools)
		p.tools++
		name, schema := t.Get("name").String(), t.Get("parameters")
		switch typ := t.Get("type").String(); {
		case typ == "":
			fail = oaiBad(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
		case typ != "function":
		case name == "":
			fail = oaiBad(at+".name", "missing_required_parameter", "Missing required parameter: '%s.name'.", at)
		case !idRE.MatchString(name) || len(name) > 64:
			fail = oaiBad(at+".name", "invalid_value", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
		case schema.IsObject() && schema.Raw != "{}" && schema.Get("type").String() != "object":
			fail = oaiBad(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", name, schema.Get("type").String())
		case t.Get("strict").Type != gjson.False && schema.IsObject() && schema.Get("additionalProperties").Type != gjson.False:
			// Schemas are strict ones unless the tool says otherwise.
			fail = oaiBad(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': In context=(), 'additionalProperties' is required to be supplied and to be false.", name)
		}
		return fail == nil
	})
	return fail
}

// conversation reads the input.
func (p *resParser) conversation() (fail *apiError) {
	if p.input.Type == gjson.String {
		p.req.prefix.stream(p.input.Raw)
		p.req.prefix.ending()
		p.req.Messages = []script.Message{{Role: message.RoleUser, Text: p.input.String()}}
		return nil
	}
	items := p.input.Array()
	if len(items) == 0 {
		return oaiBad("input", "empty_array", "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	c := resConversation{p: p, names: map[string]string{}, open: map[string]bool{}, reasoned: map[string]bool{}}
	for i, it := range items {
		p.req.prefix.stream(it.Raw)
		if fail := c.item(i, it, items); fail != nil {
			return fail
		}
		if it.Get("type").String() == "function_call_output" || it.Get("role").Exists() && it.Get("role").String() != "assistant" {
			p.req.prefix.ending()
		}
	}
	for _, id := range c.calls {
		if c.open[id] {
			return oaiBad("input", "", "No tool output found for function call %s.", id)
		}
	}
	return nil
}

// resConversation is an input being read.
type resConversation struct {
	p        *resParser
	names    map[string]string // of all calls, by id
	calls    []string
	open     map[string]bool
	reasoned map[string]bool // the replies whose reasoning is there
}

func (c *resConversation) item(i int, it gjson.Result, all []gjson.Result) *apiError {
	at := fmt.Sprintf("input[%d]", i)
	if !it.IsObject() {
		return oaiBad(at, "invalid_type", "Invalid type for '%s': expected an object, but got %s instead.", at, jsonType(it))
	}
	if id := it.Get("id").String(); len(id) > 64 {
		return oaiBad(at+".id", "string_above_max_length", "Invalid '%s.id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", at, len(id))
	}
	kind := it.Get("type").String()
	if kind == "" && it.Get("role").Exists() {
		kind = "message"
	}
	switch kind {
	case "message":
		return c.message(at, it)
	case "reasoning":
		return c.reasoning(at, it, all[i+1:])
	case "function_call":
		return c.call(at, it)
	case "function_call_output":
		return c.output(at, it)
	case "item_reference":
		return notKept(it.Get("id").String())
	case "":
		return oaiBad(at+".type", "missing_required_parameter", "Missing required parameter: '%s.type'.", at)
	}
	return oaiBad(at, "invalid_value", "Invalid value: '%s'. Supported values are: 'function_call', 'function_call_output', 'item_reference', 'message', and 'reasoning'.", kind)
}

// notKept is the answer to what could only be looked up.
func notKept(id string) *apiError {
	return &apiError{status: http.StatusNotFound, typ: "invalid_request_error", param: "input",
		message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)}
}

func (c *resConversation) message(at string, it gjson.Result) *apiError {
	req := c.p.req
	role, content := it.Get("role").String(), it.Get("content")
	if content.Type != gjson.String && !content.IsArray() {
		return oaiBad(at+".content", "missing_required_parameter", "Missing required parameter: '%s.content'.", at)
	}
	var fail *apiError
	n := 0
	content.ForEach(func(_, part gjson.Result) bool {
		if content.IsArray() {
			fail = resPart(fmt.Sprintf("%s.content[%d]", at, n), role, part)
		}
		n++
		return fail == nil
	})
	if fail != nil {
		return fail
	}
	switch text := contentText(content); role {
	case "system", "developer":
		req.System = append(req.System, text)
	case "user":
		req.Messages = append(req.Messages, script.Message{Role: message.RoleUser, Text: text})
	case "assistant":
		if fail := c.paired("message", it.Get("id").String()); fail != nil {
			return fail
		}
		m := c.reply()
		m.Text += text
	default:
		return oaiBad(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", role)
	}
	return nil
}

// resPart checks a part of a content: the assistant's parts have other names.
func resPart(at, role string, part gjson.Result) *apiError {
	kind := part.Get("type").String()
	switch {
	case role == "assistant" && (kind == "output_text" || kind == "refusal"), role != "assistant" && (kind == "input_text" || kind == "input_file"):
		return nil
	case role != "assistant" && kind == "input_image":
		_, data, inline := strings.Cut(part.Get("image_url").String(), ";base64,")
		if !inline {
			return nil
		}
		if raw, err := base64.StdEncoding.DecodeString(data); err != nil || strings.HasPrefix(string(raw), "BROKEN") {
			return oaiBad("input", "invalid_value", "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].")
		}
		return nil
	}
	want := "'input_text', 'input_image', and 'input_file'"
	if role == "assistant" {
		want = "'output_text' and 'refusal'"
	}
	return oaiBad(at, "invalid_value", "Invalid value: '%s'. Supported values are: %s.", kind, want)
}

// reply is the reply that an item of the assistant belongs to.
func (c *resConversation) reply() *script.Message {
	req := c.p.req
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role != message.RoleAssistant {
		req.Messages = append(req.Messages, script.Message{Role: message.RoleAssistant})
	}
	return &req.Messages[len(req.Messages)-1]
}

// paired refuses an item that had reasoning and comes without it.
func (c *resConversation) paired(kind, id string) *apiError {
	if m := reasonedID.FindStringSubmatch(id); m != nil && !c.reasoned[m[1]] {
		return oaiBad("input", "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: 'rs_%s'.", id, kind, m[1])
	}
	return nil
}

func (c *resConversation) reasoning(at string, it gjson.Result, rest []gjson.Result) *apiError {
	id, sealed := it.Get("id").String(), it.Get("encrypted_content").String()
	switch {
	case !it.Get("summary").IsArray():
		return oaiBad(at+".summary", "missing_required_parameter", "Missing required parameter: '%s.summary'.", at)
	case sealed == "":
		return notKept(id)
	}
	of, ok := unseal(sealed)
	bad := func(reason string) *apiError {
		return oaiBad("", "invalid_encrypted_content", "The encrypted content %s could not be verified. Reason: %s", sealed[:min(len(sealed), 16)]+"...", reason)
	}
	switch {
	case !ok:
		return bad("Encrypted content could not be decrypted or parsed.")
	case id != "" && id != of:
		return bad("Encrypted content item_id did not match the target item id.")
	}
	for _, next := range rest {
		switch {
		case next.Get("type").String() == "reasoning":
			continue
		case next.Get("type").String() == "function_call", next.Get("role").String() == "assistant":
			c.reasoned[strings.TrimPrefix(of, "rs_")] = true
			return nil
		}
		break
	}
	return oaiBad("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", of)
}

func (c *resConversation) call(at string, it gjson.Result) *apiError {
	id, name, args := it.Get("call_id").String(), it.Get("name").String(), it.Get("arguments")
	for _, f := range [][2]string{{"call_id", id}, {"name", name}} {
		if f[1] == "" {
			return oaiBad(at+"."+f[0], "missing_required_parameter", "Missing required parameter: '%s.%s'.", at, f[0])
		}
		if len(f[1]) > 64 {
			return oaiBad(at+"."+f[0], "string_above_max_length", "Invalid '%s.%s': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", at, f[0], len(f[1]))
		}
	}
	switch itemID := it.Get("id").String(); {
	case !idRE.MatchString(name):
		return oaiBad(at+".name", "invalid_value", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at)
	case args.Type != gjson.String:
		return oaiBad(at+".arguments", "invalid_type", "Invalid type for '%s.arguments': expected a string, but got %s instead.", at, jsonType(args))
	case itemID != "" && !strings.HasPrefix(itemID, "fc"):
		return oaiBad(at+".id", "invalid_value", "Invalid '%s.id': '%s'. Expected an ID that begins with 'fc'.", at, itemID)
	default:
		if fail := c.paired("function_call", itemID); fail != nil {
			return fail
		}
	}
	m := c.reply()
	m.Calls = append(m.Calls, script.Call{ID: id, Name: name})
	c.names[id], c.open[id] = name, true
	c.calls = append(c.calls, id)
	return nil
}

func (c *resConversation) output(at string, it gjson.Result) *apiError {
	id, out := it.Get("call_id").String(), it.Get("output")
	name, ok := c.names[id]
	switch {
	case id == "":
		return oaiBad(at+".call_id", "missing_required_parameter", "Missing required parameter: '%s.call_id'.", at)
	case out.Type != gjson.String && !out.IsArray():
		return oaiBad(at+".output", "missing_required_parameter", "Missing required parameter: '%s.output'.", at)
	case !ok:
		return oaiBad("input", "", "No tool call found for function call output with call_id %s.", id)
	}
	for n, part := range out.Array() {
		if !out.IsArray() {
			break
		}
		if fail := resPart(fmt.Sprintf("%s.output[%d]", at, n), "user", part); fail != nil {
			return fail
		}
	}
	delete(c.open, id)
	c.p.req.Messages = append(c.p.req.Messages, script.Message{Role: message.RoleToolResult, Text: contentText(out), CallID: id, Name: name})
	return nil
}

// reasonedID is an id of an item that followed reasoning; see resItems.
var reasonedID = regexp.MustCompile(`^(?:fc|msg)_([0-9a-f]{16})r[0-9]+$`)

// What reasoning is sealed with: who it is of, and a check that it was not changed. The
// service encrypts it; here it is enough that only the simulator makes it.
const sealPrefix = "gAAAAAB"

func seal(id, thinking string) string {
	text := id + "\n" + thinking
	return sealPrefix + base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + script.Sign(text)
}

// unseal gives the id of the item that sealed reasoning is of.
func unseal(sealed string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, sealPrefix)
	body, sign, found := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if !ok || !found || err != nil || script.Sign(string(text)) != sign {
		return "", false
	}
	id, _, ok = strings.Cut(string(text), "\n")
	return id, ok
}
