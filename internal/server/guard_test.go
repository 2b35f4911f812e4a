package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"agentd/event"
	"agentd/internal/server"
)

func TestHostAndOrigin(t *testing.T) {
	a := start(t, &server.Options{Hosts: []string{"agents.internal"}, Origins: []string{"https://app.example.com"}})
	self := strings.TrimPrefix(a.ts.URL, "http://")
	for _, c := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"loopback", nil, 200},
		{"localhost", []string{"Host: localhost:7070"}, 200},
		{"LOCALHOST", []string{"Host: LOCALHOST"}, 200},
		{"IPv6", []string{"Host: [::1]:7070"}, 200},
		{"configured", []string{"Host: agents.internal:7070"}, 200},
		{"rebound", []string{"Host: evil.example.com"}, 403},
		{"rebound with our port", []string{"Host: evil.example.com:7070"}, 403},
		{"almost localhost", []string{"Host: localhost.evil.example.com"}, 403},
		{"almost loopback", []string{"Host: 127.0.0.1.evil.example.com"}, 403},
		{"another address", []string{"Host: 192.168.0.7"}, 403},
		{"our own page", []string{"Origin: http://" + self}, 200},
		{"another port", []string{"Origin: http://127.0.0.1:1"}, 403},
		{"a page", []string{"Origin: https://evil.example.com"}, 403},
		{"null", []string{"Origin: null"}, 403},
		{"configured origin", []string{"Origin: https://app.example.com"}, 200},
		{"rebound page of its own name", []string{"Host: evil.example.com", "Origin: http://evil.example.com"}, 403},
	} {
		for _, path := range []string{"/profiles", "/v1/models"} {
			t.Run(c.name+path, func(t *testing.T) {
				b := *a
				b.t = t
				if r := b.do("GET", path, "", c.headers...); r.status != c.status {
					t.Errorf("%d %s", r.status, r.body)
				}
			})
		}
	}
	r := a.do("OPTIONS", "/runs", "", "Origin: https://app.example.com", "Access-Control-Request-Method: POST")
	if r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "Idempotency-Key") {
		t.Errorf("%d %v", r.status, r.header)
	}
	if r := a.do("OPTIONS", "/runs", "", "Origin: https://evil.example.com", "Access-Control-Request-Method: POST"); r.status != 403 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", r.status, r.header)
	}
}

func TestContentType(t *testing.T) {
	a := start(t, nil)
	for typ, status := range map[string]int{"application/json": 201, "application/json; charset=utf-8": 201, "application/merge-patch+json": 201,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, ";;": 415} {
		if r := a.do("POST", "/runs", `{"input":"x"}`, "Content-Type: "+typ); r.status != status {
			t.Errorf("%q: %d %s", typ, r.status, r.body)
		}
	}
	if r := a.do("POST", "/v1/chat/completions", `{}`, "Content-Type: text/plain"); r.status != 415 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestLargeBody holds that a body over the limit is refused, whether or not its
// length is announced, and that the client sees why.
func TestLargeBody(t *testing.T) {
	a := start(t, nil)
	huge := bytes.Repeat([]byte("x"), 50<<20)
	for _, path := range []string{"/runs", "/v1/chat/completions"} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s announced=%v", path, announced), func(t *testing.T) {
				var body io.Reader = bytes.NewReader(huge)
				if !announced {
					body = io.MultiReader(body)
				}
				req, err := http.NewRequestWithContext(t.Context(), "POST", a.ts.URL+path, body)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := a.ts.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				raw, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 413 {
					t.Fatalf("%d %v", resp.StatusCode, err)
				}
				a.doc.check(t, "POST", path, resp, raw)
				if r := a.do("GET", "/healthz", ""); r.status != 200 {
					t.Errorf("%d", r.status)
				}
			})
		}
	}
	// A client that sends everything before it reads anything.
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.ts.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(huge))
	if _, err := conn.Write(huge); err != nil {
		t.Fatalf("the server hung up before it was told everything: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 413 || !resp.Close {
		t.Fatalf("%v %v", resp, err)
	}
	_ = resp.Body.Close()
}

func TestSlowBody(t *testing.T) {
	a := start(t, &server.Options{BodyTimeout: 50 * time.Millisecond})
	for target, status := range map[string]int{"POST /runs": 408, "POST /nope": 404, "GET /profiles": 200} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(a.ts.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", target)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%s: %v %v", target, resp, err)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	}
}

func TestAccessLog(t *testing.T) {
	var log bytes.Buffer
	a := start(t, &server.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	r := a.do("POST", "/runs", `{"input":"a private matter"}`, "Authorization: Bearer sk-secret", "X-Request-Id: req-7")
	if r.header.Get("X-Request-Id") != "req-7" {
		t.Errorf("%v", r.header)
	}
	if id := a.do("GET", "/healthz?key=sk-secret", "", "X-Request-Id: a b\tc").header.Get("X-Request-Id"); len(id) < 16 {
		t.Errorf("%q", id)
	}
	a.ts.Close()
	var line struct {
		Msg, Method, Path, Tenant string
		RequestID                 string `json:"request_id"`
		RunID                     string `json:"run_id"`
		Status                    int
	}
	if err := json.Unmarshal(bytes.SplitN(log.Bytes(), []byte("\n"), 2)[0], &line); err != nil {
		t.Fatal(err)
	}
	if line.Msg != "request" || line.Method != "POST" || line.Path != "/runs" || line.RequestID != "req-7" || line.RunID != "r1" || line.Status != 201 || line.Tenant != "default" {
		t.Errorf("%+v", line)
	}
	// That all is well is asked every few seconds; it is no line.
	for _, secret := range []string{"private", "secret", "healthz"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, log.String())
		}
	}
}

