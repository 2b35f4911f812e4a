package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/internal/sim"
	"agentd/model/script"
	"agentd/test/proc"
)

const playbook = `name: crash
turns:
  - text: "I begin with three things at once."
    tool_calls:
      - {name: do_read, arguments: {n: 1}}
      - {name: do_once, arguments: {n: 2}}
      - {name: do_idem, arguments: {n: 3}}
    latency: {first: 15ms, chunk: 2ms, size: 6}
  - text: "Then two more."
    tool_calls:
      - {name: do_once, arguments: {n: 4}}
      - {name: do_read, arguments: {n: 5}}
    latency: {first: 15ms, chunk: 2ms, size: 6}
  - text: "And a last one."
    tool_calls:
      - {name: do_once, arguments: {n: 6}}
    latency: {first: 15ms, chunk: 2ms, size: 6}
  - text: "Everything is done, and this is a longer text so that it is cut in the middle now and then."
    latency: {first: 10ms, chunk: 2ms, size: 6}
`

// want is the transcript of an uninterrupted run.
const want = `user: go
assistant: I begin with three things at once.
toolResult: do_read did {"n":1}
toolResult: do_once did {"n":2}
toolResult: do_idem did {"n":3}
assistant: Then two more.
toolResult: do_once did {"n":4}
toolResult: do_read did {"n":5}
assistant: And a last one.
toolResult: do_once did {"n":6}
assistant: Everything is done, and this is a longer text so that it is cut in the middle now and then.
`

// world is a server that is killed and started again on the same data and port.
type world struct {
	t      *testing.T
	binary string
	dir    string
	addr   string
	ledger string
	place  []string // the flags that name its store
	client *client.Client
	p      *proc.Process // nil if there is none

	mu      sync.Mutex
	retried map[string]bool // calls that a person allowed to happen again, by run and call
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, binary: proc.Build(t), ledger: filepath.Join(dir, "ledger"), retried: map[string]bool{}}
	w.place = []string{"--data", filepath.Join(dir, "data")}
	s, err := script.Parse("playbook", []byte(playbook))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	url, stopped := make(chan string, 1), make(chan error, 1)
	go func() {
		stopped <- sim.Serve(ctx, sim.Options{Scripts: []*script.Script{s}, Addr: "127.0.0.1:0"}, func(u string) { url <- u })
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write("configs/agents/crash.yaml", fmt.Sprintf(`profile_name: crash
primary_model: {provider: openai, model: m, base_url: "%s/v1"}
tools: {mcp_servers: [ledger]}
approval_mode: never
retry: {max_retries: 5, base_delay: 20ms}
`, <-url))
	w.write("configs/mcp/servers.yaml", fmt.Sprintf(`servers:
  ledger:
    transport: stdio
    command: %q
    env: {%s: %q}
    effects: {do_read: read, do_idem: idempotent, do_once: once}
`, self, ledgerEnv, w.ledger))
	w.addr = fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t, "127.0.0.1"))
	if w.client, err = client.New("http://"+w.addr, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// start starts the server and waits until it listens.
func (w *world) start() {
	w.t.Helper()
	w.p = proc.Start(w.t, proc.Command{Path: w.binary, Args: append([]string{"serve", "--configs", filepath.Join(w.dir, "configs"), "--addr", w.addr}, w.place...), Dir: w.dir})
	w.p.Up()
}

// kill is kill -9.
func (w *world) kill() {
	if w.p == nil {
		return
	}
	w.p.Kill()
	if bad := w.p.Complaints(); bad != "" {
		w.t.Error(bad)
	}
	w.p = nil
}

// watched is a run that was acknowledged, and what a reader saw of it.
type watched struct {
	run  *client.Run
	done chan struct{}
	err  error
	// ends counts terminal events; text is what streamed in the last step,
	// with what was taken back left out.
	ends int
	text string
}

// watch follows a run through every death of the server.
func (w *world) watch(ctx context.Context, v *watched) {
	defer close(v.done)
	last := int64(0)
	var text strings.Builder
	for v.ends == 0 && v.err == nil {
		w.watchOnce(ctx, v, &last, &text)
	}
}

// watchOnce watches until the end or until the client gives up: it does not try
// again when the very first connection meets a server that is down.
func (w *world) watchOnce(ctx context.Context, v *watched, seen *int64, text *strings.Builder) {
	last := *seen
	defer func() { *seen = last }()
	for ev, err := range w.client.Watch(ctx, v.run.ID, last) {
		if fault.KindOf(err) == fault.Unavailable && err != nil && ctx.Err() == nil {
			<-time.After(20 * time.Millisecond)
			return
		}
		if err != nil {
			v.err = err
			return
		}
		if ev.Seq <= last {
			v.err = fmt.Errorf("event %d %s after %d", ev.Seq, ev.Type, last)
			return
		}
		last = ev.Seq
		switch ev.Type {
		case event.StepStarted, event.RunResumed, event.ModelRetry, event.ModelFallback:
			text.Reset()
		case event.TextDelta:
			text.WriteString(ev.Data.(*event.Delta).Text)
		}
		if ev.Type.Terminal() {
			v.ends++
			v.text = text.String()
		}
	}
}

// person answers every call of which nobody knows whether it happened.
func (w *world) person(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		open, _, err := w.client.Interrupts(ctx, "open", "", 0)
		if err == nil {
			for _, i := range open {
				w.answer(ctx, i, rng)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Millisecond):
		}
	}
}

