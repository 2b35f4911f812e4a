package wire

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"agentd/fault"
)

// Limits bound what a request may cost.
type Limits struct {
	// MaxBody is in bytes; 0 means 10 MiB.
	MaxBody int64
	// BodyTimeout bounds the time that a body may take to arrive; 0 means a minute.
	BodyTimeout time.Duration
}

// DefaultMaxBody is the limit of a body where nothing else is configured.
const DefaultMaxBody = 10 << 20

// DefaultBodyTimeout is how long a body may take to arrive where nothing else is
// configured.
const DefaultBodyTimeout = time.Minute

// drainMax is how much of a refused body is read and dropped, so that clients
// that send all before they read see the answer.
const drainMax = 64 << 20

// StatusError is an error with an HTTP status that its kind does not have.
type StatusError struct {
	Status int
	Err    error
}

// Error is the message of the cause.
func (e *StatusError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StatusError) Unwrap() error { return e.Err }

// Status is the HTTP status of an error.
func Status(err error) int {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Status
	}
	return fault.KindOf(err).HTTPStatus()
}

// Invalid is the error of a request that is wrong at a field.
func Invalid(field, format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf(format, args...), Field: field}
}

// ReadBody reads a JSON body. The errors are *fault.Error or *StatusError. After
// a TooLarge error the answer should be written with [Refuse].
func ReadBody(w http.ResponseWriter, r *http.Request, l Limits) ([]byte, error) {
	if l.MaxBody <= 0 {
		l.MaxBody = DefaultMaxBody
	}
	if l.BodyTimeout <= 0 {
		l.BodyTimeout = DefaultBodyTimeout
	}
	if err := jsonType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		// Nothing is unpacked, so that a small body can not become a large one.
		return nil, &StatusError{Status: http.StatusUnsupportedMediaType, Err: &fault.Error{Kind: fault.Invalid, Field: "Content-Encoding",
			Err: fmt.Errorf("the body must not be compressed, and is %q", Clip(coding, 40)), Hint: "Send it as it is, without Content-Encoding."}}
	}
	if r.ContentLength > l.MaxBody {
		return nil, tooLarge(l.MaxBody)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	rc := http.NewResponseController(w)
	// A writer without deadlines is not a connection: nothing to protect.
	_ = rc.SetReadDeadline(time.Now().Add(l.BodyTimeout))
	body, err := readAll(io.LimitReader(r.Body, l.MaxBody+1), r.ContentLength)
	if err == nil {
		// The deadline would end the connection while the answer is
		// streamed. After an error it must stay: net/http reads on before
		// it answers.
		_ = rc.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &StatusError{Status: http.StatusRequestTimeout, Err: &fault.Error{Kind: fault.Timeout,
			Err: fmt.Errorf("the body did not arrive within %s", l.BodyTimeout)}}
	case err != nil:
		return nil, &fault.Error{Kind: fault.Invalid, Err: fmt.Errorf("the body could not be read: %w", err)}
	case int64(len(body)) > l.MaxBody:
		return nil, tooLarge(l.MaxBody)
	}
	return body, nil
}

// readAll is io.ReadAll with room for the announced size.
func readAll(r io.Reader, size int64) ([]byte, error) {
	b := make([]byte, 0, max(512, min(size+1, 1<<20)))
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

func tooLarge(limit int64) *fault.Error {
	return &fault.Error{Kind: fault.TooLarge, Err: fmt.Errorf("the body is larger than %d bytes", limit),
		Hint: "Send less, or raise limits.max_body_bytes in agentd.yaml."}
}

// jsonType refuses what is not JSON. A missing type is taken for JSON; a browser
// can not send it across origins without an Origin header, which is refused.
func jsonType(header string) error {
	if header == "" {
		return nil
	}
	t, _, err := mime.ParseMediaType(header)
	if err == nil && (t == "application/json" || strings.HasSuffix(t, "+json")) {
		return nil
	}
	return &StatusError{Status: http.StatusUnsupportedMediaType, Err: &fault.Error{Kind: fault.Invalid,
		Err: fmt.Errorf("the body must be JSON, not %q", Clip(header, 80)), Field: "Content-Type",
		Hint: "Send the header Content-Type: application/json."}}
}

// Refuse writes an answer to a request whose body was not read, with write, and
// then drops a bounded part of the body: some clients read nothing before they
// have sent all. The connection is closed afterwards.
func Refuse(w http.ResponseWriter, r *http.Request, write func()) {
	rc := http.NewResponseController(w)
	duplex := rc.EnableFullDuplex() == nil
	w.Header().Set("Connection", "close")
	write()
	if rc.Flush() != nil || !duplex || r.Body == nil || r.Header.Get("Expect") != "" {
		return
	}
	if rc.SetReadDeadline(time.Now().Add(5*time.Second)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, drainMax)
	_ = rc.SetReadDeadline(time.Time{})
}

// Clip shortens what a client sent for an error or a log to n bytes.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
