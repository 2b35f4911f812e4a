package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// image is one of some bytes.
func image(bytes int) message.Block {
	return message.Image(base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, bytes)...)), "image/png")
}

// Whatever a conversation is made of (very many results that are small, images, one huge
// message, many blocks): as long as the window has some room beside the system prompt and
// the tools, it fits after a compaction, with and without a model that summarises; and a
// restarted process reads it as it was sent.
func TestWhateverTheConversationItFits(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			w := &windowed{window: 2500 + r.IntN(6000)}
			if seed%3 == 0 {
				w.noSummary = &model.Error{Class: model.ClassAuth, Provider: "fake", Message: "no"}
			}
			kind := seed % 4
			w.answer = func(step int, req *model.Request) (*message.Message, error) {
				if kind == 3 || step >= 2 || strings.Contains(conversationText(req), "again") || len(w.requests) > 3 {
					return say("fine")
				}
				n := 1
				if kind == 0 {
					n = 50 + r.IntN(300)
				}
				var calls []message.Block
				for i := range n {
					calls = append(calls, call(fmt.Sprintf("c%d-%d", len(w.requests), i), "read", fmt.Sprintf(`{"path":"f%d.go"}`, i)))
				}
				return say("I look", calls...)
			}
			h := newHarness(t, w.generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(context.Context, tool.Call) (tool.Result, error) {
				switch kind {
				case 0:
					return tool.TextResult(strings.Repeat("few words ", 1+r.IntN(24))), nil
				case 1:
					res := tool.Result{}
					for range 4 + r.IntN(8) {
						res.Content = append(res.Content, image(60))
					}
					return res, nil
				default:
					return tool.TextResult(strings.Repeat("many words ", 2500)), nil
				}
			}})
			h.windowed(w, true)
			h.agents["test"].Settings.Sequential = true
			h.agents["test"].Prompt = housePrompt(t, strings.Repeat("rule ", r.IntN(w.window*4/5/2)))
			var in []message.Block
			switch kind {
			case 3:
				for range 300 {
					in = append(in, message.Text(strings.Repeat("block ", 1+r.IntN(80))))
				}
			default:
				in = append(in, message.Text("look at all of it"))
				for range r.IntN(6) {
					in = append(in, image(60))
				}
			}
			first := h.wait(h.begin(StartRequest{Input: in}))
			if first.Status != "completed" {
				t.Fatalf("%s %s %+v after %d refusals", first.Status, first.StopReason, first.Error, w.refused)
			}
			made := h.compactions(first.SessionID)
			if len(made) == 0 || w.refused > 4 {
				t.Errorf("%d compactions, %d refused", len(made), w.refused)
			}
			h.says(first.SessionID, "again")
			before, compactions := w.last().Messages, len(h.compactions(first.SessionID))
			h.restart()
			h.says(first.SessionID, "again")
			after := w.last().Messages
			if len(h.compactions(first.SessionID)) > compactions {
				return // it was compacted meanwhile
			}
			for i := range before {
				if a, b := asJSON(before[i]), asJSON(after[i]); a != b {
					t.Fatalf("message %d was\n%.600s\nand is\n%.600s", i, a, b)
				}
			}
		})
	}
}
