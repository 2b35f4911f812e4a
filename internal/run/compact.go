package run

import (
	"strconv"

	"agentd/event"
	"agentd/message"
)

// Why a session is compacted.
const (
	CompactOverflow  = "overflow"  // the provider refused it as too large
	CompactThreshold = "threshold" // it is nearly as large as the model's context window
	CompactManual    = "manual"    // somebody asked for it: the run is for nothing else
)

// Stop reasons of runs that were started to compact.
const (
	StopCompacted        = "compacted"
	StopNothingToCompact = "nothing_to_compact"
	StopCompactionFailed = "compaction_failed"
)

// Compact makes the session fit, with a compaction entry of the given id on top
// of the leaf → Compacted.
type Compact struct {
	Entry  string `json:"entry"`
	Reason string `json:"reason"`
}

// EffectKind implements Effect.
func (Compact) EffectKind() string { return "Compact" }

// AppendCompaction writes the entry of a compaction that was made.
type AppendCompaction struct{ Entry, Parent string }

func (AppendCompaction) writeKind() string { return "AppendCompaction" }

// Full says that the model call, or the reservation, that was just asked for is not
// made: the conversation is nearly as large as the model's context window, and is
// compacted first. It is legal where [State.MayCompact].
type Full struct {
	At
	// Tokens is how large the conversation is, about, Window what the model takes.
	Tokens int `json:"tokens,omitempty"`
	Window int `json:"window,omitempty"`
	// Grow is by how many tokens the conversation has to grow before this is tried
	// again, if it fails.
	Grow int `json:"grow,omitempty"`
}

// CompactWait holds back compactions ahead of calls after one that failed: what failed
// once fails again in the next step, and each try costs time and money. One for an overflow
// is not held back, nor is one by hand.
type CompactWait struct {
	// Tokens is how large the conversation has to be for the next try, Step the step from
	// which on it is made whatever the size.
	Tokens int `json:"tokens"`
	Step   int `json:"step"`
	// Told is whether it was told that one failed, which is done once.
	Told bool `json:"told,omitempty"`
}

// Kind implements Input.
func (Full) Kind() string { return "Full" }

// Compacted ends a Compact effect. Error is why there is no compaction; empty if there
// is one. With Nothing there was nothing to leave out.
type Compacted struct {
	At
	Error   string `json:"error,omitempty"`
	Nothing bool   `json:"nothing,omitempty"`
	// Usage is what the calls of models used that it took, or nil.
	Usage *message.Usage `json:"-"`
}

// Kind implements Input.
func (Compacted) Kind() string { return "Compacted" }

// Spent says what calls of models used that were made for an effect whose end is the next
// driver's to bring, because this one hands over. The effect stays open.
type Spent struct {
	At
	Usage *message.Usage `json:"-"`
}

// Kind implements Input.
func (Spent) Kind() string { return "Spent" }

// spentSoFar counts what was used, and changes nothing else.
func (m *machine) spentSoFar(in Spent) error {
	if m.State.Phase != PhaseCompact {
		return m.illegal("no compaction is open")
	}
	m.State.Usage.Add(in.Usage)
	return nil
}

// MayCompact is whether the model call that is open, or whose reservation is, may be
// put off for a compaction. A call that closes an answer is not: it was paid for ahead,
// and is the last. Once per reply is enough: what did not help will not.
func (s *State) MayCompact() bool {
	return s.Model != nil && !s.Model.Trimmed && !s.Model.Compacted && s.Closing == "" && s.Held == "" && !s.stopping() &&
		(s.Phase == PhaseModel && len(s.Settings.Pots) == 0 || s.Phase == PhaseBudget && s.Asks == nil)
}

// HeldBack is whether a compaction ahead of a call is not to be tried yet, with a
// conversation of so many tokens, because the last one failed.
func (s *State) HeldBack(tokens int) bool {
	w := s.CompactWait
	return w != nil && s.Step < w.Step && tokens < w.Tokens
}

// full compacts ahead of a model call.
func (m *machine) full(in Full) error {
	s := &m.State
	switch {
	case !s.MayCompact():
		return m.illegal("no call is open that a compaction may come ahead of")
	case s.HeldBack(in.Tokens):
		return m.illegal("the last compaction failed, and is tried again in step %d or at %d tokens", s.CompactWait.Step, s.CompactWait.Tokens)
	}
	if s.Settings.CompactWait > 0 {
		// It holds if this one fails; what is made takes it away.
		s.CompactWait = &CompactWait{Tokens: in.Tokens + max(in.Grow, 1), Step: s.Step + s.Settings.CompactWait, Told: s.CompactWait != nil && s.CompactWait.Told}
	}
	s.Model.Trimmed = true
	m.startCompaction(CompactThreshold)
	return nil
}

func (m *machine) startCompaction(reason string) {
	s := &m.State
	s.Phase = PhaseCompact
	s.Model.CompactEntry, s.Model.CompactFor = s.nextEntry(), reason
	m.compact()
}

func (m *machine) compact() {
	m.do(Compact{Reason: m.State.Model.compactFor(), Entry: m.State.Model.CompactEntry})
}

func (c *ModelCall) compactFor() string {
	if c.CompactFor == "" {
		return CompactOverflow // all that there was once
	}
	return c.CompactFor
}

// compacted goes on with the call for which there was to be room.
func (m *machine) compacted(in Compacted) error {
	s := &m.State
	if s.Phase != PhaseCompact {
		return m.illegal("no compaction is open")
	}
	s.Usage.Add(in.Usage)
	reason, entry := s.Model.compactFor(), s.Model.CompactEntry
	switch {
	case s.stopping():
		m.end()
		return nil
	case in.Error != "":
		m.notCompacted(in, reason)
		return nil
	}
	m.write(AppendCompaction{Entry: entry, Parent: s.Leaf})
	s.Leaf, s.CompactWait = entry, nil
	s.Model.CompactEntry, s.Model.CompactFor = "", ""
	m.tell(event.SessionCompacted, &event.Compaction{EntryID: entry, Reason: reason})
	if reason == CompactManual {
		m.endOfTurn(StopCompacted)
		return nil
	}
	// The reply comes after the compaction, in ids as in the tree.
	s.Model.Entry = s.nextEntry()
	m.callModel()
	return nil
}

// notCompacted goes on where the session stays as it is. What was only nearly too
// large is sent: it may fit all the same, and if not that is told.
func (m *machine) notCompacted(in Compacted, reason string) {
	s := &m.State
	s.Model.CompactEntry, s.Model.CompactFor = "", ""
	switch {
	case reason == CompactThreshold:
		if w := s.CompactWait; w != nil && !w.Told && !in.Nothing {
			told := *w // a state that was given is never changed
			told.Told, s.CompactWait = true, &told
			m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "compaction_failed", Prompt: "The conversation was to be compacted, which failed: " + in.Error +
				". It is tried again when it has grown, or in step " + strconv.Itoa(w.Step) + "."})
		}
		m.callModel()
	case reason == CompactManual && in.Nothing:
		m.endOfTurn(StopNothingToCompact)
	case reason == CompactManual:
		m.finish(Failed, StopCompactionFailed, &event.Error{Kind: StopCompactionFailed, Message: in.Error,
			Hint: "The session is as it was. Try again later, or with another model (compaction.model in the profile)."})
	case s.Held != "":
		m.holds(in.Error)
	case s.Closing != "":
		m.closedWithout(in.Error)
	default:
		m.finish(Failed, "context_overflow", &event.Error{Kind: "overflow", Message: in.Error,
			Hint: "Start a new session, or use a model with a larger context window."})
	}
}
