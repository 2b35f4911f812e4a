package fault

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/sim"
	"agentd/model/script"
)

// patience is how long anything may take that takes a few seconds at most.
const patience = 60 * time.Second

// phases are what happens to a run as soon as the fault can hit it.
var phases = []string{"alone", "cancel", "steer", "interrupt", "rollback", "restart"}

// world is a runtime on a data folder, beside a simulator.
type world struct {
	t   *testing.T
	cfg agentd.Config
	rt  *agentd.Runtime
	sim *httptest.Server
}

// profileYAML names the provider, the address and the tools.
const profileYAML = `profile_name: p
primary_model: {provider: %s, model: m, base_url: "%s", api_key_env: KEY}
tools: {mcp_servers: [s]}
approval_mode: never
retry: {max_retries: 1, base_delay: 5ms, max_delay: 200ms}
model_idle_timeout_seconds: 1
model_total_timeout_seconds: 3
tool_timeout_seconds: 2
max_run_time_seconds: 20
`

const serversYAML = `servers:
  s:
    transport: stdio
    command: %q
    env: {%s: %q}
    timeouts: {connect: 1s, call: 500ms}
    effects: {act: %s}
`

func newWorld(t *testing.T, provider, turns, mode, effect string) *world {
	t.Helper()
	return makeWorld(t, turns, func(base, exe string) map[string]string {
		if provider == "openai" {
			base += "/v1"
		}
		return map[string]string{"agents/p.yaml": fmt.Sprintf(profileYAML, provider, base), "mcp/servers.yaml": fmt.Sprintf(serversYAML, exe, modeVar, mode, effect)}
	})
}

