package gemini

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

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
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(b)}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Generate(t.Context(), &model.Request{Model: "gemini-3.5-flash", Messages: []message.Message{message.User("hi")}}, nil)
}

type canned string

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

// Signatures stay with what they came with.
func TestReplies(t *testing.T) {
	call := func(id, arguments, sig string) message.Block {
		c := message.Call(id, "read", json.RawMessage(arguments))
		c.Signature = sig
		return c
	}
	for name, want := range map[string][]message.Block{
		"signed_text":    {{Type: message.BlockText, Text: "Done.", Signature: signature}},
		"signed_nothing": {{Type: message.BlockText, Signature: signature}},
		"signed_calls":   {{Type: message.BlockThinking, Text: "Hm."}, call("c1", `{"path":"a"}`, signature), call("c2", `{"path":"b"}`, "")},
		"no_ids":         {call("call_resp-1_0", `{"path":"a"}`, ""), call("call_resp-1_1", `{"path":"b"}`, "")},
		"continuation":   {message.Text("Once")},
	} {
		m, err := play(t, name)
		if err != nil || !reflect.DeepEqual(m.Content, want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if name == "continuation" && m.StopReason != message.StopLength {
			t.Errorf("a reply that would go on ended with %s", m.StopReason)
		}
	}
}

// A call that failed after it was counted has to be paid, too.
func TestUsageOfFailures(t *testing.T) {
	for name, output := range map[string]int64{"broken_safety": 7, "broken_blocked": 0} {
		_, err := play(t, name)
		e := model.AsError(t.Context(), "", "", err)
		if e.Usage == nil || e.Usage.Prompt() != 20 || e.Usage.Output != output || e.Usage.Estimated || e.Usage.Cost.Total <= 0 {
			t.Errorf("%s: usage %+v", name, e.Usage)
		}
	}
	_, err := play(t, "broken_safety")
	if e := model.AsError(t.Context(), "", "", err); e.Code != "SAFETY" || e.Message != "because" {
		t.Errorf("%+v", e)
	}
	_, err = play(t, "broken_nothing")
	if e := model.AsError(t.Context(), "", "", err); e.Usage != nil {
		t.Errorf("usage out of nothing: %+v", e.Usage)
	}
}

// A tool whose name Gemini does not take has another one there, and only there.
func TestNamesComeBack(t *testing.T) {
	stream := `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"_3d","args":{}}},{"functionCall":{"name":"_f","args":{}}}]},"finishReason":"STOP"}],"responseId":"r"}` + "\n\n"
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(stream)}}})
	if err != nil {
		t.Fatal(err)
	}
	started := ""
	m, err := p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}, Tools: []model.ToolSpec{{Name: "3d"}, {Name: "_f"}}}, func(e model.StreamEvent) {
		if e.Type == model.StreamToolStart {
			started += e.ToolCall.Name + " "
		}
	})
	if err != nil || len(m.Content) != 2 || m.Content[0].Name != "3d" || m.Content[1].Name != "_f" || started != "3d _f " {
		t.Errorf("%+v, %v; started %s", m, err, started)
	}
}

// What came before a cut is paid for, though the service counts it at the end; and what it
// counted once it has counted.
func TestUsageOfHalfAReply(t *testing.T) {
	ask := func(stream string) (*message.Message, *model.Error) {
		p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(stream)}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Generate(t.Context(), &model.Request{Model: "gemini-3.5-flash", Messages: []message.Message{message.User("hi")}}, nil)
		if err != nil {
			return nil, model.AsError(t.Context(), "", "", err)
		}
		return m, nil
	}
	const piece = `data: {"candidates":[{"content":{"parts":[{"text":"Forty bytes of text, which are ten tokens"}]}%s}],"usageMetadata":%s,"responseId":"r"}` + "\n\n"
	_, failed := ask(fmt.Sprintf(piece, "", `{"promptTokenCount":20,"totalTokenCount":20}`))
	if failed == nil || failed.Class != model.ClassTruncated || failed.Usage == nil || failed.Usage.Input != 20 || failed.Usage.Output < 9 || failed.Usage.Output > 11 || failed.Usage.TotalTokens != 20+failed.Usage.Output || !failed.Usage.Estimated || failed.Usage.Cost.Output <= 0 {
		t.Errorf("cut: %+v", failed)
	}
	_, failed = ask(fmt.Sprintf(piece, "", `{"promptTokenCount":20,"candidatesTokenCount":12,"totalTokenCount":32}`))
	if failed == nil || failed.Usage == nil || failed.Usage.Output != 12 || failed.Usage.Estimated {
		t.Errorf("cut, and counted: %+v", failed)
	}
	m, failed := ask(fmt.Sprintf(piece, "", `{"promptTokenCount":20,"cachedContentTokenCount":5,"candidatesTokenCount":12,"thoughtsTokenCount":3}`) + fmt.Sprintf(piece, `,"finishReason":"STOP"`, `{"promptTokenCount":20}`))
	if failed != nil || m.Usage.Input != 15 || m.Usage.CacheRead != 5 || m.Usage.Output != 15 || m.Usage.Reasoning != 3 || m.Usage.TotalTokens != 35 {
		t.Errorf("counted once: %+v, %v", m, failed)
	}
}

// Who follows a stream knows a call by its id from its start on.
func TestCallsBeginWithTheirID(t *testing.T) {
	stream := `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}],"responseId":"r"}` + "\n\n"
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(stream)}}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	m, err := p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, func(e model.StreamEvent) {
		if e.ToolCall != nil && (len(ids) == 0 || ids[len(ids)-1] != e.ToolCall.ID) {
			ids = append(ids, e.ToolCall.ID)
		}
	})
	if err != nil || len(ids) != 2 || ids[0] == "" || ids[0] != m.Content[0].ID || ids[1] != m.Content[1].ID {
		t.Errorf("%q of %+v, %v", ids, m, err)
	}
}
