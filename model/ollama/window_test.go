package ollama

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"agentd/message"
	"agentd/model"
)

// A server that loads models as it likes says with how many tokens, once they are loaded.
func TestWindow(t *testing.T) {
	var asked atomic.Int64
	ps := `{"models":[{"name":"other:latest","context_length":1},{"name":"m:latest","model":"m:latest","context_length":4096}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/chat":
			_, _ = io.WriteString(w, `{"created_at":"x","message":{"content":"hi"},"done":true,"done_reason":"stop"}`+"\n")
		case "/api/show":
			_, _ = io.WriteString(w, `{"parameters":"stop  \"x\"\nnum_ctx   8192\n","model_info":{"m.context_length":262144}}`)
		case "/api/ps":
			asked.Add(1)
			if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("%s %v", r.Method, r.Header)
			}
			_, _ = io.WriteString(w, ps)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	t.Cleanup(srv.Close)
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	made := func(o Options) *Provider {
		o.Now = func() time.Time { return now }
		p, err := New(Config{BaseURL: srv.URL, Credential: func(context.Context) (string, error) { return "k", nil }, Options: &o})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	call := func(p *Provider, id string) {
		t.Helper()
		if _, err := p.Generate(t.Context(), &model.Request{Model: id, Messages: []message.Message{message.User("hi")}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	p := made(Options{})
	if w := p.Window("m"); w != 0 {
		t.Errorf("%d before anything is known", w)
	}
	if _, err := p.Abilities(t.Context(), "m"); err != nil || p.Window("m") != 8192 {
		t.Errorf("%d by the model's own parameters, %v", p.Window("m"), err)
	}
	for range 3 {
		call(p, "m")
	}
	if w := p.Window("m"); w != 4096 || asked.Load() != 1 {
		t.Errorf("%d when it is loaded, asked %d times", w, asked.Load())
	}
	// The server was started again.
	ps = `{"models":[{"name":"m","context_length":32768}]}`
	now = now.Add(windowTime)
	call(p, "m")
	if w := p.Window("m"); w != 32_768 || asked.Load() != 2 {
		t.Errorf("%d after some time, asked %d times", w, asked.Load())
	}
	// What can not be read changes nothing.
	ps = `<html>`
	now = now.Add(windowTime)
	call(p, "m")
	if w := p.Window("m"); w != 32_768 {
		t.Errorf("%d after an answer that is none", w)
	}
	// A model that is passed on is loaded with all that it was made for.
	call(p, "big:cloud")
	if w := p.Window("big:cloud"); w != 8192 { // unless its parameters say otherwise
		t.Errorf("%d of one that is passed on", w)
	}
	before := asked.Load()
	p = made(Options{NumCtx: 1000})
	call(p, "m")
	if w := p.Window("m"); w != 1000 || asked.Load() != before {
		t.Errorf("%d where the request says it", w)
	}
}

func FuzzWindow(f *testing.F) {
	f.Add([]byte(`{"models":[{"name":"m","context_length":4096}]}`), "num_ctx 4096\nstop x")
	f.Add([]byte(`{"models":[{"model":"m:latest","context_length":-1e99}]}`), "num_ctx -1")
	f.Fuzz(func(t *testing.T, ps []byte, parameters string) {
		if windowOf(ps, "m") < 0 || numCtx(parameters) < 0 {
			t.Error("a negative number of tokens")
		}
	})
}
