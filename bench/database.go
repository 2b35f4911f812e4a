package main

import (
	"context"
	"fmt"
	"os"

	"agentd/bench/worker"
)

// database compares the two stores that keep what they are given, by runs of one tool:
// SQLite in a file and PostgreSQL in the database that AGENTD_STORE names (see
// scripts/postgres.sh). Without one it does nothing.
func (b *bench) database(ctx context.Context) error {
	url := os.Getenv("AGENTD_STORE")
	if url == "" {
		fmt.Fprintln(os.Stderr, "bench: AGENTD_STORE names no database: left out")
		return nil
	}
	file := b.subjects(worker.LoopModel)[0]
	db := &subject{name: "agentd, PostgreSQL", rate: map[int][]float64{}, start: func(ctx context.Context, base string) (*process, error) {
		configs, err := b.configs(base, worker.LoopModel)
		if err != nil {
			return nil, err
		}
		return self(ctx, "library", "--configs", configs, "--data", url, "--profile", worker.LoopModel)
	}}
	subjects := []*subject{file, db}
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
	for _, s := range subjects {
		b.note(s.name+": added wall time per step", "%s", spread(s.added, "µs"))
		b.note(s.name+": CPU per step, of the process", "%s", spread(s.cpu, "µs"))
		for _, n := range []int{1, 64} {
			steps := make([]float64, len(s.rate[n]))
			for i, r := range s.rate[n] {
				steps[i] = r * worker.Steps
			}
			b.note(fmt.Sprintf("%s: steps, %d runs at once", s.name, n), "%s", spread(steps, "steps/s"))
		}
	}
	return nil
}
