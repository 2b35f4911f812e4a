package engine

import "agentd/internal/run"

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
