package llmwire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentd/model"
)

// ClassOf classes an error response by its status and, where providers use one
// status for several things, by the words of its message. status 0 means the
// error came in a stream.
func ClassOf(status int, text string) model.Class {
	text = strings.ToLower(text)
	switch status {
	case http.StatusUnauthorized:
		return model.ClassAuth
	case http.StatusPaymentRequired:
		return model.ClassQuota
	}
	client := status == 0 || status >= 400 && status < 500
	if client {
		switch {
		case quota(text):
			return model.ClassQuota
		case overflow(text):
			return model.ClassOverflow
		}
	}
	switch status {
	case http.StatusForbidden:
		return model.ClassAuth
	case http.StatusNotFound:
		return model.ClassNotFound
	case http.StatusRequestTimeout:
		return model.ClassTimeout
	case http.StatusConflict:
		return model.ClassServer
	case http.StatusRequestEntityTooLarge:
		return model.ClassOverflow
	case http.StatusTooManyRequests:
		return model.ClassRateLimited
	case http.StatusServiceUnavailable, 529:
		return model.ClassOverloaded
	}
	switch {
	case throttled(text):
		return model.ClassRateLimited
	case strings.Contains(text, "overloaded"):
		return model.ClassOverloaded
	case client && status != 0:
		return model.ClassInvalid
	case status >= 300 && status < 400:
		return model.ClassInvalid
	}
	return model.ClassServer
}

// quota reports that money or a plan's allowance is used up: waiting a few
// seconds does not help.
func quota(text string) bool {
	if containsAny(text,
		"insufficient_quota", "exceeded your current quota", "insufficient credit", "insufficient balance",
		"credit balance is too low", "monthly usage limit", "available balance", "out of budget", "billing",
		"spending limit", "spend limit", "account limit", "subscription limit", "requires more credits",
	) {
		return true
	}
	// "Quota exceeded" is also how some say "per minute"; then they say when
	// to come back.
	return strings.Contains(text, "quota exceeded") && TextDelay(text) == 0 && !strings.Contains(text, "per minute")
}

// overflow reports that the prompt does not fit the model's window. The
// phrases are those of Anthropic, OpenAI, Groq, Bedrock, Gemini, xAI, Mistral,
// Together, OpenRouter, Poolside, Copilot, MiniMax, Kimi, DashScope, z.ai, DS4,
// vLLM, llama.cpp, LM Studio and Ollama.
func overflow(text string) bool {
	if strings.Contains(text, "request too large for") { // Groq and OpenAI: one request above a minute's tokens
		return true
	}
	if throttled(text) {
		return false
	}
	return containsAny(text,
		"prompt is too long", "prompt too long", "request_too_large", "input is too long", "input too long",
		"context_length_exceeded", "model_context_window_exceeded", "context window exceeds", "context length exceeded",
		"exceeds the context window", "exceed the context window", "exceed context window", "exceeds the model's context", "exceed context limit",
		"exceeds the maximum number of tokens", "maximum context length", "model's context length", "maximum prompt length",
		"maximum model length", "reduce the length of", "context size has been exceeded", "exceeds the available context size",
		"greater than the context length", "exceeds the context length", "context limit exceeded", "exceeded model token limit",
		"range of input length should be", "token limit exceeded", "too many tokens",
		"maximum allowed input length", "but the configured context size is",
	) ||
		strings.Contains(text, "prompt token count") && strings.Contains(text, "exceeds the limit") ||
		strings.Contains(text, "input token count") && strings.Contains(text, "exceeds") ||
		strings.Contains(text, "max_new_tokens") && strings.Contains(text, "must be <=")
}

// throttled reports a limit of requests or tokens per time. Bedrock's "Too many
// tokens, please wait" is one, and not an overflow.
func throttled(text string) bool {
	return containsAny(text,
		"rate limit", "rate_limit", "ratelimit", "throttl", "too many requests", "please wait before trying again",
		"tokens per min", "tokens per day", "requests per min", "resource_exhausted", "resourceexhausted",
	)
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// maxDelay bounds what a server may ask for; longer answers are cut to it, so
// that arithmetic with them stays sound.
const maxDelay = 30 * 24 * time.Hour

// RetryAfter is how long the provider asked to wait: retry-after-ms, Retry-After
// (seconds or a date), a rate limit's reset, or words in the message, in that
// order. 0 if it did not say. Who sends milliseconds sends whole seconds too,
// rounded up for those who know nothing else.
func RetryAfter(h http.Header, text string, now time.Time) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	if v := h.Get("Retry-After"); v != "" {
		if d, ok := number(v, time.Second); ok {
			return d
		}
		if at, err := http.ParseTime(v); err == nil {
			return bounded(at.Sub(now))
		}
	}
	if d := reset(h.Get("X-Ratelimit-Reset"), now); d > 0 {
		return d
	}
	var longest time.Duration
	for _, what := range []string{"Requests", "Tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+what) == "0" {
			longest = max(longest, reset(h.Get("X-Ratelimit-Reset-"+what), now))
		}
		if h.Get("Anthropic-Ratelimit-"+what+"-Remaining") == "0" {
			longest = max(longest, reset(h.Get("Anthropic-Ratelimit-"+what+"-Reset"), now))
		}
	}
	if longest > 0 {
		return longest
	}
	return TextDelay(text)
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxDelay) }

func number(v string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(f >= 0) {
		return 0, false
	}
	if f > float64(maxDelay/unit) {
		return maxDelay, true
	}
	return time.Duration(f * float64(unit)), true
}

// reset reads the end of a rate limit window: seconds from now, a Unix time in
// seconds or milliseconds, a duration such as 6m0s, or a date.
func reset(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case f > 1e14 || !(f > 0):
			return 0
		case f > 1e11:
			return bounded(time.UnixMilli(int64(f)).Sub(now))
		case f > 1e8:
			return bounded(time.Unix(int64(f), 0).Sub(now))
		}
		d, _ := number(v, time.Second)
		return d
	}
	if d, err := time.ParseDuration(v); err == nil {
		return bounded(d)
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return bounded(at.Sub(now))
	}
	if at, err := http.ParseTime(v); err == nil {
		return bounded(at.Sub(now))
	}
	return 0
}

// TextDelay finds how long a message asks to wait ("try again in 1.5s", "retry
// after 20 seconds", "retryDelay": "7s"); 0 if it does not.
func TextDelay(text string) time.Duration {
	text = strings.ToLower(text)
	for _, lead := range []string{"try again in ", "retry in ", "retry after ", "try again after ", "retrydelay"} {
		at := strings.Index(text, lead)
		if at < 0 {
			continue
		}
		if d := amounts(strings.TrimLeft(text[at+len(lead):], `": '`)); d > 0 {
			return d
		}
	}
	return 0
}

// amounts reads "1h2m3.5s", "20 seconds", "300ms" at the start of s.
func amounts(s string) time.Duration {
	var sum time.Duration
	for {
		s = strings.TrimLeft(s, " ")
		n := 0
		for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.') {
			n++
		}
		v, err := strconv.ParseFloat(strings.TrimRight(s[:n], "."), 64)
		if err != nil {
			return bounded(sum)
		}
		s = strings.TrimLeft(s[n:], " ")
		n = 0
		for n < len(s) && s[n] >= 'a' && s[n] <= 'z' {
			n++
		}
		unit := map[string]time.Duration{
			"ms": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
			"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
			"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
			"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
		}[s[:n]]
		if unit == 0 || v > float64(maxDelay/unit) {
			return bounded(sum)
		}
		sum += time.Duration(v * float64(unit))
		s = s[n:]
	}
}
