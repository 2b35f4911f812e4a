package engine

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A provider that counts otherwise than it is taken to: how large the conversation is
// ahead of a call is still within a tenth of what the provider then says, as soon as it
// has told how it counts in four calls. Much of what a call reads came since the one before.
func TestSizesFollowTheProvidersCount(t *testing.T) {
	for _, bytesPerToken := range []float64{2.5, 4, 6} {
		count := func(req *model.Request) int64 {
			n := 2000 // what it says of its own, and the system prompt
			for i := range req.Messages {
				for _, b := range req.Messages[i].Content {
					n += len(b.Text) + len(b.Arguments)
				}
			}
			return int64(float64(n) / bytesPerToken)
		}
		const steps = 12
		var h *harness
		var d *driver
		generate := func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			h.engine.mu.Lock()
			for _, d = range h.engine.drivers {
			}
			h.engine.mu.Unlock()
			m := &message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text("I look further.")}}
			if step < steps {
				m.Content = append(m.Content, call(fmt.Sprint("c", step), "read", fmt.Sprintf(`{"part":%d}`, step)))
			}
			n := count(req)
			m.Usage = &message.Usage{Input: n, Output: 20, TotalTokens: n + 20}
			return m, nil
		}
		part := 0
		h = newHarness(t, generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
			part++
			return tool.TextResult(strings.Repeat([]string{"The door is green, and nobody was there.\n", `{"id":10482,"name":"Graz","open":true}` + "\n", "if err != nil {\n\treturn err\n}\n"}[part%3], 40*part)), nil
		}})
		h.ends(h.run("read all of it"), "completed")
		<-d.gone
		all, checked := d.conv, 0
		var worst float64
		for i := range all.messages {
			if m := &all.messages[i]; m.Role == message.RoleAssistant {
				d.conv.messages, d.conv.origins = all.messages[:i:i], all.origins[:i:i]
				s := d.sizes()
				d.size(&s)
				if checked++; checked > 4 {
					off := math.Abs(float64(s.now)/float64(m.Usage.Prompt()) - 1)
					worst = max(worst, off)
					if off > 0.1 {
						t.Errorf("%v bytes a token, call %d: %d tokens expected, %d counted", bytesPerToken, checked, s.now, m.Usage.Prompt())
					}
				}
			}
		}
		if checked < steps {
			t.Errorf("%d calls", checked)
		}
		t.Logf("%v bytes a token: worst %.1f %%", bytesPerToken, worst*100)
	}
}

// What replies told of how their provider counts holds for the request for a summary, too.
func TestSummariesFollowTheProvidersCount(t *testing.T) {
	w := &windowed{window: 12_000, times: 2}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	h.agents["test"].Compaction.Keep = 100
	id, _ := h.talk(23)
	if len(h.compactions(id)) > 0 {
		t.Fatal("it was compacted already")
	}
	r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id, Compact: &CompactRequest{Instructions: strings.Repeat("dwell on the words ", 200)}})
	if err != nil {
		t.Fatal(err)
	}
	if r = h.wait(r); r.Status != "completed" || len(h.compactions(id)) != 1 {
		t.Fatalf("%s %s %+v", r.Status, r.StopReason, r.Error)
	}
	if w.refused > 0 {
		t.Errorf("%d requests for a summary were too large", w.refused)
	}
}
