//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A process that is being started has a copy of every descriptor until its exec.
// The lock must not live as long as that copy.
func TestLockEndsWithItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	l, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	fork, err := syscall.Dup(int(l.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fork)
	if _, err := takeLock(path); err == nil {
		t.Fatal("the lock is taken twice")
	}
	l.release()
	again, err := takeLock(path)
	if err != nil {
		t.Fatalf("the lock is held by nobody: %v", err)
	}
	again.release()
}
