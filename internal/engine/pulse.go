package engine

import "time"

// pulse tells who waits that it did so for long: idle, after which a reader is told that
// nothing came, and patience, after which it looks in the store by itself. 0 is never. It
// has one timer that runs on, because setting one for each event would cost more than
// the event. A nil pulse never beats.
type pulse struct {
	t              *time.Timer
	idle, patience time.Duration
	quiet, looked  time.Time
}

func newPulse(idle, patience time.Duration) *pulse {
	now := time.Now()
	p := &pulse{idle: idle, patience: patience, quiet: now, looked: now}
	if d := p.left(now); d > 0 {
		p.t = time.NewTimer(d)
	}
	return p
}

// left is the time until the next beat, 0 if there is none.
func (p *pulse) left(now time.Time) time.Duration {
	d := time.Duration(0)
	if p.idle > 0 {
		d = max(p.quiet.Add(p.idle).Sub(now), 1)
	}
	if p.patience > 0 {
		if look := max(p.looked.Add(p.patience).Sub(now), 1); d == 0 || look < d {
			d = look
		}
	}
	return d
}

// rest is called when something came.
func (p *pulse) rest() {
	if p != nil && p.t != nil {
		p.quiet = time.Now()
		p.looked = p.quiet
	}
}

// beat is ready now and then; due then says what for.
func (p *pulse) beat() <-chan time.Time {
	if p == nil || p.t == nil {
		return nil
	}
	return p.t.C
}

// due says for what it is time.
func (p *pulse) due() (idle, look bool) {
	now := time.Now()
	if p.idle > 0 && now.Sub(p.quiet) >= p.idle {
		idle, p.quiet = true, now
	}
	if p.patience > 0 && now.Sub(p.looked) >= p.patience {
		look, p.looked = true, now
	}
	p.t.Reset(p.left(now))
	return idle, look
}

func (p *pulse) stop() {
	if p.t != nil {
		p.t.Stop()
	}
}
