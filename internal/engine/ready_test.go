package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// A node that a commit failed at is ready again though nothing of what it drove came
// back to it: its lease shows that the store takes commits.
func TestANodeIsReadyAgainByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNodes(t, listener).node("a", true)
		err := errors.New("the disk is full")
		a.broken.Store(&err) // as a commit does whose run is driven elsewhere by now
		if err := a.Ready(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("ready: %v", err)
		}
		pass(2 * time.Second)
		if err := a.Ready(t.Context()); err != nil {
			t.Errorf("ready: %v", err)
		}
	})
}

// A node that is about to end is not ready, from the first moment on.
func TestANodeThatDrainsIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Once, g))
		a := n.node("a", true)
		n.started(a, StartRequest{})
		<-g.entered
		if err := a.Ready(t.Context()); err != nil {
			t.Errorf("ready: %v", err)
		}
		drained := make(chan error, 1)
		go func() { drained <- a.Drain(t.Context()) }()
		synctest.Wait()
		if err := a.Ready(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "about to end") {
			t.Errorf("ready: %v", err)
		}
		close(g.open)
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}
