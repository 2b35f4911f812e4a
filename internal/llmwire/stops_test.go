package llmwire

import (
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
)

// A reply ends at a stop text, however its pieces are cut, and nothing that comes after it
// is in it.
func TestReplyStops(t *testing.T) {
	for _, pieces := range [][]string{{"one END two"}, {"one E", "ND two"}, {"one ", "E", "N", "D"}, {"one END"}} {
		told := ""
		r := NewReply(func(e model.StreamEvent) { told += e.Delta })
		r.StopAt([]string{"STOP", "END"})
		at := r.Open(message.Block{Type: message.BlockText})
		for _, piece := range pieces {
			r.Delta(at, AppendString(nil, piece))
		}
		call := r.Open(message.Block{Type: message.BlockToolCall, Name: "f"})
		r.Rename(call, "call_1", "g")
		r.Delta(call, []byte(`"{}"`))
		r.Sign(call, "s")
		r.Close(call)
		r.CloseAll()
		if len(r.Message.Content) != 1 || r.Message.Text() != "one " || told != "one " || !r.Stopped() || r.Calls() != 0 {
			t.Errorf("%q: %+v, told %q", pieces, r.Message.Content, told)
		}
	}
	// What might have become a stop text and did not is given out ahead of the end.
	r := NewReply(nil)
	r.StopAt([]string{"END"})
	first := r.Open(message.Block{Type: message.BlockText})
	r.Delta(first, []byte(`"one EN"`))
	r.Close(first)
	second := r.Open(message.Block{Type: message.BlockText})
	r.Delta(second, []byte(`"D"`))
	r.CloseAll()
	if r.Message.Content[0].Text != "one EN" || r.Message.Content[1].Text != "D" || r.Stopped() {
		t.Errorf("%+v", r.Message.Content)
	}
}

// What is held back of a text is no other block's: one that ends while the text is open
// leaves it.
func TestHeldTextOutlivesOtherBlocks(t *testing.T) {
	told := ""
	r := NewReply(func(e model.StreamEvent) {
		if e.Type == model.StreamTextDelta {
			told += e.Delta
		}
	})
	r.StopAt([]string{"END"})
	thought := r.Open(message.Block{Type: message.BlockThinking})
	r.Delta(thought, []byte(`"hm"`))
	text := r.Open(message.Block{Type: message.BlockText})
	r.Delta(text, []byte(`"one E"`))
	call := r.Open(message.Block{Type: message.BlockToolCall, ID: "c", Name: "f"})
	r.Delta(call, []byte(`"{}"`))
	r.Close(call)
	r.Close(thought)
	r.Delta(text, []byte(`"N two E"`))
	r.CloseAll()
	if got := r.Message.Content[text].Text; got != "one EN two E" || told != got {
		t.Errorf("%q, told %q", got, told)
	}
	// A stop text whose pieces come around the end of a call is one all the same.
	r = NewReply(nil)
	r.StopAt([]string{"END"})
	text = r.Open(message.Block{Type: message.BlockText})
	r.Delta(text, []byte(`"one E"`))
	r.Close(r.Open(message.Block{Type: message.BlockToolCall, ID: "c", Name: "f"}))
	r.Delta(text, []byte(`"ND two"`))
	r.CloseAll()
	if r.Message.Content[text].Text != "one " || !r.Stopped() {
		t.Errorf("%+v", r.Message.Content)
	}
}

func FuzzStops(f *testing.F) {
	f.Add("abcabd", "abd", "b", 2)
	f.Fuzz(func(t *testing.T, text, one, two string, size int) {
		s := NewStops([]string{one, two})
		got := ""
		for rest := text; rest != ""; {
			n := min(max(size, 1), len(rest))
			got += s.Next(rest[:n])
			rest = rest[n:]
		}
		got += s.Rest()
		want := text
		for _, stop := range s.texts {
			if at := strings.Index(text, stop); at >= 0 && at < len(want) {
				want = text[:at]
			}
		}
		// Of two stop texts of which one has the other in it, either may come first.
		if got != want && !(one != "" && two != "" && strings.HasPrefix(text, got) && s.hit) {
			t.Errorf("%q without %q and %q is %q, want %q", text, one, two, got, want)
		}
	})
}
