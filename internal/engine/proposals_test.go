package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// proposing is a harness whose autonomous runs make two things, the second of which
// needs the id of the first, and then look at a file.
func proposing(t *testing.T, effect tool.Effect) (*harness, *counter) {
	made := &counter{}
	create := asking(toolFunc{tool.Spec{Name: "create", Effect: effect}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		made.add(c.ID + " " + string(c.Args) + " " + c.Key[strings.IndexByte(c.Key, '/'):])
		return tool.TextResult(`{"id":"real-` + c.ID + `"}`), nil
	}})
	script := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		switch step {
		case 0:
			return say("", call("a", "create", `{"name":"one"}`))
		case 1:
			return say("", call("b", "create", `{"parent":"`+tempOf(req)+`","note":"below `+tempOf(req)+`."}`), call("c", "echo", `{}`))
		}
		return say("Proposed.")
	}
	h := newHarness(t, script, create, echoTool(tool.Read))
	h.agents["test"].Rules.Capture = true
	return h, made
}

// tempOf is the temporary id that the first result has.
func tempOf(req *model.Request) string {
	for _, m := range req.Messages {
		if s := m.Text(); m.Role == message.RoleToolResult {
			return strings.Split(s[strings.Index(s, `"id":"`)+6:], `"`)[0]
		}
	}
	return ""
}

func (h *harness) proposals(r *Run) string {
	h.t.Helper()
	ps, err := h.engine.Proposals(h.t.Context(), ref(r.ID))
	if err != nil {
		h.t.Fatal(err)
	}
	var s []string
	for _, p := range ps {
		s = append(s, fmt.Sprintf("%s %s %s", strings.TrimPrefix(p.ID, r.ID+"."), p.Status, p.RealID))
	}
	return strings.Join(s, ", ")
}

func (h *harness) autonomous() *Run {
	h.t.Helper()
	return h.ends(h.begin(StartRequest{Mode: Autonomous}), "completed")
}

func decision(r *Run) DecideRequest { return DecideRequest{Tenant: "default", Run: r.ID, By: "kim"} }

// Nobody is there, so nothing that needs approval happens until somebody applies it.
func TestAutonomousRunsPropose(t *testing.T) {
	h, made := proposing(t, tool.Once)
	r := h.autonomous()
	if len(made.n) != 0 {
		t.Fatalf("made without approval: %v", made.n)
	}
	if got := h.proposals(r); got != "p1 proposed , p2 proposed " {
		t.Fatalf("proposals: %s", got)
	}
	if view, err := h.engine.Get(t.Context(), ref(r.ID)); err != nil || len(view.Proposals) != 2 {
		t.Errorf("the run's view: %+v, %v", view, err)
	}
	h.restart()
	// The second needs the first.
	second := decision(r)
	second.Proposal = r.ID + ".p2"
	if _, err := h.engine.Apply(t.Context(), second); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), ".p1 makes") {
		t.Errorf("out of order: %v", err)
	}
	if _, err := h.engine.Apply(t.Context(), decision(r)); err != nil {
		t.Fatal(err)
	}
	if got := h.proposals(r); got != `p1 applied "real-a", p2 applied "real-b"` {
		t.Errorf("proposals: %s", got)
	}
	want := map[string]int{`a {"name":"one"} /1/a`: 1, `b {"note":"below real-a.","parent":"real-a"} /2/b`: 1}
	if fmt.Sprint(made.n) != fmt.Sprint(want) {
		t.Errorf("made %v, not %v", made.n, want)
	}
	// Again changes nothing.
	if _, err := h.engine.Apply(t.Context(), decision(r)); err != nil || fmt.Sprint(made.n) != fmt.Sprint(want) {
		t.Errorf("%v, made %v", err, made.n)
	}
	if _, err := h.engine.Discard(t.Context(), second); fault.KindOf(err) != fault.Conflict {
		t.Errorf("discarding what was applied: %v", err)
	}
	if _, err := h.engine.Proposals(t.Context(), Ref{"other", r.ID}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant: %v", err)
	}
}

func TestProposalsAreDiscarded(t *testing.T) {
	h, made := proposing(t, tool.Once)
	r := h.autonomous()
	first := decision(r)
	first.Proposal = r.ID + ".p1"
	if _, err := h.engine.Discard(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := h.engine.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "discarded") {
		t.Errorf("one that needs a discarded one: %v", err)
	}
	if _, err := h.engine.Discard(t.Context(), decision(r)); err != nil {
		t.Fatal(err)
	}
	if got := h.proposals(r); got != "p1 discarded , p2 discarded " || len(made.n) != 0 {
		t.Errorf("proposals: %s, made %v", got, made.n)
	}
}

