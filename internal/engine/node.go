package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/store"
)

// Cluster makes an engine one of the nodes that share its store, which must be a
// [store.Cluster]. What nodes have to know of each other is in the store: which of
// them drives a run (its home), what is wanted of it (mail), who works on a session
// (holds). All of that counts as long as the node's lease, which is one row however
// much it drives.
type Cluster struct {
	// Name is for people: which machine and process this is.
	Name string
	// Bus tells nodes what is new at once; nil: they look every Poll.
	Bus Bus
	// Worker drives runs; without it the node takes requests and reads events.
	Worker bool
	// Named drives what is named to it alone: runs that are started, answered or
	// cancelled here, and those below them. It is for programs that come and go.
	Named bool
	// Lease is how long a node counts as alive after it was last heard of, and so the
	// longest a run waits for another home; 0 means five seconds. It is renewed five
	// times as often. A node that could not do so lets go of its runs a fifth of Lease
	// before others may take them.
	Lease time.Duration
	// Poll is how often a node looks in the store for what the bus did not tell; 0
	// means a second.
	Poll time.Duration
	// Clock is how long something has lasted, from any beginning: leases go by it. It should
	// go on while the machine sleeps, as Go's own does not everywhere; nil is Go's own.
	Clock func() time.Duration
	// DrainTimeout is how long effects under way may take when the node stops or a
	// driver hands over; 0 means thirty seconds.
	DrainTimeout time.Duration
	// Pools are those whose calls are made here: [PoolModel] and [PoolTool] for calls
	// that name none, or the names of others. Of the runs that it drives, too: calls of
	// other pools are made elsewhere. Nil is all of them. A node that names pools,
	// or a Worker that names none, makes calls for the runs of others.
	Pools []string
	// PoolCalls is how many calls of one pool are made here for others at the same time;
	// 0 means 16.
	PoolCalls int
	// PoolWait is how long a call waits for a node of its pool before it fails; 0 means
	// ten minutes. No other clock of the call runs meanwhile but that of its run.
	PoolWait time.Duration
	// Executor decides where runs are driven; nil: any node that is a Worker takes
	// them.
	Executor Executor
}

// node is this process among those that share the store.
type node struct {
	e   *Engine
	cfg Cluster
	st  store.Cluster
	hub *hub
	// turns are those of readers.
	turns turns
	// exec is cfg.Executor or the workers.
	exec Executor

	mu sync.Mutex
	// held is the lease that this node has, or had last; nil: it has not joined yet.
	held     *lease
	draining bool
	started  bool
	kicks    chan struct{}
	// orphans are claims of this node that nobody here drives, by epoch, as they were
	// seen the last time; resting are runs that are not given back at once.
	orphans map[Ref]int64
	resting map[Ref]bool
	peers   []string // the nodes that there were
	// replies are those who wait for their mail to be applied, watchers until when
	// other nodes read a run.
	replies  map[string]awaited
	beats    int // of tend
	watchers map[Ref]time.Time
	// kept are holds of this lease that could not be given back when they should have been.
	kept map[held]bool
	// named are roots, of a node that is Named.
	named map[Ref]bool
	pool  poolNode
}

// awaited is somebody who waits for mail to be applied to a run.
type awaited struct {
	ref  Ref
	ring chan struct{}
}

// sweepMail is how long mail that was applied is kept for who asked.
const sweepMail = 10 * time.Minute

func newNode(e *Engine, cfg Cluster) (*node, error) {
	st, ok := e.store.(store.Cluster)
	if !ok {
		return nil, &fault.Error{Op: "engine.New", Kind: fault.Unsupported, Err: errors.New("this store can not be shared by several nodes"), Hint: "Use PostgreSQL."}
	}
	if cfg.Lease <= 0 {
		cfg.Lease = 5 * time.Second
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if cfg.DrainTimeout <= 0 {
		cfg.DrainTimeout = 30 * time.Second
	}
	if cfg.Clock == nil {
		began := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(began) }
	}
	n := &node{e: e, cfg: cfg, st: st, exec: cfg.Executor, kicks: make(chan struct{}, 1), orphans: map[Ref]int64{}, resting: map[Ref]bool{},
		turns: turns{most: 4 * runtime.GOMAXPROCS(0)}, replies: map[string]awaited{}, watchers: map[Ref]time.Time{}, named: map[Ref]bool{}, kept: map[held]bool{}, pool: newPoolNode()}
	if n.exec == nil {
		n.exec = workersOf{n}
	}
	n.hub = newHub(cfg.Bus, e.cfg.NewID(), n.take, n.missed)
	return n, nil
}

