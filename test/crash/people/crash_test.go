//go:build unix

package people

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"agentd/internal/sim"
	"agentd/model/script"
	"agentd/test/proc"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(ledgerEnv); dir != "" {
		if err := serveLedger(dir); err != nil {
			fmt.Fprintln(os.Stderr, "ledger:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// people is how many work at the same time, each with one session at a time.
const people = 6

func number(t *testing.T, name string, fallback int64) int64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number", name, v)
	}
	return n
}

// TestKills is the whole story: people work, the server dies, and dies again.
func TestKills(t *testing.T) {
	kills := number(t, "AGENTD_KILLS", 200)
	seed := number(t, "AGENTD_SEED", time.Now().UnixNano()%1e9)
	t.Logf("%d kills, AGENTD_SEED=%d", kills, seed)
	w := newWorld(t)
	s := w.start()
	t.Cleanup(func() {
		s, _ := w.current()
		if t.Failed() {
			t.Logf("the last server said:\n%s", proc.Tail(s.Text()))
		}
	})

	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(kills)*2*time.Second)
	defer cancel()
	want := w.undisturbed(ctx)

	book := &book{}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for i := range people {
		p := &person{w: w, book: book, want: want, rng: rand.New(rand.NewPCG(uint64(seed), uint64(i))), name: fmt.Sprintf("p%d", i)}
		working.Go(func() { p.work(ctx, stop) })
	}
	began := time.Now()
	rng := rand.New(rand.NewPCG(uint64(seed), 1<<32))
	for n := range kills {
		if t.Failed() {
			break
		}
		moment := time.Duration(20+rng.IntN(400)) * time.Millisecond
		switch rng.IntN(10) {
		case 0: // while it starts
			w.kill(s)
			s = w.launch()
			<-time.After(time.Duration(rng.IntN(60)) * time.Millisecond)
			w.kill(s)
			s = w.start()
			continue
		case 1, 2, 3: // while it goes on with what it finds
			moment = time.Duration(rng.IntN(80)) * time.Millisecond
		}
		<-time.After(moment)
		w.kill(s)
		s = w.start()
		if n%50 == 49 {
			t.Logf("%d kills, %d runs, %v", n+1, book.len(), time.Since(began).Round(time.Second))
		}
	}
	close(stop)
	working.Wait()
	t.Logf("%d kills in %v, %d runs", kills, time.Since(began).Round(time.Second), book.len())
	if t.Failed() {
		return
	}
	w.check(ctx, book, want)
}

// newWorld writes the configuration and starts the model.
func newWorld(t *testing.T) *world {
	t.Helper()
	home := t.TempDir()
	w := &world{t: t, bin: proc.Build(t), home: home, data: filepath.Join(home, "data"), configs: filepath.Join(home, "configs"),
		ledger: filepath.Join(home, "ledger"), changed: make(chan struct{})}
	t.Cleanup(func() {
		if s, _ := w.current(); s != nil {
			<-s.Done() // it was killed after the test, if it was still there
			w.complain(s)
		}
		if err := proc.NoneAlive(filepath.Join(w.ledger, aliveFile), 20*time.Second); err != nil {
			t.Error(err)
		}
	})
	model, err := script.Load(filepath.Join("testdata", "people.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	simulator := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{model}, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(simulator.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, provider := range map[string]string{"worker": "openai", "other": "anthropic", "helper": "openai"} {
		base := simulator.URL
		if provider == "openai" {
			base += "/v1"
		}
		more := "subagents: [helper]\n"
		if name == "helper" {
			more = ""
		}
		w.write("configs/agents/"+name+".yaml", fmt.Sprintf(`profile_name: %s
profile_version: "1.0.0"
primary_model: {provider: %s, model: m, base_url: %q}
system_prompt: Work.
tools: {builtin: [file_read, glob, ask_user_question], mcp_servers: [ledger]}
approval_mode: policy
approval_policies: {write_ops: false, dangerous_ops: false}
retry: {max_retries: 5, base_delay: 5ms, max_delay: 50ms}
%s`, name, provider, base, more))
	}
	w.write("configs/mcp/servers.yaml", fmt.Sprintf(`servers:
  ledger:
    transport: stdio
    command: %q
    env: {%s: %q}
    effects: {%s: read, %s: idempotent, %s: once, %s: once}
    requires_approval: {always: [%s]}
`, self, ledgerEnv, w.ledger, toolLook, toolPut, toolFire, toolPaint, toolPaint))
	w.write("configs/agentd.yaml", "workspace: "+strconv.Quote(filepath.Join(home, "work"))+"\nlog: {level: warn}\n")
	w.write("work/notes.txt", "one\ntwo\nthree\n")
	w.write("ledger/"+ledgerFile, "")
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
