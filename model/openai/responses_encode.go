package openai

import (
	"strconv"
	"strings"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// minOutput is the least that Responses takes as an output limit.
const minOutput = 16

// deployed is what the wire calls a model.
func (p *Provider) deployed(id string) string {
	if p.deployment != "" {
		return p.deployment
	}
	return id
}

// encodeResponses writes the body of a request to the Responses API. Nothing is kept
// at the provider (store is false): reasoning comes encrypted and goes back as it came.
func (p *Provider) encodeResponses(req *model.Request, info *model.Info) ([]byte, *model.Error) {
	s := llmwire.ScratchOf[scratch](req)
	key := p.name + "\x00" + req.Model + "\x00" + APIResponses
	if s.sealed {
		key += "\x00sealed"
	}
	history, _, failed := s.Conversation(req, key, itemEncoder{provider: p.name, model: req.Model, sealed: s.sealed})
	if failed != nil {
		return nil, failed
	}
	tools := s.items.Encode(req.Tools, appendItemTools)

	b := llmwire.NewBody(req, history, tools)
	b = llmwire.AppendString(llmwire.AppendKey(b, "model"), p.deployed(req.Model))
	b = append(llmwire.AppendKey(b, "input"), '[')
	// In the input and not in `instructions`: JSON mode wants the word in the input.
	role := "system"
	if info.Reasoning {
		role = "developer"
	}
	b = llmwire.AppendSystemFirst(b, role, llmwire.JoinSystem(req.System), history)
	b = append(b, ']')
	if len(tools) > 0 {
		b = append(append(append(llmwire.AppendKey(b, "tools"), '['), tools...), ']')
		b = appendItemChoice(b, req.ToolChoice)
		if req.SingleToolCall && !info.NoSingleCall {
			b = append(b, `,"parallel_tool_calls":false`...)
		}
	}
	return p.appendItemSettings(b, req, info)
}

func (p *Provider) appendItemSettings(b []byte, req *model.Request, info *model.Info) ([]byte, *model.Error) {
	b = append(b, `,"stream":true,"store":false`...)
	effort := effortOf(req, info)
	// A model that does not reason refuses to be asked for its reasoning, so one that
	// is not known is asked only where somebody said that it thinks, or it has.
	thinks := info.Reasoning || !info.Priced() && (req.Thinking != "" && req.Thinking != model.ThinkingOff || p.reasoned(req))
	if thinks {
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
	}
	summaries := thinks && effort != "none" && p.summaries != "none"
	if effort != "" || summaries {
		b = append(llmwire.AppendKey(b, "reasoning"), '{')
		if effort != "" {
			b = llmwire.AppendString(llmwire.AppendKey(b, "effort"), effort)
		}
		if summaries {
			b = llmwire.AppendString(llmwire.AppendKey(b, "summary"), p.summaries)
		}
		b = append(b, '}')
	}
	if req.MaxTokens > 0 {
		b = strconv.AppendInt(llmwire.AppendKey(b, "max_output_tokens"), int64(max(req.MaxTokens, minOutput)), 10)
	}
	b, failed := appendSampling(b, req, info, effort)
	if failed != nil {
		return nil, failed
	}
	switch {
	case len(req.Schema) > 0:
		b = append(llmwire.AppendKey(b, "text"), `{"format":{"type":"json_schema","name":"answer","strict":false,"schema":`...)
		b = append(llmwire.AppendObject(b, req.Schema), '}', '}')
	case req.JSON:
		b = append(llmwire.AppendKey(b, "text"), `{"format":{"type":"json_object"}}`...)
	}
	if p.cacheKey && req.SessionID != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, "prompt_cache_key"), shorten(req.SessionID, 64))
	}
	if p.retention != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, "prompt_cache_retention"), p.retention)
	}
	return append(b, '}'), nil
}

// reasoned reports whether the model has reasoned in this conversation, encrypted or not.
func (p *Provider) reasoned(req *model.Request) bool {
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role != message.RoleAssistant || m.API != APIResponses || m.Provider != p.name || m.Model != req.Model {
			continue
		}
		for j := range m.Content {
			if b := &m.Content[j]; b.Type == message.BlockThinking && strings.HasPrefix(b.Signature, "{") {
				return true
			}
		}
	}
	return false
}

// appendItemTools writes tools. Responses takes schemas as strict ones unless told
// otherwise, and strict ones must forbid what agentd's tools allow.
func appendItemTools(b []byte, specs []model.ToolSpec) []byte {
	for i, t := range specs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","name":`...)
		b = llmwire.AppendString(b, t.Name)
		if t.Description != "" {
			b = llmwire.AppendString(llmwire.AppendKey(b, "description"), t.Description)
		}
		b = llmwire.AppendParameters(llmwire.AppendKey(b, "parameters"), t.Schema, appendSchema)
		b = append(b, `,"strict":false}`...)
	}
	return b
}

func appendItemChoice(b []byte, c model.ToolChoice) []byte {
	switch c {
	case model.ToolChoiceAuto:
		return b
	case model.ToolChoiceNone, model.ToolChoiceRequired:
		return llmwire.AppendString(llmwire.AppendKey(b, "tool_choice"), string(c))
	}
	b = append(llmwire.AppendKey(b, "tool_choice"), `{"type":"function","name":`...)
	return append(llmwire.AppendString(b, string(c)), '}')
}

// itemEncoder implements llmwire.Encoder: messages become items.
type itemEncoder struct {
	provider, model string
	sealed          bool // reasoning can not be opened, and so is left out
}

