package gemini

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

const signature = "Ep8ECpwEAXLI2nz+/kY9wA=="

func harness() modeltest.Harness {
	retry := func(quota string) string {
		return `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. For more information see https://ai.google.dev/gemini-api/docs/rate-limits. Please retry in 7.5s.","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.Help","links":[]},{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"x","quotaId":"` + quota + `"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`
	}
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
		Provider: "gemini", API: API, Model: "gemini-3.5-flash", Path: "/v1beta/models/gemini-3.5-flash:streamGenerateContent",
		Key:       func(h http.Header) string { return h.Get("X-Goog-Api-Key") },
		Usage:     map[string]message.Usage{"text": {Input: 12, CacheRead: 8, Output: 7, Reasoning: 3, TotalTokens: 27}},
		Signature: signature,
		Replay:    `{"role":"model","parts":[{"text":"Six times seven.","thought":true,"thoughtSignature":"` + signature + `"},{"text":"42"}]}`,
		Complete: func(fixture []byte) int {
			at := bytes.Index(fixture, []byte(`"finishReason":"`))
			return at + bytes.Index(fixture[at:], []byte("\r\n\r")) + 3
		},
		Failures: []modeltest.Failure{
			{Name: "bad key", Status: 400, Body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, Class: model.ClassAuth},
			{Name: "no key", Status: 403, Body: `{"error":{"code":403,"message":"Method doesn't allow unregistered callers.","status":"PERMISSION_DENIED"}}`, Class: model.ClassAuth},
			{Name: "place", Status: 400, Body: `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, Class: model.ClassAuth},
			{Name: "rate limit", Status: 429, Body: retry("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), Class: model.ClassRateLimited, Retry: 7 * time.Second},
			{Name: "rate limit in a header", Status: 429, Header: map[string]string{"Retry-After": "9"}, Body: retry("GenerateContentInputTokensPerModelPerMinute"), Class: model.ClassRateLimited, Retry: 9 * time.Second},
			{Name: "rate limit in words", Status: 429, Body: `{"error":{"code":429,"message":"Resource has been exhausted. Please retry in 1.5s.","status":"RESOURCE_EXHAUSTED"}}`, Class: model.ClassRateLimited, Retry: 1500 * time.Millisecond},
			{Name: "rate limit in a list", Status: 429, Body: `[` + retry("PerMinute") + `]`, Class: model.ClassRateLimited, Retry: 7 * time.Second},
			{Name: "throttled", Status: 429, Body: `{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}`, Class: model.ClassRateLimited},
			{Name: "quota of a day", Status: 429, Body: retry("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), Class: model.ClassQuota, Retry: 7 * time.Second},
			{Name: "quota", Status: 429, Body: `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}`, Class: model.ClassQuota},
			{Name: "credits", Status: 429, Body: `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, Class: model.ClassQuota},
			{Name: "too large", Status: 400, Body: `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, Class: model.ClassOverflow},
			{Name: "overflow", Status: 400, Body: `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`, Class: model.ClassOverflow},
			{Name: "too large", Status: 413, Body: `<html>413 Request Entity Too Large</html>`, Class: model.ClassOverflow},
			{Name: "invalid", Status: 400, Body: `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"x\"","status":"INVALID_ARGUMENT"}}`, Class: model.ClassInvalid},
			{Name: "no such model", Status: 404, Body: `{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`, Class: model.ClassNotFound},
			{Name: "server", Status: 500, Body: `{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}`, Class: model.ClassServer},
			{Name: "server in HTML", Status: 502, Body: `<html>Bad Gateway</html>`, Class: model.ClassServer},
			{Name: "server without a word", Status: 500, Body: ``, Class: model.ClassServer},
			{Name: "overloaded", Status: 503, Body: `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, Class: model.ClassOverloaded},
			{Name: "deadline", Status: 504, Body: `{"error":{"code":504,"message":"Deadline expired","status":"DEADLINE_EXCEEDED"}}`, Class: model.ClassTimeout},
			{Name: "of a gateway", Status: 401, Body: `{"error":"who are you?"}`, Class: model.ClassAuth},
		},
		Broken: map[string]model.Class{
			"broken_safety": model.ClassRefused, "broken_recitation": model.ClassRefused, "broken_blocked": model.ClassRefused,
			"broken_call": model.ClassMalformed, "broken_nameless": model.ClassMalformed, "broken_json": model.ClassMalformed,
			"broken_other": model.ClassServer, "broken_error": model.ClassServer, "broken_overloaded": model.ClassOverloaded,
			"broken_overflow": model.ClassOverflow, "broken_signature": model.ClassInvalid,
			"broken_end": model.ClassTruncated, "broken_nothing": model.ClassTruncated,
		},
		Messages: func(t testing.TB, body []byte) []json.RawMessage { return decode(t, body).Contents },
		IDs: func(t testing.TB, body []byte) (calls, results []string) {
			for _, raw := range decode(t, body).Contents {
				var m struct {
					Parts []struct{ FunctionCall, FunctionResponse *struct{ ID string } }
				}
				if err := json.Unmarshal(raw, &m); err != nil {
					t.Fatal(err)
				}
				for _, p := range m.Parts {
					if p.FunctionCall != nil {
						calls = append(calls, p.FunctionCall.ID)
					}
					if p.FunctionResponse != nil {
						results = append(results, p.FunctionResponse.ID)
					}
				}
			}
			return calls, results
		},
		Ignores: []string{"no cache mark"},
		IDLimit: 64,
		Wire:    wire(),
		Stops: func(t testing.TB, body []byte) []string {
			var r struct {
				GenerationConfig struct{ StopSequences []string }
			}
			if err := json.Unmarshal(body, &r); err != nil {
				t.Fatal(err)
			}
			return r.GenerationConfig.StopSequences
		},
		MaxStops: 5,
		Tiers: &modeltest.Tiers{Usual: "standard", Half: "flex", Served: func(fixture []byte, word string) []byte {
			return bytes.ReplaceAll(fixture, []byte(`"totalTokenCount":27`), []byte(`"totalTokenCount":27,"serviceTier":"`+word+`"`))
		}},
	}
}

