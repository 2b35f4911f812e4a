package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A run that was compacted fails for what it said last: that is left out of later
// requests, and not the summary of everything before.
func TestWhatIsRefusedDoesNotCostTheSummary(t *testing.T) {
	w := &windowed{window: 6000}
	steps := 0
	w.answer = func(_ int, req *model.Request) (*message.Message, error) {
		all := conversationText(req)
		switch {
		case strings.Contains(all, "POISON"):
			return nil, &model.Error{Class: model.ClassInvalid, Provider: "fake", Status: 400, Message: "no"}
		case strings.Contains(all, "DECISION-99"):
			if steps++; steps <= 12 {
				return say("", call(fmt.Sprint("c", steps), "read", `{}`))
			}
		}
		return say("fine")
	}
	h := newHarness(t, w.generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
		if steps == 12 {
			return tool.TextResult("POISON"), nil
		}
		return tool.TextResult(strings.Repeat("line ", 500)), nil
	}})
	h.windowed(w, true)
	id, want := h.talk(4)
	if r := h.says(id, "do DECISION-99"); r.Status != "failed" || len(h.compactions(id)) == 0 {
		t.Fatalf("%+v, %d compactions", r, len(h.compactions(id)))
	}
	r := h.says(id, "go on")
	if r.Status != "completed" {
		t.Fatalf("%+v", r.Error)
	}
	seen := conversationText(w.last())
	for _, d := range want {
		if !strings.Contains(seen, d) {
			t.Errorf("%s is lost", d)
		}
	}
}

// A compaction that can not be read is told as other entries are.
func TestADamagedCompactionIsTold(t *testing.T) {
	w := &windowed{}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	id, want := h.talk(6)
	tx := &store.Tx{Tenant: store.DefaultTenant}
	ses, err := h.store.Session(t.Context(), store.DefaultTenant, id)
	if err != nil {
		t.Fatal(err)
	}
	tx.Entries = []*store.Entry{{SessionID: id, ID: ses.Leaf + "x", Parent: ses.Leaf, Kind: "compaction", Created: 1, Body: []byte(`{"first_kept":"gone"}`)}}
	tx.Leaves = []store.Leaf{{SessionID: id, EntryID: ses.Leaf + "x", Updated: 1}}
	if err := h.store.Commit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	views, err := h.engine.Entries(t.Context(), ref(id), "", 0)
	if err != nil || !strings.Contains(views[len(views)-1].LeftOut, "gone") {
		t.Errorf("%v: %+v", err, views[len(views)-1])
	}
	h.says(id, "go on")
	if seen := conversationText(w.last()); !strings.Contains(seen, want[0]) {
		t.Error("what was said before is lost")
	}
}
