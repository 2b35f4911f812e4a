package gemini

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

const (
	// unsigned stands for the signature of a call that another model made. It is
	// Google's own word for it (docs/thought-signatures, "transferring history").
	unsigned = "skip_thought_signature_validator"
	// beginningGone goes ahead of a history that begins with a reply, which the API
	// refuses.
	beginningGone = `,{"role":"user","parts":[{"text":"(What was said before is missing.)"}]}`
	modelFirst    = `,{"role":"model"`
	// jsonOnly is said to models that take no JSON mode beside tools.
	jsonOnly = "Answer with one JSON value and nothing else."
	// maxStops is how many stop texts the API takes. The reply is cut at others here.
	maxStops = 5
)

// scratch is what is kept between the requests of a conversation.
type scratch struct{ llmwire.Scratch }

// generation is the number of a Gemini model: 3 of gemini-3.5-flash. Names without a
// number (gemini-flash-latest) stand for the newest; other models have none.
func generation(id string) int {
	if _, name, ok := strings.Cut(id, "/"); ok {
		id = name
	}
	rest, ok := strings.CutPrefix(id, "gemini-")
	if !ok {
		return 0
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if digits == 0 {
		const newest = 1 << 10
		return newest
	}
	n, _ := strconv.Atoi(rest[:digits])
	return n
}

// modern is the first generation with ids of calls, signatures that are checked, images
// in results, thinking levels, and JSON beside tools.
const modern = 3

// encode writes the body of a request: the parts that change least come first.
func (p *Provider) encode(req *model.Request, info *model.Info) ([]byte, *model.Error) {
	s := llmwire.ScratchOf[scratch](req)
	enc := encoder{maker: model.Maker{API: API, Provider: p.name, Model: req.Model}, modern: generation(req.Model) >= modern}
	enc.ids = enc.modern || strings.HasPrefix(req.Model, "claude-") || strings.HasPrefix(req.Model, "gpt-oss-")
	history, _, failed := s.Conversation(req, p.name+"\x00"+req.Model, enc)
	if failed != nil {
		return nil, failed
	}
	tools := s.Tools.Encode(req.Tools, appendTools)
	asJSON := req.JSON || len(req.Schema) > 0
	inWords := asJSON && len(tools) > 0 && !enc.modern

	b := llmwire.NewBody(req, history, tools)
	b = appendSystem(b, req.System, inWords)
	if len(tools) > 0 {
		b = append(llmwire.AppendKey(b, "tools"), `[{"functionDeclarations":[`...)
		b = append(append(b, tools...), `]}]`...)
		b = appendToolChoice(b, req.ToolChoice)
	}
	b = append(llmwire.AppendKey(b, "contents"), '[')
	if bytes.HasPrefix(history, []byte(modelFirst)) {
		b = append(b, beginningGone[1:]...)
		b = append(b, history...)
	} else {
		b = append(b, history[1:]...) // without its comma
	}
	b = append(b, ']')
	return p.appendSettings(b, req, info, asJSON && !inWords)
}

func appendSystem(b []byte, parts []model.SystemPart, inWords bool) []byte {
	if inWords {
		parts = append(parts[:len(parts):len(parts)], model.SystemPart{Text: jsonOnly})
	}
	open := false
	for _, part := range parts {
		if llmwire.Blank(part.Text) {
			continue
		}
		if !open {
			b = append(llmwire.AppendKey(b, "systemInstruction"), `{"parts":[`...)
			open = true
		} else {
			b = append(b, ',')
		}
		b = append(llmwire.AppendString(append(b, `{"text":`...), part.Text), '}')
	}
	if open {
		b = append(b, ']', '}')
	}
	return b
}

func appendTools(b []byte, specs []model.ToolSpec) []byte {
	for i, t := range specs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = llmwire.AppendString(b, functionName(t.Name))
		if t.Description != "" {
			b = llmwire.AppendString(llmwire.AppendKey(b, "description"), t.Description)
		}
		if len(t.Schema) > 0 { // a function without parameters has no schema
			b = llmwire.AppendSchema(llmwire.AppendKey(b, "parametersJsonSchema"), t.Schema)
		}
		b = append(b, '}')
	}
	return b
}

func appendToolChoice(b []byte, c model.ToolChoice) []byte {
	if c == model.ToolChoiceAuto {
		return b
	}
	b = append(llmwire.AppendKey(b, "toolConfig"), `{"functionCallingConfig":{"mode":`...)
	switch c {
	case model.ToolChoiceNone:
		b = append(b, `"NONE"`...)
	case model.ToolChoiceRequired:
		b = append(b, `"ANY"`...)
	default:
		b = append(b, `"ANY","allowedFunctionNames":[`...)
		b = append(llmwire.AppendString(b, functionName(string(c))), ']')
	}
	return append(b, '}', '}')
}

