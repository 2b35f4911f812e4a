//go:build unix

package soak

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentd/client"
	"agentd/fault"
)

// patience ends waits for what takes well under a second on an idle machine.
const patience = 2 * time.Minute

// process is a child process and what it says.
type process struct {
	cmd *exec.Cmd
	// said is closed when it has said where it listens, done when it has ended.
	said, done chan struct{}

	mu  sync.Mutex
	url string
	out bytes.Buffer
}

// maxLog bounds what is kept of a process's words, so that half an hour fits.
const maxLog = 1 << 20

var (
	listens = regexp.MustCompile(`listens on (http://127\.0\.0\.1:\d+)`)
	crashed = regexp.MustCompile(`(?m)^(panic: |fatal error: |runtime: |SIG[A-Z]+: |WARNING: DATA RACE)`)
)

// Write takes what the process says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out.Len() < maxLog {
		p.out.Write(b)
	}
	if p.url == "" {
		if m := listens.FindSubmatch(p.out.Bytes()); m != nil {
			p.url = string(m[1])
			close(p.said)
		}
	}
	return len(b), nil
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// complaints gives the lines of the log that nobody should have to read.
func (p *process) complaints() string {
	log := p.text()
	if at := crashed.FindStringIndex(log); at != nil {
		return log[at[0]:]
	}
	var bad strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") {
			bad.WriteString(line)
		}
	}
	return bad.String()
}

// run starts the binary.
func (w *world) run(args ...string) *process {
	w.t.Helper()
	p := &process{said: make(chan struct{}), done: make(chan struct{}), cmd: exec.Command(w.bin, args...)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = w.home, p, p
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "LANG=C.UTF-8"}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // it is killed, as a rule
		close(p.done)
	}()
	return p
}

// up waits until a process listens.
func (w *world) up(p *process) string {
	w.t.Helper()
	select {
	case <-p.said:
	case <-p.done:
		w.t.Fatalf("%v ended by itself:\n%s", p.cmd.Args, tail(p.text()))
	case <-time.After(patience):
		w.t.Fatalf("%v does not say where it listens:\n%s", p.cmd.Args, tail(p.text()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// server is one life of agentd.
type server struct {
	*process
	url    string
	http   *http.Client
	client *client.Client
}

// launch starts a server, which is not ready yet.
func (w *world) launch() *process {
	w.starts++
	return w.run("serve", "--addr", "127.0.0.1:0", "--data", w.data, "--configs", filepath.Join(w.home, "configs"))
}

// start starts a server and tells everybody when it takes requests.
func (w *world) start() *server {
	w.t.Helper()
	p := w.launch()
	s := &server{process: p, url: w.up(p)}
	// Connections to a server die with it.
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var err error
	if s.client, err = client.New(s.url, &client.Options{HTTP: s.http, Key: w.key}); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.now = s
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	return s
}

// kill is kill -9.
func (w *world) kill(p *process) {
	w.t.Helper()
	select {
	case <-p.done:
		w.t.Fatalf("agentd ended by itself:\n%s", tail(p.text()))
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	<-p.done
	w.heed(p)
}

// heed fails the test if a process said that something is wrong with it.
func (w *world) heed(p *process) {
	w.t.Helper()
	if bad := p.complaints(); bad != "" {
		w.t.Errorf("%v complained:\n%s", p.cmd.Args[1:2], tail(bad))
	}
}

// current is the newest server, which may be dead.
func (w *world) current() (s *server, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.changed
}

// retry calls f with the server, and with the next one, until it is through or has
// an error that no kill explains.
func (w *world) retry(ctx context.Context, what string, f func(s *server) (through bool, err error)) error {
	for {
		s, changed := w.current()
		through, err := f(s)
		if through || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-time.After(25 * time.Millisecond): // nobody may have been killed
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// serious is an error that a killed server does not explain.
func serious(err error) error {
	if fault.KindOf(err) == fault.Unavailable {
		return nil
	}
	return err
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "agentd")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "agentd/cmd/agentd").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

func tail(s string) string {
	if n := len(s) - 8000; n > 0 {
		return "…" + s[n:]
	}
	return s
}
