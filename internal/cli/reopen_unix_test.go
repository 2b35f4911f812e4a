//go:build unix

package cli

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What logrotate does: it moves the files and sends SIGHUP.
func TestLogFilesAreReopened(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "x.log")
	b.add("agentd.yaml", "log: {destinations: ['file:"+file+"'], max_size_mb: 0}\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := after("listens on", func(string) {
		defer cancel()
		if err := os.Rename(file, file+".old"); err != nil {
			t.Error(err)
			return
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Error(err)
			return
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range 2000 {
			if _, err := os.Stat(file); err == nil {
				return
			}
			<-tick.C
		}
		t.Error("the file was not opened again")
	})
	b.runIn(ctx, &buffer{other: stderr}, "serve", "--addr", "127.0.0.1:0", "--data", b.data, "--configs", b.configs).exits(0)
}
