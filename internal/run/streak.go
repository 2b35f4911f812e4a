package run

import (
	"slices"

	"agentd/event"
	"agentd/message"
)

// Stop reasons of turns that were closed because a call was repeated.
const (
	StopRepeatedFailures = "repeated_failures"
	StopRepeatedCalls    = "repeated_calls"
)

// Streak is a call of the last step and how often in a row it was made.
type Streak struct {
	// Sig stands for the tool and its arguments, Out for its last result.
	Sig string `json:"sig"`
	Out string `json:"out"`
	// Same counts equal results, Failed failures, both in a row.
	Same   int `json:"same,omitempty"`
	Failed int `json:"failed,omitempty"`
}

// signature is the fingerprint of a call, "" where streaks have no limit.
func (m *machine) signature(b *message.Block) string {
	if s := &m.State.Settings; s.MaxSameFailures == 0 && s.MaxSameCalls == 0 {
		return ""
	}
	return fingerprint(b.Name, string(b.Arguments))
}

// fingerprint is FNV-1a in 32 bits. It is compared with those of the step before
// and no others, so that a chance of one in four thousand millions is enough.
func fingerprint(a, b string) string {
	h := uint32(2166136261)
	for _, s := range [...]string{a, "\x00", b} {
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * 16777619
		}
	}
	var d [7]byte
	for i := range d {
		d[i] = digits[h&31]
		h >>= 5
	}
	return string(d[:])
}

// countStep counts steps in a row whose tools failed, where they may be repeated.
func (m *machine) countStep() {
	s := &m.State
	switch {
	case !s.Settings.FailOnToolError || s.Settings.StepRetries == 0:
	case slices.ContainsFunc(s.Calls, func(c Call) bool { return c.Failed }):
		s.FailedSteps++
	default:
		s.FailedSteps = 0
	}
}

// streak carries the streaks on over a step that has ended, and says why the turn
// is to be closed, or "". A call that is not repeated in the next step ends its
// streak: what happens in between may change its result.
func (m *machine) streak() (reason string) {
	s := &m.State
	var now []Streak
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Sig == "" || slices.ContainsFunc(now, func(k Streak) bool { return k.Sig == c.Sig }) {
			continue
		}
		k := Streak{Sig: c.Sig, Out: c.Out, Same: 1}
		if j := slices.IndexFunc(s.Streaks, func(k Streak) bool { return k.Sig == c.Sig }); j >= 0 {
			k.Failed = s.Streaks[j].Failed
			if s.Streaks[j].Out == c.Out {
				k.Same = s.Streaks[j].Same + 1
			}
		}
		k.Failed++
		if !c.IsError {
			k.Failed = 0
		}
		now = append(now, k)
		switch {
		case reason != "":
		case s.Settings.MaxSameFailures > 0 && k.Failed >= s.Settings.MaxSameFailures:
			reason = StopRepeatedFailures
		case s.Settings.MaxSameCalls > 0 && k.Same >= s.Settings.MaxSameCalls:
			reason = StopRepeatedCalls
		}
	}
	s.Streaks = now
	return reason
}

// closedWithout ends a turn whose closing reply could not be had: what was said
// before is the answer, and why the turn was closed stays the reason.
func (m *machine) closedWithout(why string) {
	m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "closing_failed", Prompt: "The model was asked to close its answer and failed: " + why})
	m.endOfTurn(m.State.Closing)
}

// closed ends a turn whose last reply has calls although it was asked for text.
// None of them runs.
func (m *machine) closed(reply *message.Message, entry string) {
	s := &m.State
	s.ToolCalls -= len(s.Calls) // it is the machine that had no use for them
	for i := range s.Calls {
		m.fail(i, "Not executed: no more tools were to be called in this turn.")
	}
	if text := reply.Text(); text != "" && (len(s.Steering) == 0 || s.final()) {
		m.tell(event.FinalText, &event.Text{Text: text, EntryID: entry})
	}
	m.endOfTurn(s.Closing)
}
