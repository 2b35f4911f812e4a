package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "library":
			return library(ctx, os.Args[2:])
		case "bare":
			return bare(ctx, os.Args[2:])
		case "ticker":
			return ticker(ctx, os.Args[2:])
		case "readers":
			return readers(ctx)
		}
	}
	b := &bench{}
	only := flag.String("only", "", "regular expression: the parts to run (loop, chunk, serve, waiting, start, disk, database, events, nodes, executors, cache, context, compaction)")
	flag.StringVar(&b.agentd, "agentd", "bin/agentd", "the binary under test")
	flag.StringVar(&b.peer, "peer", "", "the binary of the peer; empty for none")
	flag.StringVar(&b.langgraph, "langgraph", "", "loop.mjs of bench/peers-js, whose packages are installed; empty for none")
	flag.StringVar(&b.temporal, "temporal", ".cache/temporaldev", "executors: the Temporal server of test/temporal; left out if it is not there")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds; medians are over them")
	flag.DurationVar(&b.load, "load", 2*time.Second, "how long each load lasts")
	flag.IntVar(&b.ticks.Runs, "event-runs", 200, "events: runs")
	flag.IntVar(&b.ticks.Rate, "event-rate", 40, "events: pieces of text a second of each run")
	flag.IntVar(&b.ticks.Readers, "event-readers", 25, "events: readers of each run")
	flag.Float64Var(&b.ticks.Seconds, "event-seconds", 20, "events: how long")
	flag.StringVar(&b.settings, "event-settings", "", "events: more of agentd.yaml")
	flag.Parse()
	part, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "agentd-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.prepare(); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		run  func(context.Context) error
	}{{"loop", b.loop}, {"chunk", b.chunk}, {"serve", b.serve}, {"waiting", b.waiting}, {"start", b.start}, {"disk", b.disk}, {"database", b.database}, {"events", b.events}, {"nodes", b.nodes}, {"executors", b.executors}, {"cache", b.cache}, {"context", b.context}, {"compaction", b.compaction}} {
		if !part.MatchString(p.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", p.name)
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.print(os.Stdout)
	return nil
}

// bench is one run of the benchmark.
type bench struct {
	agentd, peer string
	langgraph    string // or empty
	temporal     string // the server; it need not be there
	dir          string
	rounds       int
	load         time.Duration
	folders      int
	ticks        ticks
	settings     string
	rows         []row
}
