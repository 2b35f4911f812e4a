package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/store"
)

// The sign that a child has news is gone only when what the parent made of it is
// durable: a parent that waits for people is nobody's to look after otherwise.
func TestNewsOfAChildOutliveWhoReadThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := dynasty(t)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		good := n.store
		s := n.picky()
		a := n.node("a", true)
		r := n.paused(n.started(a, StartRequest{}), 1)
		synctest.Wait()
		dropped := make(chan struct{})
		var dead atomic.Bool
		s.set(func(tx *store.Tx) bool {
			if dead.Load() {
				return true
			}
			for _, m := range tx.DropMail {
				if m.RunID == r.ID && dead.CompareAndSwap(false, true) {
					if err := good.Commit(t.Context(), tx); err != nil {
						t.Error(err)
					}
					close(dropped)
					return true
				}
			}
			if about(tx, r.ID) { // slower than whatever does not wait for it
				select {
				case <-dropped:
					return true
				case <-time.After(time.Second):
				}
			}
			return false
		})
		go func() { _, _ = a.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"}) }()
		<-dropped
		a.Close()
		n.store = good
		b := n.node("b", true)
		n.ended(b, r.ID, "completed")
	})
}

// A node that lost a run without knowing it takes no sign away from the one that has it.
func TestASignIsTakenByTheHomeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := dynasty(t)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		s := n.picky()
		a := n.node("a", true)
		r := n.paused(n.started(a, StartRequest{}), 1)
		synctest.Wait()
		var drops atomic.Int32
		s.set(func(tx *store.Tx) bool {
			for _, m := range tx.DropMail {
				if len(tx.Fences) != 1 || tx.Fences[0].RunID != m.RunID {
					drops.Add(1)
				}
			}
			return false
		})
		if _, err := a.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"}); err != nil {
			t.Fatal(err)
		}
		n.ended(a, r.ID, "completed")
		if drops.Load() > 0 {
			t.Errorf("%d signs were taken by whoever came", drops.Load())
		}
	})
}