// start joins and begins to work.
func (n *node) start() error {
	n.mu.Lock()
	again := n.started
	n.started = true
	n.mu.Unlock()
	if again {
		return nil
	}
	if err := n.join(); err != nil {
		return &fault.Error{Op: "engine.Recover", Kind: fault.Unavailable, Err: fmt.Errorf("the node can not join the others: %w", err)}
	}
	n.e.mu.Lock()
	defer n.e.mu.Unlock()
	if !n.e.closed {
		n.e.wg.Add(2)
		go n.keep()
		go n.work()
		if n.makes() {
			n.e.wg.Add(1)
			go n.makeCalls()
		}
		if n.cfg.Worker {
			n.e.wg.Add(1)
			go n.adopt()
		}
	}
	return nil
}

// keep has a lease as long as the engine lives, and lets go of everything each time it
// is lost.
func (n *node) keep() {
	defer n.e.wg.Done()
	for {
		n.kick()
		n.renew(n.last())
		if n.e.ctx.Err() != nil {
			return
		}
		n.last().drop() // nothing of it goes on while somebody reads of that
		n.e.log.Error("this node lost its lease: it stops what it drives and joins again", "node", n.cfg.Name)
		n.lose()
		for err := n.join(); err != nil; err = n.join() {
			if n.e.ctx.Err() != nil {
				return
			}
			n.e.log.Error("this node can not join the others; it tries again", "error", err)
			n.sleep(n.cfg.Poll)
		}
	}
}

func (n *node) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-n.e.ctx.Done():
	}
}

// clock is what leases go by.
func (n *node) clock() time.Duration { return n.cfg.Clock() }

func (n *node) commit(ctx context.Context, tx *store.Tx) error {
	if tx.Tenant == "" {
		tx.Tenant = store.DefaultTenant
	}
	if len(tx.Nodes) > 0 {
		return n.e.store.Commit(ctx, tx) // what nobody knows of a lease is as good as none
	}
	return n.e.put(ctx, tx)
}

// now is what the store is told that the time is, for stores without a clock of their
// own; it is not the engine's clock.
func (n *node) now() int64 { return time.Now().UnixMilli() }

// stopDrivers has every driver let go of its run.
func (n *node) stopDrivers() (all []*driver) {
	n.e.mu.Lock()
	for _, d := range n.e.drivers {
		all = append(all, d)
	}
	n.e.mu.Unlock()
	for _, d := range all {
		d.stop()
	}
	n.stopMade()
	return all
}

// end gives the lease back, so that others need not wait for its end.
func (n *node) end() {
	// Not for tools that do not end: nobody waits for those, here or there.
	for _, d := range n.stopDrivers() {
		<-d.gone
	}
	if l := n.last(); l != nil && l.drop() {
		ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Lease)
		defer cancel()
		if err := n.commit(ctx, &store.Tx{Nodes: []store.NodeChange{{Node: store.Node{ID: l.id}, Leave: true}}}); err == nil {
			n.hub.send(note{Kind: noteWork})
		}
	}
	n.hub.flush()
	n.hub.close()
}

// Drain prepares a node for its end: it claims nothing more, lets effects under way
// finish as long as ctx and Cluster.DrainTimeout allow, and gives the rest to others.
// A call that must not be made twice is not left as long as that lasts. The node goes
// on to answer requests until Close. Alone it does nothing.
func (e *Engine) Drain(ctx context.Context) error {
	n := e.node
	if n == nil {
		return nil
	}
	n.mu.Lock()
	n.draining = true
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, n.cfg.DrainTimeout)
	defer cancel()
	// Drivers first: what can be handed over waits for nothing.
	undriven := n.handOverAll(ctx)
	undecided, unmade := e.decided(ctx), n.finishMade(ctx)
	n.hub.flush()
	return cmp.Or(undriven, undecided, unmade)
}

// handOverAll tells every driver to hand over, and waits until none is left.
func (n *node) handOverAll(ctx context.Context) error {
	e := n.e
	for {
		e.mu.Lock()
		var one *driver
		left := 0
		for _, d := range e.drivers {
			one = d
			left++
			d.put(item{drain: true})
		}
		e.mu.Unlock()
		if one == nil {
			return nil
		}
		select {
		case <-one.gone:
		case <-e.ctx.Done():
			return nil
		case <-ctx.Done():
			for _, d := range n.stopDrivers() {
				select {
				case <-d.gone:
				case <-e.ctx.Done():
				}
			}
			return &fault.Error{Op: "engine.Drain", Kind: fault.Timeout, Err: fmt.Errorf("%d runs were in the middle of something when the time was over", left),
				Hint: "Other nodes go on with them; calls that may have happened are asked about. cluster.drain_timeout gives them more time."}
		}
	}
}

// Nodes lists the nodes that share the store, oldest first; alone there is none.
func (e *Engine) Nodes(ctx context.Context) ([]*store.Node, error) {
	if e.node == nil {
		return nil, nil
	}
	all, err := e.node.st.Nodes(ctx, e.node.now())
	if err != nil {
		return nil, internal("engine.Nodes", err)
	}
	return all, nil
}
