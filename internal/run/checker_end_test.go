package run

// checkFailure holds overflow to its own way (13), and a turn that closes to its end (16).
func (c *checker) checkFailure(before State, in ModelFailed, tr Transition) {
	if before.Closing != "" && !before.stopping() && tr.State.Status == Failed {
		c.fail(16, "a closing call that failed led to failure")
	}
	if before.Held != "" && !before.stopping() && tr.State.Status == Failed {
		c.fail(23, "a nudge that failed led to failure")
	}
	if in.Class != FailOverflow || before.stopping() {
		return
	}
	if !before.Model.Compacted {
		if len(tr.Effects) != 1 || tr.Effects[0].EffectKind() != "Compact" {
			c.fail(13, "the first overflow led to %+v", tr.Effects)
		}
		return
	}
	if before.Closing == "" && before.Held == "" && (tr.State.Status != Failed || len(tr.Effects) > 0) {
		c.fail(13, "the second overflow led to %s, %+v", tr.State.Status, tr.Effects)
	}
}

func (c *checker) checkEnd(tr Transition) {
	if len(c.open) > 0 || len(c.interrupts) > 0 {
		c.fail(3, "open at the end: %v, %v", c.open, c.interrupts)
	}
	if len(c.toldBelow) > 0 {
		c.fail(15, "told and never told to end: %v", c.toldBelow)
	}
	if c.released != (len(c.settings.Pots) > 0) {
		c.fail(20, "what was held is released: %t", c.released)
	}
	if len(c.steering)+len(c.followUps) > 0 {
		c.fail(9, "lost at the end: %v, %v", c.steering, c.followUps)
	}
	if written := len(c.entries) > 0; c.rollsBack && written && c.s.Leaf != c.rollback {
		c.fail(17, "the run was to be rolled back and left %v", c.entries)
	}
	if len(c.told) > 0 {
		c.fail(5, "tools that started and were never told to end: %v", c.told)
	}
	if n := len(tr.Events); n > 0 && !tr.Events[n-1].Type.Terminal() {
		c.fail(3, "the last event is %s", tr.Events[n-1].Type)
	}
	c.checkBatch()
}

// checkLeaf holds the leaf to written entries and to moving forward (12).
func (c *checker) checkLeaf(before State) {
	path := map[string]bool{}
	for id := c.s.Leaf; id != c.base && id != c.stood; {
		path[id] = true
		parent, ok := c.entries[id]
		if !ok {
			c.fail(12, "%s is on the path to the leaf and was never written", id)
		}
		id = parent
	}
	if before.Status != Queued && before.Leaf != c.base && !path[before.Leaf] && c.rollback == "" {
		c.fail(12, "the leaf moved from %s to %s", before.Leaf, c.s.Leaf)
	}
}

// asks finds the call that waits for an interrupt.
func (s *State) asks(interrupt string) (c Call, ok bool) {
	for i := range s.Calls {
		if s.Calls[i].Phase == CallAsked && s.Calls[i].Interrupt == interrupt {
			return s.Calls[i], true
		}
	}
	return c, false
}

// crash loses everything but the stored state and the calls that are elsewhere, and
// resumes.
func (c *checker) crash(now int64, elsewhere ...string) (Transition, error) {
	c.t.Helper()
	s, err := Decode(c.s.Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	c.s = s
	return c.step(Resumed{At: At{now}, Elsewhere: elsewhere})
}
