package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/rate"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// What a node hands over as it stops was not interrupted: resume_on_restart does not
// concern it. What a node had that died does.
func TestAHandOverIsNoRestart(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Idempotent, g))
			n.agents["test"].FailOnRestart = true
			a, b := n.node("a", true), n.node("b", true)
			r := n.started(a, StartRequest{})
			<-g.entered
			if dies {
				a.Close()
				if r = n.ended(b, r.ID, "failed"); r.StopReason != "interrupted" {
					t.Errorf("%+v", r)
				}
				return
			}
			drained := make(chan error, 1)
			go func() { drained <- a.Drain(t.Context()) }()
			synctest.Wait()
			close(g.open)
			if err := <-drained; err != nil {
				t.Error(err)
			}
			n.ended(b, r.ID, "completed")
		})
	}
}

// A call that waits for rate_limits was not begun: a node that stops does not wait for
// it, and another one makes it.
func TestDrainLeavesACallThatWaits(t *testing.T) {
	for _, capped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNodes(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
				m, _ := say("Yes.")
				if step == 0 {
					m, _ = say("", call("c", "echo", `{}`))
				}
				return using(m, 100, 100)
			}, echoTool(tool.Read))
			test := n.agents["test"]
			test.Rates = RateLimits{PerUser: rate.Limit{Tokens: 100}}
			if capped {
				test.Models[0].Info, test.Models[0].MaxTokens = dollarPrice(), 1000
				test.Caps = Caps{MaxTokens: 1_000_000}
			}
			a := n.node("a", true)
			r := n.started(a, StartRequest{User: "kim"})
			synctest.Wait()
			if a.CallsWaiting() != 1 {
				t.Fatalf("%d calls wait", a.CallsWaiting())
			}
			began := time.Now()
			if err := a.Drain(t.Context()); err != nil || time.Since(began) > time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if a.CallsWaiting() != 0 {
				t.Error("its call still waits")
			}
			b := n.node("b", true)
			n.ended(b, r.ID, "completed")
			if capped {
				if p := n.pot(store.PotRun, r.ID); p.Settled.Tokens != 400 || p.Held != (store.Amounts{}) {
					t.Errorf("the pot has %+v", p)
				}
			}
		})
	}
}

// An engine that is alone tells parents of their children by memory. If it ends before
// that, the first node on its store looks, as the engine itself would have.
func TestTheFirstNodeLooksForWhatWasNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, calls := dynasty(t)
		r := h.paused(h.run("go"), 1)
		asks := r.Interrupts[0]
		h.engine.Close()
		good := h.store
		h.store = &pickyStore{Store: good}
		h.restart()
		h.store.(*pickyStore).set(func(tx *store.Tx) bool { return about(tx, r.ID) || about(tx, r.ID+".c1") })
		if _, err := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: asks.ID, Decision: "approve"}); err != nil {
			t.Fatal(err)
		}
		h.ends(&Run{ID: asks.RunID}, "completed")
		h.engine.Close()
		for _, id := range []string{r.ID, r.ID + ".c1"} {
			if row, err := good.Run(t.Context(), store.DefaultTenant, id); err != nil || row.Status != string(run.Paused) {
				t.Fatalf("run %s: %+v, %v", id, row, err)
			}
		}
		h.store = good
		n := &nodes{h, &MemoryBus{}}
		n.ended(n.node("a", true), r.ID, "completed")
		if len(calls.n) != 1 {
			t.Errorf("calls: %v", calls.n)
		}
	})
}

// lazyCluster claims nothing until it is awake.
type lazyCluster struct {
	store.Store
	store.Cluster
	awake atomic.Bool
}

func (s *lazyCluster) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	if !s.awake.Load() {
		return nil, nil
	}
	return s.Cluster.Claim(ctx, q)
}

// What a node left below a run that has ended is looked for when its lease is over, and
// not a minute later.
func TestOrphansAreFoundWhenTheirNodeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := dynasty(t)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		good := n.store
		s := n.picky()
		a := n.node("a", true)
		r := n.paused(n.started(a, StartRequest{}), 1)
		a.Close()
		middle, low := r.ID+".c1", r.ID+".c1.c1"
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
		// It sees b and finds no orphans yet, and takes nothing as long as b lives.
		lazy := &lazyCluster{Store: good, Cluster: good.(store.Cluster)}
		d := n.node("d", true, func(c *Config) { c.Store = lazy })
		pass(2 * time.Second)
		go func() { _ = b.Steer(t.Context(), ref(middle), blocks("go on")) }()
		<-down
		began := time.Now()
		b.Close()
		n.agents["kid"] = kid
		lazy.awake.Store(true)
		n.ended(d, low, "cancelled")
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
