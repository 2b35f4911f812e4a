package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// A store that comes back answers what waited for it: a node that waited so long to join
// that its new lease is about over renews it before it goes by it, and does not lose it
// at once.
func TestAJoinThatWaitedIsNotLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		var joins atomic.Int64
		var away atomic.Bool
		n.picky().set(func(tx *store.Tx) bool {
			for _, c := range tx.Nodes {
				if !c.Join {
					return away.Load()
				}
				if joins.Add(1) == 2 {
					<-time.After(4500 * time.Millisecond)
					away.Store(false)
				}
			}
			return false
		})
		a := n.node("a", true)
		away.Store(true)
		pass(time.Minute)
		if got := joins.Load(); got != 2 {
			t.Errorf("it joined %d times", got)
		}
		n.ended(a, n.started(a, StartRequest{}).ID, "completed")
	})
}

// nobody is an executor that tells nobody: the test drives.
type nobody struct{}

func (nobody) Submit(context.Context, Ref) error { return nil }
func (nobody) Wake(context.Context, Ref) error   { return nil }
func (nobody) Cancel(context.Context, Ref) error { return nil }

// A commit to a store that is cut off has no end. Who had a run driven here hears that it
// is not any more when the lease is over, and not when that commit fails.
func TestADriveEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Idempotent, g))
		s := n.picky()
		a := n.node("a", true, func(c *Config) { c.Cluster.Executor = nobody{} })
		r := n.started(a, StartRequest{})
		done := make(chan error, 1)
		go func() {
			_, err := a.Drive(t.Context(), ref(r.ID))
			done <- err
		}()
		<-g.entered
		mended := make(chan struct{})
		s.set(func(*store.Tx) bool {
			<-mended
			return false
		})
		began := time.Now()
		close(g.open)
		select {
		case err := <-done:
			if fault.KindOf(err) != fault.Unavailable || time.Since(began) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		case <-time.After(time.Minute):
			t.Error("it waits for a commit that nobody answers")
		}
		close(mended)
		pass(time.Minute)
		if _, err := a.Drive(t.Context(), ref(r.ID)); err != nil {
			t.Error(err)
		}
		n.ended(a, r.ID, "completed")
	})
}
