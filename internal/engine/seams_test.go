package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"agentd/event"
	"agentd/internal/rate"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Where budgets, limits of use, and what keeps sessions alive meet.

// A run that shares limits of tool calls alone has no cap of money or tokens that a
// long reply could pass. Nobody knows how long a local model's replies may be.
func TestOnlyWhatIsCappedIsOverspent(t *testing.T) {
	for name, tt := range map[string]struct {
		caps Caps
		stop string
	}{
		"tool calls": {Caps{}, "stop"},
		"tokens":     {Caps{MaxTokens: 100_000}, run.StopMaxTokens},
		"money":      {Caps{MaxCost: 1000 * message.Dollar}, run.StopMaxCost},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
				if step == 0 {
					m, _ := say("so far", call("c", "echo", `{}`))
					return using(m, 10, 50_000)
				}
				m, _ := say("done")
				return using(m, 10, 5)
			}, echoTool(tool.Read))
			a := h.agents["test"]
			a.Subagents, a.Settings.MaxToolCalls, a.Caps, a.Models[0].Info = []string{"test"}, 200, tt.caps, dollarPrice()
			if r := h.ends(h.run("go"), "completed"); r.StopReason != tt.stop {
				t.Errorf("it ended for %s with %q", r.StopReason, r.Output)
			}
		})
	}
}

// What a second attempt cost that left something out is owed, also if it came to
// nothing.
func TestACureThatFailsIsPaidFor(t *testing.T) {
	calls := 0
	p := providerFunc(func(_ context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
		if calls++; images(req) > 0 {
			return nil, refusal("the image is bad")
		}
		m, _ := say("h")
		emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
		return nil, &model.Error{Class: model.ClassInvalid, Provider: "fake", Message: "midway", Usage: &message.Usage{Input: 70, Output: 7, TotalTokens: 77}}
	})
	h := newHarness(t, nil)
	costly(h, "test", Caps{MaxTokens: 100_000}).Models[0].Provider = p
	r := h.wait(h.begin(StartRequest{Input: []message.Block{message.Text("look"), picture()}}))
	if got := h.pot(store.PotRun, r.ID); got.Settled.Tokens < 1000 || got.Held != (store.Amounts{}) || calls != 2 || r.Status != "failed" || r.Usage.TotalTokens != 77 {
		t.Errorf("after %d calls %s, usage %+v, the pot has %+v", calls, r.Status, r.Usage, got)
	}
}

// A call that had begun is not made again: its text was seen, and it has to be paid.
func TestARefusalMidwayIsNotCured(t *testing.T) {
	calls := 0
	p := providerFunc(func(_ context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
		calls++
		m, _ := say("h")
		emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
		return nil, refusal("the image is bad")
	})
	h := newHarness(t, nil)
	h.agents["test"].Models[0].Provider = p
	r := h.wait(h.begin(StartRequest{Input: []message.Block{message.Text("look"), picture()}}))
	if calls != 1 || r.Status != "failed" {
		t.Errorf("%d calls, %s", calls, r.Status)
	}
}

// The text that stands for a short message may be longer than that: a request without
// what is to blame costs no more than what was reserved all the same.
func TestACuredRequestCostsWhatWasReserved(t *testing.T) {
	for name, hook := range map[string]func(context.Context, Ref, []message.Message) ([]message.Message, error){
		"plain": nil,
		"hook": func(_ context.Context, _ Ref, msgs []message.Message) ([]message.Message, error) {
			if len(msgs) > 0 && strings.Contains(msgs[0].Text(), "left out") {
				msgs[0].Content = blocks(msgs[0].Text() + strings.Repeat("more ", 100))
			}
			return msgs, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var refused, taken int64
			h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
				most := inputBound(req) + int64(req.MaxTokens)
				if strings.Contains(req.Messages[0].Text(), "poison") {
					refused = most
					return nil, refusal("no: " + strings.Repeat("because ", 60))
				}
				taken = most
				m, _ := say("fine")
				return using(m, inputBound(req), int64(req.MaxTokens))
			})
			costly(h, "test", Caps{MaxTokens: 1500})
			h.engine.cfg.TransformContext = hook
			r := h.ends(h.run("poison"), "failed")
			r = h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("go on")}))
			p := h.pot(store.PotRun, r.ID)
			if r.Status != "completed" || taken == 0 || taken > refused || p.Settled.Tokens > 1500 || p.Held != (store.Amounts{}) {
				t.Errorf("%s: reserved were %d, it may have cost %d: %+v", r.Status, refused, taken, p)
			}
		})
	}
}

// What a closing call read of long results says nothing of what the next run's call
// reads, which has them whole.
func TestACutRequestMeasuresNothing(t *testing.T) {
	long := toolFunc{tool.Spec{Name: "long", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("x", 8000)), nil
	}}
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		last := &req.Messages[len(req.Messages)-1]
		m, _ := say("closed")
		if last.Role == message.RoleUser && last.Text() == "go" {
			m, _ = say("", call("c", "long", `{}`))
		}
		n := int64(0) // a token a byte
		for i := range req.Messages {
			n += int64(len(req.Messages[i].Text()))
		}
		return using(m, n, 10)
	}, long)
	a := costly(h, "test", Caps{MaxTokens: 6000})
	r := h.ends(h.run("go"), "completed")
	if r.StopReason != run.StopMaxTokens || r.Output != "closed" {
		t.Fatalf("%s: %q", r.StopReason, r.Output)
	}
	a.Caps.MaxTokens = 8000
	r = h.wait(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("and?")}))
	if p := h.pot(store.PotRun, r.ID); p.Settled.Tokens > 8000 || r.StopReason != run.StopMaxTokens {
		t.Errorf("%s %s: the cap of 8000 was passed: %+v", r.Status, r.StopReason, p)
	}
}

