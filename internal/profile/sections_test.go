package profile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"agentd/internal/prompt"
)

func withSections(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{"agents/a.yaml": {Data: []byte(minimal + "sections: s\nprompt_facts: {version: \"4.4.0\", region: eu}\n")}}
	for name, text := range files {
		m["s/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// A folder of sections is read in order, each with its tier, modes and conditions.
func TestSectionsOfAFolder(t *testing.T) {
	c, problems := LoadFS(withSections(map[string]string{
		"b.md": "---\r\ntier: static\r\nmodes: [autonomous]\r\nwhen:\r\n  tools: [\"file_*\"]\r\n  without_tools: [shell]\r\n  version: \">=4.4\"\r\n  mode: [ask]\r\n---\r\nB in {{region}}\r\n",
		"a.md": "---\ntier: org\n---\n\nA on {{date}}\n", "c.md": "---\ntier: static\norder: 5\n--- \nC", "d.md": "---\ntier: turn\n---\nIt is {{time}}", "notes.txt": "x", ".hidden.md": "x",
	}), "c", nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := c.Profiles["a"].SectionFiles
	want := []prompt.Section{
		{Name: "c", Tier: prompt.Static, Text: "C", Fill: true, File: "c/s/c.md", Line: 3, TextLine: 5},
		{Name: "b", Tier: prompt.Static, RunModes: []string{"autonomous"}, When: prompt.When{Tools: []string{"file_*"}, WithoutTools: []string{"shell"}, Version: ">=4.4", Mode: []string{"ask"}},
			Text: "B in {{region}}\n", Fill: true, File: "c/s/b.md", Line: 2, TextLine: 10},
		{Name: "a", Tier: prompt.Org, Text: "\nA on {{date}}\n", Fill: true, File: "c/s/a.md", Line: 2, TextLine: 4},
		{Name: "d", Tier: prompt.Turn, Text: "It is {{time}}", Fill: true, File: "c/s/d.md", Line: 2, TextLine: 4},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// What is wrong with a section is told with its file and line.
func TestWrongSectionFiles(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no front matter": {"Be good.", "c/s/x.md:1:1: error: the section has no front matter"},
		"not closed":      {"---\ntier: static\n", "c/s/x.md:1:1: error: the section has no front matter"},
		"empty":           {"---\n---\nx", "c/s/x.md:1:1: error: the file is empty"},
		"no tier":         {"---\norder: 1\n---\nx", "c/s/x.md:2:1: error: tier: is missing"},
		"another tier":    {"---\n\ntier: often\n---\nx", `c/s/x.md:3:7: error: tier: does not know the value "often"`},
		"unknown key":     {"---\ntier: static\nwen: {}\n---\nx", "c/s/x.md:3:1: error: wen: unknown key (did you mean when?)"},
		"unknown mode":    {"---\ntier: static\nmodes: [ask]\n---\nx", `c/s/x.md:3:9: error: modes[0]: does not know the value "ask"`},
		"a bad version":   {"---\ntier: static\nwhen: {version: new}\n---\nx", `c/s/x.md:2:1: error: x: when.version: "new" is no version`},
		"no text":         {"---\ntier: static\n---\n \n", "c/s/x.md:4:1: error: the section says nothing"},
		"an unknown fact": {"---\ntier: static\n---\na\n{{regoin}}", "c/s/x.md:5:1: error: {{regoin}} is no fact (did you mean region?"},
		"the clock":       {"---\ntier: org\n---\na\nb {{time}}", "c/s/x.md:5:1: error: x: {{time}} is for sections of tier turn"},
		"out of order":    {"---\ntier: static\norder: 2500\n---\nx", "c/s/x.md:3:1: error: x: a section of tier static comes after one of tier org (c/s/o.md:2)"},
		"too large":       {"---\ntier: static\n---\n" + strings.Repeat("x", 256<<10), "c/s/x.md:1:1: error: the section has"},
	} {
		c, problems := LoadFS(withSections(map[string]string{"x.md": tt.text, "o.md": "---\ntier: org\n---\nO"}), "c", nil)
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwithout %s", name, err, tt.want)
		}
		if c.Profiles["a"] != nil {
			t.Errorf("%s: the profile is there", name)
		}
	}
	for keys, want := range map[string]string{
		"sections: nowhere\n":          "c/agents/a.yaml:4:1: error: sections: the folder can not be read",
		"sections: ../x\n":             "c/agents/a.yaml:4:1: error: sections: leads out of the configs folder",
		"prompt_facts: {A b: c}\n":     "error: prompt_facts.A b: is not a name",
		"context_sources: [weather]\n": `error: context_sources[0]: does not know the value "weather"`,
	} {
		_, problems := LoadFS(fstest.MapFS{"agents/a.yaml": {Data: []byte(minimal + keys)}}, "c", nil)
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v", keys, err)
		}
	}
	if _, problems := LoadFS(withSections(map[string]string{"x.txt": ""}), "c", nil); !strings.Contains(fmt.Sprint(problems), "there is no section in it") {
		t.Error(problems)
	}
}

// Any file is either a section or refused with its line.
func FuzzSection(f *testing.F) {
	for _, s := range []string{"---\ntier: static\n---\nx", "---\ntier: [\n---\n", "---\n---\n", "---\ntier: turn\norder: 1e9\nwhen: {tools: [\"[\"]}\n---\n{{date}} {{x}}", "\ufeff---\r\ntier: org\r\n---", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, problems := LoadFS(withSections(map[string]string{"x.md": text}), "c", nil)
		for _, p := range problems {
			if p.Line < 1 || p.Line > 2+strings.Count(text, "\n") && p.File == "c/s/x.md" {
				t.Errorf("%q: %v", text, p)
			}
		}
		if front, body, line, ok := frontMatter(text); ok && (line != 1+strings.Count(front, "\n")+1 || strings.Contains(front, "\n---\n") || len(front)+len(body) > len(text)+1) {
			t.Errorf("%q: %q, %q, %d", text, front, body, line)
		}
	})
}
