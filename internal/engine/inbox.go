package engine

import (
	"agentd/internal/run"
	"agentd/internal/store"
)

// item is an input with what must be in the same commit and who waits for it.
type item struct {
	in    run.Input
	extra func(*store.Tx)
	done  chan error // nil: nobody waits
	// outcome of an effect: its key, so that it is no longer open.
	effect string
	// look and agent are no inputs: the run is to look at its children, and to go
	// on with another agent of its profile.
	look  bool
	agent *Agent
	// Nor are mail and drain: there is some in the store, and the driver is to hand
	// over. With unload the mail asks to stop. letter is the mail that in is of.
	mail, unload, drain bool
	letter              string
	// left: the effect was not begun, and is the next driver's.
	left bool
}

// put hands an item to the driver, unless that is leaving.
func (d *driver) put(it item) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving {
		return false
	}
	d.inbox = append(d.inbox, it)
	if it.cancels() && d.unload != nil {
		d.unload()
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return true
}

// cancels is whether an item asks the run to stop.
func (it *item) cancels() bool {
	_, cancel := it.in.(run.CancelRequested)
	return cancel || it.unload
}

// departing is whether the driver is about to go, or has to.
func (d *driver) departing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leaving || d.ctx.Err() != nil
}

func (d *driver) take() []item {
	d.mu.Lock()
	defer d.mu.Unlock()
	items := d.inbox
	d.inbox = nil
	return items
}

// waiting is whether there are items to take.
func (d *driver) waiting() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inbox) > 0
}
