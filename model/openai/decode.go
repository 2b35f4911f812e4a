package openai

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

	finish  string // finish_reason, once it came
	tier    string // service_tier
	refused []byte // text of delta.refusal
	text    int    // index of the open text block, or -1
	think   int    // index of the open thinking block, or -1
	calls   []call
}

// call maps a tool call of the wire to its block.
type call struct {
	index int64
	id    string
	block int
}

// newDecoder returns a decoder that ends the text at these stop texts.
func newDecoder(emit func(model.StreamEvent), stop []string) *decoder {
	d := &decoder{reply: llmwire.NewReply(emit), text: -1, think: -1}
	d.reply.StopAt(stop)
	return d
}

// Chunk implements llmwire.Decoder.
func (d *decoder) Chunk(data []byte) (done bool, failed *model.Error) {
	if len(data) > 0 && data[0] == '[' && string(data) == "[DONE]" {
		return true, nil
	}
	if !llmwire.Valid(data) {
		return false, llmwire.Malformed("a chunk of the stream is not JSON", data)
	}
	c := llmwire.Object(data)
	for {
		key, value, ok := c.Member()
		if !ok {
			return false, nil
		}
		switch string(key) {
		case "choices":
			choices := llmwire.Array(value)
			// Only one answer is ever asked for; further ones are not ours.
			if choice, ok := choices.Element(); ok {
				d.choice(choice)
			}
		case "usage":
			if !llmwire.Null(value) {
				d.count(value)
			}
		case "id":
			if d.reply.Message.ResponseID == "" {
				d.reply.Message.ResponseID = llmwire.String(value)
			}
			d.reply.Start()
		case "service_tier": // of the whole reply, also where it stands ahead of the usage
			if s := llmwire.String(value); s != "" {
				d.tier = s
			}
		case "error":
			if !llmwire.Null(value) {
				return false, readDocument(data)
			}
		}
	}
}

func (d *decoder) choice(raw []byte) {
	c := llmwire.Object(raw)
	for {
		key, value, ok := c.Member()
		if !ok {
			return
		}
		switch string(key) {
		case "delta":
			d.delta(value)
		case "finish_reason":
			d.finish = llmwire.Finished(d.finish, llmwire.String(value), "stop", "tool_calls", "function_call")
		case "usage": // some servers put it here
			if !llmwire.Null(value) {
				d.count(value)
			}
		}
	}
}

func (d *decoder) delta(raw []byte) {
	c := llmwire.Object(raw)
	for {
		key, value, ok := c.Member()
		if !ok {
			return
		}
		if llmwire.Null(value) {
			continue
		}
		switch string(key) {
		case "content":
			if len(value) > 2 && llmwire.IsString(value) {
				if d.text < 0 {
					d.closeThinking()
					d.text = d.reply.Open(message.Block{Type: message.BlockText})
				}
				d.reply.Delta(d.text, value)
			}
		case "reasoning_content", "reasoning", "reasoning_text":
			d.thinking(string(key), value)
		case "refusal":
			d.refused = append(d.refused, llmwire.String(value)...)
		case "tool_calls":
			calls := llmwire.Array(value)
			for {
				one, ok := calls.Element()
				if !ok {
					break
				}
				d.toolCall(one)
			}
		}
	}
}

// thinking adds to the thinking block. Some servers send the same text under
// two names at once; the name that came first is the one that counts.
func (d *decoder) thinking(field string, value []byte) {
	if len(value) <= 2 || !llmwire.IsString(value) {
		return
	}
	if d.think >= 0 && d.reply.Message.Content[d.think].Signature != field {
		return
	}
	if d.think < 0 {
		d.closeText()
		d.think = d.reply.Open(message.Block{Type: message.BlockThinking, Signature: field})
	}
	d.reply.Delta(d.think, value)
}

func (d *decoder) closeThinking() {
	if d.think >= 0 {
		d.reply.Close(d.think)
		d.think = -1
	}
}

func (d *decoder) closeText() {
	if d.text >= 0 {
		d.reply.Close(d.text)
		d.text = -1
	}
}

