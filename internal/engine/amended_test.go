package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// forgetful is a store that can not read interrupts for a while.
type forgetful struct {
	store.Store
	store.Cluster
	mu sync.Mutex
	// onAnswer is how often it can not, from the next answer on.
	onAnswer, away, refused int
}

func (s *forgetful) Commit(ctx context.Context, tx *store.Tx) error {
	err := s.Store.Commit(ctx, tx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(tx.Answers) > 0 {
		s.away, s.onAnswer = s.away+s.onAnswer, 0
	}
	return err
}

func (s *forgetful) Interrupt(ctx context.Context, tenant, id string) (*store.Interrupt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away > 0 {
		s.away--
		s.refused++
		return nil, errors.New("the store is away")
	}
	return s.Store.Interrupt(ctx, tenant, id)
}

func (s *forgetful) Close() error { return s.Store.Close() }

// pays is a tool that needs a person's word.
func pays(effect tool.Effect, pool string, f func(context.Context, tool.Call) (tool.Result, error)) tool.Tool {
	return toolFunc{tool.Spec{Name: "pay", Effect: effect, Pool: pool, Approval: "always", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, f}
}

func paid(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.TextResult("paid " + string(c.Args)), nil
}

// What a person made of a call's arguments is called, whether the store can be read just
// then or not: that it can not is nothing that the model should hear.
func TestAmendedArgumentsOutlastTheStoresAbsence(t *testing.T) {
	approve := func(h *harness, r *Run) {
		_, _ = h.engine.Answer(h.t.Context(), AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"n":2}`)}) // what it shows then can not be read
	}
	const want = `It said: paid {"n":2}`
	t.Run("at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, oneCall("pay", `{"n":1}`), pays(tool.Once, "", paid))
			s := &forgetful{Store: h.store, Cluster: h.store.(store.Cluster)}
			h.store = s
			h.restart()
			r := h.paused(h.run("go"), 1)
			s.onAnswer = 3
			approve(h, r)
			if r = h.ends(r, "completed"); r.Output != want {
				t.Errorf("%s", r.Output)
			}
		})
	})
	t.Run("after a crash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var crashed atomic.Bool
			entered := make(chan struct{})
			h := newHarness(t, oneCall("pay", `{"n":1}`), pays(tool.Idempotent, "", func(ctx context.Context, c tool.Call) (tool.Result, error) {
				if !crashed.Load() {
					close(entered)
					<-ctx.Done()
				}
				return paid(ctx, c)
			}))
			s := &forgetful{Store: h.store, Cluster: h.store.(store.Cluster)}
			h.store = s
			h.alone = true // others look again hours later
			h.restart()
			r := h.paused(h.run("go"), 1)
			approve(h, r)
			<-entered
			h.engine.Close()
			crashed.Store(true)
			s.away = 3
			h.start()
			if r = h.ends(r, "completed"); r.Output != want || s.refused == 0 {
				t.Errorf("%s, %d reads were refused", r.Output, s.refused)
			}
		})
	})
	t.Run("at a node of a pool", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNodes(t, oneCall("pay", `{"n":1}`), pays(tool.Once, "tool.gpu", paid))
			s := &forgetful{Store: n.store, Cluster: n.store.(store.Cluster), away: 3}
			home := n.node("home", true, pooled("run", "model", "tool"))
			n.node("gpu", false, pooled("tool.gpu"), func(c *Config) { c.Store = s })
			r := n.paused(n.started(home, StartRequest{}), 1)
			approve(n.harness, r)
			n.ended(home, r.ID, "completed")
			if tr := n.transcript(r.SessionID); !strings.Contains(tr, `paid {\"n\":2}`) || s.refused != 3 {
				t.Errorf("%d reads were refused\n%s", s.refused, tr)
			}
		})
	})
}

// A plan that is approved with a stricter mode binds the calls beside it that were judged
// by the laxer one and still wait: behind another, for a person's word, or for what a
// person makes of them.
func TestAStricterModeBindsWhatWaits(t *testing.T) {
	gate := make(chan struct{})
	var made sync.Map
	note := func(_ context.Context, c tool.Call) (tool.Result, error) {
		made.Store(c.ID, string(c.Args))
		return tool.TextResult("made"), nil
	}
	a := &obedient{call: func(*model.Request) []message.Block {
		return []message.Block{call("plan", ProposePlan, `{"plan":"1. look"}`), call("slow", "slow", `{}`), call("behind", "write", `{}`), call("look", "look", `{}`),
			call("pay", "pay", `{}`), call("ls", "sh", `{"command":"ls"}`), call("rm", "sh", `{"command":"rm x"}`), call("amended", "sh", `{"command":"ls -a"}`)}
	}}
	h := newHarness(t, a.model,
		toolFunc{tool.Spec{Name: "slow", Effect: tool.Idempotent, Sequential: true}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return note(ctx, c)
		}},
		toolFunc{tool.Spec{Name: "write"}, note}, toolFunc{tool.Spec{Name: "look", Effect: tool.Read}, note},
		pays(tool.Once, "", note), toolFunc{tool.Spec{Name: "sh", Approval: "always"}, note})
	ag := h.agents["test"]
	ag.Plans, ag.Modes.Allows = true, policy.Modes{Commands: map[string]string{"sh": "command"}}
	r := h.begin(StartRequest{Input: blocks("go")})
	for range h.engine.Watch(t.Context(), ref(r.ID), 0) {
		if now, err := h.engine.Get(t.Context(), ref(r.ID)); err != nil || len(now.Interrupts) == 5 {
			r = now
			break
		}
	}
	of := func(id string) (interrupt string) {
		for _, i := range r.Interrupts {
			if i.ToolCall != nil && i.ToolCall.ToolCallID == id {
				return i.ID
			}
		}
		t.Fatalf("%s is not asked about: %+v", id, r.Interrupts)
		return ""
	}
	h.restart()
	h.answer(AnswerRequest{Interrupt: of("plan"), Decision: "approve", SessionMode: ModePlan})
	for _, id := range []string{"pay", "rm"} {
		_, err := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: of(id), Decision: "approve"})
		h.refuses(err, fault.Conflict, "no longer open")
	}
	// Checked by the mode that was, as another's answer was faster.
	in := run.Answered{At: run.At{Now: h.engine.now()}, Interrupt: of("amended"), Decision: "approve", Amended: true}
	h.refuses(h.engine.send(t.Context(), ref(r.ID), withArgs{in, "amended", json.RawMessage(`{"command":"rm y"}`)}, nil), fault.Conflict, "mode plan")
	h.answer(AnswerRequest{Interrupt: of("amended"), Decision: "approve", Args: json.RawMessage(`{"command":"ls -l"}`)})
	h.answer(AnswerRequest{Interrupt: of("ls"), Decision: "approve"})
	close(gate)
	if r = h.ends(r, "completed"); r.SessionMode != ModePlan {
		t.Errorf("the run is in mode %q", r.SessionMode)
	}
	for id, want := range map[string]any{"slow": `{}`, "look": `{}`, "ls": `{"command":"ls"}`, "amended": `{"command":"ls -l"}`, "behind": nil, "pay": nil, "rm": nil} {
		if got, _ := made.Load(id); got != want {
			t.Errorf("%s was called with %v, not %v", id, got, want)
		}
	}
	if tr := h.transcript(r.SessionID); strings.Count(tr, forbidden+"plan") != 3 {
		t.Errorf("%s", tr)
	}
}
