package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// requestHeader implements protocol.
func (anthropic) requestHeader() string { return "Request-Id" }

// open implements protocol.
func (anthropic) open(req *request, rep *script.Reply, e *exchange) writer {
	return &antStream{req: req, rep: rep, e: e}
}

// antStream writes a reply as events.
type antStream struct {
	req    *request
	rep    *script.Reply
	e      *exchange
	pinged bool
	inside int // 1 + the index of the open block; 0 for none
}

// Start implements script.Sink.
func (a *antStream) Start() error {
	b := append(a.e.buf, `event: message_start`+"\n"+`data: {"type":"message_start","message":`...)
	b = antHead(b, a.req, a.rep)
	b = append(b, `"content":[],"stop_reason":null,"stop_sequence":null,`+antNulls+`,"usage":`...)
	b = antUsage(b, a.req, &a.rep.Usage, 1)
	a.e.buf = append(b, "}}\n\n"...)
	return a.e.send()
}

// antHead appends what a message begins with.
func antHead(b []byte, req *request, rep *script.Reply) []byte {
	b = append(append(b, `{"id":"msg_`...), rep.ID...)
	b = append(b, `","type":"message","role":"assistant","model":`...)
	return append(script.AppendQuote(b, req.Model), ',')
}

// antNulls are the fields of a message that the service always sends, with the
// value that they have in plain replies.
const antNulls = `"stop_details":null,"diagnostics":null,"container":null`

// antUsage appends the usage of a message; that of a message_delta (antTotal) has
// fewer fields.
func antUsage(b []byte, req *request, u *message.Usage, output int64) []byte {
	hour := req.prefix.writtenForHour(u)
	b = antTotal(b, u, output)
	b = append(b[:len(b)-1], `,"cache_creation":{"ephemeral_5m_input_tokens":`...)
	b = append(strconv.AppendInt(b, u.CacheWrite-hour, 10), `,"ephemeral_1h_input_tokens":`...)
	b = strconv.AppendInt(b, hour, 10)
	return append(b, `},"inference_geo":null,"speed":null,"service_tier":"standard"}`...)
}

func antTotal(b []byte, u *message.Usage, output int64) []byte {
	num := func(key string, n int64) { b = strconv.AppendInt(append(b, key...), n, 10) }
	num(`{"input_tokens":`, u.Input)
	num(`,"cache_creation_input_tokens":`, u.CacheWrite)
	num(`,"cache_read_input_tokens":`, u.CacheRead)
	num(`,"output_tokens":`, output)
	num(`,"output_tokens_details":{"thinking_tokens":`, min(u.Reasoning, output))
	return append(b, `},"server_tool_use":null}`...)
}

