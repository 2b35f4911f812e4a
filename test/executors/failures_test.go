package executors

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/tool"
)

// world is nodes in which the test goes on as it likes.
type world struct {
	*enginetest.World
	*cluster
	cfg   engine.Config
	nodes []*node
	ways  []*way
}

// way is a store as one node reaches it.
type way struct {
	*sqlite.Store
	mu  sync.Mutex
	cut bool
}

var errCut = errors.New("the database can not be reached")

func (w *way) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

func (w *way) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return errCut
	}
	return nil
}

func (w *way) Commit(ctx context.Context, tx *store.Tx) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.Store.Commit(ctx, tx)
}

func (w *way) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	if err := w.err(); err != nil {
		return nil, err
	}
	return w.Store.Claim(ctx, q)
}

func (w *way) Run(ctx context.Context, tenant, id string) (*store.Run, error) {
	if err := w.err(); err != nil {
		return nil, err
	}
	return w.Store.Run(ctx, tenant, id)
}

// newWorld makes an API node and two workers.
func newWorld(t *testing.T, s *server, agents func(w *enginetest.World) enginetest.Agents) *world {
	t.Helper()
	st, err := sqlite.Open(":memory:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	w := &world{}
	w.World = enginetest.On(t, st, func(t *testing.T, cfg engine.Config) []*engine.Engine {
		w.cluster, w.cfg = newCluster(t, s), cfg
		for i, name := range []string{"api", "one", "two"} {
			way := &way{Store: st}
			cfg.Store = way
			w.ways = append(w.ways, way)
			w.nodes = append(w.nodes, w.cluster.node(cfg, name, i > 0))
		}
		return []*engine.Engine{w.nodes[0].Engine} // the workers come and go
	}, agents)
	return w
}

// step is a tool that waits for the test. Each entry tells where it runs.
type step struct {
	entered chan string // keys
	open    chan struct{}
}

func newStep() *step { return &step{entered: make(chan string, 1024), open: make(chan struct{})} }

func (s *step) tool(w *enginetest.World, name string, effect tool.Effect) tool.Tool {
	return enginetest.Tool{S: tool.Spec{Name: name, Effect: effect}, F: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		w.Calls.Add(name + " " + c.Key)
		s.entered <- c.Key
		select {
		case <-s.open:
			w.Calls.Add("done " + c.Key)
			return tool.TextResult("passed"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}}
}

func (s *step) in(t *testing.T) string {
	t.Helper()
	select {
	case key := <-s.entered:
		return key
	case <-time.After(enginetest.Patience):
		t.Fatal("the tool was not called")
		return ""
	}
}

// driver gives which of the workers drives a run.
func (w *world) driver(id string) int {
	w.T.Helper()
	at := 0
	w.Until("a node has run "+id, func() bool {
		nodes, err := w.ways[0].Store.Nodes(w.T.Context(), time.Now().UnixMilli())
		if err != nil {
			w.T.Fatal(err)
		}
		for _, n := range nodes {
			all, err := w.ways[0].Store.Claimed(w.T.Context(), n.ID)
			if err != nil {
				w.T.Fatal(err)
			}
			for _, c := range all {
				if c.ID == id {
					at = map[string]int{"api": 0, "one": 1, "two": 2}[n.Name]
					return true
				}
			}
		}
		return false
	})
	return at
}

// TestTheServerIsKilledInMidRun: what is under way goes on without Temporal; what was
// accepted meanwhile begins when it is back.
func TestTheServerIsKilledInMidRun(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("wait", "after", "after2"), g.tool(w, "wait", tool.Once), w.Counting("after", tool.Once, false), w.Counting("after2", tool.Once, false))}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	s.kill()
	close(g.open)
	w.Ended(r.ID, "completed") // nothing of a step needs Temporal
	later := w.Start(engine.StartRequest{})
	began := time.Now()
	s.start()
	w.Ended(later.ID, "completed")
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	t.Logf("accepted while Temporal was away, done %v after it came back", time.Since(began).Round(10*time.Millisecond))
	w.never(t, 2)
}

// never fails if a call was made more often than once.
func (w *world) never(t *testing.T, more int) {
	t.Helper()
	for _, line := range w.Calls.All() {
		if n := line[len(line)-1]; n >= byte('0'+more) {
			t.Errorf("called more than once: %s", line)
		}
	}
}

// TestTheServerIsAwayForLong: longer than the heartbeat's patience, with a run under
// way all the time. It is not driven twice when Temporal is back.
func TestTheServerIsAwayForLong(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("wait", "after"), g.tool(w, "wait", tool.Once), w.Counting("after", tool.Once, false))}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	at := w.driver(r.ID)
	s.kill()
	<-time.After(4 * time.Second)
	s.start()
	<-time.After(4 * time.Second) // the drive that Temporal gave up has a second attempt somewhere
	if now := w.driver(r.ID); now != at {
		t.Errorf("the run moved from node %d to %d", at, now)
	}
	close(g.open)
	w.Ended(r.ID, "completed")
	w.never(t, 2)
}

