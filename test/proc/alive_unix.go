//go:build unix

package proc

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// NoneAlive waits until no process holds a lock on a file, which tool servers do as long
// as they run: those of an agentd that was killed must end, too.
func NoneAlive(path string, patience time.Duration) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	late := time.After(patience)
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("a tool server still runs %v after its agentd ended: %w", patience, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
