//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/client"
	"agentd/test/proc"
)

// people is how many work at the same time.
const people = 10

// world is one data folder with servers that live on it, one after the other.
type world struct {
	t         *testing.T
	bin, home string
	data      string
	ledger    string
	key       string // of the operator
	seed      uint64
	book      book

	mu      sync.Mutex
	now     *server
	changed chan struct{} // closed when another server is ready
	starts  int
}

// TestSoak is the whole story: a server that is left alone and must stay as it is,
// and one that is killed again and again and must lose nothing.
func TestSoak(t *testing.T) {
	length := 2 * time.Minute
	if v := os.Getenv("AGENTD_SOAK"); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatalf("AGENTD_SOAK: %v", err)
		}
	}
	seed := uint64(time.Now().UnixNano() % 1e9)
	if v := os.Getenv("AGENTD_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("AGENTD_SEED: %v", err)
		}
	}
	t.Logf("AGENTD_SOAK=%v AGENTD_SEED=%d", length, seed)
	began := time.Now()
	lap := func(what string) { t.Logf("%v: %s", time.Since(began).Round(time.Second), what) }
	w := newWorld(t, seed)
	ctx, cancel := context.WithTimeout(t.Context(), 2*length+4*patience)
	defer cancel()
	clerks, dismiss := context.WithCancel(ctx)
	var office sync.WaitGroup
	s := w.start()
	lap("the server is up")
	office.Go(func() { w.clerk(clerks) })
	t.Cleanup(func() {
		if s, _ := w.current(); t.Failed() {
			t.Logf("the last server said:\n%s", proc.Tail(s.Text()))
		}
	})

	w.alone(ctx, s, length/2)
	lap("it was left alone")
	if !t.Failed() {
		w.kills(ctx, s, length-length/2)
		lap("it was killed often enough")
	}
	if !t.Failed() {
		w.settle(ctx)
	}
	dismiss()
	office.Wait()
	lap("nothing goes on")
	if !t.Failed() {
		w.check(ctx)
	}
	lap("receipts are checked")
	w.end()
	lap("the doctor is through")
}

// alone leaves a server alone under load. What it holds must not grow, and must be
// given back when the load is gone.
func (w *world) alone(ctx context.Context, s *server, length time.Duration) {
	// Once everything, so that what is kept for good is there.
	w.load(ctx, 0, func() { <-time.After(length / 10) })
	before := w.quiet(ctx, s, nil)
	w.t.Logf("it is warm: %v", before)
	watching, stop := context.WithCancel(ctx)
	var all []gauges
	var watch sync.WaitGroup
	watch.Go(func() { all = w.watch(watching, s) })
	w.load(ctx, 1, func() { <-time.After(length - length/10) })
	stop()
	watch.Wait()
	if !w.t.Failed() {
		w.flat(all)
		after := w.quiet(ctx, s, &before)
		w.t.Logf("left alone: %d runs; before the load %v, after it %v", w.book.len(), before, after)
	}
}

// kills kills the server at random moments, every few seconds, under load.
func (w *world) kills(ctx context.Context, s *server, length time.Duration) {
	rng := rand.New(rand.NewPCG(w.seed, 1<<32))
	end := time.After(length)
	kills := 0
	w.load(ctx, 2, func() {
		for !w.t.Failed() {
			moment := time.Duration(200+rng.IntN(5_000)) * time.Millisecond
			if rng.IntN(4) == 0 {
				moment = time.Duration(rng.IntN(100)) * time.Millisecond // while it goes on with what it finds
			}
			select {
			case <-end:
				return
			case <-time.After(moment):
			}
			w.kill(s.Process)
			kills++
			if rng.IntN(5) == 0 { // and while it starts
				p := w.launch()
				<-time.After(time.Duration(rng.IntN(60)) * time.Millisecond)
				w.kill(p)
				kills++
			}
			s = w.start()
		}
	})
	w.t.Logf("%d kills, %d runs", kills, w.book.len())
	if kills == 0 {
		w.t.Error("nothing was killed: the soak was too short")
	}
}

