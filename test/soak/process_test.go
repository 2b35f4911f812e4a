//go:build unix

package soak

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"agentd/client"
	"agentd/fault"
	"agentd/test/proc"
)

// patience ends waits for what takes well under a second on an idle machine.
const patience = proc.Patience

// run starts the binary.
func (w *world) run(args ...string) *proc.Process {
	w.t.Helper()
	return proc.Start(w.t, proc.Command{Path: w.bin, Args: args, Dir: w.home,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "LANG=C.UTF-8"}})
}

// server is one life of agentd.
type server struct {
	*proc.Process
	url    string
	http   *http.Client
	client *client.Client
}

// launch starts a server, which is not ready yet.
func (w *world) launch() *proc.Process {
	w.starts++
	return w.run("serve", "--addr", "127.0.0.1:0", "--data", w.data, "--configs", filepath.Join(w.home, "configs"))
}

// start starts a server and tells everybody when it takes requests.
func (w *world) start() *server {
	w.t.Helper()
	p := w.launch()
	s := &server{Process: p, url: p.Up()}
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
func (w *world) kill(p *proc.Process) {
	w.t.Helper()
	p.Kill()
	w.heed(p)
}

// heed fails the test if a process said that something is wrong with it.
func (w *world) heed(p *proc.Process) {
	w.t.Helper()
	if bad := p.Complaints(); bad != "" {
		w.t.Errorf("%v complained:\n%s", p.Cmd.Args[1:2], proc.Tail(bad))
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
