package prompt

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"agentd/model"
)

func set(t *testing.T, sections ...Section) *Set {
	t.Helper()
	s, err := NewSet(sections...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Sections are emitted tier by tier, a cache mark at each tier's end, and those of the
// turn are no part of the system prompt.
func TestSystemIsMadeInTiers(t *testing.T) {
	s := set(t, Section{Name: "identity", Tier: Static, Text: " You are A.\n"}, Section{Name: "rules", Tier: Static, Text: "Be good."},
		Section{Name: "none", Tier: Static, Text: "  "},
		Section{Name: "catalogue", Tier: Org, Render: func(f *Facts) string { return "For " + f.User + f.Time }},
		Section{Name: "step", Tier: Turn, Text: "It is {{time}}.", Fill: true}, Section{Name: "quiet", Tier: Turn, When: When{Mode: []string{"plan"}}, Text: "Plan."})
	f := &Facts{RunMode: "interactive", User: "u", Date: "2026-01-02", Time: "03:04 UTC"}
	parts, made := s.System(f)
	if want := []model.SystemPart{{Text: "You are A.\n\nBe good.", Cache: true}, {Text: "For u", Cache: true}}; !reflect.DeepEqual(parts, want) {
		t.Errorf("%+v", parts)
	}
	var names []string
	for _, m := range made {
		names = append(names, m.Tier+" "+m.Name)
		if len(m.Hash) != 16 || m.Bytes == 0 {
			t.Errorf("%+v", m)
		}
	}
	if want := []string{"static identity", "static rules", "org catalogue"}; !reflect.DeepEqual(names, want) {
		t.Errorf("%v", names)
	}
	if b := s.Blocks(f); !reflect.DeepEqual(b, []Block{{Kind: "section.step", Text: "It is 03:04 UTC."}, {Kind: "section.quiet"}}) {
		t.Errorf("%+v", b)
	}
	again, _ := s.System(f)
	if !reflect.DeepEqual(again, parts) {
		t.Errorf("the same facts give %+v and %+v", parts, again)
	}
	if parts, made := (*Set)(nil).System(f); parts != nil || made != nil || (*Set)(nil).Blocks(f) != nil {
		t.Error("no set says something")
	}
}

func TestConditions(t *testing.T) {
	f := &Facts{RunMode: "autonomous", Tools: []string{"file_read", "grep"}, Mode: "ask", Named: map[string]string{"version": "4.3.1"}}
	for _, tt := range []struct {
		name string
		s    Section
		want bool
	}{
		{"none", Section{}, true},
		{"its run mode", Section{RunModes: []string{"interactive", "autonomous"}}, true},
		{"another run mode", Section{RunModes: []string{"interactive"}}, false},
		{"a tool", Section{When: When{Tools: []string{"file_*", "grep"}}}, true},
		{"a missing tool", Section{When: When{Tools: []string{"file_*", "shell"}}}, false},
		{"without a tool that is there", Section{When: When{WithoutTools: []string{"shell", "g?ep"}}}, false},
		{"without one that is not", Section{When: When{WithoutTools: []string{"shell"}}}, true},
		{"its mode", Section{When: When{Mode: []string{"plan", "ask"}}}, true},
		{"another mode", Section{When: When{Mode: []string{"plan"}}}, false},
		{"older", Section{When: When{Version: "<4.4.0"}}, true},
		{"newer", Section{When: When{Version: ">= 4.4"}}, false},
		{"between", Section{When: When{Version: ">=4, < 4.3.2, !=4.3"}}, true},
	} {
		if got := tt.s.holds(f); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	unknown := Section{When: When{Version: "<9"}}
	if unknown.holds(&Facts{}) {
		t.Error("an unknown version fulfils a constraint")
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		have, want string
		ok         bool
	}{
		{"4.4.0", "4.4", true}, {"v4.4", "=4.4.0", true}, {"4.4.0-SNAPSHOT", ">=4.4.0", true}, {"4.10", ">4.9", true}, {"4.4.0+b", "<=4.3", false},
		{"", ">=0", false}, {"x", ">=0", false}, {"4", "", false}, {"4", ">=", false},
	} {
		if got := satisfies(tt.have, tt.want); got != tt.ok {
			t.Errorf("%q %q: %v", tt.have, tt.want, got)
		}
	}
}

// What is wrong with sections is told at once, with file and line.
func TestWrongSections(t *testing.T) {
	_, err := NewSet(
		Section{Name: "a", Tier: Org, File: "s/a.md", Line: 2},
		Section{Name: "b", Tier: Static, File: "s/b.md", Line: 3},
		Section{Name: "a", Tier: Org, File: "s/c.md"},
		Section{Name: "d", Tier: "often", File: "s/d.md", Line: 1},
		Section{Name: "", Tier: Org},
		Section{Name: "e", Tier: Org, RunModes: []string{"ask"}, When: When{Tools: []string{"["}, WithoutTools: []string{""}, Version: ">=x"}},
		Section{Name: "f", Tier: Org, Text: "one\n{{date}}\n{{ time }} \\{{time}}", Fill: true, File: "s/f.md", Line: 5},
		Section{Name: "g", Tier: Turn, Text: "{{time}}", Fill: true},
		Section{Name: "h", Tier: Org, File: "s/h.md", Line: 9},
	)
	var p Problems
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	for _, want := range []string{
		`s/b.md:3: section "b": a section of tier static comes after one of tier org (s/a.md:2)`,
		`s/c.md:1: section "a": another section has this name: s/a.md:2`,
		`s/d.md:1: section "d": "often" is no tier`, `section "": it has no name`, `"ask" is no run mode`, `"[" is no pattern`, `"" is no pattern`, `when.version: "x" is no version`,
		`s/f.md:7: section "f": {{time}} is for sections of tier turn`,
		`s/h.md:9: section "h": a section of tier org comes after one of tier turn (g)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis not in\n%s", want, err)
		}
	}
	if len(p) != 10 {
		t.Errorf("%d problems:\n%s", len(p), err)
	}
	if _, err := NewSet(Section{Name: "s", Tier: Static, Text: "{{date}}", Fill: true}); err == nil || !strings.Contains(err.Error(), "static one changes on deploy") {
		t.Errorf("%v", err)
	}
}

func TestFill(t *testing.T) {
	f := &Facts{RunMode: "interactive", Profile: "p", User: "u", Tools: []string{"a", "b"}, Date: "d", Time: "t", Named: map[string]string{"region": "eu"}}
	if got := fill(`{{run_mode}} {{ profile }} {{user}} {{tools}} {{date}} {{time}} {{region}} {{other}} \{{user}} {{ A b }} {{`, f); got != `interactive p u a, b d t eu {{other}} {{user}} {{ A b }} {{` {
		t.Error(got)
	}
	names, lines := Unknown("{{user}}\n\n{{other}} {{region}}\n{{x}}", f.Named)
	if !reflect.DeepEqual(names, []string{"other", "x"}) || !reflect.DeepEqual(lines, []int{2, 3}) {
		t.Error(names, lines)
	}
}

// Filling in is exact: what is no placeholder stays, byte for byte.
func FuzzFill(f *testing.F) {
	for _, s := range []string{"", "{{user}}", `\{{user}}`, "{{{user}}}", "{{a}}{{", "{{user\n}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := fill(text, &Facts{User: "u"})
		if !strings.Contains(text, "{{") && out != text {
			t.Errorf("%q became %q", text, out)
		}
		for _, p := range placeholders(text) {
			if text[p.from:p.from+2] != "{{" || text[p.upto-2:p.upto] != "}}" || p.line != strings.Count(text[:p.from], "\n") {
				t.Errorf("%q: %+v", text, p)
			}
		}
		satisfies(text, text)
	})
}
