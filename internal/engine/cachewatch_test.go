package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"agentd/event"
	"agentd/internal/prefix"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// breaks are the cache_broken events of a run.
func (h *harness) breaks(r *Run) (out []*event.CacheBreak) {
	h.t.Helper()
	for _, ev := range h.events(r) {
		if b, ok := ev.Data.(*event.CacheBreak); ok {
			out = append(out, b)
		}
	}
	return out
}

// twoSteps calls a tool in the first turns and then answers.
func twoSteps(_ context.Context, step int, req *model.Request) (*message.Message, error) {
	if step == 0 && len(req.Messages) < 6 {
		return say("", call(fmt.Sprint("c", len(req.Messages)), "echo", `{"text":"a"}`))
	}
	return say(fmt.Sprint("answer ", len(req.Messages)))
}

func inSession(id, text string) StartRequest {
	return StartRequest{SessionID: id, Input: []message.Block{message.Text(text)}}
}

// A conversation that only grows breaks nothing, within a run, from run to run, and
// through a restart; each reply has the record of its request.
func TestGrowingRequestsBreakNothing(t *testing.T) {
	h := newHarness(t, twoSteps, echoTool(tool.Read))
	r := h.ends(h.run("go"), "completed")
	runs := []*Run{r}
	for i, text := range []string{"on", "and on", "and on again"} {
		if i == 1 {
			h.restart()
		}
		runs = append(runs, h.ends(h.begin(inSession(r.SessionID, text)), "completed"))
	}
	var records []*prefix.Record
	for _, r := range runs {
		if b := h.breaks(r); len(b) > 0 {
			t.Errorf("%s: %+v", r.ID, b[0])
		}
		records = append(records, h.engine.records(t.Context(), ref(r.ID))...)
	}
	if len(records) != 6 {
		t.Fatalf("%d records of 6 replies", len(records))
	}
	for i, rec := range records {
		if i > 0 && (rec.Before != records[i-1].Entry || rec.From != records[i-1].N || rec.N <= rec.From) {
			t.Errorf("record %d: %+v after %+v", i, rec, records[i-1])
		}
	}
}

func housePrompt(t *testing.T, texts ...string) *prompt.Set {
	t.Helper()
	var sections []prompt.Section
	for i, text := range texts {
		name := "house"
		if i > 0 {
			name = fmt.Sprint("house_", i)
		}
		sections = append(sections, prompt.Section{Name: name, Tier: prompt.Static, Text: text})
	}
	set, err := prompt.NewSet(sections...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// What breaks the prefix is named: a tool, a section of the system prompt, a setting, a
// message, the model; also if another process made the request before.
func TestBreaksAreNamed(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, tt := range []struct {
			name   string
			change func(*Agent)
			want   event.CacheBreak
		}{
			{"a section", func(a *Agent) { a.Prompt = housePrompt(t, "be long") }, event.CacheBreak{Part: "section", Name: "house", Change: "changed"}},
			{"a new section", func(a *Agent) { a.Prompt = housePrompt(t, "be brief", "more") }, event.CacheBreak{Part: "section", Name: "house_1", Index: 1, Change: "added"}},
			{"a tool", func(a *Agent) {
				a.Tools, _ = tool.NewSet(echoTool(tool.Read), toolFunc{tool.Spec{Name: "zoom", Effect: tool.Read}, nil})
			}, event.CacheBreak{Part: "tool", Name: "zoom", Index: 2, Change: "added"}},
			{"the model", func(a *Agent) { a.Models = slices.Clone(a.Models); a.Models[0].Name = "script/other" }, event.CacheBreak{Part: "model", Name: "script/other", Change: "changed"}},
			{"examples", func(a *Agent) { a.Examples = []message.Message{message.User("like this")} }, event.CacheBreak{Part: "message", Change: "replaced"}},
		} {
			h := newHarness(t, twoSteps, echoTool(tool.Read))
			h.agents["test"].Prompt = housePrompt(t, "be brief")
			r := h.ends(h.run("go"), "completed")
			if restart {
				h.restart()
			}
			tt.change(h.agents["test"])
			next := h.ends(h.begin(inSession(r.SessionID, "on")), "completed")
			got := h.breaks(next)
			if len(got) != 1 {
				t.Errorf("%s (restart %v): %d breaks", tt.name, restart, len(got))
				continue
			}
			b := *got[0]
			if b.Lost != 10 { // what the fake says it has read
				t.Errorf("%s: %d tokens lost", tt.name, b.Lost)
			}
			b.Old, b.New, b.EntryID, b.Lost = "", "", "", 0
			if b != tt.want {
				t.Errorf("%s (restart %v): %+v, want %+v", tt.name, restart, b, tt.want)
			}
			if again := h.ends(h.begin(inSession(r.SessionID, "and on")), "completed"); len(h.breaks(again)) > 0 {
				t.Errorf("%s (restart %v): it is a break once, not %+v", tt.name, restart, h.breaks(again)[0])
			}
		}
	}
}

// An application that changes what was sent before is told which message it was.
func TestAChangedMessageIsNamed(t *testing.T) {
	h := newHarness(t, twoSteps, echoTool(tool.Read))
	calls := 0
	h.engine.cfg.TransformContext = func(_ context.Context, _ Ref, msgs []message.Message) ([]message.Message, error) {
		if calls++; calls > 1 {
			msgs[0] = message.User("something else")
		}
		return msgs, nil
	}
	r := h.ends(h.run("go"), "completed")
	got := h.breaks(r)
	if len(got) != 1 || got[0].Part != "message" || got[0].Index != 0 || got[0].Old == got[0].New || got[0].Change != "changed" {
		raw, _ := json.Marshal(got)
		t.Errorf("%s", raw)
	}
}

// Requests with many messages that were not seen before are looked at beside the call:
// what is found is the same, also where the call is over first.
func TestLongRequestsAreLookedAtBesideTheCall(t *testing.T) {
	h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
		return say(fmt.Sprint("answer ", len(req.Messages)))
	}, echoTool(tool.Read))
	h.agents["test"].Prompt = housePrompt(t, "be brief")
	var history []message.Message
	for i := range 2 * manyMessages {
		reply, _ := say(fmt.Sprint("reply ", i))
		history = append(history, message.User(fmt.Sprint("message ", i)), *reply)
	}
	start := inSession("", "go")
	start.History = history
	runs := []*Run{h.ends(h.begin(start), "completed")}
	runs = append(runs, h.ends(h.begin(inSession(runs[0].SessionID, "on")), "completed"))
	h.restart()
	runs = append(runs, h.ends(h.begin(inSession(runs[0].SessionID, "and on")), "completed"))
	before := ""
	for i, r := range runs {
		records := h.engine.records(t.Context(), ref(r.ID))
		if len(records) != 1 || records[0].N != len(history)+1+2*i || records[0].Before != before {
			t.Fatalf("run %d has records %+v", i, records)
		}
		before = records[0].Entry
		if b := h.breaks(r); len(b) > 0 {
			t.Errorf("run %d: %+v", i, b[0])
		}
	}
	h.restart()
	h.agents["test"].Prompt = housePrompt(t, "be long")
	last := h.ends(h.begin(inSession(runs[0].SessionID, "and on")), "completed")
	if b := h.breaks(last); len(b) != 1 || b[0].Part != "section" || b[0].Name != "house" {
		t.Errorf("a section that changed is told as %+v", b)
	}
}

