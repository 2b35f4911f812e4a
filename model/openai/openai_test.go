package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

func harness() modeltest.Harness {
	usage := message.Usage{Input: 12, CacheRead: 8, Output: 7, Reasoning: 3, TotalTokens: 27}
	return modeltest.Harness{
		New: func(t testing.TB, s modeltest.Server) model.Provider {
			p, err := New(Config{BaseURL: s.URL + "/v1", Credential: s.Key, Options: &Options{
				Idle: s.Idle, Client: s.Client, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Provider: "openai", API: API, Model: "gpt-4.1", Path: "/v1/chat/completions",
		Key:       func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") },
		Usage:     map[string]message.Usage{"text": usage},
		Signature: "reasoning_content",
		Replay:    `{"role":"assistant","content":"42","reasoning_content":"Six times seven."}`,
		Complete: func(fixture []byte) int {
			at := bytes.Index(fixture, []byte(`"finish_reason":"`))
			return at + bytes.Index(fixture[at:], []byte("\n\n")) + 2
		},
		Failures: []modeltest.Failure{
			{Name: "bad key", Status: 401, Body: `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, Class: model.ClassAuth},
			{Name: "no permission", Status: 403, Body: `{"error":{"message":"Country not supported","type":"request_forbidden"}}`, Class: model.ClassAuth},
			{Name: "rate limit", Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000.","type":"tokens","code":"rate_limit_exceeded"}}`, Class: model.ClassRateLimited, Retry: 7 * time.Second},
			{Name: "rate limit in words", Status: 429, Body: `{"error":{"message":"Rate limit reached. Please try again in 1.5s.","type":"requests","code":"rate_limit_exceeded"}}`, Class: model.ClassRateLimited, Retry: 1500 * time.Millisecond},
			{Name: "rate limit until a date", Status: 429, Header: map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:01:30 GMT"}, Body: `{}`, Class: model.ClassRateLimited, Retry: 90 * time.Second},
			{Name: "rate limit in milliseconds", Status: 429, Header: map[string]string{"Retry-After-Ms": "250"}, Body: `{}`, Class: model.ClassRateLimited, Retry: 250 * time.Millisecond},
			{Name: "rate limit reset", Status: 429, Header: map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Reset-Requests": "9m"}, Body: `{}`, Class: model.ClassRateLimited, Retry: 6 * time.Minute},
			{Name: "quota", Status: 429, Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, Class: model.ClassQuota},
			{Name: "payment", Status: 402, Body: `{"error":{"message":"Insufficient credits","code":402}}`, Class: model.ClassQuota},
			{Name: "overflow", Status: 400, Body: `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, Class: model.ClassOverflow},
			{Name: "overflow in words", Status: 400, Body: `{"error":"the request exceeds the available context size. try increasing it"}`, Class: model.ClassOverflow},
			{Name: "too large", Status: 413, Body: `<html>413 Request Entity Too Large</html>`, Class: model.ClassOverflow},
			{Name: "too large without a word", Status: 400, Body: ``, Class: model.ClassOverflow},
			{Name: "throttled", Status: 429, Body: `{"message":"Too many tokens, please wait before trying again."}`, Class: model.ClassRateLimited},
			{Name: "throttled as 400", Status: 400, Body: `{"message":"Too many tokens, please wait before trying again."}`, Class: model.ClassRateLimited},
			{Name: "invalid", Status: 400, Body: `{"error":{"message":"Invalid value for 'temperature'","type":"invalid_request_error","param":"temperature","code":null}}`, Class: model.ClassInvalid},
			{Name: "no such model", Status: 404, Body: `{"error":{"message":"The model 'x' does not exist","type":"invalid_request_error","code":"model_not_found"}}`, Class: model.ClassNotFound},
			{Name: "filtered", Status: 400, Body: `{"error":{"message":"The response was filtered","code":"content_filter"}}`, Class: model.ClassRefused},
			{Name: "server", Status: 500, Body: `{"error":{"message":"The server had an error","type":"server_error"}}`, Class: model.ClassServer},
			{Name: "server in HTML", Status: 502, Body: `<html>Bad Gateway</html>`, Class: model.ClassServer},
			{Name: "server without a word", Status: 500, Body: ``, Class: model.ClassServer},
			{Name: "overloaded", Status: 503, Header: map[string]string{"Retry-After": "2"}, Body: `{"error":{"message":"That model is currently overloaded"}}`, Class: model.ClassOverloaded, Retry: 2 * time.Second},
			{Name: "timeout", Status: 408, Body: `{}`, Class: model.ClassTimeout},
		},
		Broken: map[string]model.Class{
			"broken_error": model.ClassServer, "broken_error_rate": model.ClassRateLimited, "broken_error_string": model.ClassOverloaded,
			"broken_overflow": model.ClassOverflow, "broken_json": model.ClassMalformed, "broken_done": model.ClassTruncated,
			"broken_filter": model.ClassRefused, "broken_refusal": model.ClassRefused, "broken_nameless": model.ClassMalformed,
			"broken_finish": model.ClassServer, "broken_nothing": model.ClassTruncated,
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
		IDLimit: 40,
		Wire:    chatWire(),
		Stops: func(t testing.TB, body []byte) []string {
			var r struct {
				Stop []string
			}
			if err := json.Unmarshal(body, &r); err != nil {
				t.Fatal(err)
			}
			return r.Stop
		},
		MaxStops: 4,
		Tiers: &modeltest.Tiers{Usual: "default", Half: "flex", Served: func(fixture []byte, word string) []byte {
			return bytes.ReplaceAll(fixture, []byte(`"object":"chat.completion.chunk"`), []byte(`"object":"chat.completion.chunk","service_tier":"`+word+`"`))
		}},
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

// What agentd sends follows from its configuration and from nothing else.
func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("OPENAI_ORG_ID", "org")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Other: yes")
	head := make(chan http.Header, 1)
	p, err := New(Config{BaseURL: "http://provider.invalid/v1", Headers: map[string]string{"X-Mine": "1"},
		Options: &Options{Client: &http.Client{Transport: spy(head)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Generate(context.Background(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
	h := <-head
	if h.Get("Authorization") != "" || h.Get("OpenAI-Organization") != "" || h.Get("X-Other") != "" || h.Get("X-Mine") != "1" {
		t.Errorf("headers %v", h)
	}
}

type spy chan http.Header

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	s <- r.Header.Clone()
	return &http.Response{StatusCode: 500, Body: http.NoBody, Header: http.Header{}}, nil
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"api.openai.com/v1", "ftp://x/v1", "http://", "http://user:hunter2@host/v1", "http://h ost/v1", "http://%zz"} {
		_, err := New(Config{BaseURL: bad})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	p, err := New(Config{BaseURL: "https://api.openai.com/v1/"})
	if err != nil || p.maxTokens != "max_completion_tokens" || !p.cacheKey || p.api != APIResponses {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = New(Config{BaseURL: "http://127.0.0.1:8080/v1", Provider: "local"})
	if err != nil || p.maxTokens != "max_tokens" || p.cacheKey || p.api != API || p.String() != "openai adapter (local)" {
		t.Errorf("%+v, %v", p, err)
	}
}
