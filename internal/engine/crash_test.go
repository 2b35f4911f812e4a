package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// crashStore stops taking commits at the n-th one, as if the process had been
// killed there: before the commit reached the disk, or right after it did.
type crashStore struct {
	store.Store
	mu    sync.Mutex
	at    int // 0: never
	after bool
	n     int
	down  chan struct{} // closed at the crash
}

func (s *crashStore) Commit(ctx context.Context, tx *store.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.at > 0 && s.n > s.at {
		return store.ErrFenced
	}
	if s.n == s.at {
		defer close(s.down)
		if !s.after {
			return store.ErrFenced
		}
		if err := s.Store.Commit(ctx, tx); err != nil {
			return err
		}
		return store.ErrFenced
	}
	return s.Store.Commit(ctx, tx)
}

// workload is a run with parallel tools of every effect, a sequential batch and
// a child run.
func workload(calls *counter) (modelFunc, []tool.Tool) {
	counting := func(name string, effect tool.Effect, sequential bool) tool.Tool {
		return toolFunc{tool.Spec{Name: name, Effect: effect, Sequential: sequential}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(name + " " + c.ID)
			return tool.TextResult(name + " did " + string(c.Args)), nil
		}}
	}
	script := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if strings.Contains(req.Messages[0].Text(), "child") {
			if step == 0 {
				return say("", call("c1", "read", `{"from":"child"}`))
			}
			return say("the child is done")
		}
		switch step {
		case 0:
			return say("first", call("r1", "read", `{"n":1}`), call("i1", "idem", `{"n":2}`), call("o1", "once", `{"n":3}`), call("r2", "read", `{"n":4}`))
		case 1:
			return say("second", call("s1", "seq", `{"n":5}`), call("o2", "once", `{"n":6}`))
		case 2:
			return say("third", call("k1", CreateSubagent, `{"subagent_type":"test","prompt":"child"}`), call("r3", "read", `{"n":7}`))
		}
		return say("finished")
	}
	return script, []tool.Tool{counting("read", tool.Read, false), counting("idem", tool.Idempotent, false),
		counting("once", tool.Once, false), counting("seq", tool.Idempotent, true)}
}

func crashHarness(t *testing.T, at int, after bool) (*harness, *crashStore, *counter) {
	calls := &counter{}
	script, tools := workload(calls)
	h := newHarness(t, script, tools...)
	h.engine.Close()
	h.agents["test"].Subagents = []string{"test"}
	cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
	h.store = cs
	h.start()
	return h, cs, calls
}

// TestCrashAtEveryCommit kills the engine at every commit of a run, once before
// and once after the commit is durable, and lets a new engine go on. Nothing
// acknowledged is lost, no once tool runs twice without a person's word, and the
// transcript is that of an uninterrupted run.
func TestCrashAtEveryCommit(t *testing.T) {
	h, cs, _ := crashHarness(t, 0, false)
	r := h.wait(h.run("go"))
	want, commits := h.transcript(r.SessionID), cs.n
	if r.Status != "completed" || commits < 8 {
		t.Fatalf("the uninterrupted run: %+v with %d commits", r, commits)
	}
	t.Logf("%d commits\n%s", commits, want)
	for at := 1; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) { crashOnce(t, at, after, want) })
		}
	}
}

func crashOnce(t *testing.T, at int, after bool, want string) {
	h, cs, calls := crashHarness(t, at, after)
	crashRun(t, h, cs, calls, want)
}

// crashRun is one run on a harness whose store fails at a commit.
func crashRun(t *testing.T, h *harness, cs *crashStore, calls *counter, want string) {
	t.Helper()
	ctx := context.Background()
	r, err := h.engine.Start(ctx, StartRequest{Input: []message.Block{message.Text("go")}})
	if err != nil {
		if cs.at == 1 {
			return // it was never acknowledged
		}
		t.Fatal(err)
	}
	ref := Ref{store.DefaultTenant, r.ID}
	engine := h.engine
	go func() {
		<-cs.down
		engine.Close()
	}()
	var seen int64
	for ev, err := range h.engine.Watch(ctx, ref, 0) {
		if err != nil {
			break
		}
		seen = ev.Seq
	}
	engine.Close() // dead before the store takes commits again
	// Commits join when they meet, so this run may have ended before the n-th:
	// then it is compared all the same.
	cs.mu.Lock()
	cs.at = 0
	cs.mu.Unlock()
	h.restart()
	uncertain := answerUncertain(t, h, ref)
	r = h.wait(r)
	got := h.transcript(r.SessionID)
	if !uncertain && got != want {
		t.Errorf("the transcript differs:\n%s\nwant\n%s", got, want)
	}
	if r.Status != "completed" {
		t.Errorf("it ended %s: %+v", r.Status, r.Error)
	}
	for key, n := range calls.n {
		if strings.HasPrefix(key, "once ") && n > 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
	for ev, err := range h.engine.Watch(ctx, ref, seen) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Seq <= seen {
			t.Fatalf("event %d came again", ev.Seq)
		}
	}
}

// answerUncertain marks every uncertain call as done until the run ends, and
// says whether there was one.
func answerUncertain(t *testing.T, h *harness, ref Ref) (any bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for ev, err := range h.engine.Watch(ctx, ref, 0) {
		if err != nil {
			t.Fatal(err)
		}
		_ = ev
		r, err := h.engine.Get(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status(r.Status).Ended() {
			return any
		}
		for _, i := range r.Interrupts {
			any = true
			if i.Kind != "uncertain" {
				t.Errorf("an interrupt of kind %s", i.Kind)
			}
			if _, err := h.engine.Answer(ctx, AnswerRequest{Interrupt: i.ID, Decision: "done"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return any
}
