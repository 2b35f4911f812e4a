package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/prompt"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// obedient notes the requests that a model gets, and answers with the last result.
type obedient struct {
	mu   sync.Mutex
	reqs []model.Request
	call func(req *model.Request) []message.Block
}

func (a *obedient) model(_ context.Context, step int, req *model.Request) (*message.Message, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reqs = append(a.reqs, *req)
	if calls := a.call; step == 0 && calls != nil {
		if c := calls(req); c != nil {
			return say("", c...)
		}
	}
	return say("It said: " + req.Messages[len(req.Messages)-1].Text())
}

func (a *obedient) last() *model.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &a.reqs[len(a.reqs)-1]
}

// toldTimes is how often the conversation of a request says something.
func toldTimes(req *model.Request, text string) (n int) {
	for _, m := range req.Messages {
		for _, b := range m.Content {
			n += strings.Count(b.Text, text)
		}
	}
	return n
}

func (h *harness) set(sessionID, kind, data string) error {
	_, err := h.engine.AppendEntry(h.t.Context(), AppendRequest{Tenant: store.DefaultTenant, SessionID: sessionID, Kind: kind, Data: json.RawMessage(data)})
	return err
}

func (h *harness) mode(sessionID, mode string) {
	h.t.Helper()
	if err := h.set(sessionID, session.KindModeChange, `{"mode":"`+mode+`"}`); err != nil {
		h.t.Fatal(err)
	}
}

// begun gives the first event of a run.
func (h *harness) begun(r *Run) *event.Started {
	h.t.Helper()
	for _, ev := range h.events(r) {
		if d, ok := ev.Data.(*event.Started); ok {
			return d
		}
	}
	h.t.Fatal("the run did not start")
	return nil
}

const forbidden = "Not executed: the session is in mode "

// A mode lasts until it is changed, over runs, restarts and forks, and goes back with the
// conversation. The model keeps its tools, and is told of the mode once.
func TestModesLast(t *testing.T) {
	a := &obedient{call: func(*model.Request) []message.Block { return []message.Block{call("a", "echo", `{}`)} }}
	h := newHarness(t, a.model, echoTool(tool.Once))
	runs := func(sessionID, mode, want string) *Run {
		t.Helper()
		r := h.ends(h.begin(StartRequest{SessionID: sessionID, SessionMode: mode, Input: blocks("go")}), "completed")
		if !strings.Contains(r.Output, want) || len(a.last().Tools) != 1 && a.last().Tools[0].Name != "echo" {
			t.Fatalf("%s, with tools %v", r.Output, a.last().Tools)
		}
		return r
	}
	r := runs("", "plan", forbidden+"plan")
	if r.SessionMode != ModePlan || h.begun(r).SessionMode != ModePlan {
		t.Errorf("the run is shown in mode %q, its event has %q", r.SessionMode, h.begun(r).SessionMode)
	}
	planned := h.said(r.SessionID, "go")
	h.restart()
	runs(r.SessionID, "", forbidden+"plan")
	runs(r.SessionID, "plan", forbidden+"plan")
	if n := toldTimes(a.last(), "Mode: plan."); n != 1 {
		t.Errorf("the mode was told %d times", n)
	}
	if tree := h.drawn(r.SessionID); strings.Count(tree, "mode_change") != 1 {
		t.Errorf("entries of one change:\n%s", tree)
	}
	fork, err := h.engine.Fork(t.Context(), ForkRequest{Tenant: store.DefaultTenant, SessionID: r.SessionID})
	if err != nil {
		t.Fatal(err)
	}
	h.mode(r.SessionID, "edit")
	runs(r.SessionID, "", "echo {}")
	if n := toldTimes(a.last(), edits); n != 1 {
		t.Errorf("the end of the mode was told %d times", n)
	}
	runs(r.SessionID, "", "echo {}")
	if n := toldTimes(a.last(), edits); n != 1 {
		t.Errorf("the end of the mode was told %d times in all", n)
	}
	runs(fork.ID, "", forbidden+"plan")
	h.navigate(r.SessionID, planned, nil)
	if r := runs(r.SessionID, "", forbidden+"plan"); r.SessionMode != ModePlan {
		t.Errorf("back on the way of the plan the mode is %q", r.SessionMode)
	}
	if r := runs("", "", "echo {}"); r.SessionMode != ModeEdit || toldTimes(a.last(), "Mode:") != 0 {
		t.Errorf("a session in which nobody chose has mode %q and was told %+v", r.SessionMode, a.last().Messages)
	}
	h.agents["test"].Modes = Modes{First: ModeAsk, Texts: map[string]string{ModeAsk: "LOOK ONLY"}}
	runs("", "", forbidden+"ask")
	if toldTimes(a.last(), "LOOK ONLY") != 1 {
		t.Error("the profile's words for the mode are not told")
	}
	r = runs("", "edit", "echo {}")
	runs(r.SessionID, "", "echo {}")
}

