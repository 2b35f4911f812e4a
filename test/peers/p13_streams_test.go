package peers

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/internal/sse"
)

// 13. Streams are numbered, go on from any number and through a restart, cost a run
// nothing when their readers are slow or go, and leave nothing behind.
func TestPeers13StreamsSurvive(t *testing.T) {
	ctx := deadline(t)
	const first, second = 8000, 400 // words of the two replies; the first is more than any buffer on the way
	w := newWorld(t, map[string]string{
		"agentd.yaml":   "limits: {max_event_lag: 16}\n",
		"agents/p.yaml": "profile_name: p\nprimary_model: {provider: script, model: m, script: s.yaml}\ntools: {builtin: [ask_user_question]}\n",
		"s.yaml": "turns:\n- text: '" + strings.Repeat("many words, ", first) + "'\n  latency: {size: 2}\n  tool_calls: [{name: ask_user_question, arguments: {question: 'Which?'}}]\n" +
			"- text: '" + strings.Repeat("and more, ", second) + "'\n  latency: {size: 4}\n",
	})
	c := w.client("")
	before := runtime.NumGoroutine()
	r, err := c.Start(ctx, client.StartRequest{Profile: "p", Input: text("go")})
	if err != nil {
		t.Fatal(err)
	}
	// One who does not read. The run does not wait, and this reader is let go.
	stalled := follow(t, w, r.ID, 0)
	until(ctx, t, c, r.ID, event.CheckpointRequired)
	if told, err := io.ReadAll(stalled.Body); err != nil || !bytes.Contains(told, []byte("too slow; resume with Last-Event-ID: ")) {
		t.Errorf("who did not read was told %d bytes, %v, …%s", len(told), err, told[max(0, len(told)-200):])
	}
	_ = stalled.Body.Close()
	// One who reads a little and goes, many times over.
	last := int64(0)
	var all strings.Builder
	take := func(ev event.Event) {
		t.Helper()
		if ev.Seq <= last {
			t.Fatalf("event %d %s after %d", ev.Seq, ev.Type, last)
		}
		last = ev.Seq
		if d, ok := ev.Data.(*event.Delta); ok && ev.Type == event.TextDelta {
			all.WriteString(d.Text)
		}
	}
	ended := false
	answered := false
	for n := 0; !ended; n++ {
		resp := follow(t, w, r.ID, last)
		in := sse.NewReader(resp.Body, nil)
		for k := 0; k < 1+n*n && !ended; k++ {
			raw, err := in.Next()
			if err != nil {
				break // taken for too slow, or the server is gone: it goes on from where it was
			}
			var ev event.Event
			if err := ev.UnmarshalJSON(raw.Data); err != nil {
				t.Fatal(err)
			}
			take(ev)
			if ev.Type == event.CheckpointRequired && !answered {
				answered = true
				_ = resp.Body.Close()
				w.restart() // while it waits, with its stream half read
				c = w.client("")
				if _, err := c.Answer(ctx, client.AnswerRequest{Run: r.ID, Answer: []byte(`"this"`)}); err != nil {
					t.Fatal(err)
				}
				break
			}
			ended = ev.Type.Terminal()
		}
		_ = resp.Body.Close()
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	want := strings.Repeat("many words, ", first) + strings.Repeat("and more, ", second)
	if all.String() != want {
		t.Errorf("the pieces make %d bytes of %d", all.Len(), len(want))
	}
	// Whoever comes later gets the same text from any place in it.
	whole, err := c.Events(ctx, r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 7, last / 2, last - 1} {
		part, err := c.Events(ctx, r.ID, from)
		if err != nil || len(part) == 0 || part[len(part)-1].Seq != whole[len(whole)-1].Seq || part[0].Seq <= from {
			t.Errorf("from %d: %d events, %v", from, len(part), err)
		}
	}
	for {
		http.DefaultClient.CloseIdleConnections()
		w.http.CloseClientConnections()
		if n := runtime.NumGoroutine(); n <= before+8 { // idle workers and the listener
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, and now\n%s", before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// follow opens a run's stream after a number.
func follow(t *testing.T, w *world, run string, last int64) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(deadline(t), http.MethodGet, w.http.URL+"/runs/"+run+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	return resp
}
