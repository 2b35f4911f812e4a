package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentd/internal/keys"
	"agentd/internal/server"
)

// Metrics are those of all tenants together: another tenant's admin would see what
// others run and spend.
func TestMetricsAreTheOperators(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k, Metrics: func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "agentd_info 1\n")
		return err
	}})
	_, acme := key(t, k, "acme", keys.Scopes()...)
	_, operator := key(t, k, keys.Operator, keys.Admin)
	if r := a.do("GET", "/metrics", "", acme); r.status != 403 || strings.Contains(string(r.body), "agentd_info") {
		t.Errorf("%d %s", r.status, r.body)
	}
	resp := a.send("GET", "/metrics", "", operator)
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
}

// Who decided about proposals can be told apart by key.
func TestDecisionsNameTheirKey(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k})
	id, header := key(t, k, keys.Operator, keys.Answer, keys.Run)
	run, _ := a.do("POST", "/runs", `{"profile":"echo","input":"x","mode":"autonomous"}`, header).json(t)["run_id"].(string)
	for _, what := range []string{"apply", "discard"} {
		if r := a.do("POST", "/runs/"+run+"/proposals/"+what, `{}`, header); !strings.Contains(string(r.body), "key "+id) {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
}

// A small body must not become a large one.
func TestCompressedBodies(t *testing.T) {
	a := start(t, nil)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(bytes.Repeat([]byte(" "), 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/runs", "/v1/chat/completions"} {
		for coding, status := range map[string]int{"gzip": 415, "br, gzip": 415, "identity": 400} {
			if r := a.do("POST", path, bomb.String(), "Content-Encoding: "+coding); r.status != status || status == 415 && !strings.Contains(string(r.body), "compressed") {
				t.Errorf("%s with %s: %d %s", path, coding, r.status, r.body)
			}
		}
	}
}

// What a cache or a browser keeps of an answer to one page is not for another.
func TestAnswersVaryByOrigin(t *testing.T) {
	a := start(t, &server.Options{Origins: []string{"https://app.example.com"}})
	for _, headers := range [][]string{nil, {"Origin: https://app.example.com"}, {"Origin: null"}} {
		if r := a.do("GET", "/profiles", "", headers...); r.header.Get("Vary") != "Origin" {
			t.Errorf("%v: %v", headers, r.header)
		}
	}
}

// raw sends bytes as they are and gives the first answer; nil if the connection ended
// without one.
func raw(t *testing.T, address, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return nil // it hung up already, which is an answer
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	return resp
}

// Requests that two readers could read in two ways are refused, and so are those that
// go around the check of the name.
func TestRequestsThatSmuggle(t *testing.T) {
	a := start(t, nil)
	address := strings.TrimPrefix(a.ts.URL, "http://")
	hidden := "GET /keys HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"two lengths":                {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 30\r\n\r\n{}" + hidden, 400},
		"length and chunks":          {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, 400},
		"a strange coding":           {"POST /runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
		"a signed length":            {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: +2\r\n\r\n{}", 400},
		"two names":                  {"GET /runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.com\r\n\r\n", 400},
		"no name":                    {"GET /runs HTTP/1.1\r\n\r\n", 400},
		"an empty name":              {"GET /runs HTTP/1.1\r\nHost: \r\n\r\n", 403},
		"no name in 1.0":             {"GET /runs HTTP/1.0\r\n\r\n", 403},
		"a name in the address":      {"GET http://evil.example.com/runs HTTP/1.1\r\nHost: localhost\r\n\r\n", 403},
		"a user in the name":         {"GET /runs HTTP/1.1\r\nHost: localhost@evil.example.com\r\n\r\n", 400},
		"a name with a dot":          {"GET /runs HTTP/1.1\r\nHost: localhost.\r\n\r\n", 403},
		"zeros":                      {"GET /runs HTTP/1.1\r\nHost: 0.0.0.0\r\n\r\n", 403},
		"a number":                   {"GET /runs HTTP/1.1\r\nHost: 2130706433\r\n\r\n", 403},
		"a folded header":            {"GET /runs HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c: d\r\n\r\n", 200}, // one value, as old RFCs have it
		"a header with a space":      {"GET /runs HTTP/1.1\r\nHost: localhost\r\nOrigin : https://evil.example.com\r\n\r\n", 400},
		"a zero in a header":         {"GET /runs HTTP/1.1\r\nHost: localhost\r\nX-A: \x00\r\n\r\n", 400},
		"two origins":                {"GET /runs HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.example.com\r\n\r\n", 403},
		"not HTTP":                   {"EHLO evil.example.com\r\n\r\n", 400},
		"a tunnel":                   {"CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n", 403},
		"the server as a whole":      {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 200}, // net/http itself: nothing is in it
		"a path with dots":           {"GET /runs/../keys HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", 403},
		"an upgrade to cleartext h2": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403},
	} {
		resp := raw(t, address, c.request)
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %+v, not %d", name, resp, c.status)
		}
	}
}

// Paths are what the routes are made of, however they are written; answers lead
// nowhere else.
func TestPathTricks(t *testing.T) {
	k := ring(t)
	a := start(t, &server.Options{Keys: k})
	key(t, k, keys.Operator)
	address := strings.TrimPrefix(a.ts.URL, "http://")
	for _, path := range []string{"//runs", "/runs/../keys", "/healthz/../runs", "/healthz/..%2fruns", "/healthz%2f..%2fruns", "/%72uns", "/./runs", "/runs/", "/runs//events", "/RUNS", "/runs;x=1",
		"/openapi.json/../keys", "/v1/models/..%2f..%2fkeys", "//evil.example.com/%2e%2e", "/\\evil.example.com", "/runs%00", "/runs?stream=false#x", "/healthz?x=../runs"} {
		resp := raw(t, address, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if resp == nil {
			t.Errorf("%s: no answer", path)
			continue
		}
		if to := resp.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") || strings.Contains(to, "://") {
			t.Errorf("%s leads to %s", path, to)
		}
		if resp.StatusCode == 200 && !strings.HasPrefix(path, "/healthz?") {
			t.Errorf("%s: 200 without a key", path)
		}
	}
}

// Connections that send nothing, or a byte now and then, are ended; those that send too
// much, too.
func TestSlowAndHugeHeaders(t *testing.T) {
	base, stop := serve(t, newFake(), &server.Options{HeaderTimeout: 200 * time.Millisecond, IdleTimeout: 200 * time.Millisecond, MaxHeader: 8 << 10})
	defer stop()
	address := strings.TrimPrefix(base, "http://")
	for name, begin := range map[string]string{"silent": "", "half a line": "GET /runs HT", "half a header": "GET /runs HTTP/1.1\r\nHost: local"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, begin); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil { // ends when the server hangs up
			t.Errorf("%s: the connection is still open: %v", name, err)
		}
	}
	huge := strings.Repeat("a", 64<<10)
	for name, request := range map[string]string{"a header": "GET /runs HTTP/1.1\r\nHost: localhost\r\nX-A: " + huge + "\r\n\r\n", "an address": "GET /" + huge + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"many headers": "GET /runs HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-A: b\r\n", 8<<10) + "\r\n"} {
		if resp := raw(t, address, request); resp != nil && resp.StatusCode != 431 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp := raw(t, address, fmt.Sprintf("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: %s\r\n\r\n", huge[:4<<10])); resp == nil || resp.StatusCode != 200 {
		t.Errorf("%+v", resp)
	}
}
