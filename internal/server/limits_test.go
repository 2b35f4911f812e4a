package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentd/internal/server"
)

// Headers have a size and a time.
func TestHeadersAreBounded(t *testing.T) {
	base, stop := serve(t, newFake(), &server.Options{MaxHeader: 8 << 10, HeaderTimeout: 50 * time.Millisecond})
	defer stop()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	for size, status := range map[int]int{4 << 10: 200, 64 << 10: 431} {
		conn := dial()
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", size))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%d bytes: %v %v", size, resp, err)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	}
	conn := dial()
	defer conn.Close()
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: local")
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// It may say why; it must hang up.
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == 200 {
			t.Error("half a request was answered")
		}
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // it is one or not
		t.Error("the server waits for ever")
	}
}
