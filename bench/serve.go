package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentd/bench/worker"
)

// post makes a request of the native API and decodes the answer.
func post(ctx context.Context, c *http.Client, url string, body, answer any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if raw, err = io.ReadAll(res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("POST %s: %s: %s", url, res.Status, raw)
	}
	return json.Unmarshal(raw, answer)
}

// accept starts a run over HTTP.
func accept(ctx context.Context, c *http.Client, base, profile string) (id string, err error) {
	var r struct {
		ID string `json:"run_id"`
	}
	err = post(ctx, c, base+"/runs", map[string]any{"profile": profile, "input": worker.User}, &r)
	return r.ID, err
}

// watch reads the events of a run to the end of the stream and says which was
// the last and how many pieces of text there were.
func watch(ctx context.Context, c *http.Client, base, id string, first func()) (last string, deltas int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/runs/"+id+"/events", nil)
	if err != nil {
		return "", 0, err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", 0, fmt.Errorf("events of %s: %s", id, res.Status)
	}
	lines := bufio.NewReaderSize(res.Body, 16<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			return last, deltas, nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return last, deltas, err
		}
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			last = strings.TrimSpace(string(name))
			if last == "text_delta" {
				deltas++
				if deltas == 1 && first != nil {
					first()
				}
			}
		}
	}
}

// complete makes one run over HTTP and reads its events.
func complete(ctx context.Context, c *http.Client, base, profile string, first func()) (deltas int, err error) {
	id, err := accept(ctx, c, base, profile)
	if err != nil {
		return 0, err
	}
	last, deltas, err := watch(ctx, c, base, id, first)
	if err == nil && last != "run_completed" {
		err = fmt.Errorf("run %s ended with %s", id, last)
	}
	return deltas, err
}

// serve measures the server as it is shipped, in its own process.
func (b *bench) serve(ctx context.Context) error {
	files()
	sim, err := b.sim(ctx)
	if err != nil {
		return err
	}
	defer sim.stop()
	configs, err := b.configs(sim.url, worker.StreamModel, "slow", "glob")
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, string) error{b.idle, b.crowd, b.streams, b.endToEnd} {
		if err := part(ctx, configs); err != nil {
			return err
		}
	}
	return nil
}

// fresh starts a server on an empty store.
func (b *bench) fresh(ctx context.Context, configs string) (*server, error) {
	data, err := b.folder("data")
	if err != nil {
		return nil, err
	}
	return b.server(ctx, configs, data)
}

// idle is the memory of a server that nobody uses, two seconds after its start.
func (b *bench) idle(ctx context.Context, configs string) error {
	s, err := b.fresh(ctx, configs)
	if err != nil {
		return err
	}
	defer s.stop()
	time.Sleep(2 * time.Second)
	now, _ := worker.Resident(s.cmd.Process.Pid)
	b.atMost("`agentd serve`, idle: resident memory", now/1024, 40, "MB")
	return nil
}

// crowd is 64 runs at once over HTTP, each with its reader.
func (b *bench) crowd(ctx context.Context, configs string) error {
	var rates, peaks []float64
	for range b.rounds {
		s, err := b.fresh(ctx, configs)
		if err != nil {
			return err
		}
		c := client()
		var runs atomic.Int64
		start := time.Now()
		err = crowd(64, func() error {
			for time.Since(start) < b.load {
				if _, err := complete(ctx, c, s.url, "glob", nil); err != nil {
					return err
				}
				runs.Add(1)
			}
			return nil
		})
		rates = append(rates, float64(runs.Load())/time.Since(start).Seconds())
		_, peak := worker.Resident(s.cmd.Process.Pid)
		peaks = append(peaks, peak/1024)
		if err := s.stop(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	b.note(fmt.Sprintf("`agentd serve`: runs of %d steps over HTTP, 64 at once, each with an SSE reader", worker.Steps), "%s", spread(rates, "runs/s"))
	b.atMost("`agentd serve`: peak resident memory with 64 runs", median(peaks), 60, "MB")
	return nil
}

// crowd calls f from n goroutines and gives the first error.
func crowd(n int, f func() error) error {
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for range n {
		wg.Go(func() { errs <- f() })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// streams is a thousand runs that stream at the same time.
func (b *bench) streams(ctx context.Context, configs string) error {
	s, err := b.fresh(ctx, configs)
	if err != nil {
		return err
	}
	defer s.stop()
	const n = 1000
	c := client()
	var open, most, deltas atomic.Int64
	err = crowd(n, func() error {
		got, err := complete(ctx, c, s.url, "slow", func() {
			now := open.Add(1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
		})
		open.Add(-1)
		deltas.Add(int64(got))
		return err
	})
	if err != nil {
		return err
	}
	now, peak := worker.Resident(s.cmd.Process.Pid)
	b.note(fmt.Sprintf("`agentd serve`: %d streaming runs started at once, each with an SSE reader", n),
		"all completed; up to %d streamed at the same time; peak %s MB resident, %s MB at the end", most.Load(), number(peak/1024), number(now/1024))
	return nil
}

// endToEnd is what a chunk costs the server from the provider's stream to the
// SSE client.
func (b *bench) endToEnd(ctx context.Context, configs string) error {
	s, err := b.fresh(ctx, configs)
	if err != nil {
		return err
	}
	defer s.stop()
	var costs []float64
	c := client()
	for i := range b.rounds + 1 {
		before, err := s.cpu()
		if err != nil {
			return err
		}
		for range serialRuns {
			if _, err := complete(ctx, c, s.url, worker.StreamModel, nil); err != nil {
				return err
			}
		}
		after, err := s.cpu()
		if err != nil {
			return err
		}
		if i > 0 { // the first round warms up
			costs = append(costs, (after-before)/(serialRuns*worker.Chunks))
		}
	}
	b.note("`agentd serve`: CPU per chunk, from provider stream to SSE client", "%s", spread(costs, "µs"))
	b.atMost("per chunk end to end, CPU of the server", median(costs), 30, "µs")
	return nil
}
