package sim

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"agentd/model/script"
)

const (
	oaiBody = `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	antBody = `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"x"}]}`
)

func streamed(body string) string { return strings.TrimSuffix(body, "}") + `,"stream":true}` }

// get sends a request to a running server and reads the answer to its end.
func get(t *testing.T, url, path, body string, headers ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

// Every fault, on both protocols, streamed and not, over a real connection.
func TestFaults(t *testing.T) {
	type want struct {
		status int
		has    string // in the body
		not    string // not in the body
		broken bool   // reading the body fails
	}
	httpErr := func(status int, has string) [2]want {
		return [2]want{{status: status, has: has}, {status: status, has: has}}
	}
	tests := []struct {
		fault         string
		oai, ant      [2]want // not streamed, streamed
		retry, retry2 string  // Retry-After, retry-after-ms
	}{
		{"rate_limited, retry_after=2s", httpErr(429, `"code":"rate_limit_exceeded"`), httpErr(429, `"type":"rate_limit_error"`), "2", ""},
		{"rate_limited, retry_after=1500ms", httpErr(429, `"type":"requests"`), httpErr(429, `"type":"error"`), "2", "1500"},
		{"overloaded", httpErr(503, `"type":"server_error"`), httpErr(529, `"message":"Overloaded"`), "", ""},
		{"overloaded, status=502, message=no upstream", httpErr(502, `"message":"no upstream"`), httpErr(502, `"message":"no upstream"`), "", ""},
		{"server", httpErr(500, `"type":"server_error"`), httpErr(500, `"type":"api_error"`), "", ""},
		{"overflow", httpErr(400, `"code":"context_length_exceeded"`), httpErr(400, `prompt is too long: 200001 tokens > 200000 maximum`), "", ""},
		{"auth", httpErr(401, `"code":"invalid_api_key"`), httpErr(401, `"type":"authentication_error"`), "", ""},
		{"quota", httpErr(429, `"code":"insufficient_quota"`), httpErr(400, `credit balance is too low`), "", ""},
		{"overloaded, after=2",
			[2]want{{status: 503, has: "overloaded"}, {status: 200, has: `data: {"error":{"message":"The engine is currently overloaded`, not: "[DONE]"}},
			[2]want{{status: 529, has: "Overloaded"}, {status: 200, has: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"", not: "message_stop"}}, "", ""},
		{"refused, after=1",
			[2]want{{status: 200, has: `"finish_reason":"content_filter"`, not: "abcd"}, {status: 200, has: `"finish_reason":"content_filter"}]}` + "\n\ndata: [DONE]"}},
			[2]want{{status: 200, has: `"content":[],"stop_reason":"refusal"`}, {status: 200, has: `"stop_reason":"refusal"`}}, "", ""},
		{"cut, after=2",
			[2]want{{status: 200, broken: true}, {status: 200, has: `"content":"cd"`, not: `"ef"`, broken: true}},
			[2]want{{status: 200, broken: true}, {status: 200, has: `"text":"cd"`, not: `"ef"`, broken: true}}, "", ""},
		{"truncated, after=99",
			[2]want{{status: 200, not: `"service_tier"`}, {status: 200, has: `"content":"ef"`, not: `"finish_reason":"`}},
			[2]want{{status: 200, not: `"service_tier"`}, {status: 200, has: "content_block_stop", not: "message_delta"}}, "", ""},
		{"malformed",
			[2]want{{status: 200, has: "<html>"}, {status: 200, has: "half a chu\n\n", not: "[DONE]"}},
			[2]want{{status: 200, has: "<html>"}, {status: 200, has: "text_del\n\n", not: "message_stop"}}, "", ""},
		{"stall, for=1ms, after=1",
			[2]want{{status: 200, has: "abcdef"}, {status: 200, has: "[DONE]"}},
			[2]want{{status: 200, has: "abcdef"}, {status: 200, has: "message_stop"}}, "", ""},
		{"slow_first_byte, for=1ms",
			[2]want{{status: 200, has: "abcdef"}, {status: 200, has: "[DONE]"}},
			[2]want{{status: 200, has: "abcdef"}, {status: 200, has: "message_stop"}}, "", ""},
	}
	srv := httptest.NewServer(New(Options{Scripts: []*script.Script{mustScript(t, "latency: {size: 2}\nturns: [{text: abcdef}]")}}))
	defer srv.Close()
	check := func(t *testing.T, path, body, fault string, w want, retry, retry2 string) {
		res, got, err := get(t, srv.URL, path, body, "X-Sim-Fault", fault)
		if res.StatusCode != w.status || (err != nil) != w.broken || !strings.Contains(got, w.has) || w.not != "" && strings.Contains(got, w.not) {
			t.Errorf("%s: %d, error %v\n%s", path, res.StatusCode, err, got)
		}
		if res.Header.Get("Retry-After") != retry || res.Header.Get("Retry-After-Ms") != retry2 {
			t.Errorf("%s: Retry-After %q and %q", path, res.Header.Get("Retry-After"), res.Header.Get("Retry-After-Ms"))
		}
		if res.Header.Get("X-Request-Id")+res.Header.Get("Request-Id") == "" {
			t.Errorf("%s: no request id", path)
		}
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			check(t, "/v1/chat/completions", oaiBody, tt.fault, tt.oai[0], tt.retry, tt.retry2)
			check(t, "/v1/chat/completions", streamed(oaiBody), tt.fault, tt.oai[1], tt.retry, tt.retry2)
			check(t, "/v1/messages", antBody, tt.fault, tt.ant[0], tt.retry, tt.retry2)
			check(t, "/v1/messages", streamed(antBody), tt.fault, tt.ant[1], tt.retry, tt.retry2)
		})
	}
	t.Run("query", func(t *testing.T) {
		if res, body, _ := get(t, srv.URL, "/v1/messages?sim_fault=auth", antBody); res.StatusCode != 401 {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		res, body, _ := get(t, srv.URL, "/v1/messages", antBody, "X-Sim-Fault", "explode")
		if res.StatusCode != 400 || !strings.Contains(body, "unknown fault") || !strings.Contains(body, "rate_limited") {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
	})
}

// The fault of a script comes as often as it says, and each conversation counts
// for itself.
func TestFaultTimes(t *testing.T) {
	s := New(Options{Scripts: []*script.Script{mustScript(t, "turns: [{text: ok, fault: {kind: server, times: 1}}]")}})
	other := strings.Replace(oaiBody, `"x"`, `"y"`, 1)
	for i, want := range []struct {
		body   string
		status int
	}{{oaiBody, 500}, {oaiBody, 200}, {other, 500}, {oaiBody, 200}, {other, 200}} {
		if w := post(s, "/v1/chat/completions", want.body); w.Code != want.status {
			t.Errorf("request %d: %d, want %d", i, w.Code, want.status)
		}
	}
	s.Reset()
	if w := post(s, "/v1/chat/completions", oaiBody); w.Code != 500 {
		t.Errorf("after reset: %d", w.Code)
	}
}

// A stall ends with its request, and so does everything else that waits.
func TestStallEndsWithTheRequest(t *testing.T) {
	for _, fault := range []string{"stall", "slow_first_byte, for=1h"} {
		for _, body := range []string{oaiBody, streamed(oaiBody)} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)).WithContext(ctx)
				r.Header.Set("X-Sim-Fault", fault)
				start := time.Now()
				w := httptest.NewRecorder()
				New(Options{}).ServeHTTP(w, r)
				if took := time.Since(start); took != time.Minute || strings.Contains(w.Body.String(), `"finish_reason":"`) {
					t.Errorf("%s: ended after %v with %s", fault, took, w.Body)
				}
			})
		}
	}
}

// A whole reply takes as long as the streamed one.
func TestLatency(t *testing.T) {
	sc := mustScript(t, "turns: [{text: abcdef, latency: {first: 1s, chunk: 100ms, size: 2}}]")
	for _, body := range []string{oaiBody, streamed(oaiBody)} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			w := post(New(Options{Scripts: []*script.Script{sc}}), "/v1/chat/completions", body)
			if took := time.Since(start); took != 1200*time.Millisecond || w.Code != 200 {
				t.Errorf("%d after %v", w.Code, took)
			}
		})
	}
}

// A script at fault is told to the client, and not retried by it.
func TestScriptAtFault(t *testing.T) {
	s := New(Options{Scripts: []*script.Script{mustScript(t, "turns: [{text: '{{index .Results 4}}'}]")}})
	w := post(s, "/v1/chat/completions", oaiBody)
	if w.Code != 400 || !strings.Contains(gjson.Get(w.Body.String(), "error.message").String(), "test.yaml:1: turns[0].text") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
