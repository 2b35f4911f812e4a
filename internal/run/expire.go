package run

import (
	"slices"

	"agentd/event"
	"agentd/message"
)

// Expiry says what becomes of interrupts that nobody answers. The zero value
// leaves them open for ever.
type Expiry struct {
	// AfterMS is how long an interrupt stays open.
	AfterMS int64 `json:"after_ms,omitempty"`
	// Approve lets calls run whose approval expired, but for grave ones;
	// otherwise they are rejected.
	Approve bool `json:"approve,omitempty"`
	// Answer answers questions that expired; empty leaves them unanswered.
	Answer string `json:"answer,omitempty"`
}

// expiry is when an interrupt that opens now ends by itself, 0 for never: at what
// its verdict says, else after the time of the settings.
func (m *machine) expiry(verdict int64) int64 {
	if after := m.State.Settings.Interrupts.AfterMS; verdict == 0 && after > 0 {
		return m.now + after
	}
	return verdict
}

// setExpiries sets the timers of the interrupts that are open now and were not
// before. After a crash it sets all of them again: timers end with the process,
// interrupts do not.
func (m *machine) setExpiries(before *State) {
	_, resumed := m.in.(Resumed)
	if a := m.State.Asks; a != nil && a.Expires != 0 && (resumed || !slices.Contains(before.Interrupts(), a.Interrupt)) {
		m.do(Sleep{ID: a.Interrupt, Until: a.Expires})
	}
	for i := range m.State.Calls {
		c := &m.State.Calls[i]
		if c.Phase != CallAsked || c.Expires == 0 {
			continue
		}
		if resumed || !slices.Contains(before.Interrupts(), c.Interrupt) {
			m.do(Sleep{ID: c.Interrupt, Until: c.Expires})
		}
	}
}

// expired is asked when a timer fired that is no timer of the run itself: it may be
// that of an interrupt. One that was answered meanwhile stays answered.
func (m *machine) expired(id string) {
	s := &m.State
	if a := s.Asks; a != nil && a.Interrupt == id && a.Expires != 0 {
		if m.now < a.Expires {
			m.do(Sleep{ID: id, Until: a.Expires})
			return
		}
		m.expiredMore()
		return
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Phase != CallAsked || c.Interrupt != id || c.Expires == 0 {
			continue
		}
		if m.now < c.Expires {
			m.do(Sleep{ID: id, Until: c.Expires})
			return
		}
		m.expire(i)
		m.advance()
		return
	}
}

// Expiring is whether an open interrupt ends by itself.
func (s *State) Expiring() bool {
	return s.Asks != nil && s.Asks.Expires != 0 ||
		slices.ContainsFunc(s.Calls, func(c Call) bool { return c.Phase == CallAsked && c.Expires != 0 })
}

const nobodyAnswered = "nobody answered in time"

// expire decides about a call as was declared for when nobody does. Of a call that
// may have happened nobody can say anything then: it is not repeated.
func (m *machine) expire(i int) {
	s := &m.State
	c := &s.Calls[i]
	rule := &s.Settings.Interrupts
	m.forget() // as with an answer
	decision, answer := "reject", ""
	var result *message.Message
	switch {
	case c.InterruptKind == kindUncertain:
		decision = "skip"
		result = errorResult(c, mayHaveHappened+" It was not repeated: a person was asked, and "+nobodyAnswered+".")
	case c.InterruptKind == kindQuestion && rule.Answer != "":
		decision, answer = "answer", rule.Answer
		r := message.ToolResult(c.ID, c.Name, false, message.Text(rule.Answer))
		result = &r
	case c.InterruptKind == kindQuestion:
		result = errorResult(c, "The person did not answer: "+nobodyAnswered+".")
	case c.InterruptKind == kindApproval && rule.Approve && !c.Grave:
		decision = "approve"
		c.Phase = CallReady
	default:
		result = errorResult(c, "Not executed: it needs a person's approval, and "+nobodyAnswered+".")
	}
	reason := "expired: " + nobodyAnswered
	m.write(CloseInterrupt{ID: c.Interrupt, Reason: reason, Expired: true, Decision: decision, Answer: answer})
	m.tell(event.CheckpointResolved, &event.Checkpoint{InterruptID: c.Interrupt, Kind: c.InterruptKind, Decision: decision, Reason: reason})
	if result != nil {
		m.resolved(i, result, decision, reason)
	}
}

// resolved settles a call with what became of its interrupt. What a person did not
// want is no failure of the tool, and does not count as one.
func (m *machine) resolved(i int, result *message.Message, decision, reason string) {
	c := &m.State.Calls[i]
	t := event.ToolCompleted
	if result.IsError {
		t = event.ToolFailed
	}
	m.tell(t, &event.Tool{ToolCallID: c.ID, Name: c.Name, EntryID: c.Entry, Result: result.Text(), Decision: decision, Reason: reason})
	m.settle(i, result, false)
	if result.IsError {
		m.State.Failures--
	}
}
