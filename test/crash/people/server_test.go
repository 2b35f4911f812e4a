//go:build unix

package people

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
)

// patience is how long anything may take that takes well under a second.
const patience = 60 * time.Second

// world is one data folder with servers that live on it, one after the other.
type world struct {
	t                   *testing.T
	bin                 string
	data, configs, home string
	ledger              string
	mu                  sync.Mutex
	now                 *server
	changed             chan struct{} // closed when another server is ready
	starts              int
}

// server is one life of agentd.
type server struct {
	cmd    *exec.Cmd
	url    string
	http   *http.Client
	client *client.Client
	done   chan struct{}
	// said is closed when the server has said where it listens.
	said chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

var listens = regexp.MustCompile(`listens on (http://127\.0\.0\.1:\d+)`)

// Write takes what the server says on standard error.
func (s *server) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(b)
	if s.url == "" {
		if m := listens.FindSubmatch(s.out.Bytes()); m != nil {
			s.url = string(m[1])
			close(s.said)
		}
	}
	return len(b), nil
}

func (s *server) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// launch starts a server. It is not ready yet.
func (w *world) launch() *server {
	w.t.Helper()
	s := &server{done: make(chan struct{}), said: make(chan struct{})}
	s.cmd = exec.Command(w.bin, "serve", "--addr", "127.0.0.1:0", "--data", w.data, "--configs", w.configs)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = w.home, s, s
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "LANG=C.UTF-8"}
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.starts++
	go func() {
		_ = s.cmd.Wait() // it is killed, as a rule
		close(s.done)
	}()
	return s
}

// ready waits until the server takes requests and tells everybody.
func (w *world) ready(s *server) {
	w.t.Helper()
	select {
	case <-s.said:
	case <-s.done:
		w.t.Fatalf("agentd ended by itself at start %d:\n%s", w.starts, s.text())
	case <-time.After(patience):
		w.t.Fatalf("agentd does not say where it listens:\n%s", s.text())
	}
	// Connections to a server die with it.
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	var err error
	if s.client, err = client.New(s.url, &client.Options{HTTP: s.http}); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.now = s
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
}

// start starts a server and waits until it is ready.
func (w *world) start() *server {
	w.t.Helper()
	s := w.launch()
	w.ready(s)
	return s
}

// kill ends a server as a power cut would, as far as a process can tell.
func (w *world) kill(s *server) {
	w.t.Helper()
	select {
	case <-s.done:
		w.t.Fatalf("agentd ended by itself:\n%s", tail(s.text()))
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	<-s.done
	w.complain(s)
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// complain fails the test if a server that has ended said that something is wrong
// with it: whatever people noticed of it, nothing here may be an error.
func (w *world) complain(s *server) {
	w.t.Helper()
	if bad := complaints(s.text()); bad != "" {
		w.t.Errorf("the server of start %d complained:\n%s", w.starts, tail(bad))
	}
}

// complaints gives the lines of a server's log that nobody should have to read. A
// panic, a fatal error or a data race is told to the end of the log.
func complaints(log string) string {
	if at := crashed.FindStringIndex(log); at != nil {
		return complaints(log[:at[0]]) + log[at[0]:]
	}
	var bad strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") {
			bad.WriteString(line)
		}
	}
	return bad.String()
}

var crashed = regexp.MustCompile(`(?m)^(panic: |fatal error: |runtime: |SIG[A-Z]+: |WARNING: DATA RACE)`)

func TestComplaints(t *testing.T) {
	const info, bad = "time=x level=INFO msg=\"a panic: was told\"\n", "time=x level=ERROR msg=\"no disk\"\n"
	const panics = "panic: oops\n\ngoroutine 1 [running]:\n"
	for log, want := range map[string]string{
		"": "", info: "", info + bad + info: bad, bad + bad: bad + bad, info + panics: panics, bad + info + panics: bad + panics,
		info + "WARNING: DATA RACE\nRead at\n": "WARNING: DATA RACE\nRead at\n", "fatal error: all goroutines are asleep": "fatal error: all goroutines are asleep",
	} {
		if got := complaints(log); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

// current is the newest server, which may be dead.
func (w *world) current() (s *server, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.changed
}

// retry calls f with the current server, again with the next one, until it says
// that it is through or has an error that no kill explains.
func (w *world) retry(ctx context.Context, what string, f func(s *server) (through bool, err error)) error {
	for n := 0; ; n++ {
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

// build builds the binary as anybody would.
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
