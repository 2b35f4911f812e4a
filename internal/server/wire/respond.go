package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"agentd/fault"
)

// answerTimeout bounds the writing of an answer that is not a stream, where the
// writer has no AnswerTimeout of its own.
const answerTimeout = time.Minute

// WriteJSON writes v as the whole answer.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Only a payload that is not JSON, from a damaged store, gets here.
		status, body = http.StatusInternalServerError, []byte(`{"error":{"kind":"internal","message":"the answer could not be encoded"}}`)
	}
	WriteRaw(w, status, "application/json", append(body, '\n'))
}

// WriteRaw writes body as the whole answer.
func WriteRaw(w http.ResponseWriter, status int, contentType string, body []byte) {
	timeout := answerTimeout
	if c, ok := w.(interface{ AnswerTimeout() time.Duration }); ok {
		timeout = c.AnswerTimeout()
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// The client may be gone: nobody is left to tell.
	_, _ = w.Write(body)
}

// Problem is an error as clients see it.
type Problem struct {
	Status  int
	Kind    fault.Kind
	Message string
	Hint    string
	Field   string
}

// Describe makes an error fit for clients. What an internal error says stays in
// the log; the client gets the request's id to ask for it.
func Describe(ctx context.Context, err error) Problem {
	p := Problem{Status: Status(err), Kind: fault.KindOf(err), Hint: fault.HintOf(err)}
	var f *fault.Error
	switch {
	case p.Kind == fault.Internal:
		p.Message = "internal error"
		p.Hint = "The server's log has the details under request " + RequestOf(ctx).ID + "."
	case errors.As(err, &f) && f.Err != nil:
		p.Message, p.Field = f.Err.Error(), f.Field
	case f != nil:
		p.Message, p.Field = string(p.Kind), f.Field
	default:
		p.Message = err.Error()
	}
	return p
}

// Request is what the server knows about a request. Handlers may set Run, for
// the access log.
type Request struct {
	ID     string
	Tenant string
	// Key is the id of the caller's API key; "" for none.
	Key string
	Run string
	// Err is the error that was answered with, for the access log.
	Err error
}

type requestKey struct{}

// WithRequest attaches what is known about a request.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf gives what is known about a request; never nil.
func RequestOf(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}
