package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentd/event"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// A run whose stored state is damaged ends, and its session is free.
func TestADamagedRunDoesNotBrickTheSession(t *testing.T) {
	g := newGate()
	h := newHarness(t, func(ctx context.Context, _ int, req *model.Request) (*message.Message, error) {
		if strings.Contains(conversationOf(req), "wait") {
			if err := g.pass(ctx); err != nil {
				return nil, err
			}
		}
		return say("fine")
	})
	for name, damage := range map[string]func(row *store.Run){
		"state": func(row *store.Run) { row.RunUpdate.State = []byte("\x02\xff\xff") },
		"empty": func(row *store.Run) { row.RunUpdate.State = []byte("{}") },
	} {
		r := h.run("wait")
		for ev, err := range h.engine.Watch(t.Context(), ref(r.ID), 0) {
			if err != nil || ev.Type == event.StepStarted {
				break
			}
		}
		h.engine.Close()
		row, err := h.store.Run(t.Context(), store.DefaultTenant, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		damage(row)
		h.commit(&store.Tx{Runs: []store.RunChange{{ID: r.ID, RunUpdate: row.RunUpdate}}})
		h.start()
		if r = h.wait(r); r.Status != "failed" || r.StopReason != "unreadable" {
			t.Errorf("%s: %s %s %+v", name, r.Status, r.StopReason, r.Error)
		}
		g2 := h.goesOn
		g = newGate()
		close(g.open)
		g2(r.SessionID)
		g = newGate()
	}
}

// Readers of a run with damaged events get the others, and its end.
func TestDamagedEventsDoNotHideTheRun(t *testing.T) {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("fine") })
	r := h.wait(h.run("hi"))
	ses := "ses_x"
	h.commit(&store.Tx{NewSessions: []*store.Session{{ID: ses, Created: 1, Updated: 1, Metadata: json.RawMessage("{broken")}},
		NewRuns: []*store.Run{{ID: "run_x", SessionID: ses, Metadata: json.RawMessage("{broken"), RunUpdate: store.RunUpdate{Status: "completed", Seq: 9, OutputEntry: "gone", Started: 1, Ended: 2, State: []byte("junk")}}},
		Events: []*store.Event{{RunID: "run_x", Seq: 1, Type: "run_started", Data: json.RawMessage("{broken")}, {RunID: "run_x", Seq: 2, Type: "text_delta", Data: json.RawMessage(`{"$":3}`)},
			{RunID: "run_x", Seq: 3, Type: "brand_new", Data: json.RawMessage("\xff")}, {RunID: "run_x", Seq: 4, Type: "run_completed", Data: json.RawMessage("[]")}}})
	events := h.events(&Run{ID: "run_x"})
	if got := kinds(events); got != "run_started text_delta brand_new run_completed" {
		t.Errorf("%s", got)
	}
	for _, ev := range events {
		if b, err := json.Marshal(ev); err != nil {
			t.Errorf("%v in %s", err, b)
		}
	}
	got, err := h.engine.Get(t.Context(), ref("run_x"))
	if err != nil || !strings.Contains(got.Output, "can not be read") {
		t.Errorf("%+v, %v", got, err)
	}
	runs, _, err1 := h.engine.List(t.Context(), store.DefaultTenant, RunFilter{})
	sessions, _, err2 := h.engine.Sessions(t.Context(), store.DefaultTenant, SessionFilter{})
	if _, err := json.Marshal([]any{runs, sessions, got}); errors.Join(err1, err2, err) != nil || len(runs) != 2 {
		t.Errorf("%d runs, %v", len(runs), errors.Join(err1, err2, err))
	}
	h.goesOn(r.SessionID)
}
