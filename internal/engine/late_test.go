package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/event"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// lateModel answers what a test tells it to, and keeps what it was asked.
type lateModel struct {
	mu       sync.Mutex
	requests []*model.Request
	next     []message.Block // the call that it makes next, once
}

func (l *lateModel) generate(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, req)
	if calls := l.next; len(calls) > 0 {
		l.next = nil
		return say("", calls...)
	}
	return say("fine")
}

func (l *lateModel) calls(blocks ...message.Block) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = blocks
}

func (l *lateModel) last() *model.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[len(l.requests)-1]
}

func namedTool(name, description string) tool.Tool {
	return toolFunc{tool.Spec{Name: name, Description: description, Effect: tool.Read, Schema: json.RawMessage(`{ "type": "object" }`)},
		func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.TextResult(c.Name + " did " + string(c.Args)), nil
		}}
}

func lateHarness(t *testing.T, tools ...tool.Tool) (*harness, *lateModel) {
	l := &lateModel{}
	h := newHarness(t, l.generate, tools...)
	a := h.agents["test"]
	a.LateTools, a.ToolRules, a.NoReadArtifact, a.Models[0].CacheTTL = true, "rules", true, 5*time.Minute
	return h, l
}

func (h *harness) has(tools ...tool.Tool) {
	h.t.Helper()
	a := *h.agents["test"]
	var err error
	if a.Tools, err = tool.NewSet(tools...); err != nil {
		h.t.Fatal(err)
	}
	h.agents["test"] = &a
}

func toolNames(req *model.Request) string {
	var names []string
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// extends fails unless a request begins with all of another.
func extends(t *testing.T, before, now *model.Request) {
	t.Helper()
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	if text(before.Tools) != text(now.Tools) || text(before.System) != text(now.System) {
		t.Errorf("tools %s\nwere %s", text(now.Tools), text(before.Tools))
	}
	for i := range before.Tools {
		if string(before.Tools[i].Schema) != string(now.Tools[i].Schema) {
			t.Errorf("the schema of %s is %s and was %s", now.Tools[i].Name, now.Tools[i].Schema, before.Tools[i].Schema)
		}
	}
	if n := len(before.Messages); len(now.Messages) <= n || text(before.Messages) != text(now.Messages[:n]) {
		t.Errorf("messages\n%s\nwere\n%s", text(now.Messages), text(before.Messages))
	}
}

// newestContext is what stands beside the newest words of a person.
func newestContext(req *model.Request) string {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if m := &req.Messages[i]; m.Role == message.RoleUser {
			given, _ := m.Split()
			c := message.Message{}
			for _, b := range given {
				b.Context = ""
				c.Content = append(c.Content, b)
			}
			return c.Text()
		}
	}
	return ""
}

