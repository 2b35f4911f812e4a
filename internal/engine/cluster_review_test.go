package engine

import (
	"context"
	"strings"
	"sync"
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

// skewed is a store whose clock is ahead of everybody's.
type skewed struct {
	store.Store
	store.Cluster
	ahead int64
}

func (s *skewed) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	q.Now += s.ahead
	return s.Cluster.Claim(ctx, q)
}

// An interrupt that has expired by the store's clock expires, also at a node whose own
// clock is behind: otherwise it would be claimed for nothing again and again.
func TestAnInterruptExpiresByTheClockOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, oneCall(AskUserQuestion, `{"question":"Why?"}`))
		a := n.agents["test"]
		a.AskUser, a.Settings.Interrupts = true, run.Expiry{AfterMS: (10 * time.Hour).Milliseconds()}
		n.store = &skewed{n.store, n.store.(store.Cluster), (3 * time.Hour).Milliseconds()}
		w := n.node("a", true, func(c *Config) { c.Cluster.Lease, c.Cluster.Poll = 100*time.Hour, 10*time.Second })
		r := n.paused(n.started(w, StartRequest{}), 1)
		began := time.Now()
		pass(7*time.Hour - time.Minute)
		r = n.ended(w, r.ID, "completed")
		if d := time.Since(began); d < 7*time.Hour-time.Minute || d > 7*time.Hour+time.Minute {
			t.Errorf("it took %v", d)
		}
		if row, err := n.store.Run(t.Context(), "default", r.ID); err != nil || row.Epoch > 5 {
			t.Errorf("%+v, %v", row, err)
		}
	})
}

// A run that is about to be given back, and that has mail, is not parked: who asks for it
// to be driven would not be told again.
func TestADriveFindsWhatCameAsTheLastOneLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			if step == 0 {
				return say("", call("q", AskUserQuestion, `{"question":"Why?"}`))
			}
			return say("Done.")
		})
		n.agents["test"].AskUser = true
		s := n.picky()
		x := &idle{}
		worker := n.node("worker", false, func(c *Config) { c.Cluster.Executor = x })
		other := n.node("other", false, func(c *Config) { c.Cluster.Executor = x })
		r := n.started(other, StartRequest{})
		leaving, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s.set(func(tx *store.Tx) bool {
			if len(tx.Claims) > 0 && tx.Claims[0].Node == "" {
				once.Do(func() { close(leaving); <-goOn })
			}
			return false
		})
		first := make(chan Parked, 1)
		go func() {
			p, err := worker.Drive(t.Context(), ref(r.ID))
			if err != nil {
				t.Error(err)
			}
			first <- p
		}()
		<-leaving
		answered := make(chan error, 1)
		go func() {
			_, err := other.Answer(t.Context(), AnswerRequest{Run: r.ID, Answer: text("because")})
			answered <- err
		}()
		synctest.Wait()
		if p, err := other.Drive(t.Context(), ref(r.ID)); fault.KindOf(err) != fault.Conflict {
			t.Errorf("another drive: %+v, %v", p, err)
		}
		close(goOn)
		if p := <-first; p.Status != run.Completed {
			t.Errorf("the first drive: %+v", p)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// idle is an executor that does nothing by itself.
type idle struct{}

func (idle) Submit(context.Context, Ref) error { return nil }
func (idle) Wake(context.Context, Ref) error   { return nil }
func (idle) Cancel(context.Context, Ref) error { return nil }

// slowClaims is a store whose answers to claims are held up.
type slowClaims struct {
	store.Store
	store.Cluster
	hold    atomic.Bool
	claimed chan struct{}
	goOn    chan struct{}
}

func (s *slowClaims) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	got, err := s.Cluster.Claim(ctx, q)
	if len(got) > 0 && s.hold.CompareAndSwap(true, false) {
		close(s.claimed)
		<-s.goOn
	}
	return got, err
}

// What was claimed just as the node was told to stop is given back and not begun: nobody
// would wait for it any more.
func TestDrainMeetsAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		n := newNodes(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act"}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			pass(time.Second)
			return tool.TextResult("done"), ctx.Err()
		}})
		s := &slowClaims{Store: n.store, Cluster: n.store.(store.Cluster), claimed: make(chan struct{}), goOn: make(chan struct{})}
		api := n.node("api", false)
		a := n.node("a", true, func(c *Config) { c.Store = s })
		s.hold.Store(true)
		r := n.started(api, StartRequest{Mode: Autonomous})
		<-s.claimed
		if err := a.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		close(s.goOn)
		pass(500 * time.Millisecond) // a server answers its last requests
		synctest.Wait()
		a.Close()
		b := n.node("b", true)
		r = n.ended(b, r.ID, "completed")
		if k := kinds(got2(b, r.ID, t)); strings.Contains(k, "run_resumed") || len(calls.n) != 1 {
			t.Errorf("calls %v, events %s", calls.n, k)
		}
	})
}

// A session that was kept for something is free again, also if the store could not be told
// so at once.
func TestAHoldThatCouldNotBeGivenBackIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		s := n.picky()
		a := n.node("a", true)
		r := n.ended(a, n.started(a, StartRequest{}).ID, "completed")
		var refused atomic.Int32
		s.set(func(tx *store.Tx) bool {
			return len(tx.Holds) == 1 && tx.Holds[0].Node == "" && refused.Add(1) <= 2
		})
		if _, err := a.Append(t.Context(), ref(r.SessionID), message.User("by the way")); err == nil {
			t.Error("it was appended although it could not be stored")
		}
		next := n.started(a, StartRequest{SessionID: r.SessionID})
		n.ended(a, next.ID, "completed")
	})
}

// Who asks something of a run while no worker is there is told so, and it is done when
// there is one.
func TestNobodyIsThereToDoWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		api := n.node("api", false)
		r := n.started(api, StartRequest{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := api.Cancel(ctx, ref(r.ID), "")
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "no worker is there") || time.Since(began) > 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		n.node("worker", true)
		n.ended(api, r.ID, "cancelled")
	})
}

// What only says that there is something in the store takes no room at a reader that is
// slow, however often it is said.
func TestSignsForASlowReaderAreOne(t *testing.T) {
	f := &feed{limit: 10, wake: make(chan struct{}, 1)}
	for i := range int64(1000) {
		f.put(piece{durable: i, look: i == 500})
	}
	items, err := f.next(t.Context(), nil, newPulse(0, 0), nil)
	if err != nil || len(items) != 1 || !items[0].look || items[0].durable != 999 {
		t.Errorf("%d pieces, %v", len(items), err)
	}
}
