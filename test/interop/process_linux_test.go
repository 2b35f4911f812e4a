package interop

import "syscall"

// group puts a program into a process group of its own, and ends it when the
// tests are ended from outside.
func group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
