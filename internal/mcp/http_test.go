package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/fault"
	"agentd/tool"
)

// realServer is a server made with the SDK.
func realServer(t *testing.T) *sdk.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "real", Version: "2"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "hello"}, func(_ context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("hello ", req.Params.Meta[KeyMeta], " ", req.Params.Meta["traceparent"])}}}, nil, nil
	})
	return s
}

// front serves a handler and what the test puts before it.
type front struct {
	*httptest.Server
	before  atomic.Pointer[http.HandlerFunc]
	handler atomic.Pointer[http.Handler]
}

func newFront(t *testing.T, h http.Handler) *front {
	t.Helper()
	f := &front{}
	f.handler.Store(&h)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b := f.before.Load(); b != nil {
			(*b)(w, r)
			return
		}
		(*f.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func handlerOf(s *sdk.Server, opts *sdk.StreamableHTTPOptions) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, opts)
}

func (f *front) intercept(h http.HandlerFunc) {
	if h == nil {
		f.before.Store(nil)
		return
	}
	f.before.Store(&h)
}

// onCall does something else with the calls of tools.
func (f *front) onCall(do func(w http.ResponseWriter, id json.RawMessage)) {
	f.intercept(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m rpc
		if json.Unmarshal(body, &m) == nil && m.Method == "tools/call" {
			do(w, m.ID)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		(*f.handler.Load()).ServeHTTP(w, r)
	})
}

var protocols = []string{protocolAuto, protocolLegacy}

func TestHTTP(t *testing.T) {
	for _, protocol := range protocols {
		for _, jsonOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s json=%v", protocol, jsonOnly), func(t *testing.T) {
				f := newFront(t, handlerOf(realServer(t), &sdk.StreamableHTTPOptions{JSONResponse: jsonOnly}))
				tools, m := one(t, ServerConfig{Transport: "http", Endpoint: f.URL, Protocol: protocol}, nil)
				traced := call(`{}`)
				traced.Traceparent = "00-abc"
				r, err := tools["hello"].Run(background(t), traced)
				if err != nil || textOf(r) != "hello r1/1/c1 00-abc" {
					t.Errorf("%q, %v", textOf(r), err)
				}
				if st := m.Status()[0]; st.State != Ready || st.Program != "real" {
					t.Errorf("status %+v", st)
				}
			})
		}
	}
}

func TestHTTPHeadersAndRedirects(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	h := handlerOf(realServer(t), nil)
	f := newFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/old":
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, other.URL+"/mcp", http.StatusTemporaryRedirect)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusTemporaryRedirect)
		default:
			if r.Header.Get("Authorization") != "Bearer secret-1" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		}
	}))
	headers := map[string]string{"authorization": "Bearer secret-1"}
	cfg := func(path string, headers map[string]string) ServerConfig {
		return ServerConfig{Transport: "http", URL: f.URL + path, Headers: headers, Timeouts: Timeouts{Connect: 5 * time.Second}}
	}
	tools, _ := one(t, cfg("/old", headers), nil)
	if _, err := tools["hello"].Run(background(t), call(`{}`)); err != nil {
		t.Error(err)
	}
	m := manage(t, map[string]ServerConfig{"away": cfg("/away", headers), "circle": cfg("/circle", headers), "nobody": cfg("/mcp", nil)}, nil)
	_, problems := m.Tools(background(t), m.Names())
	want := map[string]string{"away": "redirects to another host", "circle": "redirects more than 5 times", "nobody": "who are you?"}
	for _, p := range problems {
		if !strings.Contains(p.Err.Error(), want[p.Server]) || strings.Contains(p.Err.Error(), "secret-1") {
			t.Errorf("%s: %v", p.Server, p.Err)
		}
	}
	if len(problems) != 3 || elsewhere.Load() != 0 {
		t.Errorf("%d problems, %d requests to the other host", len(problems), elsewhere.Load())
	}
}

