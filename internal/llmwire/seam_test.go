package llmwire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentd/message"
)

func TestUnfinished(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "a": 0, "é": 0, "😀": 0, "a\xc3": 1, "\xf0": 1, "\xf0\x9f": 2, "a\xf0\x9f\x98": 3,
		"\x9f": 0, "\x80\x80\x80\x80": 0, "\xff": 0,
		`\ud83d`: 6, `a\uD83D`: 6, `\ude00`: 0, `\u00e9`: 0, `\\ud83d`: 0, `\\\ud83d`: 6, `\ud83d\ude00`: 0, `ud83d`: 0,
	} {
		if got := unfinished([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// However a text is cut into deltas, it is the same text.
func FuzzSeam(f *testing.F) {
	f.Add("a😀é", 1, 2)
	f.Add(`x\ud83d\ude00\n`, 3, 7)
	f.Add(`\\ud83d`, 2, 6)
	f.Add("\xf0\x9f\x98", 1, 1)
	f.Fuzz(func(t *testing.T, in string, a, b int) {
		cut := func(n int) int { // anywhere but in an escape, as JSON has it
			n = min(max(n, 0), len(in))
			for n < len(in) && !(Valid([]byte(`"`+in[:n]+`"`)) && Valid([]byte(`"`+in[n:]+`"`))) {
				n++
			}
			return n
		}
		if !Valid([]byte(`"` + in + `"`)) {
			return
		}
		a, b = cut(a), cut(b)
		a, b = min(a, b), max(a, b)
		if !Valid([]byte(`"` + in[a:b] + `"`)) {
			return
		}
		whole := String([]byte(`"` + in + `"`))
		r := NewReply(nil)
		i := r.Open(message.Block{Type: message.BlockText})
		for _, piece := range []string{in[:a], in[a:b], in[b:]} {
			r.Delta(i, []byte(`"`+piece+`"`))
		}
		r.CloseAll()
		if got := r.Message.Content[i].Text; got != whole || !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) && !strings.ContainsRune(whole, utf8.RuneError) {
			t.Errorf("%q cut at %d and %d is %q, want %q", in, a, b, got, whole)
		}
	})
}
