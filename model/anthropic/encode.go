package anthropic

import (
	"bytes"
	"slices"
	"strconv"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// maxMarks is how many cache marks the API takes.
const maxMarks = 4

// jsonOnly is said in place of a JSON mode, which the API has only with a schema.
const jsonOnly = "Answer with one JSON value and nothing else."

// scratch is what is kept between the requests of a conversation.
type scratch struct{ llmwire.Scratch }

// assistantFirst begins a history that the API refuses: the first message has to be
// a user's. It may be one whose beginning was lost.
const assistantFirst = `,{"role":"assistant"`

const beginningGone = `{"role":"user","content":[{"type":"text","text":"(What was said before is missing.)"}]},`

// encode writes the body of a request.
func (p *Provider) encode(req *model.Request, info *model.Info) ([]byte, *model.Error) {
	s := llmwire.ScratchOf[scratch](req)
	history, mark, failed := s.Conversation(req, p.name+"\x00"+req.Model, encoder{provider: p.name, model: req.Model})
	if failed != nil {
		return nil, failed
	}
	tools := s.Tools.Encode(req.Tools, appendTools)

	b := llmwire.NewBody(req, history, tools)
	b = llmwire.AppendString(llmwire.AppendKey(b, "model"), req.Model)
	maxTokens := req.MaxTokens
	if maxTokens <= 0 {
		maxTokens = min(info.MaxOutput, defaultMaxTokens)
	}
	b = strconv.AppendInt(llmwire.AppendKey(b, "max_tokens"), int64(maxTokens), 10)
	if len(tools) > 0 {
		b = append(append(append(llmwire.AppendKey(b, "tools"), '['), tools...), ']')
	}
	// The end of the request and that of the one before it: a mark finds what was written
	// at most 20 blocks ahead of it, and one step may have more.
	var marks []int
	if req.CacheLast && mark >= 0 {
		if before := s.History.Previous(); before >= 0 && before < mark {
			marks = append(marks, before)
		}
		marks = append(marks, mark)
	}
	b = p.appendSystem(b, req, maxMarks-len(marks))
	b = append(llmwire.AppendKey(b, "messages"), '[')
	if bytes.HasPrefix(history, []byte(assistantFirst)) {
		b = append(b, beginningGone...)
	}
	from := 1
	for _, at := range marks {
		b = p.appendMark(append(b, history[from:at]...))
		from = at
	}
	b = append(b, history[from:]...)
	b = append(b, `],"stream":true`...)
	return p.appendSettings(b, req, info, maxTokens)
}

func (p *Provider) appendMark(b []byte) []byte {
	if p.options.CacheHour {
		return append(b, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`...)
	}
	return append(b, `,"cache_control":{"type":"ephemeral"}`...)
}

// appendSystem writes the system prompt with at most so many marks: if more parts ask for
// one, the first ones get it and the last, with which the most can be read.
func (p *Provider) appendSystem(b []byte, req *model.Request, marks int) []byte {
	parts := req.System
	if req.JSON && len(req.Schema) == 0 {
		parts = append(parts[:len(parts):len(parts)], model.SystemPart{Text: jsonOnly})
	}
	left := 0
	for _, part := range parts {
		if part.Cache && !llmwire.Blank(part.Text) {
			left++
		}
	}
	open := false
	for _, part := range parts {
		if llmwire.Blank(part.Text) {
			continue
		}
		if !open {
			b = append(llmwire.AppendKey(b, "system"), '[')
			open = true
		} else {
			b = append(b, ',')
		}
		b = llmwire.AppendString(append(b, `{"type":"text","text":`...), part.Text)
		if part.Cache {
			if marks > 1 || marks == 1 && left == 1 {
				marks--
				b = p.appendMark(b)
			}
			left--
		}
		b = append(b, '}')
	}
	if open {
		b = append(b, ']')
	}
	return b
}

func (p *Provider) appendSettings(b []byte, req *model.Request, info *model.Info, maxTokens int) ([]byte, *model.Error) {
	forced := len(req.Tools) > 0 && req.ToolChoice != model.ToolChoiceAuto && req.ToolChoice != model.ToolChoiceNone
	if len(req.Tools) > 0 {
		b = appendToolChoice(b, req, info)
	}
	t := p.thinking(req, info, maxTokens, forced && !info.NoForcedTools)
	if t.json != "" {
		b = append(llmwire.AppendKey(b, "thinking"), t.json...)
	}
	if t.effort != "" || len(req.Schema) > 0 {
		b = append(llmwire.AppendKey(b, "output_config"), '{')
		if t.effort != "" {
			b = llmwire.AppendString(llmwire.AppendKey(b, "effort"), t.effort)
		}
		if len(req.Schema) > 0 {
			b = append(llmwire.AppendKey(b, "format"), `{"type":"json_schema","schema":`...)
			b = append(llmwire.AppendObject(b, req.Schema), '}')
		}
		b = append(b, '}')
	}
	// A model that thinks samples as it likes.
	if !info.NoSampling && !t.on {
		var failed *model.Error
		if b, failed = llmwire.AppendSampling(b, req, "temperature", "top_p"); failed != nil {
			return nil, failed
		}
	}
	// The API refuses blank ones.
	b = llmwire.AppendTexts(b, "stop_sequences", slices.DeleteFunc(slices.Clone(req.Stop), llmwire.Blank))
	return append(b, '}'), nil
}

// thought is how a request asks for thinking.
type thought struct {
	json   string // the thinking object, or nothing
	effort string
	on     bool
}

// thinking maps the level to what the model takes. Where a tool must be called
// thinking is not asked for, because the API refuses the two together.
func (p *Provider) thinking(req *model.Request, info *model.Info, maxTokens int, forced bool) thought {
	level := req.Thinking
	if level == "" || info.Priced() && !info.Reasoning {
		return thought{}
	}
	if level == model.ThinkingOff || forced {
		t := thought{}
		if info.ThinkingOff != "" {
			t.json = `{"type":"` + info.ThinkingOff + `"}`
		} else if info.Priced() && level == model.ThinkingOff {
			t.effort = info.Effort(level) // the least that this model does
		}
		return t
	}
	display := ""
	if p.options.ThinkingDisplay != "" {
		display = `,"display":` + string(llmwire.AppendString(nil, p.options.ThinkingDisplay))
	}
	if info.Thinking != model.ThinkingByBudget {
		t := thought{json: `{"type":"adaptive"` + display + `}`, effort: info.Effort(level), on: true}
		if !info.Priced() && level != model.ThinkingAdaptive {
			t.effort = string(level)
			if level == model.ThinkingMinimal {
				t.effort = "low"
			}
		}
		return t
	}
	budget := map[model.ThinkingLevel]int{
		model.ThinkingMinimal: 1024, model.ThinkingLow: 2048, model.ThinkingMedium: 8192,
		model.ThinkingAdaptive: 8192, model.ThinkingHigh: 16_384, model.ThinkingXHigh: 32_768, model.ThinkingMax: maxTokens,
	}[level]
	const least = 1024 // the API's smallest budget, and what is left for the answer
	if budget = min(budget, maxTokens-least); budget < least {
		return thought{}
	}
	return thought{json: `{"type":"enabled","budget_tokens":` + strconv.Itoa(budget) + display + `}`, on: true}
}

func appendToolChoice(b []byte, req *model.Request, info *model.Info) []byte {
	single := req.SingleToolCall && !info.NoSingleCall
	switch c := req.ToolChoice; {
	case c == model.ToolChoiceNone:
		return append(llmwire.AppendKey(b, "tool_choice"), `{"type":"none"}`...)
	case c == model.ToolChoiceAuto, info.NoForcedTools:
		// Forcing is an error with such a model; leaving the choice to it is
		// the nearest.
		if !single {
			return b
		}
		b = append(llmwire.AppendKey(b, "tool_choice"), `{"type":"auto"`...)
	case c == model.ToolChoiceRequired:
		b = append(llmwire.AppendKey(b, "tool_choice"), `{"type":"any"`...)
	default:
		b = append(llmwire.AppendKey(b, "tool_choice"), `{"type":"tool","name":`...)
		b = llmwire.AppendString(b, string(c))
	}
	if single {
		b = append(b, `,"disable_parallel_tool_use":true`...)
	}
	return append(b, '}')
}

func appendTools(b []byte, specs []model.ToolSpec) []byte {
	for i, t := range specs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = llmwire.AppendString(b, t.Name)
		if t.Description != "" {
			b = llmwire.AppendString(llmwire.AppendKey(b, "description"), t.Description)
		}
		b = appendSchema(llmwire.AppendKey(b, "input_schema"), t.Schema)
		b = append(b, '}')
	}
	return b
}

// appendSchema writes the schema of a tool as the API takes it: an object at
// the top, and no choice between schemas there. What is left out is still
// checked when the tool is called.
func appendSchema(b []byte, schema []byte) []byte {
	if len(schema) == 0 {
		return append(b, `{"type":"object","properties":{}}`...)
	}
	whole := llmwire.AppendObject(nil, schema)
	b = append(b, `{"type":"object"`...)
	for c := llmwire.Object(whole); ; {
		key, value, ok := c.Member()
		if !ok {
			return append(b, '}')
		}
		switch string(key) {
		case "type", "oneOf", "anyOf", "allOf":
			continue
		}
		b = append(append(append(b, ',', '"'), key...), '"', ':')
		b = append(b, value...)
	}
}

// encoder implements llmwire.Encoder.
type encoder struct{ provider, model string }

// Unit keeps the results of one batch together: they are one user message.
func (encoder) Unit(msgs []message.Message) int { return llmwire.Results(msgs) }

func (e encoder) Append(b []byte, unit []message.Message) ([]byte, int) {
	from := len(b)
	switch unit[0].Role {
	case message.RoleUser:
		b = append(b, `,{"role":"user","content":[`...)
		b = appendContent(b, unit[0].Content)
	case message.RoleAssistant:
		b = append(b, `,{"role":"assistant","content":[`...)
		b = e.appendReply(b, &unit[0])
	case message.RoleToolResult:
		b = append(b, `,{"role":"user","content":[`...)
		for i := range unit {
			b = appendResult(b, &unit[i])
		}
	default:
		return b, -1
	}
	if b[len(b)-1] == '[' {
		return b[:from], -1 // nothing in it that the API would take
	}
	mark := len(b) - 1 - from // before the brace that ends the last block
	if unit[0].Role == message.RoleAssistant && !markable(unit[0].Content) {
		mark = -1
	}
	return append(b, ']', '}'), mark
}

// markable reports whether the last block takes a cache mark: thinking does not.
func markable(content []message.Block) bool {
	for i := len(content) - 1; i >= 0; i-- {
		switch c := &content[i]; c.Type {
		case message.BlockThinking:
			return false
		case message.BlockText:
			if !llmwire.Blank(c.Text) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

func comma(b []byte) []byte {
	if b[len(b)-1] == '[' {
		return b
	}
	return append(b, ',')
}

// appendContent writes text and images; blank text is refused by the API.
func appendContent(b []byte, content []message.Block) []byte {
	for i := range content {
		switch c := &content[i]; c.Type {
		case message.BlockText:
			b = appendText(b, c.Text)
		case message.BlockImage:
			b = append(comma(b), `{"type":"image","source":{"type":"base64","media_type":`...)
			b = llmwire.AppendString(b, c.MimeType)
			b = llmwire.AppendString(llmwire.AppendKey(b, "data"), c.Data)
			b = append(b, '}', '}')
		}
	}
	return b
}

func appendText(b []byte, text string) []byte {
	if llmwire.Blank(text) {
		return b
	}
	b = append(comma(b), `{"type":"text","text":`...)
	return append(llmwire.AppendString(b, text), '}')
}

func (e encoder) appendReply(b []byte, reply *message.Message) []byte {
	maker := model.Maker{API: API, Provider: e.provider, Model: e.model}
	m := maker.Handoff(reply)
	for i := range m.Content {
		switch c := &m.Content[i]; c.Type {
		case message.BlockText:
			b = appendText(b, c.Text)
		case message.BlockThinking:
			switch {
			case c.Redacted && c.Signature != "":
				b = append(comma(b), `{"type":"redacted_thinking","data":`...)
				b = append(llmwire.AppendString(b, c.Signature), '}')
			case c.Redacted:
			case c.Signature != "":
				b = append(comma(b), `{"type":"thinking","thinking":`...)
				b = llmwire.AppendString(b, c.Text)
				b = llmwire.AppendString(llmwire.AppendKey(b, "signature"), c.Signature)
				b = append(b, '}')
			default:
				b = appendText(b, c.Text)
			}
		case message.BlockToolCall:
			b = append(comma(b), `{"type":"tool_use","id":`...)
			b = llmwire.AppendString(b, llmwire.CallID(c.ID))
			b = llmwire.AppendString(llmwire.AppendKey(b, "name"), llmwire.ToolName(c.Name))
			b = llmwire.AppendObject(llmwire.AppendKey(b, "input"), c.Arguments)
			b = append(b, '}')
		}
	}
	return b
}

func appendResult(b []byte, r *message.Message) []byte {
	b = append(comma(b), `{"type":"tool_result","tool_use_id":`...)
	b = llmwire.AppendString(b, llmwire.CallID(r.ToolCallID))
	b = append(llmwire.AppendKey(b, "content"), '[')
	at := len(b)
	b = appendContent(b, r.Content)
	if len(b) == at {
		b = appendText(b, "(no tool output)")
	}
	b = append(b, ']')
	if r.IsError {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, '}')
}
