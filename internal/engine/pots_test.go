package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// dollarPrice is a dollar for a thousand tokens, whichever.
func dollarPrice() model.Info {
	return model.Info{Source: "test", MaxOutput: 1000, Price: model.Price{Input: 1000 * message.Dollar, Output: 1000 * message.Dollar}}
}

// costly is a model whose replies cost what it says: tokens of input and output.
func costly(h *harness, name string, caps Caps) *Agent {
	a := h.agents[name]
	a.Models[0].Info, a.Models[0].MaxTokens = dollarPrice(), 1000
	a.Caps = caps
	a.NoReadArtifact = true // what it is described with would be in every request
	h.engine.cfg.Budgets = Budgets{MinReplyTokens: 20, ClosingTokens: 40, ClosingInputTokens: 100}.withDefaults()
	return a
}

func using(m *message.Message, in, out int64) (*message.Message, error) {
	info := dollarPrice()
	m.Usage = &message.Usage{Input: in, Output: out, TotalTokens: in + out}
	m.Usage.Cost = model.Cost(&info, m.Usage)
	return m, nil
}

func (h *harness) pot(kind, id string) store.Pot {
	h.t.Helper()
	pots, err := h.store.Pots(h.t.Context(), store.DefaultTenant, "", []store.PotRef{{Kind: kind, ID: id}})
	if err != nil {
		h.t.Fatal(err)
	}
	return pots[0]
}

// A run that meets its cap ends with an answer: the means for it were kept back. What
// it shows of its budget is what it spent.
func TestBudgetClosesTheAnswer(t *testing.T) {
	var closing *model.Request
	long := toolFunc{tool.Spec{Name: "long", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("é", 3000)), nil
	}}
	h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if req.ToolChoice == model.ToolChoiceNone {
			closing = req
			m, _ := say("as far as I got")
			// The most that it can be, of a provider that counted 230 tokens up to the results.
			return using(m, 230+boundRequest+messagesBound(req.Messages[len(req.Messages)-2:]), int64(req.MaxTokens))
		}
		m, _ := say("let me see", call(fmt.Sprint("c", step), "long", `{}`))
		return using(m, 200, 30)
	}, long)
	costly(h, "test", Caps{MaxCost: 4 * message.Dollar})
	r := h.ends(h.run("go"), "completed")
	if r.StopReason != run.StopMaxCost || r.Output != "as far as I got" {
		t.Fatalf("it ended for %q with %q", r.StopReason, r.Output)
	}
	last := closing.Messages[len(closing.Messages)-2]
	if text := last.Text(); last.Role != message.RoleToolResult || len(text) > 4000 || !strings.Contains(text, "the rest was left out") {
		t.Errorf("the closing call reads %s of %d bytes", last.Role, len(text))
	}
	p := h.pot(store.PotRun, r.ID)
	if p.Held != (store.Amounts{}) || p.Settled.Money != int64(r.Usage.Cost.Total) || p.Settled.Money > int64(4*message.Dollar) || p.Settled.Money < int64(message.Dollar) {
		t.Errorf("the pot has %+v, the run used %s", p, r.Usage.Cost.Total)
	}
	if b := r.Budget; b == nil || len(b.Pots) != 1 || b.Pots[0].Limits.CostUSD != 4*message.Dollar || b.Pots[0].Used.CostUSD != r.Usage.Cost.Total || b.Pots[0].Kind != "run" {
		t.Errorf("shown is %+v", b)
	}
	// In the session is the whole result: only the closing call read less.
	if !strings.Contains(h.transcript(r.SessionID), strings.Repeat("é", 3000)) {
		t.Error("the result was cut in the session")
	}
}

// A first call that can not be paid fails the run, and says why; a short one that can
// is made.
func TestBudgetShortensReplies(t *testing.T) {
	asked := 0
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		asked = req.MaxTokens
		m, _ := say("hello")
		return using(m, 100, 20)
	})
	costly(h, "test", Caps{MaxCost: message.Dollar / 2})
	r := h.ends(h.run("go"), "completed")
	if asked < 20 || asked >= 500 || r.Output != "hello" {
		t.Errorf("it was asked for %d tokens: %+v", asked, r)
	}
	h.agents["test"].Caps = Caps{MaxTokens: 50}
	asked = 0
	r = h.ends(h.run("go"), "failed")
	if r.StopReason != run.StopMaxTokens || asked != 0 || r.Error == nil || !strings.Contains(r.Error.Message, "50 tokens") {
		t.Errorf("asked for %d: %s %+v", asked, r.StopReason, r.Error)
	}
}

