package run

import (
	"slices"

	"agentd/event"
)

func (m *machine) started(in Started) error {
	s := &m.State
	if s.Status != Queued {
		return m.illegal("the run has started")
	}
	if in.EntryBase == "" {
		return m.illegal("no entry base")
	}
	if s.Cancel != "" {
		return m.illegal("the run was cancelled")
	}
	s.Status = Running
	s.Settings = in.Settings
	s.Settings.Models = max(1, in.Settings.Models)
	s.Settings.Order = nil
	if in.Routing != "" && len(in.Facts) == s.Settings.Models {
		s.Settings.Order = Order(in.Routing, in.Facts)
	}
	s.EntryBase, s.Leaf = in.EntryBase, in.Leaf
	s.Start, s.Stood = &in.Leaf, in.Stood
	m.tell(event.RunStarted, &event.Started{SessionID: s.SessionID})
	m.startClock(in.Settings.MaxRunMS)
	s.Mode = in.Mode
	for _, set := range in.Set {
		m.set(set)
	}
	for _, id := range in.Prompt {
		m.appendQueued(id)
	}
	if in.Compact {
		s.Model = &ModelCall{Attempt: 1, Index: s.Settings.first()}
		m.startCompaction(CompactManual)
		return nil
	}
	m.checkpoint()
	return nil
}

func (m *machine) appendQueued(input string) {
	s := &m.State
	entry := s.nextEntry()
	m.write(AppendQueued{Entry: entry, Parent: s.Leaf, Input: input})
	s.Leaf = entry
}

// set writes a setting of the session behind the leaf.
func (m *machine) set(set Setting) {
	s := &m.State
	entry := s.nextEntry()
	m.write(AppendSetting{Entry: entry, Parent: s.Leaf, Setting: set})
	s.Leaf = entry
}

// switched writes the mode that the approval of a plan switched to, once every result
// of the batch is on the path, or the run ends.
func (m *machine) switched() {
	s := &m.State
	if !s.Switched {
		return
	}
	s.Switched = false
	m.set(Setting{SettingMode, s.Mode})
}

// resumed starts again what was open when the process ended. Each effect gets
// the ids it had.
func (m *machine) resumed(in Resumed) error {
	s := &m.State
	if s.Status.Ended() || s.Status == Queued {
		return m.illegal("there is nothing to resume")
	}
	if s.Status == Paused {
		// Only people are awaited, and interrupts are durable. Those below are
		// answered to a child, which this run must hear of: it goes on waiting
		// for it, and nothing is told, because nothing goes on.
		for i := range s.Calls {
			if c := &s.Calls[i]; c.AwaitsChild() {
				m.callTool(c)
			}
		}
		return nil
	}
	if s.Phase == PhaseModel || s.Phase == PhaseBudget || s.Phase == PhaseCompact {
		m.settleCall(SettleLost, nil) // if it was made, nobody knows what it cost
	}
	var uncertain []string
	switch {
	case s.Phase == PhaseTools:
		uncertain = m.resumeCalls(in.Elsewhere)
	case s.stopping():
		m.end()
	case s.Phase == PhaseModel:
		m.callModel()
	case s.Phase == PhaseBudget:
		m.reserve()
	case s.Phase == PhaseRetry:
		m.do(Sleep{ID: TimerRetry, Until: s.Model.RetryAt})
	case s.Phase == PhaseCompact:
		m.compact()
	}
	if s.Deadline != 0 && !s.stopping() {
		m.do(Sleep{ID: TimerDeadline, Until: s.Deadline})
	}
	m.Events = slices.Insert(m.Events, 0, event.Event{Type: event.RunResumed, Time: m.now, Step: s.Step,
		Data: &event.Resumed{Reason: "restart", Uncertain: uncertain}})
	return nil
}

// mayHaveHappened is what the model reads of a call whose outcome nobody knows
// and nobody will find out.
const mayHaveHappened = "agentd was restarted while this call ran; it may have happened."

// resumeCalls goes on with a batch after a crash and returns the once calls of
// which nobody knows whether they happened (invariant 11).
func (m *machine) resumeCalls(elsewhere []string) (uncertain []string) {
	s := &m.State
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Phase != CallRunning {
			continue
		}
		switch {
		case s.stopping() && c.Kind == kindSpawn:
			// The child runs on by itself: it is found, told to end, and waited for.
			m.do(SpawnChild{CallID: c.ID, Child: c.Child, Step: s.Step, Stop: true})
		case s.stopping():
			m.fail(i, "Cancelled: "+mayHaveHappened)
		case c.Kind == kindSpawn, c.Effect != effectOnce && c.Kind == "", c.Kind == "" && slices.Contains(elsewhere, c.ID):
			m.callTool(c)
		default:
			uncertain = append(uncertain, c.ID)
			m.doubt(i)
		}
	}
	for i := range s.Calls {
		if s.Calls[i].Phase == CallPlanned {
			m.do(Judge{CallID: s.Calls[i].ID, Name: s.Calls[i].Name})
			break
		}
	}
	m.advance()
	return uncertain
}

// doubt settles a once call of which nobody knows whether it happened, or asks.
func (m *machine) doubt(i int) {
	c := &m.State.Calls[i]
	if m.State.Settings.Autonomous {
		m.fail(i, "agentd was restarted while this call ran. It may or may not have happened, and it was not run again. Check before you repeat it.")
		return
	}
	m.ask(c, kindUncertain, "agentd was restarted while "+c.Name+" ran. It may have happened. Retry it, skip it, or mark it done?", nil, 0)
}

// inDoubt is what a crash makes of a once call, while the run goes on (invariant 25).
func (m *machine) inDoubt(in InDoubt) error {
	s := &m.State
	i := m.call(in.CallID)
	if s.Phase != PhaseTools || i < 0 {
		return m.illegal("there is no call %q", in.CallID)
	}
	if c := &s.Calls[i]; c.Phase != CallRunning || c.Kind != "" || c.Effect != effectOnce {
		return m.illegal("call %q is no once call that runs", in.CallID)
	}
	if s.stopping() {
		m.fail(i, "Cancelled: "+mayHaveHappened)
	} else {
		m.doubt(i)
	}
	m.advance()
	return nil
}
