package engine

import (
	"context"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
)

// Interrupts expire whether their run is in memory or not: their timers are the
// engine's. A run that is loaded sets those of its own again, and goOn those of
// runs that nobody loads.

type expiry struct {
	ref       Ref // of the run
	interrupt string
}

// expireSoon is how long ahead one of several nodes keeps a timer for an interrupt; at a
// later one runs that nobody drives are found by their rows.
const expireSoon = 2 * time.Hour

// expireAt has an interrupt end at a time. A second time replaces the first.
func (e *Engine) expireAt(x expiry, until int64) {
	wait := time.Duration(until-e.now())*time.Millisecond + time.Millisecond
	if e.node != nil && wait > expireSoon {
		return // whoever looks for work then finds it; it may be answered elsewhere long before
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if t := e.expiries[x]; t != nil {
		t.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(max(wait, 0), func() {
		e.mu.Lock()
		if e.closed || e.expiries[x] != t {
			e.mu.Unlock()
			return
		}
		delete(e.expiries, x)
		e.wg.Add(1)
		e.mu.Unlock()
		defer e.wg.Done()
		e.hand(x.ref, item{in: run.TimerFired{At: run.At{Now: max(e.now(), until)}, ID: x.interrupt}})
	})
	e.expiries[x] = t
}

// settled forgets the timer of an interrupt that is no longer open.
func (e *Engine) settled(x expiry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.expiries[x]; t != nil {
		t.Stop()
		delete(e.expiries, x)
	}
}

// hand gives an item to a run, whoever has to be woken. It waits for nothing else.
func (e *Engine) hand(ref Ref, it item) {
	if e.node != nil {
		// Who claims the run sees that its time has come.
		e.mu.Lock()
		d := e.drivers[ref]
		e.mu.Unlock()
		if d == nil || !d.put(it) {
			e.node.kick()
		}
		return
	}
	for {
		d := e.drive(ref)
		if d == nil || d.put(it) {
			return
		}
		select {
		case <-d.gone:
		case <-e.ctx.Done():
			return
		}
	}
}

// expireAll sets the timers of the interrupts of runs that nobody loads. It says
// whether it could: who can not be asked may have some.
func (e *Engine) expireAll(refs []store.RunRef) bool {
	paused := map[Ref]bool{}
	for _, r := range refs {
		if r.Status == string(run.Paused) {
			paused[Ref{r.Tenant, r.ID}] = true
		}
	}
	if len(paused) == 0 {
		return true
	}
	all, err := e.store.Expiring(e.ctx)
	if err != nil {
		e.log.Error("expiring interrupts can not be read; their runs are loaded", "error", err)
		return false
	}
	for _, x := range all {
		if ref := (Ref{x.Tenant, x.RunID}); paused[ref] {
			e.expireAt(expiry{ref, x.ID}, x.Expires)
		}
	}
	return true
}

// overdue ends an interrupt whose time is over and whose timer has not come yet: an
// answer to it is too late. It waits until that is durable.
func (e *Engine) overdue(ctx context.Context, tenant string, row *store.Interrupt) {
	if row.Status == "open" && row.Expires != 0 && row.Expires <= e.now() {
		// If it fails, the answer is refused by the machine all the same.
		_ = e.send(ctx, Ref{tenant, row.RunID}, run.TimerFired{At: run.At{Now: e.now()}, ID: row.ID}, nil)
	}
}