// Peers, section 3, item 7: a cap for a whole tree and across a tenant's runs that is
// never passed, reserved before each call, in money and in tokens, with the partial
// answer at the end.
func TestPeersHardBudgetsAcrossTreesAndTenants(t *testing.T) {
	script := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		m, _ := say("partial answer")
		if req.ToolChoice != model.ToolChoiceNone && len(req.Tools) > 0 && !strings.Contains(req.Messages[0].Text(), "leaf") {
			m, _ = say("partial answer", call(fmt.Sprint("k", step), CreateSubagent, `{"subagent_type":"child","prompt":"leaf"}`))
		}
		return using(m, min(inputBound(req), 100), int64(min(req.MaxTokens, 50)))
	}
	h := newHarness(t, script)
	h.agents["child"] = testAgent(t, script)
	h.agents["child"].Profile = "child"
	costly(h, "child", Caps{})
	root := costly(h, "test", Caps{MaxCost: 8 * message.Dollar})
	root.Subagents = []string{"child"}
	r := h.ends(h.run("go"), "completed")
	p := h.pot(store.PotRun, r.ID)
	if r.StopReason != run.StopMaxCost || r.Output != "partial answer" || p.Held.Money != 0 || p.Settled.Money > int64(8*message.Dollar) || p.Settled.Money <= int64(r.Usage.Cost.Total) {
		t.Errorf("%s %q: %+v; the root alone used %s", r.StopReason, r.Output, p, r.Usage.Cost.Total)
	}
	// Across the runs of a session and of a tenant on one day; another tenant has its own.
	root.Caps = Caps{}
	h.engine.cfg.Budgets.Session = Caps{MaxTokens: 9000}
	h.engine.cfg.Budgets.TenantDay = Caps{MaxCost: 30 * message.Dollar}
	h.engine.cfg.Budgets.Tenants = map[string]TenantBudgets{"rich": {}}
	stops := map[string]int{}
	for range 12 {
		q := h.wait(h.run("go"))
		stops[q.StopReason]++
		if s := h.pot(store.PotSession, q.SessionID); s.Settled.Tokens > 9000 || s.Held.Tokens != 0 {
			t.Fatalf("the session's pot has %+v", s)
		}
	}
	d := h.pot(store.PotDay, day(h.engine.now()))
	if d.Settled.Money > int64(30*message.Dollar) || d.Settled.Money < int64(25*message.Dollar) || d.Held.Money != 0 || stops[run.StopMaxTokens] == 0 || stops[run.StopMaxCost] == 0 {
		t.Errorf("the day's pot has %+v: %v", d, stops)
	}
	root.Settings.MaxSteps = 3
	q, err := h.engine.Start(t.Context(), StartRequest{Tenant: "rich", Input: []message.Block{message.Text("go")}})
	if err != nil {
		t.Fatal(err)
	}
	if q, err = h.engine.Wait(t.Context(), Ref{"rich", q.ID}); err != nil || q.StopReason != run.StopMaxSteps {
		t.Errorf("another tenant: %+v, %v", q, err)
	}
	if pots, _, err := h.engine.Pots(t.Context(), "rich", PotFilter{}); err != nil || len(pots) != 0 {
		t.Errorf("another tenant sees %+v, %v", pots, err)
	}
	pots, _, err := h.engine.Pots(t.Context(), store.DefaultTenant, PotFilter{Kind: store.PotDay})
	if err != nil || len(pots) != 1 || pots[0].Limits.CostUSD != 30*message.Dollar || pots[0].Used.CostUSD != message.Money(d.Settled.Money) {
		t.Errorf("listed is %+v, %v", pots, err)
	}
}

