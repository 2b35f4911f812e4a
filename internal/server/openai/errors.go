package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/rate"
	"agentd/internal/server/wire"
	"agentd/message"
)

// Error is an error in the protocol's own shape.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	// Param and Code are null when empty.
	Param *string `json:"param"`
	Code  *string `json:"code"`
	// NoRetry tells the official SDKs not to ask, and pay, again.
	NoRetry bool `json:"-"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

func newError(status int, code, param, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...), Type: typeOf(status), Param: optional(param), Code: optional(code)}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func typeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

func invalid(param, format string, args ...any) *Error {
	return newError(http.StatusBadRequest, "invalid_value", param, format, args...)
}

func unsupported(param, format string, args ...any) *Error {
	return newError(http.StatusBadRequest, "unsupported_parameter", param, format, args...)
}

func unknownModel(model string) *Error {
	return newError(http.StatusNotFound, "model_not_found", "model", "The model %q does not exist. GET /v1/models lists what there is.", wire.Clip(model, 80))
}

// asError translates any error.
func asError(ctx context.Context, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var failed *runFailure
	if errors.As(err, &failed) {
		return failed.asError(ctx)
	}
	p := wire.Describe(ctx, err)
	msg := p.Message
	if p.Field != "" {
		msg = p.Field + ": " + msg
	}
	if p.Hint != "" {
		msg += ". " + p.Hint
	}
	code := string(p.Kind)
	switch p.Kind {
	case fault.Unauthorized:
		code = "invalid_api_key"
	case fault.Invalid:
		code = "invalid_value"
	case fault.RateLimited:
		code = "rate_limit_exceeded"
	}
	e = newError(p.Status, code, p.Field, "%s", msg)
	var over *rate.Exceeded
	if errors.As(err, &over) {
		e.Type = "requests" // as OpenAI's own limits say which one it was
		if over.Tokens {
			e.Type = "tokens"
		}
	}
	return e
}

// WriteError answers with an error.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	e := asError(r.Context(), err)
	if e.NoRetry {
		w.Header().Set("X-Should-Retry", "false")
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	wire.RetryAfter(w.Header(), err)
	var over *rate.Exceeded
	if errors.As(err, &over) {
		rateHeaders(w.Header(), &over.Status)
	}
	wire.WriteJSON(w, e.Status, struct {
		Error *Error `json:"error"`
	}{e})
}

// runFailure is a run that ended without an answer.
type runFailure struct {
	runID string
	stop  string // the run's stop reason
	cause event.Error
	usage *message.Usage
}

func (f *runFailure) Error() string {
	return "run " + f.runID + ": " + f.cause.Kind + ": " + f.cause.Message
}

// internal reports whether the server is at fault, rather than the agent, its
// model or its tools.
func (f *runFailure) internal() bool { return f.cause.Kind == string(fault.Internal) }

// provider reports whether the model broke off, rather than the agent stopping:
// what was said before is half an answer. A refusal has a finish reason.
func (f *runFailure) provider() bool { return f.stop == "model_error" && f.cause.Kind != "refused" }

// say is what the failure is to a reader of the answer.
func (f *runFailure) say() string {
	s := "[The agent stopped: " + f.cause.Message
	if f.cause.Hint != "" {
		s += ". " + f.cause.Hint
	}
	return s + " (run " + f.runID + ")]"
}

// asError gives the status. The run has retried what could be retried, so the
// client is told not to.
func (f *runFailure) asError(ctx context.Context) *Error {
	status, code := http.StatusInternalServerError, f.cause.Kind
	switch f.cause.Kind {
	case "rate_limited":
		status, code = http.StatusTooManyRequests, "rate_limit_exceeded"
	case "quota", "max_cost", "max_tokens":
		status, code = http.StatusTooManyRequests, "insufficient_quota"
	case "overloaded", "unavailable":
		status = http.StatusServiceUnavailable
	case "server", "connection", "truncated", "malformed", "auth", "model_not_found":
		status = http.StatusBadGateway
	case "timeout", "max_run_time":
		status = http.StatusGatewayTimeout
	case "invalid":
		status = http.StatusBadRequest
	case "overflow":
		status, code = http.StatusBadRequest, "context_length_exceeded"
	case "refused":
		status, code = http.StatusBadRequest, "content_filter"
	case "cancelled":
		status = fault.Cancelled.HTTPStatus()
	}
	msg := f.cause.Message
	if f.internal() {
		msg = "internal error; the server's log has the details under request " + wire.RequestOf(ctx).ID
	} else if f.cause.Hint != "" {
		msg += ". " + f.cause.Hint
	}
	e := newError(status, code, "", "%s (run %s)", msg, f.runID)
	e.NoRetry = true
	return e
}
