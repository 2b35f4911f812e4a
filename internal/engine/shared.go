package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// What an engine does by its own memory when it is alone, and by the store when it
// shares that with others: lanes, holds, and telling.

// tell says something to this node and to the others.
func (n *node) tell(x note) {
	n.take(x)
	n.hub.send(x)
}

// take is what a note makes this node do.
func (n *node) take(x note) {
	e, ref := n.e, x.ref()
	e.mu.Lock()
	d, s := e.drivers[ref], e.streams[ref]
	e.mu.Unlock()
	switch x.Kind {
	case noteWork:
		n.kick()
	case noteMail, noteCancel:
		if d == nil || !d.put(item{mail: true, unload: x.Kind == noteCancel}) {
			n.kick()
		}
	case noteDone:
		n.mu.Lock()
		a := n.replies[x.ID]
		n.mu.Unlock()
		ring(a.ring)
	case noteEnd:
		n.mu.Lock()
		for _, a := range n.replies {
			if a.ref == ref {
				ring(a.ring) // it came too late
			}
		}
		n.mu.Unlock()
		e.wakeWaiters(ref)
		n.kick()
		if s != nil {
			s.relay(piece{look: true})
		}
	case noteEvents:
		if s != nil {
			if s.relay(piece{prev: x.Prev, durable: x.Durable, events: x.Events, whole: x.Whole}) {
				n.announce(ref, true)
			}
		}
	case noteWatch:
		if d != nil && s != nil {
			n.passOn(ref, s, x.Whole)
		}
	case noteAsk, noteStop, noteResult, noteNews:
		n.takePool(x)
	case noteHome:
		if d == nil && s != nil && s.followed() {
			n.announce(ref, true)
		}
	}
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// missed makes good what the bus lost: everything is looked at.
func (n *node) missed() {
	n.kick()
	ring(n.pool.kicks)
	n.wakeWaited()
	n.mu.Lock()
	for _, a := range n.replies {
		ring(a.ring)
	}
	n.mu.Unlock()
	e := n.e
	e.mu.Lock()
	var refs []Ref
	for ref := range e.waiters {
		refs = append(refs, ref)
	}
	for _, d := range e.drivers {
		d.put(item{mail: true})
	}
	ask := map[Ref]bool{}
	for ref, s := range e.streams {
		s.relay(piece{look: true})
		ask[ref] = e.drivers[ref] == nil && s.asks()
	}
	e.mu.Unlock()
	for ref, lacks := range ask {
		if lacks {
			n.announce(ref, true)
		}
	}
	for _, ref := range refs {
		e.wakeWaiters(ref)
	}
}

// watching is how long another node is taken to read a run after it said so.
func (n *node) watching() time.Duration { return 15 * n.cfg.Poll }

// passOn has the events of a run that is driven here passed on to other nodes for a
// while, from what no commit contains on if whole.
func (n *node) passOn(ref Ref, s *stream, whole bool) {
	n.mu.Lock()
	n.watchers[ref] = time.Now().Add(n.watching())
	n.mu.Unlock()
	s.pass(func(p piece) {
		n.hub.send(note{Kind: noteEvents, Tenant: ref.Tenant, Run: ref.ID, Prev: p.prev, Durable: p.durable, Events: p.events, Whole: p.whole})
	}, whole)
}

// announce tells whoever drives a run that it is read here; whole: from what is live now
// and in no commit.
func (n *node) announce(ref Ref, whole bool) {
	n.e.mu.Lock()
	d := n.e.drivers[ref]
	n.e.mu.Unlock()
	if d == nil {
		n.hub.send(note{Kind: noteWatch, Tenant: ref.Tenant, Run: ref.ID, Whole: whole})
	}
}

// announceAll repeats what is read here now and then, and forgets who has not.
func (n *node) announceAll() {
	n.mu.Lock()
	n.beats++
	again := n.beats%5 == 0
	now := time.Now()
	var over []Ref
	for ref, until := range n.watchers {
		if now.After(until) {
			delete(n.watchers, ref)
			over = append(over, ref)
		}
	}
	n.mu.Unlock()
	e := n.e
	read := map[Ref]*stream{}
	e.mu.Lock()
	for _, ref := range over {
		if s := e.streams[ref]; s != nil {
			s.pass(nil, false)
		}
	}
	if again {
		for ref, s := range e.streams {
			if e.drivers[ref] == nil && s.followed() {
				read[ref] = s
			}
		}
	}
	e.mu.Unlock()
	for ref, s := range read {
		n.announce(ref, s.lacks())
	}
}

// patience is how long a reader waits before it looks in the store by itself: long
// where the bus is heard, because it also tells when it lost something.
func (n *node) patience() time.Duration {
	if n.hub.deaf(3 * max(n.cfg.Poll, n.cfg.Lease/5)) {
		return n.cfg.Poll
	}
	return 10 * n.cfg.Poll
}

// tick comes when it is time to look in the store again.
func (n *node) tick() <-chan time.Time { return time.After(n.cfg.Poll) }

// tick is nil, which never comes, for an engine that is alone: it knows.
func (e *Engine) tick() <-chan time.Time {
	if e.node == nil {
		return nil
	}
	return e.node.tick()
}

// ahead gives what has a session's turn: a run, a holder, or "" if it is free.
func (e *Engine) ahead(ctx context.Context, session Ref) (string, error) {
	if e.node == nil {
		return e.occupant(ctx, session), nil
	}
	id, err := e.node.st.Ahead(ctx, session.Tenant, session.ID, e.node.now())
	if err != nil {
		return "", notFound("session", session.ID, err)
	}
	return id, nil
}

// holdTries is how often a session is tried to be held that is free by the time that
// one looks who has it.
const holdTries = 4

// holdLane takes a session's turn for something that is not a run, and gives who has
// it instead.
func (n *node) holdLane(ctx context.Context, session Ref, id string) (active string, err error) {
	for range holdTries {
		held := n.hold(session.Tenant, store.HoldSession+session.ID, id)
		if held == nil {
			return "", nil
		}
		if active, err = n.e.ahead(ctx, session); err != nil || active != "" {
			return active, err
		}
		err = &fault.Error{Op: "engine.hold", Kind: fault.Unavailable, Err: fmt.Errorf("session %s can not be kept for this: %w", session.ID, held), Hint: "Try again in a while."}
		if !errors.Is(held, store.ErrConflict) && !errors.Is(held, store.ErrSessionBusy) {
			break
		}
	}
	return "", err
}

// hold takes something for this node, if it is free.
func (n *node) hold(tenant, name, id string) error {
	node := n.lease()
	if node == "" {
		return store.ErrLapsed
	}
	return n.commit(n.e.ctx, &store.Tx{Tenant: tenant, Holds: []store.Hold{{Name: name, ID: id, Node: node, Now: n.now()}}})
}

// held is a hold and who has it.
type held struct{ tenant, name, id string }

// letGo ends a hold. One that could not be ended is tried again while the lease lasts,
// with which it ends.
func (n *node) letGo(tenant, name, id string) {
	l := n.last()
	err := n.commit(context.WithoutCancel(n.e.ctx), &store.Tx{Tenant: tenant, Holds: []store.Hold{{Name: name, ID: id}}})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		n.e.log.Warn("a hold could not be given back; it is tried again", "hold", name, "error", err)
		n.mu.Lock()
		if n.held == l && l != nil {
			n.kept[held{tenant, name, id}] = true
		}
		n.mu.Unlock()
		return
	}
	n.kick()
	n.hub.send(note{Kind: noteWork})
	if session, is := strings.CutPrefix(name, store.HoldSession); is {
		n.submitNext(Ref{tenant, session}, id)
	}
}