func (d *decoder) toolCall(raw []byte) {
	index := int64(-1)
	var id, name string
	var arguments []byte
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "index":
			if !llmwire.Null(value) {
				index = llmwire.Int(value)
			}
		case "id":
			id = llmwire.String(value)
		case "function":
			name = llmwire.String(llmwire.Get(value, "name"))
			arguments = llmwire.Get(value, "arguments")
		}
	}
	at := d.find(index, id)
	if at < 0 {
		d.closeThinking()
		d.closeText()
		at = len(d.calls)
		if index < 0 {
			index = int64(at)
		}
		block := d.reply.Open(message.Block{Type: message.BlockToolCall, ID: id, Name: name})
		d.calls = append(d.calls, call{index: index, id: id, block: block})
	} else {
		d.reply.Rename(d.calls[at].block, id, name)
		if id != "" {
			d.calls[at].id = id
		}
	}
	switch block := d.calls[at].block; {
	case llmwire.IsString(arguments):
		d.reply.Delta(block, arguments)
	case len(arguments) > 0 && arguments[0] == '{':
		// An object where a string belongs, as Ollama's format has it.
		d.reply.Delta(block, llmwire.AppendString(nil, string(arguments)))
	}
}

// find returns the call that a delta belongs to, or -1 if it begins a new one.
// An id that differs begins one even under a known index: some servers give
// all calls the index 0. Without an index a delta continues the last call
// unless it has an id of its own.
func (d *decoder) find(index int64, id string) int {
	for i := len(d.calls) - 1; i >= 0; i-- {
		c := &d.calls[i]
		if id != "" && c.id != "" {
			if c.id == id {
				return i
			}
			continue
		}
		if index < 0 || c.index == index {
			return i
		}
	}
	return -1
}

func (d *decoder) count(raw []byte) {
	u := &message.Usage{}
	var prompt, cached, written int64
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "prompt_tokens":
			prompt = llmwire.Int(value)
		case "completion_tokens":
			u.Output = llmwire.Int(value)
		case "total_tokens":
			u.TotalTokens = llmwire.Int(value)
		case "prompt_tokens_details":
			cached = max(cached, llmwire.Int(llmwire.Get(value, "cached_tokens")))
			written = llmwire.Int(llmwire.Get(value, "cache_write_tokens"))
		case "prompt_cache_hit_tokens": // DeepSeek
			cached = max(cached, llmwire.Int(value))
		case "completion_tokens_details":
			u.Reasoning = llmwire.Int(llmwire.Get(value, "reasoning_tokens"))
		}
	}
	// prompt_tokens counts everything that was read.
	u.CacheRead = min(cached, prompt)
	u.CacheWrite = min(written, prompt-u.CacheRead)
	u.Input = prompt - u.CacheRead - u.CacheWrite
	if u.TotalTokens == 0 {
		u.TotalTokens = prompt + u.Output
	}
	d.usage = u
}

// Complete implements llmwire.Decoder: a finish_reason is the end, whatever else a server
// leaves out; a broken connection after it is forgiven once usage came.
func (d *decoder) Complete(err error) bool {
	return d.finish != "" && (err == io.EOF || d.usage != nil)
}

func (d *decoder) partial() *message.Message { return &d.reply.Message }

// used is what was counted, with the tier in which the reply was served.
func (d *decoder) used() *message.Usage {
	if d.usage != nil {
		d.usage.Tier = model.TierOf(d.tier)
	}
	return d.usage
}

// windowFull is how z.ai ends a reply for which there is no more room.
const windowFull = "model_context_window_exceeded"

// Document implements llmwire.Decoder.
func (d *decoder) Document(text []byte) *model.Error { return llmwire.NotAStream(text, readDocument) }

// End implements llmwire.Decoder.
func (d *decoder) End() *model.Error {
	for i, c := range d.calls { // results are matched by id, so there has to be one
		d.reply.Rename(c.block, "call_"+d.reply.Message.ResponseID+"_"+strconv.Itoa(i), "")
	}
	d.reply.CloseAll()
	switch d.finish {
	case "content_filter":
		return &model.Error{Class: model.ClassRefused, Code: d.finish, Message: "the provider's content filter stopped the reply"}
	case windowFull: // with nothing said the prompt alone fills it
		if len(d.reply.Message.Content) == 0 {
			return &model.Error{Class: model.ClassOverflow, Code: d.finish, Message: "the prompt fills the model's context window"}
		}
	case "error", "abort":
		return &model.Error{Class: model.ClassServer, Code: d.finish, Message: "the provider gave up during the reply"}
	}
	if len(d.refused) > 0 {
		return &model.Error{Class: model.ClassRefused, Code: "refusal", Message: string(d.refused)}
	}
	if d.reply.Nameless() {
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
	case d.reply.Stopped():
		m.StopReason = message.StopEnd
	case d.finish == "length" || d.finish == "max_tokens" || d.finish == windowFull:
		m.StopReason = message.StopLength
	case d.reply.Calls() > 0:
		m.StopReason = message.StopToolUse
	default:
		m.StopReason = message.StopEnd
	}
	return m
}
