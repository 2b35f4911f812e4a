package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/message"
)

// words is a text long enough to be cut in many places.
var words = strings.TrimSpace(strings.Repeat("These are words — some wide: ein großes Wörterbuch, 言葉. ", 12))

// configuration has the agents of the tests: demo (the real one), words (says
// something slowly), ask (asks a question), form (asks for a form), stuck (never
// ends).
func configuration(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"agents/demo.yaml":  "profile_name: demo\nprimary_model: {provider: script, model: demo-1}\ntools: {builtin: [workspace]}\napproval_mode: never\n",
		"agents/words.yaml": "profile_name: words\nprimary_model: {provider: script, model: m, script: words.yaml}\ntools: {builtin: [workspace]}\napproval_mode: never\n",
		"agents/ask.yaml":   "profile_name: ask\nprimary_model: {provider: script, model: m, script: ask.yaml}\ntools: {builtin: [ask_user_question]}\napproval_mode: never\n",
		"agents/form.yaml":  "profile_name: form\nprimary_model: {provider: script, model: m, script: form.yaml}\ntools: {builtin: [ask_user_question]}\napproval_mode: never\n",
		"agents/stuck.yaml": "profile_name: stuck\nprimary_model: {provider: script, model: m, script: stuck.yaml}\napproval_mode: never\n",
		"words.yaml": "latency: {first: 20ms, chunk: 2ms, size: 16}\nturns:\n- text: '" + words + "'\n  tool_calls:\n" +
			"  - {name: glob, arguments: {pattern: '*'}}\n- text: '" + words + "'\n",
		"ask.yaml": "turns:\n- tool_calls:\n  - {name: ask_user_question, arguments: {question: 'Which colour?'}}\n- text: 'Then it is {{.Last.Text}}.'\n",
		"form.yaml": "turns:\n- tool_calls:\n  - {name: ask_user_question, arguments: {question: 'Where to?', schema: {type: object, properties: {n: {type: integer, maximum: 10}, to: {type: string}}, required: [n, to]}}}\n" +
			"- text: 'Then it is {{.Last.Text}}.'\n",
		"stuck.yaml": "turns:\n- text: one two three\n  fault: {kind: stall, after: 1}\n  latency: {size: 4}\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// open opens a runtime; data is a folder, or "" for memory.
func open(t *testing.T, data string) *agentd.Runtime {
	t.Helper()
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# Hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := agentd.Open(t.Context(), agentd.Config{Configs: configuration(t), Data: data, Workspace: work})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() }) // some tests close it before
	return rt
}

// serve gives a client of a real server with a real engine in memory.
func serve(t *testing.T) (*client.Client, *agentd.Runtime, string) {
	t.Helper()
	rt := open(t, "")
	ts := httptest.NewServer(handler(t, rt))
	t.Cleanup(ts.Close)
	return connect(t, ts.URL, nil), rt, ts.URL
}

func handler(t *testing.T, rt *agentd.Runtime) http.Handler {
	t.Helper()
	h, err := rt.Handler()
	if err != nil {
		t.Fatal(err)
	}
	return newShadow(t, rt, h)
}

func connect(t *testing.T, url string, o *client.Options) *client.Client {
	t.Helper()
	if o == nil {
		o = &client.Options{}
	}
	if o.HTTP == nil {
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		o.HTTP = &http.Client{Transport: tr}
	}
	if o.Backoff == nil {
		o.Backoff = func(n int) (time.Duration, bool) { return time.Millisecond, n < 1000 }
	}
	c, err := client.New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// timeout bounds a test that waits for something.
func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, c *client.Client, profile string) *client.Run {
	t.Helper()
	r, err := c.Start(timeout(t), client.StartRequest{Profile: profile, Input: []message.Block{message.Text("go on")}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// watch reads to the end and fails if numbers do not rise.
func watch(t *testing.T, c *client.Client, id string, after int64) []event.Event {
	t.Helper()
	var out []event.Event
	last := after
	for ev, err := range c.Watch(timeout(t), id, after) {
		if err != nil {
			t.Fatalf("after %d events: %v", len(out), err)
		}
		if ev.Seq <= last {
			t.Fatalf("number %d came after %d", ev.Seq, last)
		}
		if n := len(out); n > 0 && out[n-1].Type.Terminal() {
			t.Fatalf("%s came after the end", ev.Type)
		}
		last = ev.Seq
		out = append(out, ev)
	}
	if n := len(out); n == 0 || !out[n-1].Type.Terminal() {
		t.Fatalf("the events end with %v", out)
	}
	return out
}

// flat makes streams comparable whose deltas were cut at different places.
func flat(t *testing.T, events []event.Event) string {
	t.Helper()
	var b strings.Builder
	var delta event.Event
	text := ""
	flush := func() {
		if text != "" {
			fmt.Fprintf(&b, "%d %s %q\n", delta.Step, delta.Type, text)
			text = ""
		}
	}
	for _, ev := range events {
		if d, ok := ev.Data.(*event.Delta); ok {
			if delta.Type != ev.Type || delta.Step != ev.Step {
				flush()
			}
			delta, text = ev, text+d.Text
			continue
		}
		flush()
		// Details come with replayed events only, and arguments as they were
		// written instead of as they were used.
		if d, ok := ev.Data.(*event.Tool); ok {
			c := *d
			c.Details, c.Args = nil, canonical(t, d.Args)
			ev.Data = &c
		}
		raw, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(raw, '\n'))
	}
	flush()
	return b.String()
}

func canonical(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	var v any
	err := json.Unmarshal(raw, &v)
	if err == nil {
		raw, err = json.Marshal(v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// proxy forwards to a server and breaks event streams: connection n gets
// budget(n) bytes.
type proxy struct {
	upstream    string
	budget      func(n int64) int64 // a first connection gets at least a byte
	connections atomic.Int64
	// resumed counts the connections that said where to go on.
	resumed atomic.Int64
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, p.upstream+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(err)
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	if !strings.HasSuffix(r.URL.Path, "/events") {
		_, _ = io.Copy(w, resp.Body)
		return
	}
	left := p.budget(p.connections.Add(1))
	if r.Header.Get("Last-Event-ID") != "" {
		p.resumed.Add(1)
	} else {
		left = max(left, 1)
	}
	buf := make([]byte, 256)
	for left > 0 {
		n, err := resp.Body.Read(buf[:min(left, int64(len(buf)))])
		left -= int64(n)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			break
		}
	}
	panic(http.ErrAbortHandler)
}

func isKind(t *testing.T, err error, kind fault.Kind) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != kind {
		t.Fatalf("the error is %v (%s), not one of kind %s", err, fault.KindOf(err), kind)
	}
	return f
}
