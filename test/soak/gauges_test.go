//go:build unix

package soak

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gauges are what a server holds.
type gauges struct{ rss, heap, fds, goroutines, driven, readers float64 }

func (g gauges) String() string {
	return fmt.Sprintf("%.0f MiB (%.1f MiB of heap), %.0f descriptors, %.0f goroutines, %.0f runs in memory, %.0f readers", g.rss/(1<<20), g.heap/(1<<20), g.fds, g.goroutines, g.driven, g.readers)
}

// gauge reads GET /metrics.
func (w *world) gauge(ctx context.Context, s *server) (g gauges, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return g, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	resp, err := s.http.Do(req)
	if err != nil {
		return g, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return g, fmt.Errorf("GET /metrics: %s", resp.Status)
	}
	values := map[string]*float64{"process_resident_memory_bytes": &g.rss, "go_memstats_heap_alloc_bytes": &g.heap, "process_open_fds": &g.fds,
		"go_goroutines": &g.goroutines, "agentd_runs_driven": &g.driven, "agentd_readers": &g.readers}
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
			return g, fmt.Errorf("GET /metrics has no %s", name)
		}
	}
	return g, nil
}

// watch looks at a server until ctx ends.
func (w *world) watch(ctx context.Context, s *server) (all []gauges) {
	for {
		g, err := w.gauge(ctx, s)
		if err == nil {
			all = append(all, g)
		} else if ctx.Err() == nil {
			w.t.Errorf("metrics: %v", err)
			return all
		}
		select {
		case <-ctx.Done():
			return all
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// flat holds the last third of what was seen against the first. The limits are
// wide, because the load is random and the machine may be busy: what they find is
// what grows with every run.
func (w *world) flat(all []gauges) {
	third := len(all) / 3
	if third < 3 {
		w.t.Errorf("a server was looked at %d times only", len(all))
		return
	}
	median := func(part []gauges, of func(*gauges) float64) float64 {
		var values []float64
		for i := range part {
			values = append(values, of(&part[i]))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for _, c := range []struct {
		what  string
		of    func(*gauges) float64
		spare float64
	}{
		{"bytes of memory", func(g *gauges) float64 { return g.rss }, 48 << 20},
		{"descriptors", func(g *gauges) float64 { return g.fds }, 40},
		{"goroutines", func(g *gauges) float64 { return g.goroutines }, 100},
	} {
		first, last := median(all[:third], c.of), median(all[len(all)-third:], c.of)
		w.t.Logf("%s: %.0f in the first third, %.0f in the last", c.what, first, last)
		if last > first*1.5+c.spare {
			w.t.Errorf("a server under steady load grew from %.0f %s to %.0f", first, c.what, last)
		}
	}
}

// quiet waits until nobody works and, if before is there, until the server holds no
// more than it did then.
func (w *world) quiet(ctx context.Context, s *server, before *gauges) gauges {
	w.t.Helper()
	late := time.After(patience)
	for {
		s.http.CloseIdleConnections()
		g, err := w.gauge(ctx, s)
		if err != nil {
			w.t.Fatal(err)
		}
		// This request is one of its own: a connection with its goroutines.
		if g.driven == 0 && g.readers == 0 && (before == nil || g.fds <= before.fds+16 && g.goroutines <= before.goroutines+32) {
			return g
		}
		select {
		case <-late:
			if before == nil {
				w.t.Fatalf("the server finds no rest: %v", g)
			}
			w.t.Fatalf("the server had %v, and keeps %v when the load is gone", before, g)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
