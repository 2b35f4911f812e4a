package run

import (
	"agentd/event"
	"agentd/message"
)

// callModel makes the next model call, when it can be paid.
func (m *machine) callModel() {
	s := &m.State
	s.Model.RetryAt = 0
	if len(s.Settings.Pots) > 0 {
		m.reserve()
		return
	}
	m.startModel()
}

func (m *machine) startModel() {
	s := &m.State
	s.Phase = PhaseModel
	m.do(CallModel{Step: s.Step, Attempt: s.Model.Attempt, Index: s.Model.Index, Entry: s.Model.Entry, Closing: s.Closing})
}

// modelDone settles a reply. The order of the cases is the order of
// classification: cancelled, tools, stop or length.
func (m *machine) modelDone(in ModelDone) error {
	s := &m.State
	if s.Phase != PhaseModel {
		return m.illegal("no model call is open")
	}
	if in.Message == nil || in.Message.Role != message.RoleAssistant {
		return m.illegal("the reply is not an assistant message")
	}
	reply := *in.Message
	s.Usage.Add(reply.Usage)
	m.settleCall(SettleUsed, reply.Usage)
	if s.stopping() {
		reply.StopReason = message.StopAborted
		m.append(&reply)
		m.end()
		return nil
	}
	s.Held = ""
	calls := m.planCalls(&reply)
	entry := m.append(&reply)
	if reply.Text() != "" || len(calls) == 0 && !s.Nudged && !s.Reformed {
		s.Output = entry
	}
	if len(calls) == 0 {
		m.stepCompleted(&reply, entry)
		if m.nudge(&reply) || m.reform(&reply, in.Unfit) {
			return nil
		}
		reason := "stop"
		if reply.StopReason == message.StopLength {
			reason = "length"
		}
		if s.Closing != "" {
			reason = s.Closing
		}
		if text := reply.Text(); text != "" && (len(s.Steering) == 0 || s.final()) {
			m.tell(event.FinalText, &event.Text{Text: text, EntryID: entry})
		} else if text == "" && (s.Nudged || s.Reformed) {
			m.finalText()
		}
		m.endOfTurn(reason)
		return nil
	}
	s.Phase, s.Calls = PhaseTools, calls
	s.ToolCalls += len(calls)
	// The step ends with its tools, but what the reply used is known now and
	// must not wait for a person.
	m.stepCompleted(&reply, entry)
	if s.Closing != "" {
		m.closed(&reply, entry)
		return nil
	}
	if reply.StopReason == message.StopLength {
		// The arguments may be cut: running them would do something that
		// nobody asked for.
		for i := range s.Calls {
			m.fail(i, "Not executed: the reply was cut by the output limit, so the arguments may be incomplete. Call the tool again, with shorter output.")
		}
		m.batchDone()
		return nil
	}
	m.do(Judge{CallID: s.Calls[0].ID, Name: s.Calls[0].Name})
	return nil
}

func (m *machine) append(reply *message.Message) (entry string) {
	s := &m.State
	entry = s.Model.Entry
	m.write(AppendMessage{Entry: entry, Parent: s.Leaf, Message: reply})
	s.Leaf = entry
	return entry
}

func (m *machine) stepCompleted(reply *message.Message, entry string) {
	step := &event.Step{Model: reply.Model, StopReason: string(reply.StopReason), Usage: reply.Usage, EntryID: entry,
		ToolCalls: len(m.State.Calls)}
	if u := reply.Usage; u != nil && u.Prompt() > 0 {
		step.CacheRatio = float64(u.CacheRead) / float64(u.Prompt())
	}
	m.tell(event.StepCompleted, step)
}

// modelFailed classifies in this order: cancelled, overflow, retryable, fatal.
func (m *machine) modelFailed(in ModelFailed) error {
	s := &m.State
	if s.Phase != PhaseModel {
		return m.illegal("no model call is open")
	}
	s.Usage.Add(in.Usage)
	m.settleFailed(in)
	switch {
	case s.stopping():
		if p := in.Partial; p != nil && len(p.Content) > 0 {
			partial := *p
			partial.StopReason = message.StopAborted
			s.Usage.Add(partial.Usage)
			m.append(&partial)
		}
		m.end()
	case in.Class == FailOverflow && !s.Model.Compacted:
		s.Model.Compacted = true
		m.startCompaction(CompactOverflow)
	case (in.Class == FailRetryable || in.Class == FailUnavailable) && m.retry(in):
	case s.Held != "":
		m.holds(m.modelError(in).Message)
	case s.Closing != "":
		m.closedWithout(m.modelError(in).Message)
	default:
		m.finish(Failed, "model_error", m.modelError(in))
	}
	return nil
}

// settleFailed settles a call without a reply: at nothing if the provider did not
// begin to answer, else at what was reserved, because nobody knows what it cost.
func (m *machine) settleFailed(in ModelFailed) {
	used := message.Usage{}
	used.Add(in.Usage)
	if in.Partial != nil {
		used.Add(in.Partial.Usage)
	}
	if how := SettleLost; in.Free && used == (message.Usage{}) {
		m.settleCall(SettleFree, nil)
	} else {
		m.settleCall(how, &used)
	}
}

// timerFired goes on where a timer was awaited. One that fires too early (the
// wall clock was set back, or it is left over from an earlier wait) is set again:
// nothing else may come to move the run.
func (m *machine) timerFired(in TimerFired) error {
	s := &m.State
	switch {
	case s.Status.Ended() || s.stopping():
	case in.ID == TimerRetry && s.Phase == PhaseRetry:
		if m.now < s.Model.RetryAt {
			m.do(Sleep{ID: TimerRetry, Until: s.Model.RetryAt})
			break
		}
		m.callModel()
	case in.ID == TimerDeadline && s.Deadline != 0:
		if m.now < s.Deadline {
			m.do(Sleep{ID: TimerDeadline, Until: s.Deadline})
			break
		}
		return m.deadline()
	default:
		m.expired(in.ID)
	}
	return nil
}
