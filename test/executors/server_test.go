package executors

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
	"agentd/internal/engine/temporal"
)

// binary is the development server, built once.
const binary = "../../.cache/temporaldev"

func TestMain(m *testing.M) {
	out, err := filepath.Abs(binary)
	if err == nil {
		cmd := exec.Command("go", "build", "-o", out, "./cmd/temporaldev")
		cmd.Dir = "../temporal"
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the Temporal development server can not be built:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// server is a Temporal server that can be killed and comes back with what it had.
type server struct {
	t    *testing.T
	port int
	db   string
	more []string // arguments
	cmd  *exec.Cmd
}

func newServer(t *testing.T) *server {
	t.Helper()
	return serverOn(t, filepath.Join(t.TempDir(), "temporal.db"))
}

// serverOn is a server with its database in a file, or in memory.
func serverOn(t *testing.T, db string, more ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, port: l.Addr().(*net.TCPAddr).Port, db: db, more: more}
	l.Close()
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(binary, append([]string{"-port", strconv.Itoa(s.port), "-db", s.db}, s.more...)...)
	s.cmd.Stderr = s.t.Output()
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			if strings.HasPrefix(sc.Text(), "ready") {
				ready <- true
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		s.t.Fatal("the Temporal server does not start")
	}
}

// kill is SIGKILL.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

func (s *server) hostPort() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *server) client() client.Client {
	s.t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.hostPort()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// wire is a connection to the server that can be cut.
type wire struct {
	l     net.Listener
	to    string
	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); w.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

func (w *wire) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer s.Close()
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return
	}
	w.conns[c], w.conns[s] = true, true
	w.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, d := range [][2]net.Conn{{c, s}, {s, c}} {
		go func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := d[0].Read(buf)
				if n > 0 {
					if _, err := d[1].Write(buf[:n]); err != nil {
						break
					}
				}
				if err != nil {
					break
				}
			}
			done <- struct{}{}
		}()
	}
	<-done
	w.mu.Lock()
	delete(w.conns, c)
	delete(w.conns, s)
	w.mu.Unlock()
}

// set cuts the wire or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for c := range w.conns {
			c.Close()
		}
	}
}

// node is an engine with its way to Temporal.
type node struct {
	*engine.Engine
	x    *temporal.Executor
	wire *wire
}

// cluster makes nodes on one store that drive runs as a Temporal server says.
type cluster struct {
	// pools is what its nodes do; nil is everything.
	pools  []string
	t      *testing.T
	s      *server
	prefix string
	bus    engine.Bus
	opts   temporal.Options
	// before is called ahead of a worker's work, or nil.
	before func(n *node)
}

func newCluster(t *testing.T, s *server) *cluster {
	return &cluster{t: t, s: s, prefix: "q" + strconv.FormatInt(time.Now().UnixNano(), 36), bus: &engine.MemoryBus{},
		opts: temporal.Options{Heartbeat: 2 * time.Second, Throttle: 500 * time.Millisecond, Sweep: time.Second, Drain: 10 * time.Second}}
}

// node starts a node that drives runs if it is a worker.
func (c *cluster) node(cfg engine.Config, name string, worker bool) *node {
	c.t.Helper()
	n := &node{wire: newWire(c.t, c.s.hostPort())}
	o := c.opts
	o.Address, o.Prefix, o.Name, o.Log = "temporal://"+n.wire.l.Addr().String()+"/default", c.prefix, name, cfg.Log.With("node", name)
	var err error
	if n.x, err = temporal.Open(o); err != nil {
		c.t.Fatal(err)
	}
	cfg.Log = o.Log
	cfg.Cluster = &engine.Cluster{Name: name, Worker: worker, Bus: c.bus, Executor: n.x, Pools: c.pools, Lease: 2 * time.Second, Poll: 200 * time.Millisecond, DrainTimeout: 8 * time.Second}
	n.Engine = enginetest.Start(c.t, cfg)
	c.t.Cleanup(func() { n.x.Close() })
	if c.before != nil {
		c.before(n)
	}
	if worker {
		n.x.Work(n.Engine)
	}
	ctx, stop := context.WithCancel(context.Background())
	c.t.Cleanup(stop)
	go n.x.Sweep(ctx, n.Engine)
	return n
}
