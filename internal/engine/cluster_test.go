package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// cluster makes the harness's engine a node: with AGENTD_TEST_CLUSTER every test of
// this package that has a plain store is one of an engine that shares it.
func (h *harness) cluster() *Cluster {
	_, can := h.store.(store.Cluster)
	if os.Getenv("AGENTD_TEST_CLUSTER") == "" || h.alone || !can {
		return nil
	}
	return &Cluster{Name: "test", Worker: true, Bus: &MemoryBus{}, Lease: 100 * time.Hour, Poll: 10 * time.Hour}
}

// nodes are engines on one store.
type nodes struct {
	*harness
	bus Bus
}

// newNodes is a harness whose engine has ended; node makes others.
func newNodes(t *testing.T, script modelFunc, tools ...tool.Tool) *nodes {
	t.Helper()
	h := newHarness(t, script, tools...)
	h.engine.Close()
	h.agents["test"].Subagents = []string{"test"}
	return &nodes{h, &MemoryBus{}}
}

// node starts an engine on the store, or on st.
func (n *nodes) node(name string, worker bool, change ...func(*Config)) *Engine {
	n.t.Helper()
	e := n.other(name, worker, change...)
	if n.engine == nil || n.engine.ctx.Err() != nil {
		n.engine = e
	}
	return e
}

// other is node for one that the test does not speak to; any goroutine may start it.
func (n *nodes) other(name string, worker bool, change ...func(*Config)) *Engine {
	n.t.Helper()
	cfg := Config{Store: n.store, Agents: n.agents, Log: slog.New(slog.NewTextHandler(testWriter{n.t}, nil)).With("node", name),
		AbandonAfter: 100 * time.Millisecond, Cluster: &Cluster{Name: name, Worker: worker, Bus: n.bus}}
	for _, f := range change {
		f(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { e.Close() })
	if _, err := e.Recover(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	return e
}

// started starts a run at a node.
func (n *nodes) started(e *Engine, req StartRequest) *Run {
	n.t.Helper()
	if req.Input == nil {
		req.Input = blocks("go")
	}
	r, err := e.Start(n.t.Context(), req)
	if err != nil {
		n.t.Fatal(err)
	}
	return r
}

// ended waits at a node for the end of a run.
func (n *nodes) ended(e *Engine, id, status string) *Run {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 10*time.Minute)
	defer cancel()
	r, err := e.Wait(ctx, ref(id))
	if err != nil || r.Status != status {
		n.t.Fatalf("run %s: %+v (%+v), %v", id, r, r.Error, err)
	}
	return r
}

// watched follows a run at a node and gives what it saw when the run has ended.
func (n *nodes) watched(e *Engine, id string) func() []event.Event {
	var got []event.Event
	done := make(chan error, 1)
	go func() {
		for ev, err := range e.Watch(n.t.Context(), ref(id), 0) {
			if err != nil {
				done <- err
				return
			}
			got = append(got, ev)
		}
		done <- nil
	}()
	return func() []event.Event {
		n.t.Helper()
		if err := <-done; err != nil {
			n.t.Fatalf("the reader got %v after %s", err, kinds(got))
		}
		return got
	}
}

// whole fails unless a reader saw all that is stored, each once and in order.
func (n *nodes) whole(e *Engine, id string, got []event.Event) {
	n.t.Helper()
	text, other, last := map[int64]byte{}, map[int64]event.Type{}, int64(0)
	for _, ev := range got {
		d, isDelta := ev.Data.(*event.Delta)
		first := ev.Seq
		if isDelta {
			first = ev.Seq - int64(len(d.Text)) + 1
			for i := range d.Text {
				text[first+int64(i)] = d.Text[i]
			}
		} else {
			other[ev.Seq] = ev.Type
		}
		if first <= last {
			n.t.Errorf("event %d %s after %d", ev.Seq, ev.Type, last)
		}
		last = ev.Seq
	}
	stored, err := e.Events(n.t.Context(), ref(id), 0)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, ev := range stored {
		if d, ok := ev.Data.(*event.Delta); ok {
			for i := range d.Text {
				if at := ev.Seq - int64(len(d.Text)) + 1 + int64(i); text[at] != d.Text[i] {
					n.t.Fatalf("the reader lacks the text at %d of %q", at, d.Text)
				}
			}
		} else if other[ev.Seq] != ev.Type {
			n.t.Errorf("the reader lacks event %d %s; it saw %s", ev.Seq, ev.Type, kinds(got))
		}
	}
}

// die is the end of an engine without a word: what it does from now on reaches nobody.
func (s *mortal) die() {
	s.mu.Lock()
	s.dead = true
	s.mu.Unlock()
}

// mortal is a store as one process sees it, until that is dead.
type mortal struct {
	*sqlite.Store
	mu   sync.Mutex
	dead bool
	// at kills the process at its n-th commit of a run, before or after that is durable.
	at, n int
	after bool
	down  chan struct{}
	// hang, if not nil, is how long the dead one waits for an answer.
	hang chan struct{}
}

func (s *mortal) Commit(ctx context.Context, tx *store.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(tx.Nodes) == 0 {
		s.n++
	}
	hit := s.at > 0 && s.n == s.at && len(tx.Nodes) == 0
	if hit && !s.dead {
		defer close(s.down)
		s.dead = true
		if s.after {
			_ = s.Store.Commit(ctx, tx)
		}
		return errDead
	}
	if s.dead && s.hang != nil {
		s.mu.Unlock()
		<-s.hang
		s.mu.Lock()
	}
	if s.dead {
		return errDead
	}
	return s.Store.Commit(ctx, tx)
}

func (s *mortal) Claim(ctx context.Context, q store.ClaimRequest) ([]store.Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, errDead
	}
	return s.Store.Claim(ctx, q)
}

