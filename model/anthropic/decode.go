package anthropic

import (
	"strconv"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// decoder turns the events of a stream into a reply.
type decoder struct {
	reply   *llmwire.Reply
	usage   message.Usage
	write1h int64
	terms   [3]string // service_tier, speed, inference_geo

	blocks  []block
	stop    string // stop_reason, once it came
	details string // why the model refused
	ended   bool   // message_stop came
}

// block maps a content block of the wire to its block here, or to none if its
// kind is not known.
type block struct {
	index int64
	at    int // negative: not ours
	input []byte
}

func newDecoder(emit func(model.StreamEvent)) *decoder {
	return &decoder{reply: llmwire.NewReply(emit)}
}

// Chunk implements llmwire.Decoder. The
// type inside the data counts; the event's name says the same, and gateways
// drop it.
func (d *decoder) Chunk(data []byte) (done bool, failed *model.Error) {
	if !llmwire.Valid(data) {
		if string(data) == "[DONE]" { // of gateways that translate from another API
			return false, nil
		}
		return false, llmwire.Malformed("an event of the stream is not JSON", data)
	}
	var kind, delta, start, msg, usage []byte
	index := int64(0)
	for c := llmwire.Object(data); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "type":
			kind = value
		case "index":
			index = llmwire.Int(value)
		case "delta":
			delta = value
		case "content_block":
			start = value
		case "message":
			msg = value
		case "usage":
			usage = value
		}
	}
	switch string(kind) {
	case `"content_block_delta"`:
		d.delta(index, delta)
	case `"content_block_start"`:
		d.start(index, start)
	case `"content_block_stop"`:
		if b := d.find(index); b != nil {
			d.close(b)
		}
	case `"message_start"`:
		d.reply.Message.ResponseID = llmwire.String(llmwire.Get(msg, "id"))
		d.count(llmwire.Get(msg, "usage"))
		d.reply.Start()
	case `"message_delta"`:
		if s := llmwire.String(llmwire.Get(delta, "stop_reason")); s != "" {
			d.stop = llmwire.Finished(d.stop, s, "end_turn", "tool_use", "stop_sequence", "pause_turn")
			d.details = llmwire.String(llmwire.Get(llmwire.Get(delta, "stop_details"), "explanation"))
		}
		d.count(usage)
	case `"message_stop"`:
		d.ended = true
		return true, nil
	case `"error"`:
		return false, readDocument(data)
	}
	return false, nil // ping, and what does not exist yet
}

func (d *decoder) find(index int64) *block {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if d.blocks[i].index == index {
			return &d.blocks[i]
		}
	}
	return nil
}

func (d *decoder) start(index int64, raw []byte) {
	if b := d.find(index); b != nil {
		d.close(b) // an index used twice; the new block counts from here
	}
	b := block{index: index, at: -1}
	switch llmwire.String(llmwire.Get(raw, "type")) {
	case "text":
		b.at = d.reply.Open(message.Block{Type: message.BlockText})
		d.reply.Delta(b.at, llmwire.Get(raw, "text"))
	case "thinking":
		b.at = d.reply.Open(message.Block{Type: message.BlockThinking, Signature: llmwire.String(llmwire.Get(raw, "signature"))})
		d.reply.Delta(b.at, llmwire.Get(raw, "thinking"))
	case "redacted_thinking":
		b.at = d.reply.Open(message.Block{Type: message.BlockThinking, Redacted: true, Signature: llmwire.String(llmwire.Get(raw, "data"))})
	case "tool_use":
		id := llmwire.String(llmwire.Get(raw, "id"))
		if id == "" { // results are matched by id, so there has to be one
			id = "call_" + d.reply.Message.ResponseID + "_" + strconv.Itoa(d.reply.Calls())
		}
		b.at = d.reply.Open(message.Block{Type: message.BlockToolCall, ID: id, Name: llmwire.String(llmwire.Get(raw, "name"))})
		// The input is empty here and streamed; some servers send it whole.
		b.input = llmwire.Raw(llmwire.Get(raw, "input"))
	}
	d.blocks = append(d.blocks, b)
}

func (d *decoder) delta(index int64, raw []byte) {
	b := d.find(index)
	if b == nil || b.at < 0 {
		return
	}
	// Which member carries the text follows from the kind of the block, and so
	// the type of the delta only tells what else there is: citations, and what
	// does not exist yet.
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			return
		}
		switch string(key) {
		case "text", "thinking", "partial_json":
			if string(key) == member(d.reply.Message.Content[b.at].Type) {
				d.reply.Delta(b.at, value)
			}
		case "signature":
			d.reply.Sign(b.at, llmwire.String(value))
		}
	}
}

// member is the name of the text in the deltas of a block.
func member(t message.BlockType) string {
	switch t {
	case message.BlockThinking:
		return "thinking"
	case message.BlockToolCall:
		return "partial_json"
	}
	return "text"
}

func (d *decoder) close(b *block) {
	if b.at < 0 {
		return
	}
	if len(b.input) > 2 && b.input[0] == '{' && d.reply.Len(b.at) == 0 {
		d.reply.Delta(b.at, llmwire.AppendString(nil, string(b.input)))
	}
	d.reply.Close(b.at)
}

// count takes over the totals so far. What is absent or null keeps its value.
func (d *decoder) count(raw []byte) {
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			return
		}
		if llmwire.Null(value) {
			continue
		}
		switch string(key) {
		case "input_tokens":
			d.usage.Input = llmwire.Int(value)
		case "output_tokens":
			d.usage.Output = llmwire.Int(value)
		case "cache_read_input_tokens":
			d.usage.CacheRead = llmwire.Int(value)
		case "cache_creation_input_tokens":
			d.usage.CacheWrite = llmwire.Int(value)
		case "cache_creation":
			d.write1h = llmwire.Int(llmwire.Get(value, "ephemeral_1h_input_tokens"))
		case "output_tokens_details":
			d.usage.Reasoning = llmwire.Int(llmwire.Get(value, "thinking_tokens"))
		case "service_tier":
			d.terms[0] = llmwire.String(value)
		case "speed":
			d.terms[1] = llmwire.String(value)
		case "inference_geo":
			d.terms[2] = llmwire.String(value)
		}
	}
}

// Complete implements llmwire.Decoder: nothing but message_stop ends a reply.
func (d *decoder) Complete(error) bool { return d.ended }

// Document implements llmwire.Decoder.
func (d *decoder) Document(text []byte) *model.Error { return llmwire.NotAStream(text, readDocument) }

// End implements llmwire.Decoder.
func (d *decoder) End() *model.Error {
	for i := range d.blocks {
		d.close(&d.blocks[i])
	}
	d.reply.CloseAll()
	if d.stop == "refusal" {
		text := d.details
		if text == "" {
			text = "the provider's safety system stopped the reply"
		}
		return &model.Error{Class: model.ClassRefused, Code: d.stop, Message: text}
	}
	if d.reply.Nameless() {
		return &model.Error{Class: model.ClassMalformed, Message: "the reply has a tool call without a name"}
	}
	return nil
}

// message returns the finished reply.
func (d *decoder) message() *message.Message {
	m := &d.reply.Message
	m.Usage = &d.usage
	switch {
	case d.stop == "max_tokens" || d.stop == "model_context_window_exceeded":
		m.StopReason = message.StopLength
	case d.reply.Calls() > 0:
		m.StopReason = message.StopToolUse
	default:
		m.StopReason = message.StopEnd // end_turn, stop_sequence, pause_turn, and new words
	}
	return m
}
