package engine

import (
	"strings"
	"testing"

	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// A client that repeats what was said is known by that, whatever agentd put beside its
// words; and after a compaction it goes on behind that.
func TestConverseKnowsWhatWasSaid(t *testing.T) {
	w := &windowed{}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	var history []message.Message
	ask := func(text string) (Place, *Run) {
		t.Helper()
		p, err := h.engine.Converse(t.Context(), &Conversation{Tenant: store.DefaultTenant, Name: "n", User: "u", Messages: history, Input: blocks(text),
			Told: func(run Ref) (session.Told, bool) {
				r, err := h.engine.Get(t.Context(), run)
				return session.Told{Text: r.Output}, err == nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Known != len(history) {
			t.Errorf("%d of %d messages are known", p.Known, len(history))
		}
		r := h.ends(h.begin(StartRequest{SessionID: p.SessionID, From: p.From, History: history[p.Known:], Input: blocks(text), ContextBlocks: []ContextBlock{block("tree", text)}}), "completed")
		history = append(history, message.User(text), message.Message{Role: message.RoleAssistant, Content: blocks(r.Output)})
		return p, r
	}
	var ses string
	for range 6 {
		p, _ := ask("DECISION-1 " + strings.Repeat("word ", 300))
		ses = p.SessionID
	}
	r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: ses})
	if err != nil {
		t.Fatal(err)
	}
	h.ends(r, "completed")
	v, err := h.engine.Session(t.Context(), Ref{store.DefaultTenant, ses})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := ask("go on"); p.From != v.Leaf {
		t.Errorf("it goes on from %s, and the compaction is %s: %s", p.From, v.Leaf, h.drawn(ses))
	}
	if tokens := session.MessageTokens(w.last().Messages); tokens > 1500 {
		t.Errorf("%d tokens", tokens)
	}
}
