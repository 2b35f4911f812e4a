//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentd/client"
	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/postgres/pgtest"
	"agentd/test/proc"
)

// node is one place where a process of agentd runs, again and again.
type node struct {
	w    *world
	name string
	args []string
	// url is where it takes requests; "" for a worker alone.
	url    string
	client *client.Client
	http   *http.Client
	// drives is whether it drives runs.
	drives bool
	// wrap starts it somewhere else than here, such as in a network namespace.
	wrap []string
	bin  string
	p    *proc.Process
	// stopped past its lease, or cut off: it may say that it lost its lease.
	excused bool
	// older: it meets runs that are too new for it, and may say so.
	older bool
}

// world is nodes that share a store, and what is around them.
type world struct {
	t    *testing.T
	seed uint64
	dir  string
	bin  string
	pg   *pgtest.Cluster
	// store is the same database, to look into; place names it to the nodes.
	store    *postgres.Store
	place    string
	temporal *proc.Temporal
	// model is the simulator, which startModel starts, at the same address each time.
	model      *proc.Process
	startModel func() *proc.Process
	nodes      []*node
	loads      int // how often people came to work
	ledger     string
	book       book
	faults     []*faultRecord
	want       map[string][]string
	// longest is how long a run under way may be silent: a model or a tool is at work.
	longest time.Duration
	// goesOn is how long what was interrupted may take to go on.
	goesOn time.Duration
}

