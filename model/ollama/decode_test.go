package ollama

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"agentd/message"
	"agentd/model"
)

// play answers with a fixture.
func play(t testing.TB, name string) (*message.Message, error) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".ndjson")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Options: &Options{Client: &http.Client{Transport: canned(b)}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
}

type canned string

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

func TestReplies(t *testing.T) {
	m, err := play(t, "no_ids")
	if err != nil || len(m.Content) != 2 || m.Content[0].ID == "" || m.Content[0].ID == m.Content[1].ID || m.Content[1].Name != "read" {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = play(t, "whole")
	want := []message.Block{{Type: message.BlockThinking, Text: "Six times seven."}, message.Text("42")}
	if err != nil || !reflect.DeepEqual(m.Content, want) {
		t.Errorf("%+v, %v", m, err)
	}
	// What came before a cut is estimated, as the server counts at the end.
	_, err = play(t, "broken_end")
	if e := model.AsError(t.Context(), "", "", err); e.Usage == nil || !e.Usage.Estimated || e.Usage.Output != 1 {
		t.Errorf("usage of half a reply: %+v", e.Usage)
	}
	_, err = play(t, "broken_nothing")
	if e := model.AsError(t.Context(), "", "", err); e.Usage != nil {
		t.Errorf("usage out of nothing: %+v", e.Usage)
	}
}

// The server is asked what a model can do when it matters, and once.
func TestAbilities(t *testing.T) {
	answer, err := os.ReadFile("testdata/text.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	bodies := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/api/chat" {
			bodies <- string(b)
			_, _ = w.Write(answer)
			return
		}
		if r.URL.Path == "/api/ps" {
			return // TestWindow
		}
		asked.Add(1)
		switch {
		case r.URL.Path != "/api/show" || r.Header.Get("X-Mine") != "1":
			t.Errorf("%s %v", r.URL, r.Header)
		case strings.Contains(string(b), `"blind"`):
			_, _ = io.WriteString(w, `{"capabilities":["completion","tools"],"details":{"family":"llama"},"model_info":{"llama.context_length":8192}}`)
		case strings.Contains(string(b), `"levels"`):
			_, _ = io.WriteString(w, `{"capabilities":["completion","thinking","vision"],"details":{"family":"gptoss"},"model_info":{"gptoss.context_length":131072}}`)
		case strings.Contains(string(b), `"old"`):
			_, _ = io.WriteString(w, `{"details":null}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	p, err := New(Config{BaseURL: srv.URL, Headers: map[string]string{"X-Mine": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	generate := func(id string, level model.ThinkingLevel, content ...message.Block) string {
		t.Helper()
		req := &model.Request{Model: id, Thinking: level, Messages: []message.Message{{Role: message.RoleUser, Content: content}}}
		if _, err := p.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		return <-bodies
	}
	if b := generate("blind", "", message.Text("a")); asked.Load() != 0 || strings.Contains(b, "think") {
		t.Errorf("asked %d times without need: %s", asked.Load(), b)
	}
	image := message.Image("aGk=", "image/png")
	for range 2 {
		if b := generate("blind", model.ThinkingHigh, image); strings.Contains(b, "think") || strings.Contains(b, "aGk=") {
			t.Errorf("a model that can neither: %s", b)
		}
	}
	if b := generate("levels", model.ThinkingHigh, image); !strings.Contains(b, `"think":"high"`) || !strings.Contains(b, "aGk=") {
		t.Errorf("a model that can both: %s", b)
	}
	for _, id := range []string{"old", "unknown"} {
		if b := generate(id, model.ThinkingLow, image); !strings.Contains(b, `"think":true`) || !strings.Contains(b, "aGk=") {
			t.Errorf("%s: %s", id, b)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("asked %d times", n)
	}
	can, err := p.Abilities(t.Context(), "levels")
	if err != nil || can != (Abilities{Thinking: true, Images: true, Levels: true, ContextWindow: 131_072}) {
		t.Errorf("%+v, %v", can, err)
	}
	if got := abilitiesOf(json.RawMessage(`no`)); got != everything() {
		t.Errorf("%+v", got)
	}
	srv.Close()
	if _, err := p.Abilities(t.Context(), "other"); model.AsError(t.Context(), "", "", err).Class != model.ClassConnection {
		t.Errorf("no server: %v", err)
	}
}

// Some versions answer with 500 to a prompt that does not fit. It never will.
func TestOverflowIsNoFaultOfTheServer(t *testing.T) {
	for _, status := range []int{400, 413, 500} {
		for _, text := range []string{"the input length exceeds the context length", "prompt too long; exceeded max context length by 12 tokens"} {
			e := &model.Error{Status: status}
			read(e, []byte(`{"error":"`+text+`"}`))
			if e.Class != model.ClassOverflow {
				t.Errorf("%d %s: %s", status, text, e.Class)
			}
		}
	}
	e := &model.Error{Status: 500}
	if read(e, []byte(`{"error":"something broke"}`)); e.Class != model.ClassServer {
		t.Errorf("%s", e.Class)
	}
}
