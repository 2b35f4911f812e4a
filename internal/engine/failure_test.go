package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/internal/guard"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A model that keeps sending and never ends would hold its run for ever: nothing
// pauses the total clock.
func TestModelTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		h := newHarness(t, nil)
		h.agents["test"].ModelIdle, h.agents["test"].ModelTotal = 2*time.Minute, 10*time.Minute
		h.agents["test"].Models[0].Provider = providerFunc(func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
			m, _ := say("in the end")
			for n++; n == 1; {
				select {
				case <-time.After(time.Minute):
					emit(model.StreamEvent{Type: model.StreamTextDelta, Delta: "x", Partial: m})
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return m, nil
		})
		began := time.Now()
		r := h.wait2(h.run("go"))
		if d := time.Since(began).Round(time.Second); r.Status != "completed" || d != 10*time.Minute || n != 2 {
			t.Errorf("%+v after %v and %d calls", r, d, n)
		}
		for _, ev := range h.events(r) {
			if d, ok := ev.Data.(*event.Retry); ok && (d.Class != string(model.ClassTimeout) || !strings.Contains(d.Message, "the call took longer than 10m0s")) {
				t.Errorf("%+v", d)
			}
		}
	})
}

// Routing follows what is known when the run starts, and a restart in the middle,
// which forgets the measurements, changes nothing.
func TestRouting(t *testing.T) {
	names := func(h *harness, r *Run) string {
		var s []string
		for _, ev := range h.events(r) {
			if d, ok := ev.Data.(*event.Step); ok && ev.Type == event.StepCompleted {
				s = append(s, d.Model)
			}
		}
		return strings.Join(s, " ")
	}
	make3 := func(t *testing.T, strategy string) *harness {
		h := newHarness(t, nil, echoTool(tool.Read), asking(toolFunc{tool.Spec{Name: "pay", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult("paid"), nil
		}}))
		ag := h.agents["test"]
		ag.Routing, ag.Models = strategy, nil
		for i, delay := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			name := fmt.Sprint("m", i)
			ag.Models = append(ag.Models, Model{ID: name, Name: name, Price: []int64{9, 0, 2}[i], Provider: modelFunc(
				func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
					select {
					case <-time.After(delay):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					last := req.Messages[len(req.Messages)-1]
					m, _ := say("done")
					if last.Role == message.RoleUser && last.Text() == "ask" {
						m, _ = say("", call("a", "pay", `{}`))
					}
					m.Model = name
					return m, nil
				})})
		}
		return h
	}
	for strategy, want := range map[string]string{"single": "m0 m0 m0 m0", "fallback": "m0 m0 m0 m0", "cost_aware": "m2 m2 m2 m2", "latency_aware": "m0 m1 m2 m1"} {
		t.Run(strategy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := make3(t, strategy)
				var got []string
				for range 4 {
					got = append(got, names(h, h.wait2(h.run("go"))))
				}
				if s := strings.Join(got, " "); s != want {
					t.Errorf("%s, want %s", s, want)
				}
			})
		})
	}
	t.Run("restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := make3(t, "latency_aware")
			for range 3 {
				h.wait2(h.run("go"))
			}
			r := h.run("ask")
			synctest.Wait()
			<-time.After(5 * time.Second)
			synctest.Wait()
			h.restart()
			view, err := h.engine.Get(t.Context(), ref(r.ID))
			if err != nil || len(view.Interrupts) != 1 {
				t.Fatal(view, err)
			}
			if _, err := h.engine.Answer(t.Context(), AnswerRequest{Tenant: "default", Interrupt: view.Interrupts[0].ID, Decision: "approve"}); err != nil {
				t.Fatal(err)
			}
			if got := names(h, h.wait2(r)); got != "m1 m1" {
				t.Errorf("%s", got)
			}
			if got := names(h, h.wait2(h.run("go"))); got == "m1 m1" {
				t.Errorf("the new engine can not know: %s", got)
			}
		})
	})
}

func TestLatencies(t *testing.T) {
	var l latencies
	now := time.Unix(1000, 0)
	if l.lately("a", now) != 0 {
		t.Error("something was measured")
	}
	l.measured("a", time.Second, now)
	l.measured("a", 2*time.Second, now)
	if got := l.lately("a", now); got != 1300 {
		t.Error(got)
	}
	l.failed("a", now)
	if got := l.lately("a", now); got != 18910 {
		t.Error(got)
	}
	if got := l.lately("a", now.Add(latencyMemory)); got != 0 {
		t.Errorf("an old measurement counts: %d", got)
	}
	l.measured("b", 0, now)
	if l.lately("b", now) != 1 {
		t.Error("too fast to be known")
	}
}

