package openai

import (
	"bytes"
	"strconv"

	"agentd/internal/llmwire"
	"agentd/message"
	"agentd/model"
)

// responses turns the events of the Responses API into a reply. It ends with
// response.completed, response.incomplete or response.failed, and with nothing else.
type responses struct {
	reply *llmwire.Reply
	usage *message.Usage
	items []item
	stops llmwire.Stops

	status  string // of the response, once it ended
	reason  string // why it is incomplete
	failure *model.Error
	refused []byte
}

// item is an output item of the wire and its block.
type item struct {
	index  int64
	id     string
	kind   string // reasoning, message, function_call; others are not ours
	block  int    // or -1
	part   int64  // of the summary
	source byte   // of thinking: 's' summary, 'c' content; the one that came first counts
	done   bool
}

func newResponses(emit func(model.StreamEvent), stop []string) *responses {
	return &responses{reply: llmwire.NewReply(emit), stops: llmwire.NewStops(stop)}
}

// event are the members of an event that matter.
type event struct {
	kind, id               string
	index, part            int64
	delta, text, arguments []byte
	item, response, failed []byte
}

func readEvent(data []byte) event {
	e := event{index: -1}
	for c := llmwire.Object(data); ; {
		key, value, ok := c.Member()
		if !ok {
			return e
		}
		switch string(key) {
		case "type":
			e.kind = llmwire.String(value)
		case "item_id":
			e.id = llmwire.String(value)
		case "output_index":
			e.index = llmwire.Int(value)
		case "summary_index", "content_index":
			e.part = llmwire.Int(value)
		case "delta":
			e.delta = value
		case "text", "refusal":
			e.text = value
		case "arguments":
			e.arguments = value
		case "item":
			e.item = value
		case "response":
			e.response = value
		case "error":
			if !llmwire.Null(value) {
				e.failed = value
			}
		}
	}
}