func (p *Provider) appendSettings(b []byte, req *model.Request, info *model.Info, asJSON bool) ([]byte, *model.Error) {
	b = append(llmwire.AppendKey(b, "generationConfig"), '{')
	if req.MaxTokens > 0 {
		b = strconv.AppendInt(llmwire.AppendKey(b, "maxOutputTokens"), int64(req.MaxTokens), 10)
	}
	if !info.NoSampling {
		var failed *model.Error
		if b, failed = llmwire.AppendSampling(b, req, "temperature", "topP"); failed != nil {
			return nil, failed
		}
	}
	asked, _ := llmwire.SplitStops(req.Stop, maxStops)
	b = llmwire.AppendTexts(b, "stopSequences", asked)
	if asJSON {
		b = append(llmwire.AppendKey(b, "responseMimeType"), `"application/json"`...)
		if len(req.Schema) > 0 {
			b = llmwire.AppendObject(llmwire.AppendKey(b, "responseJsonSchema"), req.Schema)
		}
	}
	b = p.appendThinking(b, req, info)
	return append(b, '}', '}'), nil
}

// appendThinking maps the level to what the model takes: a word from Gemini 3 on, a
// number of tokens before.
func (p *Provider) appendThinking(b []byte, req *model.Request, info *model.Info) []byte {
	level := req.Thinking
	if level == "" || info.Priced() && !info.Reasoning {
		return b
	}
	show := level != model.ThinkingOff && !p.options.HideThoughts
	config := ""
	byBudget := info.Thinking == model.ThinkingByBudget
	if !info.Priced() {
		byBudget = generation(req.Model) < modern
	}
	switch {
	case byBudget:
		tokens := budget(level, req.MaxTokens, info)
		config = `"thinkingBudget":` + strconv.Itoa(tokens)
		show = show && tokens != 0 // there are none to show, and asking for them is an error
	case info.Priced():
		if word := info.Effort(level); word != "" {
			config = `"thinkingLevel":"` + strings.ToUpper(word) + `"`
		}
	case level == model.ThinkingAdaptive:
	case level == model.ThinkingOff, level == model.ThinkingMinimal: // the least that all of them know
		config = `"thinkingLevel":"LOW"`
	case level == model.ThinkingXHigh, level == model.ThinkingMax: // and the most
		config = `"thinkingLevel":"HIGH"`
	default:
		config = `"thinkingLevel":"` + strings.ToUpper(string(level)) + `"`
	}
	if config == "" && !show {
		return b
	}
	b = append(append(llmwire.AppendKey(b, "thinkingConfig"), '{'), config...)
	if show {
		b = append(llmwire.AppendKey(b, "includeThoughts"), "true"...)
	}
	return append(b, '}')
}

// budget is how many tokens a model may think. -1 leaves it to the model. Thoughts count
// as output, so some of that is left for the answer.
func budget(level model.ThinkingLevel, maxTokens int, info *model.Info) int {
	const (
		least   = 128 // of a model that can not do without
		little  = 512 // that every one takes
		most    = 24_576
		reserve = 1024
	)
	n := 0
	switch level {
	case model.ThinkingOff:
		if info.Priced() && info.ThinkingOff == "" {
			return least
		}
		return 0
	case model.ThinkingAdaptive:
		return -1
	case model.ThinkingMinimal:
		n = 1024
	case model.ThinkingLow:
		n = 2048
	case model.ThinkingMedium:
		n = 8192
	case model.ThinkingHigh:
		n = 16_384
	default:
		n = most
	}
	if maxTokens == 0 || n <= maxTokens-reserve {
		return n
	}
	n = maxTokens - reserve
	switch {
	case !info.Priced():
		return max(n, little)
	case info.ThinkingOff == "":
		return max(n, least)
	case n < little:
		return 0 // thoughts would leave no answer
	}
	return n
}

// encoder implements llmwire.Encoder.
type encoder struct {
	maker       model.Maker
	modern, ids bool
}

// Unit keeps the results of one batch together, as they are one message, and with the
// reply whose calls they answer: they have to have its names.
func (encoder) Unit(msgs []message.Message) int {
	n := 1
	if msgs[0].Role == message.RoleToolResult || msgs[0].Role == message.RoleAssistant {
		for n < len(msgs) && msgs[n].Role == message.RoleToolResult {
			n++
		}
	}
	return n
}

func (e encoder) Append(b []byte, unit []message.Message) ([]byte, int) {
	from := len(b)
	var calls, results []message.Message
	switch unit[0].Role {
	case message.RoleUser:
		b = append(b, `,{"role":"user","parts":[`...)
		b = appendContent(b, unit[0].Content)
	case message.RoleAssistant:
		b = append(b, modelFirst+`,"parts":[`...)
		b = e.appendReply(b, &unit[0])
		calls, results = unit[:1], inOrder(&unit[0], unit[1:])
	case message.RoleToolResult:
		return e.appendResults(b, nil, unit), -1
	default:
		return b, -1
	}
	if b[len(b)-1] == '[' {
		b = b[:from] // nothing in it that the API would take
	} else {
		b = append(b, ']', '}')
	}
	if len(results) > 0 {
		b = e.appendResults(b, calls, results)
	}
	return b, -1
}

