package engine

import (
	"context"
	"errors"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
)

// orphansEvery is how often a worker looks for runs that nobody waits for any more.
const orphansEvery = time.Minute

// wakeOrphans has runs looked after that wait for people below a run that has ended:
// its home cancels them then, but may have died in between, and nobody claims a run
// that waits. Whoever loads one finds that its parent has ended and cancels it, so a
// second look, by another node too, is harmless.
func (n *node) wakeOrphans() {
	if !n.cfg.Worker || n.lease() == "" {
		return
	}
	refs, err := n.e.store.Unfinished(n.e.ctx)
	if err != nil {
		return // it is looked again
	}
	under := make(map[Ref]bool, len(refs))
	for _, r := range refs {
		under[Ref{r.Tenant, r.ID}] = true
	}
	for _, r := range refs {
		above := run.ParentID(r.ID)
		if run.Status(r.Status) != run.Paused || above == "" || under[Ref{r.Tenant, above}] {
			continue
		}
		m := &store.Mail{RunID: r.ID, ID: "orphan_" + n.e.cfg.NewID(), Kind: mailLook, Created: n.e.now()}
		err := n.commit(context.WithoutCancel(n.e.ctx), &store.Tx{Tenant: r.Tenant, Mail: []*store.Mail{m}})
		if err != nil {
			if !errors.Is(err, store.ErrNotFound) && n.e.ctx.Err() == nil {
				n.e.log.Warn("a run whose parent has ended could not be woken; it is tried again", "run", r.ID, "error", err)
			}
			continue
		}
		n.kick()
		n.hub.send(note{Kind: noteMail, Tenant: r.Tenant, Run: r.ID})
	}
}
