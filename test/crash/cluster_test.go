package crash

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentd/client"
	"agentd/internal/store/postgres/pgtest"
	"agentd/message"
)

// node is one of the processes that share a store.
type node struct {
	w    *world
	args []string
	cmd  *exec.Cmd
	read chan struct{}
	// stopped: it was told to stop, and must end by itself.
	stopped bool
}

func (n *node) start() {
	t := n.w.t
	t.Helper()
	args := append(append([]string{}, n.args...), "--configs", filepath.Join(n.w.dir, "configs"))
	n.cmd = exec.Command(n.w.binary, append(args, n.w.place...)...)
	n.cmd.Dir = n.w.dir
	stderr, err := n.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up, read := make(chan bool, 1), make(chan struct{})
	n.read, n.stopped = read, false
	go func() {
		defer close(read)
		for sc := bufio.NewScanner(stderr); sc.Scan(); {
			line := sc.Text()
			if strings.Contains(line, " listens on ") || strings.Contains(line, " runs of ") && strings.Contains(line, "healthz") {
				up <- true
			}
			// A node that was stopped past its lease says so.
			if (strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic")) && !strings.Contains(line, "lost its lease") {
				t.Errorf("%s: %s", n.args[0], line)
			}
		}
		close(up)
	}()
	select {
	case ok := <-up:
		if !ok {
			t.Fatalf("%v did not start", n.args)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%v did not start in 30 s", n.args)
	}
}

func (n *node) signal(s syscall.Signal) {
	if n.cmd != nil {
		if err := n.cmd.Process.Signal(s); err != nil {
			n.w.t.Error(err)
		}
	}
}

// end waits for the end of the process, after a signal.
func (n *node) end() {
	if n.cmd == nil {
		return
	}
	<-n.read
	err := n.cmd.Wait()
	if n.stopped && err != nil {
		n.w.t.Errorf("%v was told to stop: %v", n.args, err)
	}
	n.cmd = nil
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
	t.Cleanup(func() {
		for _, n := range all {
			if n.cmd != nil {
				n.stopped = false
				_ = n.cmd.Process.Kill()
				n.end()
			}
		}
	})
	for _, n := range all {
		n.start()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rounds)*10*time.Second+3*time.Minute)
	defer cancel()
	var person sync.WaitGroup
	personCtx, stopPerson := context.WithCancel(ctx)
	person.Go(func() { w.person(personCtx, rand.New(rand.NewPCG(uint64(seed), 6))) })
	var runs []*watched
	for round := range rounds {
		for i := range 3 {
			mode := []string{"interactive", "autonomous"}[(round+i)%2]
			r, err := w.client.Start(ctx, client.StartRequest{Profile: "crash", Mode: mode, Input: []message.Block{message.Text("go")},
				IdempotencyKey: fmt.Sprintf("run-%d-%d", round, i)})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			v := &watched{run: r, done: make(chan struct{})}
			runs = append(runs, v)
			go w.watch(ctx, v)
		}
		<-time.After(time.Duration(rng.IntN(300)) * time.Millisecond)
		if kill != nil && round%5 == 4 {
			kill()
		}
		n := workers[rng.IntN(2)]
		switch round % 4 {
		case 0:
			n.signal(syscall.SIGKILL)
			n.end()
			n.start()
		case 1:
			n.signal(syscall.SIGSTOP)
			<-time.After(3 * time.Second)
			n.signal(syscall.SIGCONT)
		case 2:
			n.stopped = true
			n.signal(syscall.SIGTERM)
			n.end()
			n.start()
		case 3:
			api.signal(syscall.SIGKILL)
			api.end()
			api.start()
		}
	}
	for _, v := range runs {
		<-v.done
	}
	stopPerson()
	person.Wait()
	w.check(ctx, runs)
	for _, n := range all {
		n.stopped = true
		n.signal(syscall.SIGTERM)
		n.end()
	}
	if out, err := exec.Command(w.binary, append([]string{"doctor", "--json"}, w.place...)...).CombinedOutput(); err != nil || !strings.Contains(string(out), `"findings":[]`) {
		t.Errorf("the doctor: %v\n%s", err, out)
	}
}