type request struct{ Contents []json.RawMessage }

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
	modeltest.OldReasoning(t, signature, `"THINK%d","thought":true`, func(t *testing.T, history []message.Message) string {
		return body(t, &model.Request{Model: "gemini-3.5-flash", MaxTokens: 9, Messages: session.DropReasoning(history, 300_000, nil)})
	})
}

// What agentd sends follows from its configuration and from nothing else.
func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_API_KEY", "from-the-environment")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
	seen := make(chan *http.Request, 1)
	p, err := New(Config{BaseURL: "http://provider.invalid/", Headers: map[string]string{"X-Mine": "1"}, Options: &Options{Client: &http.Client{Transport: spy(seen)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Generate(context.Background(), &model.Request{Model: "tunedModels/a b", Messages: []message.Message{message.User("hi")}}, nil)
	r := <-seen
	if r.Header.Get("X-Goog-Api-Key") != "" || r.Header.Get("X-Mine") != "1" || r.URL.String() != "http://provider.invalid/v1beta/tunedModels/a%20b:streamGenerateContent?alt=sse" {
		t.Errorf("%s, headers %v", r.URL, r.Header)
	}
}

type spy chan *http.Request

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	s <- r
	return &http.Response{StatusCode: 500, Body: http.NoBody, Header: http.Header{}}, nil
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"generativelanguage.googleapis.com", "ftp://x", "http://user:hunter2@host"} {
		if _, err := New(Config{BaseURL: bad}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	p, err := New(Config{Provider: "vertex"})
	if err != nil || p.String() != "gemini adapter (vertex)" || !strings.HasPrefix(p.address("m"), "https://generativelanguage.googleapis.com/v1beta/models/m:") {
		t.Errorf("%v, %v", p, err)
	}
}
