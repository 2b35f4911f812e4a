//go:build unix && !linux

package interop

import "syscall"

// group puts a program into a process group of its own.
func group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
