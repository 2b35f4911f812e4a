package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// nudgedIn is whether the model was asked again in this turn.
func nudgedIn(req *model.Request) bool {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if m := &req.Messages[i]; m.Role == message.RoleUser {
			return run.Nudge(m)
		}
	}
	return false
}

// texts gives the final texts and the kinds of checkpoint_info of a run, as they are told.
func told(events []event.Event) (finals, infos []string) {
	for _, ev := range events {
		switch d := ev.Data.(type) {
		case *event.Text:
			finals = append(finals, d.Text)
		case *event.Checkpoint:
			if ev.Type == event.CheckpointInfo {
				infos = append(infos, d.Kind)
			}
		}
	}
	return finals, infos
}

// People are asked for as many approvals as the limit says, the model is told of the
// others, and nothing hangs. A subagent's run is a turn of its own.
func TestApprovalsOfOneTurnAreBounded(t *testing.T) {
	calls := &counter{}
	pay := asking(toolFunc{tool.Spec{Name: "pay"}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		calls.add(string(c.Args))
		return tool.TextResult("paid"), nil
	}})
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if strings.Contains(req.Messages[0].Text(), "child") {
			if step == 0 {
				return say("", call("c1", "pay", `{"from":"child"}`), call("c2", "pay", `{"from":"child","n":2}`), call("c3", "pay", `{"from":"child","n":3}`))
			}
			return say("the child is done")
		}
		switch step {
		case 0:
			return say("", call("a", "pay", `{"n":1}`), call("b", "pay", `{"n":2}`), call("c", "pay", `{"n":3}`), call("k", CreateSubagent, `{"subagent_type":"test","prompt":"child"}`))
		case 1:
			return say("", call("d", "pay", `{"n":4}`))
		}
		return say("The rest is up to you.")
	}, pay)
	h.agents["test"].Subagents = []string{"test"}
	h.agents["test"].Settings.MaxApprovals = 2
	r := h.run("go")
	asked := map[string]int{}
	h.answers(r, func(i *InterruptView) AnswerRequest {
		asked[i.ID]++
		return AnswerRequest{Decision: "approve"}
	})
	r = h.ends(r, "completed")
	if len(asked) != 4 { // two of the run, two of its subagent
		t.Errorf("asked were %v", asked)
	}
	for args, want := range map[string]int{`{"n":1}`: 1, `{"n":2}`: 1, `{"n":3}`: 0, `{"n":4}`: 0, `{"from":"child"}`: 1, `{"from":"child","n":2}`: 1, `{"from":"child","n":3}`: 0} {
		if calls.of(args) != want {
			t.Errorf("%s was paid %d times", args, calls.of(args))
		}
	}
	if got := h.transcript(r.SessionID); strings.Count(got, "max_approvals_per_turn") != 2 || r.Output != "The rest is up to you." {
		t.Errorf("%s\n%+v", got, r)
	}
	// The next message counts anew.
	again, err := h.engine.Start(t.Context(), StartRequest{SessionID: r.SessionID, Input: blocks("go")})
	if err != nil {
		t.Fatal(err)
	}
	asked = map[string]int{}
	h.answers(again, func(i *InterruptView) AnswerRequest { asked[i.ID]++; return AnswerRequest{Decision: "reject"} })
	if h.ends(again, "completed"); len(asked) != 4 {
		t.Errorf("asked in the next turn were %v", asked)
	}
}

// An answer without a call is asked for once more; what comes then is the answer.
func TestAnswerWithoutToolsIsNudgedOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		nudged func(step int) (*message.Message, error)
		output string
		infos  string
	}{
		{"calls", func(step int) (*message.Message, error) {
			if step == 0 {
				return say("", call("a", "echo", `{}`))
			}
			return say("It is so.")
		}, "It is so.", "nudged"},
		{"stays", func(int) (*message.Message, error) { return say("I am sure.") }, "I am sure.", "nudged"},
		{"says nothing", func(int) (*message.Message, error) { return say("") }, "I think so.", "nudged"},
		{"fails", func(int) (*message.Message, error) { return nil, refusal("no more") }, "I think so.", "nudged nudge_failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
				if nudgedIn(req) {
					return tt.nudged(step)
				}
				return say("I think so.")
			}, echoTool(tool.Read))
			h.agents["test"].Settings.MinToolCalls = 1
			r := h.run("go")
			live := h.events(r)
			if r = h.ends(r, "completed"); r.Output != tt.output || r.StopReason != "stop" {
				t.Errorf("%+v", r)
			}
			h.restart()
			for _, events := range [][]event.Event{live, h.events(r)} {
				if finals, infos := told(events); fmt.Sprint(finals) != "["+tt.output+"]" || strings.Join(infos, " ") != tt.infos {
					t.Errorf("told are %q and %q", finals, infos)
				}
			}
		})
	}
}

