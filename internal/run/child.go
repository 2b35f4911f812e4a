package run

import (
	"slices"

	"agentd/event"
)

// childWaits takes in what people are asked below a child run, and tells it as if
// this run asked: whoever follows the root of a tree sees every question of it.
// Each run hears it of its own children, so it climbs from level to level.
func (m *machine) childWaits(in ChildWaits) error {
	s := &m.State
	i := m.call(in.CallID)
	if s.Phase != PhaseTools || i < 0 || !s.Calls[i].AwaitsChild() {
		return m.illegal("call %q does not wait for a child run", in.CallID)
	}
	c := &s.Calls[i]
	var open []string
	for _, w := range in.Open {
		if w.InterruptID == "" || w.RunID == "" {
			return m.illegal("an interrupt below call %q has no id or no run", in.CallID)
		}
		if !slices.Contains(open, w.InterruptID) {
			open = append(open, w.InterruptID)
		}
	}
	before := c.Waits
	m.closeBelow(c, open, in.Closed)
	for k, w := range in.Open {
		if slices.Contains(before, w.InterruptID) || slices.ContainsFunc(in.Open[:k], func(o event.Checkpoint) bool { return o.InterruptID == w.InterruptID }) {
			continue
		}
		if w.ToolCall != nil {
			t := *w.ToolCall
			w.ToolCall = &t
		}
		m.tell(event.CheckpointRequired, &w)
	}
	paused := c.Paused
	// Without an interrupt there is nothing that a person could answer.
	c.Waits, c.Paused = open, in.Paused && len(open) > 0
	if c.Paused && !paused && len(m.Events) == 0 {
		// Nothing else says that the time to look at the run's status is now.
		m.tell(event.CheckpointInfo, &event.Checkpoint{Kind: "waiting", RunID: c.Child, Reason: "the subagent waits for people and for nothing else"})
	}
	return nil
}

// closeBelow tells that interrupts below a call are no longer open, all but those
// in open. How they ended is in closed; of others, they ended with their run.
func (m *machine) closeBelow(c *Call, open []string, closed []event.Checkpoint) {
	for _, id := range c.Waits {
		if slices.Contains(open, id) {
			continue
		}
		told := event.Checkpoint{InterruptID: id, RunID: c.Child, Decision: "cancelled", Reason: "the subagent has ended"}
		if k := slices.IndexFunc(closed, func(w event.Checkpoint) bool { return w.InterruptID == id }); k >= 0 {
			w := &closed[k]
			told = event.Checkpoint{InterruptID: id, RunID: w.RunID, Kind: w.Kind, Decision: w.Decision, Reason: w.Reason}
		}
		m.tell(event.CheckpointResolved, &told)
	}
	c.Waits, c.Paused = nil, false
}
