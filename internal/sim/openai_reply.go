package sim

import (
	"fmt"
	"net/http"
	"strconv"

	"agentd/message"
	"agentd/model/script"
)

// created is the time in every reply and of every model: 2026-01-01, so that the
// same request gets the same bytes.
const created = "1767225600"

// requestHeader implements protocol.
func (openAI) requestHeader() string { return "X-Request-Id" }

// open implements protocol.
func (openAI) open(req *request, rep *script.Reply, e *exchange) writer {
	o := &oaiStream{req: req, rep: rep, e: e}
	o.head = append(o.head, `data: {"id":"chatcmpl-`...)
	o.head = append(o.head, rep.ID...)
	o.head = append(o.head, `","object":"chat.completion.chunk","created":`+created+`,"model":`...)
	o.head = script.AppendQuote(o.head, req.Model)
	o.head = append(o.head, `,"service_tier":"default","system_fingerprint":"fp_agentd","choices":[`...)
	return o
}

// oaiStream writes a reply as chunks.
type oaiStream struct {
	req  *request
	rep  *script.Reply
	e    *exchange
	head []byte // of every chunk
	call int    // index of the current tool call
}

// delta begins a chunk; end ends it.
func (o *oaiStream) delta() {
	o.e.buf = append(append(o.e.buf, o.head...), `{"index":0,"delta":`...)
}

func (o *oaiStream) end(finish string) {
	b := append(o.e.buf, `,"logprobs":null,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null}]"...)
	} else {
		b = append(append(append(b, '"'), finish...), `"}]`...)
	}
	if o.req.includeUsage {
		b = append(b, `,"usage":null`...)
	}
	o.e.buf = append(b, "}\n\n"...)
}

// Start implements script.Sink.
func (o *oaiStream) Start() error {
	o.call = -1
	o.delta()
	content := "null"
	for i := range o.rep.Blocks {
		if o.rep.Blocks[i].Type == message.BlockText {
			content = `""`
		}
	}
	o.e.buf = append(o.e.buf, `{"role":"assistant","content":`+content+`,"refusal":null}`...)
	o.end("")
	return o.e.send()
}

// BlockStart implements script.Sink.
func (o *oaiStream) BlockStart(i int) error {
	b := &o.rep.Blocks[i]
	if b.Type != message.BlockToolCall {
		return nil
	}
	o.call++
	o.delta()
	out := append(o.e.buf, `{"tool_calls":[{"index":`...)
	out = strconv.AppendInt(out, int64(o.call), 10)
	out = script.AppendQuote(append(out, `,"id":`...), b.ID)
	out = script.AppendQuote(append(out, `,"type":"function","function":{"name":`...), b.Name)
	o.e.buf = append(out, `,"arguments":""}}]}`...)
	o.end("")
	return o.e.send()
}

// Delta implements script.Sink. Thinking goes where the services that show it
// put it: reasoning_content.
func (o *oaiStream) Delta(i int, piece string) error {
	o.delta()
	switch o.rep.Blocks[i].Type {
	case message.BlockThinking:
		o.e.buf = script.AppendQuote(append(o.e.buf, `{"reasoning_content":`...), piece)
	case message.BlockText:
		o.e.buf = script.AppendQuote(append(o.e.buf, `{"content":`...), piece)
	default:
		b := strconv.AppendInt(append(o.e.buf, `{"tool_calls":[{"index":`...), int64(o.call), 10)
		b = script.AppendQuote(append(b, `,"function":{"arguments":`...), piece)
		o.e.buf = append(b, "}}]"...)
	}
	o.e.buf = append(o.e.buf, '}')
	o.end("")
	return o.e.send()
}

// BlockEnd implements script.Sink.
func (o *oaiStream) BlockEnd(int) error { return nil }

// Finish implements writer: the finish reason, the usage if it was asked for in
// a chunk of its own, and the end mark.
func (o *oaiStream) Finish(refused bool) error {
	reason := oaiFinish(o.rep.Stop)
	o.delta()
	if refused {
		reason = "content_filter"
		o.e.buf = append(o.e.buf, `{"refusal":"`+refusal+`"}`...)
	} else {
		o.e.buf = append(o.e.buf, "{}"...)
	}
	o.end(reason)
	if o.req.includeUsage {
		o.e.buf = append(append(o.e.buf, o.head...), `],"usage":`...)
		o.e.buf = oaiUsage(o.e.buf, &o.rep.Usage)
		o.e.buf = append(o.e.buf, "}\n\n"...)
	}
	o.e.buf = append(o.e.buf, "data: [DONE]\n\n"...)
	return o.e.send()
}

// Fail implements writer.
func (o *oaiStream) Fail(e *apiError) error {
	o.e.buf = openAI{}.envelope(append(o.e.buf, "data: "...), e, "")
	o.e.buf = append(o.e.buf, "\n\n"...)
	return o.e.send()
}

// Garbage implements writer.
func (o *oaiStream) Garbage() error {
	o.delta()
	o.e.buf = append(o.e.buf, `{"content":"half a chu`+"\n\n"...)
	return o.e.send()
}

// refusal is what a refused reply says.
const refusal = "I'm sorry, I cannot assist with that request."

func oaiFinish(r message.StopReason) string {
	switch r {
	case message.StopLength:
		return "length"
	case message.StopToolUse:
		return "tool_calls"
	case stopRefused:
		return "content_filter"
	}
	return "stop"
}