// Chunk implements llmwire.Decoder.
func (d *responses) Chunk(data []byte) (done bool, failed *model.Error) {
	if string(data) == "[DONE]" {
		return true, nil // some gateways add it; it is not what ends a response
	}
	if !llmwire.Valid(data) {
		return false, llmwire.Malformed("an event of the stream is not JSON", data)
	}
	switch e := readEvent(data); e.kind {
	case "response.created", "response.in_progress", "response.queued":
		d.begin(e.response)
	case "response.output_item.added":
		d.add(e.index, e.item)
	case "response.output_item.done":
		d.finish(d.at(e.index, llmwire.String(llmwire.Get(e.item, "id")), kindOf(e.item)), e.item)
	case "response.output_text.delta":
		d.say(d.at(e.index, e.id, "message"), e.delta)
	case "response.refusal.delta":
		d.refused = append(d.refused, llmwire.String(e.delta)...)
	case "response.refusal.done":
		if len(d.refused) == 0 {
			d.refused = append(d.refused, llmwire.String(e.text)...)
		}
	case "response.reasoning_summary_text.delta":
		d.think(d.at(e.index, e.id, "reasoning"), 's', e.part, e.delta)
	case "response.reasoning_text.delta":
		d.think(d.at(e.index, e.id, "reasoning"), 'c', e.part, e.delta)
	case "response.function_call_arguments.delta":
		d.argue(d.at(e.index, e.id, "function_call"), e.delta)
	case "response.function_call_arguments.done":
		if it := d.at(e.index, e.id, "function_call"); it.block < 0 || d.reply.Len(it.block) == 0 {
			d.argue(it, e.arguments)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		d.terminal(e.kind[len("response."):], e.response)
		return true, nil
	case "error":
		return false, failure(data)
	case "": // gateways
		if e.failed != nil {
			return false, failure(data)
		}
	}
	return false, nil
}

// failure is what an error in the stream says.
func failure(data []byte) *model.Error {
	e := &model.Error{}
	var kind string
	e.Message, e.Code, kind = describe(data)
	if kind == "error" {
		kind = "" // the type of the event
	}
	classify(e, kind)
	return e
}

func (d *responses) begin(response []byte) {
	if d.reply.Message.ResponseID == "" {
		d.reply.Message.ResponseID = llmwire.String(llmwire.Get(response, "id"))
	}
	d.reply.Start()
}

// at finds the item that an event is about, by its place and else by its id. One that
// was not announced is made.
func (d *responses) at(index int64, id, kind string) *item {
	for i := len(d.items) - 1; i >= 0; i-- {
		it := &d.items[i]
		if index >= 0 && it.index == index || index < 0 && (id != "" && it.id == id || id == "" && it.kind == kind && !it.done) {
			return it
		}
	}
	d.items = append(d.items, item{index: index, id: id, kind: kind, block: -1})
	return &d.items[len(d.items)-1]
}

func kindOf(item []byte) string { return llmwire.String(llmwire.Get(item, "type")) }

func (d *responses) add(index int64, raw []byte) {
	it := d.at(index, llmwire.String(llmwire.Get(raw, "id")), kindOf(raw))
	switch it.kind {
	case "reasoning":
		d.open(it, message.Block{Type: message.BlockThinking})
	case "function_call":
		d.open(it, message.Block{Type: message.BlockToolCall, ID: llmwire.String(llmwire.Get(raw, "call_id")), Name: llmwire.String(llmwire.Get(raw, "name"))})
	}
	// A message begins with its first text: it may be a refusal and have none.
}

// open begins the block of an item and reports whether it has one. What comes after a
// stop text has none.
func (d *responses) open(it *item, b message.Block) bool {
	if it.block < 0 && !d.stops.Hit() {
		it.block = d.reply.Open(b)
	}
	return it.block >= 0
}

func (d *responses) say(it *item, raw []byte) {
	if it.kind != "message" || len(raw) <= 2 || !llmwire.IsString(raw) || it.done {
		return
	}
	if d.stops.Any() {
		raw = llmwire.AppendString(nil, d.stops.Next(llmwire.String(raw)))
		if len(raw) <= 2 {
			return
		}
	}
	d.text(it, raw)
}

func (d *responses) text(it *item, raw []byte) {
	if it.block < 0 {
		it.block = d.reply.Open(message.Block{Type: message.BlockText})
	}
	d.reply.Delta(it.block, raw)
}

func (d *responses) think(it *item, source byte, part int64, raw []byte) {
	if it.kind != "reasoning" || it.source != 0 && it.source != source || !llmwire.IsString(raw) || !d.open(it, message.Block{Type: message.BlockThinking}) {
		return
	}
	it.source = source
	if part != it.part && d.reply.Len(it.block) > 0 {
		d.reply.Delta(it.block, []byte(`"\n\n"`))
	}
	it.part = part
	d.reply.Delta(it.block, raw)
}

func (d *responses) argue(it *item, raw []byte) {
	if it.kind == "function_call" && llmwire.IsString(raw) && d.open(it, message.Block{Type: message.BlockToolCall}) {
		d.reply.Delta(it.block, raw)
	}
}

// finish takes an item as it is when it is done: what its deltas left out, and what has
// to be sent back.
func (d *responses) finish(it *item, raw []byte) {
	if it.done {
		return
	}
	id := llmwire.String(llmwire.Get(raw, "id"))
	switch it.kind {
	case "reasoning":
		if !d.open(it, message.Block{Type: message.BlockThinking}) {
			break
		}
		if d.reply.Len(it.block) == 0 {
			for i, key := range []string{"summary", "content"} {
				parts := llmwire.Array(llmwire.Get(raw, key))
				for n := int64(0); ; n++ {
					part, ok := parts.Element()
					if !ok {
						break
					}
					d.think(it, "sc"[i], n, llmwire.Get(part, "text"))
				}
			}
		}
		b := &d.reply.Message.Content[it.block]
		b.Signature, b.Redacted = string(raw), d.reply.Len(it.block) == 0
	case "message":
		d.finishMessage(it, raw)
		if it.block >= 0 {
			sign := id
			if phase := llmwire.String(llmwire.Get(raw, "phase")); phase != "" {
				sign += " " + phase
			}
			d.reply.Message.Content[it.block].Signature = sign
		}
	case "function_call":
		if !d.open(it, message.Block{Type: message.BlockToolCall}) {
			break
		}
		d.reply.Rename(it.block, llmwire.String(llmwire.Get(raw, "call_id")), llmwire.String(llmwire.Get(raw, "name")))
		if d.reply.Len(it.block) == 0 {
			d.argue(it, llmwire.Get(raw, "arguments"))
		}
		d.reply.Message.Content[it.block].Signature = id
	}
	it.done = true
	if it.block >= 0 {
		d.identify(it)
		d.reply.Close(it.block)
	}
}

// identify gives a call without an id one, by its place: results are matched by it.
func (d *responses) identify(it *item) {
	if it.block < 0 || d.reply.Message.Content[it.block].Type != message.BlockToolCall {
		return
	}
	before := 0
	for i := range d.reply.Message.Content[:it.block] {
		if d.reply.Message.Content[i].Type == message.BlockToolCall {
			before++
		}
	}
	d.reply.Rename(it.block, "call_"+d.reply.Message.ResponseID+"_"+strconv.Itoa(before), "")
}

func (d *responses) finishMessage(it *item, raw []byte) {
	said := it.block >= 0 || d.stops.Hit() || d.stops.Holds()
	content := llmwire.Array(llmwire.Get(raw, "content"))
	for {
		part, ok := content.Element()
		if !ok {
			break
		}
		switch kindOf(part) {
		case "output_text":
			if !said {
				d.say(it, llmwire.Get(part, "text"))
			}
		case "refusal":
			if len(d.refused) == 0 {
				d.refused = append(d.refused, llmwire.String(llmwire.Get(part, "refusal"))...)
			}
		}
	}
	if rest := d.stops.Rest(); rest != "" {
		d.text(it, llmwire.AppendString(nil, rest))
	}
}

// terminal reads the response as it is at its end.
func (d *responses) terminal(status string, raw []byte) {
	d.begin(raw)
	d.status = status
	if u := llmwire.Get(raw, "usage"); !llmwire.Null(u) {
		d.count(u)
		d.usage.Tier = model.TierOf(llmwire.String(llmwire.Get(raw, "service_tier")))
	}
	d.reason = llmwire.String(llmwire.Get(llmwire.Get(raw, "incomplete_details"), "reason"))
	if status == "failed" {
		d.failure = failure(raw)
	}
	announced := len(d.items) > 0
	output := llmwire.Array(llmwire.Get(raw, "output"))
	for n := int64(0); ; n++ {
		one, ok := output.Element()
		if !ok {
			return
		}
		id := llmwire.String(llmwire.Get(one, "id"))
		it := d.known(id, n, kindOf(one))
		switch {
		case it == nil && !announced: // a gateway that leaves the items' events out
			d.finish(d.at(n, id, kindOf(one)), one)
		case it == nil:
		case !it.done:
			d.finish(it, one)
		case it.kind == "reasoning" && it.block >= 0:
			// Azure leaves the encrypted content out of the item's own events at times.
			b := &d.reply.Message.Content[it.block]
			if !replayable(b.Signature) && replayable(string(one)) {
				b.Signature = string(one)
			}
		}
	}
}

// known finds an item of the final list, by its id and else by its place.
func (d *responses) known(id string, index int64, kind string) *item {
	for i := range d.items {
		if it := &d.items[i]; id != "" && it.id == id {
			return it
		}
	}
	for i := range d.items {
		if it := &d.items[i]; it.index == index && it.kind == kind {
			return it
		}
	}
	return nil
}

func (d *responses) count(raw []byte) {
	u := &message.Usage{}
	var prompt, cached, written int64
	for c := llmwire.Object(raw); ; {
		key, value, ok := c.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "input_tokens":
			prompt = llmwire.Int(value)
		case "output_tokens":
			u.Output = llmwire.Int(value)
		case "total_tokens":
			u.TotalTokens = llmwire.Int(value)
		case "input_tokens_details":
			cached = llmwire.Int(llmwire.Get(value, "cached_tokens"))
			written = llmwire.Int(llmwire.Get(value, "cache_write_tokens"))
		case "output_tokens_details":
			u.Reasoning = llmwire.Int(llmwire.Get(value, "reasoning_tokens"))
		}
	}
	// input_tokens counts everything that was read.
	u.CacheRead = min(cached, prompt)
	u.CacheWrite = min(written, prompt-u.CacheRead)
	u.Input = prompt - u.CacheRead - u.CacheWrite
	if u.TotalTokens == 0 {
		u.TotalTokens = prompt + u.Output
	}
	d.usage = u
}

