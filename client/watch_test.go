package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
)

// Wherever a connection breaks, the events are those of an unbroken one.
func TestWatchThroughBreaks(t *testing.T) {
	_, rt, url := serve(t)
	for _, every := range []int64{301, 777, 2000} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			p := &proxy{upstream: url, budget: func(n int64) int64 {
				if n%5 == 0 {
					return 0 // nothing at all
				}
				return every + n*97
			}}
			ts := httptest.NewServer(p)
			defer ts.Close()
			c := connect(t, ts.URL, nil)
			r := start(t, c, "words")
			live := watch(t, c, r.ID, 0) // while it runs
			stored, err := rt.Events(timeout(t), r.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := flat(t, stored)
			if got := flat(t, live); got != want {
				t.Errorf("live\n%s\nstored\n%s", got, want)
			}
			if got := flat(t, watch(t, c, r.ID, 0)); got != want { // afterwards
				t.Errorf("replayed\n%s\nstored\n%s", got, want)
			}
			if p.resumed.Load() < 3 {
				t.Errorf("%d of %d connections resumed: the proxy breaks too little", p.resumed.Load(), p.connections.Load())
			}
		})
	}
}

// A position in the middle of a delta gives the rest of it.
func TestWatchFromAnywhere(t *testing.T) {
	c, _, _ := serve(t)
	r := start(t, c, "words")
	all := watch(t, c, r.ID, 0)
	text := func(events []event.Event) (s string) {
		for _, ev := range events {
			if d, ok := ev.Data.(*event.Delta); ok {
				s += d.Text
			}
		}
		return s
	}
	whole := text(all)
	for _, ev := range all {
		if ev.Type.Terminal() {
			break
		}
		rest := watch(t, c, r.ID, ev.Seq)
		if got := text(rest); !strings.HasSuffix(whole, got) || rest[0].Seq <= ev.Seq {
			t.Fatalf("after %d: %q", ev.Seq, got)
		}
	}
	last := all[len(all)-1].Seq
	for ev, err := range c.Watch(timeout(t), r.ID, last) {
		t.Errorf("after the end: %v, %v", ev, err)
	}
}

// The server goes down in the middle of a reply and comes back.
func TestWatchThroughRestart(t *testing.T) {
	data := t.TempDir()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	up := func(ln net.Listener) (*agentd.Runtime, *http.Server) {
		rt := open(t, data)
		srv := &http.Server{Handler: handler(t, rt)}
		go func() { _ = srv.Serve(ln) }()
		t.Cleanup(func() { _ = srv.Close() })
		return rt, srv
	}
	rt, srv := up(ln)
	c := connect(t, "http://"+addr, nil)
	r := start(t, c, "words")
	restarted := make(chan error, 1)
	var events []event.Event
	for ev, err := range c.Watch(timeout(t), r.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n := len(events); n > 0 && ev.Seq <= events[n-1].Seq {
			t.Fatalf("number %d came after %d", ev.Seq, events[n-1].Seq)
		}
		events = append(events, ev)
		if d, ok := ev.Data.(*event.Delta); ok && ev.Step == 2 && rt != nil && d.Text != "" {
			_ = srv.Close()
			if err := rt.Close(); err != nil {
				t.Fatal(err)
			}
			rt = nil
			go func() {
				ln, err := net.Listen("tcp", addr)
				if err == nil {
					up(ln)
				}
				restarted <- err
			}()
		}
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	resumed, text := 0, ""
	for _, ev := range events {
		switch d := ev.Data.(type) {
		case *event.Resumed:
			resumed++
			text = "" // what came of the step is void
		case *event.Delta:
			if ev.Step == 2 {
				text += d.Text
			}
		}
	}
	last, ok := events[len(events)-1].Data.(*event.Ended)
	if !ok || resumed != 1 || text != words || last.Output != words {
		t.Errorf("resumed %d times, text %q, end %+v", resumed, text, events[len(events)-1])
	}
}

func TestWatchIsLetGo(t *testing.T) {
	c, rt, _ := serve(t)
	r := start(t, c, "stuck")
	ctx, cancel := context.WithCancel(timeout(t))
	defer cancel()
	var got error
	for ev, err := range c.Watch(ctx, r.ID, 0) {
		if got = err; err == nil && ev.Type == event.TextDelta {
			cancel()
		}
	}
	if !errors.Is(got, context.Canceled) {
		t.Errorf("it ended with %v", got)
	}
	if r, err := rt.Get(timeout(t), r.ID); err != nil || r.Status != client.Running {
		t.Errorf("a reader that leaves must not hurt the run: %+v, %v", r, err)
	}
}

// transport answers requests in place of a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func stream(body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}
}

const (
	started = "id: 1\nevent: run_started\ndata: {\"v\":1,\"run_id\":\"r\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"run_started\",\"step\":0,\"data\":{}}\n\n"
	ended   = "id: 2\nevent: run_completed\ndata: {\"v\":1,\"run_id\":\"r\",\"seq\":2,\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"run_completed\",\"step\":0,\"data\":{}}\n\n"
)

// silent gives a text and then nothing, until its request ends.
type silent struct {
	text io.Reader
	ctx  context.Context
}