// Money can not be capped where nobody knows the price; tokens can.
func TestBudgetNeedsPrices(t *testing.T) {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("hi") })
	start := func(o Overrides) (*Run, error) {
		return h.engine.Start(t.Context(), StartRequest{Input: []message.Block{message.Text("go")}, Overrides: o})
	}
	_, err := start(Overrides{MaxCostUSD: message.Dollar})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "the price of fake/m is not known") {
		t.Errorf("got %v", err)
	}
	r, err := start(Overrides{MaxTokens: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	if r = h.ends(r, "completed"); r.Budget.Pots[0].Used.Tokens != 15 || r.Budget.Limits.MaxTokens != 100_000 {
		t.Errorf("shown is %+v", r.Budget)
	}
	h.engine.cfg.Budgets.Session = Caps{MaxCost: message.Dollar}
	if _, err = start(Overrides{}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "of the session") {
		t.Errorf("got %v", err)
	}
}

// A request may lower the caps of a profile, never raise them.
func TestBudgetRequestsLower(t *testing.T) {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("hi") })
	costly(h, "test", Caps{MaxCost: 5 * message.Dollar, MaxTokens: 9000})
	r := h.wait(h.begin(StartRequest{Overrides: Overrides{MaxCostUSD: 50 * message.Dollar, MaxTokens: 8000}}))
	if got := r.Budget.Pots[0].Limits; got.CostUSD != 5*message.Dollar || got.Tokens != 8000 {
		t.Errorf("the caps are %+v", got)
	}
}

// short is a harness whose child needs more of its root's budget than there is.
func short(t *testing.T) *harness {
	script := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		child := strings.Contains(req.Messages[0].Text(), "leaf")
		m, _ := say("done")
		switch {
		case req.ToolChoice == model.ToolChoiceNone:
			m, _ = say("closed")
		case child && step < 6:
			m, _ = say("", call(fmt.Sprint("e", step), "echo", fmt.Sprintf(`{"n":%d}`, step)))
		case !child && step == 0:
			m, _ = say("", call("k", CreateSubagent, `{"subagent_type":"child","prompt":"leaf"}`))
		}
		return using(m, min(inputBound(req), 300), int64(min(req.MaxTokens, 20)))
	}
	h := newHarness(t, script, echoTool(tool.Read))
	h.agents["child"] = testAgent(t, script, echoTool(tool.Read))
	h.agents["child"].Profile = "child"
	costly(h, "child", Caps{})
	a := costly(h, "test", Caps{MaxCost: 4500 * message.Dollar / 1000})
	a.Subagents, a.Settings.AskMore = []string{"child"}, true
	return h
}

