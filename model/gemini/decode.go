package gemini

import (
	"io"
	"strconv"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// decoder turns the chunks of a stream into a reply.
type decoder struct {
	reply *llmwire.Reply
	usage *message.Usage
	// What was counted so far: later chunks count everything again, and may leave out
	// what earlier ones had.
	prompt, tools, cached, answer, thoughts int64

	finish string // finishReason, once it came
	said   string // finishMessage
	tier   string // serviceTier
	open   int    // index of the block that grows, or -1

	names map[string]string // of tools that are called otherwise here
}

func newDecoder(emit func(model.StreamEvent), req *model.Request) *decoder {
	d := &decoder{reply: llmwire.NewReply(emit), open: -1, names: ownNames(req.Tools)}
	_, own := llmwire.SplitStops(req.Stop, maxStops)
	d.reply.StopAt(own)
	return d
}

// Chunk implements llmwire.Decoder: the API has no mark behind the last chunk, which is the
// one with a finishReason; what follows it may still count tokens.
func (d *decoder) Chunk(data []byte) (done bool, failed *model.Error) {
	if !llmwire.Valid(data) {
		return false, llmwire.Malformed("a chunk of the stream is not JSON", data)
	}
	if d.reply.Message.ResponseID == "" { // it stands behind what it is needed for
		d.reply.Message.ResponseID = llmwire.String(llmwire.Get(data, "responseId"))
	}
	d.reply.Start()
	for c := llmwire.Object(data); ; {
		key, value, ok := c.Member()
		if !ok {
			return false, nil
		}
		switch string(key) {
		case "candidates":
			candidates := llmwire.Array(value)
			// Only one answer is ever asked for; further ones are not ours.
			if one, ok := candidates.Element(); ok {
				d.candidate(one)
			}
		case "usageMetadata":
			if !llmwire.Null(value) {
				d.count(value)
			}
		case "promptFeedback":
			if reason := llmwire.String(llmwire.Get(value, "blockReason")); reason != "" {
				text := llmwire.String(llmwire.Get(value, "blockReasonMessage"))
				if text == "" {
					text = "the provider's safety system blocked the prompt"
				}
				d.counted(data)
				return false, &model.Error{Class: model.ClassRefused, Code: reason, Message: text}
			}
		case "error":
			if !llmwire.Null(value) {
				return false, readDocument(data)
			}
		}
	}
}

// counted takes the usage of a chunk that ends in an error.
func (d *decoder) counted(data []byte) {
	if u := llmwire.Get(data, "usageMetadata"); !llmwire.Null(u) {
		d.count(u)
	}
}

func (d *decoder) candidate(raw []byte) {
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			return
		}
		switch string(key) {
		case "content":
			parts := llmwire.Array(llmwire.Get(value, "parts"))
			for {
				one, ok := parts.Element()
				if !ok {
					break
				}
				d.part(one)
			}
		case "finishReason":
			d.finish = llmwire.Finished(d.finish, llmwire.String(value), "STOP", "FINISH_REASON_UNSPECIFIED")
		case "finishMessage":
			d.said = llmwire.String(value)
		}
	}
}

func (d *decoder) part(raw []byte) {
	var text, call []byte
	var signature string
	thought := false
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "text":
			text = value
		case "thought":
			thought = len(value) > 0 && value[0] == 't'
		case "thoughtSignature", "thought_signature":
			signature = llmwire.String(value)
		case "functionCall":
			call = value
		}
	}
	switch {
	case call != nil:
		d.functionCall(call, signature)
	case thought:
		d.text(message.BlockThinking, text, signature)
	case text != nil || signature != "":
		d.text(message.BlockText, text, signature)
	}
}

// text adds to the block that grows, or begins one. A signature belongs to the part it
// came with and so ends the block; one without a text signs what came before it.
func (d *decoder) text(t message.BlockType, text []byte, signature string) {
	says := llmwire.IsString(text) && len(text) > 2
	if !says && signature == "" {
		return
	}
	if d.open >= 0 && d.reply.Message.Content[d.open].Type != t && (says || d.reply.Message.Content[d.open].Type == message.BlockToolCall) {
		d.close()
	}
	if d.open < 0 {
		d.open = d.reply.Open(message.Block{Type: t})
	}
	d.reply.Delta(d.open, text)
	if signature != "" {
		d.reply.Sign(d.open, signature)
		d.close()
	}
}