func (itemEncoder) Unit([]message.Message) int { return 1 }

func (e itemEncoder) Append(b []byte, unit []message.Message) ([]byte, int) {
	switch m := &unit[0]; m.Role {
	case message.RoleUser:
		b = appendInput(b, m.Content)
	case message.RoleAssistant:
		b = e.appendItems(b, m)
	case message.RoleToolResult:
		b = append(b, `,{"type":"function_call_output","call_id":`...)
		b = llmwire.AppendString(b, itemCallID(m.ToolCallID))
		b = append(b, `,"output":`...)
		if text := m.Text(); !hasImage(m.Content) {
			if llmwire.Blank(text) {
				text = "(no tool output)"
			}
			b = llmwire.AppendString(b, text)
		} else {
			b = append(appendInputParts(append(b, '['), m.Content), ']')
		}
		b = append(b, '}')
	}
	return b, -1
}

func hasImage(content []message.Block) bool {
	for i := range content {
		if isImage(content[i]) {
			return true
		}
	}
	return false
}

func appendInput(b []byte, content []message.Block) []byte {
	only, parts := "", 0
	for i := range content {
		if isText(content[i]) || isImage(content[i]) {
			only, parts = content[i].Text, parts+1
		}
	}
	switch {
	case parts == 0:
		return b // nothing to say
	case parts == 1 && !hasImage(content):
		return append(llmwire.AppendString(append(b, `,{"role":"user","content":`...), only), '}')
	}
	b = append(b, `,{"role":"user","content":[`...)
	return append(appendInputParts(b, content), ']', '}')
}

func appendInputParts(b []byte, content []message.Block) []byte {
	for i := range content {
		c := &content[i]
		if !isText(*c) && !isImage(*c) {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		if isImage(*c) {
			b = append(b, `{"type":"input_image","detail":"auto","image_url":`...)
			b = append(llmwire.AppendString(b, "data:"+c.MimeType+";base64,"+c.Data), '}')
			continue
		}
		b = append(b, `{"type":"input_text","text":`...)
		b = append(llmwire.AppendString(b, c.Text), '}')
	}
	return b
}

// appendItems writes a reply. Reasoning goes back only to the model that it came from,
// as it came, and only ahead of what it led to. Ids of items go back beside it and not
// without: the API looks for the reasoning that an item with an id had.
func (e itemEncoder) appendItems(b []byte, reply *message.Message) []byte {
	maker := model.Maker{API: APIResponses, Provider: e.provider, Model: e.model}
	m, own := maker.Handoff(reply), maker.Made(reply)
	last := -1 // the last block that says something
	for i := range m.Content {
		if c := &m.Content[i]; c.Type == message.BlockToolCall || isText(*c) {
			last = i
		}
	}
	reasoned := false
	for i := range m.Content[:last+1] {
		switch c := &m.Content[i]; {
		case c.Type == message.BlockThinking && own && !e.sealed && replayable(c.Signature):
			b = llmwire.AppendObject(append(b, ','), []byte(c.Signature))
			reasoned = true
		case isText(*c):
			id, phase := "", ""
			if own {
				id, phase, _ = strings.Cut(c.Signature, " ")
			}
			b = appendOutput(b, c.Text, id, phase, reasoned && itemID(id, "msg_"))
		case c.Type == message.BlockToolCall:
			b = append(b, `,{"type":"function_call"`...)
			if reasoned && itemID(c.Signature, "fc_") {
				b = llmwire.AppendString(llmwire.AppendKey(b, "id"), c.Signature)
			}
			b = llmwire.AppendString(llmwire.AppendKey(b, "call_id"), itemCallID(c.ID))
			b = llmwire.AppendString(llmwire.AppendKey(b, "name"), llmwire.ToolName(c.Name))
			b = llmwire.AppendString(llmwire.AppendKey(b, "arguments"), string(llmwire.AppendObject(nil, c.Arguments)))
			b = append(b, '}')
		}
	}
	return b
}

// appendOutput writes a text of the assistant: as the item that it was, or as a plain
// message.
func appendOutput(b []byte, text, id, phase string, whole bool) []byte {
	if whole {
		b = llmwire.AppendString(append(b, `,{"type":"message","id":`...), id)
		b = append(b, `,"status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":`...)
		b = append(llmwire.AppendString(b, text), '}', ']')
	} else {
		b = llmwire.AppendString(append(b, `,{"role":"assistant","content":`...), text)
	}
	if phase != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, "phase"), phase)
	}
	return append(b, '}')
}

// replayable reports whether a signature is a reasoning item that stands for itself:
// one without its content could only be looked up at the provider, which keeps nothing.
func replayable(signature string) bool {
	raw := []byte(signature)
	if len(raw) == 0 || raw[0] != '{' || !llmwire.Valid(raw) || llmwire.String(llmwire.Get(raw, "type")) != "reasoning" {
		return false
	}
	if llmwire.String(llmwire.Get(raw, "encrypted_content")) != "" {
		return true
	}
	content := llmwire.Array(llmwire.Get(raw, "content")) // what servers of open models give
	_, ok := content.Element()
	return ok
}

// itemID reports whether s is an id of an item as the API makes them.
func itemID(s, prefix string) bool {
	if len(s) > 64 || len(s) <= len(prefix) || !strings.HasPrefix(s, prefix) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// itemCallID is the id of a call as Responses takes it: at most 64 characters.
func itemCallID(id string) string { return shorten(id, 64) }
