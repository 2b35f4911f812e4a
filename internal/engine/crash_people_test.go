package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// answers answers all that a run asks until it has ended, and reports whether it
// has. Each answer is given as often as it takes; what the engine says to one that
// it has taken before is not looked at.
func (h *harness) answers(r *Run, how func(*InterruptView) AnswerRequest) (ended bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, err := range h.engine.Watch(ctx, ref(r.ID), 0) {
		if err != nil {
			return false
		}
		now, err := h.engine.Get(ctx, ref(r.ID))
		if err != nil {
			return false
		}
		if run.Status(now.Status).Ended() {
			return true
		}
		for _, i := range now.Interrupts {
			req := how(i)
			req.Interrupt = i.ID
			if _, err := h.engine.Answer(ctx, req); fault.KindOf(err) == fault.Invalid {
				h.t.Errorf("%s: %v", i.ID, err)
				return false
			}
		}
	}
	return false
}

// afterCrash goes on after the crash, if there was one: commits join when they meet,
// so a run may have ended with fewer than before.
func (h *harness) afterCrash(cs *crashStore) {
	h.t.Helper()
	cs.mu.Lock() // a commit that readers see already may be about to be the last one
	crashed := false
	select {
	case <-cs.down:
		crashed = true
	default:
		cs.at = 0
	}
	cs.mu.Unlock()
	if !crashed {
		return
	}
	_ = h.engine.Close() // what it knows of the crash must not reach the store that is up again
	cs.mu.Lock()
	cs.at = 0
	cs.mu.Unlock()
	h.restart()
}

// asked is a harness whose runs ask for everything that people can be asked for:
// approvals of calls of both kinds, one of them changed and one remembered, a
// question, and an approval in a subagent; and a model that makes the remembered
// call again.
func openInterrupt(t *testing.T, at int, after bool) (*harness, *crashStore, *counter) {
	calls := &counter{}
	counting := func(name string, effect tool.Effect) tool.Tool {
		return asking(toolFunc{tool.Spec{Name: name, Effect: effect}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(name + " " + string(c.Args) + " " + c.Key[strings.IndexByte(c.Key, '/'):])
			return tool.TextResult(name + " did " + string(c.Args)), nil
		}})
	}
	script := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if strings.Contains(req.Messages[0].Text(), "child") {
			if step == 0 {
				return say("", call("c1", "once", `{"from":"child"}`))
			}
			return say("the child is done")
		}
		switch step {
		case 0:
			return say("", call("o1", "once", `{"n":1}`), call("i1", "idem", `{"n":2}`), call("q1", AskUserQuestion, `{"question":"Which?"}`),
				call("k1", CreateSubagent, `{"subagent_type":"test","prompt":"child"}`))
		case 1:
			return say("", call("i2", "idem", `{"n":20}`))
		}
		return say("finished")
	}
	h := newHarness(t, script, counting("once", tool.Once), counting("idem", tool.Idempotent))
	h.engine.Close()
	h.agents["test"].Subagents, h.agents["test"].AskUser = []string{"test"}, true
	cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
	h.store = cs
	h.start()
	return h, cs, calls
}

// TestCrashAtEveryCommitWithPeople is TestCrashAtEveryCommit for a run that people
// are asked in: no answer that was taken is lost or counts twice, what they changed
// reaches the tool, and what they allowed is allowed once.
func TestCrashAtEveryCommitWithPeople(t *testing.T) {
	how := func(i *InterruptView) AnswerRequest {
		switch {
		case i.Kind == "question":
			return AnswerRequest{Answer: text("this")}
		case i.Kind == "uncertain":
			return AnswerRequest{Decision: "done"}
		case i.ToolCall.ToolCallID == "i1":
			return AnswerRequest{Decision: "approve", Args: []byte(`{"n":20}`), Remember: true}
		}
		return AnswerRequest{Decision: "approve"}
	}
	const want = `user "go"
assistant [o1 once {"n":1}] [i1 idem {"n":2}] [q1 ask_user_question {"question":"Which?"}] [k1 create_subagent {"subagent_type":"test","prompt":"child"}]
toolResult "once did {\"n\":1}" for o1 error=false
toolResult "idem did {\"n\":20}" for i1 error=false
toolResult "this" for q1 error=false
toolResult "the child is done" for k1 error=false
assistant [i2 idem {"n":20}]
toolResult "idem did {\"n\":20}" for i2 error=false
assistant "finished"
`
	commits := 1
	for at := 0; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				h, cs, calls := openInterrupt(t, at, after)
				r, err := h.engine.Start(context.Background(), StartRequest{Input: blocks("go")})
				if err != nil {
					if at == 1 {
						return // it was never acknowledged
					}
					t.Fatal(err)
				}
				if at > 0 {
					dead := h.engine
					go func() {
						<-cs.down
						dead.Close()
					}()
				}
				over := h.answers(r, how)
				if at == 0 {
					commits = cs.n
				}
				if h.afterCrash(cs); !over && !h.answers(r, how) {
					t.Fatal("it does not go on")
				}
				r = h.ends(r, "completed")
				doubt := "agentd was restarted while this call ran; a person checked that it happened."
				if got := strings.ReplaceAll(h.transcript(r.SessionID), doubt, `once did {\"n\":1}`); got != want {
					t.Errorf("transcript:\n%s", got)
				}
				for what, n := range calls.n {
					if n > 1 && strings.HasPrefix(what, "once") {
						t.Errorf("%s ran %d times", what, n)
					}
				}
				if calls.n[`idem {"n":20} /1/i1`] == 0 || calls.n[`idem {"n":20} /2/i2`] == 0 {
					t.Errorf("calls: %v", calls.n)
				}
				if rules := h.rules(r.SessionID); len(rules) != 1 || rules[0].Allows != `{"n":20}` {
					t.Errorf("rules: %+v", rules)
				}
				all, _, err := h.store.Interrupts(t.Context(), store.DefaultTenant, store.InterruptFilter{RunID: r.ID})
				for _, i := range all {
					if i.Status != "answered" {
						t.Errorf("interrupt %s is %s", i.ID, i.Status)
					}
				}
				if len(all) < 4 || err != nil {
					t.Errorf("%d interrupts, %v", len(all), err)
				}
			})
		}
	}
}

// TestCrashAtEveryCommitOfAProposingRun: what an autonomous run proposes is
// recorded once, wherever its process ends.
func TestCrashAtEveryCommitOfAProposingRun(t *testing.T) {
	commits := 1
	for at := 0; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				h, made := proposing(t, tool.Once)
				h.engine.Close()
				cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
				h.store = cs
				h.start()
				r, err := h.engine.Start(context.Background(), StartRequest{Mode: Autonomous, Input: blocks("go")})
				if err != nil {
					if at == 1 {
						return
					}
					t.Fatal(err)
				}
				if at > 0 {
					dead := h.engine
					go func() {
						<-cs.down
						dead.Close()
					}()
				}
				h.answers(r, nil)
				if at == 0 {
					commits = cs.n
				}
				h.afterCrash(cs)
				h.ends(r, "completed")
				if got := h.proposals(r); got != "p1 proposed , p2 proposed " || len(made.n) != 0 {
					t.Errorf("proposals: %s, made %v", got, made.n)
				}
				if _, err := h.engine.Apply(t.Context(), decision(r)); err != nil || len(made.n) != 2 {
					t.Errorf("%v, made %v", err, made.n)
				}
			})
		}
	}
}
