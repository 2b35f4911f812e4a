package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// pooled is a change of a node's configuration.
func pooled(pools ...string) func(*Config) {
	return func(c *Config) { c.Cluster.Pools = pools }
}

// gpu is a tool of the pool tool.gpu.
func gpu(effect tool.Effect, f func(ctx context.Context, c tool.Call) (tool.Result, error)) tool.Tool {
	return toolFunc{tool.Spec{Name: "act", Effect: effect, Pool: "tool.gpu"}, f}
}

// ledger is what the store has of calls for pools.
func (n *nodes) ledger() string {
	n.t.Helper()
	loads, err := n.store.(store.Cluster).Pools(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	var s []string
	for _, l := range loads {
		s = append(s, fmt.Sprintf("%s %d+%d", l.Pool, l.Pending, l.Started))
	}
	return strings.Join(s, ", ")
}

// clean fails if the ledger has anything of a run that has ended.
func (n *nodes) clean(id string) {
	n.t.Helper()
	all, err := n.store.(store.Cluster).Effects(n.t.Context(), store.EffectFilter{Tenant: store.DefaultTenant, RunID: id})
	if err != nil || len(all) > 0 {
		n.t.Fatalf("left over: %d calls, %v", len(all), err)
	}
}

// mortalPool is a node that can die and makes calls of pools.
func (n *nodes) mortalPool(name string, worker bool, at int, after bool, pools ...string) (*Engine, *mortal) {
	m := &mortal{Store: n.store.(*sqlite.Store), at: at, after: after, down: make(chan struct{})}
	return n.node(name, worker, pooled(pools...), func(c *Config) {
		c.Store, c.Cluster.Bus = m, mute{n.bus, m}
	}), m
}

func TestCallsAreMadeAtNodesOfTheirPool(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Idempotent, tool.Once} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []tool.Call
				n := newNodes(t, oneCall("act", `{"x":1}`), gpu(effect, func(_ context.Context, c tool.Call) (tool.Result, error) {
					seen = append(seen, c)
					c.Progress(tool.Progress{Stdout: "half ", Stderr: strings.Repeat("é", 3000)})
					c.Progress(tool.Progress{Message: "nearly", Done: 1, Total: 2})
					return tool.Result{Content: []message.Block{message.Text("made")}, Details: json.RawMessage(`{"on":"gpu"}`)}, nil
				}))
				home := n.node("home", true, pooled("run", "model", "tool"))
				gpus := n.node("gpu", false, pooled("tool.gpu"))
				r := n.started(home, StartRequest{})
				got := n.watched(home, r.ID)
				r = n.ended(gpus, r.ID, "completed")
				if len(seen) != 1 || seen[0].Key != r.ID+"/1/a" || string(seen[0].Args) != `{"x":1}` || seen[0].SessionID != r.SessionID || seen[0].Step != 1 {
					t.Errorf("calls: %+v", seen)
				}
				evs := got()
				n.whole(home, r.ID, evs)
				if k := kinds(evs); !strings.Contains(k, "tool_started tool_stdout tool_stderr tool_stderr tool_stderr tool_progress tool_completed") {
					t.Errorf("events: %s", k)
				}
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, `"made" for a error=false`) {
					t.Errorf("transcript:\n%s", tr)
				}
				n.clean(r.ID)
			})
		})
	}
}

// A node that serves a pool makes the calls of its runs itself: nothing is asked.
func TestANodeThatServesThePoolAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("made"), nil }))
		for i, pools := range [][]string{nil, {"run", "model", "tool.gpu"}} {
			e, m := n.mortalPool(fmt.Sprint("n", i), true, 0, false, pools...)
			began := m.n
			n.ended(e, n.started(e, StartRequest{}).ID, "completed")
			t.Logf("%d commits", m.n-began)
			if k := n.ledger(); k != "" {
				t.Errorf("the ledger has %s", k)
			}
			e.Close()
		}
	})
}

// Parallel calls go to several nodes, within their limits.
func TestPoolsHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, total := 0, 0, 0
		script := func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
			if step > 0 {
				return say("done")
			}
			var calls []message.Block
			for i := range 12 {
				calls = append(calls, call(fmt.Sprint("c", i), "act", `{}`))
			}
			return say("", calls...)
		}
		n := newNodes(t, script, gpu(tool.Read, func(context.Context, tool.Call) (tool.Result, error) {
			mu.Lock()
			now++
			most, total = max(most, now), total+1
			mu.Unlock()
			<-time.After(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return tool.TextResult("made"), nil
		}))
		home := n.node("home", true, pooled("run", "model"))
		for i := range 2 {
			n.node(fmt.Sprint("gpu", i), false, pooled("tool.gpu"), func(c *Config) { c.Cluster.PoolCalls = 2 })
		}
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		if most != 4 || total != 12 {
			t.Errorf("%d at a time, %d in all", most, total)
		}
		n.clean(r.ID)
	})
}

