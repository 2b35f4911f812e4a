package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	sessionHeader = "Mcp-Session-Id"
	maxRedirects  = 5
	maxErrorBody  = 64 << 10
)

// httpError is an answer that is no success.
type httpError struct {
	Status int
	Body   string
}

// Error gives the status and the beginning of the body.
func (e *httpError) Error() string {
	s := fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

// transient reports whether the server asks to try again.
func (e *httpError) transient() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// guard stands between the SDK and the network. It bounds what comes in, turns
// answers that would end the SDK's session into errors of the one call, and
// sends the configured headers to the configured host alone.
type guard struct {
	base    *http.Transport
	headers map[string]string
	origin  string
	connect time.Duration
	limit   int
	sieve   *sieve
	log     *slog.Logger
	server  string
}

func newGuard(server string, cfg *ServerConfig, s *sieve, limit int, log *slog.Logger) *guard {
	dialer := &net.Dialer{Timeout: cfg.Timeouts.Connect, KeepAlive: 30 * time.Second}
	g := &guard{
		base: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: cfg.Timeouts.Connect,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: 256 << 10,
		},
		headers: cfg.Headers, connect: cfg.Timeouts.Connect, limit: limit, sieve: s, log: log, server: server,
	}
	if u, err := url.Parse(cfg.URL); err == nil {
		g.origin = origin(u)
	}
	return g
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (g *guard) client() *http.Client {
	return &http.Client{Transport: g, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		case origin(req.URL) != g.origin:
			// Arguments and headers are meant for the configured host.
			return fmt.Errorf("the server redirects to another host (%s): set url to that if it is right", origin(req.URL))
		}
		return nil
	}}
}

// RoundTrip performs one request.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if origin(req.URL) == g.origin && len(g.headers) > 0 {
		req = req.Clone(req.Context())
		for name, v := range g.headers {
			req.Header.Set(name, v)
		}
	}
	switch req.Method {
	case http.MethodPost:
		return g.post(req)
	case http.MethodGet:
		return g.listen(req)
	}
	return g.base.RoundTrip(req)
}

// listen opens the stream for what the server says unasked. It is an extra: a
// server that fails to offer it, or does not answer, is treated like one that
// declines with 405, as the protocol has it.
func (g *guard) listen(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	timer := time.AfterFunc(g.connect, cancel)
	resp, err := g.base.RoundTrip(req.WithContext(ctx))
	late := !timer.Stop()
	resume := req.Header.Get("Last-Event-ID") != ""
	switch {
	case err != nil && (!late || resume || req.Context().Err() != nil):
		cancel()
		return nil, err
	case err != nil || resp.StatusCode >= 500 && !resume:
		cancel()
		if err == nil {
			resp.Body.Close()
			err = &httpError{Status: resp.StatusCode}
		}
		g.log.Warn("an MCP server offers no stream of notifications; changes of its tools are seen at the next connection", "server", g.server, "error", err)
		return answer(req, http.StatusMethodNotAllowed, "text/plain", nil), nil
	}
	resp.Body = &onClose{resp.Body, cancel}
	if isType(resp, "text/event-stream") && resp.StatusCode == http.StatusOK {
		resp.Body = g.events(resp.Body, nil)
	}
	return resp, nil
}

type onClose struct {
	io.ReadCloser
	done func()
}

func (c *onClose) Close() error {
	err := c.ReadCloser.Close()
	c.done()
	return err
}

// post sends a message and makes the answer fit for the SDK.
func (g *guard) post(req *http.Request) (*http.Response, error) {
	var sent envelope
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			_ = json.NewDecoder(body).Decode(&sent)
			body.Close()
		}
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		if resp.StatusCode >= 300 && resp.StatusCode < 400 {
			return resp, nil // the client follows it, or refuses
		}
		return g.failure(req, resp)
	}
	if len(sent.ID) == 0 || sent.Method == "" {
		return resp, nil // a notification or a response: nothing is expected
	}
	switch {
	case isType(resp, "text/event-stream"):
		resp.Body = g.events(resp.Body, sent.ID)
	case isType(resp, "application/json"):
		resp.Body = &jsonBody{g: g, id: sent.ID, body: resp.Body}
		resp.ContentLength = -1
	default:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		resp.Body.Close()
		return answer(req, http.StatusOK, "application/json", refuse(sent.ID, codeGarbage,
			"the server answered with %q instead of JSON: %s", resp.Header.Get("Content-Type"), preview(body, 200))), nil
	}
	return resp, nil
}

// failure decides what an answer that is no success becomes: the end of the
// session where the server has forgotten it, else an error of this call.
func (g *guard) failure(req *http.Request, resp *http.Response) (*http.Response, error) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body.Close()
	e, rpc := readEnvelope(body)
	if req.Header.Get(sessionHeader) != "" {
		// 404 is what the protocol says; some servers say it with 400 and words.
		if resp.StatusCode == http.StatusNotFound ||
			resp.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(string(e.Error)), "session") {
			return answer(req, http.StatusNotFound, "text/plain", nil), nil
		}
	}
	herr := &httpError{Status: resp.StatusCode, Body: preview(body, 300)}
	if rpc && e.Error != nil && !herr.transient() && resp.StatusCode != http.StatusInternalServerError {
		return answer(req, resp.StatusCode, "application/json", body), nil
	}
	return nil, herr
}

