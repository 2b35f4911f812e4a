package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// One turn with very many steps is compacted again and again: its summary is one, and
// does not grow with the number of compactions.
func TestTheSummaryOfALongTurnDoesNotGrow(t *testing.T) {
	w := &windowed{window: 6000}
	steps := 0
	w.answer = func(_ int, req *model.Request) (*message.Message, error) {
		if !strings.Contains(conversationText(req), "DECISION-7") {
			return nil, &model.Error{Class: model.ClassInvalid, Message: "it forgot what it does"}
		}
		if steps++; steps > 120 {
			return say("done")
		}
		return say("", call(fmt.Sprint("c", steps), "read", fmt.Sprintf(`{"path":"f%d.go"}`, steps)))
	}
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		m, err := w.generate(ctx, step, req)
		if err == nil && summarises(req) {
			m.Content[0].Text = strings.Replace(m.Content[0].Text, "</summary>", strings.Repeat("and so on ", 100)+"</summary>", 1)
		}
		return m, err
	}, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("line ", 300)), nil
	}})
	h.windowed(w, true)
	h.agents["test"].Settings.MaxSteps = 200
	r := h.wait(h.run("do DECISION-7"))
	if r.Status != "completed" || r.Output != "done" || w.refused > 0 {
		t.Fatalf("%s %+v, %d refused", r.Status, r.Error, w.refused)
	}
	made := h.compactions(r.SessionID)
	if len(made) < 10 {
		t.Fatalf("%d compactions", len(made))
	}
	for i, c := range made {
		if len(c.Summary) > 2500 || i > 0 && !strings.Contains(c.Summary, "DECISION-7") {
			t.Fatalf("compaction %d has a summary of %d bytes: %.200s", i, len(c.Summary), c.Summary)
		}
	}
}

// Where the system prompt has most of the window, less of the conversation stays: a
// compaction must make room for more than the next message.
func TestACompactionMakesRoom(t *testing.T) {
	w := &windowed{window: 8000}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	a := h.agents["test"]
	a.Compaction = Compaction{}
	a.Prompt = housePrompt(t, strings.Repeat("rule ", 3000))
	id, want := h.talk(40)
	seen := conversationText(w.last())
	for _, d := range want {
		if !strings.Contains(seen, d) {
			t.Errorf("%s is lost", d)
		}
	}
	if made := h.compactions(id); len(made) < 3 || len(made) > 20 || w.refused > 0 {
		t.Errorf("%d compactions in 40 turns, %d refused", len(made), w.refused)
	}
}

// Where the application makes the requests, and no reply told how large one was, what is
// stored is an estimate: a refusal must not cut everything to nothing.
func TestAnOverflowOfWhatTheApplicationMakes(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := &windowed{window: 6000}
		h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			m, err := w.generate(ctx, step, req)
			if m != nil && !summarises(req) {
				m.Usage = nil
			}
			return m, err
		})
		h.windowed(w, known)
		h.agents["test"].Prompt = housePrompt(t, strings.Repeat("rule ", 800))
		h.engine.cfg.ConvertToLLM = func(msgs []message.Message) []message.Message { return msgs }
		id, want := h.talk(40)
		seen := conversationText(w.last())
		for _, d := range want {
			if !strings.Contains(seen, d) {
				t.Errorf("known %v: %s is lost", known, d)
			}
		}
		for _, c := range h.compactions(id) {
			if len(c.Shortened) > 0 || c.TokensAfter < 500 {
				t.Errorf("known %v: %+v", known, c)
			}
		}
	}
}
