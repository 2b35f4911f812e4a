package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/prompt"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// sleeper is the clock of a machine that can sleep: nothing of it runs meanwhile, timers
// neither, and then that clock alone shows how long it was.
type sleeper struct {
	began time.Time
	slept atomic.Int64
}

func sleeps() *sleeper { return &sleeper{began: time.Now()} }

func (s *sleeper) clock() time.Duration { return time.Since(s.began) + time.Duration(s.slept.Load()) }

func (s *sleeper) sleep(d time.Duration) { s.slept.Add(int64(d)) }

// on is the option of a node on that machine.
func (s *sleeper) on(c *Config) { c.Cluster.Clock = s.clock }

// A machine that slept past the lease of its node has none when it wakes, whatever timers
// say; and takes part again.
func TestALeaseEndsWhileTheMachineSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Idempotent, g))
		s := sleeps()
		a := n.node("a", true, s.on)
		r := n.started(a, StartRequest{})
		<-g.entered
		before := a.node.lease()
		s.sleep(3 * time.Second)
		if got := a.node.lease(); got == "" || got != before {
			t.Fatalf("a nap ended the lease: %q, it was %q", got, before)
		}
		s.sleep(2 * time.Second)
		if got := a.node.lease(); got != "" {
			t.Fatalf("it has the lease %s when it is over", got)
		}
		b := n.node("b", true)
		<-g.entered // at b, or at a under a new lease
		close(g.open)
		n.ended(b, r.ID, "completed")
		if got := a.node.lease(); got == "" || got == before {
			t.Errorf("it has the lease %q, and had %q", got, before)
		}
	})
}

// A renewal that was asked for before the machine slept counts from then: what the store
// says when it wakes is about a lease that is over.
func TestARenewalCountsFromWhenItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		s := sleeps()
		var once sync.Once
		var armed atomic.Bool
		n.picky().set(func(tx *store.Tx) bool {
			if armed.Load() && len(tx.Nodes) > 0 && !tx.Nodes[0].Join {
				once.Do(func() { s.sleep(10 * time.Second) })
			}
			return false
		})
		a := n.node("a", true, s.on)
		before := a.node.lease()
		armed.Store(true)
		pass(1500 * time.Millisecond)
		synctest.Wait()
		if got := a.node.lease(); got == before {
			t.Error("the lease outlived its time")
		}
	})
}

// A tool may have to be found first, on a server that was away. If the machine sleeps in
// that the call is not made: another node may have asked about it since.
func TestNoToolIsCalledAfterASleep(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Once, tool.Idempotent} {
		synctest.Test(t, func(t *testing.T) {
			var a *Engine
			calls := &counter{}
			n := newNodes(t, oneCall("act", `{}`), asking(toolFunc{tool.Spec{Name: "act", Effect: effect}, func(context.Context, tool.Call) (tool.Result, error) {
				calls.add("act")
				if a.node.current() == nil {
					t.Error("it was called without a lease")
				}
				return tool.TextResult("done"), nil
			}}))
			s := sleeps()
			var once sync.Once
			server := n.remotely()
			server.reach = func(context.Context) {
				once.Do(func() { s.sleep(time.Minute) })
				server.set(false)
			}
			a = n.node("a", true, s.on, func(c *Config) { c.Agents = server })
			r := n.paused(n.started(a, StartRequest{}), 1)
			synctest.Wait() // nobody has the run, nor what it is made of
			server.set(true)
			api := n.node("api", false)
			if _, err := api.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"}); err != nil {
				t.Fatal(err)
			}
			if effect == tool.Once {
				n.paused(r, 1) // nobody knows whether it was called
				if calls.of("act") != 0 {
					t.Errorf("it was called %d times", calls.of("act"))
				}
				if _, err := api.Cancel(t.Context(), ref(r.ID), ""); err != nil {
					t.Error(err)
				}
				return
			}
			n.ended(api, r.ID, "completed")
			if calls.of("act") != 1 {
				t.Errorf("it was called %d times", calls.of("act"))
			}
		})
	}
}

// Much may come between the decision to ask a model and the question: what an application
// changes, limits that are waited for. If the machine sleeps in that nothing is asked.
func TestNoModelIsAskedAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *Engine
		n := newNodes(t, func(context.Context, int, *model.Request) (*message.Message, error) {
			if a.node.current() == nil {
				t.Error("it was asked without a lease")
			}
			return say("Hello.")
		})
		s := sleeps()
		var once sync.Once
		a = n.node("a", true, s.on, func(c *Config) {
			c.TransformContext = func(_ context.Context, _ Ref, msgs []message.Message) ([]message.Message, error) {
				once.Do(func() { s.sleep(time.Minute) })
				return msgs, nil
			}
		})
		n.ended(a, n.started(a, StartRequest{}).ID, "completed")
	})
}

// A machine that sleeps while a run asks for its context has that asked again: what it was
// asked of is gone when it wakes, and the run would go on without for good.
func TestNoRunIsStartedAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			return say("I was told: " + shown(req))
		})
		s := sleeps()
		var asked atomic.Int32
		n.agents["test"].Context = []ContextSource{func(context.Context, *ContextRequest) ([]prompt.Block, error) {
			if asked.Add(1) == 1 {
				s.sleep(time.Minute)
				return nil, errors.New("connection reset by peer")
			}
			return []prompt.Block{{Kind: "app", Text: "the sky is green"}}, nil
		}}
		a := n.node("a", true, s.on)
		r := n.ended(a, n.started(a, StartRequest{}).ID, "completed")
		if asked.Load() != 2 || !strings.Contains(n.transcript(r.SessionID), "the sky is green") {
			t.Errorf("asked %d times: %s", asked.Load(), n.transcript(r.SessionID))
		}
	})
}

// A compaction asks more than once. After a sleep between two of its questions it asks
// nothing more.
func TestNoSummaryIsAskedForAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *Engine
		s := sleeps()
		var once sync.Once
		n := newNodes(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			if !summarises(req) {
				return say("fine")
			}
			if a.node.current() == nil {
				t.Error("it was asked without a lease")
			}
			slept := false
			once.Do(func() { s.sleep(time.Minute); slept = true })
			if slept {
				return nil, &model.Error{Class: model.ClassOverloaded, Provider: "fake", Message: "busy"}
			}
			return say("<summary>\nwords\n</summary>")
		})
		a = n.node("a", true, s.on)
		r := n.says("", "one "+strings.Repeat("word ", 500))
		for range 3 {
			r = n.says(r.SessionID, "more "+strings.Repeat("word ", 500))
		}
		c, err := a.Compact(t.Context(), StartRequest{SessionID: r.SessionID})
		if err != nil {
			t.Fatal(err)
		}
		if c = n.ended(a, c.ID, "completed"); c.StopReason != "compacted" {
			t.Errorf("%+v", c)
		}
	})
}