// leave is the end of what had a session's turn.
func (n *node) leave(session Ref, id string) {
	if !strings.HasPrefix(id, "run_") {
		n.letGo(session.Tenant, store.HoldSession+session.ID, id)
		return
	}
	n.kick()
	n.hub.send(note{Kind: noteWork})
	n.submitNext(session, id)
}

// startShared is the end of Start on a shared store: a run in a session of its own is
// driven here if there is room, and others by whoever claims them.
func (e *Engine) startShared(ctx context.Context, req *StartRequest, row *store.Run, tx *store.Tx) (*Run, error) {
	n := e.node
	ses := Ref{req.Tenant, row.SessionID}
	if req.SessionID != "" && req.WhenBusy == Reject {
		// Two nodes must not both find it free.
		hold := e.cfg.NewID()
		switch active, err := n.holdLane(ctx, ses, hold); {
		case err != nil:
			return nil, err
		case active != "":
			return nil, busy(active)
		}
		defer n.letGo(req.Tenant, store.HoldSession+req.SessionID, hold)
	}
	n.mu.Lock()
	mine := (n.cfg.Worker || n.cfg.Named) && !n.draining && n.cfg.Executor == nil && len(tx.NewSessions) > 0
	n.mu.Unlock()
	l := n.current()
	if mine = mine && l != nil && n.room() > 0; mine {
		row.Epoch = 1
		tx.Claims = []store.Claim{{RunID: row.ID, Node: l.id, Epoch: 1, Now: n.now()}}
	}
	err := e.put(ctx, tx)
	if mine && errors.Is(err, store.ErrLapsed) {
		mine, tx.Claims = false, nil
		err = e.put(ctx, tx)
	}
	if err != nil {
		return e.startFailed(ctx, req.Tenant, err)
	}
	n.name(Ref{req.Tenant, row.ID})
	if mine {
		e.driveClaimed(l, store.Claimed{RunRef: store.RunRef{Tenant: req.Tenant, ID: row.ID, SessionID: row.SessionID}, Epoch: 1, Turn: true, Root: true},
			&fresh{row: *row, leaf: tx.NewSessions[0].Leaf, entries: tx.Entries, inputs: tx.Inputs})
	} else {
		e.submit(ctx, ses, row)
	}
	return e.view(context.WithoutCancel(ctx), req.Tenant, row)
}