// makeWorld makes a world with the files of a configuration: base is the simulator's
// address, exe the program that is an MCP server where modeVar is set.
func makeWorld(t *testing.T, turns string, files func(base, exe string) map[string]string) *world {
	t.Helper()
	s, err := script.Parse("fault.yaml", []byte("name: fault\nturns:\n  - {when: {user: \"next$\"}, text: \"I am here.\"}\n"+turns))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sim: httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range files(w.sim.URL, exe) {
		path := filepath.Join(dir, "configs", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { return "k", name == "KEY" }
	w.cfg = agentd.Config{Configs: filepath.Join(dir, "configs"), Data: filepath.Join(dir, "data"), Workspace: dir, Env: env}
	w.open()
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	if w.rt, err = agentd.Open(w.t.Context(), w.cfg); err != nil {
		w.t.Fatal(err)
	}
}

// close ends everything. It must not take long, whatever is under way.
func (w *world) close() {
	w.t.Helper()
	began := time.Now()
	if w.rt != nil {
		if err := w.rt.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	}
	if d := time.Since(began); d > 20*time.Second {
		w.t.Errorf("closing took %v", d)
	}
	w.sim.CloseClientConnections()
	w.sim.Close()
}

// play drives one run through a phase and holds it, and its session, to what must
// be afterwards. when is the event at which the phase begins.
func (w *world) play(phase string, when event.Type) {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", Input: agentd.Text("go")})
	if err != nil {
		t.Fatal(err)
	}
	if phase != "alone" {
		for ev, err := range w.rt.Watch(ctx, r.ID, 0) {
			if err != nil || ev.Type == when {
				break
			}
		}
	}
	allowed := func(err error) {
		t.Helper()
		// The run may have ended first: that is the other order of the race.
		if err != nil && fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", phase, err)
		}
	}
	start := func(busy string) {
		t.Helper()
		_, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", SessionID: r.SessionID, Input: agentd.Text("next"), WhenBusy: engine.WhenBusy(busy)})
		allowed(err)
	}
	switch phase {
	case "cancel":
		_, err := w.rt.Cancel(ctx, r.ID, "enough")
		allowed(err)
	case "steer":
		allowed(w.rt.Steer(ctx, r.ID, agentd.Text("next")))
	case "interrupt", "rollback":
		start(phase)
	case "restart":
		if err := w.rt.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		w.open()
	}
	w.settled(ctx, r, enough)
	if phase == "cancel" || phase == "interrupt" || phase == "rollback" {
		if v, err := w.rt.Get(ctx, r.ID); err != nil || v.Status == "running" {
			t.Errorf("%+v, %v", v, err)
		}
	}
	w.takesNext(ctx, r.SessionID)
}

// takesNext sends a session its next message.
func (w *world) takesNext(ctx context.Context, session string) {
	t := w.t
	t.Helper()
	next, err := w.rt.Start(ctx, agentd.StartRequest{Profile: "p", SessionID: session, Input: agentd.Text("next")})
	if err != nil {
		t.Fatalf("the session does not take the next message: %v", err)
	}
	v, err := w.rt.Wait(ctx, next.ID)
	if err != nil || v.Status != "completed" || v.Output != "I am here." {
		t.Fatalf("the next message: %+v, %v", v, err)
	}
}

// enough is what a person says who has had enough: of calls that may have happened,
// which is all that these runs ask about.
func enough(i *agentd.Interrupt) (req agentd.AnswerRequest, expected bool) {
	return agentd.AnswerRequest{Interrupt: i.ID, Decision: "skip"}, i.Kind == "uncertain"
}

// settled waits until the run has ended or waits for a named person, and answers
// as that person does.
func (w *world) settled(ctx context.Context, r *agentd.Run, person func(*agentd.Interrupt) (req agentd.AnswerRequest, expected bool)) {
	t := w.t
	t.Helper()
	for ev, err := range w.rt.Watch(ctx, r.ID, 0) {
		if err != nil {
			t.Fatalf("the run neither ends nor waits: %v", err)
		}
		if ev.Type != event.CheckpointRequired {
			continue
		}
		v, err := w.rt.Get(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range v.Interrupts {
			answer, expected := person(i)
			if !expected {
				t.Errorf("an interrupt of kind %s", i.Kind)
			}
			if answer.Interrupt == "" {
				continue // nobody says anything
			}
			if _, err := w.rt.Answer(ctx, answer); err != nil && fault.KindOf(err) != fault.Conflict {
				t.Error(err)
			}
		}
	}
	v, err := w.rt.Get(ctx, r.ID)
	if err != nil || v.Status != "completed" && v.Status != "failed" && v.Status != "cancelled" {
		t.Fatalf("%+v, %v", v, err)
	}
	if v.Status == "failed" && (v.Error == nil || v.Error.Message == "") {
		t.Errorf("it failed without a reason: %+v", v)
	}
}

// all runs cases side by side, because they mostly wait, and then checks that
// nothing of them is left.
func all(t *testing.T, cases map[string]func(t *testing.T)) {
	t.Helper()
	before := runtime.NumGoroutine()
	seats := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for name, f := range cases {
		wg.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			t.Run(name, f)
		})
	}
	wg.Wait()
	deadline := time.After(patience / 2)
	for {
		left := leftovers(before)
		if left == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("left behind: %s", left)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leftovers says what is there that was not, or "". Processes and sockets can be
// looked at on Linux only.
func leftovers(goroutines int) string {
	var left []string
	if n := runtime.NumGoroutine(); n > goroutines {
		buf := make([]byte, 1<<20)
		left = append(left, fmt.Sprintf("%d goroutines of %d:\n%s", n-goroutines, n, buf[:runtime.Stack(buf, true)]))
	}
	for _, path := range glob("/proc/self/task/*/children") {
		if b, err := os.ReadFile(path); err == nil && len(strings.Fields(string(b))) > 0 {
			left = append(left, "processes "+string(b))
		}
	}
	for _, fd := range glob("/proc/self/fd/*") {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			left = append(left, to)
		}
	}
	return strings.Join(left, "; ")
}

func glob(pattern string) []string {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		panic(err)
	}
	return paths
}
