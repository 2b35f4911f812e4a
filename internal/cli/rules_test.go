package cli

import (
	"os"
	"path/filepath"
	"testing"

	"agentd/client"
)

// What is allowed for the rest of a session is listed, and can be taken back.
func TestRulesOfASession(t *testing.T) {
	b := newBench(t)
	profile := "profile_name: careful\nprimary_model: {provider: script, model: m, script: boss.yaml}\napproval_mode: always\nsubagents: [talk]\n"
	script := "turns:\n- tool_calls:\n  - {name: create_subagent, arguments: {subagent_type: talk, prompt: 'Find out.'}}\n- text: 'My subagent: {{.Last.Text}}'\n"
	for path, text := range map[string]string{"agents/careful.yaml": profile, "boss.yaml": script} {
		if err := os.WriteFile(filepath.Join(b.configs, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.agent("careful", "Go").exits(3)
	i := b.waiting()[0]
	b.here("sessions", "rules", i.SessionID).exits(0).complains("nothing was allowed")
	b.here("interrupts", "answer", i.ID, "--decision", "reject", "--remember").exits(2).complains("only the approval of a call can be remembered", "still open")
	b.here("interrupts", "answer", i.ID, "--decision", "approve", "--remember").exits(0).says("My subagent:")
	b.here("sessions", "rules", i.SessionID).exits(0).says("create_subagent", "terminal", `"prompt":"Find out."`)
	rule := lines[client.Rule](b.here("sessions", "rules", i.SessionID, "--json").exits(0))[0]
	b.here("sessions", "revoke", i.SessionID).exits(2).complains("--all")
	b.here("sessions", "revoke", i.SessionID, "rule_x").exits(1).complains("there is no rule rule_x")
	b.here("sessions", "revoke", i.SessionID, rule.ID).exits(0).says("revoked")
	b.here("sessions", "revoke", i.SessionID, "--all").exits(0).says("revoked")
	b.here("sessions", "rules", i.SessionID).exits(0).complains("nothing was allowed")
	b.here("sessions", "rules", "ses_x").exits(1).complains("there is no session ses_x")
}
