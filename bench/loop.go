package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"agentd/bench/worker"
)

// subject is a program that is compared with others.
type subject struct {
	name string
	// start starts it, against the simulator at base.
	start func(ctx context.Context, base string) (*process, error)
	// bodies is the file of the requests that one of its runs makes.
	bodies string
	// Measured, one of each round.
	added, cpu, peak []float64
	rate             map[int][]float64
}

// crowds are how many runs there are at once.
var crowds = []int{1, 16, 64}

func (b *bench) subjects(model string) []*subject {
	agentd := func(data string) func(ctx context.Context, base string) (*process, error) {
		return func(ctx context.Context, base string) (*process, error) {
			configs, err := b.configs(base, model)
			if err != nil {
				return nil, err
			}
			folder := data
			if folder == "" {
				if folder, err = b.folder("data"); err != nil {
					return nil, err
				}
			}
			return self(ctx, "library", "--configs", configs, "--data", folder, "--profile", model)
		}
	}
	all := []*subject{{name: "agentd, SQLite file, FULL sync", start: agentd("")}, {name: "agentd, in memory", start: agentd(":memory:")}}
	if b.peer != "" {
		all = append(all, &subject{name: "eino", start: func(ctx context.Context, base string) (*process, error) {
			return spawn(ctx, b.peer, "--base", base+"/v1", "--model", model)
		}})
	}
	for _, s := range all {
		s.rate = map[int][]float64{}
	}
	return all
}

// record keeps the requests of one run of a subject.
func (b *bench) record(ctx context.Context, s *subject) error {
	sim, err := b.sim(ctx, "--record", "1000")
	if err != nil {
		return err
	}
	defer sim.stop()
	p, err := s.start(ctx, sim.url)
	if err != nil {
		return err
	}
	if _, err := p.order("serial 1"); err != nil {
		return err
	}
	if err := p.end(); err != nil {
		return err
	}
	res, err := http.Get(sim.url + "/requests")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var kept struct {
		Requests []struct {
			Path string          `json:"path"`
			Body json.RawMessage `json:"body"`
		} `json:"requests"`
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return err
	}
	var bodies []json.RawMessage
	for _, r := range kept.Requests {
		if r.Path == "/v1/chat/completions" {
			bodies = append(bodies, r.Body)
		}
	}
	if len(bodies) == 0 {
		return fmt.Errorf("%s sent no request", s.name)
	}
	if raw, err = json.Marshal(bodies); err != nil {
		return err
	}
	dir, err := b.folder("bodies")
	if err != nil {
		return err
	}
	s.bodies = filepath.Join(dir, "bodies.json")
	return os.WriteFile(s.bodies, raw, 0o600)
}

// Runs of a round.
const (
	warmRuns   = 15
	serialRuns = 20
)

