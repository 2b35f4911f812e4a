package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"agentd/tool"
)

func TestJudge(t *testing.T) {
	once := tool.Spec{Name: "send", Classes: []string{"write"}}
	read := tool.Spec{Name: "look", Effect: tool.Read}
	always := tool.Spec{Name: "pay", Effect: tool.Read, Approval: "always"}
	rm := tool.Spec{Name: "sh", Approval: "conditional", Conditions: []string{`"rm `, `drop`}}
	large := tool.Spec{Name: "pay", Approval: "conditional", Conditions: []string{`"amount":[0-9]{4,}[^0-9]`}}
	broken := tool.Spec{Name: "sh", Approval: "conditional", Conditions: []string{`(`}}
	for _, c := range []struct {
		name       string
		rules      Rules
		spec       tool.Spec
		args       string
		autonomous bool
		want       string // run, ask, deny
		reason     string
	}{
		{"nothing asks", Rules{}, once, `{}`, false, "run", "no rule"},
		{"the profile asks for writes", Rules{Classes: []string{"write"}}, once, `{}`, false, "ask", "write"},
		{"never switches classes off", Rules{Mode: Never, Classes: []string{"write"}}, once, `{}`, false, "run", ""},
		{"never does not switch the tool's own rule off", Rules{Mode: Never}, always, `{}`, false, "ask", "always names pay"},
		{"always asks for what is not a read", Rules{Mode: Always}, once, `{}`, false, "ask", "approval_mode"},
		{"always lets reads through", Rules{Mode: Always}, read, `{}`, false, "run", ""},
		{"a condition matches", Rules{}, rm, `{"cmd":"rm -rf x"}`, false, "ask", "conditional"},
		{"no condition matches", Rules{}, rm, `{"cmd":"ls"}`, false, "run", ""},
		{"a number", Rules{}, large, `{"amount":5000}`, false, "ask", "conditional"},
		{"a small number", Rules{}, large, `{"amount":500}`, false, "run", ""},
		{"a number with an exponent", Rules{}, large, `{"amount":5e3}`, false, "ask", "conditional"},
		{"a number with a point and an exponent", Rules{}, large, `{"amount":0.5E+4}`, false, "ask", "conditional"},
		{"a number with a fraction", Rules{}, large, `{"amount":5000.0}`, false, "ask", "conditional"},
		{"a broken condition asks", Rules{}, broken, `{"cmd":"ls"}`, false, "ask", "conditional"},
		{"nobody is there", Rules{}, always, `{}`, true, "deny", "autonomous"},
		{"nobody is there, and somebody looks later", Rules{Capture: true}, always, `{}`, true, "capture", "autonomous"},
		{"nobody is there for a subagent", Rules{Capture: true}, tool.Spec{Name: "create_subagent", Kind: "spawn", Approval: "always"}, `{}`, true, "capture", "autonomous"},
		{"nobody is there for a tool of the client", Rules{Capture: true}, tool.Spec{Name: "pick", Kind: "client", Approval: "always"}, `{}`, true, "deny", "autonomous"},
		{"somebody is there", Rules{Capture: true}, always, `{}`, false, "ask", "always"},
		{"nobody is there, and that is fine", Rules{AutoApprove: true}, always, `{}`, true, "run", "auto_approve_in_daemon"},
	} {
		v := c.rules.Judge(&c.spec, json.RawMessage(c.args), c.autonomous)
		got := "run"
		if v.Ask {
			got = "ask"
		} else if v.Deny {
			got = "deny"
		} else if v.Capture {
			got = "capture"
		}
		if got != c.want || !strings.Contains(v.Reason, c.reason) || v.Reason == "" {
			t.Errorf("%s: %s because %q", c.name, got, v.Reason)
		}
	}
}
