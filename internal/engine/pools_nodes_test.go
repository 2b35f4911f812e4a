package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/tool"
)

// TestPoolsDrain: a node of a pool that stops finishes its calls and takes no more; a home
// that stops hands over what pools were asked for, and its next home takes the result.
func TestPoolsDrain(t *testing.T) {
	for _, who := range []string{"owner", "owner in time", "home"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &counter{}
				entered := make(chan struct{}, 2)
				n := newNodes(t, oneCall("act", `{}`), gpu(tool.Read, func(ctx context.Context, c tool.Call) (tool.Result, error) {
					entered <- struct{}{}
					calls.add(c.Key)
					select {
					case <-time.After(20 * time.Second):
					case <-ctx.Done():
					}
					return tool.TextResult("made"), ctx.Err()
				}))
				home := n.node("home", true, pooled("run", "model"))
				pool := n.node("gpu1", false, pooled("tool.gpu"), func(c *Config) {
					if who == "owner" {
						c.Cluster.DrainTimeout = 5 * time.Second
					}
				})
				r := n.started(home, StartRequest{})
				<-entered
				n.node("gpu2", false, pooled("tool.gpu"))
				reader := home
				began := time.Now()
				if who == "home" {
					reader = n.node("home2", true, pooled("run", "model"))
					if err := home.Drain(t.Context()); err != nil || time.Since(began) > time.Second {
						t.Errorf("draining took %v: %v", time.Since(began), err)
					}
					home.Close()
				} else {
					err := pool.Drain(t.Context())
					if (err != nil) != (who == "owner") {
						t.Errorf("drain: %v", err)
					}
					pool.Close()
				}
				r = n.ended(reader, r.ID, "completed")
				n.engine = reader
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, `"made" for a error=false`) || strings.Contains(tr, "stopping") {
					t.Errorf("transcript:\n%s", tr)
				}
				if k := calls.of(r.ID + "/1/a"); k != map[string]int{"owner": 2, "owner in time": 1, "home": 1}[who] {
					t.Errorf("%d calls", k)
				}
				n.clean(r.ID)
			})
		})
	}
}

// TestACallThatNobodyKnowsOfIsGivenBack: the answer to a node's question for calls was
// lost, and the store has it as the owner.
func TestACallThatNobodyKnowsOfIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("made"), nil
		}))
		lossy := &lossyMaker{Store: n.store.(*sqlite.Store)}
		home := n.node("home", true, pooled("run", "model"))
		n.node("gpu", false, pooled("tool.gpu"), func(c *Config) { c.Store = lossy })
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		if k := calls.of(r.ID + "/1/a"); k != 1 || lossy.lost != 1 {
			t.Errorf("%d calls, %d answers lost", k, lossy.lost)
		}
	})
}

type lossyMaker struct {
	*sqlite.Store
	lost int
}

func (s *lossyMaker) ClaimEffects(ctx context.Context, q store.EffectClaim) ([]*store.Effect, error) {
	got, err := s.Store.ClaimEffects(ctx, q)
	if len(got) > 0 && s.lost == 0 {
		s.lost++
		return nil, store.ErrUnknown
	}
	return got, err
}

// Without a bus everything works, later.
func TestPoolsWithoutABus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		script, tools := poolWorkload(calls)
		n := newNodes(t, script, tools...)
		n.bus = nil
		mute := func(c *Config) { c.Cluster.Bus = nil }
		home := n.node("home", true, pooled("run", "model"), mute)
		n.node("gpu", false, pooled("tool.gpu"), mute)
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		if got := n.transcript(r.SessionID); strings.Contains(got, "error=true") || len(calls.n) < 6 {
			t.Errorf("calls: %v, transcript:\n%s", calls.n, got)
		}
		n.clean(r.ID)
	})
}

// What nodes say of themselves.
func TestPoolsOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, nil)
		n.node("all", true)
		n.node("gpu", false, pooled("run", "tool.gpu"))
		api := n.node("api", false)
		all, err := api.Nodes(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatal(all, err)
		}
		for i, want := range [][]string{{"*"}, {"tool.gpu"}, nil} {
			if !slices.Equal(all[i].Pools, want) {
				t.Errorf("%s: %v", all[i].Name, all[i].Pools)
			}
		}
	})
}

// TestACallThatNobodyWantsEnds: its run ended without it, so it is told to end and makes
// room for others.
func TestACallThatNobodyWantsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 2)
		told := errors.New("nobody told it")
		n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			if entered <- struct{}{}; len(entered) == 2 {
				return tool.TextResult("made"), nil
			}
			<-ctx.Done()
			told = context.Cause(ctx)
			return tool.Result{}, ctx.Err()
		}))
		n.agents["test"].FailOnRestart = true
		a, m := n.mortalPool("a", true, 0, false, "run", "model")
		g := n.node("gpu", false, pooled("tool.gpu"), func(c *Config) { c.Cluster.PoolCalls = 1 })
		r := n.started(a, StartRequest{})
		for len(entered) == 0 {
			<-time.After(100 * time.Millisecond)
		}
		m.die()
		a.Close()
		b := n.node("b", true, pooled("run", "model"))
		n.ended(b, r.ID, "failed")
		n.ended(b, n.started(b, StartRequest{}).ID, "completed")
		if !errors.Is(told, errGone) || g.PoolCallsMade() != 0 {
			t.Errorf("it was told %v, and %d calls are made", told, g.PoolCallsMade())
		}
	})
}
