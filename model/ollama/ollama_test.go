package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

func harness() modeltest.Harness {
	return modeltest.Harness{
		New: func(t testing.TB, s modeltest.Server) model.Provider {
			p, err := New(Config{BaseURL: s.URL, Credential: s.Key, Options: &Options{
				Idle: s.Idle, Client: s.Client, NumCtx: 65_536, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Provider: "ollama", API: API, Model: "qwen3", Path: "/api/chat",
		Key:    func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") },
		Usage:  map[string]message.Usage{"text": {Input: 20, Output: 7, TotalTokens: 27}},
		Replay: `{"role":"assistant","content":"42","thinking":"Six times seven."}`,
		Complete: func(fixture []byte) int {
			return bytes.LastIndexByte(fixture, '}') + 1
		},
		Failures: []modeltest.Failure{
			{Name: "no key", Status: 401, Body: `{"error":"unauthorized","signin_url":"https://ollama.com/connect"}`, Class: model.ClassAuth},
			{Name: "no permission", Status: 403, Body: `{"error":"remote model is unavailable"}`, Class: model.ClassAuth},
			{Name: "rate limit", Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error":"too many requests"}`, Class: model.ClassRateLimited, Retry: 7 * time.Second},
			{Name: "plan", Status: 429, Body: `{"error":"you have reached your weekly usage limit, please upgrade"}`, Class: model.ClassQuota},
			{Name: "overflow", Status: 400, Body: `{"error":"the input length exceeds the context length"}`, Class: model.ClassOverflow},
			{Name: "invalid", Status: 400, Body: `{"error":"\"gemma3\" does not support tools"}`, Class: model.ClassInvalid},
			{Name: "no such model", Status: 404, Body: `{"error":"model 'x' not found"}`, Class: model.ClassNotFound},
			{Name: "no such model by another status", Status: 400, Body: `{"error":"model \"x\" not found, try pulling it first"}`, Class: model.ClassNotFound},
			{Name: "no such address", Status: 404, Body: `404 page not found`, Class: model.ClassNotFound},
			{Name: "memory", Status: 500, Body: `{"error":"model requires more system memory (12.0 GiB) than is available (8.0 GiB)"}`, Class: model.ClassServer},
			{Name: "a broken image", Status: 500, Body: `{"error":"Failed to create new sequence: failed to process inputs: image: unknown format"}`, Class: model.ClassInvalid},
			{Name: "server in HTML", Status: 502, Body: `<html>Bad Gateway</html>`, Class: model.ClassServer},
			{Name: "server without a word", Status: 500, Body: ``, Class: model.ClassServer},
			{Name: "busy", Status: 503, Body: `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, Class: model.ClassOverloaded},
			{Name: "of a gateway", Status: 429, Body: `{"error":{"message":"Rate limit reached. Please try again in 1.5s.","type":"requests"}}`, Class: model.ClassRateLimited, Retry: 1500 * time.Millisecond},
		},
		Broken: map[string]model.Class{
			"broken_error": model.ClassServer, "broken_overflow": model.ClassOverflow, "broken_json": model.ClassMalformed, "broken_load": model.ClassServer,
			"broken_nameless": model.ClassMalformed, "broken_end": model.ClassTruncated, "broken_nothing": model.ClassTruncated,
		},
		Messages: func(t testing.TB, body []byte) []json.RawMessage {
			msgs := decode(t, body).Messages
			if len(msgs) > 0 && bytes.HasPrefix(msgs[0], []byte(`{"role":"system"`)) {
				msgs = msgs[1:]
			}
			return msgs
		},
		IDs: func(t testing.TB, body []byte) (calls, results []string) {
			for _, raw := range decode(t, body).Messages {
				var m struct {
					ToolCallID string                `json:"tool_call_id"`
					ToolCalls  []struct{ ID string } `json:"tool_calls"`
				}
				if err := json.Unmarshal(raw, &m); err != nil {
					t.Fatal(err)
				}
				for _, c := range m.ToolCalls {
					calls = append(calls, c.ID)
				}
				if m.ToolCallID != "" {
					results = append(results, m.ToolCallID)
				}
			}
			return calls, results
		},
		Ignores: []string{"an error flag", "no cache mark"},
		IDLimit: 64,
		Wire:    wire(),
		Free:    true,
	}
}

type request struct{ Messages []json.RawMessage }

func decode(t testing.TB, body []byte) request {
	t.Helper()
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConformance(t *testing.T) { modeltest.Run(t, harness()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, harness()) }

func TestOldReasoningIsNotSent(t *testing.T) {
	modeltest.OldReasoning(t, "", `"thinking":"THINK%d"`, func(t *testing.T, history []message.Message) string {
		return body(t, nil, everything(), &model.Request{Model: "m", MaxTokens: 9, Messages: session.DropReasoning(history, 300_000, nil)})
	})
}

// What agentd sends follows from its configuration and from nothing else.
func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("OLLAMA_HOST", "http://127.0.0.1:1")
	t.Setenv("OLLAMA_API_KEY", "from-the-environment")
	seen := make(chan *http.Request, 1)
	p, err := New(Config{BaseURL: "http://provider.invalid/", Headers: map[string]string{"X-Mine": "1"}, Options: &Options{Client: &http.Client{Transport: spy(seen)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Generate(context.Background(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
	r := <-seen
	if r.Header.Get("Authorization") != "" || r.Header.Get("X-Mine") != "1" || r.URL.String() != "http://provider.invalid/api/chat" {
		t.Errorf("%s, headers %v", r.URL, r.Header)
	}
}

type spy chan *http.Request

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	s <- r
	return &http.Response{StatusCode: 500, Body: http.NoBody, Header: http.Header{}}, nil
}

func TestHost(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"0.0.0.0":              "http://127.0.0.1:11434",
		":4000":                "http://127.0.0.1:4000",
		"box":                  "http://box:11434",
		"box:4000":             "http://box:4000",
		"[::1]:4000":           "http://[::1]:4000",
		"::1":                  "http://[::1]:11434",
		" http://box ":         "http://box:80",
		"https://box/path/":    "https://box:443/path",
		"https://box:8443":     "https://box:8443",
		"ollama.com":           "https://ollama.com:443",
		"http://0.0.0.0:11434": "http://127.0.0.1:11434",
	} {
		if got, err := Host(in); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{"ftp://x", "http://user:hunter2@host", "a b"} {
		if got, err := Host(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is %q, %v", bad, got, err)
		}
	}
}
