package sim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"agentd/message"
	"agentd/model/script"
)

// requestHeader implements protocol.
func (gemini) requestHeader() string { return "X-Request-Id" }

// open implements protocol.
func (gemini) open(req *request, rep *script.Reply, e *exchange) writer {
	return &gemStream{req: req, rep: rep, e: e}
}

// gemStream writes a reply as chunks.
type gemStream struct {
	req *request
	rep *script.Reply
	e   *exchange
}

// chunk sends parts as a chunk; reason ends the reply.
func (g *gemStream) chunk(parts, reason string) error {
	b := append(g.e.buf, `data: {"candidates": [{"content": {"parts": [`...)
	b = append(append(b, parts...), `],"role": "model"},`...)
	if reason != "" {
		b = append(append(append(b, `"finishReason": "`...), reason...), `",`...)
	}
	b = append(b, `"index": 0}],"usageMetadata": `...)
	b = gemUsage(b, &g.rep.Usage, reason != "")
	b = gemTail(b, g.req, g.rep)
	g.e.buf = append(b, "\r\n\r\n"...)
	return g.e.send()
}

func gemTail(b []byte, req *request, rep *script.Reply) []byte {
	b = script.AppendQuote(append(b, `,"modelVersion": `...), req.Model)
	return append(script.AppendQuote(append(b, `,"responseId": `...), rep.ID), '}')
}

func gemUsage(b []byte, u *message.Usage, whole bool) []byte {
	num := func(key string, n int64) { b = strconv.AppendInt(append(b, key...), n, 10) }
	num(`{"promptTokenCount": `, u.Prompt())
	total := u.Prompt()
	if u.CacheRead > 0 {
		num(`,"cachedContentTokenCount": `, u.CacheRead)
	}
	if whole {
		num(`,"candidatesTokenCount": `, u.Output-min(u.Reasoning, u.Output))
		if u.Reasoning > 0 {
			num(`,"thoughtsTokenCount": `, min(u.Reasoning, u.Output))
		}
		total += u.Output
	}
	num(`,"totalTokenCount": `, total)
	return append(b, '}')
}

// Start implements script.Sink; the API has no mark for it.
func (g *gemStream) Start() error { return nil }

// BlockStart implements script.Sink.
func (g *gemStream) BlockStart(int) error { return nil }

// Delta implements script.Sink. Calls come whole.
func (g *gemStream) Delta(i int, piece string) error {
	switch g.rep.Blocks[i].Type {
	case message.BlockThinking:
		return g.chunk(string(append(script.AppendQuote([]byte(`{"text": `), piece), `,"thought": true}`...)), "")
	case message.BlockText:
		return g.chunk(string(append(script.AppendQuote([]byte(`{"text": `), piece), '}')), "")
	}
	return nil
}

// BlockEnd implements script.Sink.
func (g *gemStream) BlockEnd(i int) error {
	if g.rep.Blocks[i].Type != message.BlockToolCall || !gjson.ValidBytes(g.rep.Blocks[i].Arguments) {
		return nil
	}
	return g.chunk(string(gemCall(nil, g.req, g.rep, i)), "")
}

// gemCall appends the part of a call. The first of a reply is signed, from Gemini 3 on,
// and all have ids.
func gemCall(b []byte, req *request, rep *script.Reply, i int) []byte {
	bl := &rep.Blocks[i]
	modern := geminiNumber(req.Model) >= 30
	b = append(b, `{"functionCall": {`...)
	if modern {
		b = append(script.AppendQuote(append(b, `"id": `...), bl.ID), ',')
	}
	b = script.AppendQuote(append(b, `"name": `...), bl.Name)
	b = append(append(append(b, `,"args": `...), bl.Arguments...), '}')
	first := true
	for j := range i {
		first = first && rep.Blocks[j].Type != message.BlockToolCall
	}
	if modern && first {
		b = script.AppendQuote(append(b, `,"thoughtSignature": `...), geminiSign(req.Model, bl.Name))
	}
	return append(b, '}')
}

// gemFinish is why a reply ended; a call that is no JSON ends it, too.
func gemFinish(rep *script.Reply) string {
	for i := range rep.Blocks {
		if bl := &rep.Blocks[i]; bl.Type == message.BlockToolCall && !gjson.ValidBytes(bl.Arguments) {
			return "MALFORMED_FUNCTION_CALL"
		}
	}
	switch rep.Stop {
	case message.StopLength:
		return "MAX_TOKENS"
	case stopRefused:
		return "SAFETY"
	}
	return "STOP"
}

// textSignature is that of a reply that ends with text, "" for another.
func textSignature(req *request, rep *script.Reply) string {
	if n := len(rep.Blocks); n > 0 && rep.Blocks[n-1].Type == message.BlockText && geminiNumber(req.Model) >= 30 {
		return geminiSign(req.Model, rep.Blocks[n-1].Text)
	}
	return ""
}

// Finish implements writer: the last chunk, with the signature of a text.
func (g *gemStream) Finish(refused bool) error {
	reason, part := gemFinish(g.rep), `{"text": ""}`
	if refused {
		reason = "SAFETY"
	} else if s := textSignature(g.req, g.rep); s != "" {
		part = string(append(script.AppendQuote([]byte(`{"text": "","thoughtSignature": `), s), '}'))
	}
	return g.chunk(part, reason)
}

