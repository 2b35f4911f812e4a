package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// A reply to a request without the reasoning of old turns says nothing of one that has it
// again, because drop_reasoning_after was changed meanwhile: a cap could be passed.
func TestReasoningThatComesBackIsCounted(t *testing.T) {
	thoughts := strings.Repeat("I think. ", 2000)
	for _, tt := range []struct {
		name  string
		after time.Duration // of the last message
		known bool
	}{{"as before", 5 * time.Minute, true}, {"sooner", time.Minute, true}, {"never", 0, false}, {"later", time.Hour, false}} {
		t.Run(tt.name, func(t *testing.T) {
			var last *model.Request
			h := newHarness(t, func(_ context.Context, _ int, req *model.Request) (*message.Message, error) {
				last = req
				m, err := say("Done.")
				m.Content = append([]message.Block{{Type: message.BlockThinking, Text: thoughts, Signature: "sig"}}, m.Content...)
				m.Usage = &message.Usage{Input: 100, Output: 50, TotalTokens: 150}
				return m, err
			})
			now := h.engine.cfg.Now
			at := func(later, after time.Duration) {
				h.engine.Close()
				h.agents["test"].DropReasoning = after
				e, err := New(Config{Store: h.store, Agents: h.agents, Log: h.log, Now: func() time.Time { return now().Add(later) }})
				if err != nil {
					t.Fatal(err)
				}
				h.engine = e
				t.Cleanup(func() { e.Close() })
			}
			next := func(session string) *Run {
				r, err := h.engine.Start(t.Context(), StartRequest{SessionID: session, Input: blocks("go on")})
				if err != nil {
					t.Fatal(err)
				}
				if r, err = h.engine.Wait(t.Context(), Ref{store.DefaultTenant, r.ID}); err != nil || r.Status != "completed" {
					t.Fatal(r, err)
				}
				return r
			}
			at(0, 5*time.Minute)
			r := next("")
			at(10*time.Minute, 5*time.Minute)
			next(r.SessionID)
			at(12*time.Minute, tt.after)
			next(r.SessionID)
			origins := make([]origin, len(last.Messages))
			for i := range origins {
				origins[i].own = true
			}
			name := last.Messages[3].Provider + "/" + last.Messages[3].Model
			got := remembered(last, name, 0, origins, tt.after.Milliseconds())
			if small := got > 0 && got < int64(len(thoughts)); small != tt.known {
				t.Errorf("%d are remembered; the request has up to %d", got, inputBound(last))
			}
		})
	}
}
