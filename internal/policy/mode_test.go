package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"agentd/tool"
)

func TestModes(t *testing.T) {
	m := &Modes{Tools: map[string][]string{Plan: {"note"}, Ask: {"log"}}, Commands: map[string]string{"sh": "command"}, Files: map[string]string{"write": "plans/*.md"}}
	spec := func(name string, effect tool.Effect, kind string) *tool.Spec {
		return &tool.Spec{Name: name, Effect: effect, Kind: kind}
	}
	for _, tt := range []struct {
		name string
		spec *tool.Spec
		args string
		in   string // the modes that allow it besides edit
	}{
		{"reading", spec("cat", tool.Read, ""), `{}`, "ask plan"},
		{"what may be repeated writes all the same", spec("put", tool.Idempotent, ""), `{}`, ""},
		{"once", spec("pay", tool.Once, ""), `{}`, ""},
		{"unknown", spec("any", "", ""), `{}`, ""},
		{"what is named for plan", spec("note", tool.Once, ""), `{}`, "plan"},
		{"what is named for ask", spec("log", "", ""), `{}`, "ask"},
		{"question", spec("ask_user_question", tool.Read, "ask"), `{}`, "ask plan"},
		{"plan", spec("propose_plan", tool.Read, "plan"), `{}`, "ask plan"},
		{"subagent", spec("create_subagent", tool.Idempotent, "spawn"), `{}`, "ask plan"},
		{"a client's", spec("theirs", "", "client"), `{}`, ""},
		{"a client's of a name that is allowed", spec("note", "", "client"), `{}`, ""},
		{"a command that looks", spec("sh", "", ""), `{"command":"ls -la","cwd":"x","timeout":5}`, "plan"},
		{"a command that does not", spec("sh", "", ""), `{"command":"ls; rm x"}`, ""},
		{"an environment", spec("sh", "", ""), `{"command":"ls","env":{"PATH":"."}}`, ""},
		{"words", spec("sh", "", ""), `{"command":["ls"]}`, ""},
		{"no command", spec("sh", "", ""), `{}`, ""},
		{"no object", spec("sh", "", ""), `"ls"`, ""},
		{"a plan file", spec("write", "", ""), `{"path":"plans/a.md","content":"x"}`, "plan"},
		{"a plan file by another name", spec("write", "", ""), `{"file_path":"./plans/a.md","content":"x"}`, "plan"},
		{"another file", spec("write", "", ""), `{"path":"main.go"}`, ""},
		{"a way out", spec("write", "", ""), `{"path":"plans/../main.md"}`, ""},
		{"a way up", spec("write", "", ""), `{"path":"../plans/a.md"}`, ""},
		{"an absolute path", spec("write", "", ""), `{"path":"/plans/a.md"}`, ""},
		{"deeper", spec("write", "", ""), `{"path":"plans/a/b.md"}`, ""},
		{"two files", spec("write", "", ""), `{"path":"plans/a.md","file":"plans/b.md"}`, ""},
		{"a file and where it goes", spec("write", "", ""), `{"path":"plans/a.md","destination":"x"}`, ""},
		{"no file", spec("write", "", ""), `{"content":"x"}`, ""},
		{"files", spec("write", "", ""), `{"paths":["plans/a.md"]}`, ""},
		{"another file in capitals, which some tools read", spec("write", "", ""), `{"path":"plans/a.md","PATH":"main.go"}`, ""},
		{"a plan file from another folder", spec("write", "", ""), `{"path":"plans/a.md","cwd":"/etc"}`, ""},
		{"backslashes", spec("write", "", ""), `{"path":"plans/..\\..\\a.md"}`, ""},
	} {
		for _, mode := range append(ModeNames(), "") {
			why := m.Forbids(mode, tt.spec, json.RawMessage(tt.args))
			if want := mode == Edit || mode == "" || strings.Contains(tt.in, mode); want != (why == "") {
				t.Errorf("%s in %q: %q", tt.name, mode, why)
			}
			if why != "" && (!strings.Contains(why, "mode "+mode) || !strings.Contains(why, tt.spec.Name) || !strings.Contains(why, "edit")) {
				t.Errorf("%s in %q does not say mode, tool and way out: %s", tt.name, mode, why)
			}
		}
	}
	for _, tt := range [][3]string{{Ask, Plan, Ask}, {Plan, Ask, Ask}, {Plan, Edit, Plan}, {"", Plan, Plan}, {"", "", Edit}, {Edit, Edit, Edit}, {"huh", Ask, Ask}} {
		if got := Stricter(tt[0], tt[1]); got != tt[2] {
			t.Errorf("Stricter(%q, %q) is %q", tt[0], tt[1], got)
		}
	}
}
