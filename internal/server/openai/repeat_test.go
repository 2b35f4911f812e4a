package openai

import (
	"strings"
	"testing"

	"agentd/event"
)

func TestRestated(t *testing.T) {
	const said = "I will look at the two files now."
	for _, tt := range []struct {
		name, last, text string
		skip             int
	}{
		{"nothing before", "", "Yes.", 0},
		{"space before", " \n", "Yes.", 0},
		{"the same", said, said, len(said)},
		{"the same, short", "Yes.", "Yes.", 4},
		{"other space", said, "\n" + strings.ReplaceAll(said, " ", "  ") + " ", len(said) + 7 + 2},
		{"another", said, "They are equal.", 0},
		{"its beginning", said, "I will look", 0},
		{"and more", said, said + " They are equal.", len(said) + 1},
		{"and more on another line", "The result of the search", "The result of the search\nis empty.", len("The result of the search") + 1},
		{"a longer sentence", "The two files are equal", "The two files are equal in size.", 0},
		{"a longer number", "The answer to the question is 4", "The answer to the question is 42.", 0},
		{"short and more", "Yes.", "Yes. It is.", 0},
		{"other letters", said, strings.ToUpper(said), 0},
	} {
		if skip, decided := restated(tt.last, tt.text, true); skip != tt.skip || !decided {
			t.Errorf("%s: %d, %t", tt.name, skip, decided)
		}
	}
}

// TestTheAnswerDoesNotSayTheSameTwice tells runs of several steps, in pieces of every
// length: what a chat reads is the same, and has no text twice.
func TestTheAnswerDoesNotSayTheSameTwice(t *testing.T) {
	const look, found = "I look at the prices of both shops.", "Both shops ask for 4 euros."
	type turn []string
	for _, tt := range []struct {
		name  string
		turns []turn
		want  string
	}{
		{"ahead of tools and in the answer", []turn{{look, look}}, look},
		{"ahead of every tool", []turn{{look, look, "", look, found}}, look + "\n\n" + found},
		{"with more", []turn{{look, look + " " + found}}, look + "\n\n" + found},
		{"with more, and again", []turn{{look, look + " " + found, look + " " + found}}, look + "\n\n" + found},
		{"not in a row", []turn{{look, found, look}}, look + "\n\n" + found + "\n\n" + look},
		{"its beginning only", []turn{{look, "I look at"}}, look + "\n\nI look at"},
		{"in another turn", []turn{{found}, {found}}, found + "\n\n" + found},
		{"short", []turn{{"Done.", "Done."}}, "Done."},
		{"not ASCII", []turn{{"Schöne Grüße, größer.", "Schöne Grüße, größer."}}, "Schöne Grüße, größer."},
	} {
		for size := 1; size < 80; size++ {
			c := &collector{}
			n := &narrator{to: c}
			tell := func(typ event.Type, data any) {
				if !n.tell(&event.Event{Type: typ, Data: data}) {
					t.Fatal("nobody listens")
				}
			}
			for _, texts := range tt.turns {
				for i, text := range texts {
					tell(event.StepStarted, &event.Step{})
					for runes := []rune(text); len(runes) > 0; runes = runes[min(size, len(runes)):] {
						tell(event.TextDelta, &event.Delta{Text: string(runes[:min(size, len(runes))])})
					}
					tell(event.StepCompleted, &event.Step{ToolCalls: len(texts) - 1 - i})
					if i == len(texts)-1 {
						tell(event.FinalText, &event.Text{Text: text})
					}
				}
			}
			if got := string(c.text); got != tt.want {
				t.Fatalf("%s, in pieces of %d: %q, not %q", tt.name, size, got, tt.want)
			}
		}
	}
}

// An answer that was asked for once more and stays as it was is told once, also where
// the second try comes to nothing.
func TestANudgedAnswerIsToldOnce(t *testing.T) {
	const answer = "The capital of Norway is Oslo."
	for name, again := range map[string]string{"the same": answer, "nothing": ""} {
		for _, hold := range []bool{false, true} {
			c := &collector{}
			n := &narrator{to: c, hold: hold}
			for _, text := range []string{answer, again} {
				n.tell(&event.Event{Type: event.StepStarted, Data: &event.Step{}})
				if text != "" {
					n.tell(&event.Event{Type: event.TextDelta, Data: &event.Delta{Text: text}})
				}
				n.tell(&event.Event{Type: event.StepCompleted, Data: &event.Step{}})
			}
			n.tell(&event.Event{Type: event.FinalText, Data: &event.Text{Text: answer}})
			if got := string(c.text); got != answer {
				t.Errorf("%s, held %t: %q", name, hold, got)
			}
		}
	}
}

// Where the second try breaks off, what came of it is no part of the answer: an answer
// that nobody has read yet is without it, and one that was streamed says so and has the
// answer that stands at its end.
func TestANudgeThatBreaksOffLeavesNothing(t *testing.T) {
	const answer, half = "The capital of Norway is Oslo.", "Let me look at the m"
	for name, tt := range map[string]struct {
		heard, hold bool
		want        string
	}{
		"whole":            {want: answer},
		"in JSON":          {hold: true, want: answer},
		"streamed":         {heard: true, want: answer + "\n\n" + half + "\n\n[The reply was interrupted; the answer before it stands.]\n\n" + answer},
		"streamed in JSON": {heard: true, hold: true, want: answer},
	} {
		c := &collector{}
		n := &narrator{to: c, hold: tt.hold}
		if tt.heard {
			n.to = heard{c}
		}
		for _, ev := range []event.Event{
			{Type: event.StepStarted, Data: &event.Step{}}, {Type: event.TextDelta, Data: &event.Delta{Text: answer}}, {Type: event.StepCompleted, Data: &event.Step{}},
			{Type: event.StepStarted, Data: &event.Step{}}, {Type: event.TextDelta, Data: &event.Delta{Text: half}},
			{Type: event.FinalText, Data: &event.Text{Text: answer}},
		} {
			n.tell(&ev)
		}
		if got := string(c.text); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

// heard is a speaker whose words were heard.
type heard struct{ *collector }

func (heard) rollback() bool { return false }
