package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/tool"
)

// ofPool is a tool of another pool.
type ofPool struct {
	tool.Tool
	pool string
}

func (t ofPool) Spec() tool.Spec {
	s := t.Tool.Spec()
	s.Pool = t.pool
	return s
}

// poolWorkload is workload with tools of the pool tool.gpu.
func poolWorkload(calls *counter) (modelFunc, []tool.Tool) {
	script, tools := workload(calls)
	for i := range tools {
		tools[i] = ofPool{tools[i], "tool.gpu"}
	}
	return script, tools
}

// mortalMaker is a store as a node of a pool sees it that dies when it takes calls, or
// ends one: before or after that is durable.
type mortalMaker struct {
	*mortal
}

func (s *mortalMaker) ClaimEffects(ctx context.Context, q store.EffectClaim) ([]*store.Effect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, errDead
	}
	q.Each = 1
	free, err := s.Store.Pools(ctx)
	if err != nil || len(free) == 0 || free[0].Pending == 0 {
		return s.Store.ClaimEffects(ctx, q)
	}
	if s.n++; s.n == s.at {
		defer close(s.down)
		s.dead = true
		if s.after {
			_, _ = s.Store.ClaimEffects(ctx, q)
		}
		return nil, errDead
	}
	return s.Store.ClaimEffects(ctx, q)
}

func (s *mortalMaker) Effects(ctx context.Context, f store.EffectFilter) ([]*store.Effect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, errDead
	}
	return s.Store.Effects(ctx, f)
}

// makerNode is a node of a pool that can die.
func (n *nodes) makerNode(name string, at int, after bool, pools ...string) (*Engine, *mortalMaker) {
	m := &mortalMaker{mortal: &mortal{Store: n.store.(*sqlite.Store), at: at, after: after, down: make(chan struct{})}}
	return n.node(name, false, pooled(pools...), func(c *Config) { c.Store, c.Cluster.Bus = m, mute{n.bus, m.mortal} }), m
}

// buried has an engine gone as soon as its store is.
func (n *nodes) buried(e *Engine, down chan struct{}) {
	go func() {
		select {
		case <-down:
		case <-n.t.Context().Done():
		}
		e.Close()
	}()
}

func poolRun(t *testing.T) (want string, homeCommits, makerCommits int) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		script, tools := poolWorkload(calls)
		n := newNodes(t, script, tools...)
		home, hm := n.mortalPool("home", true, 0, false, "run", "model")
		_, gm := n.makerNode("gpu", 0, false, "tool.gpu")
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		want, homeCommits, makerCommits = n.transcript(r.SessionID), hm.n, gm.n
		n.clean(r.ID)
	})
	return want, homeCommits, makerCommits
}

func onceAtMost(t *testing.T, calls *counter) {
	t.Helper()
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for key, k := range calls.n {
		if strings.HasPrefix(key, "once ") && k > 1 {
			t.Errorf("%s ran %d times", key, k)
		}
	}
}

// TestAHomeDiesAtEveryCommit: what it asked pools for goes on, is made once, and is
// taken by the next home. Nothing is in doubt: who makes the calls lives.
func TestAHomeDiesAtEveryCommit(t *testing.T) {
	want, commits, _ := poolRun(t)
	if commits < 8 {
		t.Fatalf("%d commits", commits)
	}
	for at := 2; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					calls := &counter{}
					script, tools := poolWorkload(calls)
					n := newNodes(t, script, tools...)
					a, m := n.mortalPool("a", true, at, after, "run", "model")
					r := n.started(a, StartRequest{})
					n.node("gpu", false, pooled("tool.gpu"))
					b := n.node("b", true, pooled("run", "model"))
					got := n.watched(b, r.ID)
					n.buried(a, m.down)
					if n.answerDone(b, r.ID) {
						t.Error("somebody was asked about a call in doubt")
					}
					r = n.ended(b, r.ID, "completed")
					n.whole(b, r.ID, got())
					n.engine = b
					if got := n.transcript(r.SessionID); got != want {
						t.Errorf("the transcript differs:\n%s\nwant\n%s", got, want)
					}
					calls.mu.Lock()
					for key, k := range calls.n {
						if k > 1 && !strings.HasPrefix(key, "read ") {
							t.Errorf("%s ran %d times", key, k)
						}
					}
					calls.mu.Unlock()
					n.clean(r.ID)
				})
			})
		}
	}
}

// TestAnOwnerDiesAtEveryCommit: its calls are made by another node of the pool, but for
// those of once, of which people are asked as after any crash.
func TestAnOwnerDiesAtEveryCommit(t *testing.T) {
	want, _, commits := poolRun(t)
	if commits < 8 {
		t.Fatalf("%d commits", commits)
	}
	for at := 1; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { ownerDies(t, at, after, want, false) })
			})
		}
	}
}

// TestHomeAndOwnerDieTogether is the same for both at once.
func TestHomeAndOwnerDieTogether(t *testing.T) {
	want, _, commits := poolRun(t)
	for at := 1; at <= commits; at += 2 {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { ownerDies(t, at, after, want, true) })
			})
		}
	}
}

