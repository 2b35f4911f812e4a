package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Whatever was compacted, shortened and left out, and how often: a driver that reads the
// session sends what one that kept it in memory would have.
func TestAReloadedConversationIsTheSame(t *testing.T) {
	for seed := range uint64(6) {
		for _, hooked := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d hooked %v", seed, hooked), func(t *testing.T) { sameAfterReload(t, seed, hooked) })
		}
	}
}

func sameAfterReload(t *testing.T, seed uint64, hooked bool) {
	r := rand.New(rand.NewPCG(seed, 9))
	w := &windowed{window: 3000}
	calls := 0
	var h *harness
	var d *driver
	w.answer = func(_ int, req *model.Request) (*message.Message, error) {
		all := conversationText(req)
		h.engine.mu.Lock()
		for _, d = range h.engine.drivers {
		}
		h.engine.mu.Unlock()
		switch {
		case strings.Contains(all, "POISON"):
			return nil, &model.Error{Class: model.ClassInvalid, Provider: "fake", Status: 400, Message: "no"}
		case r.IntN(4) > 0:
			m := &message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text(strings.Repeat("wörd ", r.IntN(80)))}}
			for range 1 + r.IntN(3) {
				calls++
				m.Content = append(m.Content, call(fmt.Sprint("c", calls), "read", fmt.Sprintf(`{"path":"dir/%d.go","text":%q}`, calls, strings.Repeat("x", r.IntN(3000)))))
			}
			return m, nil
		}
		return say(strings.Repeat("answer ", r.IntN(300)))
	}
	h = newHarness(t, w.generate, toolFunc{tool.Spec{Name: "read", Effect: tool.Read}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("línea ", len(c.Args)*7%2500)), nil // calls are made at the same time
	}})
	h.windowed(w, r.IntN(2) == 0)
	h.agents["test"].Examples = []message.Message{message.User("example"), {Role: message.RoleAssistant, Content: []message.Block{message.Text("like this")}}}
	if hooked {
		h.engine.cfg.ConvertToLLM = func(msgs []message.Message) []message.Message { return msgs }
	}
	id, same := "", 0
	for turn := range 16 {
		text := fmt.Sprint("turn ", turn, " ", strings.Repeat("word ", r.IntN(400)))
		switch r.IntN(6) {
		case 0:
			text = "POISON " + strings.Repeat("päd ", r.IntN(1500))
		case 1:
			text = strings.Repeat("huge ", 6000)
		}
		d = nil
		last := h.says(id, text)
		id = last.SessionID
		if turn > 1 && r.IntN(3) == 0 {
			run, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
			if err != nil {
				t.Fatal(err)
			}
			h.wait(run)
			continue
		}
		if d == nil {
			continue // it came to no call
		}
		<-d.gone
		read := &driver{e: h.engine, ref: d.ref, row: d.row, state: d.state}
		if err := read.loadConversation(t.Context()); err != nil {
			t.Fatal(err)
		}
		same++
		if len(d.conv.messages) != len(read.conv.messages) {
			t.Fatalf("turn %d: %d messages in memory, %d in the store", turn, len(d.conv.messages), len(read.conv.messages))
		}
		if count := countOf(&d.agent.Models[0]); !hooked {
			was, by := d.correction(count)
			if is, of := read.correction(count); was != is || by != of {
				t.Fatalf("turn %d: estimates are corrected to %d %% by %q in memory, to %d %% by %q out of the store", turn, was, by, is, of)
			}
		}
		for i := range d.conv.messages {
			if was, is := asJSON(d.conv.messages[i]), asJSON(read.conv.messages[i]); was != is {
				t.Fatalf("turn %d: message %d is in memory\n%.900s\nand in the store\n%.900s", turn, i, was, is)
			}
			if was, is := d.conv.origins[i].entry, read.conv.origins[i].entry; was != is {
				t.Fatalf("turn %d: message %d is entry %s in memory, %s in the store", turn, i, was, is)
			}
		}
	}
	if len(h.compactions(id)) < 2 || same == 0 {
		t.Errorf("%d compactions, %d comparisons", len(h.compactions(id)), same)
	}
}