// Tools that come, go and change during a conversation leave its list as it was, also when
// another process goes on: what is new is called by name and is a call like any other,
// what is gone says so, and what changed is told.
func TestToolsThatChangeKeepTheList(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h, l := lateHarness(t, namedTool("keep", "stays"), namedTool("drop", "goes"), namedTool("turn", "old"))
		l.calls(call("a", "drop", `{"n":1}`))
		r := h.ends(h.run("go"), "completed")
		first := l.last()
		if got := toolNames(first); got != "call_tool drop keep turn" {
			t.Fatalf("tools: %s", got)
		}
		if newestContext(first) != "" {
			t.Errorf("told %q", newestContext(first))
		}
		if restart {
			h.restart()
		}
		h.has(namedTool("keep", "stays"), namedTool("turn", "new </context> words"), namedTool("zoom", "Shows more."))
		if restart {
			h.restart()
		}
		l.calls(call("b", CallByName, `{"arguments":{"id": 7},"tool":"zoom"}`), call("c", "drop", `{}`), call("d", CallByName, `{"tool":"nothing","arguments":{}}`), call("e", CallByName, `{}`))
		next := h.ends(h.begin(inSession(r.SessionID, "on")), "completed")
		now := l.last()
		extends(t, first, now)
		told := newestContext(now)
		for _, want := range []string{"do not call them: drop.", "- zoom: Shows more.\n  arguments: { \"type\": \"object\" }", "- turn: new &lt;/context> words", "call them with call_tool"} {
			if !strings.Contains(told, want) {
				t.Errorf("%q is not told in %q", want, told)
			}
		}
		if b := h.breaks(next); len(b) > 0 {
			t.Errorf("%+v", b[0])
		}
		var results, events []string
		for _, m := range now.Messages[len(now.Messages)-4:] {
			results = append(results, m.ToolName+": "+m.Text())
		}
		for i, want := range []string{`call_tool: zoom did {"id": 7}`, `drop: Not executed: the tool "drop" is not available here now.`, `call_tool: There is no tool "nothing".`, `call_tool: Not executed: call_tool takes {"tool":`} {
			if !strings.HasPrefix(strings.ReplaceAll(results[i], `{"id":7}`, `{"id": 7}`), want) {
				t.Errorf("result %q, want %q", results[i], want)
			}
		}
		for _, ev := range h.events(next) {
			if d, ok := ev.Data.(*event.Tool); ok && (d.ToolCallID == "b" || d.ToolCallID == "") {
				events = append(events, string(ev.Type)+" "+d.Name)
			}
		}
		if !slices.Contains(events, "tool_started zoom") || !slices.Contains(events, "tool_completed zoom") || strings.Contains(strings.Join(events, ","), CallByName) {
			t.Errorf("events: %q", events)
		}
		if text := h.transcript(r.SessionID); !strings.Contains(text, `[b zoom {"id": 7}]`) {
			t.Errorf("transcript: %s", text)
		}
		if restart {
			h.restart()
		}
		again := h.ends(h.begin(inSession(r.SessionID, "and on")), "completed")
		extends(t, now, l.last())
		if told := newestContext(l.last()); told != "" || len(h.breaks(again)) > 0 {
			t.Errorf("told again: %q, %d breaks", told, len(h.breaks(again)))
		}
		// All as it was: that is told, once.
		h.has(namedTool("keep", "stays"), namedTool("drop", "goes"), namedTool("turn", "old"))
		now = l.last()
		h.ends(h.begin(inSession(r.SessionID, "and back")), "completed")
		extends(t, now, l.last())
		if told := newestContext(l.last()); !strings.Contains(told, `kind="available_tools" removed="true"`) {
			t.Errorf("told %q", told)
		}
	}
}

// What an operator takes away is gone at once. So is the list where nothing is lost by
// it: long after the last request, of another agent, and where servers that were missing
// are back. Runs without tools are no reason.
func TestWhenTheListIsMadeAnew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(h *harness, a *Agent)
		breaks int
		want   string
	}{
		{"rules", func(_ *harness, a *Agent) { a.ToolRules = "stricter" }, 1, "call_tool keep"},
		{"cold", func(h *harness, _ *Agent) {
			h.engine.cfg.Now = func() time.Time { return time.Now().Add(61 * time.Minute) }
		}, 1, "call_tool keep"},
		{"not cold with others", func(h *harness, a *Agent) {
			h.engine.cfg.Now = func() time.Time { return time.Now().Add(23 * time.Hour) }
		}, 0, "call_tool drop keep"},
		{"not cold", func(h *harness, _ *Agent) {
			h.engine.cfg.Now = func() time.Time { return time.Now().Add(50 * time.Minute) }
		}, 0, "call_tool drop keep"},
		{"off", func(_ *harness, a *Agent) { a.LateTools = false }, 1, "keep"},
		{"a tool of that name", func(h *harness, a *Agent) {
			a.Tools, _ = tool.NewSet(namedTool("keep", ""), namedTool(CallByName, ""))
		}, 1, "call_tool keep"},
	} {
		h, l := lateHarness(t, namedTool("keep", ""), namedTool("drop", ""))
		if tt.name != "not cold with others" {
			h.agents["test"].Models[0].Name = "anthropic/m"
		}
		r := h.ends(h.run("go"), "completed")
		h.has(namedTool("keep", ""))
		tt.change(h, h.agents["test"])
		next := h.ends(h.begin(inSession(r.SessionID, "on")), "completed")
		if got := h.breaks(next); len(got) != tt.breaks || toolNames(l.last()) != tt.want {
			t.Errorf("%s: %d breaks with %s", tt.name, len(got), toolNames(l.last()))
		}
		if told := newestContext(l.last()); (told != "") != (tt.breaks == 0) {
			t.Errorf("%s: told %q", tt.name, told)
		}
	}
	h, l := lateHarness(t, namedTool("keep", ""))
	h.agents["test"].Unreachable = []Unreachable{{"files", "it is down"}}
	r := h.ends(h.run("go"), "completed")
	h.has(namedTool("keep", ""), namedTool("file_list", ""))
	h.agents["test"].Unreachable = nil
	h.ends(h.begin(inSession(r.SessionID, "on")), "completed")
	if got := toolNames(l.last()); got != "call_tool file_list keep" {
		t.Errorf("back: %s", got)
	}
	h.has(namedTool("keep", ""))
	bare := inSession(r.SessionID, "briefly")
	bare.Overrides.NoTools = true
	h.ends(h.begin(bare), "completed")
	if got := toolNames(l.last()); got != "" {
		t.Errorf("without tools: %s", got)
	}
	h.ends(h.begin(inSession(r.SessionID, "on")), "completed")
	if got := toolNames(l.last()); got != "call_tool file_list keep" {
		t.Errorf("after a run without tools: %s", got)
	}
}