var errDead = fmt.Errorf("the process is dead: %w", store.ErrFenced)

// mute is a bus on which a process is not heard any more once it is dead.
type mute struct {
	Bus
	s *mortal
}

func (b mute) Publish(m []byte) {
	b.s.mu.Lock()
	dead := b.s.dead
	b.s.mu.Unlock()
	if !dead {
		b.Bus.Publish(m)
	}
}

// mortalNode is a node that can die.
func (n *nodes) mortalNode(name string, at int, after bool) (*Engine, *mortal) {
	m := &mortal{Store: n.store.(*sqlite.Store), at: at, after: after, down: make(chan struct{})}
	return n.node(name, true, func(c *Config) {
		c.Store, c.Cluster.Bus = m, mute{n.bus, m}
	}), m
}

func TestANodeWithoutWorkersHasRunsDrivenByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, twoTools, echoTool(tool.Read))
		api, _ := n.node("api", false), n.node("worker", true)
		r := n.started(api, StartRequest{})
		got := n.watched(api, r.ID)
		n.ended(api, r.ID, "completed")
		n.whole(api, r.ID, got())
		if k := kinds(got2(api, r.ID, t)); strings.Contains(k, "run_resumed") {
			t.Error(k)
		}
	})
}

func got2(e *Engine, id string, t *testing.T) []event.Event {
	evs, err := e.Events(t.Context(), ref(id), 0)
	if err != nil {
		t.Fatal(err)
	}
	return evs
}

// TestDeltasReachReadersAtOtherNodes: live text is at another node before its commit.
func TestDeltasReachReadersAtOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go1 := make(chan struct{})
		slow := streamFunc(func(ctx context.Context, emit func(model.StreamEvent)) (*message.Message, error) {
			m, _ := say("one two")
			emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "one ", Partial: m})
			<-go1
			emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "two", Partial: m})
			return m, nil
		})
		n := newNodes(t, nil)
		n.agents["test"].Models[0].Provider = slow
		n.agents["test"].ModelIdle = time.Hour
		home, api := n.node("home", true), n.node("api", false)
		r := n.started(home, StartRequest{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		text := ""
		for ev, err := range api.Watch(ctx, ref(r.ID), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := ev.Data.(*event.Delta); ok {
				if text += d.Text; text == "one " {
					close(go1) // only now: the reply is in no commit yet
				}
			}
		}
		if text != "one two" {
			t.Errorf("text: %q", text)
		}
	})
}

type streamFunc func(ctx context.Context, emit func(model.StreamEvent)) (*message.Message, error)

func (f streamFunc) Generate(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
	return f(ctx, emit)
}

// TestTakeoverAtEveryCommit kills a node at every commit of a run, before and after the
// commit is durable, while another one lives. That takes the run over within the time of
// a lease; whoever reads there misses nothing and sees nothing twice.
func TestTakeoverAtEveryCommit(t *testing.T) {
	want, commits := "", 0
	synctest.Test(t, func(t *testing.T) {
		calls := &counter{}
		script, tools := workload(calls)
		n := newNodes(t, script, tools...)
		e, m := n.mortalNode("a", 0, false)
		r := n.ended(e, n.started(e, StartRequest{}).ID, "completed")
		want, commits = n.transcript(r.SessionID), m.n
	})
	if commits < 8 {
		t.Fatalf("%d commits", commits)
	}
	for at := 2; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { takeoverAt(t, at, after, want) })
			})
		}
	}
}

