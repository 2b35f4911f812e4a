package ollama

import (
	"encoding/json"
	"net/http"
	"strings"

	"agentd/internal/llmwire"
	"agentd/model"
)

// refusal turns an error response into an error.
func (p *Provider) refusal(res *http.Response, body []byte) *model.Error {
	e := &model.Error{Status: res.StatusCode}
	read(e, body)
	if moved := llmwire.Moved(res.StatusCode); moved != "" {
		e.Message = moved
	}
	if e.Class == model.ClassNotFound && !strings.Contains(e.Message, "pull") {
		e.Message += " (get it with: ollama pull)"
	}
	e.RetryAfter = llmwire.RetryAfter(res.Header, e.Message, p.options.Now())
	return e
}

// read fills an error from a body or a line: {"error":"…"}, the envelopes that gateways
// put in its place, or plain text.
func read(e *model.Error, body []byte) {
	e.Message = string(body)
	if json.Valid(body) {
		inner := llmwire.Get(body, "error")
		switch {
		case llmwire.IsString(inner):
			e.Message = llmwire.String(inner)
		case !llmwire.Null(inner):
			e.Message, e.Code = llmwire.String(llmwire.Get(inner, "message")), llmwire.String(llmwire.Get(inner, "type"))
			if e.Message == "" {
				e.Message = string(inner)
			}
		}
	}
	text := strings.ToLower(e.Message)
	switch {
	case e.Status == http.StatusTooManyRequests && strings.Contains(text, "usage limit"): // of a plan at ollama.com
		e.Class = model.ClassQuota
	case e.Status < 500 && strings.Contains(text, "model") && strings.Contains(text, "not found"):
		e.Class = model.ClassNotFound
	case strings.Contains(text, "failed to process inputs"): // 500, and wrong with each attempt: an image that is none
		e.Class = model.ClassInvalid
	case e.Status == http.StatusInternalServerError && llmwire.ClassOf(http.StatusBadRequest, text) == model.ClassOverflow:
		e.Class = model.ClassOverflow // some versions say so with 500, and would each time
	case strings.Contains(text, "server busy"):
		e.Class = model.ClassOverloaded
	default:
		e.Class = llmwire.ClassOf(e.Status, e.Code+" "+e.Message)
	}
}

// readDocument is an error that stands in a stream or in place of one.
func readDocument(text []byte) *model.Error {
	e := &model.Error{}
	read(e, text)
	return e
}
