package engine

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// pages is a store that notes how many events it was asked for at a time.
type pages struct {
	store.Store
	mu    sync.Mutex
	asked []int
	given int
}

func (p *pages) Events(ctx context.Context, tenant, runID string, after int64, limit int) ([]*store.Event, error) {
	rows, err := p.Store.Events(ctx, tenant, runID, after, limit)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, limit)
	p.given += len(rows)
	return rows, err
}

// Whoever reads what is stored gets all of it, and the store is asked for a batch
// at a time, however long the run is.
func TestReplayReadsInBatches(t *testing.T) {
	h := newHarness(t, chatty, echoTool(tool.Read), toolFunc{tool.Spec{Name: "work", Effect: tool.Read}, echoTool(tool.Read).Run})
	r := h.ends(h.run("go"), "completed")
	want := encode(t, h.events(r))
	p := &pages{Store: h.store}
	h.engine.store = p
	for _, size := range []int{1, 2, 3, 7, len(want), len(want) + 1} {
		h.engine.page = size
		p.asked, p.given = nil, 0
		var replayed []event.Event
		for ev, err := range h.engine.Replay(t.Context(), ref(r.ID), 0) {
			if err != nil {
				t.Fatal(err)
			}
			replayed = append(replayed, ev)
			if n := len(replayed); p.given > (n/size+1)*size {
				t.Fatalf("%d events were read for %d in batches of %d", p.given, n, size)
			}
		}
		if got := encode(t, replayed); !slices.Equal(got, want) {
			t.Errorf("batches of %d: replayed\n%v\nnot\n%v", size, got, want)
		}
		if got := encode(t, h.events(r)); !slices.Equal(got, want) {
			t.Errorf("batches of %d: watched\n%v\nnot\n%v", size, got, want)
		}
		for _, limit := range p.asked {
			if limit != size {
				t.Errorf("the store was asked for %d events at a time, not %d", limit, size)
			}
		}
		// A reader that stops pays for what it read.
		p.given = 0
		for range h.engine.Replay(t.Context(), ref(r.ID), 0) {
			break
		}
		if p.given > size {
			t.Errorf("%d events were read for the first one", p.given)
		}
	}
	for _, err := range h.engine.Replay(t.Context(), ref("run_none"), 0) {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("no run: %v", err)
		}
	}
}

func encode(t *testing.T, events []event.Event) []string {
	t.Helper()
	var out []string
	for _, ev := range events {
		raw, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(raw))
	}
	return out
}