// TestApplyCrashes ends the process at every commit of an application, before and
// after it is durable. Nothing is made twice without a person's word.
func TestApplyCrashes(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Once, tool.Idempotent} {
		for at := 1; at <= 4; at++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s commit %d after=%v", effect, at, after), func(t *testing.T) {
					h, made := proposing(t, effect)
					r := h.autonomous()
					h.engine.Close()
					good := h.store
					h.store = &crashStore{Store: good, at: at, after: after, down: make(chan struct{})}
					h.start()
					if _, err := h.engine.Apply(t.Context(), decision(r)); err == nil {
						t.Fatal("it was applied in spite of the crash")
					}
					h.engine.Close()
					h.store = good
					h.start()
					req := decision(r)
					_, err := h.engine.Apply(t.Context(), req)
					if err != nil {
						// Only a once call that may have happened needs somebody.
						if effect != tool.Once || !strings.Contains(err.Error(), "may have happened") || !strings.Contains(h.proposals(r), "applying") {
							t.Fatalf("%v: %s", err, h.proposals(r))
						}
						id := "a"
						if at > 2 {
							id = "b"
						}
						if req.Uncertain, req.RealID = "done", "real-"+id; len(made.n) < at/2 || len(made.n) == at/2 && after && at%2 == 1 {
							req.Uncertain = "retry" // the person looked: it has not happened
						}
						if _, err := h.engine.Apply(t.Context(), req); err != nil {
							t.Fatal(err)
						}
					}
					if got := h.proposals(r); got != `p1 applied "real-a", p2 applied "real-b"` {
						t.Errorf("proposals: %s", got)
					}
					if len(made.n) != 2 {
						t.Errorf("made %v", made.n)
					}
					for what, n := range made.n {
						if n > 1 && effect == tool.Once {
							t.Errorf("%s was made %d times", what, n)
						}
					}
				})
			}
		}
	}
}

// A proposal that fails stops those after it, and can be tried again.
func TestAProposalFails(t *testing.T) {
	h, made := proposing(t, tool.Once)
	r := h.autonomous()
	broken := true
	tools, err := tool.NewSet(asking(toolFunc{tool.Spec{Name: "create"}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		if broken {
			return tool.ErrorResult("no room"), nil
		}
		made.add(c.ID)
		return tool.TextResult("7"), nil
	}}))
	if err != nil {
		t.Fatal(err)
	}
	h.agents["test"].Tools = tools
	if _, err := h.engine.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "no room") {
		t.Errorf("apply: %v", err)
	}
	if got := h.proposals(r); got != "p1 failed , p2 proposed " {
		t.Errorf("proposals: %s", got)
	}
	broken = false
	if _, err := h.engine.Apply(t.Context(), decision(r)); err != nil || len(made.n) != 2 {
		t.Errorf("%v, made %v", err, made.n)
	}
}

// A call that was being made when the process ended can be decided about also when
// its tool is gone for good: what reads is discarded, of others a person says so.
func TestAProposalWhoseToolIsGone(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Idempotent, tool.Once} {
		t.Run(string(effect), func(t *testing.T) {
			h, _ := proposing(t, effect)
			r := h.autonomous()
			h.engine.Close()
			good := h.store
			h.store = &crashStore{Store: good, at: 2, down: make(chan struct{})} // the outcome of the first
			h.start()
			if _, err := h.engine.Apply(t.Context(), decision(r)); err == nil {
				t.Fatal("it was applied in spite of the crash")
			}
			h.engine.Close()
			h.store, h.agents["test"].Tools = good, tool.Set{}
			h.start()
			if got := h.proposals(r); got != "p1 applying , p2 proposed " {
				t.Fatalf("proposals: %s", got)
			}
			if _, err := h.engine.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict {
				t.Errorf("apply: %v", err)
			}
			want := "p1 discarded , p2 discarded "
			if effect != tool.Read {
				if _, err := h.engine.Discard(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "may have happened") {
					t.Errorf("discard: %v", err)
				}
				done := decision(r)
				done.Proposal, done.Uncertain, done.RealID = r.ID+".p1", "done", "7"
				if _, err := h.engine.Apply(t.Context(), done); err != nil {
					t.Errorf("a person's word: %v", err)
				}
				want = `p1 applied "7", p2 discarded `
			}
			if _, err := h.engine.Discard(t.Context(), decision(r)); err != nil {
				t.Errorf("discard: %v", err)
			}
			if got := h.proposals(r); got != want {
				t.Errorf("proposals: %s", got)
			}
		})
	}
}

