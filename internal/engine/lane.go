package engine

import (
	"context"
	"slices"

	"agentd/internal/run"
)

// lane keeps the runs of a session in order.
type lane struct {
	active  string // run id
	waiting []string
	// pending are those that are not durable yet and must not be driven.
	pending map[string]bool
}

// reserve puts a run that is about to be accepted into its session's lane: the
// order in lanes is the order of acceptance. With alone it fails if the lane is
// not free.
func (e *Engine) reserve(session Ref, runID string, alone bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[session]
	if l == nil {
		l = &lane{}
		e.lanes[session] = l
	} else if alone {
		return false
	}
	if l.pending == nil {
		l.pending = map[string]bool{}
	}
	l.pending[runID] = true
	if l.active == "" {
		l.active = runID
	} else {
		l.waiting = append(l.waiting, runID)
	}
	return true
}

// confirm says that a reserved run is durable, and reports whether it is its turn.
func (e *Engine) confirm(session Ref, runID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[session]
	if l == nil {
		return false
	}
	delete(l.pending, runID)
	return l.active == runID
}

// lineUp puts a durable run into its session's lane and reports whether it is its
// turn.
func (e *Engine) lineUp(session Ref, runID string) bool {
	e.reserve(session, runID, false)
	return e.confirm(session, runID)
}

// lined is whether a run is in its session's lane.
func (e *Engine) lined(session Ref, runID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[session]
	return l != nil && (l.active == runID || slices.Contains(l.waiting, runID))
}

// reserveAlone is reserve for who needs the lane free. It gives who has it instead;
// "" means that it is reserved. Among several nodes it takes a hold, which is no run's
// turn, and an error says why it could not.
func (e *Engine) reserveAlone(ctx context.Context, session Ref, id string) (active string, err error) {
	if e.node != nil {
		return e.node.holdLane(ctx, session, id)
	}
	for !e.reserve(session, id, true) {
		if active = e.occupant(ctx, session); active != "" {
			return active, nil
		}
	}
	return "", nil
}

// occupant is active, but for a run whose end is stored and whose driver has not
// come to say so: it leaves now. Who has read of that end finds the session free.
func (e *Engine) occupant(ctx context.Context, session Ref) string {
	for {
		id := e.active(session)
		if id == "" {
			return ""
		}
		if row, err := e.store.Run(ctx, session.Tenant, id); err != nil || !run.Status(row.Status).Ended() {
			return id
		}
		e.leave(session, id)
	}
}

// leave takes an ended run out of its lane and drives the next one.
func (e *Engine) leave(session Ref, runID string) {
	if e.node != nil {
		e.node.leave(session, runID)
		return
	}
	e.mu.Lock()
	l := e.lanes[session]
	next := ""
	switch {
	case l == nil:
	case l.active == runID:
		l.active = ""
		delete(l.pending, runID)
		if len(l.waiting) > 0 {
			l.active, l.waiting = l.waiting[0], l.waiting[1:]
			if !l.pending[l.active] {
				next = l.active
			}
		} else {
			delete(e.lanes, session)
		}
	default:
		delete(l.pending, runID)
		for i, id := range l.waiting {
			if id == runID {
				l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
				break
			}
		}
	}
	e.mu.Unlock()
	if next != "" {
		e.drive(Ref{session.Tenant, next})
	}
}

// active gives the run that has the session's turn, or "".
func (e *Engine) active(session Ref) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lanes[session]; l != nil {
		return l.active
	}
	return ""
}

// leaveAny takes a run that there is not out of whatever lane it is in.
func (e *Engine) leaveAny(ref Ref) {
	var in []Ref
	e.mu.Lock()
	for session, l := range e.lanes {
		if session.Tenant == ref.Tenant && (l.active == ref.ID || slices.Contains(l.waiting, ref.ID)) {
			in = append(in, session)
		}
	}
	e.mu.Unlock()
	for _, session := range in {
		e.leave(session, ref.ID)
	}
}
