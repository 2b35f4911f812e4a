//go:build unix && !linux

package mcp

import (
	"os/exec"
	"syscall"
)

// separate gives the program a process group of its own.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
