package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// add writes a file into the bench's configuration.
func (b *bench) add(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.configs, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Who waits for a server that does not answer is told so.
func TestRunTellsWhatItWaitsFor(t *testing.T) {
	b := newBench(t)
	b.add("mcp/servers.yaml", "servers:\n  mute: {transport: stdio, command: sleep, args: ['60'], timeouts: {connect: 1500ms}}\n")
	b.add("agents/patient.yaml", "profile_name: patient\nprimary_model: {provider: script, model: m}\ntools: {mcp_servers: [mute]}\n")
	b.agent("patient", "Go").exits(0).complains("agentd: waiting for MCP server mute\n").says(`MCP server "mute" can not be reached`)
}
