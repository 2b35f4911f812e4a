package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	sdk "github.com/openai/openai-go/v3"

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
	kind := ""
	var typed *sdk.Error
	if errors.As(cause, &typed) {
		e.Message, e.Code, kind = typed.Message, typed.Code, typed.Type
	}
	if e.Message == "" {
		e.Message, e.Code, kind = describe(body)
	}
	classify(e, kind)
	if e.Status == http.StatusBadRequest && len(bytes.TrimSpace(body)) == 0 {
		e.Class, e.Message = model.ClassOverflow, "the server refused the request without a word, as some do when the prompt is too long"
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		e.Message = "the server redirects, and redirects are not followed: correct the base URL"
	}
	e.RetryAfter = llmwire.RetryAfter(res.Header, e.Message, p.now())
	return e
}

// describe finds message, code and type in an error body: OpenAI's envelope,
// the shapes others use for it, or plain text.
func describe(body []byte) (text, code, kind string) {
	if !json.Valid(body) {
		return string(body), "", ""
	}
	inner := llmwire.Get(body, "error")
	if llmwire.IsString(inner) {
		return llmwire.String(inner), "", ""
	}
	if llmwire.Null(inner) {
		inner = body
	}
	for _, key := range []string{"message", "detail", "error_message"} {
		if text = llmwire.String(llmwire.Get(inner, key)); text != "" {
			break
		}
	}
	if text == "" {
		text = string(inner)
	}
	if raw := llmwire.Get(inner, "code"); llmwire.IsString(raw) {
		code = llmwire.String(raw)
	} else if !llmwire.Null(raw) {
		code = string(raw)
	}
	return text, code, llmwire.String(llmwire.Get(inner, "type"))
}

// classify sets the class from status, code, type and, last, the words.
func classify(e *model.Error, kind string) {
	status := e.Status
	if n, err := strconv.Atoi(e.Code); err == nil && status == 0 && n >= 400 && n < 600 {
		status = n // gateways send the upstream's status as the code of a mid-stream error
	}
	for _, word := range []string{e.Code, kind} {
		switch word {
		case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active":
			e.Class = model.ClassQuota
		case "context_length_exceeded":
			e.Class = model.ClassOverflow
		case "model_not_found":
			e.Class = model.ClassNotFound
		case "invalid_api_key", "authentication_error", "permission_error":
			e.Class = model.ClassAuth
		case "content_filter", "content_policy_violation", "invalid_prompt", "cyber_policy":
			e.Class = model.ClassRefused
		case "overloaded_error", "engine_overloaded":
			e.Class = model.ClassOverloaded
		case "server_error", "internal_error", "api_error":
			if status == 0 {
				status = http.StatusInternalServerError
			}
		case "rate_limit_exceeded", "rate_limit_error":
			if status == 0 {
				status = http.StatusTooManyRequests
			}
		case "invalid_request_error", "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large",
			"image_too_small", "image_parse_error", "image_content_policy_violation", "unsupported_image_media_type", "empty_image_file":
			if status == 0 {
				status = http.StatusBadRequest
			}
		}
		if e.Class != "" {
			break
		}
	}
	if e.Class == "" {
		e.Class = llmwire.ClassOf(status, kind+" "+e.Code+" "+e.Message)
	}
	if e.Code == "" {
		e.Code = kind
	}
}

// readDocument is an error that stands in a stream or in place of one.
func readDocument(text []byte) *model.Error {
	e := &model.Error{}
	var kind string
	e.Message, e.Code, kind = describe(text)
	classify(e, kind)
	return e
}
