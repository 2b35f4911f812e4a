package memory

import (
	"strings"
	"testing"
)

const seed = `# Memory

## Preferences
- User prefers concise responses
- Always confirm before destructive operations

## Context
- Primary language: TypeScript
- Framework: Azure Functions

Some words of a person.

## Learned Patterns
- When user says "deploy", they mean Azure deployment
  and nothing else
- "Quick check" means skip detailed explanations <!-- agentd: 2026-01-02 tool run_1 -->
`

func entries(d *Document) string {
	var b strings.Builder
	for _, e := range d.Entries() {
		b.WriteString(e.Section + "|" + e.Text + "|" + e.Date + "|" + string(e.Origin) + "|" + e.Run + "\n")
	}
	return b.String()
}

func TestDocumentOfTheSeed(t *testing.T) {
	d := Parse(Global, seed)
	if d.String() != seed {
		t.Errorf("it is not kept as it is:\n%s", d)
	}
	want := `Preferences|User prefers concise responses|||
Preferences|Always confirm before destructive operations|||
Context|Primary language: TypeScript|||
Context|Framework: Azure Functions|||
Learned Patterns|When user says "deploy", they mean Azure deployment and nothing else|||
Learned Patterns|"Quick check" means skip detailed explanations|2026-01-02|tool|run_1
`
	if got := entries(d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Everything around a change stays as the person wrote it.
	if _, added := d.Add(Entry{Section: Context, Text: "It rains", Origin: Person, Date: "2026-05-06"}); !added {
		t.Error("not added")
	}
	want = strings.Replace(seed, "Some words of a person.\n", "Some words of a person.\n- It rains <!-- agentd: 2026-05-06 person -->\n", 1)
	if d.String() != want {
		t.Errorf("got\n%s", d)
	}
	if _, added := d.Add(Entry{Section: Preferences, Text: "it RAINS."}); added {
		t.Error("the same words were added again")
	}
	e := d.Entries()[5]
	if !d.Remove(e.ID) || d.Remove(e.ID) || strings.Contains(d.String(), "deploy") || strings.Contains(d.String(), "nothing else") {
		t.Errorf("an entry of two lines is not removed whole:\n%s", d)
	}
	if n := d.Expire("2026-05-06"); n != 1 || strings.Contains(d.String(), "Quick check") || !strings.Contains(d.String(), "It rains") {
		t.Errorf("%d expired:\n%s", n, d)
	}
}

func TestDocumentGrows(t *testing.T) {
	d := &Document{scope: Global}
	for _, s := range []string{Patterns, Preferences, Patterns} {
		d.Add(Entry{Section: s, Text: s + " " + string(rune('a'+len(d.Entries())))})
	}
	want := "# Memory\n\n## Learned Patterns\n\n- Learned Patterns a\n- Learned Patterns c\n\n## Preferences\n\n- Preferences b\n"
	if d.String() != want || Parse(Global, want).String() != want {
		t.Errorf("got\n%q\nwant\n%q", d.String(), want)
	}
	for _, begin := range []string{"text without an end", "## Context", "## Context\n", "- a", "## Context\n\n\n", "```\ncode", "# Memory\r\n\r\n## Context\r\n- b\r\n"} {
		d := Parse(Global, begin)
		e, _ := d.Add(Entry{Section: Context, Text: "new", Origin: Agent, Date: "2026-01-01", Run: "run_x"})
		again := Parse(Global, d.String())
		got, ok := again.Find(e.ID)
		if !ok || got != e || !strings.HasPrefix(d.String(), strings.TrimRight(begin, "\r\n")) {
			t.Errorf("%q: %q, %+v", begin, d, got)
		}
	}
}

// What a tool said becomes a person's when a person says it, and nobody else's.
func TestDocumentOrigins(t *testing.T) {
	d := &Document{scope: Global}
	d.Add(Entry{Section: Context, Text: "x y", Origin: Tool, Date: "2026-01-01", Run: "run_1"})
	if e, added := d.Add(Entry{Section: Context, Text: "x y", Origin: Agent, Date: "2026-01-02"}); added || e.Origin != Tool {
		t.Errorf("an agent took it over: %+v", e)
	}
	if e, added := d.Add(Entry{Section: Preferences, Text: "X y", Origin: Person, Date: "2026-01-02"}); !added || e.Origin != Person || e.Section != Context {
		t.Errorf("a person did not: %+v", e)
	}
	// Words of the note that nobody knows are read with care.
	for _, note := range []string{"", "2026-01-01", "2026-01-01 trusted", "agent whatever", "x"} {
		if e := Parse(Global, "- a <!-- agentd: "+note+" -->").Entries()[0]; e.Origin != Tool || e.Text != "a" {
			t.Errorf("%q: %+v", note, e)
		}
	}
	a, _ := d.Add(Entry{Section: Context, Text: "one"})
	b, _ := d.Add(Entry{Section: Context, Text: "two"})
	if e, ok := d.Replace(a.ID, Entry{Text: "Two!", Origin: Person}); !ok || e.ID != b.ID || len(d.Entries()) != 2 {
		t.Errorf("two entries with the same words did not become one: %+v\n%s", e, d)
	}
	if _, ok := d.Replace(a.ID, Entry{Text: "x"}); ok {
		t.Error("an entry that is gone was replaced")
	}
	if e, ok := d.Replace(b.ID, Entry{Text: "two", Section: Preferences}); !ok || e.Section != Preferences || strings.Count(d.String(), "two") != 1 {
		t.Errorf("not moved: %+v\n%s", e, d)
	}
}

// Whatever a file holds: it is kept, and what is added to it is found again.
func FuzzDocument(f *testing.F) {
	f.Add(seed, "likes tea")
	f.Add("```\n- x\n", "y")
	f.Add("## \n## A\r\n* b\n\tc\n-\t<!-- agentd: -->\n- <!-- agentd: 2026-01-01 tool run_1 --> <!-- agentd:x -->", "- # > x")
	f.Add("- a\n  ```\n- b", "z")
	clean, err := NewFilter(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, add string) {
		d := Parse(Global, text)
		if d.String() != text {
			t.Fatalf("%q became %q", text, d.String())
		}
		line, err := clean.Clean(add, 500)
		if err != nil {
			return
		}
		n := len(d.Entries())
		e, added := d.Add(Entry{Section: Context, Text: line, Origin: Agent, Date: "2026-01-01"})
		got, ok := Parse(Global, d.String()).Find(e.ID)
		if !ok || got.Text != e.Text || added && got.Origin != Agent {
			t.Fatalf("%q added to %q is %+v in %q", line, text, got, d)
		}
		if added && len(Parse(Global, d.String()).Entries()) != n+1 {
			t.Fatalf("%q added to %q: %q", line, text, d)
		}
		if !d.Remove(e.ID) {
			t.Fatal("it can not be removed")
		}
		if _, still := Parse(Global, d.String()).Find(e.ID); still {
			t.Fatalf("it is still there: %q", d)
		}
	})
}