// serve starts a server on a port of its own and returns it with a function that
// shuts it down and waits.
func serve(t *testing.T, e *fake, o *server.Options) (base string, stop func()) {
	t.Helper()
	s := server.New(e, o)
	if s.Addr() != "" {
		t.Errorf("an address before listening: %s", s.Addr())
	}
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, "") }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return "http://" + s.Addr(), stop
}

func TestShutdown(t *testing.T) {
	e := newFake()
	base, stop := serve(t, e, &server.Options{Grace: 10 * time.Second})
	post(t, base+"/runs", `{"profile":"manual","input":"x"}`)
	resp, err := http.Get(base + "/runs/r1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for range 2 {
		if _, err := readFrame(r); err != nil {
			t.Fatal(err)
		}
	}
	chat := post(t, base+"/v1/chat/completions", `{"model":"manual","stream":true,"messages":[{"role":"user","content":"x"}]}`, func() {
		e.wait("r2").emit(event.TextDelta, &event.Delta{Text: "begun "})
	})
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	f, err := readFrame(r)
	if err != nil || f.comment != "the server is shutting down; resume with Last-Event-ID: 1" {
		t.Errorf("%+v %v", f, err)
	}
	// The chat goes on within the grace period.
	run := e.wait("r2")
	run.emit(event.TextDelta, &event.Delta{Text: "done"})
	run.end(event.RunCompleted, "stop", "", nil)
	body, err := io.ReadAll(chat.Body)
	if err != nil || !strings.Contains(string(body), "[DONE]") || !strings.Contains(string(body), `"content":"done"`) {
		t.Errorf("%s %v", body, err)
	}
	<-stopped
	if _, err := http.Get(base + "/healthz"); err == nil {
		t.Error("the server still answers")
	}
	if got := e.wait("r1"); got.get().Status != "running" {
		t.Errorf("a shutdown is not a cancel: %s", got.get().Status)
	}
}

// Those in front of a server are told that it is about to end, and are served while
// they take notice.
func TestShutdownDelay(t *testing.T) {
	e := newFake()
	base, stop := serve(t, e, &server.Options{Delay: 2 * time.Second})
	status := func(path string) int {
		resp, err := http.Get(base + path)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := status("/readyz"); got != 200 {
		t.Errorf("ready: %d", got)
	}
	began, stopped := time.Now(), make(chan struct{})
	go func() { stop(); close(stopped) }()
	for status("/readyz") == 200 {
	}
	if got := []int{status("/readyz"), status("/healthz"), status("/runs")}; !slices.Equal(got, []int{503, 200, 200}) {
		t.Errorf("readyz, healthz, runs while it waits: %v", got)
	}
	<-stopped
	if status("/healthz") != 0 || time.Since(began) < 2*time.Second {
		t.Errorf("it ended after %v", time.Since(began))
	}
}

// A process that ends by and by says so from the beginning.
func TestLeave(t *testing.T) {
	s := server.New(newFake(), nil)
	ask := func(path string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://localhost"+path, nil)
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	if got := []int{ask("/readyz"), ask("/healthz")}; !slices.Equal(got, []int{200, 200}) {
		t.Errorf("at first: %v", got)
	}
	s.Leave()
	s.Leave()
	if got := []int{ask("/readyz"), ask("/healthz")}; !slices.Equal(got, []int{503, 200}) {
		t.Errorf("when it leaves: %v", got)
	}
}

func TestShutdownAfterGrace(t *testing.T) {
	e := newFake()
	base, stop := serve(t, e, &server.Options{Grace: time.Millisecond})
	whole := make(chan *http.Response, 1)
	ready := make(chan struct{})
	e.script("stuck", func(r *fakeRun) { close(ready) })
	go func() {
		resp, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"stuck","messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Error(err)
		}
		whole <- resp
	}()
	<-ready
	stream := post(t, base+"/v1/chat/completions", `{"model":"manual","stream":true,"messages":[{"role":"user","content":"x"}]}`, func() {
		e.wait("r2").emit(event.TextDelta, &event.Delta{Text: "begun"})
	})
	stop()
	body, err := io.ReadAll(stream.Body)
	if err != nil || !strings.Contains(string(body), `{"error":{"message":"the server is shutting down; the run goes on: GET /runs/r2"`) {
		t.Errorf("%s %v", body, err)
	}
	if resp := <-whole; resp == nil || resp.StatusCode != 503 {
		t.Errorf("%+v", resp)
	}
	select {
	case c := <-e.cancelled:
		t.Errorf("a shutdown cancels nothing: %s", c)
	default:
	}
}

// post sends JSON. For answers that wait for the run, during moves it.
func post(t *testing.T, url, body string, during ...func()) *http.Response {
	t.Helper()
	got := make(chan *http.Response, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
		}
		got <- resp
	}()
	for _, f := range during {
		f()
	}
	resp := <-got
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}