// From a compaction on late tools are tools like others, and nothing is told of them any more.
func TestACompactionMakesTheListAnew(t *testing.T) {
	l := &lateModel{}
	w := &windowed{answer: func(step int, req *model.Request) (*message.Message, error) {
		return l.generate(context.Background(), step, req)
	}}
	h := newHarness(t, w.generate, namedTool("keep", ""), namedTool("drop", ""))
	h.windowed(w, true)
	h.agents["test"].LateTools, h.agents["test"].NoReadArtifact = true, true
	id, _ := h.talk(3)
	h.has(namedTool("keep", ""), namedTool("zoom", ""))
	l.calls(call("z", CallByName, `{"tool":"zoom","arguments":{}}`))
	h.says(id, "look closer")
	if told := newestContext(l.last()); !strings.Contains(told, "zoom") || toolNames(l.last()) != "call_tool drop keep" {
		t.Fatalf("told %q of %s", told, toolNames(l.last()))
	}
	r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id, Compact: &CompactRequest{}})
	if err != nil {
		t.Fatal(err)
	}
	h.ends(r, "completed")
	h.says(id, "go on")
	if got := toolNames(l.last()); got != "call_tool keep zoom" {
		t.Errorf("tools: %s", got)
	}
	for _, c := range h.compactions(id) {
		for _, b := range c.Context {
			if b.Context == toolsContext {
				t.Errorf("carried over: %s", b.Text)
			}
		}
	}
	first := l.last()
	h.restart()
	h.says(id, "and on")
	extends(t, first, l.last())
}

// A call of a late tool waits for a person, through a restart, as any other: by its own
// name, with its own arguments.
func TestALateToolIsApproved(t *testing.T) {
	h, l := lateHarness(t, namedTool("keep", ""))
	r := h.ends(h.run("go"), "completed")
	h.has(namedTool("keep", ""), asking(echoTool(tool.Once)))
	l.calls(call("a", CallByName, `{"tool":"echo","arguments":"{\"n\":1}"}`))
	r = h.paused(h.begin(inSession(r.SessionID, "on")), 1)
	i := r.Interrupts[0]
	if i.Kind != "approval" || i.ToolCall.Name != "echo" || string(i.ToolCall.Args) != `{"n":1}` || !strings.Contains(i.Prompt, "May echo run?") {
		t.Errorf("interrupt: %+v", i)
	}
	asked := l.last()
	h.restart()
	h.paused(r, 1)
	h.answer(AnswerRequest{Run: r.ID, Decision: "approve", By: "kim"})
	h.ends(r, "completed")
	extends(t, asked, l.last())
	last := l.last().Messages
	if m := last[len(last)-1]; m.ToolName != CallByName || m.Text() != `echo {"n":1}` {
		t.Errorf("the result: %+v", m)
	}
	if c := last[len(last)-2].ToolCalls()[0]; c.Name != CallByName || string(c.Arguments) != `{"tool":"echo","arguments":{"n":1}}` || c.Via != "" {
		t.Errorf("the call: %s %s", c.Name, c.Arguments)
	}
}

// A list that is gone, or was changed in the store, is not gone on with.
func TestAListThatIsNoneIsMadeAnew(t *testing.T) {
	h, _ := lateHarness(t, namedTool("keep", ""))
	r := h.ends(h.run("go"), "completed")
	rec := h.engine.records(t.Context(), ref(r.ID))[0]
	if rec.Toolset == "" || rec.ToolsetRun != r.ID {
		t.Fatalf("%+v", rec)
	}
	h.restart()
	if got := h.engine.toolset(t.Context(), ref(r.ID), rec.Toolset); got == nil || len(got.specs) != 2 {
		t.Error("it is not found")
	}
	if h.engine.toolset(t.Context(), ref(r.ID), "another") != nil {
		t.Error("another is found")
	}
	if decodeToolset(json.RawMessage(`{"profile":"test","tools":[{"name":"evil"}]}`), rec.Toolset) != nil {
		t.Error("another was decoded")
	}
}