func (w *world) answer(ctx context.Context, i *client.Interrupt, rng *rand.Rand) {
	decision := []string{"skip", "done", "retry"}[rng.IntN(3)]
	if i.Kind != "uncertain" || i.ToolCall == nil || i.ToolCall.Name != "do_once" {
		w.t.Errorf("an interrupt that nobody expects: %+v", i)
	}
	if decision == "retry" {
		// Noted ahead: the answer may be accepted although its
		// acknowledgement is lost in a kill.
		w.mu.Lock()
		w.retried[i.RunID+" "+i.ToolCall.ToolCallID] = true
		w.mu.Unlock()
	}
	// Errors are the kills; an interrupt that is still open is answered next time.
	_, _ = w.client.Answer(ctx, client.AnswerRequest{Interrupt: i.ID, Decision: decision})
}

func number(t *testing.T, name string, def int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestKill9 kills the server at random moments while runs go on. Afterwards
// nothing acknowledged is lost, no once call happened twice without a person's
// word, event numbers rose for every reader, and each transcript is that of an
// uninterrupted run.
func TestKill9(t *testing.T) {
	kills, seed := number(t, "AGENTD_KILLS", 200), number(t, "AGENTD_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d kills, AGENTD_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(kills)*3*time.Second+3*time.Minute)
	defer cancel()
	cr := w.crowd(ctx, seed, 2)
	for round := range kills {
		w.start()
		cr.start(round, 2)
		<-time.After(time.Duration(rng.IntN(260)) * time.Millisecond)
		w.kill()
	}
	w.start()
	cr.settle()
	w.kill()
	// Every invariant of the store holds, after the last kill too.
	w.doctor()
}

// check compares what is stored with what was acknowledged, seen and done.
func (w *world) check(ctx context.Context, runs []*watched) {
	t := w.t
	t.Helper()
	uninterrupted := 0
	for _, v := range runs {
		if v.err != nil {
			t.Errorf("the reader of run %s: %v", v.run.ID, v.err)
			continue
		}
		r, err := w.client.Run(ctx, v.run.ID)
		if err != nil {
			t.Errorf("run %s was acknowledged and is lost: %v", v.run.ID, err)
			continue
		}
		if r.Status != client.Completed || v.ends != 1 {
			t.Errorf("run %s is %s (%+v), with %d terminal events", r.ID, r.Status, r.Error, v.ends)
		}
		if v.text != r.Output {
			t.Errorf("run %s streamed %q and says %q", r.ID, v.text, r.Output)
		}
		entries, err := w.client.Entries(ctx, r.SessionID)
		if err != nil {
			t.Error(err)
			continue
		}
		got, doubt := transcript(entries)
		if !doubt {
			uninterrupted++
			if got != want {
				t.Errorf("run %s:\n%swant\n%s", r.ID, got, want)
			}
		}
	}
	once, twice := 0, 0
	for call, n := range readLedger(t, w.ledger) {
		tool, key, _ := strings.Cut(call, " ")
		if key == "" {
			t.Errorf("%s was called without an idempotency key", tool)
		}
		if tool != "do_once" {
			continue
		}
		once++
		if n > 1 {
			twice++
			parts := strings.Split(key, "/")
			if !w.retried[parts[0]+" "+parts[len(parts)-1]] {
				t.Errorf("%s happened %d times without a person's word", key, n)
			}
		}
	}
	t.Logf("%d runs, %d of them with a transcript without doubt; %d once calls, %d repeated on a person's word", len(runs), uninterrupted, once, twice)
	if uninterrupted == 0 || once == 0 {
		t.Error("the load did not reach the cases that it is for")
	}
}

// transcript is the conversation; doubt is whether a result says that nobody knew
// if a call had happened.
func transcript(entries []*client.Entry) (s string, doubt bool) {
	var b strings.Builder
	for _, e := range entries {
		if e.Message == nil {
			continue
		}
		text := e.Message.Text()
		doubt = doubt || strings.Contains(text, "agentd was restarted")
		fmt.Fprintf(&b, "%s: %s\n", e.Message.Role, text)
	}
	return b.String(), doubt
}
