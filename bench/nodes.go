package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentd/bench/worker"
)

// most is how many processes share the database, width how many runs each makes at a
// time, and settle how long it warms up.
const (
	most   = 3
	width  = 8
	settle = time.Second
)

// nodes measures how many steps a second processes make that share one database, with
// a model that answers at once, so that what is measured is what keeps the runs: agentd,
// and LangGraph.js with its PostgreSQL checkpointer where that is installed (--langgraph).
func (b *bench) nodes(ctx context.Context) error {
	store := os.Getenv("AGENTD_STORE")
	if store == "" {
		fmt.Fprintln(os.Stderr, "bench: AGENTD_STORE names no database: left out")
		return nil
	}
	configs, err := b.configs("", worker.LoopModel)
	if err != nil {
		return err
	}
	type program struct {
		name  string
		start func() (*process, error)
	}
	programs := []program{{"agentd", func() (*process, error) {
		return self(ctx, "library", "--configs", configs, "--data", store, "--profile", worker.LoopModel)
	}}}
	if b.langgraph != "" {
		for _, durability := range []string{"sync", "async"} {
			programs = append(programs, program{"LangGraph.js, durability " + durability, func() (*process, error) {
				return spawn(ctx, "node", b.langgraph, store, strconv.Itoa(worker.Steps), durability)
			}})
		}
	}
	steps, cpu, dbCPU := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for range b.rounds {
		for _, p := range programs {
			for n := 1; n <= most; n++ {
				key := fmt.Sprintf("%s, %d of it", p.name, n)
				r, db, err := b.together(n, p.start)
				if err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				made := float64(r.Runs * worker.Steps)
				steps[key] = append(steps[key], made/(r.ElapsedUS/1e6))
				cpu[key] = append(cpu[key], r.CPUUS/made)
				dbCPU[key] = append(dbCPU[key], micro(db)/made)
			}
		}
	}
	for _, p := range programs {
		for n := 1; n <= most; n++ {
			key := fmt.Sprintf("%s, %d of it", p.name, n)
			b.note(key+": steps", "%s", spread(steps[key], "steps/s"))
			b.note(key+": CPU per step, of the processes; of the database", "%s; %s", spread(cpu[key], "µs"), spread(dbCPU[key], "µs"))
		}
	}
	return nil
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// together has so many processes make runs at the same time, and gives what all of them
// did, and what the database used of the processor meanwhile.
func (b *bench) together(n int, start func() (*process, error)) (sum *worker.Report, db time.Duration, err error) {
	all := make([]*process, n)
	for i := range all {
		if all[i], err = start(); err != nil {
			return nil, 0, err
		}
	}
	load := func(d time.Duration) ([]*worker.Report, error) {
		reports, errs := make([]*worker.Report, n), make([]error, n)
		var wg sync.WaitGroup
		for i, p := range all {
			wg.Go(func() { reports[i], errs[i] = p.order("load %d %d", width, d.Milliseconds()) })
		}
		wg.Wait()
		return reports, errors.Join(errs...)
	}
	if _, err := load(settle); err != nil {
		return nil, 0, err
	}
	before := databaseCPU(os.Getenv("AGENTD_STORE"))
	reports, err := load(b.load)
	db = databaseCPU(os.Getenv("AGENTD_STORE")) - before
	for _, p := range all {
		err = errors.Join(err, p.end())
	}
	if err != nil {
		return nil, 0, err
	}
	sum = &worker.Report{}
	for _, r := range reports {
		sum.Runs += r.Runs
		sum.CPUUS += r.CPUUS
		sum.ElapsedUS = max(sum.ElapsedUS, r.ElapsedUS)
	}
	return sum, db, nil
}

// databaseCPU is the processor time that the server of a database has used, with all its
// connections, and 0 where that is not to be found out: without /proc, or a server that
// scripts/postgres.sh did not start.
func databaseCPU(store string) (sum time.Duration) {
	u, err := url.Parse(store)
	if err != nil {
		return 0
	}
	raw, err := os.ReadFile(filepath.Join(u.Query().Get("host"), "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	server, _, _ := strings.Cut(string(raw), "\n")
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	for _, name := range stats {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended: its parent has its time
		}
		f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if len(f) < 15 || f[1] != server && filepath.Base(filepath.Dir(name)) != server {
			continue
		}
		for _, i := range []int{11, 12, 13, 14} { // utime, stime, and those of children that have ended
			ticks, _ := strconv.ParseInt(f[i], 10, 64) // proc_pid_stat(5) gives numbers
			sum += time.Duration(ticks) * (time.Second / 100)
		}
	}
	return sum
}
