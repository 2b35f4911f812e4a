package server_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/internal/server"
	"agentd/message"
)

// chatUntil streams a chat to its first text and gives the means to hang up.
func (a *api) chatUntil(headers ...string) (hangUp func()) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", a.ts.URL+"/v1/chat/completions", strings.NewReader(`{"model":"slow","stream":true,"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		a.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := a.ts.Client().Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	for {
		f, err := readFrame(r)
		if err != nil {
			a.t.Fatal(err)
		}
		if strings.Contains(f.data, "begun") {
			break
		}
	}
	return func() { cancel(); _ = resp.Body.Close() }
}

func TestDisconnectCancels(t *testing.T) {
	a := start(t, nil)
	a.e.script("slow", func(r *fakeRun) { step(r, 0, "begun") })
	a.chatUntil()()
	if got := <-a.e.cancelled; got != "r1: the client disconnected" {
		t.Errorf("%q", got)
	}
	// The same for an answer that is not streamed.
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", a.ts.URL+"/v1/chat/completions", strings.NewReader(`{"model":"manual","messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := a.ts.Client().Do(req); failed <- err }()
	a.e.wait("r2")
	cancel()
	if err := <-failed; err == nil {
		t.Error("the request was not ended")
	}
	if got := <-a.e.cancelled; got != "r2: the client disconnected" {
		t.Errorf("%q", got)
	}
}

// TestRetryJoinsTheRun: with an Idempotency-Key a run survives its client for a
// while, and the retry gets the whole answer.
func TestRetryJoinsTheRun(t *testing.T) {
	a := start(t, &server.Options{RejoinWindow: time.Hour})
	a.e.script("slow", func(r *fakeRun) { step(r, 0, "begun") })
	a.chatUntil("Idempotency-Key: k")()
	hangUp := a.chatUntil("Idempotency-Key: k") // joins, from the beginning
	if n := len(a.e.started); n != 1 {
		t.Errorf("%d runs", n)
	}
	done := make(chan *reply)
	b := *a
	go func() {
		done <- b.do("POST", "/v1/chat/completions", `{"model":"slow","stream":true,"messages":[{"role":"user","content":"x"}]}`, "Idempotency-Key: k")
	}()
	hangUp() // the other one still reads
	run := a.e.wait("r1")
	say(run, " and done")
	run.end(event.RunCompleted, "stop", "", nil)
	if r := <-done; !strings.Contains(string(r.body), "begun") || !strings.Contains(string(r.body), "and done") || !strings.Contains(string(r.body), "[DONE]") {
		t.Errorf("%s", r.body)
	}
	if r := a.do("POST", "/v1/chat/completions", `{"model":"slow","messages":[{"role":"user","content":"y"}]}`, "Idempotency-Key: k"); r.status != 409 {
		t.Errorf("another request under the key: %d %s", r.status, r.body)
	}
	select {
	case c := <-a.e.cancelled:
		t.Errorf("cancelled: %s", c)
	default:
	}
}

func TestNobodyCameBack(t *testing.T) {
	a := start(t, &server.Options{RejoinWindow: time.Millisecond})
	a.e.script("slow", func(r *fakeRun) { step(r, 0, "begun") })
	a.chatUntil("Idempotency-Key: k")()
	if got := <-a.e.cancelled; got != "r1: the client disconnected" {
		t.Errorf("%q", got)
	}
}

// pipe is a response writer in memory, for tests with a clock of their own.
type pipe struct {
	header http.Header
	status int
	got    chan string
}

func newPipe() *pipe { return &pipe{header: http.Header{}, got: make(chan string, 100)} }

func (p *pipe) Header() http.Header  { return p.header }
func (p *pipe) WriteHeader(code int) { p.status = code }
func (p *pipe) Flush()               {}
func (p *pipe) Write(b []byte) (int, error) {
	p.got <- string(b)
	return len(b), nil
}

func TestHeartbeats(t *testing.T) {
	for _, c := range []struct{ name, method, path, body, first string }{
		{"native", "GET", "/runs/r1/events", "", "retry: 2000\n\n"},
		{"chat", "POST", "/v1/chat/completions", `{"model":"manual","stream":true,"messages":[{"role":"user","content":"x"}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake()
				h := server.New(e, nil).Handler()
				if c.method == "GET" {
					if _, err := e.Start(t.Context(), engine.StartRequest{Profile: "manual", Input: []message.Block{message.Text("x")}}); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				req, err := http.NewRequestWithContext(ctx, c.method, "http://localhost"+c.path, strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				p := newPipe()
				done := make(chan struct{})
				go func() { h.ServeHTTP(p, req); close(done) }()
				begin := time.Now()
				expect := func(want string, after time.Duration) {
					t.Helper()
					if got := <-p.got; got != want || time.Since(begin) != after {
						t.Errorf("%q after %s, want %q after %s", got, time.Since(begin), want, after)
					}
				}
				if c.first != "" {
					synctest.Wait()
					for len(p.got) > 0 {
						<-p.got
					}
				}
				expect(": keepalive\n\n", 15*time.Second)
				expect(": keepalive\n\n", 30*time.Second)
				time.Sleep(10 * time.Second) // of the test's own clock
				e.wait("r1").emit(event.TextDelta, &event.Delta{Text: "word"})
				if got := <-p.got; !strings.Contains(got, "word") {
					t.Errorf("%q", got)
				}
				expect(": keepalive\n\n", 55*time.Second) // 15 seconds after the word
				if p.status != 200 || p.header.Get("Content-Type") != "text/event-stream" {
					t.Errorf("%d %v", p.status, p.header)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestFailureAfterAHeartbeat: the status is out, no word was said.
func TestFailureAfterAHeartbeat(t *testing.T) {
	for kind, want := range map[string]string{"overloaded": `data: {"error":{"message":"busy (run r1)","type":"server_error","param":null,"code":"overloaded"}}`, "internal": `data: {"error":{"message":"internal error`} {
		synctest.Test(t, func(t *testing.T) {
			e := newFake()
			h := server.New(e, nil).Handler()
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/chat/completions", strings.NewReader(`{"model":"manual","stream":true,"messages":[{"role":"user","content":"x"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			p := newPipe()
			done := make(chan struct{})
			go func() { h.ServeHTTP(p, req); close(done) }()
			<-p.got // a heartbeat
			e.wait("r1").end(event.RunFailed, "model_error", "", &event.Error{Kind: kind, Message: "busy"})
			<-done
			if got := <-p.got; !strings.Contains(got, want) || !strings.Contains(got, `"role":"assistant"`) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
				t.Errorf("%q", got)
			}
		})
	}
}
