package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// pathStore is a store whose paths are read by way of a function.
type pathStore struct {
	store.Store
	path func(ctx context.Context, leaf string) error
}

func (s *pathStore) Path(ctx context.Context, tenant, session, leaf string) ([]*store.Entry, error) {
	if err := s.path(ctx, leaf); err != nil {
		return nil, err
	}
	return s.Store.Path(ctx, tenant, session, leaf)
}

// What a session leaves may not be readable while the store is away. The run that
// summarises it goes on when it is back, and does not fail.
func TestASummaryWaitsForTheStore(t *testing.T) {
	w := &windowed{}
	h, ses, one := abandons(t, w)
	v, err := h.engine.Session(t.Context(), Ref{store.DefaultTenant, ses})
	if err != nil {
		t.Fatal(err)
	}
	h.engine.Close()
	var once atomic.Bool
	h.store = &pathStore{Store: h.store, path: func(_ context.Context, leaf string) error {
		if leaf == v.Leaf && once.CompareAndSwap(false, true) {
			return &fault.Error{Op: "test", Kind: fault.Unavailable, Err: store.ErrAway}
		}
		return nil
	}}
	h.start()
	h.engine.cfg.RetryPause = time.Millisecond
	m := h.navigate(ses, one, func(r *NavigateRequest) { r.Summarize = true })
	if r := h.wait(&Run{ID: m.RunID, SessionID: ses}); r.Status != "completed" || !once.Load() {
		t.Fatalf("%+v", r)
	}
	if s, parent := h.summary(ses); parent != one || s.From != v.Leaf {
		t.Errorf("%+v behind %s", s, parent)
	}
}

// damagedStore is a store in which something of the way to a leaf is damaged or gone.
type damagedStore struct {
	store.Store
	leaf         string
	packed, gone bool
	reads        atomic.Int32 // of that way
}

func (s *damagedStore) Path(ctx context.Context, tenant, session, leaf string) ([]*store.Entry, error) {
	path, err := s.Store.Path(ctx, tenant, session, leaf)
	if leaf != s.leaf || err != nil {
		return path, err
	}
	s.reads.Add(1)
	if s.gone {
		return nil, store.ErrNotFound
	}
	for _, e := range path {
		if s.packed || e.ID == s.leaf {
			e.Body = []byte("\x02\x90damaged")
		}
	}
	return path, nil
}

func (s *damagedStore) Entries(ctx context.Context, tenant, session, after string, limit int) ([]*store.Entry, error) {
	all, err := s.Store.Entries(ctx, tenant, session, after, limit)
	if s.gone && s.reads.Load() > 0 {
		all = slices.DeleteFunc(all, func(e *store.Entry) bool { return e.ID == s.leaf })
	}
	return all, err
}

// What is damaged on the way that a session leaves is left out, and a way of which nothing
// can be read ends the run that summarises it: it is not read again and again.
func TestADamagedWayThatIsLeftEndsTheRun(t *testing.T) {
	for _, tt := range []struct {
		name         string
		packed, gone bool
		want         string
	}{{"one entry", false, false, "completed"}, {"all", true, false, "failed"}, {"gone", false, true, "failed"}} {
		h, ses, one := abandons(t, &windowed{})
		v, err := h.engine.Session(t.Context(), Ref{store.DefaultTenant, ses})
		if err != nil {
			t.Fatal(err)
		}
		h.engine.Close()
		s := &damagedStore{Store: h.store, leaf: v.Leaf, packed: tt.packed, gone: tt.gone}
		h.store = s
		h.start()
		h.engine.cfg.RetryPause = time.Millisecond
		m := h.navigate(ses, one, func(r *NavigateRequest) { r.Summarize = true })
		if r := h.wait(&Run{ID: m.RunID, SessionID: ses}); r.Status != tt.want || s.reads.Load() != 1 {
			t.Errorf("%s: read %d times: %+v %+v", tt.name, s.reads.Load(), r, r.Error)
		}
	}
}