// A long session is kept in memory; a mode that was set meanwhile counts all the same.
func TestModesOfSessionsThatAreKept(t *testing.T) {
	a := &obedient{call: func(*model.Request) []message.Block { return []message.Block{call("a", "echo", `{}`)} }}
	h := newHarness(t, a.model, echoTool(tool.Once))
	history := make([]message.Message, 0, 2*warmEntries)
	for i := range warmEntries {
		history = append(history, message.User(fmt.Sprint("q", i)), message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd, Content: blocks("a")})
	}
	r := h.ends(h.begin(StartRequest{History: history, SessionMode: ModeAsk, Input: blocks("go")}), "completed")
	for _, mode := range []string{"", "plan", "edit", ""} {
		if mode != "" {
			h.mode(r.SessionID, mode)
		}
		now := h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("go")}), "completed")
		var v *TreeView
		var err error
		if v, err = h.engine.Tree(t.Context(), Ref{store.DefaultTenant, r.SessionID}); err != nil || now.SessionMode != v.Settings.Mode {
			t.Errorf("after %q the run is in mode %q: %v %+v", mode, now.SessionMode, err, v.Settings)
		}
	}
	if h.engine.warm.get(Ref{store.DefaultTenant, r.SessionID}) == nil {
		t.Error("the session was not kept, so nothing was tested")
	}
}

