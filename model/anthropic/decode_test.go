package anthropic

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"agentd/internal/sse"
	"agentd/message"
	"agentd/model"
)

// play answers with a fixture, or with the text of a stream.
func play(t testing.TB, fixture string) (*message.Message, error) {
	t.Helper()
	if !strings.Contains(fixture, "\n") {
		b, err := os.ReadFile("testdata/" + fixture + ".sse")
		if err != nil {
			t.Fatal(err)
		}
		fixture = string(b)
	}
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(fixture)}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Generate(t.Context(), &model.Request{Model: "claude-sonnet-4-5", Messages: []message.Message{message.User("hi")}}, nil)
}

type canned string

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		content []message.Block
		stop    message.StopReason
	}{
		{"redacted", []message.Block{
			{Type: message.BlockThinking, Redacted: true, Signature: "EmwKAhgBEgy3va3p=="},
			{Type: message.BlockThinking, Signature: "EqQBCkgIBRABGAIiQL+x/3kY9w=="},
			message.Text("ok"),
		}, message.StopEnd},
		{"server_whole_input", []message.Block{message.Call("call_1", "read", json.RawMessage(`{"path":"a"}`))}, message.StopToolUse},
		{"server_window", []message.Block{message.Text("Once")}, message.StopLength},
	} {
		m, err := play(t, tt.name)
		if err != nil || !reflect.DeepEqual(m.Content, tt.content) || m.StopReason != tt.stop {
			t.Errorf("%s: %+v, %v", tt.name, m, err)
		}
	}
}

func TestRefusalSaysWhy(t *testing.T) {
	_, err := play(t, "broken_refusal")
	e := model.AsError(t.Context(), "", "", err)
	if e.Message != "This request was declined." || e.Code != "refusal" {
		t.Errorf("%v", err)
	}
	if e.Usage == nil || e.Usage.Output != 7 || e.Usage.Cost.Total <= 0 {
		t.Errorf("what was counted is lost: %+v", e.Usage)
	}
}

// What is written to the cache for an hour costs more.
func TestHourCache(t *testing.T) {
	const whole = `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":0,"cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_5m_input_tokens":400000,"ephemeral_1h_input_tokens":600000}}}}` +
		"\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0,"cache_creation_input_tokens":null}}` +
		"\n\n" + `data: {"type":"message_stop"}` + "\n\n"
	m, err := play(t, whole)
	if err != nil || m.Usage.CacheWrite != 1_000_000 || m.Usage.Cost.CacheWrite.String() != "5.1" {
		t.Errorf("%+v, %v", m, err)
	}
}

type endless struct {
	chunk string
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
	chunk := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}}\n\n"
	events := sse.NewReader(&endless{chunk: chunk}, nil)
	emit := func(model.StreamEvent) {}
	var d *decoder
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n%2000 == 0 { // the length of a long answer
			d = newDecoder(emit)
			d.start(0, []byte(`{"type":"text","text":""}`))
		}
		n++
		e, err := events.Next()
		if err != nil {
			b.Fatal(err)
		}
		if _, failed := d.Chunk(e.Data); failed != nil {
			b.Fatal(failed)
		}
	}
}

// What came before a stream was cut is paid for: the provider counts it at the end.
func TestUsageOfHalfAReply(t *testing.T) {
	const began = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":20,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}

`
	for text, want := range map[string]message.Usage{
		"Hi": {Input: 20, Output: 1, TotalTokens: 21},
		"Forty bytes of text, which are ten tokens": {Input: 20, Output: 10, TotalTokens: 30, Estimated: true},
	} {
		_, err := play(t, strings.Replace(began, "%s", text, 1))
		e := model.AsError(t.Context(), "", "", err)
		if e.Usage == nil || e.Usage.Cost.Total <= 0 {
			t.Fatalf("%q: %v, usage %+v", text, err, e.Usage)
		}
		e.Usage.Cost = message.Cost{}
		if *e.Usage != want {
			t.Errorf("%q: usage %+v, want %+v", text, *e.Usage, want)
		}
	}
}
