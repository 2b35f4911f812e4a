package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"agentd/internal/engine"
	"agentd/internal/rate"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// limitScenarios are about what bounds runs: what models take, what may be spent, and
// how much of it in a minute.
func limitScenarios() []scenario {
	return []scenario{
		{"overflow", one(func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
			if step == 0 {
				return Say("", Call("r", "read", `{}`))
			}
			return nil, &model.Error{Class: model.ClassOverflow, Provider: "fake", Status: 400, Message: "prompt is too long"}
		}, counting("read", tool.Read, false)), func(w *World) {
			if r := w.Ended(w.Start(engine.StartRequest{}).ID, "failed"); r.StopReason != "context_overflow" {
				w.T.Errorf("it ended for %s", r.StopReason)
			}
		}},

		{"budget of a tree: more is allowed", tree, func(w *World) {
			r := w.Start(engine.StartRequest{})
			i := w.Asks(r.ID)
			if i.RunID != run.ChildID(r.ID, 1) || i.ToolCall == nil || i.ToolCall.Name != run.RaiseBudget {
				w.T.Errorf("asked is %+v", i)
			}
			w.Answer(engine.AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"raise_by":20}`)})
			w.Ended(r.ID, "completed")
		}},

		{"budget of a tree: no more is allowed", tree, func(w *World) {
			r := w.Start(engine.StartRequest{})
			for {
				var q *engine.Run
				w.Until("the run has ended or asks", func() bool {
					var err error
					q, err = w.Node().Get(w.T.Context(), Ref(r.ID))
					return err == nil && (run.Status(q.Status).Ended() || q.Status == string(run.Paused) && len(q.Interrupts) > 0)
				})
				if run.Status(q.Status).Ended() {
					break
				}
				w.Answer(engine.AnswerRequest{Interrupt: q.Interrupts[0].ID, Decision: "reject"})
			}
			w.Ended(r.ID, "completed")
		}},

		{"budget of a tree: nobody is there", tree, func(w *World) {
			w.Ended(w.Start(engine.StartRequest{Mode: engine.Autonomous}).ID, "completed")
		}},

		{"budget of a session", func(w *World) Agents {
			w.Config.Budgets = budgets()
			w.Config.Budgets.Session = engine.Caps{MaxTokens: 3000}
			return Agents{"test": priced(Agent(w.T, spending(func(step int, req *model.Request) (*message.Message, error) {
				return Say("", Call(fmt.Sprint("r", len(req.Messages)), "read", `{}`))
			}), w.Counting("read", tool.Read, false)))}
		}, func(w *World) {
			r := w.Start(engine.StartRequest{})
			w.ends(r.ID)
			w.ends(w.Start(engine.StartRequest{SessionID: r.SessionID}).ID)
		}},

		{"tokens of a minute", func(w *World) Agents {
			a := Agent(w.T, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
				m, _ := Say("there was room")
				if step == 0 {
					m, _ = Say("", Call("r", "read", `{}`))
				}
				m.Usage = &message.Usage{Input: 6000, Output: 20, TotalTokens: 6020}
				return m, nil
			}, w.Counting("read", tool.Read, false))
			a.Rates = engine.RateLimits{PerUser: rate.Limit{Tokens: 6000}}
			return Agents{"test": a}
		}, func(w *World) {
			r := w.Ended(w.Start(engine.StartRequest{User: "kim"}).ID, "completed")
			if !strings.Contains(w.told(w.Node(), r.ID), "checkpoint_info") {
				w.T.Error("it did not wait")
			}
		}},

		{"reading on in what was too large", one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			switch step {
			case 0:
				return Say("", Call("l", "large", `{}`))
			case 1:
				id := artifactID.FindStringSubmatch(req.Messages[len(req.Messages)-1].Text())
				if id == nil {
					return nil, errors.New("the result names no artifact")
				}
				return Say("", Call("m", engine.ReadArtifact, `{"artifact_id":"`+id[1]+`","offset":39990}`))
			}
			return Say("It ends so: " + req.Messages[len(req.Messages)-1].Text())
		}, func(*World) tool.Tool {
			return Tool{tool.Spec{Name: "large", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
				return tool.TextResult(strings.Repeat("a line\n", 6000)), nil
			}}
		}), func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},
	}
}

var artifactID = regexp.MustCompile(`artifact ([0-9a-f]{64})`)

// ends waits for the end of a run, however it ends.
func (w *World) ends(id string) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), Patience)
	defer cancel()
	if _, err := w.Node().Wait(ctx, Ref(id)); err != nil {
		w.T.Fatal(err)
	}
}

func budgets() engine.Budgets {
	return engine.Budgets{MinReplyTokens: 20, ClosingTokens: 40, ClosingInputTokens: 100}
}

// priced has each token cost a tenth of a cent.
func priced(a *engine.Agent) *engine.Agent {
	a.Models[0].Info = model.Info{Source: "test", MaxOutput: 1000, Price: model.Price{Input: 1000 * message.Dollar, Output: 1000 * message.Dollar}}
	a.Models[0].MaxTokens = 1000
	a.NoReadArtifact = true // what it is described with would be in every request
	return a
}

// spending has each reply use 320 tokens, or fewer if no more are allowed.
func spending(f func(step int, req *model.Request) (*message.Message, error)) Script {
	return func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		m, err := f(step, req)
		if req.ToolChoice == model.ToolChoiceNone {
			m, err = Say("closed")
		}
		if err != nil {
			return nil, err
		}
		in, out := int64(300), int64(min(req.MaxTokens, 20))
		info := model.Info{Source: "test", Price: model.Price{Input: 1000 * message.Dollar, Output: 1000 * message.Dollar}}
		m.Usage = &message.Usage{Input: in, Output: out, TotalTokens: in + out}
		m.Usage.Cost = model.Cost(&info, m.Usage)
		return m, nil
	}
}

// tree is a root with a cap that its child uses up.
func tree(w *World) Agents {
	w.Config.Budgets = budgets()
	script := spending(func(step int, req *model.Request) (*message.Message, error) {
		switch child := strings.Contains(req.Messages[0].Text(), "leaf"); {
		case child && step < 6:
			return Say("", Call(fmt.Sprint("r", step), "read", fmt.Sprintf(`{"n":%d}`, step)))
		case !child && step == 0:
			return Say("", Call("k", engine.CreateSubagent, `{"subagent_type":"child","prompt":"leaf"}`))
		}
		return Say("done")
	})
	root, child := priced(Agent(w.T, script)), priced(Agent(w.T, script, w.Counting("read", tool.Read, false)))
	child.Profile = "child"
	root.Subagents, root.Settings.AskMore = []string{"child"}, true
	root.Caps = engine.Caps{MaxCost: 4500 * message.Dollar / 1000}
	return Agents{"test": root, "child": child}
}

// peopleScenarios are about what people decide: plans, what was proposed, what is to be
// forgotten, and what nobody decided about in time.
func peopleScenarios() []scenario {
	plan := func(w *World) Agents {
		a := Agent(w.T, calling(engine.ProposePlan, `{"plan":"1. look\n2. act"}`))
		a.Plans = true
		return Agents{"test": a}
	}
	return []scenario{
		{"plan", plan, func(w *World) {
			for _, answer := range []engine.AnswerRequest{{Decision: "approve"}, {Decision: "approve", Args: json.RawMessage(`{"plan":"1. look"}`)}, {Decision: "reject", Reason: "too fast"}} {
				r := w.Start(engine.StartRequest{})
				answer.Interrupt = w.Asks(r.ID).ID
				w.Answer(answer)
				w.Ended(r.ID, "completed")
			}
		}},

		{"nobody answers a child run", func(w *World) Agents {
			a := one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
				switch {
				case strings.Contains(req.Messages[0].Text(), "leaf") && step == 0:
					return Say("", Call("c", "act", `{"of":"leaf"}`))
				case step == 0:
					return Say("", Call("k", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
				}
				return Say("It said: " + req.Messages[len(req.Messages)-1].Text())
			}, approved(tool.Once))(w)
			a["test"].Settings.Interrupts = run.Expiry{AfterMS: 700}
			return a
		}, func(w *World) { w.Ended(w.Start(engine.StartRequest{}).ID, "completed") }},

		{"one of two questions expires", func(w *World) Agents {
			a := one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
				if step == 0 {
					return Say("", Call("a", "act", `{"n":1}`), Call("b", "act", `{"n":2}`))
				}
				return Say("done")
			}, approved(tool.Once))(w)
			a["test"].Settings.Interrupts = run.Expiry{AfterMS: 2000}
			return a
		}, func(w *World) {
			r := w.Start(engine.StartRequest{})
			w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "approve"})
			w.Ended(r.ID, "completed")
		}},

		{"proposals", func(w *World) Agents {
			act := approved(tool.Once)(w)
			a := Agent(w.T, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
				leaf := strings.Contains(req.Messages[0].Text(), "leaf")
				switch {
				case step == 0 && leaf:
					return Say("", Call("c", "act", `{"of":"leaf"}`))
				case step == 0:
					return Say("", Call("a", "act", `{"n":1}`))
				case step == 1 && !leaf:
					return Say("", Call("b", "act", `{"n":2}`), Call("k", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
				}
				return Say("Proposed.")
			}, act)
			a.Subagents = []string{"test"}
			a.Rules.Capture = true
			return Agents{"test": a}
		}, func(w *World) {
			r := w.Start(engine.StartRequest{Mode: engine.Autonomous})
			w.Ended(r.ID, "completed")
			w.proposals(r.ID)
			decide := engine.DecideRequest{Tenant: "default", Run: r.ID, By: "kim"}
			last := decide
			last.Proposal = r.ID + ".p2"
			if _, err := w.Node().Discard(w.T.Context(), last); err != nil {
				w.T.Fatal(err)
			}
			for range 2 { // the second time there is nothing left, at another node
				if _, err := w.Node().Apply(w.T.Context(), decide); err != nil {
					w.T.Fatal(err)
				}
				w.proposals(r.ID)
			}
		}},

		rollback(),

		{"schedule", one(calling("once", `{"n":1}`), counting("once", tool.Once, false)), func(w *World) {
			due := engine.StartRequest{Mode: engine.Autonomous, Scheduled: true, IdempotencyKey: "schedule/nightly/1795312800"}
			r := w.Start(due)
			due.Input = Text("go")
			for range 3 { // every node tells of it
				again, err := w.Node().Start(w.T.Context(), due)
				if err != nil || again.ID != r.ID {
					w.T.Errorf("told again, it is %+v, %v", again, err)
				}
			}
			w.Ended(r.ID, "completed")
			if all, _, err := w.Node().List(w.T.Context(), "default", engine.RunFilter{}); err != nil || len(all) != 1 {
				w.T.Errorf("%d runs, %v", len(all), err)
			}
		}},
	}
}

// proposals notes what is proposed.
func (w *World) proposals(id string) {
	w.T.Helper()
	all, err := w.Node().Proposals(w.T.Context(), Ref(id))
	if err != nil {
		w.T.Fatal(err)
	}
	for _, p := range all {
		w.Note("proposal %s: %s %s", p.ID, p.Status, p.RealID)
	}
}

func rollback() scenario {
	var now *gate
	return scenario{"rollback", func(w *World) Agents {
		now = newGate()
		return one(func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			if req.Messages[len(req.Messages)-1].Text() == "wait" {
				return Say("", Call("w", "wait", `{}`))
			}
			return Say(fmt.Sprintf("I see %d messages", len(req.Messages)))
		}, now.tool("wait"))(w)
	}, func(w *World) {
		first := w.Start(engine.StartRequest{})
		w.Ended(first.ID, "completed")
		r := w.Start(engine.StartRequest{SessionID: first.SessionID, Input: Text("wait")})
		<-now.entered
		next := w.Start(engine.StartRequest{SessionID: first.SessionID, Input: Text("instead"), WhenBusy: engine.Rollback})
		if r = w.Ended(r.ID, "cancelled"); r.StopReason != run.StopRolledBack {
			w.T.Errorf("it ended for %s", r.StopReason)
		}
		w.Ended(next.ID, "completed")
	}}
}