// Tools of a server that came back make requests larger than the last reply told.
func TestNewToolsAreNotMeasured(t *testing.T) {
	h := newHarness(t, nil)
	d := &driver{e: h.engine, row: &store.Run{}, measured: measured{tokens: 9}}
	if d.adopt(h.agents["test"]); d.measured != (measured{}) {
		t.Errorf("%+v", d.measured)
	}
}

// A hook of the application that does not end when its run does holds nothing of what
// its user may use, however late it returns.
func TestAnAbandonedCallHoldsNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := limited(t, RateLimits{PerUser: rate.Limit{Tokens: 1000}})
		entered, open := make(chan struct{}, 9), make(chan struct{})
		h.engine.cfg.TransformContext = func(_ context.Context, _ Ref, msgs []message.Message) ([]message.Message, error) {
			entered <- struct{}{}
			<-open
			return msgs, nil
		}
		r := h.run(strings.Repeat("long ", 800))
		<-entered
		h.cancel(r)
		h.ends(r, "cancelled")
		close(open)
		synctest.Wait()
		r = h.run("short")
		if r.Rates == nil || r.Rates.Tokens.Remaining < 990 {
			t.Errorf("what is left is %+v", r.Rates)
		}
		h.ends(r, "completed")
		h.engine.Close()
		h.store.Close()
	})
}

// A message that a provider refuses is found also if the run after it was cancelled,
// or ended without an answer and not in failure.
func TestAPoisonBehindOtherEndsDoesNotBrickTheSession(t *testing.T) {
	poison := toolFunc{tool.Spec{Name: "poison", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Content: blocks("POISON"), Terminate: true}, nil
	}}
	g := newGate()
	script := func(ctx context.Context, _ int, req *model.Request) (*message.Message, error) {
		last := &req.Messages[len(req.Messages)-1]
		switch {
		case strings.HasSuffix(last.Text(), "wait"):
			return nil, g.pass(ctx)
		case strings.Contains(conversationOf(req), "POISON"):
			return nil, refusal("cannot be processed")
		case last.Text() == "call":
			return say("", call("c", "poison", `{}`))
		}
		return say("fine")
	}
	for name, inputs := range map[string][]string{"cancelled": {"hello", "POISON", "wait"}, "cancelled itself": {"hello", "POISON wait"}, "terminated": {"hello", "call"}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, script, poison)
			session := ""
			for _, text := range inputs {
				r := h.begin(StartRequest{SessionID: session, Input: blocks(text)})
				if strings.HasSuffix(text, "wait") {
					<-g.entered
					h.cancel(r)
				}
				r = h.wait(r)
				session = r.SessionID
			}
			for range 2 {
				h.goesOn(session)
			}
			if !strings.Contains(h.transcript(session), "hello") {
				t.Error("too much is gone")
			}
		})
	}
}

// A subagent's answer is a result like any other: one that is too large for the model
// becomes an artifact in which it can read on.
func TestALongAnswerOfASubagentBecomesAnArtifact(t *testing.T) {
	book := strings.Repeat("a long story, ", 5000)
	var read *model.Request
	h := family(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say(book) })
	inner := h.agents["test"].Models[0].Provider
	h.agents["test"].Models[0].Provider = providerFunc(func(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
		read = req
		return inner.Generate(ctx, req, emit)
	})
	r := h.ends(h.run("go"), "completed")
	for i := range read.Messages {
		if m := &read.Messages[i]; m.ToolCallID == "k" && (!strings.HasPrefix(m.Text(), persisted) || len(m.Text()) > 4000 || !strings.Contains(m.Text(), ReadArtifact)) {
			t.Errorf("the model reads %d bytes: %.200s", len(m.Text()), m.Text())
		}
	}
	all, err := h.engine.Artifacts(t.Context(), ref(r.SessionID))
	if err != nil || len(all) != 1 || all[0].Bytes < int64(len(book)) || all[0].ToolCallID != "k" {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, _, data, err := h.engine.Artifact(t.Context(), ref(all[0].ID)); err != nil || string(data) != book {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// A call that waits for rate_limits reserves nothing yet of a budget that it shares with
// others. It can be cancelled there.
func TestWhoWaitsForALimitReservesNothing(t *testing.T) {
	long := toolFunc{tool.Spec{Name: "long", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("x", 3000)), nil
	}}
	for _, status := range []string{"completed", "cancelled"} {
		t.Run(status, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
					if step == 0 {
						return say("", call("a", "long", `{}`))
					}
					return say("Yes.")
				}, long)
				costly(h, "test", Caps{})
				h.agents["test"].Rates = RateLimits{PerUser: rate.Limit{Tokens: 12}}
				h.engine.cfg.Budgets.TenantDay = Caps{MaxTokens: 100_000}
				r := h.run("go")
				told := 0
				for ev, err := range h.engine.Watch(t.Context(), ref(r.ID), 0) {
					if err != nil {
						t.Fatal(err)
					}
					if ev.Type != event.CheckpointInfo {
						continue
					}
					told++
					// What the step before kept back for closing the answer.
					if p := h.pot(store.PotDay, day(h.engine.now())); p.Held.Tokens > 2600 {
						t.Errorf("it waits and holds %+v", p.Held)
					}
					if status == "cancelled" {
						h.cancel(r)
					}
				}
				if r = h.ends(r, status); told != 1 {
					t.Errorf("told %d times", told)
				}
				if p := h.pot(store.PotDay, day(h.engine.now())); p.Held != (store.Amounts{}) || p.Settled.Tokens > 30 {
					t.Errorf("the pot has %+v", p)
				}
				h.engine.Close()
				h.store.Close()
			})
		})
	}
}
