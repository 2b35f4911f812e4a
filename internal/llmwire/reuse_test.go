package llmwire

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"agentd/internal/sse"
)

// countedConn counts the writes of a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// hidden wraps a body as the SDKs do.
type hidden struct{ io.ReadCloser }

// A request whose body the SDK wrapped leaves in one write, header and body, and
// says what it always said.
func TestBodyInMemoryLeavesInOneWrite(t *testing.T) {
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- string(b)
	}))
	defer srv.Close()
	var writes atomic.Int64
	next := &http.Transport{WriteBufferSize: 8 << 10, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return countedConn{c, &writes}, err
	}}
	defer next.CloseIdleConnections()
	const body = `{"model":"m"}`
	get := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(body))), nil }
	first, err := get()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, hidden{first})
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody, req.ContentLength = get, int64(len(body))
	res, err := (&http.Client{Transport: inMemory{next}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if b := <-got; b != body {
		t.Errorf("the server got %q", b)
	}
	if n := writes.Load(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

// A buffer that goes from reader to reader brings nothing of the last stream
// into the next, and one that has grown large is not kept.
func TestBuffersAreKept(t *testing.T) {
	first := sse.NewReader(strings.NewReader("data: one\n\ndata: left over"), nil)
	if e, err := first.Next(); err != nil || string(e.Data) != "one" {
		t.Fatal(e, err)
	}
	buf := kept(first)
	if len(buf) == 0 {
		t.Fatal("the buffer was not kept")
	}
	second := sse.NewReader(strings.NewReader("data: two\n\n"), &sse.Options{Buffer: buf})
	if e, err := second.Next(); err != nil || string(e.Data) != "two" {
		t.Errorf("got %q, %v", e.Data, err)
	}
	if e, err := second.Next(); err != io.EOF {
		t.Errorf("got %q, %v, want the end", e.Data, err)
	}
	large := sse.NewReader(strings.NewReader("data: "+strings.Repeat("x", 2*keptBuffer)+"\n\n"), nil)
	if _, err := large.Next(); err != nil {
		t.Fatal(err)
	}
	if kept(large) != nil {
		t.Error("a large buffer was kept")
	}
}