// load has everybody work while f lasts, and then finish what they began.
func (w *world) load(ctx context.Context, phase int, f func()) {
	stop := make(chan struct{})
	var working sync.WaitGroup
	for n := range people {
		p := &person{w: w, name: fmt.Sprintf("p%d-%d", phase, n), rng: rand.New(rand.NewPCG(w.seed, uint64(phase*people+n)))}
		working.Go(func() { p.work(ctx, stop) })
	}
	f()
	close(stop)
	working.Wait()
}

// newWorld writes the configuration, makes the operator's key, and starts the model.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	home := t.TempDir()
	w := &world{t: t, seed: seed, bin: proc.Build(t), home: home, data: filepath.Join(home, "data"), ledger: filepath.Join(home, "ledger"), changed: make(chan struct{})}
	t.Cleanup(func() {
		if err := proc.NoneAlive(filepath.Join(w.ledger, aliveFile), patience); err != nil {
			t.Error(err)
		}
	})
	model, err := filepath.Abs(filepath.Join("testdata", "soak.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := w.run("sim", "--script", model, "--addr", "127.0.0.1:0", "--no-cache").Up()
	for name, more := range map[string]string{
		"worker": "subagents: [helper]\n", "other": "subagents: [helper]\n", "helper": "subagents: [clerk]\n", "clerk": "",
		"brief": "interrupts: {expire_after: 2s, on_expiry: reject, default_answer: Whatever.}\n",
	} {
		provider, url := "openai", base+"/v1"
		if name == "other" || name == "helper" {
			provider, url = "anthropic", base
		}
		w.write("configs/agents/"+name+".yaml", fmt.Sprintf(`profile_name: %s
primary_model: {provider: %s, model: m, base_url: %q}
tools: {builtin: [file_read, ask_user_question], mcp_servers: [ledger, hostile]}
approval_policies: {write_ops: false, dangerous_ops: false}
retry: {max_retries: 3, base_delay: 5ms, max_delay: 100ms}
model_idle_timeout_seconds: 5
%s`, name, provider, url, more))
	}
	w.write("configs/mcp/servers.yaml", fmt.Sprintf(`servers:
  ledger:
    transport: stdio
    command: %[1]q
    env: {%[2]s: %[3]q, %[4]s: ledger}
    effects: {look: read, put: idempotent, fire: once, paint: once}
    requires_approval: {always: [paint]}
  hostile:
    transport: stdio
    command: %[1]q
    env: {%[2]s: %[3]q, %[4]s: hostile}
    effects: {poke: read, risk: once}
    timeouts: {call: 1s}
`, self, dirVar, w.ledger, modeVar))
	w.write("configs/agentd.yaml", "workspace: "+strconv.Quote(filepath.Join(home, "work"))+"\nlog: {level: warn}\nlimits: {max_event_lag: 64}\nhttp: {rejoin_window: 30s}\n")
	w.write("work/notes.txt", "one\ntwo\n")
	w.write("ledger/"+ledgerFile, "")
	out, err := exec.CommandContext(t.Context(), w.bin, "keys", "create", "--json", "--data", w.data, "--configs", filepath.Join(home, "configs"),
		"--scope", "run,read,answer,admin").Output()
	var key client.Key
	if err == nil {
		err = json.Unmarshal(out, &key)
	}
	if err != nil || key.Secret == "" {
		t.Fatalf("agentd keys create: %v\n%s", err, out)
	}
	w.key = key.Secret
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// end stops the server as people do and has the doctor look at what it left.
func (w *world) end() {
	s, _ := w.current()
	s.Stop(patience)
	w.heed(s.Process)
	out, err := exec.Command(w.bin, "doctor", "--json", "--data", w.data).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"findings":[]`) {
		w.t.Errorf("the doctor: %v\n%s", err, proc.Tail(string(out)))
	}
}