func oaiUsage(b []byte, u *message.Usage) []byte {
	num := func(key string, n int64) { b = strconv.AppendInt(append(b, key...), n, 10) }
	num(`{"prompt_tokens":`, u.Prompt())
	num(`,"completion_tokens":`, u.Output)
	num(`,"total_tokens":`, u.Prompt()+u.Output)
	num(`,"prompt_tokens_details":{"cached_tokens":`, u.CacheRead)
	if u.CacheWrite > 0 { // of models that bill it
		num(`,"cache_write_tokens":`, u.CacheWrite)
	}
	num(`,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`, u.Reasoning)
	return append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

// body implements protocol.
func (openAI) body(b []byte, req *request, rep *script.Reply) []byte {
	b = append(append(b, `{"id":"chatcmpl-`...), rep.ID...)
	b = append(b, `","object":"chat.completion","created":`+created+`,"model":`...)
	b = script.AppendQuote(b, req.Model)
	b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	text, thinking, calls := "", "", 0
	for i := range rep.Blocks {
		switch bl := &rep.Blocks[i]; bl.Type {
		case message.BlockText:
			text += bl.Text
		case message.BlockThinking:
			thinking += bl.Text
		default:
			calls++
		}
	}
	refused := rep.Stop == stopRefused
	if text == "" && calls > 0 || refused {
		b = append(b, "null"...)
	} else {
		b = script.AppendQuote(b, text)
	}
	b = append(b, `,"refusal":`...)
	if refused {
		b = append(b, `"`+refusal+`"`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"annotations":[]`...)
	if thinking != "" {
		b = script.AppendQuote(append(b, `,"reasoning_content":`...), thinking)
	}
	if calls > 0 && !refused {
		sep := `,"tool_calls":[`
		for i := range rep.Blocks {
			bl := &rep.Blocks[i]
			if bl.Type != message.BlockToolCall {
				continue
			}
			b = script.AppendQuote(append(append(b, sep...), `{"id":`...), bl.ID)
			b = script.AppendQuote(append(b, `,"type":"function","function":{"name":`...), bl.Name)
			b = script.AppendQuote(append(b, `,"arguments":`...), string(bl.Arguments))
			b = append(b, "}}"...)
			sep = ","
		}
		b = append(b, ']')
	}
	b = append(append(b, `},"logprobs":null,"finish_reason":"`...), oaiFinish(rep.Stop)...)
	b = oaiUsage(append(b, `"}],"usage":`...), &rep.Usage)
	return append(b, `,"service_tier":"default","system_fingerprint":"fp_agentd"}`...)
}

// envelope implements protocol.
func (openAI) envelope(b []byte, e *apiError, _ string) []byte {
	b = script.AppendQuote(append(b, `{"error":{"message":`...), e.message)
	b = script.AppendQuote(append(b, `,"type":`...), e.typ)
	for _, f := range [...]struct{ key, val string }{{`,"param":`, e.param}, {`,"code":`, e.code}} {
		b = append(b, f.key...)
		if f.val == "" {
			b = append(b, "null"...)
		} else {
			b = script.AppendQuote(b, f.val)
		}
	}
	return append(b, "}}"...)
}

// fault implements protocol.
func (openAI) fault(f *script.Fault, req *request) *apiError {
	e := &apiError{status: f.Status, retryAfter: f.RetryAfter, message: f.Message}
	status, text := 500, ""
	switch f.Kind {
	case script.FaultRateLimited:
		e.typ, e.code, status = "requests", "rate_limit_exceeded", 429
		text = fmt.Sprintf("Rate limit reached for %s in organization org-agentd on requests per min (RPM): Limit 3, Used 3, Requested 1.", req.Model)
	case script.FaultOverloaded:
		e.typ, e.code, status, text = "server_error", "server_overloaded", 503, "The engine is currently overloaded, please try again later"
	case script.FaultOverflow:
		e.typ, e.code, e.param, status = "invalid_request_error", "context_length_exceeded", "messages", 400
		text = fmt.Sprintf("This model's maximum context length is 128000 tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", 128_000+req.PromptTokens)
	case script.FaultAuth:
		e.typ, e.code, status, text = "invalid_request_error", "invalid_api_key", 401, "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."
	case script.FaultQuota:
		e.typ, e.code, status = "insufficient_quota", "insufficient_quota", 429
		text = "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
	default:
		e.typ, text = "server_error", "The server had an error while processing your request. Sorry about that!"
	}
	return e.or(status, text)
}

// or fills in what a script left open.
func (e *apiError) or(status int, text string) *apiError {
	if e.status == 0 {
		e.status = status
	}
	if e.message == "" {
		e.message = text
	}
	return e
}

// noModel implements protocol.
func (openAI) noModel(id string) *apiError {
	return &apiError{status: http.StatusNotFound, typ: "invalid_request_error", code: "model_not_found",
		message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", id)}
}

// noRoute implements protocol.
func (openAI) noRoute(method, path string) *apiError {
	return &apiError{status: http.StatusNotFound, typ: "invalid_request_error", message: fmt.Sprintf("Invalid URL (%s %s)", method, path)}
}

// tooLarge implements protocol.
func (openAI) tooLarge(limit int64) *apiError {
	return &apiError{status: http.StatusRequestEntityTooLarge, typ: "invalid_request_error",
		message: fmt.Sprintf("Request body is larger than %d bytes.", limit)}
}

// models implements protocol.
func (o openAI) models(b []byte, ids []string) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = o.model(b, id)
	}
	return append(b, "]}"...)
}

// model implements protocol.
func (openAI) model(b []byte, id string) []byte {
	b = script.AppendQuote(append(b, `{"id":`...), id)
	return append(b, `,"object":"model","created":`+created+`,"owned_by":"agentd"}`...)
}
