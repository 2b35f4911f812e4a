package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// anthropic speaks Messages.
type anthropic struct{}

// antBad is a 400 of Anthropic.
func antBad(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

// parse implements protocol.
func (anthropic) parse(r *http.Request, body string, count bool) (*request, *apiError) {
	if r.Header.Get("Anthropic-Version") == "" {
		return nil, antBad("anthropic-version: header is required")
	}
	root := gjson.Parse(body)
	if at := badText(body); at >= 0 {
		return nil, antBad("The request body is not valid JSON: no low surrogate in string: line 1 column %d (char %d)", at+1, at)
	}
	if !gjson.Valid(body) {
		return nil, antBad("The request body is not valid JSON: unexpected character or end of input")
	}
	if !root.IsObject() {
		return nil, antBad("Input should be a valid dictionary or object to extract fields from")
	}
	p := antParser{req: &request{}, names: map[string]string{}}
	p.req.CallPrefix = "toolu_"
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
		return nil, antBad("model: Field required")
	case p.req.MaxTokens == 0 && !count:
		return nil, antBad("max_tokens: Field required")
	case !p.messages.Exists():
		return nil, antBad("messages: Field required")
	case p.budget > 0 && p.req.MaxTokens > 0 && p.budget >= p.req.MaxTokens:
		return nil, antBad("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
	case p.choice && !p.tools.Exists():
		return nil, antBad("tool_choice: `tool_choice` may only be specified while providing `tools`.")
	}
	p.req.NoTools = p.req.NoTools || len(p.tools.Array()) == 0
	// The order of the prompt, and so of the cache: tools, system, messages.
	p.req.prefix.begin(p.req.Model)
	for _, f := range []func() *apiError{p.toolList, p.systemPrompt, p.settings, p.conversation, p.marks} {
		if fail := f(); fail != nil {
			return nil, fail
		}
	}
	p.req.PromptTokens = script.Tokens(p.req.prefix.size)
	return p.req, nil
}

// antParser is a request being read.
type antParser struct {
	req                     *request
	messages, tools, system gjson.Result
	budget                  int
	choice                  bool
	choiceRaw, think        string            // tool_choice and thinking as they were sent
	effort                  string            // of output_config
	auto                    mark              // cache_control at the top
	prompted                int               // the last message with more than results; older thoughts may be dropped
	names                   map[string]string // of all calls, by id
	open                    []string          // ids of the previous message's calls
	prev                    int               // where they are
	images                  int               // so far
}

// top reads one key of the request.
func (p *antParser) top(key string, v gjson.Result) *apiError {
	if v.Type == gjson.Null {
		return nil
	}
	switch key {
	case "model":
		if v.Type != gjson.String {
			return antBad("model: Input should be a valid string")
		}
		p.req.Model = v.String()
	case "max_tokens":
		if v.Type != gjson.Number {
			return antBad("max_tokens: Input should be a valid integer")
		}
		if v.Num < 1 {
			return antBad("max_tokens: Input should be greater than or equal to 1")
		}
		p.req.MaxTokens = int(min(v.Num, 1<<30))
	case "messages":
		if !v.IsArray() {
			return antBad("messages: Input should be a valid list")
		}
		p.messages = v
	case "system":
		if v.Type != gjson.String && !v.IsArray() {
			return antBad("system: Input should be a valid list")
		}
		p.system = v
	case "tools":
		if !v.IsArray() {
			return antBad("tools: Input should be a valid list")
		}
		p.tools = v
	case "tool_choice":
		p.choice, p.choiceRaw = true, v.Raw
		p.req.NoTools = v.Get("type").String() == "none"
		p.req.OneCall = v.Get("disable_parallel_tool_use").Bool()
	case "stream":
		if !v.IsBool() {
			return antBad("stream: Input should be a valid boolean")
		}
		p.req.stream = v.Bool()
	case "stop_sequences":
		p.req.Stop = strs(v)
		for i, s := range p.req.Stop {
			if strings.TrimSpace(s) == "" {
				return antBad("stop_sequences.%d: each stop sequence must contain non-whitespace", i)
			}
		}
	case "temperature":
		if v.Type != gjson.Number || v.Num < 0 || v.Num > 1 {
			return antBad("temperature: range: 0..1")
		}
	case "output_config":
		p.effort = v.Get("effort").String()
	case "thinking":
		p.think = v.Raw
		switch typ := v.Get("type").String(); typ {
		case "disabled":
			p.req.NoThinking = true
		case "enabled":
			b := v.Get("budget_tokens")
			if !b.Exists() {
				return antBad("thinking.enabled.budget_tokens: Field required")
			}
			if b.Num < 1024 {
				return antBad("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
			}
			p.budget = int(min(b.Num, 1<<30))
		case "adaptive":
		default:
			return antBad("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'disabled', 'enabled', 'adaptive'", typ)
		}
	case "metadata":
		p.req.Session = v.Get("user_id").String()
	case "cache_control":
		if bad := badMark(gjson.Parse(`{"cache_control":` + v.Raw + `}`)); bad != "" {
			return antBad("%s", bad)
		}
		if p.auto = markShort; v.Get("ttl").String() == "1h" {
			p.auto = markHour
		}
	}
	return nil
}

func (p *antParser) toolList() (fail *apiError) {
	var seen []string
	p.tools.ForEach(func(_, t gjson.Result) bool {
		i, name := len(seen), t.Get("name").String()
		client := t.Get("type").String() == "" || t.Get("type").String() == "custom"
		schema := t.Get("input_schema")
		switch {
		case name == "":
			fail = antBad("tools.%d.custom.name: Field required", i)
		case !idRE.MatchString(name) || len(name) > 128:
			fail = antBad("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case slices.Contains(seen, name):
			fail = antBad("tools: Tool names must be unique.")
		case client && !schema.Exists():
			fail = antBad("tools.%d.custom.input_schema: Field required", i)
		case client && !schema.Get("type").Exists():
			fail = antBad("tools.%d.custom.input_schema.type: Field required", i)
		case client && schema.Get("type").String() != "object":
			fail = antBad("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		case client && (schema.Get("oneOf").Exists() || schema.Get("allOf").Exists() || schema.Get("anyOf").Exists()):
			fail = antBad("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		}
		if bad := badMark(t); bad != "" && fail == nil {
			fail = antBad("tools.%d.%s", i, bad)
		}
		seen = append(seen, name)
		p.req.prefix.block("tool", t)
		return fail == nil
	})
	return fail
}

func (p *antParser) systemPrompt() (fail *apiError) {
	if p.system.Type == gjson.String {
		p.req.System = append(p.req.System, p.system.String())
		p.req.prefix.text("system", p.system)
		return nil
	}
	i := 0
	p.system.ForEach(func(_, b gjson.Result) bool {
		switch text := b.Get("text").String(); {
		case b.Get("type").String() != "text":
			fail = antBad("system.%d.type: Input should be 'text'", i)
		case text == "":
			fail = antBad("system: text content blocks must be non-empty")
		case badMark(b) != "":
			fail = antBad("system.%d.%s", i, badMark(b))
		default:
			p.req.System = append(p.req.System, text)
			p.req.prefix.block("system", b)
		}
		i++
		return fail == nil
	})
	return fail
}

// conversation reads the messages.
func (p *antParser) conversation() (fail *apiError) {
	i, total, before := 0, int(p.messages.Get("#").Int()), ""
	p.messages.ForEach(func(_, m gjson.Result) bool {
		fail = p.message(i, m, before, i == total-1)
		before = m.Get("role").String()
		i++
		return fail == nil
	})
	switch {
	case fail != nil:
		return fail
	case i == 0:
		return antBad("messages: at least one message is required")
	case len(p.open) > 0:
		return p.orphan()
	}
	return nil
}

func (p *antParser) orphan() *apiError {
	return antBad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", p.prev, strings.Join(p.open, ", "))
}

// message reads one message; before is the role of the one before it.
func (p *antParser) message(i int, m gjson.Result, before string, last bool) *apiError {
	role, content := m.Get("role").String(), m.Get("content")
	switch {
	case !m.IsObject():
		return antBad("messages.%d: Input should be a valid dictionary or object to extract fields from", i)
	case role == "":
		return antBad("messages.%d.role: Field required", i)
	case role != "user" && role != "assistant" && role != "system":
		return antBad("messages: Unexpected role %q. Allowed roles are \"user\" or \"assistant\". For server-side tools, see the documentation.", role)
	case !content.Exists():
		return antBad("messages.%d.content: Field required", i)
	case content.Type != gjson.String && !content.IsArray():
		return antBad("messages.%d.content: Input should be a valid list", i)
	case i == 0 && role == "assistant":
		return antBad("messages: first message must use the \"user\" role")
	case role == "assistant" && before == "user" && len(p.open) > 0:
		return p.orphan() // several user messages in a row count as one
	}
	out := antMessage{p: p, index: i, role: role, continues: before == role}
	if content.Type == gjson.String {
		p.req.prefix.text(role, content)
		out.text.WriteString(content.String())
		out.blocks = 1
	} else {
		var fail *apiError
		content.ForEach(func(_, b gjson.Result) bool {
			if !p.dropped(i, b) {
				p.req.prefix.block(role, b)
			}
			if fail = out.block(b); fail == nil {
				if bad := badMark(b); bad != "" {
					fail = antBad("messages.%d.content.%d.%s", i, out.blocks, bad)
				}
			}
			out.blocks++
			return fail == nil
		})
		if fail != nil {
			return fail
		}
	}
	if out.blocks == 0 || content.Type == gjson.String && content.String() == "" {
		if !last || role != "assistant" {
			return antBad("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
	}
	if text := out.text.String(); last && role == "assistant" && text != strings.TrimRight(text, " \t\n\r") {
		return antBad("messages: final assistant content cannot end with trailing whitespace")
	}
	out.add()
	return nil
}

// antMessage is one message being read.
type antMessage struct {
	p         *antParser
	index     int
	role      string
	blocks    int
	text      strings.Builder
	calls     []script.Call
	results   []script.Message
	answered  []string // ids that got a result here
	continues bool     // the message before has the same role
}

// block reads one content block.
func (m *antMessage) block(b gjson.Result) *apiError {
	at := func() string { return fmt.Sprintf("messages.%d.content.%d", m.index, m.blocks) }
	switch typ := b.Get("type").String(); typ {
	case "":
		return antBad("%s.type: Field required", at())
	case "text":
		text := b.Get("text").String()
		if text == "" {
			return antBad("messages: text content blocks must be non-empty")
		}
		m.text.WriteString(text)
	case "image":
		return m.image(b, at)
	case "thinking":
		if m.role != "assistant" {
			return antBad("%s: `thinking` blocks can only be in `assistant` messages", at())
		}
		if sig := b.Get("signature"); !sig.Exists() {
			return antBad("%s.thinking.signature: Field required", at())
		} else if sig.String() != script.Sign(b.Get("thinking").String()) {
			return antBad("%s: Invalid `signature` in `thinking` block", at())
		}
	case "tool_use":
		return m.toolUse(b, at)
	case "tool_result":
		return m.toolResult(b, at)
	}
	return nil
}

func (m *antMessage) toolUse(b gjson.Result, at func() string) *apiError {
	id, name := b.Get("id").String(), b.Get("name").String()
	switch {
	case m.role != "assistant":
		return antBad("%s: `tool_use` blocks can only be in `assistant` messages", at())
	case id == "":
		return antBad("%s.tool_use.id: Field required", at())
	case !idRE.MatchString(id):
		return antBad("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at())
	case name == "":
		return antBad("%s.tool_use.name: Field required", at())
	case !idRE.MatchString(name) || len(name) > 200:
		return antBad("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'", at())
	case !b.Get("input").IsObject():
		return antBad("%s.tool_use.input: Input should be a valid dictionary", at())
	}
	if _, seen := m.p.names[id]; seen {
		return antBad("%s: `tool_use` ids must be unique", at())
	}
	m.p.names[id] = name
	m.calls = append(m.calls, script.Call{ID: id, Name: name})
	return nil
}

func (m *antMessage) toolResult(b gjson.Result, at func() string) *apiError {
	id := b.Get("tool_use_id").String()
	if m.role != "user" {
		return antBad("%s: `tool_result` blocks can only be in `user` messages", at())
	}
	if id == "" {
		return antBad("%s.tool_result.tool_use_id: Field required", at())
	}
	if slices.Contains(m.answered, id) {
		return antBad("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", at(), id)
	}
	i := slices.Index(m.p.open, id)
	if i < 0 {
		return antBad("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", at(), id)
	}
	if m.text.Len() > 0 {
		return m.p.orphan() // results come before text
	}
	var fail *apiError
	b.Get("content").ForEach(func(_, part gjson.Result) bool {
		if part.Get("type").String() == "image" {
			fail = m.image(part, at)
		}
		return fail == nil
	})
	if fail != nil {
		return fail
	}
	m.p.open = slices.Delete(m.p.open, i, i+1)
	m.answered = append(m.answered, id)
	m.results = append(m.results, script.Message{Role: message.RoleToolResult, CallID: id, Name: m.p.names[id],
		Text: contentText(b.Get("content")), IsError: b.Get("is_error").Bool()})
	return nil
}

// add puts the message into the conversation: results first, then the text, as
// the model reads them. Two messages of one role in a row count as one.
func (m *antMessage) add() {
	c := &m.p.req.Conversation
	text := m.text.String()
	switch m.role {
	case "system":
		c.System = append(c.System, text)
	case "assistant":
		if n := len(c.Messages); m.continues && n > 0 && c.Messages[n-1].Role == message.RoleAssistant {
			prev := &c.Messages[n-1]
			prev.Text += text
			prev.Calls = append(prev.Calls, m.calls...)
		} else {
			c.Messages = append(c.Messages, script.Message{Role: message.RoleAssistant, Text: text, Calls: m.calls})
		}
		for _, call := range m.calls {
			m.p.open = append(m.p.open, call.ID)
			m.p.prev = m.index
		}
	default:
		c.Messages = append(c.Messages, m.results...)
		if text != "" || len(m.results) == 0 {
			c.Messages = append(c.Messages, script.Message{Role: message.RoleUser, Text: text})
		}
	}
}
