package peers

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/internal/sim"
	"agentd/message"
	"agentd/model/script"
	"agentd/tool"
)

// patience ends waits for what takes a moment.
const patience = time.Minute

// world is a runtime on a data folder, with its HTTP API.
type world struct {
	t    *testing.T
	cfg  agentd.Config
	rt   *agentd.Runtime
	http *httptest.Server
}

// newWorld makes one from the files of a configuration.
func newWorld(t *testing.T, files map[string]string, tools ...tool.Tool) *world {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, "configs", name), text)
	}
	env := func(name string) (string, bool) { return "k", name == "KEY" }
	w := &world{t: t, cfg: agentd.Config{Configs: filepath.Join(dir, "configs"), Data: filepath.Join(dir, "data"), Workspace: dir, Tools: tools, Env: env}}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	if w.rt, err = agentd.Open(context.Background(), w.cfg); err != nil {
		w.t.Fatal(err)
	}
	h, err := w.rt.Handler()
	if err != nil {
		w.t.Fatal(err)
	}
	w.http = httptest.NewServer(h)
}

func (w *world) close() {
	w.t.Helper()
	w.http.CloseClientConnections()
	w.http.Close()
	if err := w.rt.Close(); err != nil {
		w.t.Error(err)
	}
}

// restart closes everything and opens it again on the same data.
func (w *world) restart() {
	w.t.Helper()
	w.close()
	w.open()
}

// client is one of the HTTP API, with a key or without.
func (w *world) client(key string) *client.Client {
	w.t.Helper()
	c, err := client.New(w.http.URL, &client.Options{Key: key})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// until follows a run to an event.
func until(ctx context.Context, t *testing.T, c *client.Client, run string, want event.Type) event.Event {
	t.Helper()
	for ev, err := range c.Watch(ctx, run, 0) {
		if err != nil {
			t.Fatalf("run %s: %v", run, err)
		}
		if ev.Type == want {
			return ev
		}
		if ev.Type.Terminal() {
			t.Fatalf("run %s: %s %+v before any %s", run, ev.Type, ev.Data, want)
		}
	}
	t.Fatalf("run %s told nothing", run)
	return event.Event{}
}

func text(s string) []message.Block { return []message.Block{message.Text(s)} }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// simulate starts a model server that keeps the requests it gets.
func simulate(t *testing.T, turns string) *httptest.Server {
	t.Helper()
	s, err := script.Parse("turns", []byte("turns:\n"+turns))
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}, Record: 1000}))
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	return ts
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
