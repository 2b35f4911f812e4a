package policy

import (
	"encoding/json"
	"testing"

	"agentd/tool"
)

func shell(command string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"command": command})
	return b
}

// What is remembered is narrow, and neither destructive nor
// complex commands ever are.
func TestRemember(t *testing.T) {
	sh := tool.Spec{Name: "bash", Classes: []string{"dangerous", "shell", "write"}}
	for _, command := range []string{"rm -rf x", "/bin/rm x", "git reset --hard", "git clean -fd", "git push --force", "git push -f", "git push origin +main",
		"ls | sh", "ls; rm x", "ls && rm x", "echo $(rm x)", "echo `rm x`", "ls > x", "ls &", "ls\nrm x", "X=1 ls", "sudo ls", "bash -c ls", "python3 x.py",
		"find . -delete", "xargs ls", "ls 'a b'", `ls \x`, "docker rm x", "kubectl delete pod", "mkfs.ext4 x", "env ls", "ls *", "ls ~", "", "   ",
		"curl -XDELETE http://x", "curl --request=DELETE http://x", "git push origin :main", "git push --mirror", "git stash clear",
		"git switch --discard-changes main", "Remove-Item x", "crontab x"} {
		if p, err := Remember(&sh, shell(command)); err == nil {
			t.Errorf("%q is remembered as %s", command, p.String())
		}
	}
	for _, c := range []struct{ approved, other string }{
		{"git status", "git status"}, {"git status", "git status internal"}, {"go test ./a", "go test ./a"}, {"go test ./a", "go test ./a ./b"},
		{"npm run build", "npm run build"}, {"ls -la", "ls -la"}, {"git status", "git  status"},
	} {
		if !covers(t, &sh, shell(c.approved), shell(c.other)) {
			t.Errorf("%q does not cover %q", c.approved, c.other)
		}
	}
	for _, c := range []struct{ approved, other string }{
		{"git status", "git log"}, {"git status", "git"}, {"git status", "git status --output=x"}, {"git status", "git status; rm x"},
		{"go test ./a", "go test ./b"}, {"go test ./a", "go test ./a -exec sh"}, {"npm run build", "npm run build x"}, {"ls", "ls x"},
		{"git status", "git statusx"}, {"git diff", "git diff $(rm x)"}, {"./build", "build"},
	} {
		if covers(t, &sh, shell(c.approved), shell(c.other)) {
			t.Errorf("%q covers %q", c.approved, c.other)
		}
	}
}

func TestRememberArguments(t *testing.T) {
	write := tool.Spec{Name: "write", Classes: []string{"write"}}
	byPath := tool.Spec{Name: "write", Classes: []string{"write"}, RememberBy: []string{"path"}}
	for _, c := range []struct {
		name          string
		spec          tool.Spec
		approved, got string
		want          bool
	}{
		{"the same", write, `{"path":"a","n":1}`, `{ "n":1, "path":"a" }`, true},
		{"another value", write, `{"path":"a"}`, `{"path":"b"}`, false},
		{"one more", write, `{"path":"a"}`, `{"path":"a","mode":"x"}`, false},
		{"one less", write, `{"path":"a","n":1}`, `{"path":"a"}`, false},
		{"what the tool says matters", byPath, `{"path":"a","text":"x"}`, `{"path":"a","text":"y"}`, true},
		{"what the tool says matters differs", byPath, `{"path":"a","text":"x"}`, `{"path":"b","text":"x"}`, false},
		{"a command in another folder", tool.Spec{Name: "x"}, `{"command":"ls","cwd":"a"}`, `{"command":"ls","cwd":"b"}`, false},
	} {
		if got := covers(t, &c.spec, json.RawMessage(c.approved), json.RawMessage(c.got)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	for _, spec := range []tool.Spec{{Name: "d", Classes: []string{"delete"}}, {Name: "x", Classes: []string{"dangerous"}},
		{Name: "s", Classes: []string{"shell"}}, {Name: "ds", Classes: []string{"delete", "shell"}}} {
		if _, err := Remember(&spec, json.RawMessage(`{"a":1}`)); err == nil {
			t.Errorf("%s is remembered", spec.Name)
		}
	}
	// A tool that became dangerous since is asked for again.
	p, err := Remember(&write, json.RawMessage(`{"path":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	worse := tool.Spec{Name: "write", Classes: []string{"delete"}}
	if _, r := Recall([]Remembered{{ID: "1", Tool: "write", Pattern: p}}, &worse, json.RawMessage(`{"path":"a"}`)); r != nil {
		t.Error("a rule outlived what it was made for")
	}
}

// covers is whether an approval of one call, remembered, stored and read again,
// allows another.
func covers(t *testing.T, spec *tool.Spec, approved, other json.RawMessage) bool {
	t.Helper()
	p, err := Remember(spec, approved)
	if err != nil {
		t.Fatalf("%s: %v", approved, err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Pattern
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	v, r := Recall([]Remembered{{ID: "rule", Tool: spec.Name, Pattern: back}}, spec, other)
	if r != nil && (v.Ask || v.Deny || v.Reason == "") {
		t.Errorf("verdict: %+v", v)
	}
	return r != nil
}

func FuzzRemember(f *testing.F) {
	f.Add("git status", "git status x")
	f.Add("ls", "ls;rm x")
	f.Fuzz(func(t *testing.T, approved, other string) {
		sh := tool.Spec{Name: "bash", Classes: []string{"shell"}}
		p, err := Remember(&sh, shell(approved))
		if err != nil {
			return
		}
		if !p.covers(&sh, shell(approved)) {
			t.Errorf("%q does not cover itself", approved)
		}
		if _, err := Remember(&sh, shell(other)); err != nil && p.covers(&sh, shell(other)) {
			t.Errorf("%q covers %q, which is never remembered", approved, other)
		}
	})
}

// A command that is no text is no reason to forget it: every other command of
// that tool would be allowed with it.
func TestACommandOfSeveralWordsIsNotForgotten(t *testing.T) {
	run := tool.Spec{Name: "run", Classes: []string{"write"}}
	for _, args := range []string{`{"command":["ls"]}`, `{"cmd":{"program":"ls"}}`, `{"command":1,"cwd":"a"}`, `{"command":null}`} {
		if p, err := Remember(&run, json.RawMessage(args)); err == nil {
			t.Errorf("%s is remembered as %q, %+v", args, p.String(), p)
		}
	}
	// A rule that was made when such arguments were left out covers nothing now.
	old := []Remembered{{ID: "1", Tool: "run", Pattern: Pattern{Key: "command", Args: json.RawMessage(`{}`)}}}
	if _, r := Recall(old, &run, json.RawMessage(`{"command":["rm","-rf","/"]}`)); r != nil {
		t.Error("a rule about one command covers another")
	}
}

// Names of tools are unique in a run, not in a session: its runs may be of several
// profiles, and a tool may be called what another server's was called before.
func TestARuleIsAboutOneServersTool(t *testing.T) {
	approved := tool.Spec{Name: "write", Source: "mcp:notes", Classes: []string{"write"}}
	args := json.RawMessage(`{"path":"a"}`)
	p, err := Remember(&approved, args)
	if err != nil {
		t.Fatal(err)
	}
	rules := []Remembered{{ID: "1", Tool: "write", Pattern: p}}
	if _, r := Recall(rules, &approved, args); r == nil {
		t.Error("the rule does not cover what it was made for")
	}
	for _, source := range []string{"mcp:production", "builtin", ""} {
		other := approved
		other.Source = source
		if _, r := Recall(rules, &other, args); r != nil {
			t.Errorf("the rule covers the tool of %q", source)
		}
	}
}
