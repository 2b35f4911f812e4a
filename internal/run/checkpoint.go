package run

import "agentd/event"

// checkpoint is the place between two steps: cancel, limits, steering, then the
// next model call. The limit of tool calls comes before steering, because no
// message lifts it: one that comes then goes back to its sender. The limit of
// steps comes after it, because it is counted per user message. Beyond a limit
// there is one more call, without tools, that closes the answer.
func (m *machine) checkpoint() {
	s := &m.State
	if s.stopping() {
		m.end()
		return
	}
	if s.Settings.MaxToolCalls > 0 && s.ToolCalls > s.Settings.MaxToolCalls {
		m.limit(StopMaxToolCalls, s.Settings.MaxToolCalls, s.ToolCalls)
		return
	}
	m.drain(&s.Steering)
	if s.Closing == "" && s.Settings.MaxSteps > 0 && s.TurnSteps >= s.Settings.MaxSteps {
		m.limit(StopMaxSteps, s.Settings.MaxSteps, s.TurnSteps)
		return
	}
	m.nextStep()
}

// nextStep makes the next model call.
func (m *machine) nextStep() {
	s := &m.State
	s.Step++
	if s.Closing == "" {
		s.TurnSteps++
	}
	s.Phase = PhaseModel
	s.Calls = nil
	// A session that was moved to a fallback model stays there: changing
	// back and forth would break its prompt cache each time.
	index := s.Settings.first()
	if s.Model != nil {
		index = s.Model.Index
	}
	s.Model = &ModelCall{Entry: s.nextEntry(), Attempt: 1, Index: index}
	m.tell(event.StepStarted, &event.Step{})
	m.callModel()
}

// drain takes from a queue what one drain point delivers.
func (m *machine) drain(queue *[]string) bool {
	n := len(*queue)
	if n == 0 {
		return false
	}
	if !m.State.Settings.AllAtOnce {
		n = 1
	}
	for _, id := range (*queue)[:n] {
		m.appendQueued(id)
	}
	*queue = (*queue)[n:]
	if len(*queue) == 0 {
		*queue = nil
	}
	m.newTurn()
	return true
}

// endOfTurn is reached when the model has nothing more to do: steering, then
// follow-ups, else the run is complete.
func (m *machine) endOfTurn(reason string) {
	s := &m.State
	if s.stopping() {
		m.end()
		return
	}
	if !s.final() && (len(s.Steering) > 0 || m.drain(&s.FollowUps)) {
		s.Closing = ""
		m.checkpoint()
		return
	}
	m.finish(Completed, reason, nil)
}

// finish ends the run. What is queued goes back to its sender.
func (m *machine) finish(status Status, reason string, e *event.Error) {
	s := &m.State
	s.Status, s.Phase, s.StopReason = status, PhaseEnded, reason
	s.Model, s.Calls, s.Cached, s.Held = nil, nil, nil, ""
	if s.Deadline != 0 {
		s.Remaining = max(s.Deadline-m.now, 0)
		s.Deadline = 0
	}
	if back := append(s.Steering, s.FollowUps...); len(back) > 0 {
		m.write(ReturnQueued{Inputs: back})
	}
	s.Steering, s.FollowUps = nil, nil
	if len(s.Settings.Pots) > 0 {
		m.write(Settle{Last: true})
	}
	m.switched()
	m.rollBack()
	usage := s.Usage
	ended := &event.Ended{StopReason: reason, Usage: &usage, Error: e, Steps: s.Step, ToolCalls: s.ToolCalls}
	switch status {
	case Completed:
		m.tell(event.RunCompleted, ended)
	case Cancelled:
		m.tell(event.RunCancelled, ended)
	default:
		m.tell(event.RunFailed, ended)
	}
}

func (m *machine) steered(in Steered) error {
	if err := m.queue(&m.State.Steering, in.ID); err != nil {
		return err
	}
	// skip_rest acts at once on calls that wait for a person: nothing else
	// may come to settle them.
	if a := m.State.Asks; a != nil && a.Limit == StopMaxSteps && a.Pot == "" {
		// Steps are counted anew from a message on: there is nothing to ask any more.
		m.closeMore("a new message came")
		m.checkpoint()
		return nil
	}
	if m.State.Phase == PhaseTools && m.State.Settings.SkipRest {
		m.advance()
	}
	return nil
}

func (m *machine) followedUp(in FollowedUp) error { return m.queue(&m.State.FollowUps, in.ID) }

func (m *machine) queue(q *[]string, id string) error {
	s := &m.State
	switch {
	case s.Status.Ended():
		return m.illegal("the run has ended")
	case s.stopping():
		return m.illegal("the run is ending")
	case id == "":
		return m.illegal("the input has no id")
	}
	for _, have := range append(append([]string(nil), s.Steering...), s.FollowUps...) {
		if have == id {
			return m.illegal("input %s is queued already", id)
		}
	}
	*q = append(*q, id)
	return nil
}
