package gemini

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"agentd/internal/llmwire"
	"agentd/model"
)

// refusal turns an error response into an error.
func (p *Provider) refusal(res *http.Response, body []byte) *model.Error {
	e := &model.Error{Status: res.StatusCode, RequestID: requestID(res.Header)}
	read(e, body)
	if moved := llmwire.Moved(res.StatusCode); moved != "" {
		e.Message = moved
	}
	if asked := llmwire.RetryAfter(res.Header, "", p.options.Now()); asked > 0 {
		e.RetryAfter = asked
	} else if e.RetryAfter == 0 {
		e.RetryAfter = llmwire.TextDelay(e.Message)
	}
	return e
}

// details are what an error says beside its message, in the types of google.rpc.
type details struct {
	reason string        // of ErrorInfo
	quotas string        // ids of QuotaFailure
	retry  time.Duration // of RetryInfo
}

// read fills an error from a body or an event: Google's envelope, alone or as the only
// element of a list, or what others send.
func read(e *model.Error, body []byte) {
	if !json.Valid(body) {
		e.Message = string(body)
		classify(e, &details{})
		return
	}
	list := llmwire.Array(body)
	if first, ok := list.Element(); ok {
		body = first
	}
	inner := llmwire.Get(body, "error")
	if llmwire.IsString(inner) {
		e.Message = llmwire.String(inner)
		classify(e, &details{})
		return
	}
	if llmwire.Null(inner) {
		inner = body
	}
	if e.Message = llmwire.String(llmwire.Get(inner, "message")); e.Message == "" {
		e.Message = string(inner)
	}
	e.Code = llmwire.String(llmwire.Get(inner, "status"))
	if n := int(llmwire.Int(llmwire.Get(inner, "code"))); e.Code == "" && e.Status == 0 && n >= 400 && n < 600 {
		e.Code = canonical(n)
	}
	d := detailsOf(llmwire.Get(inner, "details"))
	e.RetryAfter = d.retry
	classify(e, d)
}

// canonical is the word of a status, for events that have only a number.
func canonical(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
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
	return "INTERNAL"
}

func detailsOf(raw []byte) *details {
	d := &details{}
	for list := llmwire.Array(raw); ; {
		one, ok := list.Element()
		if !ok {
			return d
		}
		switch kind := llmwire.String(llmwire.Get(one, "@type")); {
		case strings.HasSuffix(kind, "google.rpc.RetryInfo"):
			if wait, err := time.ParseDuration(llmwire.String(llmwire.Get(one, "retryDelay"))); err == nil {
				const longest = 30 * 24 * time.Hour
				d.retry = min(max(wait, 0), longest)
			}
		case strings.HasSuffix(kind, "google.rpc.ErrorInfo"):
			d.reason = llmwire.String(llmwire.Get(one, "reason"))
		case strings.HasSuffix(kind, "google.rpc.QuotaFailure"):
			for v := llmwire.Array(llmwire.Get(one, "violations")); ; {
				violation, ok := v.Element()
				if !ok {
					break
				}
				d.quotas += llmwire.String(llmwire.Get(violation, "quotaId")) + " "
			}
		}
	}
}

// classify sets the class from the canonical word, the details and, last, the words.
func classify(e *model.Error, d *details) {
	text := strings.ToLower(e.Message)
	switch e.Code {
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		e.Class = model.ClassAuth
	case "NOT_FOUND":
		e.Class = model.ClassNotFound
	case "UNAVAILABLE":
		e.Class = model.ClassOverloaded
	case "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED", "DATA_LOSS":
		e.Class = model.ClassServer
	case "DEADLINE_EXCEEDED":
		e.Class = model.ClassTimeout
	case "RESOURCE_EXHAUSTED":
		// The message of a limit per minute speaks of the plan and of billing,
		// too. What was exceeded is in the details.
		switch {
		case strings.Contains(d.quotas, "PerDay"), strings.Contains(text, "prepay"), strings.Contains(text, "spend"):
			e.Class = model.ClassQuota
		case d.retry > 0, d.quotas != "", llmwire.TextDelay(text) > 0:
			e.Class = model.ClassRateLimited
		default:
			e.Class = llmwire.ClassOf(http.StatusTooManyRequests, text)
		}
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE":
		switch {
		case d.reason == "API_KEY_INVALID", d.reason == "API_KEY_EXPIRED", strings.Contains(text, "location is not supported"):
			e.Class = model.ClassAuth
		case strings.Contains(text, "payload size exceeds the limit"): // as others say with 413
			e.Class = model.ClassOverflow
		default:
			e.Class = llmwire.ClassOf(http.StatusBadRequest, text)
		}
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
