package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// A node that was stopped between the decision to make a proposed call and the call does
// not make it when it is woken: another one may have, as a person asked it to.
func TestANodeWithoutALeaseAppliesNoProposal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, made := proposing(t, tool.Once)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		good := n.store
		b := n.node("b", true)
		s := n.picky()
		a := n.node("a", false)
		r := n.ended(a, n.started(a, StartRequest{Mode: Autonomous}).ID, "completed")
		first := decision(r)
		first.Proposal = r.ID + ".p1"
		var once sync.Once
		// The commit is durable, and its node hears so when its lease is over.
		s.set(func(tx *store.Tx) bool {
			if len(tx.Proposals) > 0 && tx.Proposals[0].Status == applying {
				once.Do(func() {
					if err := good.Commit(context.Background(), tx); err != nil {
						t.Error(err)
					}
					tx.Proposals, tx.Holds = nil, nil
					old := a.node.lease()
					if err := good.Commit(context.Background(), &store.Tx{Tenant: "default", Nodes: []store.NodeChange{{Node: store.Node{ID: old}, Leave: true}}}); err != nil {
						t.Error(err)
					}
					pass(6 * time.Second)
					again := first
					again.Uncertain = "retry"
					if _, err := b.Apply(t.Context(), again); err != nil {
						t.Error(err)
					}
				})
			}
			return false
		})
		if _, err := a.Apply(t.Context(), first); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("the node that was stopped: %v", err)
		}
		if len(made.n) != 1 || made.n[`a {"name":"one"} /1/a`] != 1 {
			t.Errorf("made %v", made.n)
		}
	})
}

// A node that is told to stop waits for proposals that are being applied.
func TestDrainWaitsForProposals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, made := proposing(t, tool.Once)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		s := n.picky()
		a := n.node("a", true)
		r := n.ended(a, n.started(a, StartRequest{Mode: Autonomous}).ID, "completed")
		begun := make(chan struct{})
		var once sync.Once
		s.set(func(tx *store.Tx) bool {
			if len(tx.Proposals) > 0 && tx.Proposals[0].Status == applying {
				once.Do(func() { close(begun); pass(3 * time.Second) })
			}
			return false
		})
		done := make(chan error, 1)
		go func() {
			_, err := a.Apply(t.Context(), decision(r))
			done <- err
		}()
		<-begun
		if err := a.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		a.Close()
		if err := <-done; err != nil || len(made.n) != 2 {
			t.Errorf("%v, made %v", err, made.n)
		}
	})
}
