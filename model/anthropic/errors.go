package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"agentd/internal/llmwire"
	"agentd/model"
)

// refusal turns an error response into an error. cause is what the SDK made of
// it; it is not kept, because it holds the whole request.
func (p *Provider) refusal(res *http.Response, cause error) *model.Error {
	// The SDK has read the body and put it back.
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	_ = res.Body.Close()
	e := &model.Error{Status: res.StatusCode, RequestID: requestID(res.Header)}
	e.Message, e.Code = describe(body)
	var typed *sdk.Error
	if errors.As(cause, &typed) && e.Code == "" {
		e.Code = string(typed.Type())
	}
	classify(e)
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		e.Message = "the server redirects, and redirects are not followed: correct the base URL"
	}
	e.RetryAfter = llmwire.RetryAfter(res.Header, e.Message, p.options.Now())
	return e
}

// describe finds message and type in an error body or an error event.
func describe(body []byte) (text, kind string) {
	if !json.Valid(body) {
		return string(body), ""
	}
	inner := llmwire.Get(body, "error")
	if llmwire.IsString(inner) {
		return llmwire.String(inner), ""
	}
	if llmwire.Null(inner) {
		inner = body
	}
	if text = llmwire.String(llmwire.Get(inner, "message")); text == "" {
		text = string(inner)
	}
	if kind = llmwire.String(llmwire.Get(inner, "type")); kind == "error" {
		kind = ""
	}
	return text, kind
}

// classify sets the class from status and type and, last, the words.
func classify(e *model.Error) {
	status := e.Status
	switch e.Code {
	case "billing_error":
		e.Class = model.ClassQuota
	case "authentication_error", "permission_error":
		e.Class = model.ClassAuth
	case "overloaded_error":
		e.Class = model.ClassOverloaded
	case "timeout_error":
		e.Class = model.ClassTimeout
	case "request_too_large":
		e.Class = model.ClassOverflow
	case "not_found_error":
		e.Class = model.ClassNotFound
	case "rate_limit_error":
		status = http.StatusTooManyRequests
	case "api_error":
		if status < 500 {
			status = http.StatusInternalServerError
		}
	case "invalid_request_error":
		if status == 0 {
			status = http.StatusBadRequest
		}
	}
	if e.Class == "" {
		e.Class = llmwire.ClassOf(status, e.Code+" "+e.Message)
	}
}

// readDocument is an error that stands in a stream or in place of one.
func readDocument(text []byte) *model.Error {
	e := &model.Error{}
	e.Message, e.Code = describe(text)
	classify(e)
	return e
}
