package cli

import (
	"strings"
	"testing"

	"agentd/client"
)

// A conversation is compacted by itself and by hand, and people see both.
func TestCompactASession(t *testing.T) {
	b := newBench(t)
	b.add("agents/small.yaml", "profile_name: small\nprimary_model: {provider: script, model: m, script: small.yaml}\nmax_context_tokens: 1700\ncompaction: {keep_recent_tokens: 200}\n")
	b.add("small.yaml", "turns:\n- when: {user: 'Summarise the conversation above'}\n  text: '<summary>It was about peas.</summary>'\nfallthrough: 'peas {{len .User}}'\n")
	long := strings.Repeat("peas ", 600)
	b.agent("small", long).exits(0)
	id := lines[client.Session](b.here("sessions", "ls", "--json").exits(0))[0].ID
	b.agent("small", long, "--session", id).exits(0).says("compacted (the context window is nearly full): about")
	b.here("sessions", "show", id).exits(0).says("It was about peas.", "a summary for the model from here on", "by script/m")
	b.here("sessions", "compact", id, "--instructions", "dwell on peas").exits(0).says("summarised", "script/m")
	b.here("sessions", "compact", "ses_x").exits(1).complains("there is no session ses_x")
	b.here("sessions", "compact", id, "--profile", "nobody").complains("nobody")
	runs := lines[client.Run](b.here("runs", "ls", "--json").exits(0))
	b.here("runs", "show", runs[1].ID).exits(0).says("compacted (the context window")
}
