package run

import (
	"fmt"
	"strconv"
	"strings"

	"agentd/event"
)

// IllegalError says that an input can not happen in the state it met, or that a
// stored state is unusable. The state is unchanged.
type IllegalError struct {
	Input  string
	Reason string
	Status Status
	Phase  Phase
	Trail  []string
	// Newer: the stored state was written by a later version and must be kept.
	Newer bool
}

func (e *IllegalError) Error() string {
	if e.Input == "" {
		return "run: " + e.Reason
	}
	return fmt.Sprintf("run: %s is illegal in status %s, phase %s: %s (last transitions: %s)",
		e.Input, e.Status, e.Phase, e.Reason, strings.Join(e.Trail, " "))
}

// trailLength is how many transitions an error shows.
const trailLength = 8

// machine is one Step under way.
type machine struct {
	Transition
	now int64
	in  Input
}

// Step applies an input. On error the returned transition is empty.
func Step(s State, in Input) (Transition, error) {
	if in == nil {
		return Transition{}, &IllegalError{Input: "nil", Reason: "there is no input", Status: s.Status, Phase: s.Phase, Trail: s.Trail}
	}
	m := &machine{now: in.at(), in: in}
	m.State = s.clone()
	from := s.Phase
	var err error
	switch in := in.(type) {
	case Started:
		err = m.started(in)
	case ModelDone:
		err = m.modelDone(in)
	case ModelFailed:
		err = m.modelFailed(in)
	case Reserved:
		err = m.reserved(in)
	case Exhausted:
		err = m.exhausted(in)
	case Verdict:
		err = m.verdict(in)
	case ToolDone:
		err = m.toolDone(in)
	case ChildWaits:
		err = m.childWaits(in)
	case Answered:
		err = m.answered(in)
	case Steered:
		err = m.steered(in)
	case FollowedUp:
		err = m.followedUp(in)
	case TimerFired:
		err = m.timerFired(in)
	case Full:
		err = m.full(in)
	case Compacted:
		err = m.compacted(in)
	case Spent:
		err = m.spentSoFar(in)
	case CancelRequested:
		err = m.cancelRequested(in)
	case Aborted:
		err = m.aborted(in)
	case Resumed:
		err = m.resumed(in)
	case InDoubt:
		err = m.inDoubt(in)
	default:
		err = m.illegal("unknown input")
	}
	if err != nil {
		return Transition{}, err
	}
	m.settleStatus()
	m.setExpiries(&s)
	m.note(from)
	return m.Transition, nil
}

// note adds the transition to the trail: "ModelDone:model>tools". A repetition is
// counted, "Verdict:tools*3", so that a burst does not push out what led to it.
func (m *machine) note(from Phase) {
	s := &m.State
	step := m.in.Kind() + ":" + string(from)
	if s.Phase != from {
		step += ">" + string(s.Phase)
	}
	n := len(s.Trail)
	if n > 0 {
		if last, times, _ := strings.Cut(s.Trail[n-1], "*"); last == step {
			k, _ := strconv.Atoi(times) // no number: it happened once
			s.Trail[n-1] = step + "*" + strconv.Itoa(max(k, 1)+1)
			return
		}
	}
	s.Trail = append(s.Trail[max(0, n-trailLength+1):], step)
}

func (m *machine) illegal(format string, args ...any) error {
	s := &m.State
	return &IllegalError{Input: m.in.Kind(), Reason: fmt.Sprintf(format, args...), Status: s.Status, Phase: s.Phase, Trail: s.Trail}
}

func (m *machine) do(e Effect)   { m.Effects = append(m.Effects, e) }
func (m *machine) write(w Write) { m.Writes = append(m.Writes, w) }

func (m *machine) tell(t event.Type, data any) {
	m.Events = append(m.Events, event.Event{Type: t, Time: m.now, Step: m.State.Step, Data: data})
}

// settleStatus keeps invariant 14 and stops the run's clock while it waits for
// people: a deadline is for work, an interrupt has its own expiry.
func (m *machine) settleStatus() {
	s := &m.State
	if s.Status.Ended() || s.Status == Queued {
		return
	}
	waiting := s.Phase == PhaseTools || s.Asks != nil
	asked := s.Asks != nil
	for i := range s.Calls {
		switch c := &s.Calls[i]; {
		case c.Phase == CallAsked, c.AwaitsChild() && c.Paused && !s.stopping():
			asked = true
		case c.Phase == CallDone:
		case c.Phase == CallReady: // it is the client's, or behind one that runs
		default:
			waiting = false
		}
	}
	switch waiting = waiting && asked; {
	case waiting && s.Status != Paused:
		s.Status = Paused
		if s.Deadline != 0 {
			s.Remaining = max(s.Deadline-m.now, 1)
			s.Deadline = 0
		}
	case !waiting && s.Status == Paused:
		s.Status = Running
		if !s.stopping() {
			m.startClock(s.Remaining)
		}
		s.Remaining = 0
	}
}

func (m *machine) startClock(ms int64) {
	if ms > 0 {
		m.State.Deadline = m.now + ms
		m.do(Sleep{ID: TimerDeadline, Until: m.State.Deadline})
	}
}
