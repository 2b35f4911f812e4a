//go:build unix

package interop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that takes well under a second.
const patience = 60 * time.Second

// environment is a clean one: what belongs to the machine or its user, such as
// keys, proxies and package settings, does not reach the processes.
func environment(home string, more ...string) []string {
	return append([]string{
		"PATH=" + filepath.Dir(built.node) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "NO_COLOR=1",
	}, more...)
}

// process is a running program with everything that it started.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
	// grown is closed and replaced when there is more output.
	grown chan struct{}
}

// Write takes the program's output.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.grown)
	p.grown = make(chan struct{})
	return p.out.Write(b)
}

// begin starts a program in a process group of its own. It ends with the test.
func begin(t *testing.T, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{}), grown: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, p, p
	p.cmd.SysProcAttr = group()
	p.cmd.WaitDelay = 2 * time.Second // of grandchildren that keep the output open
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("%s %q said:\n%s", filepath.Base(program), args, tail(p.text(), 6000))
		}
	})
	return p
}

// end asks the program to end, and kills its group if it does not or leaves
// something behind.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(8 * time.Second):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits for output that matches and gives the first group.
func (p *process) says(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(patience)
	for {
		p.mu.Lock()
		m, grown := re.FindSubmatch(p.out.Bytes()), p.grown
		p.mu.Unlock()
		if m != nil {
			return string(m[1])
		}
		select {
		case <-grown:
		case <-p.done:
			if m := re.FindStringSubmatch(p.text()); m != nil {
				return m[1]
			}
			t.Fatalf("%s ended without saying %q", filepath.Base(p.cmd.Path), pattern)
		case <-late:
			t.Fatalf("%s does not say %q", filepath.Base(p.cmd.Path), pattern)
		}
	}
}

// finish runs a program to its end. The error tells how it exited, if it was
// not with 0.
func finish(t *testing.T, dir string, env []string, program string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var o, e bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &o, &e
	cmd.SysProcAttr = group()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("did not end in %v: %w", 2*patience, err)
	}
	return o.String(), e.String(), err
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