func ownerDies(t *testing.T, at int, after bool, want string, both bool) {
	calls := &counter{}
	script, tools := poolWorkload(calls)
	n := newNodes(t, script, tools...)
	home, hm := n.mortalPool("home", true, 0, false, "run", "model")
	g, m := n.makerNode("gpu1", at, after, "tool.gpu")
	r := n.started(home, StartRequest{})
	n.buried(g, m.down)
	reader := home
	if both {
		reader = n.node("home2", true, pooled("run", "model"))
		go func() {
			select {
			case <-m.down:
			case <-t.Context().Done():
			}
			hm.die()
			home.Close()
		}()
	}
	go func() {
		select {
		case <-m.down:
			n.other("gpu2", false, pooled("tool.gpu"))
		case <-t.Context().Done():
		}
	}()
	began := time.Now()
	uncertain := n.answerDone(reader, r.ID)
	r = n.ended(reader, r.ID, "completed")
	select {
	case <-m.down:
	default:
		// Calls are taken together when they meet, so that there may be fewer commits.
		if at <= 8 {
			t.Errorf("it did not die: %d of %d commits", m.n, at)
		}
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	n.engine = reader
	if got := n.transcript(r.SessionID); !uncertain && got != want {
		t.Errorf("the transcript differs:\n%s\nwant\n%s", got, want)
	}
	onceAtMost(t, calls)
	n.clean(r.ID)
}

// TestAResultWaitsForTheNextHome: a result that is there before the next home is, and one
// that comes after it.
func TestAResultWaitsForTheNextHome(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("early ", early), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				entered, open := make(chan struct{}, 9), make(chan struct{})
				n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
					entered <- struct{}{}
					<-open
					return tool.TextResult("made"), nil
				}))
				a, m := n.mortalPool("a", true, 0, false, "run", "model")
				n.node("gpu", false, pooled("tool.gpu"))
				r := n.started(a, StartRequest{Mode: Autonomous})
				<-entered
				m.die()
				a.Close()
				if early {
					close(open)
				}
				pass(time.Second)
				b := n.node("b", true, pooled("run", "model"))
				if !early {
					<-time.After(30 * time.Second)
					if x, err := b.Get(t.Context(), ref(r.ID)); err != nil || x.Status != "running" {
						t.Fatalf("%+v, %v", x, err)
					}
					close(open)
				}
				r = n.ended(b, r.ID, "completed")
				n.engine = b
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, `"made" for a error=false`) || len(entered) != 0 {
					t.Errorf("%d more calls, transcript:\n%s", len(entered), tr)
				}
			})
		})
	}
}

// TestAnOwnerThatWasStoppedIsNotBelieved: a node of the pool whose lease was over before
// it noticed. What it brings then counts if it is the first to bring it, and nothing if
// its run has decided otherwise.
func TestAnOwnerThatWasStoppedIsNotBelieved(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Once} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				calls := &counter{}
				n := newNodes(t, oneCall("act", `{}`), gpu(effect, func(ctx context.Context, c tool.Call) (tool.Result, error) {
					calls.add(c.Key)
					if calls.of(c.Key) > 1 {
						return tool.TextResult("made by the other"), nil
					}
					return tool.TextResult("made late"), g.pass(context.WithoutCancel(ctx))
				}))
				home := n.node("home", true, pooled("run", "model"))
				one := n.node("gpu1", false, pooled("tool.gpu"))
				r := n.started(home, StartRequest{Mode: Autonomous})
				<-g.entered
				old := one.node.lease()
				n.node("gpu2", false, pooled("tool.gpu"))
				if err := n.store.Commit(t.Context(), &store.Tx{Tenant: "default", Nodes: []store.NodeChange{{Node: store.Node{ID: old}, Leave: true}}}); err != nil {
					t.Fatal(err)
				}
				r = n.ended(home, r.ID, "completed")
				close(g.open)
				pass(10 * time.Second)
				want := map[tool.Effect]string{tool.Read: "made by the other", tool.Once: "It may or may not have happened"}[effect]
				if tr := n.transcript(r.SessionID); !strings.Contains(tr, want) {
					t.Errorf("transcript:\n%s", tr)
				}
				if k := calls.of(r.ID + "/1/a"); k != map[tool.Effect]int{tool.Read: 2, tool.Once: 1}[effect] {
					t.Errorf("%d calls", k)
				}
				n.clean(r.ID)
				if now := one.node.lease(); now == "" || now == old { // it takes part again
					t.Errorf("its lease is %q, and was %q", now, old)
				}
			})
		})
	}
}

// TestARetriedCallIsAskedForAnew: a person has a call in doubt made again; what the first
// owner brings late is not the outcome of the second call.
func TestARetriedCallIsAskedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		calls := &counter{}
		n := newNodes(t, oneCall("act", `{}`), gpu(tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if calls.add(c.Key); calls.of(c.Key) > 1 {
				<-time.After(time.Second)
				return tool.TextResult("the second"), nil
			}
			return tool.TextResult("the first"), g.pass(context.WithoutCancel(ctx))
		}))
		home := n.node("home", true, pooled("run", "model"))
		one := n.node("gpu1", false, pooled("tool.gpu"))
		r := n.started(home, StartRequest{})
		<-g.entered
		if err := n.store.Commit(t.Context(), &store.Tx{Tenant: "default", Nodes: []store.NodeChange{{Node: store.Node{ID: one.node.lease()}, Leave: true}}}); err != nil {
			t.Fatal(err)
		}
		for {
			x, err := home.Get(t.Context(), ref(r.ID))
			if err != nil {
				t.Fatal(err)
			}
			if len(x.Interrupts) == 1 {
				if _, err := home.Answer(t.Context(), AnswerRequest{Interrupt: x.Interrupts[0].ID, Decision: "retry"}); err != nil {
					t.Fatal(err)
				}
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		close(g.open)
		r = n.ended(home, r.ID, "completed")
		if tr := n.transcript(r.SessionID); !strings.Contains(tr, `"the second" for a error=false`) {
			t.Errorf("transcript:\n%s", tr)
		}
	})
}
