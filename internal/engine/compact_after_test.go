package engine

import (
	"context"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// How large a conversation is after a compaction is told in the same tokens as how large it
// was: where the provider counts the system prompt and the tools as less, or more, than they
// were taken for, a compaction that took messages away does not seem to have added some.
func TestACompactionIsMeasuredAsItsProviderCounts(t *testing.T) {
	for _, factor := range []int64{2, 6} { // a quarter of 2: half; of 6: one and a half
		w := &windowed{window: 60_000}
		var last int64
		h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
			m, err := w.generate(ctx, step, req)
			if err == nil {
				m.Usage.Input += model.PromptTokens(&model.Request{System: req.System}) * (factor - 4) / 4
				last = m.Usage.Input
			}
			return m, err
		})
		h.windowed(w, true)
		h.agents["test"].Prompt = housePrompt(t, strings.Repeat("rule ", 4000))
		id, _ := h.talk(4)
		r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		if r = h.wait(r); r.StopReason != "compacted" {
			t.Fatalf("%+v", r)
		}
		made := h.compactions(id)[0]
		h.says(id, "go on")
		if after := int64(made.TokensAfter); made.TokensAfter >= made.TokensBefore || after < last*9/10 || after > last*11/10 {
			t.Errorf("%d before, %d after; the next request had %d", made.TokensBefore, made.TokensAfter, last)
		}
	}
}
