package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// scratch is what is kept between the requests of a conversation.
type scratch struct {
	llmwire.Scratch               // its tools are those of Chat
	items           llmwire.Tools // those of Responses, which writes them differently
	sealed          bool          // the service can not open the reasoning of this conversation
}

// encode writes the body of a request: the parts that change least come first.
func (p *Provider) encode(req *model.Request, info *model.Info) ([]byte, *model.Error) {
	s := llmwire.ScratchOf[scratch](req)
	history, _, failed := s.Conversation(req, p.name+"\x00"+req.Model, encoder{provider: p.name, model: req.Model})
	if failed != nil {
		return nil, failed
	}
	tools := s.Tools.Encode(req.Tools, appendTools)

	b := llmwire.NewBody(req, history, tools)
	b = llmwire.AppendString(llmwire.AppendKey(b, "model"), p.deployed(req.Model))
	b = append(llmwire.AppendKey(b, "messages"), '[')
	b = llmwire.AppendSystemFirst(b, "system", llmwire.JoinSystem(req.System), history)
	b = append(b, ']')
	if len(tools) > 0 {
		b = append(append(append(llmwire.AppendKey(b, "tools"), '['), tools...), ']')
		b = appendToolChoice(b, req.ToolChoice)
		if req.SingleToolCall && !info.NoSingleCall {
			b = append(b, `,"parallel_tool_calls":false`...)
		}
	}
	return p.appendSettings(b, req, info)
}

func (p *Provider) appendSettings(b []byte, req *model.Request, info *model.Info) ([]byte, *model.Error) {
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if req.MaxTokens > 0 {
		b = strconv.AppendInt(llmwire.AppendKey(b, p.maxTokens), int64(req.MaxTokens), 10)
	}
	effort := effortOf(req, info)
	if effort != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, "reasoning_effort"), effort)
	}
	b, failed := appendSampling(b, req, info, effort)
	if failed != nil {
		return nil, failed
	}
	asked, _ := stops(req, info)
	b = llmwire.AppendTexts(b, "stop", asked)
	switch {
	case len(req.Schema) > 0:
		b = append(llmwire.AppendKey(b, "response_format"), `{"type":"json_schema","json_schema":{"name":"answer","schema":`...)
		b = append(llmwire.AppendObject(b, req.Schema), '}', '}')
	case req.JSON:
		b = append(llmwire.AppendKey(b, "response_format"), `{"type":"json_object"}`...)
	}
	if p.cacheKey && req.SessionID != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, "prompt_cache_key"), shorten(req.SessionID, 64))
	}
	if p.retention != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, "prompt_cache_retention"), p.retention)
	}
	return append(b, '}'), nil
}

// maxStops is how many stop texts Chat takes.
const maxStops = 4

// stops are the stop texts that Chat is asked for, and those that the reply is cut at here:
// there may be too many for it, and OpenAI's models that reason take none.
func stops(req *model.Request, info *model.Info) (asked, own []string) {
	most := maxStops
	if info.Reasoning {
		most = 0
	}
	return llmwire.SplitStops(req.Stop, most)
}

// effortOf is the word for how hard to think, "" if the model decides.
func effortOf(req *model.Request, info *model.Info) string {
	if info.Priced() {
		return info.Effort(req.Thinking)
	}
	switch req.Thinking { // unknown: what was asked for, in OpenAI's words
	case model.ThinkingAdaptive:
		return ""
	case model.ThinkingOff:
		return "none"
	}
	return string(req.Thinking)
}

// appendSampling writes temperature and top_p. Models that reason refuse them, except
// when told not to.
func appendSampling(b []byte, req *model.Request, info *model.Info, effort string) ([]byte, *model.Error) {
	if info.NoSampling && effort != "none" {
		return b, nil
	}
	return llmwire.AppendSampling(b, req, "temperature", "top_p")
}

func appendTools(b []byte, specs []model.ToolSpec) []byte {
	return llmwire.AppendFunctions(b, specs, appendSchema)
}

func appendSchema(b, schema []byte) []byte { return llmwire.AppendObject(b, schema) }

func appendToolChoice(b []byte, c model.ToolChoice) []byte {
	switch c {
	case model.ToolChoiceAuto:
		return b
	case model.ToolChoiceNone, model.ToolChoiceRequired:
		return llmwire.AppendString(llmwire.AppendKey(b, "tool_choice"), string(c))
	}
	b = append(llmwire.AppendKey(b, "tool_choice"), `{"type":"function","function":{"name":`...)
	return append(llmwire.AppendString(b, string(c)), '}', '}')
}

// encoder implements llmwire.Encoder.
type encoder struct{ provider, model string }

// Unit keeps a run of tool results together: their images follow in one user
// message after the last of them, because nothing may come between them.
func (encoder) Unit(msgs []message.Message) int { return llmwire.Results(msgs) }

