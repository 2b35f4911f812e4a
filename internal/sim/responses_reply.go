package sim

import (
	"strconv"

	"agentd/message"
	"agentd/model/script"
)

// open implements protocol.
func (responses) open(req *request, rep *script.Reply, e *exchange) writer {
	return &resStream{resItems: resItems{req, rep}, e: e}
}

// fault implements protocol.
func (responses) fault(f *script.Fault, req *request) *apiError {
	e := openAI{}.fault(f, req)
	if e.param == "messages" {
		e.param = "input"
	}
	return e
}

// body implements protocol.
func (responses) body(b []byte, req *request, rep *script.Reply) []byte {
	it := resItems{req, rep}
	if rep.Stop == stopRefused {
		return it.response(b, "completed", "", it.refusal(nil))
	}
	status, reason := it.outcome()
	return it.response(b, status, reason, it.all(nil))
}

// resItems writes a reply as items. Their ids say whether the reply has reasoning
// (msg_…r1) or not (msg_…n1), so that a request can be refused that leaves it out.
type resItems struct {
	req *request
	rep *script.Reply
}

func (o *resItems) id(i int) string {
	kind := "n"
	for j := range o.rep.Blocks {
		if o.rep.Blocks[j].Type == message.BlockThinking {
			kind = "r"
		}
	}
	switch o.rep.Blocks[i].Type {
	case message.BlockThinking:
		return "rs_" + o.rep.ID
	case message.BlockText:
		return "msg_" + o.rep.ID + kind + strconv.Itoa(i)
	}
	return "fc_" + o.rep.ID + kind + strconv.Itoa(i)
}

// item appends the item of a block: whole, or as it is announced.
func (o *resItems) item(b []byte, i int, whole bool) []byte {
	bl := &o.rep.Blocks[i]
	b = script.AppendQuote(append(b, `{"id":`...), o.id(i))
	status := "in_progress"
	if whole {
		status = "completed"
		if i == len(o.rep.Blocks)-1 && o.rep.Stop == message.StopLength {
			status = "incomplete"
		}
	}
	switch bl.Type {
	case message.BlockThinking:
		b = append(b, `,"type":"reasoning","summary":[`...)
		if whole && o.req.summaries {
			b = append(script.AppendQuote(append(b, `{"type":"summary_text","text":`...), bl.Text), '}')
		}
		b = append(b, ']')
		if whole && o.req.encrypted {
			b = script.AppendQuote(append(b, `,"encrypted_content":`...), seal(o.id(i), bl.Text))
		}
		return append(b, '}')
	case message.BlockText:
		b = append(b, `,"type":"message","status":"`+status+`","role":"assistant","content":[`...)
		if whole {
			b = o.part(b, bl.Text)
		}
		return append(b, "]}"...)
	}
	b = script.AppendQuote(append(b, `,"type":"function_call","status":"`+status+`","call_id":`...), bl.ID)
	b = script.AppendQuote(append(b, `,"name":`...), bl.Name)
	arguments := ""
	if whole {
		arguments = string(bl.Arguments)
	}
	return append(script.AppendQuote(append(b, `,"arguments":`...), arguments), '}')
}

func (o *resItems) part(b []byte, text string) []byte {
	return append(script.AppendQuote(append(b, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...), text), '}')
}

// refusal appends the item of a reply that is refused.
func (o *resItems) refusal(b []byte) []byte {
	return append(b, `{"id":"msg_`+o.rep.ID+`","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"`+refusal+`"}]}`...)
}

// all appends the items, with commas between them.
func (o *resItems) all(b []byte) []byte {
	for i := range o.rep.Blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = o.item(b, i, true)
	}
	return b
}

// outcome is how the reply ends.
func (o *resItems) outcome() (status, reason string) {
	if o.rep.Stop == message.StopLength {
		return "incomplete", "max_output_tokens"
	}
	return "completed", ""
}

// response appends the response itself. Usage comes at its end.
func (o *resItems) response(b []byte, status, reason string, output []byte) []byte {
	return o.failedResponse(b, status, reason, output, nil)
}

