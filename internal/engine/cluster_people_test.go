package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
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

// lossy is a bus that loses messages: every so many of them, or all.
type lossy struct {
	MemoryBus
	every int
	n     int
	lose  sync.Mutex
}

func (b *lossy) Publish(m []byte) {
	b.lose.Lock()
	b.n++
	lost := b.n%b.every == 0
	b.lose.Unlock()
	if !lost {
		b.MemoryBus.Publish(m)
	}
}

// onBuses runs a test on a bus that works, on one that loses some, on a dead one and
// without any: only times may differ.
func onBuses(t *testing.T, test func(t *testing.T, bus Bus)) {
	for name, bus := range map[string]func() Bus{"working": func() Bus { return &MemoryBus{} }, "losing": func() Bus { return &lossy{every: 3} },
		"dead": func() Bus { return &lossy{every: 1} }, "none": func() Bus { return nil }} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, bus()) }) })
	}
}

// TestCommandsAtAnotherNode: steering, follow-ups, answers and cancels work at a node
// that does not drive the run, and say there what became of them.
func TestCommandsAtAnotherNode(t *testing.T) {
	onBuses(t, func(t *testing.T, bus Bus) {
		g := newGate()
		n := newNodes(t, listener, gated("work", tool.Read, g))
		n.bus = bus
		home, api := n.node("home", true), n.node("api", false)
		r := n.started(home, StartRequest{})
		got := n.watched(api, r.ID)
		<-g.entered
		if err := api.Steer(t.Context(), ref(r.ID), blocks("now")); err != nil {
			t.Fatal(err)
		}
		if err := api.FollowUp(t.Context(), ref(r.ID), blocks("later")); err != nil {
			t.Fatal(err)
		}
		close(g.open)
		n.ended(api, r.ID, "completed")
		n.whole(api, r.ID, got())
		n.engine = api
		if got := n.transcript(r.SessionID); !strings.Contains(got, "user \"now\"\nassistant \"I hear now.\"\nuser \"later\"\nassistant \"I hear later.\"\n") {
			t.Errorf("transcript:\n%s", got)
		}
		if err := api.Steer(t.Context(), ref(r.ID), blocks("more")); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "has ended: completed") {
			t.Errorf("after the end: %v", err)
		}
		if _, err := api.Cancel(t.Context(), ref("run_x"), ""); fault.KindOf(err) != fault.NotFound {
			t.Errorf("an unknown run: %v", err)
		}
	})
}

// TestAnAnswerAtEachNode: one question answered at two nodes at once has one answer,
// and the other is told so; the run, which nobody drives meanwhile, goes on.
func TestAnAnswerAtEachNode(t *testing.T) {
	onBuses(t, func(t *testing.T, bus Bus) {
		calls := &counter{}
		n := newNodes(t, oneCall("act", `{}`), asking(toolFunc{tool.Spec{Name: "act", Effect: tool.Once}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("done"), nil
		}}))
		n.bus = bus
		a, b := n.node("a", true), n.node("b", true)
		r := n.started(a, StartRequest{})
		n.parked(b, r.ID)
		var errs [2]error
		var both sync.WaitGroup
		for i, e := range []*Engine{a, b} {
			both.Go(func() {
				_, errs[i] = e.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: []string{"approve", "reject"}[i], By: fmt.Sprint(i)})
			})
		}
		both.Wait()
		lost := 0
		for _, err := range errs {
			if fault.KindOf(err) == fault.Conflict && strings.Contains(err.Error(), "no longer open") {
				lost++
			} else if err != nil {
				t.Error(err)
			}
		}
		r = n.ended(b, r.ID, "completed")
		if want := map[bool]int{true: 1, false: 0}[errs[0] == nil]; lost != 1 || len(calls.n) != want {
			t.Errorf("answers: %v; calls: %v", errs, calls.n)
		}
	})
}

