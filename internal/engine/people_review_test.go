package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
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

// pickyStore refuses the commits that refuse says, as one does whose driver has
// been replaced, and may look at the others first.
type pickyStore struct {
	store.Store
	refuse atomic.Pointer[func(*store.Tx) bool]
}

func (s *pickyStore) Commit(ctx context.Context, tx *store.Tx) error {
	if f := s.refuse.Load(); f != nil && (*f)(tx) {
		return store.ErrFenced
	}
	return s.Store.Commit(ctx, tx)
}

func (s *pickyStore) set(f func(*store.Tx) bool) { s.refuse.Store(&f) }

// about is whether a commit changes a run.
func about(tx *store.Tx, id string) bool {
	for _, c := range tx.Runs {
		if c.ID == id {
			return true
		}
	}
	return false
}

// A call that may start ahead of its commit may not do so with arguments that the
// same commit brings.
func TestAmendedArgumentsOfACallThatMayStartAtOnce(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Idempotent, tool.Once} {
		t.Run(string(effect), func(t *testing.T) {
			h := newHarness(t, oneCall("echo", `{"n":1}`), asking(echoTool(effect)))
			h.engine.Close()
			s := &pickyStore{Store: h.store}
			s.set(func(tx *store.Tx) bool {
				for n := 0; len(tx.Answers) > 0 && n < 10_000; n++ {
					runtime.Gosched() // who would be faster than the commit is so
				}
				return false
			})
			h.store = s
			h.start()
			r := h.paused(h.run("go"), 1)
			h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"n":2}`)})
			if r = h.ends(r, "completed"); r.Output != `It said: echo {"n":2}` {
				t.Errorf("output: %s", r.Output)
			}
		})
	}
}

// A parent that was aborted ends without its children and cancels them then. If the
// process ends in between, a child that waits for a person must not wait for ever,
// and its call must not run when somebody answers.
func TestAChildThatWaitsDoesNotOutliveItsParent(t *testing.T) {
	h, calls := dynasty(t)
	h.alone = true // of nodes: TestAnotherNodeEndsWhatWaitsBelowAnEndedRun
	r := h.paused(h.run("go"), 1)
	asks := r.Interrupts[0]
	h.engine.Close()
	// The profile of the run in the middle is gone, so that it is aborted at the
	// start; the process ends right after that is durable.
	kid := h.agents["kid"]
	delete(h.agents, "kid")
	middle, low := r.ID+".c1", r.ID+".c1.c1"
	good := h.store
	s := &pickyStore{Store: good}
	var dead atomic.Bool
	down := make(chan struct{})
	s.set(func(tx *store.Tx) bool {
		if dead.Load() {
			return true
		}
		if about(tx, middle) {
			if err := good.Commit(context.Background(), tx); err != nil {
				t.Error(err)
			}
			if dead.CompareAndSwap(false, true) {
				close(down)
			}
			return true
		}
		return false
	})
	h.store = s
	h.start()
	<-down
	h.engine.Close()
	h.agents["kid"], h.store = kid, good
	if row, err := good.Run(t.Context(), store.DefaultTenant, middle); err != nil || row.Status != string(run.Failed) {
		t.Fatalf("the run in the middle: %+v, %v", row, err)
	}
	if row, err := good.Run(t.Context(), store.DefaultTenant, low); err != nil || row.Status != string(run.Paused) {
		t.Fatalf("the run that asks: %+v, %v", row, err)
	}
	// Whoever answers first, before anybody looked after it, is told.
	e, err := New(Config{Store: h.store, Agents: h.agents, Log: h.log})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Answer(t.Context(), AnswerRequest{Interrupt: asks.ID, Decision: "approve"})
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), middle) {
		t.Errorf("an answer: %v", err)
	}
	e.Close()
	h.start()
	h.ends(&Run{ID: low}, "cancelled")
	if i, err := h.engine.Interrupt(t.Context(), ref(asks.ID)); err != nil || i.Status != "cancelled" {
		t.Errorf("%+v, %v", i, err)
	}
	h.ends(r, "completed")
	if len(calls.n) != 0 {
		t.Errorf("it was called: %v", calls.n)
	}
}

// The same for a child that has not started: nobody would read its answer.
func TestAQueuedChildDoesNotOutliveItsParent(t *testing.T) {
	asked := &counter{}
	h := family(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		asked.add("model")
		return say("42")
	})
	h.engine.Close()
	good := h.store
	s := &pickyStore{Store: good}
	h.store = s
	// The child is accepted and never claimed.
	child := make(chan string, 10)
	s.set(func(tx *store.Tx) bool {
		if len(tx.Runs) == 1 && strings.HasSuffix(tx.Runs[0].ID, ".c1") {
			child <- tx.Runs[0].ID
			return true
		}
		return false
	})
	h.start()
	r := h.run("go")
	low := <-child
	h.engine.Close()
	// Its parent can not go on, and the process ends right after that is durable.
	parent := h.agents["test"]
	delete(h.agents, "test")
	down := make(chan struct{})
	var dead atomic.Bool
	s.set(func(tx *store.Tx) bool {
		if about(tx, r.ID) && !dead.Load() {
			if err := good.Commit(context.Background(), tx); err != nil {
				t.Error(err)
			}
			if dead.CompareAndSwap(false, true) {
				close(down)
			}
		}
		return dead.Load() || about(tx, low)
	})
	h.start()
	<-down
	h.engine.Close()
	h.agents["test"], h.store = parent, good
	asked.n = nil
	h.start()
	h.ends(&Run{ID: low}, "cancelled")
	if len(asked.n) != 0 {
		t.Error("its model was asked")
	}
	h.ends(r, "failed")
}

// A cancel that was acknowledged holds for the whole tree, also where it has not
// arrived yet.
func TestNoAnswerAfterTheRootWasCancelled(t *testing.T) {
	h, calls := dynasty(t)
	h.engine.Close()
	s := &pickyStore{Store: h.store}
	h.store = s
	h.start()
	r := h.paused(h.run("go"), 1)
	low := r.ID + ".c1.c1"
	h.gone(&Run{ID: low})
	// The cancel does not get further than the root.
	s.set(func(tx *store.Tx) bool { return about(tx, r.ID+".c1") || about(tx, low) })
	h.cancel(r)
	s.set(func(*store.Tx) bool { return false })
	_, err := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: low + ".i1", Decision: "approve"})
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("an answer: %v", err)
	}
	h.ends(r, "cancelled")
	h.restart()
	h.ends(&Run{ID: low}, "cancelled")
	if len(calls.n) != 0 {
		t.Errorf("it was called: %v", calls.n)
	}
}

// staleStore does not see, once, what was stored under an idempotency key: as one
// who looked just before it was.
type staleStore struct {
	store.Store
	stale atomic.Bool
}

func (s *staleStore) Runs(ctx context.Context, tenant string, f store.RunFilter) ([]*store.Run, string, error) {
	if f.IdempotencyKey != "" && s.stale.CompareAndSwap(true, false) {
		return nil, "", nil
	}
	return s.Store.Runs(ctx, tenant, f)
}

// A request that is sent again while its first attempt is being accepted finds that
// one's run, and does not interrupt it.
func TestARepeatedRequestDoesNotInterruptItself(t *testing.T) {
	for _, busy := range []WhenBusy{Interrupt, Rollback} {
		t.Run(string(busy), func(t *testing.T) {
			g := newGate()
			h := newHarness(t, listener, gated("work", tool.Read, g))
			h.engine.Close()
			s := &staleStore{Store: h.store}
			h.store = s
			h.start()
			first := h.begin(StartRequest{Input: blocks("go")})
			<-g.entered
			req := StartRequest{SessionID: first.SessionID, Input: blocks("go"), WhenBusy: busy, IdempotencyKey: "k"}
			second := h.begin(req)
			h.ends(first, "cancelled")
			<-g.entered
			s.stale.Store(true)
			again, err := h.engine.Start(t.Context(), req)
			if err != nil || again.ID != second.ID {
				t.Fatalf("%+v, %v", again, err)
			}
			s.stale.Store(true)
			req.Input = blocks("another")
			if _, err := h.engine.Start(t.Context(), req); fault.KindOf(err) != fault.Conflict {
				t.Errorf("another request under the key: %v", err)
			}
			close(g.open)
			h.ends(second, "completed")
		})
	}
}

// redacting agents hide a field of every tool.
type redacting struct{ agents }

func (redacting) Redactor(string, string) (Redact, error) {
	return func(_ string, data json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(data), "hunter2", "[hidden]"))
	}, nil
}

// What is hidden in a call's arguments is hidden in those that a person wrote, too;
// who wrote them is not.
func TestAmendedArgumentsAreRedacted(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{"password":"x"}`), asking(echoTool(tool.Once)))
	h.engine.Close()
	e, err := New(Config{Store: h.store, Agents: redacting{h.agents}, Log: h.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	h.engine = e
	r := h.paused(h.run("go"), 1)
	i := h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"password":"hunter2"}`), By: "key 7"})
	if string(i.Answer) != `{"password":"[hidden]"}` || i.AnsweredBy != "key 7" {
		t.Errorf("%+v", i)
	}
	if r = h.ends(r, "completed"); !strings.Contains(r.Output, "hunter2") {
		t.Errorf("the tool did not get it: %s", r.Output)
	}
}

// An answer to what is no question would be dropped, and the call made as it was.
func TestAnAnswerIsNotAnAmendment(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{"n":1}`), asking(echoTool(tool.Once)))
	r := h.paused(h.run("go"), 1)
	for _, d := range []string{"approve", "reject"} {
		_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: d, Answer: json.RawMessage(`{"n":2}`)})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.HintOf(err), "args") {
			t.Errorf("%s: %v", d, err)
		}
	}
	h.paused(r, 1)
}

