package openai

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"agentd/internal/sse"
	"agentd/message"
	"agentd/model"
)

// play answers with a fixture.
func play(t testing.TB, name string) (*message.Message, error) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".sse")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Protocol: Chat, Options: &Options{Client: &http.Client{Transport: canned(b)}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Generate(t.Context(), &model.Request{Model: "gpt-5", Messages: []message.Message{message.User("hi")}}, nil)
}

type canned string

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: readCloser{strings.NewReader(string(c))}}, nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// The dialects of servers that speak the API in their own way.
func TestServers(t *testing.T) {
	call := func(id, name, arguments string) message.Block {
		return message.Call(id, name, json.RawMessage(arguments))
	}
	three := []message.Block{call("call_1", "read", `{"path":"a"}`), call("call_2", "read", `{"path":"b"}`), call("call_3", "now", `{}`)}
	ok := []message.Block{message.Text("ok")}
	counted := message.Usage{Input: 12, CacheRead: 8, Output: 7, Reasoning: 3, TotalTokens: 27}
	for _, tt := range []struct {
		name    string
		content []message.Block
		stop    message.StopReason
		usage   message.Usage
	}{
		{"server_same_index", three, message.StopToolUse, counted},
		{"server_no_index", three, message.StopToolUse, counted},
		{"server_late_name", three[:1], message.StopToolUse, counted},
		{"server_no_id", []message.Block{call("call_chatcmpl-1_0", "read", `{"path":"a"}`)}, message.StopToolUse, counted},
		{"server_two_names_for_thinking", []message.Block{{Type: message.BlockThinking, Text: "Six times", Signature: "reasoning"}, message.Text("42")}, message.StopEnd, counted},
		{"server_no_usage", ok, message.StopEnd, message.Usage{}},
		{"server_cache_write", ok, message.StopEnd, message.Usage{Input: 20, CacheRead: 30, CacheWrite: 50, Output: 5, TotalTokens: 105}},
		{"server_deepseek_usage", ok, message.StopEnd, message.Usage{Input: 36, CacheRead: 64, Output: 5, TotalTokens: 105}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := play(t, tt.name)
			if err != nil {
				t.Fatal(err)
			}
			m.Usage.Cost = message.Cost{}
			if !reflect.DeepEqual(m.Content, tt.content) || m.StopReason != tt.stop || *m.Usage != tt.usage {
				t.Errorf("%+v, usage %+v", m, m.Usage)
			}
		})
	}
}

// A call that failed after it was counted has to be paid, too.
func TestUsageOfFailures(t *testing.T) {
	_, err := play(t, "broken_filter")
	e := model.AsError(t.Context(), "", "", err)
	if e.Usage == nil || e.Usage.Output != 7 || e.Usage.Cost.Total <= 0 {
		t.Errorf("usage %+v", e.Usage)
	}
	// The provider counts at the end. What came before a cut is estimated.
	_, err = play(t, "broken_done")
	if e := model.AsError(t.Context(), "", "", err); e.Usage == nil || !e.Usage.Estimated || e.Usage.Input < 1 || e.Usage.Input > 12 || e.Usage.Output != 1 || e.Usage.TotalTokens != e.Usage.Input+1 || e.Usage.Cost.Total <= 0 {
		t.Errorf("usage of half a reply: %+v", e.Usage)
	}
	_, err = play(t, "broken_nothing")
	if e := model.AsError(t.Context(), "", "", err); e.Usage != nil {
		t.Errorf("usage out of nothing: %+v", e.Usage)
	}
}

// endless repeats text chunks without end.
type endless struct {
	chunk []byte
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m := copy(p[n:], e.chunk[e.at:])
		e.at = (e.at + m) % len(e.chunk)
		n += m
	}
	return n, nil
}

// BenchmarkChunk is one streamed piece of text, from the bytes of the
// connection to the event.
func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	b.Run("library", func(b *testing.B) { benchmarkChunk(b, chunk, func(model.StreamEvent) {}) })
	b.Run("escaped", func(b *testing.B) {
		benchmarkChunk(b, []byte(strings.Replace(string(chunk), " token", `\n\"\u00e9\"`, 1)), func(model.StreamEvent) {})
	})
}

func benchmarkChunk(b *testing.B, chunk []byte, emit func(model.StreamEvent)) {
	events := sse.NewReader(&endless{chunk: chunk}, nil)
	d := newDecoder(emit, nil)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%2000 == 0 { // the length of a long answer
			d = newDecoder(emit, nil)
		}
		e, err := events.Next()
		if err != nil {
			b.Fatal(err)
		}
		if _, failed := d.Chunk(e.Data); failed != nil {
			b.Fatal(failed)
		}
	}
}
