package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// Executor decides where and when runs of a shared store are driven. It is told by
// ids alone, after what it is about is in the store; what it is told may be doubled,
// and what is lost is made good by whoever looks in the store. Whoever it chooses calls
// [Engine.Drive], or is a node that takes what there is (Cluster.Worker).
type Executor interface {
	// Submit says that a run was accepted, or that it is its turn.
	Submit(ctx context.Context, ref Ref) error
	// Wake says that there is mail for a run, or that it was given back.
	Wake(ctx context.Context, ref Ref) error
	// Cancel is Wake for a run that is asked to stop.
	Cancel(ctx context.Context, ref Ref) error
}

// workersOf is the executor of nodes that take what there is.
type workersOf struct{ n *node }

// Submit implements Executor.
func (w workersOf) Submit(_ context.Context, _ Ref) error { return w.wake() }

// Wake implements Executor.
func (w workersOf) Wake(_ context.Context, _ Ref) error { return w.wake() }

// Cancel implements Executor.
func (w workersOf) Cancel(_ context.Context, _ Ref) error { return w.wake() }

func (w workersOf) wake() error {
	w.n.kick()
	w.n.hub.send(note{Kind: noteWork})
	return nil
}

// claim is a driver's right to a run on a shared store.
type claim struct {
	epoch int64 // what the run's row has until the driver's first commit
	turn  bool  // no other run of the session is ahead
	now   int64 // what the store's clock showed when it was claimed
	root  bool  // it is no child of another run
	taken bool  // whoever had it did not give it back
	lease *lease
}

// holds is whether what the driver does is its own to do. It is asked at the last moment
// before something happens that others could notice: a process that was stopped for a
// while goes on in the middle of whatever it did, and may even have another lease by then,
// under which others have the run.
func (d *driver) holds() bool { return d.claim == nil || d.claim.lease.holds() }

// errLost ends a driver whose run another node has.
var errLost = fmt.Errorf("another node has the run: %w", context.Canceled)

// claimMost is how many runs are claimed at a time.
const claimMost = 64

func (n *node) kick() {
	select {
	case n.kicks <- struct{}{}:
	default:
	}
}

// work claims runs when there may be some, and looks after those of this node.
func (n *node) work() {
	defer n.e.wg.Done()
	t, orphans := time.NewTicker(n.cfg.Poll), time.NewTicker(orphansEvery)
	defer t.Stop()
	defer orphans.Stop()
	n.wakeOrphans()
	for {
		select {
		case <-n.kicks:
		case <-t.C:
			n.tend()
			n.tendWaited()
		case <-orphans.C:
			n.wakeOrphans()
		case <-n.e.ctx.Done():
			return
		}
		n.claimAll()
	}
}

// claimAll claims what there is to do, as far as there is room for it.
func (n *node) claimAll() {
	for {
		n.mu.Lock()
		idle := n.draining || !n.takes() && len(n.named) == 0
		only := slices.SortedFunc(maps.Keys(n.named), func(a, b Ref) int { return cmp.Compare(a.ID, b.ID) })
		n.mu.Unlock()
		l := n.current()
		if idle || l == nil {
			return
		}
		q := store.ClaimRequest{Node: l.id, Version: run.StateVersion, Now: n.now(), Roots: n.room(), Limit: claimMost}
		var got []store.Claimed
		var err error
		if n.takes() {
			got, err = n.st.Claim(n.e.ctx, q)
		}
		for i := 0; i < len(only) && err == nil && !n.takes(); i++ {
			q.Only, q.Below = &store.RunRef{Tenant: only[i].Tenant, ID: only[i].ID}, true
			var more []store.Claimed
			more, err = n.st.Claim(n.e.ctx, q)
			got = append(got, more...)
		}
		for _, c := range got {
			n.e.driveClaimed(l, c, nil)
		}
		if err != nil {
			if n.e.ctx.Err() == nil && !errors.Is(err, store.ErrLapsed) {
				n.e.log.Warn("runs can not be claimed; it is tried again", "error", err)
			}
			return
		}
		if len(got) < claimMost {
			return
		}
	}
}

// name has a node that is Named drive a run and those of its tree.
func (n *node) name(ref Ref) {
	if !n.cfg.Named {
		return
	}
	ref.ID, _, _ = strings.Cut(ref.ID, ".")
	n.mu.Lock()
	n.named[ref] = true
	n.mu.Unlock()
	n.kick()
}

// room is how many more runs this node takes that are no children of others.
func (n *node) room() int {
	n.e.mu.Lock()
	defer n.e.mu.Unlock()
	room := n.e.cfg.MaxConcurrentRuns
	for _, d := range n.e.drivers {
		if d.claim != nil && d.claim.root {
			room--
		}
	}
	return max(0, room)
}

