//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long anything may take that takes well under a second on an idle
// machine.
const Patience = 2 * time.Minute

// Build builds the binary as anybody would, with further arguments of go build, and
// gives its path.
func Build(t testing.TB, args ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "agentd")
	cmd := exec.Command("go", append(append([]string{"build", "-o", bin}, args...), "agentd/cmd/agentd")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// Command is what is started. Path is required, everything else may be zero.
type Command struct {
	Path string
	Args []string
	// Dir is the folder it runs in; empty: this one's.
	Dir string
	// Env is its whole environment; nil: this process's.
	Env []string
	// Ready recognises the line that says that it is up, whose first group is then its
	// address; nil: the lines of agentd.
	Ready *regexp.Regexp
}

// Process is a process that was started.
type Process struct {
	Cmd *exec.Cmd

	t     testing.TB
	ready *regexp.Regexp
	// said is closed when it has said that it is up, done when it has ended.
	said, done chan struct{}

	mu         sync.Mutex
	up         bool
	url        string
	line       []byte // the one that is not complete
	head, tail []byte
	bad        []byte
	err        error // of its end
}

// listens are the lines with which servers, simulators and workers of agentd say that
// they are up.
var listens = regexp.MustCompile(`(?: listens on | runs of [^;]+; )(http://[^\s/]+)`)

// kept bounds what is kept of the beginning of a process's words, and as much of the end.
const kept = 256 << 10

// Start starts a process, which is not up yet. It is killed when the test ends.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p := &Process{t: t, ready: c.Ready, said: make(chan struct{}), done: make(chan struct{}), Cmd: exec.Command(c.Path, c.Args...)}
	if p.ready == nil {
		p.ready = listens
	}
	p.Cmd.Dir, p.Cmd.Env, p.Cmd.Stdout, p.Cmd.Stderr = c.Dir, c.Env, p, p
	// What it started may still have its output when it is dead.
	p.Cmd.WaitDelay = 10 * time.Second
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := p.Cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // unless it has ended
		<-p.done
	})
	return p
}

// Write takes what the process says.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = append(p.line, b...)
	for {
		n := strings.IndexByte(string(p.line), '\n')
		if n < 0 {
			return len(b), nil
		}
		p.take(string(p.line[:n+1]))
		p.line = p.line[n+1:]
	}
}

// take looks at one line. p is locked.
func (p *Process) take(line string) {
	if len(p.head) < kept {
		p.head = append(p.head, line...)
	} else if p.tail = append(p.tail, line...); len(p.tail) > 2*kept {
		p.tail = append(p.tail[:0], p.tail[len(p.tail)-kept:]...)
	}
	if len(p.bad) > 0 && crashed.Match(p.bad) || crashed.MatchString(line) || strings.Contains(line, "level=ERROR") {
		if len(p.bad) < kept {
			p.bad = append(p.bad, line...)
		}
	}
	if p.up {
		return
	}
	if m := p.ready.FindStringSubmatch(line); m != nil {
		p.up = true
		if len(m) > 1 {
			p.url = m[1]
		}
		close(p.said)
	}
}

// crashed is how the words begin with which a Go program dies.
var crashed = regexp.MustCompile(`(?m)^(panic: |fatal error: |runtime: |SIG[A-Z]+: |WARNING: DATA RACE)`)

// Complaints gives the lines that nobody should have to read: errors, and everything
// that follows a panic, a fatal error or a data race.
func (p *Process) Complaints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.bad)
}

// Text is what the process said, the middle left out if it was much.
func (p *Process) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.head) + string(p.tail) + string(p.line)
}

// Up waits until the process has said that it is up and gives its address, or "".
func (p *Process) Up() string {
	p.t.Helper()
	if err := p.WaitUp(); err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// WaitUp is Up for goroutines that must not end the test.
func (p *Process) WaitUp() error {
	select {
	case <-p.said:
		return nil
	case <-p.done:
		select {
		case <-p.said:
			return nil
		default:
			return fmt.Errorf("%v ended by itself: %w\n%s", p.Cmd.Args, p.end(), Tail(p.Text()))
		}
	case <-time.After(Patience):
		return fmt.Errorf("%v does not say that it is up\n%s", p.Cmd.Args, Tail(p.Text()))
	}
}

func (p *Process) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// URL is the address that it said, or "".
func (p *Process) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// Done is closed when the process has ended and all that it said is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal. One that has ended is left alone.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// Kill is kill -9, and waits for the end. A process that had ended before is an error.
func (p *Process) Kill() {
	p.t.Helper()
	select {
	case <-p.done:
		p.t.Errorf("%v ended by itself: %v\n%s", p.Cmd.Args, p.end(), Tail(p.Text()))
		return
	default:
	}
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop is SIGTERM: the process must end by itself, without an error, in time.
func (p *Process) Stop(within time.Duration) {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		if err := p.end(); err != nil {
			p.t.Errorf("%v was told to stop: %v\n%s", p.Cmd.Args, err, Tail(p.Text()))
		}
	case <-time.After(within):
		p.t.Errorf("%v was told to stop and did not in %v\n%s", p.Cmd.Args, within, Tail(p.Text()))
		p.Signal(syscall.SIGKILL)
		<-p.done
	}
}

// Tail gives the end of a long text.
func Tail(s string) string {
	if n := len(s) - 8000; n > 0 {
		return "…" + s[n:]
	}
	return s
}