// heldTraces is a store whose traces do not come before they are let.
type heldTraces struct {
	store.Store
	asked, let chan struct{}
}

func (s *heldTraces) Trace(ctx context.Context, tenant, run string, after, limit int) ([]*store.Trace, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.let
	return s.Store.Trace(ctx, tenant, run, after, limit)
}

// A look beside the call that does not end holds up neither who cancels the run nor other
// runs; but the engine is not closed before it has ended, because it reads the store.
func TestALookThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("yes") })
		start := inSession("", "go")
		for i := range manyMessages {
			reply, _ := say(fmt.Sprint("reply ", i))
			start.History = append(start.History, message.User("and"), *reply)
		}
		r := h.ends(h.begin(start), "completed")
		h.engine.Close()
		held := &heldTraces{Store: h.store, asked: make(chan struct{}, 1), let: make(chan struct{})}
		h.store = held
		h.start()
		r = h.begin(inSession(r.SessionID, "on"))
		<-held.asked
		synctest.Wait()
		h.cancel(r)
		h.ends(r, "cancelled")
		closed := make(chan struct{})
		go func() { h.engine.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("the engine is closed, and a look still reads the store")
		default:
		}
		close(held.let)
		<-closed
	})
}

// What is kept with a session of what was hashed is of what is kept of its conversation,
// however much the runs say: that is read again by the next one, and is not held meanwhile.
func TestHashesHoldNothingElse(t *testing.T) {
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step < 3 {
			return say("", call(fmt.Sprint("c", step), "echo", `{"text":"very much"}`))
		}
		return say("yes")
	}, echoTool(tool.Read))
	h.agents["test"].Examples = []message.Message{message.User("for example")}
	start := inSession("", "go")
	for range warmEntries {
		reply, _ := say("reply")
		start.History = append(start.History, message.User("and"), *reply)
	}
	r := h.ends(h.begin(start), "completed")
	for i := range 3 {
		h.ends(h.begin(inSession(r.SessionID, "on")), "completed")
		w := h.engine.warm.get(Ref{store.DefaultTenant, r.SessionID})
		if w == nil || w.hashed.Len() != 1+len(w.items) {
			t.Fatalf("run %d: of %d messages %d are hashed", i, len(w.items), w.hashed.Len())
		}
		if h.engine.warm.bytes != w.bytes {
			t.Errorf("run %d: %d bytes, and %d of the session", i, h.engine.warm.bytes, w.bytes)
		}
		next := &driver{e: h.engine, ref: ref(r.ID), row: &store.Run{SessionID: r.SessionID}, agent: noAgent()}
		next.state.Leaf, next.state.Status = w.leaf, run.Running
		if err := next.loadConversation(t.Context()); err != nil || next.caching.hashed() != w.hashed.Len() {
			t.Errorf("run %d: the next one goes on with %d hashes, %v", i, next.caching.hashed(), err)
		}
	}
}
