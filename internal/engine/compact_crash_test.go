package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A crash at every commit of a run that is compacted: it ends as if nothing had happened.
func TestCrashAtEveryCommitOfACompaction(t *testing.T) {
	for _, capped := range []bool{false, true} {
		t.Run(fmt.Sprintf("capped %v", capped), func(t *testing.T) { crashCompactions(t, capped) })
	}
}

func crashCompactions(t *testing.T, capped bool) {
	make1 := func(t *testing.T, at int, after bool) (*harness, *crashStore, *windowed) {
		w := &windowed{window: 6000}
		w.answer = func(_ int, req *model.Request) (*message.Message, error) {
			// How far it is stands in the conversation alone: calls that an engine made whose
			// commits are lost must not bring the end nearer.
			next := 1
			for strings.Contains(conversationText(req), fmt.Sprintf("DECISION-%d", next)) {
				next++
			}
			if next > 9 {
				return say("done")
			}
			return say("", call(fmt.Sprint("c", next), "read", fmt.Sprintf(`{"path":"a.go","n":%d}`, next)))
		}
		h := newHarness(t, w.generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			var args struct{ N int }
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return tool.Result{}, err
			}
			return tool.TextResult(fmt.Sprintf("DECISION-%d ", args.N) + strings.Repeat("line ", 700)), nil
		}})
		h.engine.Close()
		h.windowed(w, true)
		if capped {
			a := h.agents["test"]
			a.Caps, a.Models[0].Info, a.Models[0].MaxTokens = Caps{MaxTokens: 1_000_000, MaxCost: message.Dollar * 1_000_000}, dollarPrice(), 500
		}
		cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
		h.store = cs
		h.start()
		return h, cs, w
	}
	h, cs, _ := make1(t, 0, false)
	r := h.wait(h.run("go"))
	commits := cs.n
	if r.Status != "completed" || len(h.compactions(r.SessionID)) == 0 {
		t.Fatalf("the uninterrupted run: %s %+v, %d compactions", r.Status, r.Error, len(h.compactions(r.SessionID)))
	}
	for at := 2; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				h, cs, _ := make1(t, at, after)
				r, err := h.engine.Start(t.Context(), StartRequest{Input: []message.Block{message.Text("go")}})
				if err != nil {
					t.Fatal(err)
				}
				engine := h.engine
				go func() {
					<-cs.down
					engine.Close()
				}()
				for _, err := range engine.Watch(t.Context(), ref(r.ID), 0) {
					if err != nil {
						break
					}
				}
				engine.Close() // the run may have ended before that commit: some join
				cs.mu.Lock()
				cs.at = 0
				cs.mu.Unlock()
				h.restart()
				if r = h.wait(r); r.Status != "completed" || r.Output != "done" {
					t.Fatalf("%s %s %+v", r.Status, r.StopReason, r.Error)
				}
				if len(h.compactions(r.SessionID)) == 0 {
					t.Error("it was not compacted")
				}
				report, err := cs.Store.(store.Checker).Check(t.Context(), store.CheckOptions{State: Examine})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range report.Findings {
					if f.Check != "server" {
						t.Errorf("the store: %+v", f)
					}
				}
				if capped {
					if p := h.pot(store.PotRun, r.ID); p.Held != (store.Amounts{}) || p.Settled.Tokens == 0 {
						t.Errorf("%+v", p)
					}
				}
			})
		}
	}
}