func (o *resItems) failedResponse(b []byte, status, reason string, output []byte, e *apiError) []byte {
	b = append(append(append(b, `{"id":"resp_`...), o.rep.ID...), `","object":"response","created_at":`+created...)
	b = append(append(append(b, `,"status":"`...), status...), `","background":false,"error":`...)
	if e == nil {
		b = append(b, "null"...)
	} else {
		code := e.code
		if code == "" {
			code = e.typ
		}
		b = script.AppendQuote(append(b, `{"code":`...), code)
		b = append(script.AppendQuote(append(b, `,"message":`...), e.message), '}')
	}
	b = append(b, `,"incomplete_details":`...)
	if reason == "" {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, `{"reason":"`...), reason...), `"}`...)
	}
	b = append(b, `,"instructions":null,"max_output_tokens":`...)
	if o.req.MaxTokens > 0 {
		b = strconv.AppendInt(b, int64(o.req.MaxTokens), 10)
	} else {
		b = append(b, "null"...)
	}
	b = script.AppendQuote(append(b, `,"model":`...), o.req.Model)
	b = append(append(append(b, `,"output":[`...), output...), `],"parallel_tool_calls":`...)
	b = strconv.AppendBool(b, !o.req.OneCall)
	b = append(b, `,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"service_tier":"default","store":false,"temperature":1.0,`+
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":`...)
	if status == "in_progress" {
		b = append(b, "null"...)
	} else {
		b = resUsage(b, &o.rep.Usage)
	}
	return append(b, `,"user":null,"metadata":{}}`...)
}

func resUsage(b []byte, u *message.Usage) []byte {
	num := func(key string, n int64) { b = strconv.AppendInt(append(b, key...), n, 10) }
	num(`{"input_tokens":`, u.Prompt())
	num(`,"input_tokens_details":{"cached_tokens":`, u.CacheRead)
	if u.CacheWrite > 0 {
		num(`,"cache_write_tokens":`, u.CacheWrite)
	}
	num(`},"output_tokens":`, u.Output)
	num(`,"output_tokens_details":{"reasoning_tokens":`, u.Reasoning)
	num(`},"total_tokens":`, u.Prompt()+u.Output)
	return append(b, '}')
}

// resStream writes a reply as events.
type resStream struct {
	resItems
	e      *exchange
	number int
	begun  bool // an item
}

// event begins an event; end ends and sends it.
func (o *resStream) event(kind string) {
	b := append(append(append(o.e.buf, "event: "...), kind...), "\ndata: {\"type\":\""...)
	b = append(append(b, kind...), `","sequence_number":`...)
	o.e.buf = strconv.AppendInt(b, int64(o.number), 10)
	o.number++
}

func (o *resStream) end() error {
	o.e.buf = append(o.e.buf, "}\n\n"...)
	return o.e.send()
}

// Start implements script.Sink.
func (o *resStream) Start() error {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		o.event(kind)
		o.e.buf = o.response(append(o.e.buf, `,"response":`...), "in_progress", "", nil)
		if err := o.end(); err != nil {
			return err
		}
	}
	return nil
}

// about begins an event about a block.
func (o *resStream) about(kind string, i int) {
	o.event(kind)
	o.e.buf = script.AppendQuote(append(o.e.buf, `,"item_id":`...), o.id(i))
	o.e.buf = strconv.AppendInt(append(o.e.buf, `,"output_index":`...), int64(i), 10)
}

// hidden reports whether nothing is shown of a block but that it is there.
func (o *resStream) hidden(i int) bool {
	return o.rep.Blocks[i].Type == message.BlockThinking && !o.req.summaries
}

// BlockStart implements script.Sink.
func (o *resStream) BlockStart(i int) error {
	o.begun = true
	o.event("response.output_item.added")
	o.e.buf = strconv.AppendInt(append(o.e.buf, `,"output_index":`...), int64(i), 10)
	o.e.buf = o.item(append(o.e.buf, `,"item":`...), i, false)
	if err := o.end(); err != nil {
		return err
	}
	switch o.rep.Blocks[i].Type {
	case message.BlockText:
		o.about("response.content_part.added", i)
		o.e.buf = o.part(append(o.e.buf, `,"content_index":0,"part":`...), "")
		return o.end()
	case message.BlockThinking:
		if o.hidden(i) {
			return nil
		}
		o.about("response.reasoning_summary_part.added", i)
		o.e.buf = append(o.e.buf, `,"summary_index":0,"part":{"type":"summary_text","text":""}`...)
		return o.end()
	}
	return nil
}