func (d *decoder) close() {
	if d.open >= 0 {
		d.reply.Close(d.open)
		d.open = -1
	}
}

// functionCall adds a call, which always comes whole.
func (d *decoder) functionCall(raw []byte, signature string) {
	d.close()
	name := llmwire.String(llmwire.Get(raw, "name"))
	if own, ok := d.names[name]; ok {
		name = own
	}
	id := llmwire.String(llmwire.Get(raw, "id"))
	if id == "" { // results are matched by id, so there has to be one
		id = "call_" + d.reply.Message.ResponseID + "_" + strconv.Itoa(d.reply.Calls())
	}
	at := d.reply.Open(message.Block{Type: message.BlockToolCall, Signature: signature, ID: id, Name: name})
	if args := llmwire.Get(raw, "args"); len(args) > 0 && args[0] == '{' {
		d.reply.Delta(at, llmwire.AppendString(nil, string(args)))
	}
	d.reply.Close(at)
}

func (d *decoder) count(raw []byte) {
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "promptTokenCount":
			d.prompt = llmwire.Int(value)
		case "toolUsePromptTokenCount": // what tools of the provider's own brought
			d.tools = llmwire.Int(value)
		case "cachedContentTokenCount":
			d.cached = llmwire.Int(value)
		case "candidatesTokenCount":
			d.answer = llmwire.Int(value)
		case "serviceTier":
			d.tier = llmwire.String(value)
		case "thoughtsTokenCount":
			d.thoughts = llmwire.Int(value)
		}
	}
	// promptTokenCount counts everything that was read but what tools brought,
	// candidatesTokenCount leaves out the thoughts.
	prompt := d.prompt + d.tools
	u := &message.Usage{CacheRead: min(d.cached, prompt), Output: d.answer + d.thoughts, Reasoning: d.thoughts}
	u.Input = prompt - u.CacheRead
	u.TotalTokens = prompt + u.Output
	d.usage = u
}

// half completes the usage of a reply that was cut: what came is paid for, though it may
// be counted at the end only.
func (d *decoder) half() {
	u := d.usage
	if u == nil || d.finish != "" {
		return
	}
	if n := model.ReplyTokens(&d.reply.Message); n > u.Output {
		u.TotalTokens += n - u.Output
		u.Output, u.Estimated = n, true
	}
}

// Complete implements llmwire.Decoder: a finishReason is the end; a broken connection after
// it is forgiven once usage came.
func (d *decoder) Complete(err error) bool {
	return d.finish != "" && (err == io.EOF || d.usage != nil)
}

// Document implements llmwire.Decoder.
func (d *decoder) Document(text []byte) *model.Error { return llmwire.NotAStream(text, readDocument) }

// End implements llmwire.Decoder.
func (d *decoder) End() *model.Error {
	d.reply.CloseAll()
	e := &model.Error{Code: d.finish, Message: d.said}
	text := ""
	switch d.finish {
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		e.Class, text = model.ClassRefused, "the provider's safety system stopped the reply"
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		e.Class, text = model.ClassMalformed, "the model's call of a tool could not be read"
	case "MISSING_THOUGHT_SIGNATURE":
		e.Class, text = model.ClassInvalid, "a call in the history lacks its thought signature"
	case "OTHER", "IMAGE_OTHER", "NO_IMAGE":
		e.Class, text = model.ClassServer, "the provider gave up during the reply"
	default:
		if !d.reply.Nameless() {
			return nil
		}
		e.Class, e.Code, text = model.ClassMalformed, "", "the reply has a tool call without a name"
	}
	if e.Message == "" {
		e.Message = text
	}
	return e
}

// message returns the finished reply.
func (d *decoder) message() *message.Message {
	m := &d.reply.Message
	m.Usage = d.usage
	if m.Usage == nil {
		m.Usage = &message.Usage{}
	}
	switch {
	case d.reply.Stopped():
		m.StopReason = message.StopEnd
	case d.finish == "MAX_TOKENS" || d.finish == "CONTINUATION":
		m.StopReason = message.StopLength
	case d.reply.Calls() > 0:
		m.StopReason = message.StopToolUse
	default:
		m.StopReason = message.StopEnd // STOP, and new words
	}
	return m
}
