package mcp

import (
	"os/exec"
	"syscall"
)

// separate gives the program a process group of its own, and has the kernel ask
// it to end when agentd dies without a chance to do so.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