// The same where the lease ends in the middle: whoever has the run then goes on.
func TestASummaryOutlivesALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &windowed{}
		h, ses, one := abandons(t, w)
		v, err := h.engine.Session(t.Context(), Ref{store.DefaultTenant, ses})
		if err != nil {
			t.Fatal(err)
		}
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		good := n.store
		var cut, over atomic.Bool
		reads := make(chan struct{}, 10)
		p := &pickyStore{Store: &pathStore{Store: good, path: func(ctx context.Context, leaf string) error {
			if leaf != v.Leaf || over.Load() {
				return nil
			}
			cut.Store(true)
			reads <- struct{}{}
			<-ctx.Done()
			over.Store(true)
			return ctx.Err()
		}}}
		p.set(func(tx *store.Tx) bool { return len(tx.Nodes) > 0 && cut.Load() })
		a := n.node("a", true, func(c *Config) { c.Store = pickyCluster{p, good.(store.Cluster)} })
		m, err := a.Navigate(t.Context(), NavigateRequest{Tenant: store.DefaultTenant, SessionID: ses, Entry: one, Summarize: true})
		if err != nil {
			t.Fatal(err)
		}
		<-reads
		b := n.node("b", true)
		n.ended(b, m.RunID, "completed")
		cut.Store(false)
		n.engine = b
		if s, parent := n.summary(ses); parent != one || s.From != v.Leaf {
			t.Errorf("%+v behind %s", s, parent)
		}
	})
}

// shown is all that a request has, also the blocks that are no words.
func shown(req *model.Request) string {
	var b strings.Builder
	for i := range req.Messages {
		for _, c := range req.Messages[i].Content {
			b.WriteString(c.Text + "\n")
		}
	}
	return b.String()
}

// A run whose driver loses its lease while it asks for context is started by another one,
// with that context.
func TestARunIsNotStartedAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var cut atomic.Bool
		n := newNodes(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			return say("I was told: " + shown(req))
		})
		n.agents["test"].Context = []ContextSource{func(ctx context.Context, _ *ContextRequest) ([]prompt.Block, error) {
			if asked.Add(1) == 1 {
				cut.Store(true)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []prompt.Block{{Kind: "app", Text: "the sky is green"}}, nil
		}}
		good := n.store
		n.picky().set(func(tx *store.Tx) bool { return len(tx.Nodes) > 0 && cut.Load() })
		a := n.node("a", true, func(c *Config) { c.ContextTimeout = time.Hour })
		n.store = good
		b := n.node("b", false)
		r := n.started(b, StartRequest{})
		pass(4500 * time.Millisecond)
		synctest.Wait()
		cut.Store(false)
		r = n.ended(b, r.ID, "completed")
		if asked.Load() != 2 || !strings.Contains(n.transcript(r.SessionID), "the sky is green") {
			t.Errorf("asked %d times: %s", asked.Load(), n.transcript(r.SessionID))
		}
		_ = a
	})
}

// A source of context, or the memory, that does not listen keeps no run, and no node from
// ending.
func TestASourceThatHangsIsLeftBehind(t *testing.T) {
	for _, what := range []string{"context", "memory"} {
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				n := newNodes(t, listener)
				entered, never := make(chan struct{}, 10), make(chan struct{})
				defer close(never)
				switch what {
				case "context":
					n.agents["test"].Context = []ContextSource{func(context.Context, *ContextRequest) ([]prompt.Block, error) {
						entered <- struct{}{}
						<-never
						return []prompt.Block{{Kind: "app", Text: "too late"}}, nil
					}, func(context.Context, *ContextRequest) ([]prompt.Block, error) {
						t.Error("the time was over")
						return nil, nil
					}}
				default:
					n.agents["test"].Recall = func(context.Context, RecallRequest) (string, error) {
						entered <- struct{}{}
						<-never
						return "too late", nil
					}
				}
				a := n.node("a", true)
				r := n.started(a, StartRequest{})
				<-entered
				began := time.Now()
				if closes {
					done := make(chan struct{})
					go func() {
						a.Close()
						close(done)
					}()
					select {
					case <-done:
					case <-time.After(time.Minute):
						t.Errorf("%s: the engine does not end", what)
					}
					return
				}
				n.agents["test"].Models[0].Provider = modelFunc(func(context.Context, int, *model.Request) (*message.Message, error) { return say("Hello.") })
				r = n.ended(a, r.ID, "completed")
				if d := time.Since(began); d > 10*time.Second || strings.Contains(n.transcript(r.SessionID), "too late") {
					t.Errorf("%s: it took %v: %s", what, d, n.transcript(r.SessionID))
				}
			})
		}
	}
}