func takeoverAt(t *testing.T, at int, after bool, want string, change ...func(*nodes)) (*nodes, *Run) {
	calls := &counter{}
	script, tools := workload(calls)
	n := newNodes(t, script, tools...)
	for _, f := range change {
		f(n)
	}
	a, m := n.mortalNode("a", at, after)
	r := n.started(a, StartRequest{})
	b := n.node("b", true)
	began := time.Now()
	got := n.watched(b, r.ID)
	go func() {
		select {
		case <-m.down:
		case <-t.Context().Done():
		}
		a.Close()
	}()
	uncertain := n.answerDone(b, r.ID)
	r = n.ended(b, r.ID, "completed")
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
	n.whole(b, r.ID, got())
	n.engine = b
	if got := n.transcript(r.SessionID); !uncertain && got != want {
		t.Errorf("the transcript differs:\n%s\nwant\n%s", got, want)
	}
	calls.mu.Lock()
	defer calls.mu.Unlock()
	for key, k := range calls.n {
		if strings.HasPrefix(key, "once ") && k > 1 {
			t.Errorf("%s ran %d times", key, k)
		}
	}
	return n, r
}

// answerDone says of each call in doubt that it was made, until the run has ended.
func (n *nodes) answerDone(e *Engine, id string) (any bool) {
	n.t.Helper()
	for {
		r, err := e.Get(n.t.Context(), ref(id))
		if err != nil {
			n.t.Fatal(err)
		}
		if run.Status(r.Status).Ended() {
			return any
		}
		for _, i := range r.Interrupts {
			any = true
			if _, err := e.Answer(n.t.Context(), AnswerRequest{Interrupt: i.ID, Decision: "done"}); err != nil && fault.KindOf(err) != fault.Conflict {
				n.t.Fatal(err)
			}
		}
		<-time.After(300 * time.Millisecond)
	}
}

// TestANodeThatWasStoppedFindsItselfReplaced: a node whose lease was over before it
// noticed, as after SIGSTOP, commits nothing more, and joins anew.
func TestANodeThatWasStoppedFindsItselfReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		calls := &counter{}
		n := newNodes(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act"}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("done"), g.pass(context.WithoutCancel(ctx))
		}})
		a := n.node("a", true)
		r := n.started(a, StartRequest{Mode: Autonomous})
		<-g.entered
		old := a.node.lease()
		b := n.node("b", true)
		// What the others see: its lease is over. It does not know yet.
		if err := n.store.Commit(t.Context(), &store.Tx{Tenant: "default", Nodes: []store.NodeChange{{Node: store.Node{ID: old}, Leave: true}}}); err != nil {
			t.Fatal(err)
		}
		r = n.ended(b, r.ID, "completed")
		close(g.open)
		pass(10 * time.Second)
		synctest.Wait()
		if now := a.node.lease(); now == "" || now == old {
			t.Errorf("its lease is %q, and was %q", now, old)
		}
		if len(calls.n) != 1 || calls.n[r.ID+"/1/a"] != 1 {
			t.Errorf("calls: %v", calls.n)
		}
		n.engine = b
		if got := n.transcript(r.SessionID); !strings.Contains(got, "It may or may not have happened") {
			t.Errorf("transcript:\n%s", got)
		}
		n.ended(b, n.started(a, StartRequest{Mode: Autonomous}).ID, "completed") // it takes part again
	})
}

// TestANodeThatIsCutOffStopsInTime: who can not renew its lease stops its effects
// before others may begin theirs.
func TestANodeThatIsCutOffStopsInTime(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint("silent ", silent), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { cutOff(t, silent) }) })
	}
}

// cutOff is that of a store that refuses, or that does not answer any more.
func cutOff(t *testing.T, silent bool) {
	var mu sync.Mutex
	var stopped, again time.Time
	entered := make(chan struct{}, 2)
	n := newNodes(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act", Effect: tool.Idempotent}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		entered <- struct{}{}
		mu.Lock()
		defer mu.Unlock()
		if stopped.IsZero() {
			<-ctx.Done()
			stopped = time.Now()
			return tool.Result{}, ctx.Err()
		}
		again = time.Now()
		return tool.TextResult("done"), nil
	}})
	a, m := n.mortalNode("a", 0, false)
	b := n.node("b", true)
	r := n.started(a, StartRequest{})
	<-entered
	cut := time.Now()
	if silent {
		m.hang = make(chan struct{})
		defer close(m.hang)
	}
	m.die() // of the store it hears nothing more; the process goes on
	n.ended(b, r.ID, "completed")
	mu.Lock()
	defer mu.Unlock()
	if stopped.IsZero() || !stopped.Before(again) || again.Sub(cut) > 7*time.Second {
		t.Errorf("cut off at 0, stopped after %v, taken over after %v", stopped.Sub(cut), again.Sub(cut))
	}
	if a.node.lease() != "" {
		t.Error("it believes to have its lease")
	}
	if err := a.Ready(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "no lease") {
		t.Errorf("ready: %v", err)
	}
}
