package llmwire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/sse"
	"agentd/model"
)

// DefaultIdle is how long a provider may send nothing. Models that think do so
// in silence for minutes on some APIs.
const DefaultIdle = 5 * time.Minute

// drainTime is how long a finished stream may take to end, so that its
// connection can be used again. A server that takes longer costs a connection.
const drainTime = 100 * time.Millisecond

// Client returns the HTTP client that adapters use: connections are kept for as
// many concurrent calls as a busy server has, HTTP/2 where the server speaks
// it, no redirects (a redirect could carry the key to another host), no timeout
// on the whole of a call. base may be nil; a given client is used as it is,
// except that it does not follow redirects unless it says how.
func Client(base *http.Client) *http.Client {
	c := http.Client{Transport: inMemory{&http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
		// Header and body of a short conversation leave in one write. Much more
		// would be a burden for a thousand connections.
		WriteBufferSize: 8 << 10,
		// Compressing a stream holds back its events.
		DisableCompression: true,
	}}}
	if base != nil {
		c = *base
	}
	c.Transport = briefErrors{c.Transport}
	if c.CheckRedirect == nil {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &c
}

// inMemory shows the transport that a request's body lies in memory. The SDKs hide
// it behind a wrapper; then the transport, which must expect that reading the body
// takes long, sends the header on its own: two writes and two packets for each
// call.
type inMemory struct{ next *http.Transport }

func (t inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		own := *req // a RoundTripper must not change the request
		own.Body = body
		_ = req.Body.Close() // nothing was read from it
		req = &own
	}
	return t.next.RoundTrip(req)
}

// CloseIdleConnections serves [http.Client.CloseIdleConnections].
func (t inMemory) CloseIdleConnections() { t.next.CloseIdleConnections() }

// briefErrors cuts the bodies of error responses: the SDKs read them to their end, however
// far that is. It also unpacks what gateways pack though nobody asked them to.
type briefErrors struct{ next http.RoundTripper } // nil: the default one

func (t briefErrors) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(req)
	if err == nil && res.Body != nil && strings.EqualFold(res.Header.Get("Content-Encoding"), "gzip") {
		res.Header.Del("Content-Encoding")
		res.ContentLength = -1
		res.Body = &unzipped{Closer: res.Body, src: bufio.NewReader(res.Body), forgive: res.StatusCode >= http.StatusBadRequest}
	}
	if err == nil && res.StatusCode >= http.StatusBadRequest && res.Body != nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxErrorBody), res.Body}
	}
	return res, err
}

// CloseIdleConnections serves [http.Client.CloseIdleConnections].
func (t briefErrors) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// BaseURL checks a base URL and returns it without a slash at its end.
func BaseURL(op, raw string) (string, error) {
	u, err := url.Parse(raw)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("it needs a scheme (http or https) and a host")
	}
	if err == nil && u.User != nil {
		err = errors.New("it must not hold a password; use the credential")
	}
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) { // its text repeats the URL, which may hold a secret
			err = ue.Err
		}
		return "", &fault.Error{Op: op, Kind: fault.Invalid, Field: "base_url",
			Err: fmt.Errorf("not a base URL: %w", err), Hint: "write it as the provider's SDK does, such as https://api.openai.com/v1"}
	}
	return strings.TrimRight(raw, "/"), nil
}

var errIdle = errors.New("the provider sent nothing for too long")

// Call is one request and its stream, ended by the caller's context or by
// silence.
type Call struct {
	caller context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	body   io.ReadCloser
}

// Begin starts the watch. idle 0 means DefaultIdle, negative no limit. End must
// be called.
func Begin(ctx context.Context, idle time.Duration) *Call {
	if idle == 0 {
		idle = DefaultIdle
	}
	c := &Call{caller: ctx, idle: idle}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if idle > 0 {
		c.timer = time.AfterFunc(idle, func() { c.cancel(errIdle) })
	}
	return c
}

// Context is what the request must be sent with.
func (c *Call) Context() context.Context { return c.ctx }

// Events returns a reader of the response's events. Each read restarts the
// watch. It begins with buf, which may be nil; see [sse.Options].
func (c *Call) Events(res *http.Response, buf []byte) *sse.Reader {
	c.body = res.Body
	return sse.NewReader(c, &sse.Options{Buffer: buf})
}

// keptBuffer is how large a buffer may be that is kept from call to call.
const keptBuffer = 32 << 10

// kept gives the buffer of a reader that is done with, for the next call; nil if
// it has grown large.
func kept(r *sse.Reader) []byte {
	if b := r.Buffer(); cap(b) <= keptBuffer {
		return b
	}
	return nil
}

// Read implements io.Reader over the response's body.
func (c *Call) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	if n > 0 && c.timer != nil {
		c.timer.Reset(c.idle)
	}
	return n, err
}

// Finish reads what little a finished stream still has, so that the connection
// can be used again.
func (c *Call) Finish() {
	stop := time.AfterFunc(drainTime, func() { c.cancel(nil) })
	defer stop.Stop()
	_, _ = io.CopyN(io.Discard, c.body, 64<<10)
}

// End releases everything.
func (c *Call) End() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.cancel(nil)
	if c.body != nil {
		_ = c.body.Close()
	}
}

// Fail classes an error of sending or reading.
func (c *Call) Fail(err error) *model.Error {
	e := &model.Error{Class: model.ClassConnection, Message: err.Error(), Err: err}
	var ue *url.Error
	if errors.As(err, &ue) { // its text repeats the URL
		e.Message, e.Err = ue.Err.Error(), ue.Err
	}
	var (
		ne       net.Error
		tooLarge *sse.TooLargeError
	)
	switch {
	case c.caller.Err() != nil:
		e.Class, e.Message, e.Err = model.ClassCancelled, "the call was cancelled", context.Cause(c.caller)
	case errors.Is(context.Cause(c.ctx), errIdle):
		e.Class, e.Message, e.Err = model.ClassTimeout, fmt.Sprintf("%v (%v)", errIdle, c.idle), errIdle
	case errors.As(err, &tooLarge):
		e.Class = model.ClassMalformed
	case c.body != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		e.Class, e.Message = model.ClassTruncated, "the stream ended before the reply did"
	case errors.As(err, &ne) && ne.Timeout():
		e.Class = model.ClassTimeout
	}
	return e
}

// Redact removes a secret from a text that others will see.
func Redact(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[redacted]")
}

// Clip shortens a text that others will see.
func Clip(text string) string {
	const limit = 2000
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}