// A source that panics is one that failed.
func TestASourceThatPanics(t *testing.T) {
	n := newNodes(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		return say("I was told: " + shown(req))
	})
	n.agents["test"].Context = []ContextSource{func(context.Context, *ContextRequest) ([]prompt.Block, error) { panic("oh") },
		func(context.Context, *ContextRequest) ([]prompt.Block, error) {
			return []prompt.Block{{Kind: "app", Text: "the sky is green"}}, nil
		}}
	n.agents["test"].Recall = func(context.Context, RecallRequest) (string, error) { panic("no") }
	a := n.node("a", true)
	r := n.ended(a, n.started(a, StartRequest{}).ID, "completed")
	if !strings.Contains(n.transcript(r.SessionID), "the sky is green") {
		t.Error(n.transcript(r.SessionID))
	}
}

// The answer to a claim may be late, and the run be driven by then under a newer claim of
// the same node: that driver goes on.
func TestALateClaimStopsNoNewerDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		calls := &counter{}
		n := newNodes(t, oneCall("work", `{}`), toolFunc{tool.Spec{Name: "work", Effect: tool.Idempotent}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			calls.add("work")
			return tool.TextResult("done"), g.pass(ctx)
		}})
		s := &slowClaims{Store: n.store, Cluster: n.store.(store.Cluster), claimed: make(chan struct{}), goOn: make(chan struct{})}
		var cut atomic.Bool
		p := &pickyStore{Store: s}
		p.set(func(tx *store.Tx) bool { return len(tx.Nodes) > 0 && !tx.Nodes[0].Join && cut.Load() })
		a := n.node("a", false, func(c *Config) {
			c.Store, c.Cluster.Executor = pickyCluster{p, s}, nobody{}
		})
		r := n.started(n.node("api", false, func(c *Config) { c.Cluster.Executor = nobody{} }), StartRequest{})
		s.hold.Store(true)
		late := make(chan error, 1)
		go func() {
			_, err := a.Drive(t.Context(), ref(r.ID))
			late <- err
		}()
		<-s.claimed
		before := a.node.lease()
		cut.Store(true)
		pass(4500 * time.Millisecond)
		cut.Store(false)
		for a.node.lease() == "" || a.node.lease() == before {
			pass(100 * time.Millisecond)
		}
		pass(2 * time.Second) // the store's clock ends the old lease, too
		newer := make(chan error, 1)
		go func() {
			_, err := a.Drive(t.Context(), ref(r.ID))
			newer <- err
		}()
		<-g.entered
		close(s.goOn)
		if err := <-late; fault.KindOf(err) != fault.Unavailable {
			t.Errorf("the late one: %v", err)
		}
		pass(3 * time.Second)
		close(g.open)
		if err := <-newer; err != nil {
			t.Errorf("the newer one: %v", err)
		}
		n.ended(a, r.ID, "completed")
		if calls.of("work") != 1 {
			t.Errorf("called %d times: the driver was stopped", calls.of("work"))
		}
	})
}