// BlockStart implements script.Sink.
func (a *antStream) BlockStart(i int) error {
	bl := &a.rep.Blocks[i]
	b := append(a.e.buf, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	b = append(strconv.AppendInt(b, int64(i), 10), `,"content_block":`...)
	switch bl.Type {
	case message.BlockThinking:
		b = append(b, `{"type":"thinking","thinking":"","signature":""}`...)
	case message.BlockText:
		b = append(b, `{"type":"text","text":"","citations":null}`...)
	default:
		b = script.AppendQuote(append(b, `{"type":"tool_use","id":`...), bl.ID)
		b = script.AppendQuote(append(b, `,"name":`...), bl.Name)
		b = append(b, `,"input":{},"caller":{"type":"direct"}}`...)
	}
	b = append(b, "}\n\n"...)
	a.inside = i + 1
	if !a.pinged {
		a.pinged = true
		b = append(b, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
	}
	if bl.Type == message.BlockToolCall {
		b = a.delta(b, i, `"input_json_delta","partial_json":""`)
	}
	a.e.buf = b
	return a.e.send()
}

// delta appends a delta whose inside is given from its type on.
func (a *antStream) delta(b []byte, i int, inside string) []byte {
	b = append(b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = append(strconv.AppendInt(b, int64(i), 10), `,"delta":{"type":`...)
	b = append(b, inside...)
	return append(b, "}}\n\n"...)
}

// Delta implements script.Sink.
func (a *antStream) Delta(i int, piece string) error {
	b := append(a.e.buf, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	b = append(strconv.AppendInt(b, int64(i), 10), `,"delta":{"type":`...)
	switch a.rep.Blocks[i].Type {
	case message.BlockThinking:
		b = append(b, `"thinking_delta","thinking":`...)
	case message.BlockText:
		b = append(b, `"text_delta","text":`...)
	default:
		b = append(b, `"input_json_delta","partial_json":`...)
	}
	a.e.buf = append(script.AppendQuote(b, piece), "}}\n\n"...)
	return a.e.send()
}

// BlockEnd implements script.Sink.
func (a *antStream) BlockEnd(i int) error {
	bl := &a.rep.Blocks[i]
	b := a.e.buf
	if bl.Type == message.BlockThinking {
		b = a.delta(b, i, `"signature_delta","signature":`+string(script.AppendQuote(nil, bl.Signature)))
	}
	a.e.buf = a.closeBlock(b)
	return a.e.send()
}

// closeBlock appends the end of the open block, if one is open.
func (a *antStream) closeBlock(b []byte) []byte {
	if a.inside == 0 {
		return b
	}
	b = append(b, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	b = append(strconv.AppendInt(b, int64(a.inside-1), 10), "}\n\n"...)
	a.inside = 0
	return b
}

// Finish implements writer. A refusal may come in the middle of a block.
func (a *antStream) Finish(refused bool) error {
	stop := a.rep.Stop
	if refused {
		stop = stopRefused
	}
	b := append(a.closeBlock(a.e.buf), "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	b = antStop(b, stop, a.rep)
	b = append(b, `,"stop_details":null,"container":null},"usage":`...)
	b = antTotal(b, &a.rep.Usage, a.rep.Usage.Output)
	a.e.buf = append(b, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
	return a.e.send()
}

func antStop(b []byte, stop message.StopReason, rep *script.Reply) []byte {
	reason, seq := "end_turn", "null"
	switch {
	case stop == stopRefused:
		reason = "refusal"
	case stop == message.StopLength:
		reason = "max_tokens"
	case stop == message.StopToolUse:
		reason = "tool_use"
	case rep.StopSequence != "":
		reason, seq = "stop_sequence", string(script.AppendQuote(nil, rep.StopSequence))
	}
	return append(b, `"stop_reason":"`+reason+`","stop_sequence":`+seq...)
}

// Fail implements writer.
func (a *antStream) Fail(e *apiError) error {
	b := anthropic{}.envelope(append(a.e.buf, "event: error\ndata: "...), e, "req_"+a.rep.ID)
	a.e.buf = append(b, "\n\n"...)
	return a.e.send()
}

// Garbage implements writer.
func (a *antStream) Garbage() error {
	a.e.buf = append(a.e.buf, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_del\n\n"...)
	return a.e.send()
}

// body implements protocol.
func (anthropic) body(b []byte, req *request, rep *script.Reply) []byte {
	b = append(antHead(b, req, rep), `"content":[`...)
	if rep.Stop != stopRefused {
		for i := range rep.Blocks {
			if i > 0 {
				b = append(b, ',')
			}
			b = antBlock(b, &rep.Blocks[i])
		}
	}
	b = append(antStop(append(b, `],`...), rep.Stop, rep), `,`+antNulls+`,"usage":`...)
	return append(antUsage(b, req, &rep.Usage, rep.Usage.Output), '}')
}

func antBlock(b []byte, bl *message.Block) []byte {
	switch bl.Type {
	case message.BlockThinking:
		b = script.AppendQuote(append(b, `{"type":"thinking","thinking":`...), bl.Text)
		b = script.AppendQuote(append(b, `,"signature":`...), bl.Signature)
	case message.BlockText:
		b = script.AppendQuote(append(b, `{"type":"text","text":`...), bl.Text)
		b = append(b, `,"citations":null`...)
	default:
		b = script.AppendQuote(append(b, `{"type":"tool_use","id":`...), bl.ID)
		b = script.AppendQuote(append(b, `,"name":`...), bl.Name)
		b = append(append(b, `,"input":`...), antInput(bl.Arguments)...)
		b = append(b, `,"caller":{"type":"direct"}`...)
	}
	return append(b, '}')
}

// antInput is the input of a call in a whole reply. It is an object on this wire,
// so what a script wrote as broken text can only be sent as a string.
func antInput(args json.RawMessage) []byte {
	if gjson.ValidBytes(args) {
		return args
	}
	return script.AppendQuote(nil, string(args))
}

// envelope implements protocol.
func (anthropic) envelope(b []byte, e *apiError, requestID string) []byte {
	b = script.AppendQuote(append(b, `{"type":"error","error":{"type":`...), e.typ)
	b = script.AppendQuote(append(b, `,"message":`...), e.message)
	b = script.AppendQuote(append(b, `},"request_id":`...), requestID)
	return append(b, '}')
}

// fault implements protocol.
func (anthropic) fault(f *script.Fault, req *request) *apiError {
	e := &apiError{status: f.Status, retryAfter: f.RetryAfter, message: f.Message}
	status, text := 500, ""
	switch f.Kind {
	case script.FaultRateLimited:
		e.typ, status, text = "rate_limit_error", 429, "This request would exceed your organization's rate limit of 50 requests per minute. Please reduce the number of requests, or try again later."
	case script.FaultOverloaded:
		e.typ, status, text = "overloaded_error", 529, "Overloaded"
	case script.FaultOverflow:
		e.typ, status = "invalid_request_error", 400
		text = fmt.Sprintf("prompt is too long: %d tokens > 200000 maximum", 200_000+req.PromptTokens)
	case script.FaultAuth:
		e.typ, status, text = "authentication_error", 401, "invalid x-api-key"
	case script.FaultQuota:
		e.typ, status, text = "invalid_request_error", 400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
	default:
		e.typ, text = "api_error", "Internal server error"
	}
	return e.or(status, text)
}

// noModel implements protocol.
func (anthropic) noModel(id string) *apiError {
	return &apiError{status: http.StatusNotFound, typ: "not_found_error", message: "model: " + id}
}

// noRoute implements protocol.
func (anthropic) noRoute(string, string) *apiError {
	return &apiError{status: http.StatusNotFound, typ: "not_found_error", message: "Not Found"}
}

// tooLarge implements protocol.
func (anthropic) tooLarge(int64) *apiError {
	return &apiError{status: http.StatusRequestEntityTooLarge, typ: "request_too_large",
		message: "Request exceeds the maximum size"}
}

// models implements protocol.
func (a anthropic) models(b []byte, ids []string) []byte {
	b = append(b, `{"data":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.model(b, id)
	}
	b = append(b, `],"has_more":false,"first_id":`...)
	if len(ids) == 0 {
		return append(b, `null,"last_id":null}`...)
	}
	b = append(script.AppendQuote(b, ids[0]), `,"last_id":`...)
	return append(script.AppendQuote(b, ids[len(ids)-1]), '}')
}

// model implements protocol.
func (anthropic) model(b []byte, id string) []byte {
	b = script.AppendQuote(append(b, `{"type":"model","id":`...), id)
	b = script.AppendQuote(append(b, `,"display_name":`...), id)
	return append(b, `,"created_at":"2026-01-01T00:00:00Z","lifecycle":"active","line":null,"capabilities":null,`+
		`"max_input_tokens":null,"max_tokens":null,"deprecated_at":null,"retires_at":null}`...)
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	p := anthropic{}
	body, err := s.read(w, r)
	if err != nil {
		s.unreadable(w, r, p, err)
		return
	}
	req, bad := p.parse(r, body, true)
	switch {
	case bad != nil:
		s.fail(w, r, p, bad)
	case s.player(req.Model) == nil:
		s.fail(w, r, p, p.noModel(req.Model))
	default:
		s.write(w, http.StatusOK, fmt.Appendf(nil, `{"input_tokens":%d}`, req.PromptTokens))
	}
}
