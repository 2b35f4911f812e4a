package anthropic

import (
	"bytes"
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
	return modeltest.Harness{
		New: func(t testing.TB, s modeltest.Server) model.Provider {
			p, err := New(Config{BaseURL: s.URL, Credential: s.Key, Options: &Options{
				Idle: s.Idle, Client: s.Client, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Provider: "anthropic", API: API, Model: "claude-haiku-4-5", Path: "/v1/messages",
		Key:       func(h http.Header) string { return h.Get("X-Api-Key") },
		Usage:     map[string]message.Usage{"text": {Input: 9, CacheWrite: 3, CacheRead: 8, Output: 7, Reasoning: 3, TotalTokens: 27}},
		Signature: "EqQBCkgIBRABGAIiQL+x/3kY9w==",
		Replay:    `{"type":"thinking","thinking":"Six times seven.","signature":"EqQBCkgIBRABGAIiQL+x/3kY9w=="}`,
		Complete: func(fixture []byte) int {
			return bytes.Index(fixture, []byte(`{"type":"message_stop"}`)) + len(`{"type":"message_stop"}`) + 2
		},
		Failures: []modeltest.Failure{
			{Name: "bad key", Status: 401, Body: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, Class: model.ClassAuth},
			{Name: "no permission", Status: 403, Body: `{"type":"error","error":{"type":"permission_error","message":"not allowed"}}`, Class: model.ClassAuth},
			{Name: "rate limit", Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute."}}`, Class: model.ClassRateLimited, Retry: 7 * time.Second},
			{Name: "rate limit until a date", Status: 429, Header: map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": "2026-11-21T12:00:30Z"}, Body: `{}`, Class: model.ClassRateLimited, Retry: 30 * time.Second},
			{Name: "credit", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."}}`, Class: model.ClassQuota},
			{Name: "billing", Status: 402, Body: `{"type":"error","error":{"type":"billing_error","message":"x"}}`, Class: model.ClassQuota},
			{Name: "overflow", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 345320 tokens > 199999 maximum"}}`, Class: model.ClassOverflow},
			{Name: "overflow with the answer", Status: 400, Body: "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000\"}}", Class: model.ClassOverflow},
			{Name: "too large", Status: 413, Body: `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, Class: model.ClassOverflow},
			{Name: "throttled", Status: 400, Body: `{"message":"Too many tokens, please wait before trying again."}`, Class: model.ClassRateLimited},
			{Name: "invalid", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: bad"}}`, Class: model.ClassInvalid},
			{Name: "no such model", Status: 404, Body: `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, Class: model.ClassNotFound},
			{Name: "server", Status: 500, Body: `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, Class: model.ClassServer},
			{Name: "server in HTML", Status: 502, Body: `<html>Bad Gateway</html>`, Class: model.ClassServer},
			{Name: "server without a word", Status: 500, Class: model.ClassServer},
			{Name: "overloaded", Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Class: model.ClassOverloaded},
			{Name: "overloaded without a word", Status: 529, Class: model.ClassOverloaded},
			{Name: "timeout", Status: 504, Body: `{"type":"error","error":{"type":"timeout_error","message":"x"}}`, Class: model.ClassTimeout},
		},
		Broken: map[string]model.Class{
			"broken_error": model.ClassOverloaded, "broken_error_api": model.ClassServer, "broken_error_rate": model.ClassRateLimited,
			"broken_overflow": model.ClassOverflow, "broken_json": model.ClassMalformed, "broken_nostop": model.ClassTruncated,
			"broken_refusal": model.ClassRefused, "broken_nameless": model.ClassMalformed, "broken_nothing": model.ClassTruncated,
		},
		Messages: func(t testing.TB, body []byte) []json.RawMessage {
			body = bytes.ReplaceAll(body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
			var r struct{ Messages []json.RawMessage }
			if err := json.Unmarshal(body, &r); err != nil {
				t.Fatal(err)
			}
			return r.Messages
		},
		IDs: func(t testing.TB, body []byte) (calls, results []string) {
			var r struct {
				Messages []struct {
					Content []struct {
						ID        string
						ToolUseID string `json:"tool_use_id"`
					}
				}
			}
			if err := json.Unmarshal(body, &r); err != nil {
				t.Fatal(err)
			}
			for _, m := range r.Messages {
				for _, c := range m.Content {
					if c.ID != "" {
						calls = append(calls, c.ID)
					}
					if c.ToolUseID != "" {
						results = append(results, c.ToolUseID)
					}
				}
			}
			for _, id := range calls {
				if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
					t.Errorf("id %q", id)
				}
			}
			return calls, results
		},
		IDLimit: 64,
		Wire:    wire(),
		Tiers: &modeltest.Tiers{Usual: "standard", Half: "batch", Served: func(fixture []byte, word string) []byte {
			return bytes.ReplaceAll(fixture, []byte(`"service_tier":"standard"`), []byte(`"service_tier":"`+word+`"`))
		}},
	}
}

func TestConformance(t *testing.T) { modeltest.Run(t, harness()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, harness()) }

// What agentd sends follows from its configuration and from nothing else.
func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: yes")
	head := make(chan http.Header, 1)
	p, err := New(Config{BaseURL: "http://provider.invalid", Headers: map[string]string{"anthropic-beta": "x"},
		Options: &Options{Client: &http.Client{Transport: spy(head)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
	h := <-head
	if h.Get("X-Api-Key") != "" || h.Get("Authorization") != "" || h.Get("X-Other") != "" || h.Get("Anthropic-Beta") != "x" || h.Get("Anthropic-Version") != version {
		t.Errorf("headers %v", h)
	}
}

type spy chan http.Header

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	s <- r.Header.Clone()
	return &http.Response{StatusCode: 500, Body: http.NoBody, Header: http.Header{}}, nil
}

func TestNew(t *testing.T) {
	if _, err := New(Config{BaseURL: "api.anthropic.com"}); err == nil || !strings.Contains(err.Error(), "base_url") {
		t.Errorf("%v", err)
	}
	p, err := New(Config{Provider: "gateway"})
	if err != nil || p.String() != "anthropic adapter (gateway)" {
		t.Errorf("%v, %v", p, err)
	}
}
