package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"agentd/message"
)

// Of a middle that is left out, what was decided stays ahead of what went wrong, and that
// ahead of where something is.
func TestWhatMattersOfAMiddleStays(t *testing.T) {
	fill := strings.Repeat("one word and another\n", 200)
	for _, c := range []struct{ line, lost string }{
		{"Decision: rows keep their order", ""},
		{"DECISION-7: rows keep their order", ""},
		{"we must never write twice", ""},
		{"panic: index out of range", ""},
		{"internal/session/cut.go:31", ""},
		{"open C:\\work\\notes.txt first", ""},
		{"main.go", ""},
		{"", "nothing here matters at all"},
		{"", "e.g. one and two"},
		{"", "it costs 3.50 and 1/2"},
	} {
		got := condense(fill+c.line+c.lost+"\n"+fill, 600)
		if !strings.Contains(got, c.line) || c.lost != "" && strings.Contains(got, c.lost) {
			t.Errorf("%q%q: %s", c.line, c.lost, got)
		}
		if len(got) > 600+linesNote || !IsCut(got) || !strings.HasPrefix(got, "one word") || !strings.HasSuffix(got, "another\n") {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
	// A decision inside one very long line, and JSON.
	long := strings.Repeat("one word and another ", 300) + ". DECISION-8: keep it. " + strings.Repeat("one word and another ", 300)
	if got := condense(long, 600); !strings.Contains(got, "DECISION-8: keep it.") {
		t.Errorf("%s", got)
	}
	if got := condense(`{"new":"`+strings.ReplaceAll(fill, "\n", `\n`)+`// Decision: no locks\n`+strings.ReplaceAll(fill, "\n", `\n`)+`"}`, 600); !strings.Contains(got, "// Decision: no locks") {
		t.Errorf("%s", got)
	}
	// Paths do not push a decision out, and what is said twice stays once.
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "src/file%d.go\n", i)
	}
	got := condense(b.String()+"Decision: one\nDecision: one\n"+b.String(), 900)
	if strings.Count(got, "Decision: one") != 1 || strings.Count(got, "src/file") < 20 {
		t.Errorf("%s", got)
	}
}

func FuzzCondense(f *testing.F) {
	f.Add("a\nDecision: b\n"+strings.Repeat("src/x.go ", 100), 300)
	f.Add(strings.Repeat("é", 900), 257)
	f.Fuzz(func(t *testing.T, s string, bytes int) {
		bytes = leastShort + max(bytes, -bytes, 0)%5000
		got := condense(s, bytes)
		if len(got) > max(len(s), 0) && len(got) > bytes+linesNote || utf8.ValidString(s) && !utf8.ValidString(got) || got != condense(s, bytes) {
			t.Errorf("%d bytes of %d: %q", len(got), bytes, got)
		}
	})
}

// What does not fit one request is told in several, all of it, in order; and people's own
// words are cut last.
func TestADigestInParts(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 3))
		msgs := conversationOf(r, 2+r.IntN(6))
		whole := Digest(msgs, 0, 1, Count{})[0]
		for _, room := range []int{300, 1000, 5000} {
			parts := Digest(msgs, room, 1000, Count{})
			var all strings.Builder
			for i, part := range parts {
				if n := MessageTokens(part); n > room {
					t.Fatalf("seed %d: part %d has %d tokens, not %d", seed, i, n, room)
				}
				if len(part) == 0 || part[0].Role != message.RoleUser {
					t.Fatalf("seed %d: part %d begins with %+v", seed, i, part)
				}
				for j := range part {
					if j > 0 && part[j].Role == part[j-1].Role {
						t.Fatalf("seed %d: two messages of the same side", seed)
					}
					if text := part[j].Text(); text != goesOn {
						all.WriteString(text)
					}
				}
			}
			var want strings.Builder
			for i := range whole {
				want.WriteString(whole[i].Text())
			}
			if all.String() != want.String() {
				t.Fatalf("seed %d, room %d: %d parts have %d bytes of %d", seed, room, len(parts), all.Len(), want.Len())
			}
			if n := len(Digest(msgs, room, 3, Count{})); n > 3 {
				t.Fatalf("seed %d: %d parts", seed, n)
			}
		}
	}
	said := strings.Repeat("my words ", 600)
	msgs := []message.Message{message.User(said), {Role: message.RoleAssistant, Content: []message.Block{message.Text(strings.Repeat("its words ", 9000))}}}
	if parts := Digest(msgs, 4000, 1, Count{}); len(parts) != 1 || !strings.Contains(parts[0][0].Text(), strings.TrimSpace(said)) {
		t.Errorf("a person's words are cut where the model's could be")
	}
}

