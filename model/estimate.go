package model

import "agentd/message"

// frame is what a provider puts around the parts of a request, in tokens, as recorded
// requests tell it.
type frame struct {
	// request, system and message are around all of it, the system prompt and each
	// message; call and result are what a call has besides its name and arguments, and a
	// result besides its text.
	request, system, message, call, result int64
	// tools is what a provider says ahead of them where there are any, tool is around each
	// one. schema is how many hundredths of its JSON remain of a tool as it is told the
	// model: some providers rewrite it.
	tools, tool, schema int64
	// forced is added where a tool must be called, thinking where the model is to think.
	forced, thinking int64
}

func (e Encoding) frame() frame {
	openai := frame{request: 3, system: 4, message: 4, call: 7, tools: 4, tool: 8, schema: 60}
	switch e.text {
	case vocabularyO200K:
		return openai
	case vocabularyClaude:
		return frame{request: 8, message: 1, call: 40, result: 14, tools: 475, tool: 22, schema: 100, forced: 115, thinking: 28}
	case vocabularyClaude47:
		return frame{request: 8, message: 1, call: 45, result: 16, tools: 280, tool: 22, schema: 100, forced: 115}
	case vocabularyGemma:
		return frame{message: 1, call: 15, result: 15, tool: 5, schema: 70}
	}
	if e.image == imageTiles {
		return openai
	}
	return frame{request: 3, system: 4, message: 4, call: 10, result: 4, tools: 30, tool: 10, schema: 100}
}

// PromptTokens is about how many tokens a request has, as the provider of its model
// counts them: for holding limits before anybody has counted, and for bills that nobody
// sends. See [Encoding].
func PromptTokens(req *Request) int64 { return EncodingOf(req.Model).Prompt(req) }

// ReplyTokens is about how many tokens a reply has, as far as it came.
func ReplyTokens(m *message.Message) int64 { return EncodingOf(m.Model).Reply(m) }

// Prompt is about how many tokens a request has. An empty one has none.
func (e Encoding) Prompt(req *Request) int64 {
	f := e.frame()
	parts, added := int64(0), int64(0)
	for i := range req.System {
		parts += scan(e.text, req.System[i].Text)
	}
	if len(req.System) > 0 {
		added += f.system
	}
	tools := scan(e.text, []byte(req.Schema))
	for i := range req.Tools {
		t := &req.Tools[i]
		tools += scan(e.text, t.Name) + scan(e.text, t.Description) + scan(e.text, []byte(t.Schema))
	}
	parts += tools * f.schema / 100
	if n := int64(len(req.Tools)); n > 0 {
		added += f.tools + n*f.tool
		if req.ToolChoice != ToolChoiceAuto && req.ToolChoice != ToolChoiceNone {
			added += f.forced
		}
	}
	if req.Thinking != "" && req.Thinking != ThinkingOff {
		added += f.thinking
	}
	if n := e.Messages(req.Messages) + added + whole(parts); n > 0 {
		return n + f.request
	}
	return 0
}

// Messages is about how many tokens messages take of a request.
func (e Encoding) Messages(msgs []message.Message) int64 { return e.Sum(msgs).Tokens() }

// Sum is what messages have ahead of rounding, so that what some of them have can be
// taken away and added without counting the others again. The zero value is that of none.
type Sum struct{ parts, tokens int64 }

// Sum adds up what messages have.
func (e Encoding) Sum(msgs []message.Message) (sum Sum) {
	f := e.frame()
	for i := range msgs {
		p, n := e.content(&msgs[i], &f)
		sum.parts, sum.tokens = sum.parts+p, sum.tokens+n
		if sum.tokens += f.message; msgs[i].Role == message.RoleToolResult {
			sum.tokens += f.result
		}
	}
	return sum
}

// Instead is the sum with one thing in place of another that it has.
func (s Sum) Instead(of, other Sum) Sum {
	return Sum{s.parts - of.parts + other.parts, s.tokens - of.tokens + other.tokens}
}

// Tokens is about how many tokens that is.
func (s Sum) Tokens() int64 { return s.tokens + whole(s.parts) }

// Reply is about how many tokens a reply has, as far as it came.
func (e Encoding) Reply(m *message.Message) int64 {
	f := e.frame()
	parts, added := e.content(m, &f)
	if n := added + whole(parts); n > 0 || parts == 0 {
		return n
	}
	return 1
}

func (e Encoding) content(m *message.Message, f *frame) (parts, added int64) {
	for i := range m.Content {
		b := &m.Content[i]
		switch b.Type {
		case message.BlockImage:
			added += e.Image(b)
		case message.BlockToolCall:
			parts += scan(e.text, b.Name) + scan(e.text, []byte(b.Arguments))
			added += f.call
		default:
			parts += scan(e.text, b.Text)
		}
	}
	return parts, added
}

// Estimate is the usage of a call whose provider did not say what it used, because
// its stream was cut or cancelled. It has no cost yet.
func Estimate(req *Request, reply *message.Message) *message.Usage {
	e := EncodingOf(req.Model)
	u := &message.Usage{Input: e.Prompt(req), Output: e.Reply(reply), Estimated: true}
	u.TotalTokens = u.Input + u.Output
	return u
}