// submit has a durable run driven when it is its turn.
func (e *Engine) submit(ctx context.Context, session Ref, row *store.Run) {
	ref := Ref{session.Tenant, row.ID}
	if e.node == nil {
		if e.lineUp(session, row.ID) {
			e.drive(ref)
		}
		return
	}
	if err := e.node.exec.Submit(ctx, ref); err != nil {
		e.log.Warn("a run could not be submitted; it is found by who looks for work", "run", row.ID, "error", err)
	}
}

// calm is whether a driver that hands over waits for nothing that could be lost: a
// child run goes on without it.
func (d *driver) calm() bool {
	for key := range d.effects {
		if !d.children[key] {
			return false
		}
	}
	return true
}

// unreserve gives back what was reserved for a model call that is left to the next
// driver, which reserves for it again: it was not made.
func (d *driver) unreserve(eff run.Effect, b *batch) {
	if _, call := eff.(run.CallModel); call && d.grant != nil && d.grant.held {
		b.tx.Settles = append(b.tx.Settles, store.Settlement{RunID: d.ref.ID, How: store.SettledFree, Time: d.e.now()})
		d.grant = nil
	}
}

// postpones is whether a driver that hands over leaves an effect to the next one: all
// but those that can not be left once they are decided.
func (d *driver) postpones(eff run.Effect) bool {
	if !d.draining {
		return false
	}
	switch eff := eff.(type) {
	case run.CallModel, run.SpawnChild, run.Reserve, run.Compact:
		return true
	case run.CallTool:
		return eff.Effect != "once"
	}
	return false
}

// complain logs what went wrong, but not what goes wrong because the driver lets go.
func (d *driver) complain(what string, err error) {
	if d.ctx.Err() == nil {
		d.e.log.Error(what, "run", d.ref.ID, "error", err)
	}
}

// letGo ends the driver for something that another one may be able to do later: the run
// goes on from its last commit.
func (d *driver) letGo(what string, err error) {
	if d.ctx.Err() == nil {
		d.complain(what, err)
		d.e.driveLater(d.ref)
		d.stop()
	}
}

// aside takes what is no input.
func (d *driver) aside(it *item) bool {
	switch {
	case it.look:
		delete(d.timers, lookKey)
		d.look()
	case it.mail, it.drain:
		if it.drain {
			d.draining = true
			d.handOver()
		}
		if it.mail {
			d.readMail()
		}
	case it.agent != nil:
		d.adopt(it.agent)
	case it.left:
		delete(d.effects, it.effect)
		b := &batch{tx: &store.Tx{Tenant: d.ref.Tenant}}
		if it.extra != nil {
			it.extra(b.tx)
		}
		if it.in != nil {
			if tr, err := run.Step(d.state, it.in); err == nil {
				d.state = tr.State
				d.record(b, it.in, &tr)
			} else {
				d.rejected(item{}, it.in, err)
			}
		}
		if d.state.Phase != run.PhaseCompact {
			d.unreserve(run.CallModel{}, b)
		}
		if len(b.tx.Settles)+len(b.tx.Usage) > 0 {
			d.commit(b, *it)
		}
	default:
		return false
	}
	return true
}

// errHandedOver ends the wait of a call that was not begun: the next driver makes it.
var errHandedOver = errors.New("the run is handed over")

// aheadOf gives a context for the wait ahead of a call, which also ends when the run is
// handed over, with errHandedOver as its cause.
func (d *driver) aheadOf(ctx context.Context) (wait context.Context, stop func()) {
	wait, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(d.handover, func() { cancel(errHandedOver) })
	return wait, func() {
		forget()
		cancel(nil)
	}
}

// leave ends an attempt that was not begun, for the next driver to make. in and extra
// note what was used ahead of it, or are nil.
func (a *attempt) leave(key string, in run.Input, extra func(*store.Tx)) {
	if a.over.CompareAndSwap(false, true) {
		a.d.put(item{in: in, effect: key, left: true, extra: extra})
		a.d.e.wg.Done()
	}
}
