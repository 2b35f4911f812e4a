package agentd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"agentd/tool"
)

// TestApprovalPolicies: what configuration says about a call, from the YAML of a
// server and a profile to the verdict and its reason.
func TestApprovalPolicies(t *testing.T) {
	srv := offering(t, "note", "remove_file", "run_shell", "fetch_url", "look", "erase")
	const quiet = "approval_policies: {write_ops: false, dangerous_ops: false}\n"
	type verdict struct{ is, reason string }
	run := verdict{"run", "no rule asks for approval"}
	ask := func(reason string) verdict { return verdict{"ask", reason} }
	cases := []struct {
		// approval is the server's requires_approval.
		approval, profile, tool, args string
		want                          verdict
	}{
		// The profile's classes.
		{"", quiet, "note", `{}`, run},
		{"", quiet, "remove_file", `{}`, run},
		{"", "", "note", `{}`, ask("approval_policies asks for write calls")},
		{"", "", "look", `{}`, run},
		{"", "approval_policies: {write_ops: false}\n", "note", `{}`, run},
		{"", "approval_policies: {write_ops: false}\n", "remove_file", `{}`, ask("approval_policies asks for dangerous calls")},
		{"", "approval_policies: {write_ops: false}\n", "run_shell", `{}`, ask("approval_policies asks for dangerous calls")},
		{"", "approval_policies: {write_ops: false}\n", "fetch_url", `{}`, run},
		{"", "approval_mode: always\n", "note", `{}`, ask("approval_mode is always")},
		{"", "approval_mode: always\n", "look", `{}`, run},
		{"", "approval_mode: never\n", "remove_file", `{}`, run},
		// The server's rules: by name, with arguments, and whatever the profile's mode.
		{"always: [note]", quiet, "note", `{}`, ask("requires_approval.always names note")},
		{"always: ['n*']", "approval_mode: never\n", "note", `{}`, ask("requires_approval.always names note")},
		{"always: [note]", quiet, "erase", `{}`, run},
		{"always: [{tool: look, args: 'secret'}]", quiet, "look", `{"path":"x/secret"}`, ask(`requires_approval.conditional "secret" matches the arguments`)},
		{"always: [{tool: look, args: 'secret'}]", quiet, "look", `{"path":"x"}`, run},
		// Arguments are matched in one form: escapes, order and spaces change nothing.
		{`conditional: ['"path":"/etc']`, quiet, "look", "{ \"path\" :\n \"\\u002fetc/passwd\" }", ask(`requires_approval.conditional "\"path\":\"/etc" matches the arguments`)},
		{`conditional: ['"a":1,"b":2']`, quiet, "look", `{"b": 2, "a": 1}`, ask(`requires_approval.conditional "\"a\":1,\"b\":2" matches the arguments`)},
		{`conditional: ['<b>']`, quiet, "look", `{"x":"\u003cb\u003e"}`, ask(`requires_approval.conditional "<b>" matches the arguments`)},
		{`conditional: [{tool: 'n*', args: prod}]`, quiet, "note", `{"at":"prod"}`, ask(`requires_approval.conditional "prod" matches the arguments`)},
		{`conditional: [{tool: 'n*', args: prod}]`, quiet, "look", `{"at":"prod"}`, run},
		{`conditional: [{tool: note}]`, quiet, "note", `{}`, ask("requires_approval.conditional names note")},
		// Its classes.
		{"conditional: [write]", quiet, "note", `{}`, ask("requires_approval.conditional asks for write calls")},
		{"conditional: [writes]", quiet, "note", `{}`, ask("requires_approval.conditional asks for write calls")},
		{"conditional: [write]", quiet, "look", `{}`, run},
		{"conditional: [delete]", quiet, "remove_file", `{}`, ask("requires_approval.conditional asks for delete calls")},
		{"conditional: [deletes]", quiet, "erase", `{}`, ask("requires_approval.conditional asks for delete calls")},
		{"conditional: [delete]", quiet, "note", `{}`, run},
		{"conditional: [network]", quiet, "fetch_url", `{}`, ask("requires_approval.conditional asks for network calls")},
		{"conditional: [network]", quiet, "note", `{}`, run},
		{"conditional: [shell]", quiet, "run_shell", `{}`, ask("requires_approval.conditional asks for shell calls")},
		{"conditional: [shell]", quiet, "remove_file", `{}`, run},
		{"conditional: [dangerous]", quiet, "run_shell", `{}`, ask("requires_approval.conditional asks for dangerous calls")},
		{"conditional: [dangerous]", quiet, "remove_file", `{}`, ask("requires_approval.conditional asks for dangerous calls")},
		{"conditional: [dangerous]", quiet, "note", `{}`, run},
		{"conditional: [{tool: look, class: dangerous}]", quiet, "look", `{}`, ask("requires_approval.conditional names look")},
		{"conditional: [{class: network, args: internal}]", quiet, "fetch_url", `{"url":"http://internal"}`, ask(`requires_approval.conditional "internal" matches the arguments`)},
		{"conditional: [{class: network, args: internal}]", quiet, "fetch_url", `{"url":"http://example.org"}`, run},
		// A rule that names the tool is the reason, even if a class asks, too.
		{"always: [note], conditional: [write]", quiet, "note", `{}`, ask("requires_approval.always names note")},
		// Nobody is there.
		{"always: [note]", quiet + "autonomous_approval: fail\n", "note", `{}`, verdict{"autonomous deny", "it needs a person's approval (requires_approval.always names note) and this run is autonomous"}},
		{"conditional: [network]", quiet, "fetch_url", `{}`, verdict{"autonomous capture", "it needs a person's approval (requires_approval.conditional asks for network calls) and this run is autonomous"}},
		{"always: [note]", quiet + "auto_approve_in_daemon: true\n", "note", `{}`, verdict{"autonomous run", "auto_approve_in_daemon allows it; requires_approval.always names note"}},
		{"", quiet, "note", `{}`, verdict{"autonomous run", "no rule asks for approval"}},
	}
	keys, servers := map[string]string{}, "servers:\n"
	for i, c := range cases {
		name := fmt.Sprintf("c%d", i)
		keys[name] = "tools: {mcp_servers: [" + name + "]}\n" + c.profile
		servers += fmt.Sprintf("  %s: {transport: http, url: %q, protocol: '2025-11-25', effects: {look: read}, requires_approval: {%s}}\n", name, srv.URL, c.approval)
	}
	dir := profiles(t, keys)
	write(t, filepath.Join(dir, "mcp", "servers.yaml"), servers)
	rt, err := Open(t.Context(), Config{Configs: dir, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	v := tool.NewValidator()
	for i, c := range cases {
		a, err := rt.agents.Agent(t.Context(), "", fmt.Sprintf("c%d", i))
		if err != nil {
			t.Fatal(err)
		}
		_, spec, ok := a.Tools.Lookup(c.tool)
		if !ok {
			t.Fatalf("case %d has no tool %s: %v", i, c.tool, a.Unreachable)
		}
		args, aerr := v.Prepare(spec, json.RawMessage(c.args))
		if aerr != nil {
			t.Fatal(aerr)
		}
		judge := func(autonomous bool, prefix string) verdict {
			j := a.Rules.Judge(&spec, args, autonomous)
			is := "run"
			switch {
			case j.Ask:
				is = "ask"
			case j.Deny:
				is = "deny"
			case j.Capture:
				is = "capture"
			}
			return verdict{prefix + is, j.Reason}
		}
		prefix := ""
		if len(c.want.is) > 10 && c.want.is[:10] == "autonomous" {
			prefix = "autonomous "
		}
		if got := judge(prefix != "", prefix); got != c.want {
			t.Errorf("%d: %s with {%s}, %q, %s: %v, want %v", i, c.tool, c.approval, c.profile, c.args, got, c.want)
		}
	}
}