// parked waits until a run waits for people and no node has it.
func (n *nodes) parked(e *Engine, id string) {
	n.t.Helper()
	for range 1000 {
		r, err := e.Get(n.t.Context(), ref(id))
		if err != nil {
			n.t.Fatal(err)
		}
		mine := 0
		all, err := e.Nodes(n.t.Context())
		if err != nil {
			n.t.Fatal(err)
		}
		for _, x := range all {
			c, err := n.store.(store.Cluster).Claimed(n.t.Context(), x.ID)
			if err != nil {
				n.t.Fatal(err)
			}
			mine += len(c)
		}
		if r.Status == string(run.Paused) && mine == 0 {
			return
		}
		pass(10 * time.Millisecond)
	}
	n.t.Fatal("it does not wait")
}

// TestACancelMeetsACrash: a cancel that was taken at another node counts, whether its
// home died before it read it or not.
func TestACancelMeetsACrash(t *testing.T) {
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			entered := make(chan struct{}, 4)
			n := newNodes(t, oneCall("act", `{}`), toolFunc{tool.Spec{Name: "act", Effect: tool.Read}, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				entered <- struct{}{}
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}})
			a, m := n.mortalNode("a", 0, false)
			r := n.started(a, StartRequest{})
			<-entered
			b := n.node("b", true)
			if before {
				m.die()
			}
			if _, err := b.Cancel(t.Context(), ref(r.ID), "enough"); err != nil {
				t.Fatal(err)
			}
			m.die()
			n.ended(b, r.ID, "cancelled")
			if before && len(entered) > 0 {
				t.Error("the call was made again for a run that was cancelled")
			}
		})
	}
}

// TestLanesAcrossNodes: the runs of a session go one after the other, in the order in
// which they were accepted, wherever that was.
func TestLanesAcrossNodes(t *testing.T) {
	onBuses(t, func(t *testing.T, bus Bus) {
		var mu sync.Mutex
		var order []string
		at := 0
		n := newNodes(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
			mu.Lock()
			at++
			if at > 1 {
				t.Error("two runs of a session at a time")
			}
			order = append(order, req.Messages[len(req.Messages)-1].Text())
			mu.Unlock()
			pass(30 * time.Millisecond)
			mu.Lock()
			at--
			mu.Unlock()
			return say("Well.")
		})
		n.bus = bus
		all := []*Engine{n.node("a", true), n.node("b", true), n.node("c", false)}
		ses, err := all[2].CreateSession(t.Context(), SessionRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var last *Run
		want := ""
		for i := range 9 {
			word := fmt.Sprint("w", i)
			want += " " + word
			last = n.started(all[i%3], StartRequest{SessionID: ses.ID, Input: blocks(word)})
		}
		_, err = all[1].Start(t.Context(), StartRequest{SessionID: ses.ID, Input: blocks("x"), WhenBusy: Reject})
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "is busy with run") {
			t.Errorf("reject: %v", err)
		}
		if err := all[0].DeleteSession(t.Context(), ref(ses.ID)); fault.KindOf(err) != fault.Conflict {
			t.Errorf("delete: %v", err)
		}
		n.ended(all[2], last.ID, "completed")
		if got := " " + strings.Join(order, " "); got != want {
			t.Errorf("they ran in the order%s", got)
		}
		// A free session is taken by one of two that insist.
		var errs [2]error
		var got [2]*Run
		var both sync.WaitGroup
		for i := range errs {
			both.Go(func() {
				got[i], errs[i] = all[i].Start(t.Context(), StartRequest{SessionID: ses.ID, Input: blocks("y"), WhenBusy: Reject})
			})
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("two that insist: %v", errs)
		}
		if _, err := all[2].Append(t.Context(), ref(ses.ID), message.User("aside")); fault.KindOf(err) != fault.Conflict {
			t.Errorf("append: %v", err)
		}
		for _, r := range got {
			if r != nil {
				n.ended(all[2], r.ID, "completed")
			}
		}
		if _, err := all[2].Append(t.Context(), ref(ses.ID), message.User("aside")); err != nil {
			t.Errorf("append: %v", err)
		}
		if err := all[1].DeleteSession(t.Context(), ref(ses.ID)); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
}

// TestDrainHandsOver: a node that stops lets a call that must not be made twice finish,
// and another one goes on with the run; nobody is asked and nothing fails.
func TestDrainHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		calls := &counter{}
		script := func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
			if step < 2 {
				return say("", call(fmt.Sprint("c", step), "act", `{}`))
			}
			return say("Done.")
		}
		n := newNodes(t, script, toolFunc{tool.Spec{Name: "act", Effect: tool.Once}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			calls.add(c.Key)
			return tool.TextResult("done"), g.pass(ctx)
		}})
		a := n.node("a", true)
		r := n.started(a, StartRequest{})
		<-g.entered
		b := n.node("b", true)
		got := n.watched(b, r.ID)
		began, drained := time.Now(), make(chan error, 1)
		go func() { drained <- a.Drain(t.Context()) }()
		pass(10 * time.Second)
		synctest.Wait()
		if len(drained) > 0 {
			t.Fatal("it left a call under way")
		}
		other := n.started(a, StartRequest{Input: blocks("go")}) // it still takes requests
		close(g.open)
		if err := <-drained; err != nil || time.Since(began) > 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		handed := time.Now()
		n.ended(b, r.ID, "completed")
		if d := time.Since(handed); d > time.Second {
			t.Errorf("the other node took it after %v", d)
		}
		n.whole(b, r.ID, got())
		n.ended(a, other.ID, "completed") // and knows what others did
		for key, k := range calls.n {
			if k != 1 {
				t.Errorf("%s ran %d times", key, k)
			}
		}
		if len(calls.n) != 4 {
			t.Errorf("calls: %v", calls.n)
		}
	})
}

