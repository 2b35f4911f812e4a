//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// signalGroup asks the process group to end, or kills it. A group that is gone
// is no error.
func signalGroup(p *os.Process, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(-p.Pid, sig)
}
