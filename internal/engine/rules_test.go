package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// said is a model that calls echo with what the person said.
func said(_ context.Context, step int, req *model.Request) (*message.Message, error) {
	if step == 0 {
		return say("", call("a", "echo", req.Messages[len(req.Messages)-1].Text()))
	}
	return say("It said: " + req.Messages[len(req.Messages)-1].Text())
}

func (h *harness) rules(session string) []*RuleView {
	h.t.Helper()
	rules, err := h.engine.Rules(h.t.Context(), ref(session))
	if err != nil {
		h.t.Fatal(err)
	}
	return rules
}

func (h *harness) in(session, text string) *Run {
	h.t.Helper()
	return h.begin(StartRequest{SessionID: session, Input: []message.Block{message.Text(text)}})
}

func TestAnApprovalIsRememberedForTheSession(t *testing.T) {
	h := newHarness(t, said, asking(echoTool(tool.Once)))
	first := h.paused(h.run(`{"n":1}`), 1)
	h.answer(AnswerRequest{Run: first.ID, Decision: "approve", Remember: true, By: "kim"})
	h.ends(first, "completed")
	rules := h.rules(first.SessionID)
	if len(rules) != 1 || rules[0].Tool != "echo" || rules[0].Allows != `{"n":1}` || rules[0].By != "kim" || rules[0].InterruptID != first.ID+".i1" {
		t.Fatalf("rules: %+v", rules)
	}
	h.restart()
	// The same call goes through, and says why.
	same := h.ends(h.in(first.SessionID, `{ "n": 1 }`), "completed")
	told := false
	for _, ev := range h.events(same) {
		d, ok := ev.Data.(*event.Tool)
		told = told || ok && ev.Type == event.ToolStarted && d.Decision == "remembered" && strings.Contains(d.Reason, rules[0].ID)
	}
	if !told {
		t.Error("nobody is told why the call went through")
	}
	trace, err := h.store.Trace(t.Context(), store.DefaultTenant, same.ID, 0, 0)
	recorded := false
	for _, tr := range trace {
		recorded = recorded || tr.Kind == "Verdict" && strings.Contains(string(tr.Body), `"allow"`) && strings.Contains(string(tr.Body), rules[0].ID)
	}
	if err != nil || !recorded {
		t.Errorf("the decision is not recorded: %v", err)
	}
	// Others are asked for, in this session and in others.
	for _, r := range []*Run{h.in(first.SessionID, `{"n":2}`), h.run(`{"n":1}`)} {
		h.paused(r, 1)
		h.answer(AnswerRequest{Run: r.ID, Decision: "reject"})
		h.ends(r, "completed")
	}
	// What is revoked counts no more.
	if err := h.engine.Revoke(t.Context(), ref(first.SessionID), "rule_no"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("revoking what is not there: %v", err)
	}
	if err := h.engine.Revoke(t.Context(), Ref{"other", first.SessionID}, rules[0].ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	if err := h.engine.Revoke(t.Context(), ref(first.SessionID), rules[0].ID); err != nil {
		t.Fatal(err)
	}
	h.paused(h.in(first.SessionID, `{"n":1}`), 1)
}

func TestWhatIsNeverRemembered(t *testing.T) {
	for _, c := range []struct {
		name, args string
		classes    []string
		answer     AnswerRequest
	}{
		{"deletes", `{"n":1}`, []string{"delete"}, AnswerRequest{Decision: "approve"}},
		{"destructive command", `{"command":"rm -rf x"}`, []string{"shell"}, AnswerRequest{Decision: "approve"}},
		{"complex command", `{"command":"ls | sh"}`, []string{"shell"}, AnswerRequest{Decision: "approve"}},
		{"amended to a destructive command", `{"command":"ls"}`, []string{"shell"}, AnswerRequest{Decision: "approve", Args: json.RawMessage(`{"command":"rm x"}`)}},
		{"rejected", `{"n":1}`, nil, AnswerRequest{Decision: "reject"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := echoTool(tool.Once).(toolFunc)
			f.spec.Classes = c.classes
			h := newHarness(t, said, asking(f))
			r := h.paused(h.run(c.args), 1)
			c.answer.Run, c.answer.Remember = r.ID, true
			if _, err := h.engine.Answer(t.Context(), c.answer); fault.KindOf(err) != fault.Invalid {
				t.Errorf("answer: %v", err)
			}
			h.paused(r, 1) // it is still open
			if rules := h.rules(r.SessionID); len(rules) != 0 {
				t.Errorf("rules: %+v", rules[0])
			}
		})
	}
}

// What is hidden of a call is hidden in the list of what is allowed; the rule holds
// all the same.
func TestARulesTextIsRedacted(t *testing.T) {
	const command = `{"command":"deploy token-hunter2"}`
	h := newHarness(t, said, asking(echoTool(tool.Once)))
	h.agents["test"].Redact = func(_ string, data json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(data), "hunter2", "[hidden]"))
	}
	r := h.paused(h.run(command), 1)
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Remember: true})
	h.ends(r, "completed")
	if rules := h.rules(r.SessionID); len(rules) != 1 || strings.Contains(rules[0].Allows, "hunter2") || !strings.Contains(rules[0].Allows, "deploy token-[hidden]") {
		t.Errorf("rules: %+v", rules[0])
	}
	h.ends(h.in(r.SessionID, command), "completed")
}

// A subagent's approval is remembered in the session that people see, and holds
// for later subagents of it.
func TestAChildsApprovalIsRememberedAtTheRoot(t *testing.T) {
	h, calls := dynasty(t)
	r := h.paused(h.run("go"), 1)
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Remember: true})
	h.ends(r, "completed")
	if rules := h.rules(r.SessionID); len(rules) != 1 || rules[0].Tool != "act" {
		t.Fatalf("rules: %+v", rules)
	}
	h.ends(h.in(r.SessionID, "again"), "completed")
	if len(calls.n) != 2 {
		t.Errorf("calls: %v", calls.n)
	}
}

// Where nobody has a key, a rule names nobody, as an answered interrupt does.
func TestARuleNamesNobodyWithoutKeys(t *testing.T) {
	h := newHarness(t, said, asking(echoTool(tool.Once)))
	r := h.paused(h.run(`{"n":1}`), 1)
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Remember: true, By: store.DefaultTenant})
	h.ends(r, "completed")
	if rules := h.rules(r.SessionID); len(rules) != 1 || rules[0].By != "" {
		t.Errorf("rules: %+v", rules)
	}
}
