package run

import "agentd/event"

// cancelRequested stops the run: at once where nothing is open, else when the
// open effects, which are told to end, have answered.
func (m *machine) cancelRequested(in CancelRequested) error {
	s := &m.State
	if s.Status.Ended() {
		return m.illegal("the run has ended")
	}
	s.Rollback = s.Rollback || in.Rollback
	if s.stopping() {
		return nil // it is ending: once is enough
	}
	s.Cancel = in.Reason
	if s.Cancel == "" {
		s.Cancel = "cancelled"
	}
	return m.stop(s.Cancel)
}

func (m *machine) stop(reason string) error {
	s := &m.State
	switch s.Phase {
	case PhaseQueued, PhaseRetry:
		m.end()
	case PhaseBudget:
		if s.Asks == nil {
			m.do(StopEffects{Reason: reason})
			break
		}
		m.closeMore(reason)
		m.end()
	case PhaseModel, PhaseCompact:
		m.do(StopEffects{Reason: reason})
	case PhaseTools:
		m.stopBatch(reason)
	}
	return nil
}

// end finishes a run that was told to stop, for the reason it was told.
func (m *machine) end() {
	s := &m.State
	if s.Cancel != "" {
		reason := "cancelled"
		if s.Rollback {
			reason = StopRolledBack
		}
		m.finish(Cancelled, reason, nil)
		return
	}
	if s.Held != "" {
		m.holdsAtEnd()
		return
	}
	m.finish(Failed, s.StopReason, m.failure())
}

// stopBatch settles the calls that have not started and ends those that run.
func (m *machine) stopBatch(reason string) {
	s := &m.State
	running := false
	for i := range s.Calls {
		switch s.Calls[i].Phase {
		case CallPlanned:
			// Its verdict is on the way and will settle it.
			running = true
		case CallAsked, CallReady:
			m.drop(i, reason, "Not executed: "+reason)
		case CallRunning:
			running = true
		}
	}
	if running {
		m.do(StopEffects{Reason: reason})
		return
	}
	m.end()
}

// deadline ends a run that took longer than it may: a cancel that ends in failure.
func (m *machine) deadline() error {
	s := &m.State
	s.Deadline = 0
	s.StopReason = "max_run_time"
	return m.stop("the run took longer than max_run_time_seconds")
}

// aborted ends the run at once. Open effects are told to end and nobody waits
// for them; calls that ran get a result that says so.
func (m *machine) aborted(in Aborted) error {
	s := &m.State
	if s.Status.Ended() {
		return m.illegal("the run has ended")
	}
	if s.Phase != PhaseQueued && s.Phase != PhaseRetry && s.Asks == nil {
		m.do(StopEffects{Reason: in.Message})
	}
	m.closeMore(in.Message)
	s.StopReason = in.Reason
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Phase == CallDone || s.Phase != PhaseTools {
			continue
		}
		if c.Phase == CallRunning {
			m.fail(i, "The run ended while this call ran; it may have happened.")
			continue
		}
		m.drop(i, in.Message, "Not executed: "+in.Message)
	}
	m.finish(Failed, in.Reason, &event.Error{Kind: in.Reason, Message: in.Message, Hint: in.Hint})
	return nil
}

// failBatch ends the run because of one call, after the others have ended.
func (m *machine) failBatch(reason string, e *event.Error) error {
	s := &m.State
	s.StopReason = reason
	m.stopBatch("another tool call failed")
	return nil
}

// failure describes StopReason for people.
func (m *machine) failure() *event.Error {
	switch r := m.State.StopReason; r {
	case "max_run_time":
		return &event.Error{Kind: r, Message: "the run took longer than it may", Hint: "Raise max_run_time_seconds in the profile."}
	case "tool_failed":
		return &event.Error{Kind: r, Message: "a tool call failed", Hint: "The failed call is in the run's events; on_tool_failure: tell_model lets the model decide instead."}
	default:
		return &event.Error{Kind: r, Message: r}
	}
}
