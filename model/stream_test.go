package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentd/message"
)

// fake is a provider made of a function.
type fake func(ctx context.Context, req *Request, emit func(StreamEvent)) (*message.Message, error)

func (f fake) Generate(ctx context.Context, req *Request, emit func(StreamEvent)) (*message.Message, error) {
	return f(ctx, req, emit)
}

// talk emits n deltas into one growing message, pausing between them.
func talk(n int, pause time.Duration) fake {
	return func(ctx context.Context, _ *Request, emit func(StreamEvent)) (*message.Message, error) {
		m := &message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("")}, StopReason: message.StopEnd}
		emit(StreamEvent{Type: StreamStart, Partial: m})
		for i := range n {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil, AsError(ctx, "fake", "m", ctx.Err())
			}
			delta := fmt.Sprint(i, " ")
			m.Content[0].Text += delta
			emit(StreamEvent{Type: StreamTextDelta, Delta: delta, Partial: m})
		}
		return m, nil
	}
}

func TestStreamInOrder(t *testing.T) {
	for _, pace := range []struct{ provider, reader time.Duration }{{0, 0}, {time.Second, 0}, {0, time.Second}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := Stream(t.Context(), talk(50, pace.provider), &Request{})
			text, last := "", StreamEvent{}
			for e := range s.Events() {
				time.Sleep(pace.reader) // of the bubble: no time passes
				text += e.Delta
				if e.Type == StreamTextDelta && e.Partial.Content[0].Text != text {
					t.Fatalf("a later event changed the partial message of an earlier one: %q, want %q", e.Partial.Content[0].Text, text)
				}
				last = e
			}
			m, err := s.Result()
			if err != nil || last.Type != StreamDone || last.Message != m || last.Reason != message.StopEnd || m.Content[0].Text != text {
				t.Errorf("%+v, %v", last, err)
			}
		})
	}
}

func TestStreamWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Stream(t.Context(), talk(1000, time.Millisecond), &Request{})
		if m, err := s.Result(); err != nil || m == nil {
			t.Fatalf("%v, %v", m, err)
		}
		// What came before the reader is still there.
		n := 0
		for range s.Events() {
			n++
		}
		if n != 1002 {
			t.Errorf("%d events, want start, 1000 deltas and done", n)
		}
	})
}

// A reader that walks away does not hold up the provider.
func TestStreamReaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Stream(t.Context(), talk(10, time.Second), &Request{})
		for e := range s.Events() {
			if e.Type == StreamTextDelta {
				break
			}
		}
		if m, err := s.Result(); err != nil || m == nil {
			t.Errorf("%v, %v", m, err)
		}
	})
}

func TestStreamFails(t *testing.T) {
	refused := &Error{Class: ClassRefused, Provider: "p", Message: "no"}
	for _, tt := range []struct {
		name   string
		err    error
		reason message.StopReason
		text   string
	}{
		{"typed", refused, message.StopError, "p: refused: no"},
		{"plain", errors.New("boom"), message.StopError, " (m): connection: boom"},
		{"cancelled", &Error{Class: ClassCancelled, Provider: "p"}, message.StopAborted, "p: cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Stream(t.Context(), fake(func(context.Context, *Request, func(StreamEvent)) (*message.Message, error) { return nil, tt.err }), &Request{Model: "m"})
			events := slices.Collect(s.Events())
			m, err := s.Result()
			if m != nil || err != tt.err || len(events) != 1 {
				t.Fatalf("%v, %v, %v", m, err, events)
			}
			e := events[0]
			if e.Type != StreamError || e.Err != tt.err || e.Reason != tt.reason || e.Message.StopReason != tt.reason || e.Message.ErrorMessage != tt.text {
				t.Errorf("%+v, message %+v", e, e.Message)
			}
		})
	}
}

func TestStreamCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := Stream(ctx, talk(1000, time.Second), &Request{})
		var last StreamEvent
		for e := range s.Events() {
			if e.Type == StreamTextDelta {
				cancel()
			}
			last = e
		}
		if last.Type != StreamError || last.Reason != message.StopAborted {
			t.Errorf("%+v", last)
		}
	})
}

func TestComplete(t *testing.T) {
	called := false
	p := fake(func(_ context.Context, _ *Request, emit func(StreamEvent)) (*message.Message, error) {
		called = emit == nil
		return &message.Message{}, nil
	})
	if _, err := Complete(t.Context(), p, &Request{}); err != nil || !called {
		t.Error("Complete listens to a stream that nobody asked for")
	}
}