// checkpoint_schema: freeform.
func TestFreeformQuestions(t *testing.T) {
	h := newHarness(t, oneCall(AskUserQuestion, `{"question":"Which colour?","choices":["red","blue"]}`))
	h.agents["test"].AskUser, h.agents["test"].Freeform = true, true
	r := h.paused(h.run("go"), 1)
	if i := r.Interrupts[0]; i.Prompt != "Which colour?\n\n- red\n- blue" || len(i.Schema) != 0 {
		t.Errorf("%+v", i)
	}
	h.answer(AnswerRequest{Run: r.ID, Decision: "answer", Answer: text("the blue one")})
	if r = h.ends(r, "completed"); r.Output != "It said: the blue one" {
		t.Errorf("output: %s", r.Output)
	}
	h.agents["test"].Models[0].Provider = oneCall(AskUserQuestion, `{"question":"Where to?","schema":{"type":"object"}}`)
	if r = h.ends(h.run("go"), "completed"); !strings.Contains(r.Output, "schema: is not known here") {
		t.Errorf("a form: %s", r.Output)
	}
}

// Runs that were turned away together do not come back together.
func TestRetriesAreSpread(t *testing.T) {
	seen := map[time.Duration]int{}
	for n := range 100 {
		d := spread(fmt.Sprint("run_", n), 1000, 10*time.Second)
		if d < 0 || d > time.Second || d != spread(fmt.Sprint("run_", n), 1000, 10*time.Second) {
			t.Fatalf("%v", d)
		}
		seen[d/(100*time.Millisecond)]++
	}
	if len(seen) < 8 {
		t.Errorf("%v", seen)
	}
	if d := spread("run_1", 1000, -time.Second); d != 0 {
		t.Errorf("%v", d)
	}
}

