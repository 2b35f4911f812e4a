package script

import (
	"errors"
	"strings"
	"testing"

	"agentd/fault"
)

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name, src string
		field     string // file:line
		msg, hint string // parts of them
	}{
		{"empty", "", "s.yaml:1", "empty", "turns"},
		{"comment only", "# nothing\n", "s.yaml:1", "empty", "turns"},
		{"not a mapping", "- a\n", "s.yaml:1", "mapping", "turns:"},
		{"nothing to say", "name: x\n", "s.yaml:1", "answers nothing", "turn"},
		{"bad yaml", "turns: [\n", "s.yaml:1", "", "YAML"},
		{"two documents", "turns: [{text: a}]\n---\nturns: []\n", "s.yaml:2", "second", "---"},
		{"alias", "turns:\n- text: &a hi\n- text: *a\n", "s.yaml:2", "anchors", "write"},
		{"unknown top key", "turnz: []\n", "s.yaml:1", `"turnz"`, `"turns"`},
		{"unknown deep key", "turns:\n- text: a\n  fault:\n    kind: cut\n    retry_afer: 2s\n", "s.yaml:5", `"retry_afer"`, `"retry_after"`},
		{"far key", "turns:\n- text: a\n  xyzzy: 1\n", "s.yaml:3", `"xyzzy"`, "docs/scripts.md"},
		{"double key", "name: a\nname: b\n", "s.yaml:2", "twice", "remove"},
		{"wrong type", "turns:\n- text: a\n  repeat: often\n", "s.yaml:3", "repeat", "whole number"},
		{"wrong duration", "turns:\n- text: a\n  latency:\n    first: soon\n", "s.yaml:4", `turns[0].latency.first: "soon"`, "50ms"},
		{"number as duration", "turns:\n- text: a\n  fault: {kind: stall, for: 5}\n", "s.yaml:3", `turns[0].fault.for: "5"`, "2s"},
		{"turns no list", "turns: hello\n", "s.yaml:1", "", ""},
		{"bad restart", "restart: often\nturns: [{text: a}]\n", "s.yaml:1", `restart: unknown value "often"`, "never"},
		{"empty model", "models: ['']\nturns: [{text: a}]\n", "s.yaml:1", "models[0]", "remove"},
		{"silent turn", "turns:\n- text: a\n  stop: length\n- repeat: 2\n", "s.yaml:4", "turns[1]", "text"},
		{"bad regexp", "turns:\n- text: a\n  when:\n    user: '('\n", "s.yaml:4", "turns[0].when.user", "RE2"},
		{"empty when", "turns:\n- text: a\n  when: {}\n", "s.yaml:3", "turns[0].when", "leave"},
		{"bad template", "turns:\n- text: 'a {{.User'\n", "s.yaml:2", "turns[0].text", "text/template"},
		{"unknown function", "turns:\n- text: '{{nope .User}}'\n", "s.yaml:2", `"nope" not defined`, "functions"},
		{"unknown field", "turns:\n- text: 'a'\n  when: {user: x}\n- text: '{{if .Usr}}x{{end}}'\n", "s.yaml:4", "no .Usr", ".User"},
		{"unknown field of $", "turns:\n- text: '{{range .Results}}{{$.Stp}}{{end}}'\n", "s.yaml:2", "no .Stp", ".Step"},
		{"template in arguments", "turns:\n- tool_calls:\n  - name: x\n    arguments:\n      a: [1, '{{']\n", "s.yaml:5", "arguments.a[1]", "text/template"},
		{"call without name", "turns:\n- tool_calls:\n  - arguments: {}\n", "s.yaml:3", "tool_calls[0]", "name"},
		{"arguments list", "turns:\n- tool_calls:\n  - name: x\n    arguments: [1]\n", "s.yaml:4", "arguments", "mapping"},
		{"infinite", "turns:\n- tool_calls:\n  - name: x\n    arguments: {a: .inf}\n", "s.yaml:4", "JSON number", "JSON"},
		{"bad stop", "turns:\n- text: a\n  stop: now\n", "s.yaml:3", "turns[0].stop", "length"},
		{"toolUse without calls", "turns:\n- text: a\n  stop: toolUse\n", "s.yaml:3", "turns[0].stop", "tool_calls"},
		{"negative usage", "turns:\n- text: a\n  usage: {cache_read: -1}\n", "s.yaml:3", "turns[0].usage.cache_read", "tokens"},
		{"repeat zero", "turns:\n- text: a\n  repeat: 0\n", "s.yaml:3", "turns[0].repeat", "1 to"},
		{"latency", "turns:\n- text: a\n  latency: {chunk: -1s}\n", "s.yaml:3", "turns[0].latency.chunk", "duration"},
		{"fault without kind", "turns:\n- fault: {times: 1}\n", "s.yaml:2", "needs a kind", "rate_limited"},
		{"unknown fault", "turns:\n- fault:\n    kind: explode\n", "s.yaml:3", `"explode"`, "overloaded"},
		{"fault status", "turns:\n- fault: {kind: server, status: 200}\n", "s.yaml:2", "200", "599"},
		{"cut has no status", "turns:\n- fault: {kind: cut, status: 500}\n", "s.yaml:2", "no status", "remove"},
		{"for", "turns:\n- fault: {kind: cut, for: 1s}\n", "s.yaml:2", "does not last", "stall"},
		{"after", "turns:\n- fault: {kind: cut, after: -1}\n", "s.yaml:2", "negative", "chunks"},
		{"unreachable", "turns:\n- text: a\n- text: b\n", "s.yaml:3", "can not be reached: turn 1", "restart: never"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("s.yaml", []byte(tt.src))
			var fe *fault.Error
			if !errors.As(err, &fe) {
				t.Fatalf("got %v, want a fault", err)
			}
			if fe.Kind != fault.Invalid || fe.Field != tt.field || !strings.Contains(fe.Err.Error(), tt.msg) || !strings.Contains(fe.Hint, tt.hint) || fe.Hint == "" {
				t.Errorf("got %s %q\nmessage %q\nhint    %q\nwant %s, message with %q, hint with %q",
					fe.Kind, fe.Field, fe.Err, fe.Hint, tt.field, tt.msg, tt.hint)
			}
		})
	}
}

func TestShippedScriptsParse(t *testing.T) {
	if n := Demo().Name(); n != "demo" {
		t.Errorf("demo is named %q", n)
	}
	if n := Echo().Name(); n != "echo" {
		t.Errorf("echo is named %q", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(demoYAML)
	f.Add([]byte("turns:\n- text: a\n  fault: {kind: cut, after: 3}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("turns: [{tool_calls: [{name: x, arguments: {1: 2, y: [null, true, 1.5, '{{.User}}']}}]}]"))
	f.Add([]byte("fallthrough: \"{{range .Results}}{{.Text}}{{end}}\"\nmodels: [a, b]\nrestart: never\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data)
		if err == nil {
			if s.Name() == "" {
				t.Error("a script without a name")
			}
			return
		}
		var fe *fault.Error
		if !errors.As(err, &fe) || fe.Hint == "" || !strings.HasPrefix(fe.Field, "f.yaml:") {
			t.Errorf("error without place or hint: %#v", err)
		}
	})
}