// TestAProposalThatDoesNotEndInTime: nobody knows whether a once call happened that
// was abandoned, or gave up at its timeout. A person says so, before and after a
// restart; other calls are simply made again.
func TestAProposalThatDoesNotEndInTime(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Once, tool.Idempotent} {
		for _, gives := range []bool{false, true} {
			for _, word := range []string{"retry", "done"} {
				t.Run(fmt.Sprintf("%s gives up %v, %s", effect, gives, word), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						h, made := proposing(t, effect)
						r := h.autonomous()
						let := make(chan struct{})
						var works atomic.Bool
						tools, err := tool.NewSet(asking(toolFunc{tool.Spec{Name: "create", Effect: effect}, func(ctx context.Context, c tool.Call) (tool.Result, error) {
							made.add(c.ID)
							switch {
							case works.Load():
							case gives:
								<-ctx.Done()
								return tool.Result{}, ctx.Err()
							default:
								<-let
							}
							return tool.TextResult("made-1" + c.ID), nil
						}}))
						if err != nil {
							t.Fatal(err)
						}
						defer close(let)
						h.agents["test"].Tools, h.agents["test"].ToolTimeout = tools, time.Second
						if _, err := h.engine.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict {
							t.Fatalf("apply: %v", err)
						}
						works.Store(true)
						req := decision(r)
						if effect == tool.Once {
							for range 2 {
								_, err := h.engine.Apply(t.Context(), req)
								if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "it may have happened") || made.of("a") != 1 {
									t.Fatalf("apply again: %v, made %d", err, made.of("a"))
								}
								if _, err := h.engine.Discard(t.Context(), req); fault.KindOf(err) != fault.Conflict {
									t.Errorf("discard: %v", err)
								}
								if got := h.proposals(r); got != "p1 applying , p2 proposed " {
									t.Errorf("proposals: %s", got)
								}
								h.engine.Close()
								h.start()
							}
							req.Uncertain = word
							if word == "done" {
								req.RealID = "made-1a"
							}
						}
						if _, err := h.engine.Apply(t.Context(), req); err != nil {
							t.Fatal(err)
						}
						want := 2
						if effect == tool.Once && word == "done" {
							want = 1
						}
						if got := h.proposals(r); got != `p1 applied "made-1a", p2 applied "made-1b"` || made.of("a") != want || made.of("b") != 1 {
							t.Errorf("proposals: %s, made %d", got, made.of("a"))
						}
						h.engine.Close()
						h.store.Close()
					})
				})
			}
		}
	}
}

// A once call whose answer was lost may have happened: it is not made again because
// somebody asks for the rest to be applied, only on a person's word.
func TestAProposalInDoubt(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Once, tool.Idempotent} {
		h, made := proposing(t, effect)
		r := h.autonomous()
		lost := true
		tools, err := tool.NewSet(asking(toolFunc{tool.Spec{Name: "create", Effect: effect}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			made.add(c.ID)
			if lost {
				lost = false
				return tool.Result{}, &tool.InDoubtError{Err: fault.New(fault.Unavailable, "the server died")}
			}
			return tool.TextResult("7"), nil
		}}))
		if err != nil {
			t.Fatal(err)
		}
		h.agents["test"].Tools = tools
		if _, err := h.engine.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "the server died") {
			t.Errorf("apply: %v", err)
		}
		if effect == tool.Idempotent {
			if got := h.proposals(r); got != "p1 failed , p2 proposed " {
				t.Errorf("proposals: %s", got)
			}
			continue // made again under the same key, it has happened once
		}
		if got := h.proposals(r); got != "p1 applying , p2 proposed " {
			t.Errorf("proposals: %s", got)
		}
		for range 2 {
			if _, err := h.engine.Apply(t.Context(), decision(r)); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "may have happened") || len(made.n) != 1 {
				t.Errorf("apply again: %v, made %v", err, made.n)
			}
		}
		again := decision(r)
		again.Uncertain = "retry"
		if _, err := h.engine.Apply(t.Context(), again); err != nil {
			t.Error(err)
		}
		if got := h.proposals(r); got != `p1 applied "7", p2 applied "7"` {
			t.Errorf("proposals: %s", got)
		}
	}
}
