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
	s.EntryBase, s.Leaf = in.EntryBase, in.Leaf
	m.tell(event.RunStarted, &event.Started{SessionID: s.SessionID})
	m.startClock(in.Settings.MaxRunMS)
	for _, id := range in.Prompt {
		m.appendQueued(id)
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

// resumed starts again what was open when the process ended. Each effect gets
// the ids it had.
func (m *machine) resumed(Resumed) error {
	s := &m.State
	if s.Status.Ended() || s.Status == Queued {
		return m.illegal("there is nothing to resume")
	}
	if s.Status == Paused {
		return nil // only people are awaited, and interrupts are durable
	}
	var uncertain []string
	if s.Deadline != 0 {
		m.do(Sleep{ID: TimerDeadline, Until: s.Deadline})
	}
	switch s.Phase {
	case PhaseModel:
		if s.stopping() {
			m.end()
			break
		}
		m.callModel()
	case PhaseRetry:
		m.do(Sleep{ID: TimerRetry, Until: s.Model.RetryAt})
	case PhaseCompact:
		m.compact()
	case PhaseTools:
		uncertain = m.resumeCalls()
	}
	m.Events = slices.Insert(m.Events, 0, event.Event{Type: event.RunResumed, Time: m.now, Step: s.Step,
		Data: &event.Resumed{Reason: "restart", Uncertain: uncertain}})
	return nil
}

// resumeCalls goes on with a batch after a crash and returns the once calls of
// which nobody knows whether they happened (invariant 11).
func (m *machine) resumeCalls() (uncertain []string) {
	s := &m.State
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Phase != CallRunning {
			continue
		}
		switch {
		case c.Kind == kindSpawn && !s.stopping():
			m.do(SpawnChild{CallID: c.ID, Child: c.Child, Step: s.Step})
		case s.stopping():
			m.settle(i, errorResult(c, "Cancelled: agentd was restarted while this call ran; it may have happened."), false)
		case c.Effect != effectOnce && c.Kind == "":
			m.callTool(c)
		case s.Settings.Autonomous:
			uncertain = append(uncertain, c.ID)
			m.settle(i, errorResult(c, "agentd was restarted while this call ran. It may or may not have happened, and it was not run again. Check before you repeat it."), false)
		default:
			uncertain = append(uncertain, c.ID)
			m.ask(c, "uncertain", "agentd was restarted while "+c.Name+" ran. It may have happened. Retry it, skip it, or mark it done?", nil, 0)
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
