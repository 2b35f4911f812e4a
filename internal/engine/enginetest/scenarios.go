package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentd/internal/engine"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// scenario is one thing that agents do. play gives nothing: what the runs wrote is
// compared.
type scenario struct {
	name   string
	agents func(w *World) Agents
	play   func(w *World)
}

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			want, got := s.on(t, Alone), s.on(t, open)
			if got != want {
				t.Errorf("other than alone:\n%s\nalone:\n%s", got, want)
			}
		})
	}
}

func (s *scenario) on(t *testing.T, open Open) string {
	t.Helper()
	w := New(t, open, s.agents)
	s.play(w)
	for _, line := range w.Calls.All() {
		if strings.HasPrefix(line, "once ") && !strings.HasSuffix(line, ": 1") {
			t.Errorf("a call that must not be made twice: %s", line)
		}
	}
	return w.whole()
}

// one makes a profile.
func one(script Script, tools ...func(w *World) tool.Tool) func(w *World) Agents {
	return func(w *World) Agents {
		var all []tool.Tool
		for _, f := range tools {
			all = append(all, f(w))
		}
		a := Agent(w.T, script, all...)
		a.Subagents = []string{"test"}
		return Agents{"test": a}
	}
}

func counting(name string, effect tool.Effect, sequential bool) func(w *World) tool.Tool {
	return func(w *World) tool.Tool { return w.Counting(name, effect, sequential) }
}

// approved is a tool that people must agree to.
func approved(effect tool.Effect) func(w *World) tool.Tool {
	return func(w *World) tool.Tool {
		t := w.Counting("act", effect, false).(Tool)
		t.S.Approval = "always"
		return t
	}
}

// calling makes one call and then says what came of it.
func calling(name, args string) Script {
	return func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if step == 0 {
			return Say("", Call("a", name, args))
		}
		return Say("It said: " + req.Messages[len(req.Messages)-1].Text())
	}
}

// gate is a tool that waits until the scenario opens it.
type gate struct{ entered, open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 64), make(chan struct{})} }

func (g *gate) tool(name string) func(w *World) tool.Tool {
	return func(w *World) tool.Tool {
		return Tool{tool.Spec{Name: name, Effect: tool.Read}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			g.entered <- struct{}{}
			select {
			case <-g.open:
				return tool.TextResult("passed"), nil
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		}}
	}
}

func scenarios() []scenario {
	all := []scenario{
		{"parallel tools", one(func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
			switch step {
			case 0:
				return Say("first", Call("r1", "read", `{"n":1}`), Call("i1", "idem", `{"n":2}`), Call("o1", "once", `{"n":3}`), Call("r2", "read", `{"n":4}`))
			case 1:
				return Say("second", Call("s1", "seq", `{"n":5}`), Call("o2", "once", `{"n":6}`), Call("x", "missing", `{}`))
			}
			return Say("finished")
		}, counting("read", tool.Read, false), counting("idem", tool.Idempotent, false), counting("once", tool.Once, false), counting("seq", tool.Idempotent, true)),
			func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},

		{"approval", one(calling("act", `{"n":1}`), approved(tool.Once)), func(w *World) {
			r := w.Start(engine.StartRequest{})
			w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "approve", Args: json.RawMessage(`{"n":2}`)})
			w.Ended(r.ID, "completed")
		}},

		{"rejection", one(calling("act", `{"n":1}`), approved(tool.Once)), func(w *World) {
			r := w.Start(engine.StartRequest{})
			w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "reject", Reason: "not today"})
			w.Ended(r.ID, "completed")
		}},

		{"question", func(w *World) Agents {
			a := Agent(w.T, calling(engine.AskUserQuestion, `{"question":"which?"}`))
			a.AskUser = true
			return Agents{"test": a}
		}, func(w *World) {
			r := w.Start(engine.StartRequest{})
			w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Answer: json.RawMessage(`"that one"`)})
			w.Ended(r.ID, "completed")
		}},

		{"timer", func(w *World) Agents {
			a := one(calling("act", `{"n":1}`), approved(tool.Once))(w)
			a["test"].Settings.Interrupts = run.Expiry{AfterMS: 300, Approve: true}
			return a
		}, func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},

		{"retry", flaky, func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},

		{"fallback", func(w *World) Agents {
			a := Agent(w.T, calling("read", `{}`), w.Counting("read", tool.Read, false))
			broken := Script(func(context.Context, int, *model.Request) (*message.Message, error) {
				return nil, &model.Error{Class: model.ClassQuota, Err: errors.New("no credit")}
			})
			a.Models = append([]engine.Model{{Provider: broken, ID: "b", Name: "fake/b"}}, a.Models...)
			a.Settings.Models = 2
			return Agents{"test": a}
		}, func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},

		{"budget", func(w *World) Agents {
			a := one(func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
				return Say("again", Call("r", "read", `{"n":`+string(rune('0'+step%10))+`}`))
			}, counting("read", tool.Read, false))(w)
			a["test"].Settings.MaxToolCalls = 3
			return a
		}, func(w *World) {
			r := w.Start(engine.StartRequest{})
			ctx, cancel := context.WithTimeout(w.T.Context(), Patience)
			defer cancel()
			if _, err := w.Node().Wait(ctx, Ref(r.ID)); err != nil {
				w.T.Fatal(err)
			}
		}},

		{"child runs", one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			first := req.Messages[0].Text()
			switch {
			case strings.Contains(first, "leaf") && step == 0:
				return Say("", Call("c", "once", `{"of":"leaf"}`))
			case strings.Contains(first, "leaf"):
				return Say("the leaf is done")
			case strings.Contains(first, "branch") && step == 0:
				return Say("", Call("k", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
			case strings.Contains(first, "branch"):
				return Say("the branch is done")
			case step == 0:
				return Say("", Call("k1", engine.CreateSubagent, `{"subagent_type":"test","prompt":"branch"}`), Call("k2", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
			}
			return Say("all are done")
		}, counting("once", tool.Once, false)), func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},

		{"question of a child run", one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			switch {
			case strings.Contains(req.Messages[0].Text(), "leaf") && step == 0:
				return Say("", Call("c", "act", `{"of":"leaf"}`))
			case step == 0:
				return Say("", Call("k", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
			}
			return Say("done")
		}, approved(tool.Once)), func(w *World) {
			r := w.Start(engine.StartRequest{})
			w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "approve"})
			w.Ended(r.ID, "completed")
		}},

		cancelTree(),
		steering(),
		lane(),
		{"parked for a while", one(calling("act", `{"n":1}`), approved(tool.Idempotent)), func(w *World) {
			r := w.Start(engine.StartRequest{})
			i := w.Asks(r.ID)
			later(1500 * time.Millisecond) // longer than a node's polls
			w.Answer(engine.AnswerRequest{Interrupt: i.ID, Decision: "approve"})
			w.Ended(r.ID, "completed")
			w.Ended(w.Start(engine.StartRequest{SessionID: r.SessionID, Mode: engine.Autonomous}).ID, "completed")
		}},
	}
	return slices.Concat(all, limitScenarios(), peopleScenarios())
}

