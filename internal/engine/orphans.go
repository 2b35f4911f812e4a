package engine

import (
	"context"
	"errors"
	"time"

	"agentd/internal/store"
)

// orphansEvery is how often a worker looks for runs that nobody waits for any more.
const orphansEvery = time.Minute

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
		m := &store.Mail{RunID: r.ID, ID: "orphan_" + n.e.cfg.NewID(), Kind: mailLook, Created: n.e.now()}
		err := n.commit(context.WithoutCancel(n.e.ctx), &store.Tx{Tenant: r.Tenant, Mail: []*store.Mail{m}})
		if err != nil {
			if !errors.Is(err, store.ErrNotFound) && n.e.ctx.Err() == nil {
				n.e.log.Warn("a run whose parent has ended could not be woken; it is tried again", "run", r.ID, "error", err)
			}
			continue
		}
		_ = n.exec.Wake(n.e.ctx, Ref{r.Tenant, r.ID})
		n.hub.send(note{Kind: noteMail, Tenant: r.Tenant, Run: r.ID})
	}
}