// Where no tool can be called nobody is asked to call one.
func TestNoNudgeWithoutTools(t *testing.T) {
	answer := func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		if nudgedIn(req) {
			return nil, refusal("it was nudged")
		}
		return say("I think so.")
	}
	h := newHarness(t, answer)
	h.agents["test"].Settings.MinToolCalls = 1
	h.ends(h.run("go"), "completed")
	h = newHarness(t, answer, echoTool(tool.Read))
	h.agents["test"].Settings.MinToolCalls = 1
	for what, req := range map[string]StartRequest{
		"without tools":         {Input: blocks("go"), Overrides: Overrides{NoTools: true}},
		"no choice":             {Input: blocks("go"), Overrides: Overrides{ToolChoice: "none"}},
		"a client that goes on": {History: []message.Message{message.User("go"), {Role: message.RoleAssistant, Content: []message.Block{call("x", "theirs", `{}`)}, StopReason: message.StopToolUse}, message.ToolResult("x", "theirs", false, message.Text("done"))}},
	} {
		r, err := h.engine.Start(t.Context(), req)
		if err != nil {
			t.Fatal(what, err)
		}
		if _, infos := told(h.events(r)); len(infos) > 0 {
			t.Errorf("%s: %v", what, infos)
		}
		h.ends(r, "completed")
	}
}

// An equal call of a tool that was named for it is not made again, until something
// changes; what it gets is said to be from before.
func TestEqualCallsOfATurnAreMadeOnce(t *testing.T) {
	calls := &counter{}
	counting := func(name string, effect tool.Effect) tool.Tool {
		return toolFunc{tool.Spec{Name: name, Effect: effect}, func(_ context.Context, c tool.Call) (tool.Result, error) {
			calls.add(name)
			return tool.TextResult(fmt.Sprintf("%s %d", name, calls.of(name))), nil
		}}
	}
	steps := [][]message.Block{
		{call("a", "get_crm", `{"id":1,"of":"x"}`), call("t", "time", `{}`)},
		{call("b", "get_crm", `{ "of":"x","id":1 }`), call("u", "time", `{}`)},
		{call("c", "get_crm", `{"id":2,"of":"x"}`)},
		{call("w", "put", `{}`)},
		{call("d", "get_crm", `{"id":1,"of":"x"}`)},
	}
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step < len(steps) {
			return say("", steps[step]...)
		}
		return say("Done.")
	}, counting("get_crm", tool.Read), counting("time", tool.Read), counting("put", tool.Once))
	h.agents["test"].CacheTools = []string{"get_*", "put"}
	r := h.run("go")
	decisions := map[string]string{}
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Tool); ok && ev.Type == event.ToolCompleted {
			decisions[d.ToolCallID] = d.Decision + "|" + d.Result
		}
	}
	r = h.ends(r, "completed")
	want := map[string]string{"a": "|get_crm 1", "b": "cached|get_crm 1" + cacheNote, "c": "|get_crm 2", "d": "|get_crm 3", "t": "|time 1", "u": "|time 2", "w": "|put 1"}
	for id, w := range want {
		if decisions[id] != w {
			t.Errorf("%s is %q, not %q", id, decisions[id], w)
		}
	}
	rows, _, err := h.engine.Trace(t.Context(), ref(r.ID), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	journal, _ := json.Marshal(rows)
	if !strings.Contains(string(journal), `"cached":true`) || !strings.Contains(string(journal), `"cache_key":"`) {
		t.Errorf("the journal does not say it: %s", journal)
	}
	// The next message finds nothing remembered.
	again, err := h.engine.Start(t.Context(), StartRequest{SessionID: r.SessionID, Input: blocks("go")})
	if err != nil {
		t.Fatal(err)
	}
	h.ends(again, "completed")
	if calls.of("get_crm") != 6 {
		t.Errorf("%d calls", calls.of("get_crm"))
	}
}

