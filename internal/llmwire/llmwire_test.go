package llmwire

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"agentd/model"
)

func TestClassOf(t *testing.T) {
	overflows := []string{
		"prompt is too long: 200001 tokens > 200000 maximum",
		"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
		"Please reduce the length of the messages or completion.",
		"prompt token count of 150000 exceeds the limit of 128000",
		"the request exceeds the available context size. try increasing the context size",
		"tokens to keep from the initial prompt is greater than the context length",
		"invalid params, context window exceeds limit (2013)",
		"Your request exceeded model token limit: 262144",
		"Input is too long for requested model.",
		"`inputs` tokens + `max_new_tokens` must be <= 8193",
		"Range of input length should be [1, 30720]",
		"prompt too long; exceeded max context length by 100 tokens",
		"context_length_exceeded", "token limit exceeded", "Too many tokens in the prompt",
		"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
		"Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens",
		"Requested tokens (5120) exceed context window of 4096",
		"Input (265330 tokens) is longer than the model's context length (262144 tokens).",
		"Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
		"litellm.ContextWindowExceededError: this model's maximum context length is 1",
		"Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 40000",
	}
	for _, text := range overflows {
		for _, status := range []int{400, 413, 0} {
			if c := ClassOf(status, text); c != model.ClassOverflow {
				t.Errorf("%d %q: %s", status, text, c)
			}
		}
	}
	for _, tt := range []struct {
		status int
		text   string
		want   model.Class
	}{
		{400, "ThrottlingException: Too many tokens, please wait before trying again.", model.ClassRateLimited},
		{0, "Rate limit exceeded: too many tokens per minute", model.ClassRateLimited},
		{429, "", model.ClassRateLimited},
		{429, "You exceeded your current quota, please check your plan and billing details", model.ClassQuota},
		{429, "Quota exceeded for quota metric 'Requests' and limit 'per minute'", model.ClassRateLimited},
		{429, "Quota exceeded. Please retry in 12s", model.ClassRateLimited},
		{429, "Quota exceeded for this account", model.ClassQuota},
		{500, "billing service unavailable", model.ClassServer},
		{500, "maximum context length", model.ClassServer}, // a fault of theirs, whatever it says
		{402, "", model.ClassQuota},
		{401, "maximum context length", model.ClassAuth},
		{403, "", model.ClassAuth},
		{404, "", model.ClassNotFound},
		{409, "", model.ClassServer},
		{422, "bad", model.ClassInvalid},
		{302, "", model.ClassInvalid},
		{529, "", model.ClassOverloaded},
		{0, "the engine is overloaded", model.ClassOverloaded},
		{0, "something broke", model.ClassServer},
	} {
		if c := ClassOf(tt.status, tt.text); c != tt.want {
			t.Errorf("%d %q: %s, want %s", tt.status, tt.text, c, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		header map[string]string
		text   string
		want   time.Duration
	}{
		{"nothing", nil, "", 0},
		{"seconds", map[string]string{"Retry-After": "1.5"}, "", 1500 * time.Millisecond},
		{"zero means now", map[string]string{"Retry-After": "0"}, "try again in 5s", 0},
		{"a date", map[string]string{"Retry-After": "Sat, 21 Nov 2026 12:00:20 GMT"}, "", 20 * time.Second},
		{"a date that has passed", map[string]string{"Retry-After": "Sat, 21 Nov 2026 11:00:00 GMT"}, "", 0},
		{"nonsense", map[string]string{"Retry-After": "soon", "Retry-After-Ms": "40"}, "", 40 * time.Millisecond},
		{"negative", map[string]string{"Retry-After": "-3"}, "", 0},
		{"not a number", map[string]string{"Retry-After": "NaN"}, "", 0},
		{"too far", map[string]string{"Retry-After": "1e300"}, "", maxDelay},
		{"the first counts", map[string]string{"Retry-After": "2", "X-Ratelimit-Reset": "7"}, "retry in 8s", 2 * time.Second},
		{"milliseconds are what seconds were rounded from", map[string]string{"Retry-After": "1", "Retry-After-Ms": "20"}, "", 20 * time.Millisecond},
		{"milliseconds that are none", map[string]string{"Retry-After": "1", "Retry-After-Ms": "soon"}, "", time.Second},
		{"reset in seconds", map[string]string{"X-Ratelimit-Reset": "7"}, "", 7 * time.Second},
		{"reset at a second", map[string]string{"X-Ratelimit-Reset": "1795262410"}, "", 10 * time.Second},
		{"reset at a millisecond", map[string]string{"X-Ratelimit-Reset": "1795262400250"}, "", 250 * time.Millisecond},
		{"reset in words", map[string]string{"X-Ratelimit-Reset": "1m30s"}, "", 90 * time.Second},
		{"reset at a date", map[string]string{"X-Ratelimit-Reset": "2026-11-21T12:00:05Z"}, "", 5 * time.Second},
		{"reset that is nonsense", map[string]string{"X-Ratelimit-Reset": "later"}, "", 0},
		{"only what ran out counts", map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "3s", "X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "9s"}, "", 3 * time.Second},
		{"try again in", nil, "Rate limit reached. Please try again in 6m1.5s. Visit …", 6*time.Minute + 1500*time.Millisecond},
		{"try again in ms", nil, "try again in 120ms", 120 * time.Millisecond},
		{"retry after", nil, "Retry after 20 seconds", 20 * time.Second},
		{"retryDelay", nil, `"details":[{"retryDelay": "7s"}]`, 7 * time.Second},
		{"no unit", nil, "try again in 5", 0},
		{"no number", nil, "try again in a while", 0},
		{"too large a number", nil, "try again in 99999999999999999999h", 0},
	} {
		h := http.Header{}
		for k, v := range tt.header {
			h.Set(k, v)
		}
		if got := RetryAfter(h, tt.text, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func FuzzTextDelay(f *testing.F) {
	f.Add("try again in 1h2m3.5s")
	f.Add("retry in 9e9s")
	f.Fuzz(func(t *testing.T, s string) {
		if d := TextDelay(s); d < 0 || d > maxDelay {
			t.Fatalf("%q: %v", s, d)
		}
		for _, v := range []time.Duration{reset(s, time.Unix(0, 0)), RetryAfter(http.Header{"Retry-After": {s}}, "", time.Unix(0, 0))} {
			if v < 0 || v > maxDelay {
				t.Fatalf("%q: %v", s, v)
			}
		}
	})
}

func TestScan(t *testing.T) {
	const doc = ` { "a" : 1 , "b\"c" : "x\\" , "d":{"e":[1,"]}",{}]},"f":null, "g":[ ] ,"h":-1.5e3 } `
	var got []string
	for c := Object([]byte(doc)); ; {
		k, v, ok := c.Member()
		if !ok {
			break
		}
		got = append(got, string(k)+"="+string(v))
	}
	want := `a=1|b\"c="x\\"|d={"e":[1,"]}",{}]}|f=null|g=[ ]|h=-1.5e3`
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if string(Get([]byte(doc), "h")) != "-1.5e3" || Get([]byte(doc), "z") != nil || Get([]byte(`[1]`), "a") != nil || Get(nil, "a") != nil {
		t.Error("Get")
	}
	for in, want := range map[string]int64{"7": 7, "1e3": 1000, "12.0": 12, "-4": 0, `"7"`: 0, "null": 0, "": 0, "1e300": 0, "9223372036854775807": math.MaxInt64} {
		if n := Int([]byte(in)); n != want {
			t.Errorf("Int(%s) = %d, want %d", in, n, want)
		}
	}
}

// The scanner and the writer agree with encoding/json about every string.
func FuzzStrings(f *testing.F) {
	for _, s := range []string{"", "a", "é😀", "\x00\x1f\"\\/\n\r\t", "\xed\xa0\x80\xff", "\u2028<>&"} {
		f.Add(s, `"`+`\ud83d\ude00\u00e9\ud83d\\`+`"`)
	}
	f.Fuzz(func(t *testing.T, s, raw string) {
		b := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil || !utf8.Valid(b) {
			t.Fatalf("%q → %s: %v", s, b, err)
		}
		if want := strings.ToValidUTF8(s, ""); back != want {
			t.Fatalf("%q → %q, want %q", s, back, want)
		}
		if String(b) != back {
			t.Fatalf("String(%s) = %q", b, String(b))
		}
		if !json.Valid([]byte(raw)) {
			return
		}
		// Any valid document can be walked to its end without a panic.
		var walk func(v []byte)
		walk = func(v []byte) {
			if !json.Valid(v) {
				t.Fatalf("a part of %q is not JSON: %q", raw, v)
			}
			if got := String(v); !utf8.ValidString(got) {
				t.Fatalf("String(%q) = %q", v, got)
			}
			for c := Object(v); ; {
				_, m, ok := c.Member()
				if !ok {
					break
				}
				walk(m)
			}
			for c := Array(v); ; {
				m, ok := c.Element()
				if !ok {
					break
				}
				walk(m)
			}
		}
		walk([]byte(strings.TrimSpace(raw)))
		var want string
		if json.Unmarshal([]byte(raw), &want) == nil && !strings.Contains(want, "\ufffd") {
			if got := String([]byte(strings.Trim(raw, " \n\r\t"))); got != want {
				t.Fatalf("String(%q) = %q, want %q", raw, got, want)
			}
		}
	})
}

func TestText(t *testing.T) {
	for s, want := range map[string]bool{"": true, " \n\t\u00a0": true, "\xff\xed\xa0\x80 ": true, "x": false, "\u200b": false, "\x00": false} {
		if Blank(s) != want {
			t.Errorf("Blank(%q) = %v", s, !want)
		}
	}
	if Redact("key abc", "abc") != "key [redacted]" || Redact("abc", "") != "abc" {
		t.Error("Redact")
	}
	if s := Clip(strings.Repeat("é", 3000)); len(s) > 2100 || !utf8.ValidString(s) {
		t.Error("Clip")
	}
	if s := string(AppendKey(AppendKey([]byte("{"), "a"), "b")); s != `{"a":,"b":` {
		t.Error(s)
	}
}
