package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"agentd/internal/store"
	"agentd/tool"
)

// busyTraces is a store that gives no trace for a moment: at the reads from first on, of
// which there are three.
type busyTraces struct {
	store.Store
	mu           sync.Mutex
	first, reads int
}

func (s *busyTraces) Trace(ctx context.Context, tenant, runID string, after, limit int) ([]*store.Trace, error) {
	s.mu.Lock()
	s.reads++
	n := s.reads
	s.mu.Unlock()
	if n >= s.first && n < s.first+3 {
		return nil, errors.New("the store is busy")
	}
	return s.Store.Trace(ctx, tenant, runID, after, limit)
}

// busyFrom makes the reads fail from the first-th on that is made from now on.
func (s *busyTraces) busyFrom(first int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.reads = first, 0
}

func (h *harness) onBusyTraces() *busyTraces {
	h.t.Helper()
	h.engine.Close()
	s := &busyTraces{Store: h.store, first: 1 << 30}
	h.store = s
	h.start()
	return s
}

// A store that fails for a moment costs no cache: the list of tools stays that of the
// conversation, also where nothing of it is in memory.
func TestAPassingFailureKeepsTheListOfTools(t *testing.T) {
	for _, first := range []int{1, 2} { // looking for the request, and for its list
		t.Run(fmt.Sprint("from read ", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, l := lateHarness(t, namedTool("keep", ""))
				one := h.ends(h.run("go"), "completed")
				asked := l.last()
				h.has(namedTool("keep", ""), namedTool("late", ""))
				s := h.onBusyTraces()
				s.busyFrom(first)
				next := h.ends(h.begin(inSession(one.SessionID, "on")), "completed")
				extends(t, asked, l.last())
				if b := h.breaks(next); len(b) > 0 {
					t.Errorf("%+v", b[0])
				}
				if s.reads <= first {
					t.Errorf("read %d was to fail, of %d", first, s.reads)
				}
			})
		})
	}
}

// What a break of the cache was is said also if the store fails for a moment.
func TestAPassingFailureHidesNoBreak(t *testing.T) {
	for _, restart := range []bool{true, false} { // looking for the request, and for what it was made of
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, twoSteps, echoTool(tool.Read))
				s := h.onBusyTraces()
				h.agents["test"].Prompt = housePrompt(t, "be brief")
				one := h.ends(h.run("go"), "completed")
				h.agents["test"].Prompt = housePrompt(t, "be long")
				if restart {
					h.restart()
				}
				s.busyFrom(1)
				next := h.ends(h.begin(inSession(one.SessionID, "on")), "completed")
				if b := h.breaks(next); len(b) != 1 || b[0].Part != "section" || b[0].Name != "house" || b[0].Change != "changed" {
					t.Errorf("restart %v: %d breaks", restart, len(b))
					for _, b := range b {
						t.Errorf("%+v", b)
					}
				}
				if s.reads < 2 {
					t.Error("nothing failed")
				}
			})
		})
	}
}