// A call that nobody takes waits, says so, and fails in the end; its tool's clock does
// not run meanwhile.
func TestACallWaitsForItsPool(t *testing.T) {
	for _, comes := range []bool{true, false} {
		t.Run(fmt.Sprint("somebody comes ", comes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := 0
				n := newNodes(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act", Effect: tool.Once, Pool: "tool.gpu", Timeout: time.Minute}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					made++
					<-time.After(50 * time.Second)
					return tool.TextResult("made"), ctx.Err()
				}})
				home := n.node("home", true, pooled("run", "model"), func(c *Config) { c.Cluster.PoolWait = 5 * time.Minute })
				r := n.started(home, StartRequest{})
				got := n.watched(home, r.ID)
				<-time.After(4 * time.Minute)
				if k := n.ledger(); k != "tool.gpu 1+0" {
					t.Errorf("the ledger has %q", k)
				}
				if comes {
					n.node("gpu", false, pooled("tool.gpu"))
				}
				r = n.ended(home, r.ID, "completed")
				evs := got()
				waits := slices.IndexFunc(evs, func(ev event.Event) bool {
					c, is := ev.Data.(*event.Checkpoint)
					return is && c.Kind == "pool" && strings.Contains(c.Prompt, "act waits for a node that serves pool tool.gpu")
				})
				if waits < 0 {
					t.Errorf("nobody was told: %s", kinds(evs))
				}
				want := map[bool]string{true: `"made"`, false: "no node of pool tool.gpu took the call within 5m0s (cluster.pool_wait)"}[comes]
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, want) || made != map[bool]int{true: 1}[comes] {
					t.Errorf("%d calls, transcript:\n%s", made, tr)
				}
				n.clean(r.ID)
			})
		})
	}
}

// Results that are too large become artifacts, errors and time-outs are the tool's, and
// what a node lacks it says.
func TestOutcomesOfPools(t *testing.T) {
	for name, x := range map[string]struct {
		f    func(ctx context.Context, c tool.Call) (tool.Result, error)
		want string
	}{
		"large": {func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult(strings.Repeat("long ", 20_000)), nil
		}, "too large (100000 bytes)"},
		"error": {func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, fmt.Errorf("no disk") }, `"no disk" for a error=true`},
		"panic": {func(context.Context, tool.Call) (tool.Result, error) { panic("oh") }, "act panicked: oh"},
		"slow": {func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, context.Cause(ctx)
		}, "act took longer than 1m0s"},
		"deaf": {func(context.Context, tool.Call) (tool.Result, error) {
			<-time.After(time.Minute + time.Second)
			return tool.TextResult("late"), nil
		}, "and was abandoned; it may still happen"},
		"huge": {func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult(strings.Repeat("x", maxPoolResult)), nil
		}, "can not be sent to its run"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, x.f))
				home := n.node("home", true, pooled("run", "model", "tool"))
				n.node("gpu", false, pooled("tool.gpu"))
				r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, x.want) {
					t.Errorf("transcript:\n%.2000s", tr)
				}
				n.clean(r.ID)
				pass(2 * time.Minute)
			})
		})
	}
}

// A call is cancelled in each state: before anybody took it, while it is made, and by a
// tool that does not listen.
func TestCallsOfPoolsAreCancelled(t *testing.T) {
	for _, state := range []string{"pending", "made", "deaf", "lost"} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				entered := make(chan struct{}, 1)
				n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					entered <- struct{}{}
					if state == "deaf" {
						<-time.After(time.Minute + time.Second)
					}
					<-ctx.Done()
					return tool.TextResult("stopped in time"), nil
				}))
				home := n.node("home", true, pooled("run", "model", "tool"))
				r := n.started(home, StartRequest{})
				if state == "pending" {
					<-time.After(10 * time.Second)
				} else {
					g, m := n.mortalPool("gpu", false, 0, false, "tool.gpu")
					<-entered
					if state == "lost" {
						m.die()
						g.Close()
					}
				}
				began := time.Now()
				if _, err := home.Cancel(t.Context(), ref(r.ID), "enough"); err != nil {
					t.Fatal(err)
				}
				r = n.ended(home, r.ID, "cancelled")
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("it took %v", took)
				}
				want := map[string]string{"pending": "Not executed: the run is ending", "made": "stopped in time", "deaf": "may still happen", "lost": "may"}[state]
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, want) {
					t.Errorf("transcript:\n%s", tr)
				}
				n.clean(r.ID)
				if state == "pending" { // nobody makes it afterwards
					n.node("gpu", false, pooled("tool.gpu"))
					<-time.After(10 * time.Second)
					if len(entered) > 0 {
						t.Error("it was made")
					}
				}
				pass(2 * time.Minute)
			})
		})
	}
}

