package engine

import (
	"context"
	"errors"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
)

// lease is the right of this node to drive runs and to make calls for others, as long as
// they believe in it. What it was given under a lease it has under that one alone: it
// ends with it, also where the store's answer came too late, and whatever lease the node
// has by then. A lease that is over never comes back.
type lease struct {
	n  *node
	id string
	// ctx ends with the lease, or with the engine; its cause is errLapsed if it was lost.
	// It is what everything hangs on that was begun under the lease.
	ctx context.Context
	end context.CancelCauseFunc
	// until is when what hangs on it must have stopped, by the node's clock. It and the
	// watchdog are guarded by the node.
	until    time.Duration
	watchdog *time.Timer
}

// errLapsed is why what hung on a lease was ended.
var errLapsed = errors.New("this node lost its lease")

// holds is whether the lease lasts. Whoever finds that it does not ends it, so that
// everybody sees the same: a renewal that comes later is too late.
func (l *lease) holds() bool {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return l.holdsLocked()
}

func (l *lease) holdsLocked() bool {
	if l.ctx.Err() == nil && l.n.clock() >= l.until {
		l.end(errLapsed)
	}
	return l.ctx.Err() == nil
}

// lapsed is whether the lease is over, and not because the engine closes.
func (l *lease) lapsed() bool { return errors.Is(context.Cause(l.ctx), errLapsed) }

// extend notes that the lease was renewed at a time, and says whether it lasts.
func (l *lease) extend(sent time.Duration) bool {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.until = sent + l.n.cfg.Lease - l.n.cfg.Lease/5
	l.watch()
	return true
}

// watch has the lease looked at when it should be over. The node is locked. Timers may
// stand still while the clock does not: whoever comes first finds the end.
func (l *lease) watch() {
	if l.watchdog != nil {
		l.watchdog.Stop()
	}
	l.watchdog = time.AfterFunc(l.until-l.n.clock(), func() {
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		if l.holdsLocked() { // it was extended meanwhile
			l.watch()
		}
	})
}

// drop ends the lease and says whether it had not lapsed.
func (l *lease) drop() bool {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	had := !l.lapsed()
	l.end(errLapsed)
	if l.watchdog != nil {
		l.watchdog.Stop()
	}
	return had
}

// join takes a new lease.
func (n *node) join() error {
	id := "node_" + n.e.cfg.NewID()
	sent, now := n.clock(), n.now()
	err := n.commit(n.e.ctx, &store.Tx{Nodes: []store.NodeChange{{Join: true, Now: now, For: n.cfg.Lease.Milliseconds(), Sweep: now - sweepMail.Milliseconds(),
		Node: store.Node{ID: id, Name: n.cfg.Name, Version: run.StateVersion, Worker: n.cfg.Worker, Pools: n.pools(), Started: now}}}})
	// One that had to wait for the store goes by a lease that is not about over.
	for err == nil && n.clock()-sent > n.cfg.Lease/5 {
		sent, now = n.clock(), n.now()
		err = n.commit(n.e.ctx, &store.Tx{Nodes: []store.NodeChange{{Node: store.Node{ID: id}, Now: now, For: n.cfg.Lease.Milliseconds()}}})
	}
	if err != nil {
		return err
	}
	l := &lease{n: n, id: id}
	l.ctx, l.end = context.WithCancelCause(n.e.ctx)
	l.extend(sent)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = l
	n.orphans = map[Ref]int64{}
	clear(n.kept)
	return nil
}

// renew renews a lease until that fails for good or the engine closes.
func (n *node) renew(l *lease) {
	t := time.NewTicker(n.cfg.Lease / 5)
	defer t.Stop()
	swept := n.clock()
	for {
		select {
		case <-t.C:
		case <-l.ctx.Done():
			return
		}
		if !l.holds() {
			return
		}
		sent, now := n.clock(), n.now()
		c := store.NodeChange{Node: store.Node{ID: l.id}, Now: now, For: n.cfg.Lease.Milliseconds()}
		if sent-swept > time.Minute {
			c.Sweep, swept = now-sweepMail.Milliseconds(), sent
		}
		ctx, cancel := context.WithTimeout(l.ctx, n.cfg.Lease/2)
		err := n.commit(ctx, &store.Tx{Nodes: []store.NodeChange{c}})
		cancel()
		switch {
		case err == nil:
			// The store takes commits. Its drivers may be elsewhere by now, and could
			// not find that out.
			n.e.broken.Store(nil)
			l.extend(sent)
			n.hub.publish(nil)
		case errors.Is(err, store.ErrLapsed):
			return
		case l.ctx.Err() == nil:
			n.e.log.Warn("the lease of this node could not be renewed; it tries again", "error", err)
		}
	}
}

// lose waits for what was driven under a lease that is over.
func (n *node) lose() {
	for _, d := range n.stopDrivers() {
		select {
		case <-d.gone:
		case <-n.e.ctx.Done():
			return
		}
	}
}

// last gives the lease that this node has or had, or nil.
func (n *node) last() *lease {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held
}

// current gives the lease that this node has, or nil.
func (n *node) current() *lease {
	if l := n.last(); l != nil && l.holds() {
		return l
	}
	return nil
}

// lease gives the id of the lease, or "" if it is over.
func (n *node) lease() string {
	if l := n.current(); l != nil {
		return l.id
	}
	return ""
}