// What was stored by an earlier rule is read by it.
func TestShortenedByAnEarlierRule(t *testing.T) {
	m := message.User(strings.Repeat("one word\n", 300) + "Decision: one\n" + strings.Repeat("one word\n", 300))
	m.Content = append(m.Content, message.Image("AAAA", "image/png"), message.Image("BBBB", "image/png"))
	for _, c := range []struct {
		s        Shortened
		decision bool
		images   int
	}{
		{Shortened{Bytes: 300}, false, 2}, {Shortened{Bytes: 300, Form: 1}, true, 2}, {Shortened{Images: 1}, true, 1}, {Shortened{Images: 5, Bytes: 300, Form: 1}, true, 0},
	} {
		got := c.s.Apply(m)
		if strings.Contains(got.Text(), "Decision") != c.decision || images(&got) != c.images || images(&m) != 2 {
			t.Errorf("%+v gives %s", c.s, got.Text())
		}
		if c.images == 1 && !strings.Contains(got.Text(), "(image/png, 1 KB)") {
			t.Errorf("%s", got.Text())
		}
	}
}

// Whatever a compaction has to say, it fits, as long as there is some room.
func TestACompactionIsMadeToFit(t *testing.T) {
	for _, tokens := range []int{200, 500, 2000, 50_000} {
		c := Compaction{Summary: strings.Repeat("word ", 20_000), Context: message.User(strings.Repeat("page ", 400)).Content}
		for i := range 900 {
			c.ReadFiles, c.ModifiedFiles = append(c.ReadFiles, fmt.Sprintf("read%d.go", i)), append(c.ModifiedFiles, fmt.Sprintf("dir/changed%d.go", i))
		}
		c.Fit(tokens, Count{})
		m, _ := c.Message(1)
		if n := MessageTokens([]message.Message{m}); n > tokens || tokens > 1000 && n < tokens/4 {
			t.Errorf("%d tokens, not %d", n, tokens)
		}
		if len(c.Summary) < leastShort {
			t.Errorf("the summary has %d bytes", len(c.Summary))
		}
	}
}

// Images that alone fill the room leave, the oldest first and no more than must, and the
// words beside them stay whole.
func TestImagesLeaveBeforeWords(t *testing.T) {
	msgs := []message.Message{message.User("look"), {Role: message.RoleAssistant, Content: []message.Block{message.Call("c", "see", nil)}}, message.ToolResult("c", "see", false)}
	msgs[2].Content = append(msgs[2].Content, message.Text(strings.Repeat("words ", 100)))
	for range 6 {
		msgs[2].Content = append(msgs[2].Content, message.Image("AAAA", "image/png"))
	}
	c := FindCut(msgs, 0, 100, 3500, Count{}, func(int) bool { return true })
	stays := c.Stays(msgs[c.To:])
	last := stays[len(stays)-1]
	if c.All || c.Images != 3 || c.Short != 0 || images(&last) != 3 || last.Content[1].Type != message.BlockText || last.Content[6].Type != message.BlockImage {
		t.Errorf("%+v: %+v", c, last)
	}
}