// TestDrainHasAnEnd: what does not finish is cut off; others ask about it.
func TestDrainHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Once, g))
		a, b := n.node("a", true, func(c *Config) { c.Cluster.DrainTimeout = 5 * time.Second }), n.node("b", true)
		r := n.started(a, StartRequest{})
		<-g.entered
		began := time.Now()
		if err := a.Drain(t.Context()); fault.KindOf(err) != fault.Timeout || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if !n.answerDone(b, r.ID) {
			t.Error("nobody was asked")
		}
		n.ended(b, r.ID, "completed")
	})
}

// TestARunThatIsTooNew: a node leaves what a newer one wrote to such a one.
func TestARunThatIsTooNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, listener)
		api := n.node("api", false)
		r := n.started(api, StartRequest{})
		row, err := n.store.Run(t.Context(), "default", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		row.State = []byte(strings.Replace(string(row.State), `"v":1`, fmt.Sprintf(`"v":%d`, run.StateVersion+1), 1))
		if err := n.store.Commit(t.Context(), &store.Tx{Tenant: "default", Runs: []store.RunChange{{ID: r.ID, RunUpdate: row.RunUpdate}}}); err != nil {
			t.Fatal(err)
		}
		n.node("old", true)
		pass(30 * time.Second)
		now, err := n.store.Run(t.Context(), "default", r.ID)
		if err != nil || now.Status != "queued" || now.Epoch > row.Epoch+2 {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// activities is an executor as a workflow engine would be one: it keeps ids, and has a
// node drive what it was told of.
type activities struct {
	e    *Engine
	mu   sync.Mutex
	told map[Ref]int
	wg   sync.WaitGroup
}

func (x *activities) Submit(_ context.Context, ref Ref) error { return x.run(ref) }
func (x *activities) Wake(_ context.Context, ref Ref) error   { return x.run(ref) }
func (x *activities) Cancel(_ context.Context, ref Ref) error { return x.run(ref) }

func (x *activities) run(ref Ref) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.told[ref]++; x.told[ref] > 1 {
		return nil
	}
	x.wg.Go(func() {
		for {
			_, err := x.e.Drive(context.Background(), ref)
			x.mu.Lock()
			again := x.told[ref] > 1 || err != nil
			if x.told[ref] = 1; !again || x.e.ctx.Err() != nil {
				delete(x.told, ref)
				x.mu.Unlock()
				return
			}
			x.mu.Unlock()
			if err != nil {
				pass(time.Second)
			}
		}
	})
	return nil
}

// TestAnExecutorDecides: with an executor of its own nobody looks for work; what it
// drives are the same runs: children, questions, lanes.
func TestAnExecutorDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			switch {
			case strings.Contains(req.Messages[0].Text(), "child") && step == 0:
				return say("", call("q", AskUserQuestion, `{"question":"Why?"}`))
			case strings.Contains(req.Messages[0].Text(), "child"):
				return say("The child heard " + req.Messages[len(req.Messages)-1].Text())
			case step == 0:
				return say("", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"child"}`))
			}
			return say("So: " + req.Messages[len(req.Messages)-1].Text())
		})
		n.agents["test"].AskUser = true
		x := &activities{told: map[Ref]int{}}
		worker := n.node("worker", false, func(c *Config) { c.Cluster.Executor = x })
		x.e = worker
		t.Cleanup(x.wg.Wait)
		t.Cleanup(func() { worker.Close() })
		api := n.node("api", false, func(c *Config) { c.Cluster.Executor = x })
		r := n.started(api, StartRequest{})
		next := n.started(api, StartRequest{SessionID: r.SessionID, Input: blocks("again, without a child")})
		n.parked(api, r.ID)
		if p, err := worker.Drive(t.Context(), ref(r.ID)); err != nil || p.Status != run.Paused {
			t.Errorf("a run that waits: %+v, %v", p, err)
		}
		if _, err := api.Answer(t.Context(), AnswerRequest{Run: r.ID, Answer: text("because")}); err != nil {
			t.Fatal(err)
		}
		if r = n.ended(api, r.ID, "completed"); r.Output != "So: The child heard because" {
			t.Errorf("output: %s", r.Output)
		}
		if p, err := worker.Drive(t.Context(), ref(r.ID)); err != nil || p.Status != run.Completed {
			t.Errorf("a run that has ended: %+v, %v", p, err)
		}
		if _, err := api.Cancel(t.Context(), ref(next.ID), ""); err != nil && fault.KindOf(err) != fault.Conflict {
			t.Error(err)
		}
	})
}

// choosy is a bus that loses what lose says.
type choosy struct {
	MemoryBus
	lose func(m string) bool
}

func (b *choosy) Publish(m []byte) {
	if !b.lose(string(m)) {
		b.MemoryBus.Publish(m)
	}
}

// TestLostDeltasComeFromTheStore: of a reply of which a piece was lost on the way the
// reader gets nothing that follows until the store has it whole.
func TestLostDeltasComeFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := []string{"one ", "two ", "three ", "four "}
		n := newNodes(t, nil)
		n.bus = &choosy{lose: func(m string) bool { return strings.Contains(m, "two ") && !strings.Contains(m, "step_completed") }}
		n.agents["test"].Models[0].Provider = streamFunc(func(_ context.Context, emit func(model.StreamEvent)) (*message.Message, error) {
			m, err := say(strings.Join(words, ""))
			for _, w := range words {
				pass(200 * time.Millisecond)
				emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: w, Partial: m})
			}
			pass(200 * time.Millisecond)
			return m, err
		})
		home, api := n.node("home", true), n.node("api", false)
		r := n.started(home, StartRequest{})
		got := n.watched(api, r.ID)
		n.ended(api, r.ID, "completed")
		n.whole(api, r.ID, got())
	})
}

// TestALostEndIsNoticedSoon: whoever waits for something that was lost on the way hears
// of the loss with the next sign of life.
func TestALostEndIsNoticedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		n := newNodes(t, oneCall("work", `{}`), gated("work", tool.Read, g))
		n.bus = &choosy{lose: func(m string) bool { return strings.Contains(m, "run_completed") || strings.Contains(m, `"end"`) }}
		home, api := n.node("home", true), n.node("api", false)
		r := n.started(home, StartRequest{})
		got := n.watched(api, r.ID)
		<-g.entered
		pass(10 * time.Second)
		began := time.Now()
		close(g.open)
		n.whole(api, r.ID, got())
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}
