package cli

import (
	"os"
	"path/filepath"
	"testing"

	"agentd/client"
)

// The settings of a session are changed and shown at the terminal, and its runs obey them.
func TestSettingsOfASession(t *testing.T) {
	b := newBench(t)
	profile := "profile_name: planner\nprimary_model: {provider: script, model: m, script: plan.yaml}\nmodels: [{provider: script, model: big, script: plan.yaml}]\ntools: {builtin: [propose_plan]}\n"
	script := "turns:\n- tool_calls:\n  - {name: propose_plan, arguments: {plan: 'Act.'}}\n- text: 'I read: {{.Last.Text}}'\n"
	for path, text := range map[string]string{"agents/planner.yaml": profile, "plan.yaml": script} {
		if err := os.WriteFile(filepath.Join(b.configs, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.agent("planner", "Go", "--mode", "plan").exits(3)
	i := b.waiting()[0]
	b.here("interrupts", "answer", i.ID, "--decision", "reject", "--mode", "edit").exits(2).complains("only the approval of a plan", "still open")
	b.here("interrupts", "answer", i.ID, "--decision", "approve", "--mode", "edit").exits(0).says("The session is in mode edit now")
	b.here("sessions", "mode", i.SessionID, "fast").exits(2).complains(`"fast" is not a mode`, "ask, plan, edit")
	b.here("sessions", "mode", i.SessionID, "ask").exits(0).says("mode of session " + i.SessionID + ": ask")
	b.here("sessions", "model", i.SessionID, "script/none").exits(2).complains(`can not use the model "script/none"`, "script/m, script/big")
	b.here("sessions", "model", i.SessionID, "script/big").exits(0).says("script/big")
	b.here("sessions", "thinking", i.SessionID, "hard").exits(2).complains("level of thinking")
	b.here("sessions", "thinking", i.SessionID, "high").exits(0)
	b.here("sessions", "show", i.SessionID).exits(0).says("script/big", "ask", "high")
	b.here("sessions", "tree", i.SessionID).exits(0).says("script/big", "mode_change: ask")
	b.agent("planner", "Go on", "--session", i.SessionID).exits(3)
	i = b.waiting()[0]
	b.here("runs", "show", i.RunID).exits(0).says("session mode", "ask", "script/big", "high")
	b.here("interrupts", "answer", i.ID, "--decision", "approve").exits(0).says("stays in mode ask")
	if s := amends(&client.Interrupt{Kind: "plan"}); s == "" {
		t.Error("nothing says how the mode is switched")
	}
}