// Delta implements script.Sink.
func (o *resStream) Delta(i int, piece string) error {
	switch o.rep.Blocks[i].Type {
	case message.BlockThinking:
		if o.hidden(i) {
			return nil
		}
		o.about("response.reasoning_summary_text.delta", i)
		o.e.buf = append(o.e.buf, `,"summary_index":0`...)
	case message.BlockText:
		o.about("response.output_text.delta", i)
		o.e.buf = append(o.e.buf, `,"content_index":0,"logprobs":[]`...)
	default:
		o.about("response.function_call_arguments.delta", i)
	}
	o.e.buf = script.AppendQuote(append(o.e.buf, `,"delta":`...), piece)
	return o.end()
}

// BlockEnd implements script.Sink.
func (o *resStream) BlockEnd(i int) error {
	bl := &o.rep.Blocks[i]
	var err error
	switch {
	case bl.Type == message.BlockText:
		o.about("response.output_text.done", i)
		o.e.buf = script.AppendQuote(append(o.e.buf, `,"content_index":0,"logprobs":[],"text":`...), bl.Text)
		if err = o.end(); err == nil {
			o.about("response.content_part.done", i)
			o.e.buf = o.part(append(o.e.buf, `,"content_index":0,"part":`...), bl.Text)
			err = o.end()
		}
	case bl.Type == message.BlockThinking && !o.hidden(i):
		o.about("response.reasoning_summary_text.done", i)
		o.e.buf = script.AppendQuote(append(o.e.buf, `,"summary_index":0,"text":`...), bl.Text)
		if err = o.end(); err == nil {
			o.about("response.reasoning_summary_part.done", i)
			o.e.buf = script.AppendQuote(append(o.e.buf, `,"summary_index":0,"part":{"type":"summary_text","text":`...), bl.Text)
			o.e.buf = append(o.e.buf, '}')
			err = o.end()
		}
	case bl.Type == message.BlockToolCall:
		o.about("response.function_call_arguments.done", i)
		o.e.buf = script.AppendQuote(append(o.e.buf, `,"name":`...), bl.Name)
		o.e.buf = script.AppendQuote(append(o.e.buf, `,"arguments":`...), string(bl.Arguments))
		err = o.end()
	}
	if err != nil {
		return err
	}
	o.event("response.output_item.done")
	o.e.buf = strconv.AppendInt(append(o.e.buf, `,"output_index":`...), int64(i), 10)
	o.e.buf = o.item(append(o.e.buf, `,"item":`...), i, true)
	return o.end()
}

// Finish implements writer. A reply that is refused before it began is a refusal; one
// that began is stopped by the content filter.
func (o *resStream) Finish(refused bool) error {
	status, reason := o.outcome()
	output := o.all(nil)
	switch {
	case refused && o.begun:
		status, reason = "incomplete", "content_filter"
	case refused:
		output = o.refusal(nil)
		o.event("response.output_item.done")
		o.e.buf = o.refusal(append(o.e.buf, `,"output_index":0,"item":`...))
		if err := o.end(); err != nil {
			return err
		}
	}
	o.event("response." + status)
	o.e.buf = o.response(append(o.e.buf, `,"response":`...), status, reason, output)
	return o.end()
}

// Fail implements writer.
func (o *resStream) Fail(e *apiError) error {
	o.event("response.failed")
	o.e.buf = o.failedResponse(append(o.e.buf, `,"response":`...), "failed", "", nil, e)
	return o.end()
}

// Garbage implements writer.
func (o *resStream) Garbage() error {
	o.event("response.output_text.delta")
	o.e.buf = append(o.e.buf, `,"delta":"half a chu`+"\n\n"...)
	return o.e.send()
}
