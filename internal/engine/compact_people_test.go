package engine

import (
	"context"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// A message that comes while a session is compacted by hand is answered after it, and
// who cancels a compaction has the session as it was.
func TestMessagesAndCancelsWhileItIsCompacted(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		w := &windowed{}
		asked, goOn := make(chan struct{}), make(chan struct{})
		h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			if summarises(req) {
				close(asked)
				select {
				case <-goOn:
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return w.generate(ctx, step, req)
		})
		h.windowed(w, true)
		id, want := h.talk(6)
		r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		if cancel {
			if _, err := h.engine.Cancel(t.Context(), ref(r.ID), "enough"); err != nil {
				t.Fatal(err)
			}
			if r = h.wait(r); r.Status != "cancelled" || len(h.compactions(id)) != 0 {
				t.Errorf("%+v", r)
			}
			continue
		}
		if err := h.engine.Steer(t.Context(), ref(r.ID), blocks("what now?")); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		if r = h.wait(r); r.Status != "completed" || r.Output != "fine" {
			t.Errorf("%+v", r)
		}
		seen := conversationText(w.last())
		for _, d := range append(want, "what now?") {
			if !strings.Contains(seen, d) {
				t.Errorf("%s is lost", d)
			}
		}
	}
}
