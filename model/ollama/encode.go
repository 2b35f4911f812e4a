package ollama

import (
	"strconv"
	"strings"
	"time"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// noImage is what a model reads that sees none.
const noImage = "[An image is left out: this model takes none.]"

// jsonOnly is said in place of a format where there are tools: a format binds all that
// a model says, and leaves it no way to call one.
const jsonOnly = "Answer with one JSON value and nothing else."

// scratch is what is kept between the requests of a conversation.
type scratch struct{ llmwire.Scratch }

// encode writes the body of a request: the parts that change least come first.
func (p *Provider) encode(req *model.Request, info *model.Info, can Abilities) ([]byte, *model.Error) {
	s := llmwire.ScratchOf[scratch](req)
	enc := encoder{maker: model.Maker{API: API, Provider: p.name, Model: req.Model}, blind: !can.Images}
	history, _, failed := s.Conversation(req, p.name+"\x00"+req.Model+"\x00"+strconv.FormatBool(enc.blind), enc)
	if failed != nil {
		return nil, failed
	}
	specs := req.Tools
	if req.ToolChoice == model.ToolChoiceNone {
		specs = nil
	}
	tools := s.Tools.Encode(specs, appendTools)

	b := llmwire.NewBody(req, history, tools)
	b = llmwire.AppendString(llmwire.AppendKey(b, "model"), req.Model)
	if len(tools) > 0 {
		b = append(append(append(llmwire.AppendKey(b, "tools"), '['), tools...), ']')
	}
	b = append(llmwire.AppendKey(b, "messages"), '[')
	parts, inWords := req.System, len(tools) > 0 && (req.JSON || len(req.Schema) > 0)
	if inWords {
		parts = append(parts[:len(parts):len(parts)], model.SystemPart{Text: jsonOnly})
	}
	b = llmwire.AppendSystemFirst(b, "system", llmwire.JoinSystem(parts), history)
	b = append(b, ']')
	return p.appendSettings(b, req, info, can, inWords)
}

func appendTools(b []byte, specs []model.ToolSpec) []byte {
	return llmwire.AppendFunctions(b, specs, func(b, schema []byte) []byte { return llmwire.AppendSchema(b, schema) })
}

func (p *Provider) appendSettings(b []byte, req *model.Request, info *model.Info, can Abilities, inWords bool) ([]byte, *model.Error) {
	// Without these the server drops the beginning of what does not fit.
	b = append(b, `,"stream":true,"truncate":false,"shift":false`...)
	if think := thinking(req.Thinking, can); think != "" {
		b = append(llmwire.AppendKey(b, "think"), think...)
	}
	switch {
	case inWords:
	case len(req.Schema) > 0:
		b = llmwire.AppendObject(llmwire.AppendKey(b, "format"), req.Schema)
	case req.JSON:
		b = append(llmwire.AppendKey(b, "format"), `"json"`...)
	}
	switch keep := p.options.KeepAlive; {
	case keep > 0:
		b = llmwire.AppendString(llmwire.AppendKey(b, "keep_alive"), strconv.FormatInt(int64((keep+time.Second-1)/time.Second), 10)+"s")
	case keep < 0:
		b = append(llmwire.AppendKey(b, "keep_alive"), "-1"...)
	}
	b = append(llmwire.AppendKey(b, "options"), '{')
	if p.options.NumCtx > 0 {
		b = strconv.AppendInt(llmwire.AppendKey(b, "num_ctx"), int64(p.options.NumCtx), 10)
	}
	if req.MaxTokens > 0 {
		b = strconv.AppendInt(llmwire.AppendKey(b, "num_predict"), int64(req.MaxTokens), 10)
	}
	if !info.NoSampling {
		var failed *model.Error
		if b, failed = llmwire.AppendSampling(b, req, "temperature", "top_p"); failed != nil {
			return nil, failed
		}
	}
	b = llmwire.AppendTexts(b, "stop", req.Stop)
	return append(b, '}', '}'), nil
}

// thinking is the value of think, "" for none: on or off, or a word for models that have
// levels, of which there are three and no off.
func thinking(level model.ThinkingLevel, can Abilities) string {
	switch level {
	case "":
		return ""
	case model.ThinkingOff:
		return "false"
	}
	if !can.Thinking {
		return ""
	}
	if !can.Levels {
		return "true"
	}
	switch level {
	case model.ThinkingMinimal, model.ThinkingLow:
		return `"low"`
	case model.ThinkingHigh, model.ThinkingXHigh, model.ThinkingMax:
		return `"high"`
	}
	return `"medium"`
}

// encoder implements llmwire.Encoder.
type encoder struct {
	maker model.Maker
	blind bool
}

// Unit keeps a run of tool results together: their images follow in one user message
// after the last of them, as templates look for images there.
func (encoder) Unit(msgs []message.Message) int { return llmwire.Results(msgs) }

func (e encoder) Append(b []byte, unit []message.Message) ([]byte, int) {
	switch m := &unit[0]; m.Role {
	case message.RoleUser:
		b = e.appendUser(b, m.Content)
	case message.RoleAssistant:
		b = e.appendReply(b, m)
	case message.RoleToolResult:
		b = e.appendResults(b, unit)
	}
	return b, -1
}

// texts joins what a message says; images of a model that sees none are said to be gone.
func (e encoder) texts(content []message.Block) string {
	var out []string
	for i := range content {
		switch c := &content[i]; {
		case c.Type == message.BlockText && !llmwire.Blank(c.Text):
			out = append(out, c.Text)
		case c.Type == message.BlockImage && e.blind && (len(out) == 0 || out[len(out)-1] != noImage):
			out = append(out, noImage)
		}
	}
	return strings.Join(out, "\n\n")
}

func (e encoder) images(content []message.Block) (images []string) {
	for i := range content {
		if content[i].Type == message.BlockImage && !e.blind {
			images = append(images, content[i].Data)
		}
	}
	return images
}

func (e encoder) appendUser(b []byte, content []message.Block) []byte {
	text, images := e.texts(content), e.images(content)
	if text == "" && len(images) == 0 {
		return b // nothing to say
	}
	b = append(b, `,{"role":"user","content":`...)
	b = llmwire.AppendString(b, text)
	return append(appendImages(b, images), '}')
}

func appendImages(b []byte, images []string) []byte {
	if len(images) == 0 {
		return b
	}
	b = append(llmwire.AppendKey(b, "images"), '[')
	for i, data := range images {
		if i > 0 {
			b = append(b, ',')
		}
		b = llmwire.AppendString(b, data)
	}
	return append(b, ']')
}

func (e encoder) appendReply(b []byte, reply *message.Message) []byte {
	m := e.maker.Handoff(reply)
	text, calls := llmwire.ReplyText(m, m != reply), m.ToolCalls()
	if llmwire.Blank(text) && len(calls) == 0 {
		return b
	}
	if llmwire.Blank(text) {
		text = ""
	}
	b = append(b, `,{"role":"assistant","content":`...)
	b = llmwire.AppendString(b, text)
	thought := ""
	for i := range m.Content {
		if c := &m.Content[i]; c.Type == message.BlockThinking && !c.Redacted {
			thought += c.Text
		}
	}
	if !llmwire.Blank(thought) {
		b = llmwire.AppendString(llmwire.AppendKey(b, "thinking"), thought)
	}
	if len(calls) > 0 {
		b = append(llmwire.AppendKey(b, "tool_calls"), '[')
		for i := range calls {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"id":`...)
			b = llmwire.AppendString(b, llmwire.CallID(calls[i].ID))
			b = append(b, `,"function":{"index":`...)
			b = strconv.AppendInt(b, int64(i), 10)
			b = llmwire.AppendString(llmwire.AppendKey(b, "name"), llmwire.ToolName(calls[i].Name))
			b = llmwire.AppendObject(llmwire.AppendKey(b, "arguments"), calls[i].Arguments)
			b = append(b, '}', '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func (e encoder) appendResults(b []byte, results []message.Message) []byte {
	var images []string
	for i := range results {
		r := &results[i]
		own := e.images(r.Content)
		images = append(images, own...)
		text := e.texts(r.Content)
		if text == "" {
			text = llmwire.ResultText(r, len(own) > 0)
		}
		b = append(b, `,{"role":"tool","content":`...)
		b = llmwire.AppendString(b, text)
		b = llmwire.AppendString(llmwire.AppendKey(b, "tool_name"), llmwire.ToolName(r.ToolName))
		b = llmwire.AppendString(llmwire.AppendKey(b, "tool_call_id"), llmwire.CallID(r.ToolCallID))
		b = append(b, '}')
	}
	if len(images) > 0 {
		b = append(b, `,{"role":"user","content":"Images of the tool results above:"`...)
		b = append(appendImages(b, images), '}')
	}
	return b
}
