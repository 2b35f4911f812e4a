//go:build unix

package people

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"agentd/client"
	"agentd/test/proc"
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
	*proc.Process
	url    string
	http   *http.Client
	client *client.Client
}

// launch starts a server. It is not ready yet.
func (w *world) launch() *server {
	w.t.Helper()
	w.starts++
	return &server{Process: proc.Start(w.t, proc.Command{Path: w.bin, Args: []string{"serve", "--addr", "127.0.0.1:0", "--data", w.data, "--configs", w.configs}, Dir: w.home,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "LANG=C.UTF-8"}})}
}

// ready waits until the server takes requests and tells everybody.
func (w *world) ready(s *server) {
	w.t.Helper()
	s.url = s.Up()
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
	s.Kill()
	w.complain(s)
	if s.http != nil {
		s.http.CloseIdleConnections()
	}
}

// complain fails the test if a server that has ended said that something is wrong
// with it: whatever people noticed of it, nothing here may be an error.
func (w *world) complain(s *server) {
	w.t.Helper()
	if bad := s.Complaints(); bad != "" {
		w.t.Errorf("the server of start %d complained:\n%s", w.starts, proc.Tail(bad))
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
