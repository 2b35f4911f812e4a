package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/event"
)

// A page of events costs what it gives, however long the run is, and ends when it
// is large.
func TestEventPagesAreBounded(t *testing.T) {
	a := start(t, nil)
	a.do("POST", "/runs", `{"profile":"manual","input":"x"}`)
	run, err := a.e.run("r1")
	if err != nil {
		t.Fatal(err)
	}
	const large = 1 << 20
	for range 2000 {
		run.emit(event.TextDelta, &event.Delta{Text: "x"})
	}
	for range 10 {
		run.emit(event.TextDelta, &event.Delta{Text: strings.Repeat("y", large)})
	}
	run.end(event.RunCompleted, "stop", "", nil)
	total := len(run.events)

	page := func(query string) (events []json.RawMessage, last int64, more bool) {
		t.Helper()
		var list struct {
			Events  []json.RawMessage
			LastSeq int64 `json:"last_seq"`
			More    bool
		}
		a.e.replayed.Store(0)
		r := a.do("GET", "/runs/r1/events?stream=false"+query, "")
		if err := json.Unmarshal(r.body, &list); err != nil {
			t.Fatal(err)
		}
		if len(r.body) > 6<<20 {
			t.Errorf("%s: %d bytes", query, len(r.body))
		}
		if n := a.e.replayed.Load(); n > int64(len(list.Events))+1 {
			t.Errorf("%s: %d events were read for %d", query, n, len(list.Events))
		}
		return list.Events, list.LastSeq, list.More
	}
	if events, _, more := page("&limit=3"); len(events) != 3 || !more {
		t.Errorf("%d events, more: %v", len(events), more)
	}
	if events, _, more := page(""); len(events) != 1000 || !more {
		t.Errorf("%d events, more: %v", len(events), more)
	}
	got, pages := 0, 0
	for after, more := int64(0), true; more; pages++ {
		var events []json.RawMessage
		events, after, more = page(fmt.Sprintf("&limit=10000&after=%d", after))
		if got += len(events); len(events) == 0 {
			t.Fatal("an empty page with more behind it")
		}
	}
	if got != total || pages < 3 {
		t.Errorf("%d of %d events on %d pages", got, total, pages)
	}
	// A browser that connects again costs little too.
	a.e.replayed.Store(0)
	resp := a.send("GET", "/runs/r1/events", "", "Last-Event-ID: 5")
	_ = resp.Body.Close()
	if n := a.e.replayed.Load(); n > 1 {
		t.Errorf("%d events were read to see whether there are any", n)
	}
}