func TestHTTPCancelReachesTheServer(t *testing.T) {
	for _, protocol := range []string{protocolModern, protocolLegacy} {
		t.Run(protocol, func(t *testing.T) {
			started, cancelled := make(chan struct{}, 1), make(chan struct{}, 1)
			s := realServer(t)
			sdk.AddTool(s, &sdk.Tool{Name: "slow"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
				started <- struct{}{}
				<-ctx.Done()
				cancelled <- struct{}{}
				return nil, nil, ctx.Err()
			})
			f := newFront(t, handlerOf(s, nil))
			tools, _ := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocol}, nil)
			ctx, cancel := context.WithCancel(background(t))
			go func() { <-started; cancel() }()
			_, err := tools["slow"].Run(ctx, call(`{}`))
			wantKind(t, err, fault.Cancelled)
			select {
			case <-cancelled:
			case <-time.After(patience):
				t.Error("the server was not told")
			}
			if _, err := tools["hello"].Run(background(t), call(`{}`)); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestHTTPProgressAndListChanged(t *testing.T) {
	for _, protocol := range []string{protocolModern, protocolLegacy} {
		t.Run(protocol, func(t *testing.T) {
			s := realServer(t)
			sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"})
				sdk.AddTool(s, &sdk.Tool{Name: "fresh"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
					return &sdk.CallToolResult{}, nil, nil
				})
				return &sdk.CallToolResult{}, nil, nil
			})
			f := newFront(t, handlerOf(s, nil))
			tools, m := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocol}, nil)
			var mu sync.Mutex
			var got []tool.Progress
			c := call(`{}`)
			c.Progress = func(p tool.Progress) { mu.Lock(); got = append(got, p); mu.Unlock() }
			if _, err := tools["grow"].Run(background(t), c); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			if len(got) > 1 || len(got) == 1 && got[0] != (tool.Progress{Message: "half", Done: 1, Total: 2}) {
				t.Errorf("progress %+v", got)
			}
			mu.Unlock()
			eventually(t, "the new tool is seen", func() bool { return m.Status()[0].Tools == 3 })
		})
	}
}

func TestHTTPServerRestart(t *testing.T) {
	f := newFront(t, handlerOf(realServer(t), nil))
	none := 0
	tools, m := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy, Retries: Retries{Max: &none}}, nil)
	// A new process knows no old session and answers 404: the call was not
	// taken, so that even one that must not be repeated is sent again.
	fresh := handlerOf(realServer(t), nil)
	f.handler.Store(&fresh)
	r, err := tools["hello"].Run(background(t), call(`{}`))
	if err != nil || !strings.HasPrefix(textOf(r), "hello") {
		t.Fatalf("%q, %v", textOf(r), err)
	}
	if st := m.Status()[0]; st.Restarts != 1 {
		t.Errorf("status %+v", st)
	}
	// Some servers say the same with 400 and words.
	forgot := handlerOf(realServer(t), nil)
	f.intercept(func(w http.ResponseWriter, r *http.Request) {
		f.intercept(nil)
		f.handler.Store(&forgot)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
	})
	if _, err := tools["hello"].Run(background(t), call(`{}`)); err != nil {
		t.Fatal(err)
	}
}

func TestHTTPAnswersThatAreNoAnswers(t *testing.T) {
	write := func(status int, contentType, body string) func(http.ResponseWriter, json.RawMessage) {
		return func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			io.WriteString(w, strings.ReplaceAll(body, "ID", string(id)))
		}
	}
	big := strings.Repeat("x", 11<<20)
	tests := []struct {
		name string
		do   func(http.ResponseWriter, json.RawMessage)
		kind fault.Kind
		want string
	}{
		{"page", write(200, "text/html", "<h1>Welcome</h1>"), fault.Unavailable, "text/html"},
		{"not json", write(200, "application/json", "<h1>Welcome</h1>"), fault.Unavailable, "not the JSON-RPC response"},
		{"other json", write(200, "application/json", `{"ok":true}`), fault.Unavailable, "not the JSON-RPC response"},
		{"answer to another call", write(200, "application/json", `{"jsonrpc":"2.0","id":99999,"result":{}}`), fault.Unavailable, "not the JSON-RPC response"},
		{"empty", write(200, "application/json", ``), fault.Unavailable, "not the JSON-RPC response"},
		{"huge json", write(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"x":"`+big+`"}}`), fault.TooLarge, "larger than 10 MiB"},
		{"huge event", write(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"x\":\""+big+"\"}}\n\n"), fault.TooLarge, "larger than 10 MiB"},
		{"huge event of many lines", write(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\ndata: \"result\":\""+strings.Repeat(strings.Repeat("y", 1<<20)+"\ndata: ", 11)+"\"}\n\n"), fault.TooLarge, "larger than 10 MiB"},
		{"events that are none", write(200, "text/event-stream", "what\n\ndata: nonsense\n\n"), fault.Unavailable, "without response"},
		{"no events", write(200, "text/event-stream", ""), fault.Unavailable, "without response"},
		{"unauthorized", write(401, "text/plain", "no"), fault.Unauthorized, "401"},
		{"bad request", write(400, "text/plain", "no"), fault.Unavailable, "400 Bad Request: no"},
		{"server error", write(500, "text/plain", "oops"), fault.Unavailable, "500 Internal Server Error: oops"},
		{"rpc error", write(200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"bad args"}}`), fault.Invalid, "bad args"},
		{"rpc error with a status", write(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"bad args"}}`), fault.Invalid, "bad args"},
		{"cut", func(w http.ResponseWriter, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"jsonrpc":`)
		}, fault.Unavailable, "connection broke"},
	}
	f := newFront(t, handlerOf(realServer(t), nil))
	tools, m := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy}, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f.onCall(tt.do)
			_, err := tools["hello"].Run(background(t), call(`{}`))
			wantKind(t, err, tt.kind, `server "srv"`, tt.want)
			f.intercept(nil)
			if _, err := tools["hello"].Run(background(t), call(`{}`)); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if st := m.Status()[0]; st.Restarts != 0 {
				t.Errorf("the session did not survive: %+v", st)
			}
		})
	}
}

