//go:build unix

package cluster

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentd/test/proc"
)

// faulty are the kinds of faults that a world has.
func (w *world) faulty(api, workers []*node) map[string]func(context.Context, *rand.Rand) *faultRecord {
	kinds := map[string]func(context.Context, *rand.Rand) *faultRecord{
		"kill a worker":           w.killNode(workers...),
		"kill an API node":        w.killNode(api...),
		"stop and wake a worker":  w.pauseNode(workers...),
		"stop PostgreSQL at once": w.killPostgres,
	}
	if w.temporal != nil {
		kinds["kill Temporal"] = w.killTemporal
	}
	return kinds
}

// stretch has many people work as much as few: their runs take longer, half a minute
// for most. A small machine drives some ten of them a second, beside everything else.
func (o *options) stretch(people int) {
	if people > 50 {
		o.first, o.pace = 8*time.Second, 8*time.Second
	}
}

// TestNodes is the whole story: two nodes that take requests and drive runs, one that
// drives alone, one that takes requests alone; many runs, and one fault after the other.
func TestNodes(t *testing.T) {
	bin := proc.Build(t)
	for _, x := range []struct {
		name     string
		temporal bool
	}{{"Store", false}, {"Temporal", true}} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			faults, people := number(t, "AGENTD_CLUSTER_FAULTS", 1), number(t, "AGENTD_CLUSTER_RUNS", 40)
			o := options{bin: bin, temporal: x.temporal, first: 150 * time.Millisecond, pace: 400 * time.Millisecond}
			o.stretch(people)
			w := newWorld(t, o)
			one, two := w.add("one", true, "serve"), w.add("two", true, "serve")
			three, api := w.add("three", false, "worker"), w.add("api", true, "serve", "--no-worker")
			w.cluster(faults, people, two, w.faulty([]*node{one, api}, []*node{one, three}))
		})
	}
}

// cluster starts the nodes, has people work while faults come, and checks everything.
// steady is a node that no fault happens to but what happens around it: what it holds
// must not grow.
func (w *world) cluster(faults, people int, steady *node, kinds map[string]func(context.Context, *rand.Rand) *faultRecord) {
	t := w.t
	w.book.retried = map[string]map[string]bool{}
	for _, n := range w.nodes {
		n.launch()
	}
	for _, n := range w.nodes {
		n.p.Up()
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range w.nodes {
				t.Logf("%s said at last:\n%s", n.name, proc.Tail(n.p.Text()))
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*proc.Patience+time.Duration(faults*len(kinds))*30*time.Second)
	defer cancel()
	began := time.Now()
	lap := func(what string) { t.Logf("%v: %s", time.Since(began).Round(time.Second), what) }
	w.undisturbed(ctx)
	w.load(ctx, min(people, 40), func() { <-time.After(time.Second) }) // what is kept for good is there
	before := w.quiet(ctx, steady, nil)
	w.model = w.startModel()
	w.model.Up()
	lap("warm: " + before.String())
	w.load(ctx, people, func() { w.disturb(ctx, faults, kinds) })
	lap("nobody works any more")
	if t.Failed() {
		return
	}
	after := w.quiet(ctx, steady, &before)
	lap("quiet: " + after.String())
	w.check(ctx)
	lap("everything is checked")
	w.end()
	lap("the doctor is through")
}

// gauges are what a process holds.
type gauges struct{ fds, goroutines, driven, readers float64 }

func (g gauges) String() string {
	return fmt.Sprintf("%.0f descriptors, %.0f goroutines, %.0f runs in memory, %.0f readers", g.fds, g.goroutines, g.driven, g.readers)
}

func (n *node) gauge(ctx context.Context) (g gauges, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/metrics", nil)
	if err != nil {
		return g, err
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return g, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return g, fmt.Errorf("GET /metrics of %s: %s", n.name, resp.Status)
	}
	values := map[string]*float64{"process_open_fds": &g.fds, "go_goroutines": &g.goroutines, "agentd_runs_driven": &g.driven, "agentd_readers": &g.readers}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), " ")
		if into := values[name]; into != nil {
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return g, err
			}
			delete(values, name)
		}
	}
	for name := range values {
		if !strings.HasPrefix(name, "agentd_") && (runtime.GOOS == "linux" || !strings.HasPrefix(name, "process_")) {
			return g, fmt.Errorf("GET /metrics of %s has no %s", n.name, name)
		}
	}
	return g, nil
}

// quiet waits until a node drives nothing and, if before is there, until it holds no
// more than it did then, but for what it keeps for the next ones: goroutines of effects
// (32), connections to the database and, with Temporal, what its SDK keeps of 16
// workflows. The model ends, and with it the connections to it. A leak shows with each run
// and each fault.
func (w *world) quiet(ctx context.Context, n *node, before *gauges) gauges {
	w.t.Helper()
	w.model.Stop(proc.Patience)
	spare, connections := 32.0+4, float64(max(8, 2*runtime.NumCPU()))
	if w.temporal != nil {
		spare += 3 * 16
	}
	late := time.After(time.Minute)
	for {
		n.http.CloseIdleConnections()
		g, err := n.gauge(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if g.driven == 0 && g.readers == 0 && (before == nil || g.fds <= before.fds+connections+2 && g.goroutines <= before.goroutines+spare) {
			return g
		}
		select {
		case <-late:
			w.t.Errorf("%s had %v, and keeps %v when the load is gone; what it does is the last that it said", n.name, before, g)
			n.p.Signal(syscall.SIGQUIT)
			<-n.p.Done()
			w.t.Log(n.p.Text())
			return g
		case <-time.After(100 * time.Millisecond):
		}
	}
}