func isType(resp *http.Response, want string) bool {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && t == want
}

// answer is a response that the server did not give.
func answer(req *http.Request, status int, contentType string, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// jsonBody is the one message that answers a call. It always reads as a valid
// answer to that call, whatever the server sent.
type jsonBody struct {
	g    *guard
	id   json.RawMessage
	body io.ReadCloser
	once sync.Once
	r    *bytes.Reader
}

// Read reads the answer.
func (b *jsonBody) Read(p []byte) (int, error) {
	b.once.Do(func() { b.r = bytes.NewReader(b.load()) })
	return b.r.Read(p)
}

// Close closes the server's body.
func (b *jsonBody) Close() error { return b.body.Close() }

func (b *jsonBody) load() []byte {
	data, err := io.ReadAll(io.LimitReader(b.body, int64(b.g.limit)+1))
	switch {
	case len(data) > b.g.limit:
		return refuse(b.id, codeTooLarge, "%s", tooLarge(b.g.limit))
	case err != nil:
		return refuse(b.id, codeLost, "the connection broke while the answer was read: %v", err)
	}
	e, ok := readEnvelope(data)
	if !ok || !e.response() || !bytes.Equal(e.ID, b.id) && !bytes.Equal(e.ID, []byte("null")) {
		return refuse(b.id, codeGarbage, "the server's answer is not the JSON-RPC response of this call: %s", preview(data, 200))
	}
	if other := e.stand(); other != nil {
		return other
	}
	return data
}

// events passes a stream of events through the sieve. id is the call that it
// answers; nil for the standing stream.
func (g *guard) events(body io.ReadCloser, id json.RawMessage) io.ReadCloser {
	return &eventBody{g: g, id: id, body: body, r: bufio.NewReaderSize(body, 16<<10)}
}

// eventBody is a stream of server-sent events, written anew: only what is
// needed, bounded, and nothing after the answer to the call.
type eventBody struct {
	g    *guard
	id   json.RawMessage
	body io.ReadCloser
	r    *bufio.Reader
	out  bytes.Buffer
	end  error
}

// Close closes the server's body.
func (b *eventBody) Close() error { return b.body.Close() }

// Read reads the stream.
func (b *eventBody) Read(p []byte) (int, error) {
	for b.out.Len() == 0 {
		if b.end != nil {
			return 0, b.end
		}
		b.next()
	}
	return b.out.Read(p)
}

// next reads one event. See "Server-sent events" in the HTML standard for the form.
func (b *eventBody) next() {
	var id, retry, name string
	var data bytes.Buffer
	hasData, large := false, false
	var head, tail []byte
	for size := 0; ; {
		line, end, cut, err := readLine(b.r, b.g.limit)
		size += len(line)
		if cut || size > b.g.limit {
			large = true
			if head == nil {
				field, value, _ := bytes.Cut(line, []byte(":"))
				if string(field) == "data" {
					head, tail = value, end
				}
			}
			data.Reset()
		}
		line = bytes.TrimRight(line, "\r\n")
		if err != nil {
			b.end = err
			if !errors.Is(err, io.EOF) {
				return
			}
		}
		if len(line) == 0 && !cut {
			break
		}
		if large {
			if err != nil {
				break
			}
			continue
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "retry":
			retry = value
		case "event":
			name = value
		case "data":
			if hasData {
				data.WriteByte('\n')
			}
			hasData = true
			data.WriteString(value)
		}
		if err != nil {
			break
		}
	}
	b.emit(id, retry, name, data.Bytes(), large, head, tail)
}

func (b *eventBody) emit(id, retry, name string, data []byte, large bool, head, tail []byte) {
	final := false
	switch {
	case large:
		rid, ok := idOfLarge(head, tail)
		if !ok && b.id != nil {
			rid, ok = b.id, true
		}
		if !ok {
			b.g.log.Warn("an MCP server sent a message that is too large; it is dropped", "server", b.g.server)
			return
		}
		data = refuse(rid, codeTooLarge, "%s", tooLarge(b.g.limit))
		final = bytes.Equal(rid, b.id)
	case name != "" && name != "message":
		data = nil
	case len(bytes.TrimSpace(data)) > 0:
		e, ok := b.g.sieve.admit(data)
		if !ok {
			data = nil
		} else if other := e.stand(); other != nil {
			data = other
		}
		final = ok && e.response() && b.id != nil && bytes.Equal(e.ID, b.id)
	}
	if id != "" {
		fmt.Fprintf(&b.out, "id: %s\n", id)
	}
	if retry != "" {
		fmt.Fprintf(&b.out, "retry: %s\n", retry)
	}
	if len(bytes.TrimSpace(data)) > 0 {
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			b.out.WriteString("data: ")
			b.out.Write(bytes.TrimRight(line, "\r"))
			b.out.WriteByte('\n')
		}
	}
	if b.out.Len() > 0 {
		b.out.WriteByte('\n')
	}
	if final {
		b.end = io.EOF
	}
}
