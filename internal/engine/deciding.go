package engine

import (
	"context"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/store"
)

// deciding is the right of a node to decide about the proposals of a tree: a hold, which
// counts as long as the lease it was taken under. A nil one, of an engine that is alone,
// always lasts.
type deciding struct {
	n     *node
	lease *lease
	hold  store.Hold
}

// decide takes that right.
func (n *node) decide(top Ref, id string) (*deciding, func(), error) {
	l := n.current()
	if l == nil {
		return nil, nil, store.ErrLapsed
	}
	d := &deciding{n: n, lease: l, hold: store.Hold{Name: "deciding/" + top.ID, ID: id, Node: l.id, Now: n.now()}}
	if err := n.commit(n.e.ctx, &store.Tx{Tenant: top.Tenant, Holds: []store.Hold{d.hold}}); err != nil {
		return nil, nil, err
	}
	return d, func() { n.letGo(top.Tenant, d.hold.Name, id) }, nil
}

// assert has a change made only while the right lasts: it lets go and takes it again.
func (d *deciding) assert(tx *store.Tx) {
	if d == nil {
		return
	}
	h := d.hold
	h.Now = d.n.now()
	tx.Holds = append(tx.Holds, store.Hold{Name: h.Name, ID: h.ID}, h)
}

// lasts is whether another node can not have that right yet.
func (d *deciding) lasts() bool {
	return d == nil || d.lease.holds()
}

// context ends with the right, or with the engine.
func (d *deciding) context(engine context.Context) context.Context {
	if d == nil {
		return engine
	}
	return d.lease.ctx
}

// lapsedProposal is the error of a call that was not made, or cut off, because the node
// has no lease any more: others may decide about it.
func lapsedProposal(p *store.Proposal) error {
	return &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("proposal %s: this node lost its lease on the store, and the call may or may not have been made", p.ID),
		Hint: "Look at it again, and apply it again where that is safe."}
}

// decided waits until nobody decides about proposals here.
func (e *Engine) decided(ctx context.Context) error {
	for {
		e.mu.Lock()
		var one chan struct{}
		for _, over := range e.deciding {
			one = over
		}
		e.mu.Unlock()
		if one == nil {
			return nil
		}
		select {
		case <-one:
		case <-e.ctx.Done():
			return nil
		case <-ctx.Done():
			return &fault.Error{Op: "engine.Drain", Kind: fault.Timeout, Err: errors.New("proposals were being applied when the time was over"),
				Hint: "Calls that may have happened are asked about. cluster.drain_timeout gives them more time."}
		}
	}
}