func later(d time.Duration) { <-time.After(d) }

// flaky fails twice and then answers.
func flaky(w *World) Agents {
	return one(func(context.Context, int, *model.Request) (*message.Message, error) {
		w.Calls.Add("model")
		if w.Calls.Count("model") < 3 {
			return nil, &model.Error{Class: model.ClassOverloaded, Err: errors.New("busy")}
		}
		return Say("here I am")
	})(w)
}

func cancelTree() scenario {
	var now *gate
	return scenario{"cancel tree", func(w *World) Agents {
		now = newGate()
		return one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			if strings.Contains(req.Messages[0].Text(), "leaf") {
				return Say("", Call("w", "wait", `{}`))
			}
			return Say("", Call("k1", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`), Call("k2", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
		}, now.tool("wait"))(w)
	}, func(w *World) {
		r := w.Start(engine.StartRequest{})
		<-now.entered
		<-now.entered
		if _, err := w.Node().Cancel(w.T.Context(), Ref(r.ID), "enough"); err != nil {
			w.T.Fatal(err)
		}
		w.Ended(r.ID, "cancelled")
		for n := range 2 {
			w.Ended(run.ChildID(r.ID, n+1), "cancelled")
		}
	}}
}

func steering() scenario {
	var now *gate
	return scenario{"steering and follow-up", func(w *World) Agents {
		now = newGate()
		return one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			if len(req.Messages) == 1 {
				return Say("", Call("w", "wait", `{}`))
			}
			return Say("I heard: " + req.Messages[len(req.Messages)-1].Text())
		}, now.tool("wait"))(w)
	}, func(w *World) {
		r := w.Start(engine.StartRequest{})
		<-now.entered
		if err := w.Node().Steer(w.T.Context(), Ref(r.ID), Text("to the left")); err != nil {
			w.T.Fatal(err)
		}
		if err := w.Node().FollowUp(w.T.Context(), Ref(r.ID), Text("and then home")); err != nil {
			w.T.Fatal(err)
		}
		close(now.open)
		w.Ended(r.ID, "completed")
	}}
}

func lane() scenario {
	var now *gate
	return scenario{"runs of one session", func(w *World) Agents {
		now = newGate()
		return one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			if len(req.Messages) == 1 {
				return Say("", Call("w", "wait", `{}`))
			}
			return Say("I saw " + req.Messages[len(req.Messages)-1].Text())
		}, now.tool("wait"))(w)
	}, func(w *World) {
		r := w.Start(engine.StartRequest{})
		<-now.entered
		var all []string
		for _, text := range []string{"two", "three", "four"} {
			all = append(all, w.Start(engine.StartRequest{SessionID: r.SessionID, Input: Text(text)}).ID)
		}
		close(now.open)
		w.Ended(r.ID, "completed")
		for _, id := range all {
			w.Ended(id, "completed")
		}
	}}
}

// Shared is an executor's world of nodes that take what there is.
func Shared(t *testing.T, cfg engine.Config) []*engine.Engine {
	bus := &engine.MemoryBus{}
	node := func(name string, worker bool) *engine.Engine {
		c := cfg
		c.Cluster = &engine.Cluster{Name: name, Worker: worker, Bus: bus}
		return Start(t, c)
	}
	return []*engine.Engine{node("api", false), node("worker 1", true), node("worker 2", true)}
}
