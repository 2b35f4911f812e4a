package ollama

import (
	"strconv"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// decoder turns the lines of a stream into a reply.
type decoder struct {
	reply *llmwire.Reply
	usage *message.Usage

	reason string // done_reason
	ended  bool
	open   int // index of the block that grows, or -1
}

func newDecoder(emit func(model.StreamEvent)) *decoder {
	return &decoder{reply: llmwire.NewReply(emit), open: -1}
}

// Chunk implements llmwire.Decoder: a chunk is a line.
func (d *decoder) Chunk(data []byte) (done bool, failed *model.Error) {
	if !llmwire.Valid(data) {
		return false, llmwire.Malformed("a line of the stream is not JSON", data)
	}
	var prompt, answer int64
	counted := false
	var msg []byte
	for c := llmwire.Object(data); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "error":
			if !llmwire.Null(value) {
				return false, readDocument(data)
			}
		case "created_at":
			if d.reply.Message.ResponseID == "" {
				d.reply.Message.ResponseID = llmwire.String(value)
			}
			d.reply.Start()
		case "message":
			msg = value
		case "done":
			done = len(value) > 0 && value[0] == 't'
		case "done_reason":
			if s := llmwire.String(value); s != "" {
				d.reason = s
			}
		case "prompt_eval_count":
			prompt, counted = llmwire.Int(value), true
		case "eval_count":
			answer, counted = llmwire.Int(value), true
		}
	}
	d.add(msg)
	d.ended = done
	if counted {
		d.usage = &message.Usage{Input: prompt, Output: answer, TotalTokens: prompt + answer}
	}
	return done, nil
}

// add takes what a line says, in the order in which a model says it.
func (d *decoder) add(raw []byte) {
	d.text(message.BlockThinking, llmwire.Get(raw, "thinking"))
	d.text(message.BlockText, llmwire.Get(raw, "content"))
	for list := llmwire.Array(llmwire.Get(raw, "tool_calls")); ; {
		one, ok := list.Element()
		if !ok {
			return
		}
		d.call(one)
	}
}

func (d *decoder) text(t message.BlockType, text []byte) {
	if !llmwire.IsString(text) || len(text) <= 2 {
		return
	}
	if d.open >= 0 && d.reply.Message.Content[d.open].Type != t {
		d.close()
	}
	if d.open < 0 {
		d.open = d.reply.Open(message.Block{Type: t})
	}
	d.reply.Delta(d.open, text)
}

func (d *decoder) close() {
	if d.open >= 0 {
		d.reply.Close(d.open)
		d.open = -1
	}
}

// call adds a call, which always comes whole. Older servers give it no id, and results
// are matched by id, so there has to be one.
func (d *decoder) call(raw []byte) {
	d.close()
	function := llmwire.Get(raw, "function")
	id := llmwire.String(llmwire.Get(raw, "id"))
	if id == "" {
		id = "call_" + llmwire.ShortHash(d.reply.Message.ResponseID) + "_" + strconv.Itoa(d.reply.Calls())
	}
	at := d.reply.Open(message.Block{Type: message.BlockToolCall, ID: id, Name: llmwire.String(llmwire.Get(function, "name"))})
	switch args := llmwire.Get(function, "arguments"); {
	case llmwire.IsString(args): // as in OpenAI's format
		d.reply.Delta(at, args)
	case len(args) > 0 && args[0] == '{':
		d.reply.Delta(at, llmwire.AppendString(nil, string(args)))
	}
	d.reply.Close(at)
}

// Complete implements llmwire.Decoder: nothing but the line that says done ends a reply.
func (d *decoder) Complete(error) bool { return d.ended }

// Document implements llmwire.Decoder.
func (d *decoder) Document(text []byte) *model.Error { return llmwire.NotAStream(text, readDocument) }

// End implements llmwire.Decoder.
func (d *decoder) End() *model.Error {
	d.reply.CloseAll()
	switch {
	case d.reason == "load", d.reason == "unload":
		return &model.Error{Class: model.ClassServer, Code: d.reason, Message: "the server only loaded or unloaded the model"}
	case d.reply.Nameless():
		return &model.Error{Class: model.ClassMalformed, Message: "the reply has a tool call without a name"}
	}
	return nil
}

// message returns the finished reply.
func (d *decoder) message() *message.Message {
	m := &d.reply.Message
	m.Usage = d.usage
	if m.Usage == nil {
		m.Usage = &message.Usage{}
	}
	switch {
	case d.reason == "length":
		m.StopReason = message.StopLength
	case d.reply.Calls() > 0:
		m.StopReason = message.StopToolUse
	default:
		m.StopReason = message.StopEnd // stop, and new words
	}
	return m
}
