package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"

	"agentd/message"
	"agentd/model"
)

// scenario is a fixture and the reply it must become.
type scenario struct {
	name    string
	content []message.Block
	stop    message.StopReason
}

func call(id, name, arguments string) message.Block {
	return message.Call(id, name, json.RawMessage(arguments))
}

func (h *Harness) scenarios() []scenario {
	think := message.Block{Type: message.BlockThinking, Text: "Six times seven.", Signature: h.Signature}
	all := []scenario{
		{"text", []message.Block{message.Text("Hello, wörld! 👋")}, message.StopEnd},
		{"thinking", []message.Block{think, message.Text("42")}, message.StopEnd},
		{"tool", []message.Block{message.Text("I will look."), call("call_1", "read", `{"path": "a.txt"}`)}, message.StopToolUse},
		{"parallel", []message.Block{call("call_1", "read", `{"path":"a"}`), call("call_2", "read", `{"path":"b"}`), call("call_3", "now", `{}`)}, message.StopToolUse},
		{"length", []message.Block{message.Text("Once upon")}, message.StopLength},
		{"noise", []message.Block{message.Text("ok")}, message.StopEnd},
		{"unicode", []message.Block{message.Text("a😀b é\n\t\"\\/ cd")}, message.StopEnd},
		{"repaired", []message.Block{call("call_1", "write", `{"path":"C:\\temp","text":"one\ntwo"}`)}, message.StopToolUse},
		{"empty", []message.Block{}, message.StopEnd},
	}
	for _, s := range all {
		for i := range s.content {
			if b := &s.content[i]; h.Sign != nil && b.Type != message.BlockThinking {
				h.Sign(b)
			}
		}
	}
	return all
}

func scenarios(t *testing.T, h Harness) {
	for _, s := range h.scenarios() {
		t.Run(s.name, func(t *testing.T) {
			f := serve(t, stream(h.fixture(t, s.name)))
			var events recorder
			m, err := h.adapter(t, f).Generate(t.Context(), h.ask(), events.add)
			if err != nil {
				t.Fatal(err)
			}
			h.check(t, s, m)
			events.check(t, m)
			if f.path != h.Path {
				t.Errorf("path %s, want %s", f.path, h.Path)
			}
			// A caller that does not listen gets the same reply.
			again, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
			if err != nil || !reflect.DeepEqual(m, again) {
				t.Errorf("without emit: %+v, %v", again, err)
			}
		})
	}
}

func (h *Harness) check(t *testing.T, s scenario, m *message.Message) {
	t.Helper()
	if !reflect.DeepEqual(m.Content, s.content) {
		t.Errorf("content\n%s\nwant\n%s", dump(m.Content), dump(s.content))
	}
	if m.StopReason != s.stop || m.Role != message.RoleAssistant || m.API != h.API || m.Provider != h.Provider || m.Model != h.Model || m.ResponseID == "" {
		t.Errorf("message %s", dump(m))
	}
	want, ok := h.Usage[s.name]
	if !ok {
		want = h.Usage["text"]
	}
	got := *m.Usage
	got.Cost = message.Cost{}
	if got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	if got.TotalTokens != got.Prompt()+got.Output {
		t.Errorf("total %d is not prompt %d plus output %d", got.TotalTokens, got.Prompt(), got.Output)
	}
	info := model.NewCatalogue().Lookup(h.Provider, h.Model)
	if cost := model.Cost(&info, m.Usage); cost != m.Usage.Cost || cost.Total <= 0 != h.Free {
		t.Errorf("cost %+v, want %+v", m.Usage.Cost, cost)
	}
}