func (e encoder) Append(b []byte, unit []message.Message) ([]byte, int) {
	switch m := &unit[0]; m.Role {
	case message.RoleUser:
		b = appendUser(b, m.Content)
	case message.RoleAssistant:
		b = e.appendAssistant(b, m)
	case message.RoleToolResult:
		b = appendResults(b, unit)
	}
	return b, -1
}

func appendUser(b []byte, content []message.Block) []byte {
	images := slices.ContainsFunc(content, isImage)
	texts := 0
	for i := range content {
		if isText(content[i]) {
			texts++
		}
	}
	switch {
	case texts == 0 && !images:
		return b // nothing to say
	case texts == 1 && !images:
		i := slices.IndexFunc(content, isText)
		b = append(b, `,{"role":"user","content":`...)
		return append(llmwire.AppendString(b, content[i].Text), '}')
	}
	b = append(b, `,{"role":"user","content":[`...)
	b = appendParts(b, content)
	return append(b, ']', '}')
}

func isImage(c message.Block) bool { return c.Type == message.BlockImage }

func isText(c message.Block) bool {
	return c.Type == message.BlockText && !llmwire.Blank(c.Text)
}

func appendParts(b []byte, content []message.Block) []byte {
	for i := range content {
		c := &content[i]
		if !isText(*c) && !isImage(*c) {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		if isImage(*c) {
			b = append(b, `{"type":"image_url","image_url":{"url":`...)
			b = append(llmwire.AppendString(b, "data:"+c.MimeType+";base64,"+c.Data), '}', '}')
			continue
		}
		b = append(b, `{"type":"text","text":`...)
		b = append(llmwire.AppendString(b, c.Text), '}')
	}
	return b
}

// appendAssistant writes a reply. Thinking goes back only to the model it came
// from, under the name it came by; that of others is text.
func (e encoder) appendAssistant(b []byte, reply *message.Message) []byte {
	maker := model.Maker{API: API, Provider: e.provider, Model: e.model}
	m := maker.Handoff(reply)
	text := llmwire.ReplyText(m, m != reply)
	calls := 0
	thinking, field := "", ""
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.Type == message.BlockToolCall:
			calls++
		case c.Type == message.BlockThinking && (field == "" || field == c.Signature):
			switch c.Signature {
			case "reasoning_content", "reasoning", "reasoning_text":
				field = c.Signature
				thinking += c.Text
			}
		}
	}
	if llmwire.Blank(text) && calls == 0 {
		return b // an empty reply is refused by some and means nothing to any
	}
	b = append(b, `,{"role":"assistant","content":`...)
	if llmwire.Blank(text) {
		b = append(b, "null"...)
	} else {
		b = llmwire.AppendString(b, text)
	}
	if thinking != "" {
		b = llmwire.AppendString(llmwire.AppendKey(b, field), thinking)
	}
	if calls > 0 {
		b = append(llmwire.AppendKey(b, "tool_calls"), '[')
		for i := range m.Content {
			c := &m.Content[i]
			if c.Type != message.BlockToolCall {
				continue
			}
			if b[len(b)-1] != '[' {
				b = append(b, ',')
			}
			b = append(b, `{"id":`...)
			b = llmwire.AppendString(b, callID(c.ID))
			b = append(b, `,"type":"function","function":{"name":`...)
			b = llmwire.AppendString(b, llmwire.ToolName(c.Name))
			b = append(b, `,"arguments":`...)
			b = llmwire.AppendString(b, string(llmwire.AppendObject(nil, c.Arguments)))
			b = append(b, '}', '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendResults(b []byte, results []message.Message) []byte {
	var images []message.Block
	for i := range results {
		r := &results[i]
		before := len(images)
		for _, c := range r.Content {
			if isImage(c) {
				images = append(images, c)
			}
		}
		b = append(b, `,{"role":"tool","tool_call_id":`...)
		b = llmwire.AppendString(b, callID(r.ToolCallID))
		b = llmwire.AppendString(llmwire.AppendKey(b, "content"), llmwire.ResultText(r, len(images) > before))
		b = append(b, '}')
	}
	if len(images) > 0 {
		b = append(b, `,{"role":"user","content":[{"type":"text","text":"Images of the tool results above:"}`...)
		b = append(b, ',', '[')
		at := len(b)
		b = appendParts(b, images)
		// The parts were written as a list of their own; join the lists.
		b = slices.Delete(b, at-1, at)
		b = append(b, ']', '}')
	}
	return b
}

// callID is an id as OpenAI takes it: at most 40 characters. A longer one, from
// another provider, is cut and told apart by a hash.
func callID(id string) string { return shorten(id, 40) }

func shorten(id string, limit int) string {
	if len(id) <= limit {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	const digits = 16
	return strings.ToValidUTF8(id[:limit-digits-1], "") + "_" + hex.EncodeToString(sum[:digits/2])
}