// A model that is out of credit is left at once where there is another.
func TestQuotaFallsBack(t *testing.T) {
	n := 0
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		n++
		return nil, &model.Error{Class: model.ClassQuota, Provider: "fake", Status: 429, Message: "no credit"}
	})
	ag := h.agents["test"]
	r := h.wait(h.run("go"))
	if r.Status != "failed" || n != 1 || r.Error.Hint == "" {
		t.Errorf("%+v %+v after %d calls", r, r.Error, n)
	}
	ag.Models = append(ag.Models, Model{ID: "b", Name: "b", Provider: modelFunc(func(context.Context, int, *model.Request) (*message.Message, error) { return say("hello") })})
	if r = h.wait(h.run("go")); r.Status != "completed" || n != 2 {
		t.Errorf("%+v after %d calls", r, n)
	}
}

// A hint that is longer than the profile's patience fails with the reason.
func TestHintBeyondTheLimit(t *testing.T) {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		return nil, &model.Error{Class: model.ClassRateLimited, Provider: "fake", Status: 429, RetryAfter: 5 * time.Minute}
	})
	h.agents["test"].Settings.Retry = run.Retry{Max: 3, BaseMS: 1000, LimitMS: 60_000}
	r := h.wait(h.run("go"))
	if r.Status != "failed" || !strings.Contains(r.Error.Message, "it asks to wait 300s, longer than retry.max_delay (60s)") || r.Error.Hint == "" {
		t.Errorf("%+v", r.Error)
	}
}

// An open breaker leads to the next model at once; without one the run waits until
// the breaker lets a call through.
func TestOpenBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g guard.Guards
		n, broken := 0, true
		h := newHarness(t, nil)
		ag := h.agents["test"]
		ag.Settings.Retry = run.Retry{Max: 1, BaseMS: 1000, LimitMS: 60_000}
		ag.Models[0].Provider = g.Provider("fake", modelFunc(func(context.Context, int, *model.Request) (*message.Message, error) {
			if n++; broken {
				return nil, &model.Error{Class: model.ClassOverloaded, Provider: "fake", Status: 529}
			}
			return say("back")
		}), guard.Breaker{Failures: 2, Cooldown: 30 * time.Second}, 0)
		backup := Model{ID: "b", Name: "b", Provider: modelFunc(func(context.Context, int, *model.Request) (*message.Message, error) { return say("backup") })}
		primary := ag.Models[0]
		ag.Models = []Model{primary, backup}
		h.wait2(h.run("go")) // two failures open it
		began := time.Now()
		if r := h.wait2(h.run("go")); r.Output != "backup" || n != 2 || time.Since(began) > time.Second {
			t.Errorf("%+v after %v and %d calls", r, time.Since(began), n)
		}
		ag.Models, broken = []Model{primary}, false
		r := h.wait2(h.run("go"))
		if d := time.Since(began); r.Output != "back" || n != 3 || d < 30*time.Second || d > 34*time.Second {
			t.Errorf("%+v after %v and %d calls", r, d, n)
		}
		if got := kinds(h.events(r)); !strings.Contains(got, "model_retry") {
			t.Error(got)
		}
	})
}

// A model that repeats a failing call for ever is asked once more, without tools,
// and the run ends with its text. The session goes on as if nothing had been said.
func TestRepeatedFailuresEndWithText(t *testing.T) {
	var asked []*model.Request
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		asked = append(asked, req)
		if req.ToolChoice == model.ToolChoiceNone {
			return say("It can not be read.")
		}
		return say("", call(fmt.Sprint("c", len(asked)), "read", `{"path":"x"}`))
	}, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.ErrorResult("no such file"), nil
	}})
	h.agents["test"].Settings.MaxSameFailures = 3
	r := h.wait(h.run("go"))
	if r.Status != "completed" || r.StopReason != "repeated_failures" || r.Output != "It can not be read." || len(asked) != 4 {
		t.Fatalf("%+v after %d calls", r, len(asked))
	}
	last := asked[3].Messages
	if m := last[len(last)-1]; m.Role != message.RoleUser || !strings.Contains(m.Text(), "has failed several times in a row") || len(asked[3].Tools) == 0 {
		t.Errorf("%+v", m)
	}
	if got := h.transcript(r.SessionID); strings.Contains(got, "in a row") || !strings.Contains(got, "It can not be read.") {
		t.Error(got)
	}
}