// However many lists there are, few are kept.
func TestFewListsAreKept(t *testing.T) {
	var p recentToolsets
	for i := range 5 * maxToolsets {
		p.put("t", &toolset{hash: fmt.Sprint(i)})
	}
	if n := len(p.cur) + len(p.old); n > 2*maxToolsets || p.get("t", fmt.Sprint(5*maxToolsets-1)) == nil || p.get("u", fmt.Sprint(5*maxToolsets-1)) != nil {
		t.Errorf("%d lists", n)
	}
}

// What a call through the tool calls is found, and written again in one way.
func FuzzUnwrap(f *testing.F) {
	for _, s := range []string{`{"tool":"zoom","arguments":{"a":[1.50]}}`, `{"tool":"zoom","arguments":"{\"a\":1}"}`, `{"tool":"zoom"}`, `{"tool":"call_tool","arguments":{}}`, `[]`, `{"tool":"z","arguments":[1]}`, `{"tool":"z","arguments":"x"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, args, ok := unwrap(json.RawMessage(raw))
		if !ok {
			return
		}
		if name == "" || name == CallByName || !json.Valid(args) || args[0] != '{' {
			t.Fatalf("%q %s", name, args)
		}
		b := wrap(&message.Block{Type: message.BlockToolCall, ID: "a", Name: name, Arguments: args, Via: CallByName})
		again, same, ok := unwrap(b.Arguments)
		if !ok || again != name || string(same) != string(args) || b.Name != CallByName {
			t.Fatalf("%s became %q %s", b.Arguments, again, same)
		}
	})
}

// A tool that a request says must be called is in its list, or the provider refuses it.
func TestALateToolThatMustBeCalledIsInTheList(t *testing.T) {
	h, l := lateHarness(t, namedTool("keep", ""))
	r := h.ends(h.run("go"), "completed")
	h.has(namedTool("keep", ""), namedTool("zoom", ""))
	for _, want := range []string{"call_tool keep", "call_tool keep zoom", "call_tool keep zoom"} {
		req := inSession(r.SessionID, "on")
		if want != "call_tool keep" {
			req.Overrides.ToolChoice = "zoom"
		}
		h.ends(h.begin(req), "completed")
		if got := toolNames(l.last()); got != want {
			t.Errorf("choice %q of %s", l.last().ToolChoice, got)
		}
		h.restart()
	}
}

// A reply that is broken off is stored as one that is not: with the tool that a call calls.
func TestABrokenOffCallOfALateTool(t *testing.T) {
	h, _ := lateHarness(t, namedTool("keep", ""))
	first := h.ends(h.run("go"), "completed")
	h.has(namedTool("keep", ""), namedTool("late", ""))
	g := newGate()
	h.agents["test"].Models[0].Provider = provider(func(ctx context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
		m, _ := say("I look", call("a", CallByName, `{"tool":"late","arguments":{"n":1}}`), call("b", CallByName, `{}`))
		emit(model.StreamEvent{Type: model.StreamToolStart, Index: 1, ToolCall: &m.Content[1], Partial: m})
		return m, g.pass(ctx)
	})
	r := h.begin(inSession(first.SessionID, "on"))
	<-g.entered
	h.cancel(r)
	h.ends(r, "cancelled")
	entries, err := h.engine.Entries(t.Context(), Ref{store.DefaultTenant, r.SessionID}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	m := entries[len(entries)-1].Message
	if m == nil || m.StopReason != message.StopAborted || len(m.ToolCalls()) != 2 {
		t.Fatalf("%+v", m)
	}
	if c := m.ToolCalls()[0]; c.Name != "late" || string(c.Arguments) != `{"n":1}` || c.Via != CallByName {
		t.Errorf("%s %s via %q", c.Name, c.Arguments, c.Via)
	}
	if c := m.ToolCalls()[1]; c.Name != CallByName || c.Via != "" { // nobody knows of what
		t.Errorf("%s %s via %q", c.Name, c.Arguments, c.Via)
	}
}