// A node that is told to stop tells its drivers at once, whatever else it waits for.
func TestDrainTellsDriversAheadOfDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, made := proposing(t, tool.Once)
		h.engine.Close()
		n := &nodes{h, &MemoryBus{}}
		g := newGate()
		var moved atomic.Bool
		work := oneCall("work", `{}`)
		busy := testAgent(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			if step > 0 && !moved.Load() {
				t.Error("a node that stops goes on with a run that it could hand over")
			}
			return work(ctx, step, req)
		}, gated("work", tool.Read, g))
		busy.Profile = "busy"
		n.agents["busy"] = busy
		s := n.picky()
		a := n.node("a", true)
		r := n.ended(a, n.started(a, StartRequest{Mode: Autonomous}).ID, "completed")
		begun, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s.set(func(tx *store.Tx) bool {
			if len(tx.Proposals) > 0 && tx.Proposals[0].Status == applying {
				once.Do(func() { close(begun); <-goOn })
			}
			return false
		})
		w := n.started(a, StartRequest{Profile: "busy"})
		<-g.entered
		applied := make(chan error, 1)
		go func() {
			_, err := a.Apply(t.Context(), decision(r))
			applied <- err
		}()
		<-begun
		drained := make(chan error, 1)
		go func() { drained <- a.Drain(t.Context()) }()
		synctest.Wait()
		close(g.open)
		synctest.Wait()
		if k := a.inMemory(); k != 0 {
			t.Errorf("%d runs are driven by a node that stops", k)
		}
		moved.Store(true)
		b := n.node("b", true)
		n.ended(b, w.ID, "completed")
		close(goOn)
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := <-applied; err != nil || len(made.n) != 2 {
			t.Errorf("%v, made %v", err, made.n)
		}
	})
}

// A drive that hands over ends with the lease, too.
func TestAHandOverEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Idempotent, g))
		s := n.picky()
		a := n.node("a", true, func(c *Config) { c.Cluster.Executor = nobody{} })
		r := n.started(a, StartRequest{})
		ctx, handOver := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := a.Drive(ctx, ref(r.ID))
			done <- err
		}()
		<-g.entered
		mended := make(chan struct{})
		s.set(func(*store.Tx) bool {
			<-mended
			return false
		})
		began := time.Now()
		handOver()
		synctest.Wait()
		close(g.open)
		select {
		case err := <-done:
			if fault.KindOf(err) != fault.Unavailable || !errors.Is(err, errLapsed) || time.Since(began) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		case <-time.After(time.Minute):
			t.Error("it waits for a commit that nobody answers")
		}
		close(mended)
	})
}

// Who has a run driven at a node that is just told to stop hears that, and not that the
// engine closes.
func TestADriveAtANodeThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		s := &slowClaims{Store: n.store, Cluster: n.store.(store.Cluster), claimed: make(chan struct{}), goOn: make(chan struct{})}
		a := n.node("a", false, func(c *Config) { c.Store, c.Cluster.Executor = s, nobody{} })
		r := n.started(a, StartRequest{})
		s.hold.Store(true)
		done := make(chan error, 1)
		go func() {
			_, err := a.Drive(t.Context(), ref(r.ID))
			done <- err
		}()
		<-s.claimed
		if err := a.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		close(s.goOn)
		if err := <-done; fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "takes no runs") {
			t.Errorf("%v", err)
		}
	})
}

// logging calls a function with each line.
type logging func(line string)

func (f logging) Write(b []byte) (int, error) {
	f(string(bytes.TrimSpace(b)))
	return len(b), nil
}

// A log that is slow keeps nothing going of which a node has lost the right.
func TestALeaseIsDroppedAheadOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		var a *Engine
		var told atomic.Int32
		a = n.node("a", true, func(c *Config) {
			c.Log = slog.New(slog.NewTextHandler(logging(func(line string) {
				if !strings.Contains(line, "lost its lease") {
					return
				}
				told.Add(1)
				if a.node.last().ctx.Err() == nil {
					t.Error("it is logged that a lease is lost which goes on")
				}
			}), nil))
		})
		// The store says so before its time is over here.
		if err := n.store.Commit(t.Context(), &store.Tx{Tenant: store.DefaultTenant, Nodes: []store.NodeChange{{Node: store.Node{ID: a.node.lease()}, Leave: true}}}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		synctest.Wait()
		if told.Load() != 1 {
			t.Errorf("told %d times", told.Load())
		}
	})
}