// TestCrashAtEveryCommitOfANudgedTurn is TestCrashAtEveryCommit for a run that is
// nudged and gets results from before: neither happens twice, and none is forgotten.
func TestCrashAtEveryCommitOfANudgedTurn(t *testing.T) {
	start := func(t *testing.T, at int, after bool) (*harness, *crashStore, *counter) {
		calls := &counter{}
		counting := func(name string, effect tool.Effect) tool.Tool {
			return toolFunc{tool.Spec{Name: name, Effect: effect}, func(_ context.Context, c tool.Call) (tool.Result, error) {
				calls.add(name + " " + c.ID)
				return tool.TextResult(name + " did " + string(c.Args)), nil
			}}
		}
		h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			if !nudgedIn(req) {
				return say("I think so.")
			}
			switch step {
			case 0:
				return say("", call("r1", "read", `{"n":1}`), call("i1", "idem", `{"n":1}`))
			case 1:
				return say("", call("r2", "read", `{"n":1}`))
			case 2:
				return say("", call("r3", "read", `{"n":1}`), call("r4", "read", `{"n":2}`))
			case 3:
				return say("", call("o1", "once", `{"n":1}`))
			case 4:
				return say("", call("r5", "read", `{"n":1}`))
			}
			return say("I know it.")
		}, counting("read", tool.Read), counting("idem", tool.Idempotent), counting("once", tool.Once))
		h.engine.Close()
		h.agents["test"].Settings.MinToolCalls, h.agents["test"].CacheTools = 3, []string{"*"}
		cs := &crashStore{Store: h.store, at: at, after: after, down: make(chan struct{})}
		h.store = cs
		h.start()
		return h, cs, calls
	}
	h, cs, calls := start(t, 0, false)
	r := h.ends(h.run("go"), "completed")
	want, commits := h.transcript(r.SessionID), cs.n
	if strings.Count(want, "automatic") != 1 || strings.Count(want, "earlier in this turn") != 1 || calls.of("read r3") != 0 || calls.of("read r5") != 1 || commits < 4 {
		t.Fatalf("%d commits\n%s\n%v", commits, want, calls.n)
	}
	for at := 1; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				h, cs, calls := start(t, at, after)
				crashRun(t, h, cs, calls, want)
				if calls.of("read r3") > 0 {
					t.Errorf("what was read before is read again: %v", calls.n)
				}
			})
		}
	}
}

// At the cap of a budget the answer that a nudge was to better stands, and nothing is
// spent or asked for to close it.
func TestNudgeYieldsToTheBudget(t *testing.T) {
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		if nudgedIn(req) {
			t.Error("the model was called")
		}
		m, err := say("I think so.")
		m.Usage = &message.Usage{Input: 1000, Output: 3000, TotalTokens: 4000}
		return m, err
	}, echoTool(tool.Read))
	costly(h, "test", Caps{MaxTokens: 7000})
	h.agents["test"].Settings.MinToolCalls = 1
	r := h.run("go")
	finals, infos := told(h.events(r))
	if r = h.ends(r, "completed"); r.Output != "I think so." || r.StopReason != "stop" || fmt.Sprint(finals) != "[I think so.]" || fmt.Sprint(infos) != "[nudged nudge_failed]" {
		t.Errorf("%+v, told %q, %q", r, finals, infos)
	}
}

// What comes with a reply, such as a message that was queued, is no part of what the
// reply was measured with: counting it as such would let a cap be passed.
func TestAMeasurementEndsWithItsReply(t *testing.T) {
	reply, _ := say("done")
	d := &driver{state: run.State{Model: &run.ModelCall{}}}
	d.conv.messages = []message.Message{message.User("go"), *reply, message.User(strings.Repeat("and this ", 100))}
	if d.measure(reply.Usage); d.measured.upto != 2 {
		t.Errorf("measured %+v", d.measured)
	}
}

// Reasoning of a turn that was answered long ago is not sent any more, that of a turn
// whose prompt providers have in their cache is, and so is that of the tool calls of
// the turn itself.
func TestOldReasoningIsLeftOutOfRequests(t *testing.T) {
	thought := func(s string) message.Block {
		return message.Block{Type: message.BlockThinking, Text: s, Signature: "sig"}
	}
	var seen []string
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		var s []string
		for _, m := range req.Messages {
			for _, b := range m.Content {
				if b.Type == message.BlockThinking {
					s = append(s, b.Text)
				}
			}
		}
		seen = append(seen, strings.Join(s, " "))
		m, err := say("", call(fmt.Sprint("x", len(seen)), "echo", `{}`))
		if step > 0 {
			m, err = say("Done.")
		}
		m.Content = append([]message.Block{thought(fmt.Sprint("t", len(seen)))}, m.Content...)
		return m, err
	}, echoTool(tool.Read))
	h.agents["test"].DropReasoning = 5 * time.Minute
	now := h.engine.cfg.Now
	r := h.ends(h.run("go"), "completed")
	for _, later := range []time.Duration{4 * time.Minute, 9*time.Minute + time.Second, 10 * time.Minute} {
		h.engine.Close()
		e, err := New(Config{Store: h.store, Agents: h.agents, Log: h.log, Now: func() time.Time { return now().Add(later) }})
		if err != nil {
			t.Fatal(err)
		}
		h.engine = e
		t.Cleanup(func() { e.Close() })
		next, err := e.Start(t.Context(), StartRequest{SessionID: r.SessionID, Input: blocks("go on")})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := e.Wait(t.Context(), Ref{store.DefaultTenant, next.ID}); err != nil || out.Status != "completed" {
			t.Fatal(out, err)
		}
	}
	const want = "|t1|t1 t2|t1 t2 t3||t5|t5 t6|t5 t6 t7"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("requests had %s\nwant %s", got, want)
	}
}
