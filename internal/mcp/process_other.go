//go:build !unix

package mcp

import (
	"os"
	"os/exec"
)

// separate does nothing: there are no process groups here.
func separate(*exec.Cmd) {}

// signalGroup kills the process itself. What it started goes on, and there is
// no way to ask it to end.
func signalGroup(p *os.Process, kill bool) {
	if kill {
		_ = p.Kill()
	}
}