func (s *silent) Read(b []byte) (int, error) {
	if n, err := s.text.Read(b); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// A connection that says nothing is dead, whatever the system believes; the time
// that a reader takes for an event does not count.
func TestWatchLeavesDeadConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		n := 0
		c := connect(t, "http://server", &client.Options{Idle: 10 * time.Second, Backoff: client.DefaultBackoff,
			HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				switch n++; n {
				case 1:
					return stream(&silent{strings.NewReader(started), r.Context()}), nil
				case 2: // does not even answer
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				if got := r.Header.Get("Last-Event-ID"); got != "1" {
					t.Errorf("Last-Event-ID: %q", got)
				}
				return stream(strings.NewReader(ended)), nil
			})}})
		var types []event.Type
		for ev, err := range c.Watch(t.Context(), "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if types = append(types, ev.Type); ev.Type == event.RunStarted {
				time.Sleep(time.Hour) // the reader is busy
			}
		}
		if fmt.Sprint(types) != "[run_started run_completed]" || n != 3 {
			t.Errorf("%v over %d connections", types, n)
		}
		if took := time.Since(begin) - time.Hour; took < 20*time.Second || took > 21*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWatchGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := connect(t, "http://server", &client.Options{Backoff: client.DefaultBackoff,
			HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				if n++; n%10 == 1 && n < 30 { // comes back three times, then never
					return stream(strings.NewReader(strings.ReplaceAll(started, `"seq":1`, fmt.Sprintf(`"seq":%d`, n)))), nil
				}
				return nil, errors.New("refused")
			})}})
		var got error
		events := 0
		for _, err := range c.Watch(t.Context(), "r", 0) {
			if got = err; err == nil {
				events++
			}
		}
		f := isKind(t, got, fault.Unavailable)
		if events != 3 || !strings.Contains(f.Error(), "after number 21 ") || !strings.Contains(f.Error(), "refused") || f.Hint == "" {
			t.Errorf("%d events, %q, %q", events, f, f.Hint)
		}
	})
}

func TestDefaultBackoff(t *testing.T) {
	var sum time.Duration
	n := 1
	for ; ; n++ {
		wait, again := client.DefaultBackoff(n)
		if !again {
			break
		}
		if most := min(100*time.Millisecond<<min(n-1, 10), 5*time.Second); wait > most || wait < most*3/4 {
			t.Errorf("after %d failures %v, at most %v", n, wait, most)
		}
		sum += wait
	}
	if sum < 30*time.Second || sum > 90*time.Second {
		t.Errorf("it gives up after %v", sum)
	}
}

// What is wrong and will stay so ends the watch.
func TestWatchRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, body, typ string
		status          int
		kind            fault.Kind
	}{
		{"html", "<html>", "text/html", 200, fault.Unsupported},
		{"garbage", "data: {\n\n", "text/event-stream", 200, fault.Unsupported},
		{"newer", "data: {\"v\":2,\"seq\":1}\n\n", "text/event-stream", 200, fault.Unsupported},
		{"huge", "data: " + strings.Repeat("x", 17<<20) + "\n\n", "text/event-stream", 200, fault.TooLarge},
		{"forbidden", "", "", 403, fault.Forbidden},
	} {
		n := 0
		c := connect(t, "http://server", &client.Options{HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			n++
			return &http.Response{StatusCode: tt.status, Header: http.Header{"Content-Type": {tt.typ}}, Body: io.NopCloser(strings.NewReader(tt.body))}, nil
		})}})
		var got error
		for _, err := range c.Watch(timeout(t), "r", 0) {
			got = err
		}
		if isKind(t, got, tt.kind); n != 1 {
			t.Errorf("%s: %d connections", tt.name, n)
		}
	}
}

// Whatever a server sends: numbers rise, nothing follows the end, an error is last.
func FuzzWatch(f *testing.F) {
	f.Add([]byte(started + ended))
	f.Add([]byte(ended + started))
	f.Add([]byte(": hello\n\nretry: 5\n\n" + started + started))
	f.Add([]byte("data: {\"v\":1,\"seq\":9,\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"text_delta\",\"data\":{\"text\":\"größer\"}}\n\n" +
		"data: {\"v\":1,\"seq\":11,\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"text_delta\",\"data\":{\"text\":\"größer\"}}\n\n"))
	f.Add([]byte("data: {\"v\":1,\"seq\":-9}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := connect(t, "http://server", &client.Options{Backoff: func(n int) (time.Duration, bool) { return 0, n < 3 },
			HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				return stream(bytes.NewReader(body)), nil
			})}})
		last, over := int64(0), false
		for ev, err := range c.Watch(t.Context(), "r", 0) {
			switch {
			case over:
				t.Fatalf("%v, %v after the end", ev, err)
			case err != nil:
				over = true
				if fault.KindOf(err) == fault.Internal {
					t.Fatalf("%v has no kind", err)
				}
				continue
			case ev.Seq <= last:
				t.Fatalf("number %d after %d", ev.Seq, last)
			}
			last, over = ev.Seq, ev.Type.Terminal()
		}
	})
}

// Whatever the body of an error is, there is a kind and something to say.
func FuzzErrorBody(f *testing.F) {
	f.Add(404, "application/json", []byte(`{"error":{"kind":"not_found","message":"no run","hint":"h","field":"f"}}`))
	f.Add(500, "text/plain", []byte("a\xff\x00 b"))
	f.Add(400, "text/plain; charset", []byte(`{"error":"text"}`))
	f.Add(600, "", []byte(`{"error":{"kind":"internal","message":"x"}}`))
	f.Fuzz(func(t *testing.T, status int, typ string, body []byte) {
		status = 300 + (status%300+300)%300
		c := connect(t, "http://server", &client.Options{HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {typ}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
		})}})
		_, err := c.Profiles(t.Context())
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind == "" || e.Error() == "" {
			t.Fatalf("%d %q: %#v", status, body, err)
		}
	})
}