// Fail implements writer.
func (g *gemStream) Fail(e *apiError) error {
	g.e.buf = append(gemini{}.envelope(append(g.e.buf, "data: "...), e, ""), "\r\n\r\n"...)
	return g.e.send()
}

// Garbage implements writer.
func (g *gemStream) Garbage() error {
	g.e.buf = append(g.e.buf, "data: {\"candidates\": [{\"con\r\n\r\n"...)
	return g.e.send()
}

// body implements protocol. Without alt=sse a stream is a list.
func (gemini) body(b []byte, req *request, rep *script.Reply) []byte {
	if req.list {
		b = append(b, '[')
	}
	b = append(b, `{"candidates": [{"content": {"parts": [`...)
	sep := ""
	part := func(json string) { b = append(append(b, sep...), json...); sep = "," }
	reason := gemFinish(rep)
	for i := range rep.Blocks {
		bl := &rep.Blocks[i]
		switch {
		case rep.Stop == stopRefused, reason == "MALFORMED_FUNCTION_CALL":
		case bl.Type == message.BlockThinking:
			part(string(append(script.AppendQuote([]byte(`{"text": `), bl.Text), `,"thought": true}`...)))
		case bl.Type == message.BlockText:
			text := script.AppendQuote([]byte(`{"text": `), bl.Text)
			if s := textSignature(req, rep); s != "" && i == len(rep.Blocks)-1 {
				text = script.AppendQuote(append(text, `,"thoughtSignature": `...), s)
			}
			part(string(append(text, '}')))
		default:
			part(string(gemCall(nil, req, rep, i)))
		}
	}
	b = append(append(append(b, `],"role": "model"},"finishReason": "`...), reason...), `","index": 0}],"usageMetadata": `...)
	b = gemTail(gemUsage(b, &rep.Usage, true), req, rep)
	if req.list {
		b = append(b, ']')
	}
	return b
}

// canonical is Google's word for a status.
func canonical(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// envelope implements protocol. What a client can act on is in the details.
func (gemini) envelope(b []byte, e *apiError, _ string) []byte {
	b = strconv.AppendInt(append(b, `{"error": {"code": `...), int64(e.status), 10)
	b = script.AppendQuote(append(b, `,"message": `...), e.message)
	b = append(append(append(b, `,"status": "`...), canonical(e.status)...), '"')
	var details []string
	switch {
	case e.code == "API_KEY_INVALID":
		details = append(details, `{"@type": "type.googleapis.com/google.rpc.ErrorInfo","reason": "API_KEY_INVALID","domain": "googleapis.com"}`)
	case e.code != "":
		details = append(details, `{"@type": "type.googleapis.com/google.rpc.QuotaFailure","violations": [{"quotaId": "`+e.code+`"}]}`)
	}
	if e.retryAfter > 0 {
		details = append(details, fmt.Sprintf(`{"@type": "type.googleapis.com/google.rpc.RetryInfo","retryDelay": "%gs"}`, e.retryAfter.Seconds()))
	}
	if len(details) > 0 {
		b = append(append(append(b, `,"details": [`...), strings.Join(details, ",")...), ']')
	}
	return append(b, "}}"...)
}

// fault implements protocol.
func (gemini) fault(f *script.Fault, req *request) *apiError {
	e := &apiError{status: f.Status, retryAfter: f.RetryAfter, message: f.Message}
	status, text := 500, ""
	const plan = "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
	switch f.Kind {
	case script.FaultRateLimited:
		e.code, status, text = "GenerateRequestsPerMinutePerProjectPerModel", 429, plan
	case script.FaultOverloaded:
		status, text = 503, "The model is overloaded. Please try again later."
	case script.FaultOverflow:
		status, text = 400, fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (1048576).", 1_048_576+req.PromptTokens)
	case script.FaultAuth:
		e.code, status, text = "API_KEY_INVALID", 400, "API key not valid. Please pass a valid API key."
	case script.FaultQuota:
		e.code, status, text = "GenerateRequestsPerDayPerProjectPerModel", 429, plan
	default:
		text = "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
	}
	return e.or(status, text)
}

// noModel implements protocol.
func (gemini) noModel(id string) *apiError {
	return &apiError{status: http.StatusNotFound,
		message: fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.", id)}
}

// noRoute implements protocol.
func (gemini) noRoute(_, path string) *apiError {
	return &apiError{status: http.StatusNotFound, message: "Not found: " + path}
}

// tooLarge implements protocol.
func (gemini) tooLarge(limit int64) *apiError {
	return gemBad("Request payload size exceeds the limit: %d bytes.", limit)
}

// models implements protocol.
func (g gemini) models(b []byte, ids []string) []byte {
	b = append(b, `{"models": [`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = g.model(b, id)
	}
	return append(b, "]}"...)
}

// model implements protocol.
func (gemini) model(b []byte, id string) []byte {
	b = script.AppendQuote(append(b, `{"name": `...), "models/"+id)
	b = script.AppendQuote(append(b, `,"version": "001","displayName": `...), id)
	return append(b, `,"inputTokenLimit": 1048576,"outputTokenLimit": 65536,"supportedGenerationMethods": ["generateContent","countTokens"],"thinking": true}`...)
}