// A proposal of a pool is made where it is decided about, and nowhere else.
func TestProposalsOfPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		act := toolFunc{tool.Spec{Name: "act", Pool: "tool.gpu", Approval: "always", Effect: tool.Once}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("made"), nil
		}}
		n := newNodes(t, oneCall("act", `{}`), act)
		n.agents["test"].Rules.Capture = true
		home, gpus := n.node("home", true, pooled("run", "model", "tool")), n.node("gpu", false, pooled("tool.gpu"))
		r := n.ended(home, n.started(home, StartRequest{Mode: Autonomous}).ID, "completed")
		if _, err := home.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "pool tool.gpu") || len(calls.n) != 0 {
			t.Errorf("%v, calls %v", err, calls.n)
		}
		if _, err := gpus.Apply(t.Context(), decision(r)); err != nil || calls.of(r.ID+"/1/a") != 1 {
			t.Errorf("%v, calls %v", err, calls.n)
		}
	})
}

// A tool whose server comes back after its call was begun is not called at a node that
// does not serve its pool.
func TestAMisplacedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		act := gpu(tool.Read, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("made"), nil
		})
		n := newNodes(t, oneCall("act", `{}`), act)
		whole := n.agents["test"]
		without := *whole
		without.Tools = tool.Set{}
		without.Unreachable = []Unreachable{{Server: "s", Reason: "no"}}
		without.Reach = func(context.Context) { n.agents["test"] = whole }
		entered := make(chan struct{}, 1)
		a, m := n.mortalPool("a", true, 0, false) // it makes all calls itself
		whole.Tools, _ = tool.NewSet(gpu(tool.Read, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}))
		r := n.started(a, StartRequest{})
		<-entered
		pass(time.Second) // it may be ahead of its commit
		m.die()
		a.Close()
		whole.Tools, _ = tool.NewSet(act)
		n.agents["test"] = &without
		b := n.node("b", true, pooled("run", "model", "tool"))
		r = n.ended(b, r.ID, "completed")
		n.engine = b
		if tr := n.transcript(r.SessionID); !strings.Contains(tr, "Not executed: act belongs to pool tool.gpu") || len(calls.n) != 0 {
			t.Errorf("calls %v, transcript:\n%s", calls.n, tr)
		}
	})
}

// A tool that tells without end puts off neither its cancel nor the look at its result.
func TestNewsPutNothingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 1)
		n := newNodes(t, oneCall("act", `{}`), gpu(tool.Read, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			entered <- struct{}{}
			for range 3000 { // it does not listen
				c.Progress(tool.Progress{Message: "still", Done: 1})
				<-time.After(20 * time.Millisecond)
			}
			return tool.TextResult("made"), nil
		}))
		home := n.node("home", true, pooled("run", "model", "tool"))
		n.node("gpu", false, pooled("tool.gpu"), func(c *Config) { c.AbandonAfter = time.Hour })
		r := n.started(home, StartRequest{})
		<-entered
		began := time.Now()
		if _, err := home.Cancel(t.Context(), ref(r.ID), "enough"); err != nil {
			t.Fatal(err)
		}
		n.ended(home, r.ID, "cancelled")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		pass(2 * time.Minute)
	})
}

// A store that takes no commits for a while keeps no call from failing in the end.
func TestACallThatCanNotBeGivenUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, oneCall("act", `{}`), gpu(tool.Read, nil))
		s := &stubborn{Store: n.store.(*sqlite.Store)}
		home := n.node("home", true, pooled("run", "model", "tool"), func(c *Config) { c.Store, c.Cluster.PoolWait = s, time.Minute })
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		if tr := n.transcript(r.SessionID); !strings.Contains(tr, "no node of pool tool.gpu took the call within 1m0s") || s.refused != 3 {
			t.Errorf("refused %d times, transcript:\n%s", s.refused, tr)
		}
	})
}

// stubborn refuses the first cancels of calls.
type stubborn struct {
	*sqlite.Store
	refused int
}

func (s *stubborn) Commit(ctx context.Context, tx *store.Tx) error {
	if len(tx.Effects) > 0 && tx.Effects[0].Op == store.CancelEffect && s.refused < 3 {
		s.refused++
		return store.ErrAway
	}
	return s.Store.Commit(ctx, tx)
}
