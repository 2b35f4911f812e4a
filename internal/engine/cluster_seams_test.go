package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// pickyCluster is a pickyStore that nodes can share.
type pickyCluster struct {
	*pickyStore
	store.Cluster
}

func (n *nodes) picky() *pickyStore {
	s := &pickyStore{Store: n.store}
	n.store = pickyCluster{s, n.store.(store.Cluster)}
	return s
}

// A home that dies between the end of a run and that of its children leaves one that
// waits for a person, and that nobody claims: the next worker looks for such runs.
func TestAnotherNodeEndsWhatWaitsBelowAnEndedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, calls := dynasty(t)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		good := n.store
		s := n.picky()
		a := n.node("a", true)
		r := n.paused(n.started(a, StartRequest{}), 1)
		asks := r.Interrupts[0]
		a.Close()
		middle, low := r.ID+".c1", r.ID+".c1.c1"
		// The run in the middle can not go on and is aborted; the process ends with that.
		kid := n.agents["kid"]
		delete(n.agents, "kid")
		var dead atomic.Bool
		down := make(chan struct{})
		s.set(func(tx *store.Tx) bool {
			if !dead.Load() && about(tx, middle) {
				if err := good.Commit(context.Background(), tx); err != nil {
					t.Error(err)
				}
				if dead.CompareAndSwap(false, true) {
					close(down)
				}
			}
			return dead.Load()
		})
		b := n.node("b", true)
		go func() { _ = b.Steer(t.Context(), ref(middle), blocks("go on")) }()
		<-down
		b.Close()
		n.agents["kid"], n.store = kid, good
		if row, err := good.Run(t.Context(), store.DefaultTenant, middle); err != nil || row.Status != string(run.Failed) {
			t.Fatalf("the run in the middle: %+v, %v", row, err)
		}
		c := n.node("c", true)
		n.ended(c, low, "cancelled")
		if i, err := c.Interrupt(t.Context(), ref(asks.ID)); err != nil || i.Status != "cancelled" {
			t.Errorf("%+v, %v", i, err)
		}
		n.ended(c, r.ID, "completed")
		if len(calls.n) != 0 {
			t.Errorf("it was called: %v", calls.n)
		}
	})
}

// Mail that a run's end was faster than is answered at once: there is nobody who would
// tell of it any more.
func TestMailThatComesAfterTheEndIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, listener, gated("work", tool.Read, g))
		// Whoever steers has seen the run under way, and is held up before it writes.
		over, held := make(chan struct{}), make(chan struct{})
		var hold atomic.Bool
		a := n.node("a", true, func(c *Config) {
			c.Cluster.Lease, c.Cluster.Poll = 100*time.Hour, 10*time.Hour
			id := newIDs(time.Now)
			c.NewID = func() string {
				if hold.CompareAndSwap(true, false) {
					close(held)
					<-over
				}
				return id()
			}
		})
		r := n.started(a, StartRequest{})
		<-g.entered
		hold.Store(true)
		done := make(chan error, 1)
		go func() { done <- a.Steer(t.Context(), ref(r.ID), blocks("now")) }()
		<-held
		close(g.open)
		n.ended(a, r.ID, "completed")
		synctest.Wait()
		began := time.Now()
		close(over)
		if err := <-done; fault.KindOf(err) != fault.Conflict || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A node that stops gives back what it reserved for a call that it does not make; its
// budget has what was used, and nothing twice.
func TestDrainGivesBackWhatWasReserved(t *testing.T) {
	for _, at := range []string{"before the reservation", "in the reservation"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				n := newNodes(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
					if step == 0 {
						m, _ := say("", call("c0", "work", `{}`))
						return using(m, 10, 10)
					}
					m, _ := say("Done.")
					return using(m, 20, 10)
				}, gated("work", tool.Read, g))
				test := n.agents["test"]
				test.Models[0].Info, test.Models[0].MaxTokens = dollarPrice(), 1000
				test.Caps = Caps{MaxTokens: 1_000_000}
				reserved, goOn := make(chan struct{}), make(chan struct{})
				count := 0
				n.picky().set(func(tx *store.Tx) bool {
					if len(tx.Reserves) > 0 {
						if count++; count == 2 && at == "in the reservation" {
							close(reserved)
							<-goOn
						}
					}
					return false
				})
				a := n.node("a", true)
				r := n.started(a, StartRequest{})
				<-g.entered
				drain := func() chan error {
					drained := make(chan error, 1)
					go func() { drained <- a.Drain(t.Context()) }()
					synctest.Wait()
					return drained
				}
				var drained chan error
				if at == "in the reservation" {
					close(g.open)
					<-reserved
					drained = drain()
					close(goOn)
				} else {
					drained = drain()
					close(g.open)
				}
				if err := <-drained; err != nil {
					t.Fatal(err)
				}
				b := n.node("b", true)
				r = n.ended(b, r.ID, "completed")
				if p := n.pot(store.PotRun, r.ID); p.Settled.Tokens != 50 || p.Held != (store.Amounts{}) {
					t.Errorf("the pot has %+v", p)
				}
			})
		})
	}
}

// Whenever a node dies, who takes its runs over keeps their budgets: nothing stays held,
// and what nobody knows of counts as used.
func TestTakeoverAtEveryCommitWithACap(t *testing.T) {
	capped := func(n *nodes) {
		a := n.agents["test"]
		a.Caps, a.Models[0].Info, a.Models[0].MaxTokens = Caps{MaxTokens: 1_000_000}, dollarPrice(), 1000
	}
	want, commits, once := "", 0, int64(0)
	synctest.Test(t, func(t *testing.T) {
		script, tools := workload(&counter{})
		n := newNodes(t, script, tools...)
		capped(n)
		e, m := n.mortalNode("a", 0, false)
		r := n.ended(e, n.started(e, StartRequest{}).ID, "completed")
		want, commits, once = n.transcript(r.SessionID), m.n, n.pot(store.PotRun, r.ID).Settled.Tokens
	})
	if commits < 10 || once == 0 {
		t.Fatalf("%d commits, %d tokens", commits, once)
	}
	for at := 2; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, r := takeoverAt(t, at, after, want, capped)
					if p := n.pot(store.PotRun, r.ID); p.Held != (store.Amounts{}) || p.Settled.Tokens < once || p.Settled.Tokens > once+20_000 {
						t.Errorf("the pot has %+v; without a crash it has %d tokens", p, once)
					}
				})
			})
		}
	}
}