// A call that waits for a place among those that run is not idle.
func TestWaitingForAPlaceIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		h := newHarness(t, hello)
		a := h.agents["test"]
		a.Settings.Retry = run.Retry{}
		a.Models[0].Provider = providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			emit(model.StreamEvent{Type: model.StreamWaiting})
			select {
			case <-time.After(10 * a.ModelIdle):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			emit(model.StreamEvent{Type: model.StreamAdmitted})
			if err := g.pass(ctx); err != nil { // now it is
				return nil, err
			}
			return say("never")
		})
		r, err := h.engine.Wait(t.Context(), ref(h.run("go").ID))
		if err != nil || len(g.entered) != 1 || r.Status != "failed" || !strings.Contains(r.Error.Message, "nothing came for 1m0s") {
			t.Errorf("%d calls were admitted, %+v, %v", len(g.entered), r, err)
		}
	})
}

// Temporary ids are replaced wherever a model may write them, or the call is not
// made.
func TestTemporaryIDs(t *testing.T) {
	id := func(s string) json.RawMessage { return json.RawMessage(s) }
	made := func(id string, status string, real json.RawMessage) *store.Proposal {
		return &store.Proposal{ID: id, Temp: "tmp." + id, ProposalUpdate: store.ProposalUpdate{Status: status, Real: real}}
	}
	trees := map[string][]*store.Proposal{
		"run_a": {made("run_a.p1", applied, id(`"one"`)), made("run_a.p10", applied, id(`10`)), made("run_a.c2.p1", applied, id(`"child"`)),
			made("run_a.p2", proposed, nil), made("run_a.p3", applied, nil)},
		"run_b": {made("run_b.p1", applied, id(`"before"`))},
	}
	lookup := func(runID string) ([]*store.Proposal, error) {
		if runID == "run_gone" {
			return nil, errors.Join(store.ErrNotFound)
		}
		return trees[runID], nil
	}
	for _, tt := range []struct{ args, want, wrong string }{
		{`{"a":"tmp.run_a.p1"}`, `{"a":"one"}`, ""},
		{`{"a":"tmp.run_a.p10"}`, `{"a":10}`, ""},
		{`{"a":"see tmp.run_a.p10, and tmp.run_a.p1."}`, `{"a":"see 10, and one."}`, ""},
		{`{"a":"notes/tmp.run_a.p1.txt"}`, `{"a":"notes/one.txt"}`, ""},
		{`{"a":"tmp.run_a.p1_copy"}`, `{"a":"one_copy"}`, ""},
		{`{"a":[{"b":"tmp.run_a.c2.p1"}]}`, `{"a":[{"b":"child"}]}`, ""},
		{`{"tmp.run_a.p1":true}`, `{"one":true}`, ""},
		{`{"a":"tmp.run_b.p1"}`, `{"a":"before"}`, ""},
		{`{"a":"tmp.file and tmp.run_"}`, `{"a":"tmp.file and tmp.run_"}`, ""},
		{`{"a":"tmp.run_a.p2"}`, "", "it needs the id that run_a.p2 makes, and there is none: it is proposed"},
		{`{"a":"x tmp.run_a.p3"}`, "", "its result names no id"},
		{`{"a":"tmp.run_a.p99"}`, "", "it names tmp.run_a.p99, and there is no such proposal"},
		{`{"a":"tmp.run_gone.p1"}`, "", "there is no such proposal"},
		{`{"tmp.run_a.p1":1,"one":2}`, "", "twice"},
	} {
		s := &substitution{of: &store.Proposal{ID: "run_a.p7", RunID: "run_a", Name: "x"}, temp: temporary(), lookup: lookup}
		var v any
		if err := json.Unmarshal([]byte(tt.args), &v); err != nil {
			t.Fatal(err)
		}
		v, err := s.value(v)
		if tt.wrong != "" {
			if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: %v", tt.args, err)
			}
			continue
		}
		if got, _ := tool.EncodeJSON(v); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v", tt.args, got, err)
		}
	}
	for result, want := range map[string]string{"ok": "", "Done": "", "success": "", "7": `"7"`, " abc-12 ": `"abc-12"`, "a 1": "", `{"id":3,"x_id":4}`: "3",
		`{"x_id":4}`: "4", `{"x_id":4,"y_id":5}`: "", `"q"`: "", "": ""} {
		if got := string(madeID(result)); got != want {
			t.Errorf("the id of %q is %s", result, got)
		}
	}
}

// A later run of the conversation knows the temporary ids of an earlier one.
func TestATemporaryIDOfAnEarlierRun(t *testing.T) {
	h, made := proposing(t, tool.Once)
	r := h.autonomous()
	h.agents["test"].Models[0].Provider = oneCall("create", `{"parent":"tmp.`+r.ID+`.p1"}`)
	next := h.ends(h.begin(StartRequest{Mode: Autonomous, SessionID: r.SessionID}), "completed")
	if _, err := h.engine.Apply(t.Context(), decision(next)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), r.ID+".p1 makes") {
		t.Errorf("before the earlier one: %v", err)
	}
	for _, x := range []*Run{r, next} {
		if _, err := h.engine.Apply(t.Context(), decision(x)); err != nil {
			t.Fatal(err)
		}
	}
	if made.n[`a {"parent":"real-a"} /1/a`] != 1 {
		t.Errorf("made %v", made.n)
	}
}
