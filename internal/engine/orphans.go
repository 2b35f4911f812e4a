package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
)

const (
	// orphansEvery is how often a worker looks for runs that nobody waits for any more.
	orphansEvery = time.Minute
	// adoptMost is how many runs are woken at a time that waited for somebody below
	// them, adoptPause how long it takes until the next are: they come before others.
	adoptMost  = 64
	adoptPause = 250 * time.Millisecond
)

// orphansMost bounds how many are told at a time; those that were are no more to be found.
const orphansMost = 1000

// wakeOrphans has runs looked after that wait for people below a run that has ended:
// its home cancels them then, but may have died in between, and nobody claims a run
// that waits. Whoever loads one finds that its parent has ended and cancels it, so a
// second look, by another node too, is harmless.
func (n *node) wakeOrphans() {
	if !n.cfg.Worker || n.lease() == "" {
		return
	}
	refs, err := n.st.Orphans(n.e.ctx, orphansMost)
	if err != nil {
		return // it is looked again
	}
	for _, r := range refs {
		n.wakeToLook(r)
	}
}

// wakeToLook has a run loaded that nobody would claim.
func (n *node) wakeToLook(r store.RunRef) {
	m := &store.Mail{RunID: r.ID, ID: "orphan_" + n.e.cfg.NewID(), Kind: mailLook, Created: n.e.now()}
	err := n.commit(context.WithoutCancel(n.e.ctx), &store.Tx{Tenant: r.Tenant, Mail: []*store.Mail{m}})
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) && n.e.ctx.Err() == nil {
			n.e.log.Warn("a run that waits for others could not be woken; it is tried again", "run", r.ID, "error", err)
		}
		return
	}
	n.kick()
	n.hub.send(note{Kind: noteMail, Tenant: r.Tenant, Run: r.ID})
	_ = n.exec.Wake(n.e.ctx, Ref{r.Tenant, r.ID}) // who is not told finds it
}

// mourn looks for orphans as soon as another node is gone: they may be its.
func (n *node) mourn() {
	if !n.cfg.Worker {
		return
	}
	all, err := n.st.Nodes(n.e.ctx, n.now())
	if err != nil {
		return // it is looked again
	}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	n.mu.Lock()
	before := n.peers
	n.peers = ids
	n.mu.Unlock()
	if slices.ContainsFunc(before, func(id string) bool { return !slices.Contains(ids, id) }) {
		n.wakeOrphans()
	}
}

// adopt has every run look at its children that waits for people there, if this is the
// first node on the store: an engine that was alone on it tells parents by memory alone,
// and does the same when it starts. Nodes leave mail, which nothing can lose.
func (n *node) adopt() {
	defer n.e.wg.Done()
	all, err := n.st.Nodes(n.e.ctx, n.now())
	if err != nil || len(all) == 0 || all[0].ID != n.lease() {
		return // others were there before, or it has to join again
	}
	refs, err := n.e.store.Unfinished(n.e.ctx)
	if err != nil {
		n.e.log.Warn("runs that wait for others could not be looked for", "error", err)
		return
	}
	woken := 0
	for _, r := range refs {
		if run.Status(r.Status) != run.Paused || !r.Parent {
			continue
		}
		if n.wakeToLook(r); n.e.ctx.Err() != nil {
			return
		}
		if woken++; woken%adoptMost == 0 {
			n.sleep(adoptPause)
		}
	}
}
