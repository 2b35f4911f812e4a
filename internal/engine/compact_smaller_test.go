package engine

import (
	"context"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// A conversation whose summary was written for a large window goes on with a model whose
// window is smaller than that summary, whatever little was said since.
func TestASummaryThatIsTooLargeForTheNextModel(t *testing.T) {
	for _, since := range []int{0, 1, 3, 8} {
		text := "ok"
		if since > 3 {
			text += strings.Repeat(" word", 200) // more than stays
		}
		w := &windowed{window: 60_000}
		h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			m, err := w.generate(ctx, step, req)
			if err == nil && summarises(req) && w.window > 10_000 {
				m.Content[0].Text = strings.Replace(m.Content[0].Text, "</summary>", strings.Repeat("and so on it goes ", 1200)+"</summary>", 1)
			}
			return m, err
		})
		a := h.agents["test"]
		a.Models[0].Window = w.window
		id, decisions := h.talk(6)
		r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		h.wait(r)
		if made := h.compactions(id); len(made) != 1 || len(made[0].Summary) < 20_000 {
			t.Fatalf("%d compactions", len(made))
		}
		for range since {
			h.says(id, text)
		}
		w.mu.Lock()
		w.window = 4000
		w.mu.Unlock()
		a.Models[0].Window = w.window
		if r := h.says(id, "and now?"); r.Status != "completed" {
			t.Errorf("%d since: %s %+v", since, r.Status, r.Error)
			continue
		}
		// What was decided is not cut out of it, and little that was said since is not either.
		seen := conversationText(w.last())
		for _, d := range append(decisions, "and now?") {
			if !strings.Contains(seen, d) {
				t.Errorf("%d since: %s is lost", since, d)
			}
		}
		if n := strings.Count(seen, "ok"); n < min(since, 3) || w.refused > 0 || len(h.compactions(id)) != 2 {
			t.Errorf("%d since: %d kept, %d refused, %d compactions", since, n, w.refused, len(h.compactions(id)))
		}
	}
}