// options are what worlds differ in.
type options struct {
	bin      string // of agentd
	temporal bool
	// pg, tp and sim are the addresses of this machine where PostgreSQL, Temporal and the
	// model are reached; "" is where they are by themselves.
	pg, tp, sim string
	// first is when a model begins to answer, pace how long a tool takes at the most.
	first, pace time.Duration
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	seed := uint64(number(t, "AGENTD_SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("AGENTD_SEED=%d", seed)
	w := &world{t: t, seed: seed, dir: t.TempDir(), bin: o.bin, longest: o.first + o.pace, goesOn: goesOnShort}
	if number(t, "AGENTD_CLUSTER_FAULTS", 1) > 1 {
		w.goesOn = goesOn
	}
	w.ledger = filepath.Join(w.dir, "ledger.jsonl")
	w.pg = pgtest.Start(t)
	w.place = w.pg.NewURL()
	if o.pg != "" {
		w.place = w.pg.Listen(t, o.pg)
	}
	if o.temporal {
		w.temporal = proc.NewTemporal(t, o.tp)
	}
	script, err := os.ReadFile(filepath.Join("testdata", "load.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("load.yaml", strings.ReplaceAll(string(script), "FIRST", o.first.String()))
	args := []string{"sim", "--script", filepath.Join(w.dir, "load.yaml"), "--no-cache", "--addr", "127.0.0.1:" + strconv.Itoa(proc.FreePort(t, "127.0.0.1"))}
	w.startModel = func() *proc.Process { return proc.Start(t, proc.Command{Path: w.bin, Args: args, Dir: w.dir}) }
	w.model = w.startModel()
	sim := w.model.Up()
	if o.sim != "" {
		sim = "http://" + forward(t, o.sim, strings.TrimPrefix(sim, "http://"))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string]string{"worker": "subagents: [helper]\n", "helper": ""} {
		w.write("configs/agents/"+name+".yaml", fmt.Sprintf(`profile_name: %s
primary_model: {provider: openai, model: m, base_url: "%s/v1", concurrency_limit: 0}
tools: {builtin: [ask_user_question], mcp_servers: [ledger]}
approval_policies: {write_ops: false, dangerous_ops: false}
retry: {max_retries: 5, base_delay: 50ms, max_delay: 500ms}
%s`, name, sim, more))
	}
	w.write("configs/mcp/servers.yaml", fmt.Sprintf(`servers:
  ledger:
    transport: stdio
    command: %q
    env: {%s: %q, %s: %q}
    concurrency_limit: 1000
    effects: {look: read, put: idempotent, fire: once, paint: once}
    requires_approval: {always: [paint]}
`, self, ledgerVar, w.ledger, paceVar, o.pace.String()))
	w.write("configs/agentd.yaml", "log: {level: warn}\ncluster: {drain_timeout: 20s, temporal: {max_cached_workflows: 16}}\n")
	w.write("ledger.jsonl", "")
	if w.store, err = postgres.Open(t.Context(), w.place, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func number(t *testing.T, name string, def int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number", name, s)
	}
	return n
}

// add adds a node, which is not started yet. api nodes take requests.
func (w *world) add(name string, api bool, args ...string) *node {
	w.t.Helper()
	n := &node{w: w, name: name, args: args, bin: w.bin, drives: !slices.Contains(args, "--no-worker")}
	addr := "127.0.0.1:" + strconv.Itoa(proc.FreePort(w.t, "127.0.0.1"))
	n.args = append(n.args, "--addr", addr)
	// A connection to a dead node fails, and one to a stopped node must not wait long.
	n.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: 40 * time.Second}}
	var err error
	if n.client, err = client.New("http://"+addr, &client.Options{HTTP: n.http}); err != nil {
		w.t.Fatal(err)
	}
	n.url = "http://" + addr
	if api {
		w.book.apis = append(w.book.apis, n)
	}
	w.nodes = append(w.nodes, n)
	return n
}

// launch starts the node, which is not up yet.
func (n *node) launch() {
	n.w.t.Helper()
	args := append(append([]string{}, n.args...), "--configs", filepath.Join(n.w.dir, "configs"), "--store", n.w.place)
	if n.w.temporal != nil {
		args = append(args, "--engine", n.w.temporal.URL())
	}
	args = append(append(append([]string{}, n.wrap...), n.bin), args...)
	n.p = proc.Start(n.w.t, proc.Command{Path: args[0], Args: args[1:], Dir: n.w.dir})
}

func (n *node) start() {
	n.w.t.Helper()
	n.launch()
	n.p.Up()
}

// kill is kill -9.
func (n *node) kill() {
	n.w.t.Helper()
	n.p.Kill()
	n.heed()
}

// heed fails the test if the node said that something is wrong with it.
func (n *node) heed() {
	n.w.t.Helper()
	for line := range strings.Lines(n.p.Complaints()) {
		if strings.Contains(line, "status=504") && strings.Contains(line, "context canceled") {
			continue // somebody did not wait for the answer, while something was away
		}
		if n.excused && strings.Contains(line, "lost its lease") || n.older && strings.Contains(line, "use the newer agentd") {
			continue
		}
		if n.excused && (strings.Contains(line, "can not join") || strings.Contains(line, "can not be claimed") || strings.Contains(line, "the store can not be reached")) {
			continue
		}
		n.w.t.Errorf("%s: %s", n.name, line)
	}
}

// claimed gives the runs that a node has, as its rows say. It is named after its process.
func (w *world) claimed(ctx context.Context, n *node) (refs []store.RunRef, err error) {
	nodes, err := w.store.Nodes(ctx, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	for _, row := range nodes {
		if !strings.HasSuffix(row.Name, "-"+strconv.Itoa(n.p.Cmd.Process.Pid)) {
			continue
		}
		all, err := w.store.Claimed(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			refs = append(refs, c.RunRef)
		}
	}
	return refs, nil
}

// try asks an API node for something, and another one, until one does it. An error
// that no fault explains ends that.
func (w *world) try(ctx context.Context, what string, rng *rand.Rand, f func(ctx context.Context, c *client.Client) error) error {
	var last error
	for {
		n := w.book.apis[rng.IntN(len(w.book.apis))]
		one, cancel := context.WithTimeout(ctx, 45*time.Second)
		err := f(one, n.client)
		cancel()
		if err == nil {
			return nil
		}
		if k := fault.KindOf(err); k != fault.Unavailable && k != fault.Timeout && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%s: %w", what, err)
		}
		last = err
		select {
		case <-time.After(time.Duration(50+rng.IntN(100)) * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, ctx.Err(), last)
		}
	}
}

// book is what people wrote down.
type book struct {
	apis []*node

	mu      sync.Mutex
	records []*record
	// retried are the interrupts by which a person let a call happen again, by run and
	// call: each is one time more.
	retried map[string]map[string]bool
	answers spread          // how long they took
	above   map[string]bool // of parents
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.records)
}

// parents are the runs that have children.
func (b *book) parents() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.above == nil {
		b.above = map[string]bool{}
		for _, r := range b.records {
			if r.parent != nil {
				b.above[r.parent.id] = true
			}
		}
	}
	return b.above
}
