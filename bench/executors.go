package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hundred is the model of runs of so many steps with a tool call.
const (
	hundred      = "hundred"
	hundredSteps = 100
)

// executor is a way to have runs driven: the arguments of the process that starts and
// drives them, and the Temporal server that tells it to, or nil.
type executor struct {
	name   string
	args   func() ([]string, error)
	server *server
	shared bool // the store is the database
}

// executors measures what it costs who decides where runs are driven, beside the work
// itself: one process that starts and drives runs, whose model answers at once, alone with
// a file, as a node that takes what there is in a database, and as one that a Temporal
// server tells what to drive, on the same database.
func (b *bench) executors(ctx context.Context) error {
	configs, err := b.configs("", "brief", hundred)
	if err != nil {
		return err
	}
	all := []executor{{name: "local", args: func() ([]string, error) {
		dir, err := b.folder("local")
		return []string{"--data", dir}, err
	}}}
	if store := os.Getenv("AGENTD_STORE"); store == "" {
		fmt.Fprintln(os.Stderr, "bench: AGENTD_STORE names no database: only local is measured")
	} else {
		on := func(more ...string) func() ([]string, error) {
			return func() ([]string, error) { return append([]string{"--data", store}, more...), nil }
		}
		all = append(all, executor{name: "store", args: on(), shared: true})
		if _, err := os.Stat(b.temporal); b.temporal == "" || err != nil {
			fmt.Fprintln(os.Stderr, "bench: Temporal is left out: its server is not built. To build it (from nothing a quarter of an hour of one processor):\n"+
				"bench:   mkdir -p .cache && cd test/temporal && CGO_ENABLED=0 go build -o ../../.cache/temporaldev ./cmd/temporaldev")
		} else {
			s, address, err := b.temporalServer(ctx)
			if err != nil {
				return err
			}
			defer func() {
				_ = s.cmd.Process.Kill() // it keeps nothing that anybody wants
				_ = s.cmd.Wait()
			}()
			all = append(all, executor{name: "Temporal", args: on("--engine", "temporal://"+address+"/default"), server: s, shared: true})
		}
	}
	profiles := []struct {
		name, about   string
		steps, serial int
	}{{"brief", "runs that only answer", 1, 40}, {hundred, fmt.Sprintf("runs of %d steps", hundredSteps), hundredSteps + 1, 5}}
	got := map[string]*costs{}
	for range b.rounds {
		for _, x := range all {
			for _, p := range profiles {
				key := x.name + ", " + p.about
				if got[key] == nil {
					got[key] = &costs{}
				}
				args, err := x.args()
				if err != nil {
					return err
				}
				args = append([]string{"library", "--configs", configs, "--profile", p.name}, args...)
				if err := b.cost(ctx, &x, args, p.steps, p.serial, got[key]); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		}
	}
	for _, p := range profiles {
		for _, x := range all {
			c := got[x.name+", "+p.about]
			b.note(p.about+", "+x.name+": steps, "+strconv.Itoa(width)+" runs at once", "%s", spread(c.steps, "steps/s"))
			b.note(p.about+", "+x.name+": wall per step, one run at a time", "%s", spread(c.wall, "µs"))
			parts := []string{"agentd " + spread(c.cpu, "µs")}
			if x.shared {
				parts = append(parts, "database "+spread(c.database, "µs"))
			}
			if x.server != nil {
				parts = append(parts, "Temporal "+spread(c.temporal, "µs"))
			}
			b.note(p.about+", "+x.name+": CPU per step", "%s", strings.Join(parts, "; "))
		}
	}
	// What the beginning and the end of a run cost is in both kinds of run once.
	short, long := profiles[0], profiles[1]
	for _, x := range all {
		s, l := got[x.name+", "+short.about], got[x.name+", "+long.about]
		more := func(short, long []float64) float64 {
			return (median(long)*hundredSteps + median(long) - median(short)) / hundredSteps
		}
		b.note("each step more, "+x.name+": wall; CPU of everybody", "%s µs; %s µs", number(more(s.wall, l.wall)),
			number(more(s.cpu, l.cpu)+more(s.database, l.database)+more(s.temporal, l.temporal)))
	}
	return nil
}

// costs are what was measured of one executor and one kind of run, a value for each round.
type costs struct {
	steps, wall, cpu, database, temporal []float64
}

// cost has one process make runs one after the other, and then several at once.
func (b *bench) cost(ctx context.Context, x *executor, args []string, steps, serial int, c *costs) (err error) {
	p, err := self(ctx, args...)
	if err != nil {
		return err
	}
	defer func() {
		if e := p.end(); err == nil {
			err = e
		}
	}()
	if _, err := p.order("load %d %d", width, settle.Milliseconds()); err != nil {
		return err
	}
	one, err := p.order("serial %d", serial)
	if err != nil {
		return err
	}
	store, server := "", 0.0
	if x.shared {
		store = os.Getenv("AGENTD_STORE")
	}
	if x.server != nil {
		if server, err = x.server.cpu(); err != nil {
			return err
		}
	}
	database := databaseCPU(store)
	many, err := p.order("load %d %d", width, b.load.Milliseconds())
	if err != nil {
		return err
	}
	made := float64(many.Runs * steps)
	c.steps = append(c.steps, made/(many.ElapsedUS/1e6))
	c.wall = append(c.wall, median(slices.Clone(one.Walls))/float64(steps))
	c.cpu = append(c.cpu, many.CPUUS/made)
	c.database = append(c.database, micro(databaseCPU(store)-database)/made)
	if x.server != nil {
		now, err := x.server.cpu()
		if err != nil {
			return err
		}
		c.temporal = append(c.temporal, (now-server)/made)
	}
	return nil
}

// temporalServer starts the development server of test/temporal, with its database in a
// file.
func (b *bench) temporalServer(ctx context.Context) (*server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	address := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, b.temporal, "-port", strconv.Itoa(address.Port), "-db", filepath.Join(b.dir, "temporal.db"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "ready") {
			return &server{cmd: cmd}, address.String(), nil
		}
	}
	return nil, "", fmt.Errorf("the Temporal server ended before it was ready: %w", cmd.Wait())
}
