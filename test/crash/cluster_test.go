package crash

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentd/internal/store/postgres/pgtest"
	"agentd/test/proc"
)

// node is one of the processes that share a store.
type node struct {
	w    *world
	args []string
	p    *proc.Process
}

func (n *node) start() {
	t := n.w.t
	t.Helper()
	args := append(append([]string{}, n.args...), "--configs", filepath.Join(n.w.dir, "configs"))
	n.p = proc.Start(t, proc.Command{Path: n.w.binary, Args: append(args, n.w.place...), Dir: n.w.dir})
	n.p.Up()
}

// kill is kill -9, stop is SIGTERM.
func (n *node) kill() {
	n.p.Kill()
	n.heed()
}

func (n *node) stop() {
	n.p.Stop(time.Minute)
	n.heed()
}

// freeze stops it for longer than its lease, and wakes it.
func (n *node) freeze() {
	n.p.Signal(syscall.SIGSTOP)
	<-time.After(3 * time.Second)
	n.p.Signal(syscall.SIGCONT)
}

// heed fails the test if the node said that something is wrong with it. One that was
// stopped past its lease says so.
func (n *node) heed() {
	for line := range strings.Lines(n.p.Complaints()) {
		if !strings.Contains(line, "lost its lease") {
			n.w.t.Errorf("%s: %s", n.args[0], line)
		}
	}
}

// TestNodesOnPostgres is TestKill9 for several processes on one store: an API without
// workers and two workers. At random moments a worker or the API is killed, a worker is
// stopped past its lease and woken, or told to stop. The promises are the same: nothing
// acknowledged is lost, no once call happens twice without a person's word, every
// reader sees numbers that rise and one end, every run ends as an uninterrupted one.
func TestNodesOnPostgres(t *testing.T) { nodes(t, nil) }

// nodes is the test with more arguments for each process, and with something else to
// kill now and then, or nil.
func nodes(t *testing.T, kill func(), more ...string) {
	rounds, seed := number(t, "AGENTD_NODE_ROUNDS", 24), number(t, "AGENTD_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d rounds, AGENTD_SEED=%d", rounds, seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 5))
	c := pgtest.Start(t)
	w := newWorld(t)
	w.place = []string{"--store", c.NewURL()}
	w.write("configs/agentd.yaml", "cluster: {lease: 2s, poll_interval: 500ms, drain_timeout: 20s}\n")
	api := &node{w: w, args: append([]string{"serve", "--no-worker", "--addr", w.addr}, more...)}
	workers := []*node{{w: w, args: append([]string{"worker"}, more...)}, {w: w, args: append([]string{"worker"}, more...)}}
	all := append([]*node{api}, workers...)
	for _, n := range all {
		n.start()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rounds)*10*time.Second+3*time.Minute)
	defer cancel()
	cr := w.crowd(ctx, seed, 6)
	for round := range rounds {
		cr.start(round, 3)
		<-time.After(time.Duration(rng.IntN(300)) * time.Millisecond)
		if kill != nil && round%5 == 4 {
			kill()
		}
		n := workers[rng.IntN(2)]
		switch round % 4 {
		case 0:
			n.kill()
			n.start()
		case 1:
			n.freeze()
		case 2:
			n.stop()
			n.start()
		case 3:
			api.kill()
			api.start()
		}
	}
	cr.settle()
	for _, n := range all {
		n.stop()
	}
	w.doctor()
}
