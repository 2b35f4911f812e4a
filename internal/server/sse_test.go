package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/server"
)

// parseUntil follows a stream to an event of a type, then hangs up.
func parseUntil(t *testing.T, a *api, path string, until event.Type) iter.Seq[frame] {
	t.Helper()
	return func(yield func(frame) bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", a.ts.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.ts.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		r := bufio.NewReader(resp.Body)
		for {
			f, err := readFrame(r)
			if err != nil {
				t.Errorf("%s ended before %s: %v", path, until, err)
				return
			}
			if !yield(f) || f.event == string(until) {
				return
			}
		}
	}
}

func TestEventsReplay(t *testing.T) {
	a := start(t, nil)
	a.do("POST", "/runs", `{"profile":"echo","input":"one two three"}`)
	r := a.do("GET", "/runs/r1/events", "")
	if got := r.header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("%q", got)
	}
	frames := parseSSE(t, r.body)
	if !strings.HasPrefix(string(r.body), "retry: 2000\n\n") {
		t.Errorf("%.40q", r.body)
	}
	frames = frames[1:]
	last := int64(0)
	text := ""
	for _, f := range frames {
		var ev event.Event
		if err := json.Unmarshal([]byte(f.data), &ev); err != nil {
			t.Fatal(err)
		}
		if f.id != strconv.FormatInt(ev.Seq, 10) || f.event != string(ev.Type) || ev.Seq <= last || ev.RunID != "r1" {
			t.Errorf("%+v after %d", f, last)
		}
		last = ev.Seq
		if d, ok := ev.Data.(*event.Delta); ok {
			text += d.Text
		}
	}
	if text != "one two three" || frames[len(frames)-1].event != "run_completed" {
		t.Errorf("%q %+v", text, frames[len(frames)-1])
	}

	// From every position the rest comes, the same each time, in both forms.
	for after := int64(0); after <= last; after++ {
		var ids, listed []string
		for _, f := range parseSSE(t, a.do("GET", fmt.Sprintf("/runs/r1/events?after=%d", after), "").body)[1:] {
			ids = append(ids, f.data)
		}
		var list struct {
			Events  []json.RawMessage
			LastSeq int64 `json:"last_seq"`
			More    bool
			Status  string
		}
		if err := json.Unmarshal(a.do("GET", fmt.Sprintf("/runs/r1/events?stream=false&after=%d", after), "").body, &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Events {
			listed = append(listed, string(e))
		}
		if strings.Join(ids, "\n") != strings.Join(listed, "\n") || list.LastSeq != last || list.More || list.Status != "completed" {
			t.Errorf("after %d: %v and %v (%d)", after, ids, listed, list.LastSeq)
		}
	}
	if r := a.do("GET", "/runs/r1/events?stream=false&limit=2", "").json(t); r["more"] != true || len(r["events"].([]any)) != 2 {
		t.Errorf("%v", r)
	}
	if r := a.do("GET", "/runs/r1/events?limit=2", ""); r.status != 400 {
		t.Errorf("%d", r.status)
	}

	// Last-Event-ID is honoured, and wins.
	got := parseSSE(t, a.do("GET", "/runs/r1/events?after=0", "", fmt.Sprintf("Last-Event-ID: %d", last-1)).body)
	if len(got) != 2 || got[1].event != "run_completed" {
		t.Errorf("%+v", got)
	}
	if r := a.do("GET", "/runs/r1/events", "", fmt.Sprintf("Last-Event-ID: %d", last)); r.status != 204 {
		t.Errorf("a browser that has seen the end must stop: %d", r.status)
	}
	for _, bad := range []string{"x", "-3", "1.5", "99999999999999999999"} {
		if _, _, _, field := a.do("GET", "/runs/r1/events", "", "Last-Event-ID: "+bad).error(t); field != "Last-Event-ID" {
			t.Errorf("%q: field %q", bad, field)
		}
	}
}

func TestEventsLive(t *testing.T) {
	a := start(t, nil)
	a.do("POST", "/runs", `{"profile":"manual","input":"x"}`)
	run, err := a.e.run("r1")
	if err != nil {
		t.Fatal(err)
	}
	resp := a.send("GET", "/runs/r1/events", "")
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	next := func(want string) frame {
		t.Helper()
		f, err := readFrame(r)
		if err != nil || f.event != want {
			t.Fatalf("got %+v (%v), want %s", f, err, want)
		}
		return f
	}
	next("") // retry
	next("run_started")
	for i := range 3 { // each comes without waiting for the next
		run.emit(event.TextDelta, &event.Delta{Text: "ab"})
		if f := next("text_delta"); f.id != strconv.Itoa(3+2*i) {
			t.Errorf("%+v", f)
		}
	}
	run.end(event.RunCompleted, "stop", "", nil)
	next("run_completed")
	if _, err := readFrame(r); err == nil {
		t.Error("the stream must end after the terminal event")
	}
	select {
	case c := <-a.e.cancelled:
		t.Errorf("watching cancels nothing: %s", c)
	default:
	}
}

func TestEventsHangUpHurtsNobody(t *testing.T) {
	a := start(t, nil)
	a.do("POST", "/runs", `{"profile":"manual","input":"x"}`)
	for range parseUntil(t, a, "/runs/r1/events", event.RunStarted) {
	}
	if r := a.do("GET", "/runs/r1", "").json(t); r["status"] != "running" {
		t.Errorf("%v", r["status"])
	}
}

func TestSlowReaderIsToldWhereToResume(t *testing.T) {
	a := start(t, &server.Options{})
	a.e.readerBuffer = 10
	a.do("POST", "/runs", `{"profile":"manual","input":"x"}`)
	run, err := a.e.run("r1")
	if err != nil {
		t.Fatal(err)
	}
	resp := a.send("GET", "/runs/r1/events", "")
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	seen, comment := "", ""
	for range 2 {
		f, err := readFrame(r)
		if err != nil {
			t.Fatal(err)
		}
		seen = f.id
	}
	// More than the buffers between here and there hold, while nobody reads.
	big := strings.Repeat("x", 64<<10)
	for range 400 {
		run.emit(event.TextDelta, &event.Delta{Text: big})
	}
	for {
		f, err := readFrame(r)
		if err != nil {
			break
		}
		if f.id != "" {
			seen = f.id
		}
		comment = f.comment
	}
	if seen == "" || comment != "the reader was too slow; resume with Last-Event-ID: "+seen {
		t.Fatalf("%q after %s", comment, seen)
	}
	run.end(event.RunCompleted, "stop", "", nil)
	frames := parseSSE(t, a.do("GET", "/runs/r1/events", "", "Last-Event-ID: "+seen).body)
	var first event.Event
	if err := json.Unmarshal([]byte(frames[1].data), &first); err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.ParseInt(seen, 10, 64)
	if first.Seq != n+int64(len(big)) {
		t.Errorf("resumed at %d after %d", first.Seq, n)
	}
}
