package engine

import "sync"

// slots bounds how many runs execute at the same time. Runs that go on (after a
// restart, or with a person's answer) count but do not wait, so free may be
// negative; new ones wait.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []*driver
}

// take gives the driver a slot, or lines it up to be woken with one.
func (s *slots) take(d *driver) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.slot || d.row.ParentID != "" {
		return true // a parent that waits for its child must not starve it
	}
	if s.free > 0 {
		s.free--
		d.slot = true
		return true
	}
	for _, w := range s.waiting {
		if w == d {
			return false
		}
	}
	s.waiting = append(s.waiting, d)
	return false
}

// force counts a run that goes on.
func (s *slots) force(d *driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !d.slot && d.row.ParentID == "" {
		s.free--
		d.slot = true
	}
}

// give takes the driver's slot back, or its place in the line, and hands what is
// free to who waits.
func (s *slots) give(d *driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.waiting {
		if w == d {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			break
		}
	}
	if d.slot {
		d.slot = false
		s.free++
	}
	for s.free > 0 && len(s.waiting) > 0 {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.free--
		next.slot = true
		select {
		case next.wake <- struct{}{}:
		default:
		}
	}
}
