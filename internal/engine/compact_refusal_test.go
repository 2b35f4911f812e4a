package engine

import (
	"context"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// What a model writes in place of a summary is not taken for one: it is asked once more,
// then the next model is, and where none writes one there is no summary.
func TestWhatIsNoSummaryIsNotTakenForOne(t *testing.T) {
	const refusal = "I'm sorry, but I can't help with that. Is there anything else that I can do for you?"
	var replies []*message.Message
	var asked []*model.Request
	w := &windowed{}
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if !summarises(req) {
			return w.generate(ctx, step, req)
		}
		m := replies[0]
		asked, replies = append(asked, req), replies[1:]
		return m, nil
	})
	h.windowed(w, true)
	reply := func(text string, stop message.StopReason) *message.Message {
		m, _ := say(text)
		m.StopReason = stop
		return m
	}
	spare := *h.agents["test"]
	for _, c := range []struct {
		name    string
		replies []*message.Message
		models  int
		want    string // in the summary; "" for none
		word    string // in the second request
	}{
		{"once more", []*message.Message{reply(refusal, "stop"), reply("<summary>\nDECISION-1\n</summary>", "stop")}, 1, "DECISION-1", "was no summary"},
		{"with headings alone", []*message.Message{reply("## Goal\nDECISION-1", "stop")}, 1, "DECISION-1", ""},
		{"nothing", []*message.Message{reply("", "stop"), reply("## Goal\nDECISION-1", "stop")}, 1, "DECISION-1", "was no summary"},
		{"the next model", []*message.Message{reply(refusal, "stop"), reply(refusal, "stop"), reply("## Goal\nDECISION-1", "stop")}, 2, "DECISION-1", "was no summary"},
		{"never", []*message.Message{reply(refusal, "stop"), reply(refusal, "stop")}, 1, "", "was no summary"},
		{"cut", []*message.Message{reply("<summary>\nDECIS", "length"), reply("<summary>\nDECISION-1\n</summary>", "stop")}, 1, "DECISION-1", "too long"},
		{"cut in the analysis", []*message.Message{reply("<analysis>\nIt is long", "length"), reply("<summary>\nDECISION-1\n</summary>", "stop")}, 1, "DECISION-1", "too long"},
		{"cut twice", []*message.Message{reply("<summary>\nDECISION-2", "length"), reply("<summary>\nDECISION-1", "length")}, 1, "DECISION-1", "too long"},
		{"cut, then refused", []*message.Message{reply("<summary>\nDECISION-1", "length"), reply(refusal, "stop")}, 1, "DECISION-1", "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := spare
			h.agents["test"] = &a
			for len(a.Models) < c.models {
				a.Models = append(a.Models[:len(a.Models):len(a.Models)], a.Models[0])
			}
			id, _ := h.talk(6)
			replies, asked = c.replies, nil
			r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
			if err != nil {
				t.Fatal(err)
			}
			r = h.wait(r)
			made := h.compactions(id)
			if len(replies) > 0 {
				t.Errorf("%d replies were not asked for", len(replies))
			}
			if len(asked) > 1 && (c.word == "" || !strings.Contains(conversationText(asked[1]), c.word) || strings.Contains(conversationText(asked[0]), "last reply to this")) {
				t.Errorf("the second request says %s", asked[1].Messages[len(asked[1].Messages)-1].Text())
			}
			switch {
			case c.want == "":
				if r.Status != "failed" || r.StopReason != "compaction_failed" || len(made) > 0 {
					t.Errorf("%s %s, %+v", r.Status, r.StopReason, made)
				}
			case r.Status != "completed" || len(made) != 1 || made[0].Summary != c.want && made[0].Summary != "## Goal\n"+c.want:
				t.Errorf("%s %+v, %+v", r.Status, r.Error, made)
			}
		})
	}
}