// tend looks for what was missed: mail for runs of this node, and runs that are its
// own and that nobody here drives, such as one whose commit failed.
func (n *node) tend() {
	n.announceAll()
	l := n.current()
	if l == nil {
		return
	}
	n.mourn()
	n.mu.Lock()
	kept := slices.Collect(maps.Keys(n.kept))
	clear(n.kept)
	n.mu.Unlock()
	for _, h := range kept {
		n.letGo(h.tenant, h.name, h.id)
	}
	all, err := n.st.Claimed(n.e.ctx, l.id)
	if err != nil {
		return
	}
	orphans := map[Ref]int64{}
	n.mu.Lock()
	before, draining := n.orphans, n.draining
	n.mu.Unlock()
	for _, c := range all {
		ref := Ref{c.Tenant, c.ID}
		n.e.mu.Lock()
		d := n.e.drivers[ref]
		n.e.mu.Unlock()
		switch {
		case d != nil:
			if c.Mail {
				d.put(item{mail: true})
			}
		case before[ref] != c.Epoch:
			orphans[ref] = c.Epoch // it may be about to be driven, or given back
		case draining || !n.takes() && !n.cfg.Named || run.Status(c.Status) == run.Paused && !c.Mail:
			n.giveBack(ref, c.Epoch, 0)
		default:
			n.e.driveClaimed(l, c, nil)
		}
	}
	n.mu.Lock()
	n.orphans = orphans
	clear(n.resting)
	n.mu.Unlock()
}

// driveClaimed drives a run that this node has claimed under a lease. If that is over by
// now the run is left to whoever takes it: there is no driver then. Nor is there if the
// run was claimed again since, by this node too: that driver is left alone.
func (e *Engine) driveClaimed(l *lease, c store.Claimed, f *fresh) *driver {
	ref := Ref{c.Tenant, c.ID}
	for {
		d := e.driveAs(ref, f, &claim{epoch: c.Epoch, turn: c.Turn, now: c.Now, root: c.Root, taken: c.Taken, lease: l})
		switch {
		case d == nil && e.node.isDraining() && e.ctx.Err() == nil:
			// It was claimed as the node was told to stop.
			e.node.giveBack(ref, c.Epoch, 0)
			e.node.hub.send(note{Kind: noteWork})
			return nil
		case d == nil || !l.holds() || d.claim != nil && d.claim.epoch > c.Epoch:
			return nil
		case d.claim != nil && d.claim.epoch == c.Epoch:
			e.node.hub.send(note{Kind: noteHome, Tenant: ref.Tenant, Run: ref.ID})
			return d
		}
		// The one before it lost the run, and is about to find out.
		d.stop()
		select {
		case <-d.gone:
		case <-e.ctx.Done():
			return nil
		}
	}
}

// giveBack ends a claim, so that any node may take the run when there is something to
// do. needs is the version that a node must have for it, or 0.
func (n *node) giveBack(ref Ref, epoch int64, needs int) {
	ctx, cancel := context.WithTimeout(n.e.ctx, n.cfg.Lease)
	defer cancel()
	err := n.commit(ctx, &store.Tx{Tenant: ref.Tenant, Claims: []store.Claim{{RunID: ref.ID, Epoch: epoch, Needs: needs}}})
	if err != nil && n.e.ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
		n.e.log.Warn("a run could not be given back; it is tried again", "run", ref.ID, "error", err)
	}
}

// left is the end of a driver.
func (n *node) left(d *driver) {
	n.mu.Lock()
	resting := n.resting[d.ref]
	draining := n.draining
	n.mu.Unlock()
	switch {
	case d.loaded && d.state.Status.Ended() && d.commits.failed() == nil:
		n.kick()
		return
	case !d.holds():
		return // the end of the lease gives it back
	case d.needs == 0 && (resting || !d.loaded && !draining):
		return // it is driven again in a while
	case d.loaded && d.idleVisit() && !draining:
		return // it should not have been claimed: not again at once
	}
	n.giveBack(d.ref, d.fence, d.needs)
	n.kick() // there may be mail that came too late for this driver
	if draining {
		n.hub.send(note{Kind: noteWork})
	}
}

// rest keeps a run that could not be driven from being driven again at once.
func (n *node) rest(ref Ref) {
	n.mu.Lock()
	n.resting[ref] = true
	n.mu.Unlock()
}

// Parked is a run that is not driven.
type Parked struct {
	Status run.Status
	// Next is when it has something to do by itself, in Unix milliseconds; 0: when
	// somebody wants something of it.
	Next int64
}