func dump(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

// recorder keeps stream events and checks their grammar.
type recorder struct {
	late    bool // ids and names of calls may come later than their start
	events  []model.StreamEvent
	wrong   []string
	partial []string // the text of the event's block at that moment
}

func (r *recorder) add(e model.StreamEvent) {
	text := ""
	if e.Partial == nil {
		r.wrong = append(r.wrong, string(e.Type)+" without Partial")
	} else if e.Index < len(e.Partial.Content) {
		b := e.Partial.Content[e.Index]
		text = b.Text
		if b.Type == message.BlockToolCall && !json.Valid(b.Arguments) {
			r.wrong = append(r.wrong, "Partial has arguments that are not JSON")
		}
	}
	r.partial = append(r.partial, text)
	e.Partial = nil
	r.events = append(r.events, e)
}

func (r *recorder) check(t *testing.T, m *message.Message) {
	t.Helper()
	for _, w := range r.wrong {
		t.Error(w)
	}
	if len(r.events) == 0 || r.events[0].Type != model.StreamStart {
		t.Fatalf("the first event is not start: %v", r.events)
	}
	kinds := map[message.BlockType][3]model.StreamType{
		message.BlockText:     {model.StreamTextStart, model.StreamTextDelta, model.StreamTextEnd},
		message.BlockThinking: {model.StreamThinkingStart, model.StreamThinkingDelta, model.StreamThinkingEnd},
		message.BlockToolCall: {model.StreamToolStart, model.StreamToolDelta, model.StreamToolEnd},
	}
	opened := 0
	deltas := make([]string, len(m.Content))
	state := make([]int, len(m.Content)) // 0 not begun, 1 open, 2 ended
	for i, e := range r.events[1:] {
		if e.Index < 0 || e.Index >= len(m.Content) {
			t.Fatalf("%s of block %d; there are %d", e.Type, e.Index, len(m.Content))
		}
		b := m.Content[e.Index]
		switch kind := kinds[b.Type]; e.Type {
		case kind[0]:
			if state[e.Index] != 0 || e.Index != opened {
				t.Errorf("%s of block %d out of order", e.Type, e.Index)
			}
			opened++
			state[e.Index] = 1
			if b.Type == message.BlockToolCall && (e.ToolCall == nil || !r.told(e.ToolCall.Name, b.Name) || !r.told(e.ToolCall.ID, b.ID)) {
				t.Errorf("%s without id and name: %+v", e.Type, e.ToolCall)
			}
		case kind[1]:
			if state[e.Index] != 1 || e.Delta == "" {
				t.Errorf("%s %q of block %d in state %d", e.Type, e.Delta, e.Index, state[e.Index])
			}
			deltas[e.Index] += e.Delta
			if b.Type != message.BlockToolCall && r.partial[i+1] != deltas[e.Index] {
				t.Errorf("Partial has %q after deltas %q", r.partial[i+1], deltas[e.Index])
			}
		case kind[2]:
			if state[e.Index] != 1 {
				t.Errorf("%s of block %d in state %d", e.Type, e.Index, state[e.Index])
			}
			state[e.Index] = 2
			if b.Type == message.BlockToolCall {
				if e.ToolCall == nil || !reflect.DeepEqual(*e.ToolCall, b) {
					t.Errorf("%s: %+v, want %+v", e.Type, e.ToolCall, b)
				}
			} else if e.Content != b.Text || deltas[e.Index] != b.Text {
				t.Errorf("%s: content %q, deltas %q, block %q", e.Type, e.Content, deltas[e.Index], b.Text)
			}
		default:
			t.Errorf("%s for a block of type %s", e.Type, b.Type)
		}
	}
	for i, s := range state {
		if s != 2 {
			t.Errorf("block %d is in state %d at the end", i, s)
		}
	}
}

// told reports whether what a call was first said to be is what it is.
func (r *recorder) told(first, last string) bool { return first == last || r.late && first == "" }

// eventStream checks the adapter behind model.Stream, where events are read
// while later ones arrive.
func eventStream(t *testing.T, h Harness) {
	f := serve(t, stream(h.fixture(t, "tool")))
	s := model.Stream(t.Context(), h.adapter(t, f), h.ask())
	text := ""
	var last model.StreamEvent
	for e := range s.Events() {
		if e.Type == model.StreamTextDelta {
			text += e.Delta
			if e.Partial.Content[0].Text != text {
				t.Errorf("Partial %q, deltas %q", e.Partial.Content[0].Text, text)
			}
		}
		last = e
	}
	m, err := s.Result()
	if err != nil || last.Type != model.StreamDone || last.Message != m || text != "I will look." {
		t.Errorf("%v, %v, %q", last, err, text)
	}
}

func brokenStreams(t *testing.T, h Harness) {
	for name, class := range h.Broken {
		t.Run(name, func(t *testing.T) {
			f := serve(t, stream(h.fixture(t, name)))
			m, err := h.adapter(t, f).Generate(t.Context(), h.ask(), nil)
			e := failed(t, m, err, class)
			if e.Message == "" {
				t.Error("no message")
			}
		})
	}
}

// failed checks that a call failed with a class, and names its adapter.
func failed(t testing.TB, m *message.Message, err error, class model.Class) *model.Error {
	t.Helper()
	var e *model.Error
	if m != nil || !errors.As(err, &e) {
		t.Fatalf("%+v, %v; want an error of class %s", m, err, class)
	}
	if e.Class != class {
		t.Errorf("class %s, want %s: %v", e.Class, class, err)
	}
	if e.Provider == "" || e.Model == "" {
		t.Errorf("the error does not say who: %+v", e)
	}
	return e
}

// cuts ends the stream after every byte, politely and by breaking the
// connection. Only a stream that had its terminal marker may be an answer, and
// then it must be the whole one.
func cuts(t *testing.T, h Harness) {
	for _, name := range []string{"tool", "thinking"} {
		whole := h.fixture(t, name)
		complete := h.Complete(whole)
		if complete <= 0 || complete > len(whole) {
			t.Fatalf("the fixture %s has no end", name)
		}
		n, abort := 0, false
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			stream(whole[:n])(w, r)
			if abort {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		p := h.adapter(t, f)
		for n = 0; n <= len(whole); n++ {
			for _, abort = range []bool{false, true} {
				m, err := p.Generate(t.Context(), h.ask(), nil)
				if err == nil {
					if n < complete {
						t.Fatalf("%s cut after %d bytes (abort %v) is an answer: %s", name, n, abort, whole[:n])
					}
					for _, s := range h.scenarios() {
						if s.name == name && !reflect.DeepEqual(m.Content, s.content) {
							t.Fatalf("%s cut after %d bytes is another answer: %s", name, n, dump(m))
						}
					}
					continue
				}
				if n == len(whole) && !abort {
					t.Fatalf("%s uncut: %v", name, err)
				}
				var e *model.Error
				if !errors.As(err, &e) || e.Class != model.ClassTruncated && !(abort && e.Class == model.ClassConnection) {
					t.Fatalf("%s cut after %d bytes (abort %v): %v", name, n, abort, err)
				}
			}
		}
	}
}

// Fuzz feeds arbitrary streams to an adapter: no input may panic or hang, and
// an answer must be sound. Call it from a fuzz target of the adapter.
func Fuzz(f *testing.F, h Harness) {
	for _, s := range h.scenarios() {
		f.Add(h.fixture(f, s.name))
	}
	for name := range h.Broken {
		f.Add(h.fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		events := recorder{late: true}
		p := h.New(t, Server{URL: "http://provider.invalid", Key: key, Idle: -1, Client: &http.Client{Transport: canned(in)}})
		m, err := p.Generate(t.Context(), h.ask(), events.add)
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) || e.Class == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		events.check(t, m)
		for _, b := range m.Content {
			if b.Type == message.BlockToolCall && (!json.Valid(b.Arguments) || !bytes.HasPrefix(b.Arguments, []byte("{")) || b.ID == "") {
				t.Fatalf("tool call %s", dump(b))
			}
		}
	})
}

// canned answers every request with a stream.
type canned []byte

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c))}, nil
}