// A child of which the tree's budget is used up asks at the root, and goes on when a
// person allows more. Questions survive restarts.
func TestBudgetAsksForMore(t *testing.T) {
	h := short(t)
	r := h.run("go")
	paused := h.paused(r, 1)
	i := paused.Interrupts[0]
	if i.RunID != r.ID+".c1" || i.Kind != "approval" || i.ToolCall == nil || i.ToolCall.Name != run.RaiseBudget || !strings.Contains(i.Prompt, "$4.5") {
		t.Fatalf("asked is %+v", i)
	}
	var shown event.Budget
	if err := json.Unmarshal(i.ToolCall.Args, &shown); err != nil || shown.RaiseBy != "4.5" || shown.ID != r.ID || shown.Limit != run.StopMaxCost {
		t.Fatalf("asked is %s, %v", i.ToolCall.Args, err)
	}
	h.restart()
	costly(h, "child", Caps{})
	for _, bad := range []string{`{}`, `{"raise_by":"x"}`, `{"raise_by":-1}`, `{"raise_by":9200000000}`, `[]`} {
		if _, err := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: i.ID, Decision: "approve", Args: json.RawMessage(bad)}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := h.engine.Answer(t.Context(), AnswerRequest{Interrupt: i.ID, Decision: "approve", Remember: true}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("remember: %v", err)
	}
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"raise_by":20}`)})
	r = h.ends(r, "completed")
	if b := r.Budget.Pots[0]; r.StopReason != "stop" || b.Limits.CostUSD != 24500*message.Dollar/1000 || b.Held != (PotAmounts{}) || b.Used.CostUSD < 2*message.Dollar {
		t.Errorf("%s: %+v", r.StopReason, b)
	}
}

// Who says no gets the answer closed, by child and root alike, with what was kept.
func TestBudgetNoMore(t *testing.T) {
	h := short(t)
	r := h.run("go")
	i := h.paused(r, 1).Interrupts[0]
	h.answer(AnswerRequest{Interrupt: i.ID, Decision: "reject", Reason: "enough"})
	// The child has closed; its parent may have to ask, too.
	for range 3 {
		q := h.settled(r)
		if run.Status(q.Status).Ended() {
			break
		}
		h.answer(AnswerRequest{Run: r.ID, Decision: "reject"})
	}
	r = h.wait(r)
	if p := h.pot(store.PotRun, r.ID); r.Status != "completed" || p.Settled.Money > 4500*int64(message.Dollar)/1000 || p.Held.Money != 0 || r.Output == "" {
		t.Errorf("%+v: %+v", r, p)
	}
	// Autonomous runs never ask.
	q := h.wait(h.begin(StartRequest{Mode: Autonomous}))
	if q.Status != "completed" || q.Output == "" {
		t.Errorf("an autonomous run: %+v", q)
	}
}

// settled waits until a run has ended or waits for a person.
func (h *harness) settled(r *Run) (got *Run) {
	h.t.Helper()
	h.until("the run has ended or waits", func() bool {
		var err error
		got, err = h.engine.Get(h.t.Context(), ref(r.ID))
		return err == nil && (run.Status(got.Status).Ended() || got.Status == string(run.Paused) && len(got.Interrupts) > 0)
	})
	return got
}

// Tool calls and failures of children count against the limits of the root.
func TestBudgetToolCallsOfTheTree(t *testing.T) {
	script := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		if req.ToolChoice == model.ToolChoiceNone {
			return say("closed")
		}
		if strings.Contains(req.Messages[0].Text(), "leaf") {
			if step > 0 {
				return say("leaf done")
			}
			return say("", call("a", "echo", `{"n":1}`), call("b", "echo", `{"n":2}`))
		}
		return say("", call(fmt.Sprint("k", step), CreateSubagent, fmt.Sprintf(`{"subagent_type":"child","prompt":"leaf %d"}`, step)))
	}
	h := newHarness(t, script, echoTool(tool.Read))
	h.agents["child"] = testAgent(t, script, echoTool(tool.Read))
	h.agents["child"].Profile = "child"
	h.agents["test"].Subagents = []string{"child"}
	h.agents["test"].Settings.MaxToolCalls = 7
	r := h.ends(h.run("go"), "completed")
	// Two children with two calls each make six; the third's second call is one too many.
	p := h.pot(store.PotRun, r.ID)
	if r.StopReason != run.StopMaxToolCalls || r.Output != "closed" || p.Calls != 9 || r.Budget.Pots[0].Limits.ToolCalls != 7 {
		t.Errorf("%s %q: %+v", r.StopReason, r.Output, p)
	}
	h.agents["test"].Settings.MaxToolCalls, h.agents["test"].Settings.MaxFailures = 0, 3
	h.agents["child"].Tools, _ = tool.NewSet(toolFunc{tool.Spec{Name: "echo", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.ErrorResult("broken"), nil
	}})
	r = h.ends(h.run("go"), "failed")
	if p = h.pot(store.PotRun, r.ID); r.StopReason != run.StopMaxFailures || p.Failures < 3 {
		t.Errorf("%s: %+v", r.StopReason, p)
	}
}

// A cap that is nearly used up is told once.
func TestBudgetWarning(t *testing.T) {
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		m, _ := say("done")
		if step < 3 {
			m, _ = say("", call(fmt.Sprint("c", step), "echo", fmt.Sprintf(`{"n":%d}`, step)))
		}
		return using(m, 1000, 400)
	}, echoTool(tool.Read))
	costly(h, "test", Caps{MaxTokens: 100_000})
	h.engine.cfg.Budgets.WarnPercent = 2
	r := h.ends(h.run("go"), "completed")
	var told []event.Event
	for _, ev := range h.events(r) {
		if ev.Type == event.BudgetWarning {
			told = append(told, ev)
		}
	}
	if len(told) != 1 || told[0].Step != 3 {
		t.Fatalf("told %d times: %+v", len(told), told)
	}
	if b, ok := told[0].Data.(*event.Budget); !ok || b.Limit != "max_tokens" || b.Cap != "100000" || b.Used != "2800" || b.Pot != "run" {
		t.Errorf("told was %+v", told[0].Data)
	}
}

// A provider that charges more than can be is believed, and not called again.
func TestBudgetBeliefsTheBill(t *testing.T) {
	calls := 0
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		calls++
		m, _ := say("so far", call("c", "echo", `{}`))
		return using(m, 1_000_000, 5)
	}, echoTool(tool.Read))
	costly(h, "test", Caps{MaxCost: 5000 * message.Dollar})
	r := h.ends(h.run("go"), "completed")
	if p := h.pot(store.PotRun, r.ID); calls != 1 || r.StopReason != run.StopMaxCost || p.Settled.Tokens != 1_000_005 || p.Held.Tokens != 0 {
		t.Errorf("%d calls, %s: %+v", calls, r.StopReason, p)
	}
}
