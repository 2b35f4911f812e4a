package postgres

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const tcpUserTimeout = 0x12

// unanswered ends a connection on which what was sent is not acknowledged. Without it the
// connection is only given up later.
func unanswered(fd uintptr) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(silentMost.Milliseconds()))
}
