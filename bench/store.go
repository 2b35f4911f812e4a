package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// waiting measures runs that wait for a person: a process with 1,000 of them and
// one with 5,000. A run costs the difference divided by 4,000, so that what a
// process needs anyway is not in it. Memory is measured after a collection, so
// that what is kept is in it and garbage is not.
func (b *bench) waiting(ctx context.Context) error {
	const few, many = 1000, 5000
	type sizes struct{ rss, heap, disk float64 }
	measure := func(n int) (m sizes, err error) {
		configs, err := b.configs("", "ask")
		if err != nil {
			return m, err
		}
		data, err := b.folder("data")
		if err != nil {
			return m, err
		}
		p, err := self(ctx, "library", "--configs", configs, "--data", data, "--profile", "ask")
		if err != nil {
			return m, err
		}
		if _, err := p.order("do suspend %d", n); err != nil {
			return m, err
		}
		if _, err := p.order("memory"); err != nil {
			return m, err
		}
		r, err := p.order("memory")
		if err != nil {
			return m, err
		}
		if err := p.end(); err != nil {
			return m, err
		}
		m = sizes{rss: r.RSSKB, heap: r.HeapKB}
		m.disk, err = size(data)
		m.disk /= 1024
		return m, err
	}
	var rss, heap, disk []float64
	for range 3 {
		a, err := measure(few)
		if err != nil {
			return err
		}
		z, err := measure(many)
		if err != nil {
			return err
		}
		rss = append(rss, (z.rss-a.rss)/(many-few))
		heap = append(heap, (z.heap-a.heap)/(many-few))
		disk = append(disk, (z.disk-a.disk)/(many-few))
	}
	b.note("a run that waits for a person: live heap", "%s", spread(heap, "KB"))
	b.note("a run that waits for a person: resident", "%s", spread(rss, "KB"))
	b.atMost("a run that waits for a person, resident", median(rss), 1, "KB")
	b.atMost("a run that waits for a person, disk", median(disk), 5, "KB")
	return nil
}

// start measures from the start of the process to the first accepted request,
// with an existing store of 10,000 sessions of one run each.
func (b *bench) start(ctx context.Context) error {
	configs, err := b.configs("", "brief")
	if err != nil {
		return err
	}
	data, err := b.folder("data")
	if err != nil {
		return err
	}
	p, err := self(ctx, "library", "--configs", configs, "--data", data, "--profile", "brief")
	if err != nil {
		return err
	}
	if _, err := p.order("do sessions 10000"); err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	var times []float64
	for range 2*b.rounds + 1 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			return err
		}
		took, err := b.first(ctx, addr, configs, data)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	b.note("process start to first accepted request, 10,000 sessions in the store", "%s", spread(times, "ms"))
	b.atMost("start", median(times), 40, "ms")
	return nil
}

// first starts a server and asks it for a run until it accepts one.
func (b *bench) first(ctx context.Context, addr, configs, data string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.agentd, "serve", "--addr", addr, "--configs", configs, "--data", data)
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		_, err := accept(ctx, c, "http://"+addr, "brief")
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("the server did not accept a run: %w", err)
		}
		time.Sleep(500 * time.Microsecond)
	}
	took := ms(time.Since(start))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	_ = cmd.Wait() // how a server ends by a signal is its own matter
	return took, nil
}

// disk measures what a session of 200 steps adds to the store, over the bytes of
// its conversation as JSON. The store has a session before, so that the empty
// tables are not counted; a server that has ended leaves no log behind.
func (b *bench) disk(ctx context.Context) error {
	for _, m := range []struct {
		model, what string
		limit       float64
	}{{"wide", "results of about 1 KB", 2}, {"long", "results of some bytes", 2}} {
		sim, err := b.sim(ctx)
		if err != nil {
			return err
		}
		defer sim.stop()
		configs, err := b.configs(sim.url, m.model)
		if err != nil {
			return err
		}
		data, err := b.folder("data")
		if err != nil {
			return err
		}
		var sizes []float64
		var values map[string]float64
		for range 2 {
			p, err := self(ctx, "library", "--configs", configs, "--data", data, "--profile", m.model)
			if err != nil {
				return err
			}
			r, err := p.order("do converse")
			if err != nil {
				return err
			}
			if err := p.end(); err != nil {
				return err
			}
			values = r.Values
			n, err := size(data)
			if err != nil {
				return err
			}
			sizes = append(sizes, n)
		}
		left, err := filepath.Glob(filepath.Join(data, "*"))
		if err != nil {
			return err
		}
		for i := range left {
			left[i] = filepath.Base(left[i])
		}
		grown := sizes[1] - sizes[0]
		b.note(fmt.Sprintf("a session of 200 steps, %s", m.what), "%s messages, %s bytes of conversation (%s a message), %s bytes more on disk (in %s; a store with one such session: %s)",
			number(values["messages"]), number(values["bytes"]), number(values["bytes"]/values["messages"]), number(grown), strings.Join(left, ", "), number(sizes[0]))
		b.atMost("disk over conversation, "+m.what, grown/values["bytes"], m.limit, "x")
	}
	return nil
}