// TestAWorkerIsGone: it reaches neither the store nor Temporal, as one that was killed.
func TestAWorkerIsGone(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("first", "wait", "after"), w.Counting("first", tool.Once, false), g.tool(w, "wait", tool.Idempotent), w.Counting("after", tool.Once, false))}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	// This call may begin ahead of the commit of what came before it. Had that been lost, a
	// person would be asked what became of the first call, which is no tool to call twice.
	w.Until("the result of the first call is stored", func() bool {
		entries, err := w.ways[0].Store.Entries(t.Context(), store.DefaultTenant, r.SessionID, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries) >= 3 // the message, the call, its result
	})
	at := w.driver(r.ID)
	began := time.Now()
	w.ways[at].set(true)
	w.nodes[at].wire.set(true)
	g.in(t) // the call that was interrupted is made again, at the other worker
	took := time.Since(began)
	t.Logf("the interrupted call was made again after %v (lease 2 s, heartbeat 2 s)", took.Round(10*time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if now := w.driver(r.ID); now == at {
		t.Errorf("still at node %d", at)
	}
	close(g.open)
	w.Ended(r.ID, "completed")
	if n := w.Calls.Count("first " + r.ID + "/1/first1"); n != 1 {
		t.Errorf("a finished call was made %d times: %v", n, w.Calls.All())
	}
}

// TestAWorkerIsCutOffFromTemporal: its runs go on where they are, and only there.
func TestAWorkerIsCutOffFromTemporal(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("wait", "after"), g.tool(w, "wait", tool.Once), w.Counting("after", tool.Once, false))}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	at := w.driver(r.ID)
	w.nodes[at].wire.set(true)
	<-time.After(5 * time.Second)
	if now := w.driver(r.ID); now != at {
		t.Errorf("the run moved from node %d to %d", at, now)
	}
	close(g.open)
	w.Ended(r.ID, "completed")
	w.nodes[at].wire.set(false)
	w.Ended(w.Start(engine.StartRequest{}).ID, "completed")
	w.never(t, 2)
}

// TestAWorkerIsCutOffFromTheStore: it gives the run up, and Temporal finds it another
// place although it hears of this worker all the time.
func TestAWorkerIsCutOffFromTheStore(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("wait", "after"), g.tool(w, "wait", tool.Idempotent), w.Counting("after", tool.Once, false))}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	at := w.driver(r.ID)
	began := time.Now()
	w.ways[at].set(true)
	g.in(t)
	t.Logf("driven elsewhere after %v", time.Since(began).Round(10*time.Millisecond))
	close(g.open)
	w.Ended(r.ID, "completed")
	w.ways[at].set(false)
	w.Ended(w.Start(engine.StartRequest{}).ID, "completed")
}

// TestAWorkerStops: a deploy. Calls under way end where they are, the rest goes to the
// other worker at once.
func TestAWorkerStops(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("wait", "after"), g.tool(w, "wait", tool.Once), w.Counting("after", tool.Once, false))}
	})
	var runs []string
	for range 8 {
		runs = append(runs, w.Start(engine.StartRequest{Mode: engine.Autonomous}).ID)
		g.in(t)
	}
	stopped := make(chan struct{})
	go func() {
		w.nodes[1].x.Stop()
		w.nodes[1].Drain(t.Context())
		close(stopped)
	}()
	<-time.After(200 * time.Millisecond)
	began := time.Now()
	close(g.open)
	for _, id := range runs {
		w.Ended(id, "completed")
	}
	<-stopped
	t.Logf("8 runs were done %v after their calls ended", time.Since(began).Round(10*time.Millisecond))
	w.never(t, 2)
	for _, id := range runs {
		if k, err := w.Node().Events(t.Context(), enginetest.Ref(id), 0); err != nil || len(k) == 0 {
			t.Error(k, err)
		}
	}
}

// TestTemporalWasNotTold: who accepted a run died before it could tell.
func TestTemporalWasNotTold(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("after"), w.Counting("after", tool.Once, false))}
	})
	w.nodes[0].wire.set(true)
	r := w.Start(engine.StartRequest{})
	w.nodes[0].x.Close()
	began := time.Now()
	w.Ended(r.ID, "completed")
	t.Logf("found after %v (swept every second, seen twice)", time.Since(began).Round(10*time.Millisecond))
	w.never(t, 2)
}

// TestARunIsCancelledInTemporal: its own page has a button for it.
func TestARunIsCancelledInTemporal(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		a := enginetest.Agent(w.T, enginetest.Steps("wait"), g.tool(w, "wait", tool.Read))
		return enginetest.Agents{"test": a}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	c := s.client()
	if err := c.CancelWorkflow(t.Context(), "run/default/"+r.ID, ""); err != nil {
		t.Fatal(err)
	}
	w.Ended(r.ID, "cancelled")
	if err := c.GetWorkflow(t.Context(), "run/default/"+r.ID, "").Get(t.Context(), nil); err == nil {
		t.Error("its workflow is not cancelled")
	}
}

// TestAWorkflowIsTerminated: that stops nothing, and the next wake starts it again.
func TestAWorkflowIsTerminated(t *testing.T) {
	t.Parallel() // they wait more than they work
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		act := w.Counting("act", tool.Once, false).(enginetest.Tool)
		act.S.Approval = "always"
		return enginetest.Agents{"test": enginetest.Agent(w.T, enginetest.Steps("wait", "act"), g.tool(w, "wait", tool.Once), act)}
	})
	r := w.Start(engine.StartRequest{})
	g.in(t)
	c := s.client()
	if err := c.TerminateWorkflow(t.Context(), "run/default/"+r.ID, "", "a mistake"); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Second) // the heartbeats hear of it
	close(g.open)
	i := w.Asks(r.ID)
	w.Answer(engine.AnswerRequest{Interrupt: i.ID, Decision: "approve"})
	w.Ended(r.ID, "completed")
	w.never(t, 2)
}
