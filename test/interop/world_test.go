//go:build unix

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

// setup describes what a test needs.
type setup struct {
	// scripts are files of testdata/scripts that the simulator serves; each
	// answers the models that it names.
	scripts []string
	// agents are further keys of profiles, as YAML, by name. Every profile's
	// model is that of its own name, served by the simulator.
	agents map[string]string
	// anthropic are the agents whose model is spoken to in Anthropic's protocol;
	// the others speak OpenAI's.
	anthropic []string
	// servers are MCP servers by name.
	servers map[string]any
	// settings is agentd.yaml.
	settings string
}

// world is an agentd server with models behind it.
type world struct {
	t *testing.T
	// url is the server's address, sim the simulator's.
	url, sim string
	client   *client.Client
	// work is the folder that the server works in.
	work    string
	process *process
}

// simulate starts a simulator and gives its address.
func simulate(t *testing.T, more []string, scripts ...string) string {
	t.Helper()
	args := append([]string{"sim", "--addr", "127.0.0.1:0"}, more...)
	for _, s := range scripts {
		path, err := filepath.Abs(filepath.Join("testdata", "scripts", s))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--script", path)
	}
	dir := t.TempDir()
	return begin(t, dir, environment(dir), built.agentd, args...).says(t, `listens on (http://127\.0\.0\.1:\d+)`)
}

// start starts a simulator and a server.
func start(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, sim: simulate(t, nil, s.scripts...), work: t.TempDir()}
	home := t.TempDir()
	configs := filepath.Join(home, "configs")
	for name, more := range s.agents {
		provider, base := "openai", w.sim+"/v1"
		for _, a := range s.anthropic {
			if a == name {
				provider, base = "anthropic", w.sim
			}
		}
		write(t, filepath.Join(configs, "agents", name+".yaml"), fmt.Sprintf(
			"profile_name: %s\nprofile_version: 1.2.3\nprimary_model: {provider: %s, model: %s, base_url: %q}\napproval_mode: never\nretry: {enabled: false}\n%s\n",
			name, provider, name, base, more))
	}
	if len(s.servers) > 0 {
		raw, err := json.Marshal(map[string]any{"servers": s.servers}) // JSON is YAML
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(configs, "mcp", "servers.yaml"), string(raw))
	}
	if s.settings != "" {
		write(t, filepath.Join(configs, "agentd.yaml"), s.settings)
	}
	w.process = begin(t, w.work, environment(home), built.agentd, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(home, "data"), "--configs", configs)
	w.url = w.process.says(t, `listens on (http://127\.0\.0\.1:\d+)`)
	var err error
	if w.client, err = client.New(w.url, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// record is a run with its events.
type record struct {
	t      *testing.T
	run    *client.Run
	events []event.Event
}

// do runs an agent to its end. seen, if it is not nil, is told each event.
func (w *world) do(t *testing.T, agent, input string, seen func(runID string, e event.Event)) *record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := w.client.Start(ctx, client.StartRequest{Profile: agent, Input: []message.Block{message.Text(input)}, Mode: "autonomous"})
	if err != nil {
		t.Fatal(err)
	}
	rec := &record{t: t}
	for e, err := range w.client.Watch(ctx, r.ID, 0) {
		if err != nil {
			t.Fatalf("watching run %s: %v", r.ID, err)
		}
		rec.events = append(rec.events, e)
		if seen != nil {
			seen(r.ID, e)
		}
	}
	if rec.run, err = w.client.Run(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	if !rec.run.Ended() {
		t.Errorf("the events ended and the run is %s", rec.run.Status)
	}
	return rec
}

// completed checks that the run did what it was asked.
func (r *record) completed() *record {
	r.t.Helper()
	if r.run.Status != client.Completed {
		r.t.Errorf("the run is %s: %+v", r.run.Status, r.run.Error)
		r.dump()
	}
	return r
}

func (r *record) dump() {
	for _, e := range r.events {
		if e.Type != event.TextDelta {
			raw, _ := json.Marshal(e)
			r.t.Logf("%s", tail(string(raw), 1500))
		}
	}
}

// tools gives the payloads of the events of one type about one tool.
func (r *record) tools(typ event.Type, name string) []*event.Tool {
	var found []*event.Tool
	for _, e := range r.events {
		if p, ok := e.Data.(*event.Tool); ok && e.Type == typ && p.Name == name {
			found = append(found, p)
		}
	}
	return found
}

// result gives the one result of a tool that was called once and succeeded.
func (r *record) result(name string) *event.Tool {
	r.t.Helper()
	done, failed := r.tools(event.ToolCompleted, name), r.tools(event.ToolFailed, name)
	if len(done) != 1 || len(failed) != 0 {
		r.t.Errorf("%s: %d results and %d failures", name, len(done), len(failed))
		r.dump()
		r.t.FailNow()
	}
	return done[0]
}

// failure gives the one failure of a tool that was called once.
func (r *record) failure(name string) *event.Tool {
	r.t.Helper()
	failed := r.tools(event.ToolFailed, name)
	if len(failed) != 1 {
		r.t.Errorf("%s: %d failures", name, len(failed))
		r.dump()
		r.t.FailNow()
	}
	return failed[0]
}
