package wire

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// client is a connection in memory that reads when it is told to.
type client struct {
	mu       sync.Mutex
	header   http.Header
	writes   []string
	blocked  chan struct{} // nil: reads at once
	deadline time.Time
}

func (c *client) Header() http.Header { return c.header }
func (c *client) WriteHeader(int)     {}
func (c *client) Flush()              {}
func (c *client) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *client) Write(b []byte) (int, error) {
	if c.blocked != nil {
		select {
		case <-c.blocked:
		case <-time.After(time.Until(c.deadline)):
			return 0, os.ErrDeadlineExceeded
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, string(b))
	return len(b), nil
}

func put(out *Out, s string) bool {
	b, ok := out.Begin()
	if ok {
		out.End(append(b, s...))
	}
	return ok
}

// TestCoalesce: what comes while a write is under way goes out as one.
func TestCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{header: http.Header{}, blocked: make(chan struct{})}
		s := NewStream(c, StreamConfig{})
		err := s.Run(t.Context(), func(_ context.Context, out *Out) error {
			put(out, "a")
			synctest.Wait() // the writer is busy with it
			for range 100 {
				put(out, "b")
			}
			close(c.blocked)
			return nil
		})
		if err != nil || len(c.writes) != 2 || c.writes[0] != "a" || c.writes[1] != strings.Repeat("b", 100) {
			t.Errorf("%v %q", err, c.writes)
		}
	})
}

// TestBackPressure: a client that does not read stops the producer at the buffer,
// and is given up after the write timeout.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{header: http.Header{}, blocked: make(chan struct{})}
		s := NewStream(c, StreamConfig{Buffer: 1000, WriteTimeout: 20 * time.Second})
		begin := time.Now()
		n := 0
		err := s.Run(t.Context(), func(ctx context.Context, out *Out) error {
			for put(out, strings.Repeat("x", 100)) {
				n++
			}
			return ctx.Err()
		})
		if !errors.Is(err, ErrGone) || n > 25 {
			t.Errorf("%v after %d pieces", err, n)
		}
		if waited := time.Since(begin); waited < 20*time.Second || waited > 26*time.Second {
			t.Errorf("gave up after %s", waited)
		}
		if s.Write([]byte("more")) == nil {
			t.Error("nothing can follow a failed write")
		}
	})
}

func TestNothingIsSentBeforeTheFirstByte(t *testing.T) {
	c := &client{header: http.Header{}}
	s := NewStream(c, StreamConfig{})
	failed := errors.New("failed")
	if err := s.Run(t.Context(), func(context.Context, *Out) error { return failed }); err != failed || s.Started() || len(c.header) != 0 {
		t.Errorf("%v %v %v", err, s.Started(), c.header)
	}
}

func TestEndsOfAStream(t *testing.T) {
	wait := func(ctx context.Context, out *Out) error {
		put(out, "a")
		<-ctx.Done()
		put(out, "after the end")
		return ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		c := &client{header: http.Header{}}
		s := NewStream(c, StreamConfig{Closing: closing})
		go func() { synctest.Wait(); close(closing) }()
		if err := s.Run(t.Context(), wait); !errors.Is(err, ErrClosing) {
			t.Errorf("%v", err)
		}
		if err := s.Write([]byte("bye")); err != nil || c.writes[len(c.writes)-1] != "bye" {
			t.Errorf("%v %q", err, c.writes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := NewStream(&client{header: http.Header{}}, StreamConfig{})
		go func() { synctest.Wait(); cancel() }()
		if err := s.Run(ctx, wait); !errors.Is(err, ErrGone) {
			t.Errorf("%v", err)
		}
	})
}

func TestProducerPanicReachesTheHandler(t *testing.T) {
	defer func() {
		p, ok := recover().(error)
		if !ok || !strings.Contains(p.Error(), "oops") || !strings.Contains(p.Error(), "stream_test.go") {
			t.Errorf("%v", p)
		}
	}()
	s := NewStream(&client{header: http.Header{}}, StreamConfig{})
	_ = s.Run(t.Context(), func(context.Context, *Out) error { panic("oops") })
	t.Error("the panic was swallowed")
}

func FuzzDecode(f *testing.F) {
	type body struct {
		A string `json:"a"`
		B *struct {
			C int `json:"c"`
		} `json:"b"`
	}
	for _, s := range []string{``, `{}`, `{"a":"x","b":{"c":1}}`, `{"a":1}`, `{"b":{"d":1}}`, `{"a":"x"`, `{"a":"x"} 1`, `{"a":"x","a":"y"}`, "{\"a\":\"\xff\"}", "{\n\"x\":1}", `nul`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var strict, loose body
		err := Decode(raw, &strict)
		if err != nil {
			if p := Describe(t.Context(), err); p.Status != 400 || p.Message == "" {
				t.Errorf("%+v", p)
			}
			return
		}
		// What is good enough for Decode is good enough for DecodeLoose.
		if err := DecodeLoose(raw, &loose); err != nil {
			t.Error(err)
		}
		if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			t.Errorf("%q is not an object", raw)
		}
	})
}

// discard is a client that costs nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

func BenchmarkStream(b *testing.B) {
	s := NewStream(discard{http.Header{}}, StreamConfig{})
	b.ReportAllocs()
	err := s.Run(b.Context(), func(_ context.Context, out *Out) error {
		for b.Loop() {
			put(out, "data: some bytes\n\n")
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