// Complete implements llmwire.Decoder: nothing but its own event ends a response.
func (d *responses) Complete(error) bool { return d.status != "" }

func (d *responses) partial() *message.Message { return &d.reply.Message }
func (d *responses) used() *message.Usage      { return d.usage }

// Document implements llmwire.Decoder.
func (d *responses) Document(text []byte) *model.Error { return llmwire.NotAStream(text, readDocument) }

// End implements llmwire.Decoder.
func (d *responses) End() *model.Error {
	d.flush()
	for i := range d.items {
		d.identify(&d.items[i])
	}
	d.reply.CloseAll()
	switch {
	case d.failure != nil:
		return d.failure
	case d.status == "cancelled":
		return &model.Error{Class: model.ClassServer, Code: d.status, Message: "the provider gave up during the reply"}
	case d.status == "incomplete" && d.reason == "content_filter":
		return &model.Error{Class: model.ClassRefused, Code: d.reason, Message: "the provider's content filter stopped the reply"}
	case d.status == "incomplete" && d.reason != "max_output_tokens":
		return &model.Error{Class: model.ClassServer, Code: d.reason, Message: "the provider left the reply incomplete"}
	case len(bytes.TrimSpace(d.refused)) > 0:
		return &model.Error{Class: model.ClassRefused, Code: "refusal", Message: string(d.refused)}
	case d.reply.Nameless():
		return &model.Error{Class: model.ClassMalformed, Message: "the reply has a tool call without a name"}
	}
	return nil
}

// flush gives out what was held back of a message that was never done.
func (d *responses) flush() {
	rest := d.stops.Rest()
	if rest == "" {
		return
	}
	for i := len(d.items) - 1; i >= 0; i-- {
		if it := &d.items[i]; it.kind == "message" && !it.done {
			d.text(it, llmwire.AppendString(nil, rest))
			return
		}
	}
}

// message implements decoding.
func (d *responses) message() *message.Message {
	m := &d.reply.Message
	m.Usage = d.usage
	if m.Usage == nil {
		m.Usage = &message.Usage{}
	}
	switch {
	case d.stops.Hit():
		m.StopReason = message.StopEnd
	case d.status == "incomplete":
		m.StopReason = message.StopLength
	case d.reply.Calls() > 0:
		m.StopReason = message.StopToolUse
	default:
		m.StopReason = message.StopEnd
	}
	return m
}