func TestHTTPErrorAnswerIsTheToolsFailure(t *testing.T) {
	f := newFront(t, handlerOf(realServer(t), nil))
	tools, _ := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy}, nil)
	for _, status := range []int{200, 400} {
		f.onCall(func(w http.ResponseWriter, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"division by zero"}}`, id)
		})
		r, err := tools["hello"].Run(background(t), call(`{}`))
		if err != nil || !r.IsError || textOf(r) != "hello failed: division by zero (code -32603)" {
			t.Errorf("%d: %+v, %v", status, r, err)
		}
	}
}

func TestHTTPRetries(t *testing.T) {
	for _, tt := range []struct {
		effect tool.Effect
		status int
		want   int64
	}{
		{tool.Read, 503, 3}, {tool.Idempotent, 502, 3}, {tool.Once, 503, 1}, {tool.Once, 429, 3}, {tool.Read, 500, 1}, {tool.Read, 400, 1},
	} {
		t.Run(fmt.Sprintf("%s %d", tt.effect, tt.status), func(t *testing.T) {
			f := newFront(t, handlerOf(realServer(t), nil))
			tools, _ := one(t, ServerConfig{Transport: "http", URL: f.URL, Effects: map[string]tool.Effect{"hello": tt.effect}, Retries: Retries{Backoff: time.Millisecond}}, nil)
			var n atomic.Int64
			f.onCall(func(w http.ResponseWriter, _ json.RawMessage) { n.Add(1); http.Error(w, "busy", tt.status) })
			if _, err := tools["hello"].Run(background(t), call(`{}`)); err == nil {
				t.Fatal("no error")
			}
			if n.Load() != tt.want {
				t.Errorf("%d attempts, want %d", n.Load(), tt.want)
			}
		})
	}
}

func TestHTTPServerThatNeverAnswers(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	// The stream of notifications is never answered: connecting must not wait
	// for it for ever.
	f := newFront(t, handlerOf(realServer(t), nil))
	f.intercept(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		(*f.handler.Load()).ServeHTTP(w, r)
	})
	cfg := ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy, Timeouts: Timeouts{Connect: 2 * time.Second, Call: 200 * time.Millisecond}}
	guard := newGuard("srv", &ServerConfig{URL: f.URL, Timeouts: Timeouts{Connect: 50 * time.Millisecond}}, nil, 1<<20, slog.New(slog.DiscardHandler))
	req, _ := http.NewRequestWithContext(background(t), http.MethodGet, f.URL, nil)
	resp, err := guard.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Fatalf("%v, %v", resp, err)
	}
	f.intercept(nil)
	tools, _ := one(t, cfg, nil)
	f.onCall(func(http.ResponseWriter, json.RawMessage) { <-hang })
	_, err = tools["hello"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Timeout, "200ms")
}

func TestHTTPEndlessStreams(t *testing.T) {
	f := newFront(t, handlerOf(realServer(t), nil))
	tools, _ := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy}, nil)
	gone := make(chan struct{})
	f.onCall(func(w http.ResponseWriter, id json.RawMessage) {
		defer close(gone)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 50_000 {
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n")
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"at last\"}]}}\n\n", id)
		for { // and it never stops
			if _, err := io.WriteString(w, ": still here\n\n"); err != nil {
				return
			}
		}
	})
	r, err := tools["hello"].Run(background(t), call(`{}`))
	if err != nil || textOf(r) != "at last" {
		t.Fatalf("%q, %v", textOf(r), err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the stream is still being read")
	}
}

func TestCallWhileTheServerIsDown(t *testing.T) {
	f := newFront(t, handlerOf(realServer(t), nil))
	tools, m := one(t, ServerConfig{Transport: "http", URL: f.URL, Protocol: protocolLegacy, Timeouts: Timeouts{Connect: time.Second},
		Effects: map[string]tool.Effect{"*": tool.Read}, Retries: Retries{Backoff: time.Millisecond}}, nil)
	f.CloseClientConnections()
	f.Close()
	_, err := tools["hello"].Run(background(t), call(`{}`))
	wantKind(t, err, fault.Unavailable, "connection refused")
	if got, _ := m.Tools(background(t), []string{"srv"}); len(got) != 1 {
		t.Errorf("%d tools are still offered, want 1", len(got))
	}
	if !errors.Is(err, &fault.Error{Kind: fault.Unavailable}) {
		t.Errorf("%v", err)
	}
}