// nameOf is the name of the call that a result answers, among those of a reply; else what
// the result says.
func nameOf(calls []message.Message, r *message.Message) string {
	for i := range calls {
		for j := range calls[i].Content {
			if c := &calls[i].Content[j]; c.Type == message.BlockToolCall && c.ID == r.ToolCallID {
				return c.Name
			}
		}
	}
	return r.ToolName
}

func comma(b []byte) []byte {
	if b[len(b)-1] == '[' {
		return b
	}
	return append(b, ',')
}

// appendContent writes texts and images.
func appendContent(b []byte, content []message.Block) []byte {
	for i := range content {
		switch c := &content[i]; {
		case c.Type == message.BlockText && !llmwire.Blank(c.Text):
			b = append(llmwire.AppendString(append(comma(b), `{"text":`...), c.Text), '}')
		case c.Type == message.BlockImage:
			b = appendImage(comma(b), c)
		}
	}
	return b
}

func appendImage(b []byte, c *message.Block) []byte {
	b = llmwire.AppendString(append(b, `{"inlineData":{"mimeType":`...), c.MimeType)
	b = llmwire.AppendString(llmwire.AppendKey(b, "data"), c.Data)
	return append(b, '}', '}')
}

// signed reports whether a signature is one that the API could have made: it takes
// bytes, in base64, and refuses the whole request for anything else.
func signed(signature string) bool {
	if signature == "" {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(signature)
	return err == nil
}

func appendSignature(b []byte, signature string) []byte {
	if signed(signature) {
		b = llmwire.AppendString(llmwire.AppendKey(b, "thoughtSignature"), signature)
	}
	return b
}

// appendReply writes a reply as its parts came; of another model's as much as this one
// can read.
func (e encoder) appendReply(b []byte, reply *message.Message) []byte {
	m := e.maker.Handoff(reply)
	first := true
	for i := range m.Content {
		switch c := &m.Content[i]; c.Type {
		case message.BlockText:
			if llmwire.Blank(c.Text) && !signed(c.Signature) {
				continue
			}
			b = llmwire.AppendString(append(comma(b), `{"text":`...), c.Text)
			b = append(appendSignature(b, c.Signature), '}')
		case message.BlockThinking:
			if c.Redacted || llmwire.Blank(c.Text) && !signed(c.Signature) {
				continue
			}
			b = llmwire.AppendString(append(comma(b), `{"text":`...), c.Text)
			b = append(b, `,"thought":true`...)
			b = append(appendSignature(b, c.Signature), '}')
		case message.BlockToolCall:
			b = append(comma(b), `{"functionCall":{`...)
			if e.ids {
				b = llmwire.AppendString(llmwire.AppendKey(b, "id"), llmwire.CallID(c.ID))
			}
			b = llmwire.AppendString(llmwire.AppendKey(b, "name"), functionName(c.Name))
			b = llmwire.AppendObject(llmwire.AppendKey(b, "args"), c.Arguments)
			b = append(b, '}')
			switch {
			case signed(c.Signature):
				b = appendSignature(b, c.Signature)
			case e.modern && first:
				b = llmwire.AppendString(llmwire.AppendKey(b, "thoughtSignature"), unsigned)
			}
			first = false
			b = append(b, '}')
		}
	}
	return b
}

func (e encoder) appendResults(b []byte, calls, results []message.Message) []byte {
	var images []message.Block
	b = append(b, `,{"role":"user","parts":[`...)
	for i := range results {
		r := &results[i]
		var own []message.Block
		for _, c := range r.Content {
			if c.Type == message.BlockImage {
				own = append(own, c)
			}
		}
		b = append(comma(b), `{"functionResponse":{`...)
		if e.ids {
			b = llmwire.AppendString(llmwire.AppendKey(b, "id"), llmwire.CallID(r.ToolCallID))
		}
		b = llmwire.AppendString(llmwire.AppendKey(b, "name"), functionName(nameOf(calls, r)))
		key := `{"output":`
		if r.IsError {
			key = `{"error":`
		}
		b = append(llmwire.AppendKey(b, "response"), key...)
		b = append(llmwire.AppendString(b, llmwire.ResultText(r, len(own) > 0)), '}')
		if e.modern && len(own) > 0 {
			b = append(llmwire.AppendKey(b, "parts"), '[')
			b = append(appendContent(b, own), ']')
		} else {
			images = append(images, own...)
		}
		b = append(b, '}', '}')
	}
	b = append(b, ']', '}')
	if len(images) > 0 {
		b = append(b, `,{"role":"user","parts":[{"text":"Images of the tool results above:"}`...)
		for i := range images {
			b = appendImage(append(b, ','), &images[i])
		}
		b = append(b, ']', '}')
	}
	return b
}