// round measures one subject in a fresh process, and right after it the bare
// client with its requests.
func (b *bench) round(ctx context.Context, s *subject, base string) error {
	p, err := s.start(ctx, base)
	if err != nil {
		return err
	}
	if _, err := p.order("serial %d", warmRuns); err != nil {
		return err
	}
	own, err := p.order("serial %d", serialRuns)
	if err != nil {
		return err
	}
	s.rate[1] = append(s.rate[1], float64(own.Runs)/own.ElapsedUS*1e6)
	for _, n := range crowds[1:] {
		r, err := p.order("load %d %d", n, b.load.Milliseconds())
		if err != nil {
			return err
		}
		s.rate[n] = append(s.rate[n], float64(r.Runs)/r.ElapsedUS*1e6)
		if n == 64 {
			s.peak = append(s.peak, r.PeakKB/1024)
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	bare, err := b.replay(ctx, s, base)
	if err != nil {
		return err
	}
	s.added = append(s.added, (median(own.Walls)-median(bare.Walls))/worker.Steps)
	s.cpu = append(s.cpu, own.CPUUS/float64(own.Runs*worker.Steps))
	return nil
}

func (b *bench) replay(ctx context.Context, s *subject, base string) (*worker.Report, error) {
	p, err := self(ctx, "bare", "--base", base, "--requests", s.bodies)
	if err != nil {
		return nil, err
	}
	if _, err := p.order("serial %d", warmRuns); err != nil {
		return nil, err
	}
	r, err := p.order("serial %d", serialRuns)
	if err != nil {
		return nil, err
	}
	return r, p.end()
}

// rotate measures subjects by runs of one tool, in rounds in which another one is first.
func (b *bench) rotate(ctx context.Context, subjects []*subject) error {
	for _, s := range subjects {
		if err := b.record(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	sim, err := b.sim(ctx)
	if err != nil {
		return err
	}
	defer sim.stop()
	for i := range b.rounds {
		for k := range subjects {
			s := subjects[(i+k)%len(subjects)]
			if err := b.round(ctx, s, sim.url); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// loop compares the runtimes by runs of one tool.
func (b *bench) loop(ctx context.Context) error {
	subjects := b.subjects(worker.LoopModel)
	if err := b.rotate(ctx, subjects); err != nil {
		return err
	}
	for _, s := range subjects {
		b.note(s.name+": added wall time per step", "%s", spread(s.added, "µs"))
		b.note(s.name+": CPU per step", "%s", spread(s.cpu, "µs"))
		for _, n := range crowds {
			b.note(fmt.Sprintf("%s: runs of %d steps, %d at once", s.name, worker.Steps, n), "%s", spread(s.rate[n], "runs/s"))
		}
		b.note(s.name+": peak resident memory with 64 runs (library)", "%s", spread(s.peak, "MB"))
	}
	if b.peer == "" {
		return nil
	}
	file, memory, peer := subjects[0], subjects[1], subjects[2]
	fa, ma, pa := median(file.added), median(memory.added), median(peer.added)
	b.compare("added wall time per step, file", fa, 1.5*pa, "µs", "≤ 1.5x the peer", fa <= 1.5*pa)
	b.compare("added wall time per step, in memory", ma, pa, "µs", "< the peer", ma < pa)
	fc, pc := median(file.cpu), median(peer.cpu)
	b.compare("CPU per step, file", fc, pc, "µs", "≤ the peer", fc <= pc)
	fr, pr := median(file.rate[64]), median(peer.rate[64])
	b.compare("64 runs at once, file", fr, pr, "runs/s", "≥ the peer", fr >= pr)
	return nil
}

// chunk compares what a chunk of text costs.
func (b *bench) chunk(ctx context.Context) error {
	subjects := b.subjects(worker.StreamModel)
	for _, s := range subjects {
		if err := b.record(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	sim, err := b.sim(ctx)
	if err != nil {
		return err
	}
	defer sim.stop()
	for i := range b.rounds {
		for k := range subjects {
			s := subjects[(i+k)%len(subjects)]
			p, err := s.start(ctx, sim.url)
			if err != nil {
				return err
			}
			if _, err := p.order("serial 5"); err != nil {
				return err
			}
			own, err := p.order("serial %d", serialRuns)
			if err != nil {
				return err
			}
			if err := p.end(); err != nil {
				return err
			}
			bare, err := b.replay(ctx, s, sim.url)
			if err != nil {
				return err
			}
			s.added = append(s.added, (median(own.Walls)-median(bare.Walls))/worker.Chunks)
			s.cpu = append(s.cpu, own.CPUUS/float64(own.Runs*worker.Chunks))
		}
	}
	for _, s := range subjects {
		b.note(s.name+": wall time added per chunk of text", "%s", spread(s.added, "µs"))
		b.note(s.name+": CPU per chunk of text", "%s", spread(s.cpu, "µs"))
	}
	b.atMost("per chunk as a library, added, file", median(subjects[0].added), 3, "µs")
	return nil
}