// Drive drives a run of a shared store here until it is parked or has ended. When ctx
// ends it hands over: effects under way may finish as long as Cluster.DrainTimeout
// allows. A run that another node drives is a conflict, one that a newer node must drive
// is unavailable; one that has nothing to do is parked at once.
func (e *Engine) Drive(ctx context.Context, ref Ref) (Parked, error) {
	n := e.node
	if n == nil {
		return Parked{}, fault.New(fault.Unsupported, "an engine that is alone drives runs by itself")
	}
	var p Parked
	for try := 0; ; try++ {
		drove, err := n.driveOnce(ctx, ref)
		if err != nil {
			return Parked{}, err
		}
		row, err := e.store.Run(ctx, ref.Tenant, ref.ID)
		if err != nil {
			return Parked{}, notFound("run", ref.ID, err)
		}
		if p.Status = run.Status(row.Status); p.Status.Ended() {
			return p, nil
		}
		more, err := n.unparked(ctx, ref, row)
		switch {
		case err != nil:
			return p, internal("engine.Drive", err)
		case more && drove && try < driveTries && p.Status != run.Running:
			continue // it came too late for that driver
		case more:
			return p, &fault.Error{Op: "engine.Drive", Kind: fault.Conflict, Err: fmt.Errorf("run %s is driven elsewhere, or could not be", ref.ID), Hint: "Try again in a while."}
		}
		break
	}
	open, err := e.allInterrupts(ctx, ref.Tenant, store.InterruptFilter{Status: "open", RunID: ref.ID, Within: ref.ID})
	if err != nil {
		return p, internal("engine.Drive", err)
	}
	for _, i := range open {
		if i.RunID == ref.ID && i.Expires > 0 && (p.Next == 0 || i.Expires < p.Next) {
			p.Next = i.Expires
		}
	}
	return p, nil
}

// driveTries is how often a run is driven once more at once for what it was asked while
// its driver left.
const driveTries = 3

// driveOnce drives a run here if there is something to do and nobody else has it.
func (n *node) driveOnce(ctx context.Context, ref Ref) (drove bool, err error) {
	away := &fault.Error{Op: "engine.Drive", Kind: fault.Unavailable, Err: errors.New("this node takes no runs now"), Hint: "Try again in a while."}
	l := n.current()
	if l == nil || n.isDraining() {
		return false, away
	}
	lapsed := &fault.Error{Op: "engine.Drive", Kind: fault.Unavailable, Err: errLapsed, Hint: "Another node goes on."}
	got, err := n.st.Claim(ctx, store.ClaimRequest{Node: l.id, Version: run.StateVersion, Now: n.now(), Roots: 1, Limit: 1, Only: &store.RunRef{Tenant: ref.Tenant, ID: ref.ID}})
	if err != nil {
		return false, internal("engine.Drive", err)
	}
	if len(got) == 0 {
		return false, n.leaves(ctx, ref)
	}
	d := n.e.driveClaimed(l, got[0], nil)
	switch {
	case d != nil:
	case l.lapsed():
		return false, lapsed
	case n.e.ctx.Err() != nil:
		return false, fault.New(fault.Unavailable, "the engine is closing")
	default:
		return false, away // it was told to stop meanwhile, or has a newer claim
	}
	over, asked := l.ctx.Done(), ctx.Done()
	var late <-chan time.Time
	for driven := true; driven; {
		select {
		case <-d.gone:
			driven = false
		case <-over:
			// The driver stops what it does, and may have to wait long for a store that is
			// cut off. Nobody else has to wait for it: what it still commits is fenced.
			if over = nil; l.lapsed() {
				return true, lapsed
			}
		case <-asked:
			asked, late = nil, time.After(n.cfg.DrainTimeout)
			d.put(item{drain: true})
		case <-late:
			d.stop()
		}
	}
	if asked == nil {
		return true, &fault.Error{Op: "engine.Drive", Kind: fault.Cancelled, Err: ctx.Err()}
	}
	if d.needs > 0 {
		return true, tooNew(ref)
	}
	if n.isResting(ref) {
		return true, &fault.Error{Op: "engine.Drive", Kind: fault.Unavailable, Err: fmt.Errorf("run %s could not be driven here", ref.ID), Hint: "The log says why. Try again in a while."}
	}
	return true, nil
}

// unparked is whether a run that nobody drives here has something to do: somebody else
// has it, or is about to give it back, and would not be asked again.
func (n *node) unparked(ctx context.Context, ref Ref, row *store.Run) (bool, error) {
	switch run.Status(row.Status) {
	case run.Running:
		return true, nil
	case run.Queued:
		if first, err := n.st.Ahead(ctx, ref.Tenant, row.SessionID, n.now()); err != nil || first == ref.ID {
			return true, err
		}
	}
	waiting, err := n.st.Mail(ctx, ref.Tenant, ref.ID)
	return len(waiting) > 0, err
}

// idleVisit is whether a driver found nothing to do in a run that waits for people.
func (d *driver) idleVisit() bool {
	return d.state.Status == run.Paused && d.fence == d.claim.epoch && !d.gotMail
}

// expireDue ends the interrupts whose time is over: that is what the run may have been
// claimed for, and nobody keeps a timer for a run that nobody drives.
func (d *driver) expireDue() {
	if d.claim == nil || d.state.Status != run.Paused || d.ctx.Err() != nil {
		return
	}
	open, err := d.e.allInterrupts(d.ctx, d.ref.Tenant, store.InterruptFilter{Status: "open", RunID: d.ref.ID, Within: d.ref.ID})
	if err != nil {
		return // it is claimed again
	}
	// It may have been claimed because the store's clock says so, whatever this one shows.
	now := max(d.e.now(), d.e.node.now(), d.claim.now)
	for _, i := range open {
		if i.RunID == d.ref.ID && i.Expires > 0 && i.Expires <= now {
			d.apply(item{in: run.TimerFired{At: run.At{Now: now}, ID: i.ID}})
		}
	}
}
