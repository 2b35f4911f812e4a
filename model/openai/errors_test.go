package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// letters is an error that never ends, as far as anybody reads it.
type letters struct {
	read int
	t    testing.TB
}

func (l *letters) Read(p []byte) (int, error) {
	const enough = 1 << 20
	if l.read > enough {
		l.t.Error("more than a megabyte of an error was read")
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'x'
	}
	l.read += len(p)
	return len(p), nil
}

func (l *letters) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(l)}, nil
}

// The SDK reads errors to their end, of which there may be none.
func TestEndlessError(t *testing.T) {
	for _, protocol := range []Protocol{Chat, Responses} {
		p, err := New(Config{Protocol: protocol, Options: &Options{Client: &http.Client{Transport: &letters{t: t}}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
		if e := model.AsError(t.Context(), "", "", err); e.Class != model.ClassOverloaded || !strings.HasPrefix(e.Message, "xxx") || len(e.Message) > 4000 {
			t.Errorf("%s, %d characters", e.Class, len(e.Message))
		}
	}
}

// z.ai ends a stream so when the window is full: with nothing said, it is an overflow.
func TestWindowExceededAsAnEnd(t *testing.T) {
	for text, want := range map[string]model.Class{"": model.ClassOverflow, "Half an ans": ""} {
		stream := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n" +
			`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"model_context_window_exceeded"}]}` + "\n\ndata: [DONE]\n\n"
		p, err := New(Config{Protocol: Chat, Options: &Options{Client: &http.Client{Transport: canned(stream)}}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Generate(t.Context(), &model.Request{Model: "m", Messages: []message.Message{message.User("hi")}}, nil)
		switch {
		case want == "":
			if err != nil || m.StopReason != message.StopLength {
				t.Errorf("%q: %+v, %v", text, m, err)
			}
		case err == nil || model.AsError(t.Context(), "", "", err).Class != want:
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}