// What only reads runs in every mode, commands that only look in mode plan, and a person
// who approves a call can not make another one of it.
func TestWhatModesAllow(t *testing.T) {
	for _, c := range []struct {
		mode, name, args string
		effect           tool.Effect
		runs             bool
	}{
		{"ask", "echo", `{}`, tool.Read, true}, {"plan", "echo", `{}`, tool.Read, true}, {"ask", "echo", `{}`, tool.Idempotent, false}, {"ask", "echo", `{}`, "", false},
		{"plan", "sh", `{"command":"git status"}`, "", true}, {"plan", "sh", `{"command":"git status; rm x"}`, "", false}, {"ask", "sh", `{"command":"ls"}`, "", false},
		{"edit", "sh", `{"command":"rm x"}`, "", true},
	} {
		a := &obedient{call: func(*model.Request) []message.Block { return []message.Block{call("a", c.name, c.args)} }}
		h := newHarness(t, a.model, toolFunc{tool.Spec{Name: c.name, Effect: c.effect}, func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("done"), nil }})
		h.agents["test"].Modes.Allows = policy.Modes{Commands: map[string]string{"sh": "command"}}
		r := h.ends(h.begin(StartRequest{SessionMode: c.mode, Input: blocks("go")}), "completed")
		if ran := r.Output == "It said: done"; ran != c.runs || !ran && !strings.Contains(r.Output, forbidden+c.mode) {
			t.Errorf("%s %s in mode %s: %s", c.name, c.args, c.mode, r.Output)
		}
	}
	a := &obedient{call: func(*model.Request) []message.Block { return []message.Block{call("a", "sh", `{"command":"ls"}`)} }}
	h := newHarness(t, a.model, toolFunc{tool.Spec{Name: "sh", Approval: "always"}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult(string(c.Args)), nil
	}})
	h.agents["test"].Modes.Allows = policy.Modes{Commands: map[string]string{"sh": "command"}}
	r := h.paused(h.begin(StartRequest{SessionMode: ModePlan, Input: blocks("go")}), 1)
	h.restart()
	_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"command":"rm x"}`)})
	h.refuses(err, fault.Invalid, "mode plan")
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", Args: json.RawMessage(`{"command":"ls -a"}`)})
	if r = h.ends(r, "completed"); r.Output != `It said: {"command":"ls -a"}` {
		t.Errorf("%s", r.Output)
	}
}

// The approval of a plan switches the mode of the run and of its session if the person
// says so, over a crash on either side of it.
func TestAPlanSwitchesTheMode(t *testing.T) {
	for _, switches := range []bool{true, false} {
		a := &obedient{}
		h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			if last := req.Messages[len(req.Messages)-1]; last.Role == message.RoleToolResult && last.ToolName == ProposePlan {
				return say("", call("b", "echo", `{}`))
			}
			return a.model(ctx, step, req)
		}, echoTool(tool.Once))
		a.call = func(*model.Request) []message.Block {
			return []message.Block{call("a", ProposePlan, `{"plan":"1. act"}`)}
		}
		h.agents["test"].Plans = true
		r := h.paused(h.begin(StartRequest{SessionMode: ModePlan, Input: blocks("go")}), 1)
		for _, bad := range []AnswerRequest{{Decision: "reject", SessionMode: "edit"}, {Decision: "approve", SessionMode: "fast"}} {
			bad.Run = r.ID
			_, err := h.engine.Answer(t.Context(), bad)
			h.refuses(err, fault.Invalid, "")
		}
		h.restart()
		answer, want, mode := AnswerRequest{Run: r.ID, Decision: "approve"}, forbidden+"plan", ModePlan
		if switches {
			answer.SessionMode, want, mode = ModeEdit, "echo {}", ModeEdit
		}
		h.answer(answer)
		if r = h.ends(r, "completed"); !strings.Contains(r.Output, want) || r.SessionMode != mode {
			t.Errorf("%s in mode %q", r.Output, r.SessionMode)
		}
		h.restart()
		v, err := h.engine.Tree(t.Context(), Ref{store.DefaultTenant, r.SessionID})
		if err != nil || v.Settings.Mode != mode {
			t.Errorf("%v: the session is in mode %q\n%s", err, v.Settings.Mode, drawn(v))
		}
		a.call = func(*model.Request) []message.Block { return []message.Block{call("c", "echo", `{}`)} }
		if r = h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("more")}), "completed"); !strings.Contains(r.Output, want) {
			t.Errorf("the next run: %s", r.Output)
		}
	}
}

// A subagent has its parent's mode or a stricter one of its own.
func TestSubagentsInheritTheMode(t *testing.T) {
	for _, c := range []struct{ parent, own, want string }{
		{"plan", "", "plan"}, {"plan", "ask", "ask"}, {"ask", "plan", "ask"}, {"edit", "plan", "plan"}, {"edit", "", "edit"}, {"", "", "edit"},
	} {
		h := family(t, oneCall("touch", `{}`), toolFunc{tool.Spec{Name: "touch"}, func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("touched"), nil }})
		h.agents["kid"].Modes.First = c.own
		r := h.ends(h.begin(StartRequest{SessionMode: c.parent, Input: blocks("go")}), "completed")
		kid := h.child(r)
		if kid.SessionMode != c.want || strings.Contains(kid.Output, forbidden) != (c.want != ModeEdit) {
			t.Errorf("below %q and with %q of its own the subagent is in mode %q: %s", c.parent, c.own, kid.SessionMode, kid.Output)
		}
	}
}

// The approval of a subagent's plan does not take it out of the mode of the run above.
func TestAPlanOfASubagentStaysInTheModeAbove(t *testing.T) {
	h := family(t, oneCall(ProposePlan, `{"plan":"1. act"}`))
	h.agents["kid"].Plans = true
	for _, c := range []struct {
		parent string
		ok     bool
	}{{ModePlan, false}, {ModeEdit, true}} {
		r := h.paused(h.begin(StartRequest{SessionMode: c.parent, Input: blocks("go")}), 1)
		kid := h.paused(h.child(r), 1)
		h.restart()
		answer := AnswerRequest{Run: kid.ID, Decision: "approve", SessionMode: ModeEdit}
		if !c.ok {
			_, err := h.engine.Answer(t.Context(), AnswerRequest{Tenant: store.DefaultTenant, Run: kid.ID, Interrupt: kid.Interrupts[0].ID, Decision: "approve", SessionMode: ModeEdit})
			h.refuses(err, fault.Invalid, "mode "+c.parent)
			answer.SessionMode = c.parent
		}
		h.answer(answer)
		h.ends(r, "completed")
		if kid = h.child(r); kid.SessionMode != c.parent {
			t.Errorf("below %s the subagent is in mode %s", c.parent, kid.SessionMode)
		}
	}
}

// A message that steers changes no mode, and modes of sessions and of runs are told apart.
func TestModesThatAreRefused(t *testing.T) {
	h := newHarness(t, oneCall(AskUserQuestion, `{"question":"which?"}`))
	h.agents["test"].AskUser = true
	r := h.paused(h.begin(StartRequest{SessionMode: ModeAsk, Input: blocks("go")}), 1)
	start := func(change func(*StartRequest)) error {
		req := StartRequest{SessionID: r.SessionID, WhenBusy: Steer, Input: blocks("more")}
		change(&req)
		_, err := h.engine.Start(t.Context(), req)
		return err
	}
	h.refuses(start(func(q *StartRequest) { q.SessionMode = ModeEdit }), fault.Conflict, "mode ask")
	if err := start(func(q *StartRequest) { q.SessionMode = ModeAsk }); err != nil {
		t.Errorf("the mode that the run has: %v", err)
	}
	h.refuses(start(func(q *StartRequest) { q.SessionMode = "fast" }), fault.Invalid, `"fast" is not a mode`)
	h.refuses(start(func(q *StartRequest) { q.Mode = ModePlan }), fault.Invalid, "mode of the session")
	h.refuses(h.set(r.SessionID, session.KindModeChange, `{"mode":"fast"}`), fault.Invalid, `"fast" is not a mode`)
	h.refuses(h.set(r.SessionID, session.KindModeChange, `{"mode":"edit"}`), fault.Conflict, "busy")
}

// A run that did not start yet has the mode that its request sets; if that sets none,
// nobody knows it yet.
func TestSteeringARunThatDidNotStart(t *testing.T) {
	for _, sets := range []string{ModePlan, ""} {
		h := newHarness(t, listener)
		h.engine.cfg.ContextTimeout = time.Hour
		asked, goOn := make(chan struct{}), make(chan struct{})
		h.agents["test"].Context = []ContextSource{func(context.Context, *ContextRequest) ([]prompt.Block, error) {
			close(asked)
			<-goOn
			return nil, nil
		}}
		r := h.begin(StartRequest{SessionMode: sets, Input: blocks("go")})
		<-asked
		steer := func(mode string) error {
			_, err := h.engine.Start(t.Context(), StartRequest{SessionID: r.SessionID, WhenBusy: Steer, SessionMode: mode, Input: blocks("more")})
			return err
		}
		if h.refuses(steer(ModeEdit), fault.Conflict, "session_mode"); sets == "" {
			h.refuses(steer(ModePlan), fault.Conflict, "did not start")
		}
		close(goOn)
		h.ends(r, "completed")
	}
}

// The model and the thinking of a session are obeyed from the next run on, also by whoever
// goes on with it.
func TestSettingsAreObeyed(t *testing.T) {
	names := map[string]*obedient{"m": {}, "n": {}, "x": {}}
	of := func(id string) Model {
		return Model{Provider: modelFunc(names[id].model), ID: id, Name: "fake/" + id}
	}
	h := newHarness(t, names["m"].model)
	h.agents["test"].Models, h.agents["test"].Choices = []Model{of("m"), of("n")}, []Model{of("x")}
	h.agents["test"].AskUser = true
	asked := func(id string, level model.ThinkingLevel) {
		t.Helper()
		for name, a := range names {
			if n := len(a.reqs); (n > 0) != (name == id) || n > 0 && a.last().Thinking != level {
				t.Errorf("%s was asked %d times, wanted is %s at %q", name, n, id, level)
			}
			a.reqs = nil
		}
	}
	r := h.ends(h.run("one"), "completed")
	asked("m", "")
	for _, s := range []struct{ kind, data, words string }{
		{session.KindModelChange, `{"provider":"fake","model":"z"}`, "can not use the model"}, {session.KindModelChange, `{"provider":"other","model":"x"}`, "can not use the model"},
		{session.KindThinkingChange, `{"level":"hard"}`, "level of thinking"},
	} {
		h.refuses(h.set(r.SessionID, s.kind, s.data), fault.Invalid, s.words)
	}
	_, err := h.engine.AppendEntry(t.Context(), AppendRequest{Tenant: store.DefaultTenant, SessionID: r.SessionID, Kind: session.KindModelChange, Data: json.RawMessage(`{"model":"x"}`), Profile: "none"})
	h.refuses(err, fault.NotFound, "none")
	for _, s := range []struct{ kind, data string }{{session.KindModelChange, `{"provider":"fake","model":"x"}`}, {session.KindThinkingChange, `{"level":"high"}`}} {
		if err := h.set(r.SessionID, s.kind, s.data); err != nil {
			t.Fatal(err)
		}
	}
	names["x"].call = func(req *model.Request) []message.Block {
		return []message.Block{call("q", AskUserQuestion, `{"question":"which?"}`)}
	}
	two := h.paused(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("two")}), 1)
	asked("x", model.ThinkingHigh)
	h.restart()
	h.answer(AnswerRequest{Run: two.ID, Answer: json.RawMessage(`"this"`)})
	h.ends(two, "completed")
	if d, two := h.begun(two), h.wait(two); d.Model != "fake/x" || d.Thinking != "high" || two.Model != "fake/x" || two.Thinking != "high" {
		t.Errorf("told are %+v, shown %q and %q", d, two.Model, two.Thinking)
	}
	asked("x", model.ThinkingHigh)
	names["x"].call = nil
	h.ends(h.begin(StartRequest{SessionID: r.SessionID, Overrides: Overrides{Thinking: "low"}, Input: blocks("three")}), "completed")
	asked("x", model.ThinkingLow)
	h.navigate(r.SessionID, h.said(r.SessionID, "one"), nil)
	h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("four")}), "completed")
	asked("m", "")
}

// A model that fails is stood in for by the profile's.
func TestAChosenModelHasStandIns(t *testing.T) {
	down := modelFunc(func(context.Context, int, *model.Request) (*message.Message, error) {
		return nil, &model.Error{Class: model.ClassQuota, Provider: "fake", Message: "no credit"}
	})
	h := newHarness(t, listener)
	h.agents["test"].Choices = []Model{{Provider: down, ID: "x", Name: "fake/x"}}
	r := h.ends(h.run("one"), "completed")
	if err := h.set(r.SessionID, session.KindModelChange, `{"model":"x"}`); err != nil {
		t.Fatal(err)
	}
	if r = h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("two")}), "completed"); r.Output != "I hear two." || r.Model != "fake/x" {
		t.Errorf("%+v", r)
	}
}

// Settings of a session that came from elsewhere, and that nothing here can obey, are
// shown and not obeyed, and the run says so.
func TestSettingsThatAreNotObeyed(t *testing.T) {
	h := newHarness(t, listener)
	file := `{"type":"session","version":3,"id":"a","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/"}
{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hello"}}
{"type":"model_change","id":"c1","parentId":"m1","timestamp":"2026-01-02T03:04:05.000Z","provider":"other","modelId":"big"}
{"type":"thinking_level_change","id":"t1","parentId":"c1","timestamp":"2026-01-02T03:04:05.000Z","thinkingLevel":"ultra"}
`
	v, err := h.engine.Import(t.Context(), ImportRequest{Tenant: store.DefaultTenant, File: strings.NewReader(file)})
	if err != nil {
		t.Fatal(err)
	}
	r := h.ends(h.begin(StartRequest{SessionID: v.ID, Input: blocks("two")}), "completed")
	w := strings.Join(h.begun(r).Warnings, "|")
	if r.Output != "I hear two." || r.Model != "" || !strings.Contains(w, `model "other/big" is not obeyed: profile test can use fake/m`) || !strings.Contains(w, `thinking "ultra" is not obeyed`) {
		t.Errorf("%s with %q: %s", r.Output, r.Model, w)
	}
	tree, err := h.engine.Tree(t.Context(), Ref{store.DefaultTenant, v.ID})
	if err != nil || tree.Settings.Model != "other/big" {
		t.Errorf("%v %+v", err, tree)
	}
}
