package run

import "slices"

// What the checker holds reservations, questions for more and the leaf to.

// settle holds each reservation to one settlement (20).
func (c *checker) settle(in Input, w Settle) {
	if len(c.settings.Pots) == 0 || c.released {
		c.fail(20, "%+v, and nothing is held", w)
	}
	want := ""
	switch in := in.(type) {
	case ModelDone:
		if want = SettleUsed; in.Message.Usage == nil {
			want = SettleLost
		}
	case ModelFailed:
		if want = SettleLost; in.Free && in.Usage == nil && (in.Partial == nil || in.Partial.Usage == nil) {
			want = SettleFree
		}
	case Reserved:
		want = SettleFree
	case Resumed:
		want = SettleLost
	}
	if _, resumed := in.(Resumed); w.How != "" && (w.How != want || !c.reserved && !resumed) {
		c.fail(20, "%s settles the call as %q", in.Kind(), w.How)
	}
	c.reserved = false
	if w.Last {
		c.released = true
		if !c.s.Status.Ended() {
			c.fail(20, "everything is released and the run goes on")
		}
	}
}

// asksMore holds questions for more to where they were wished for (21).
func (c *checker) asksMore(w OpenInterrupt) {
	a := c.s.Asks
	if a == nil {
		return // it was closed in the same step
	}
	may := c.settings.AskMore
	if a.Pot != "" {
		may = slices.ContainsFunc(c.settings.Pots, func(p Pot) bool { return p.Kind == a.Pot && p.Ask })
	}
	if !may || c.settings.Autonomous || w.Kind != "approval" || a.By <= 0 {
		c.fail(21, "a person is asked for more: %+v, %+v", w, a)
	}
}

// checkLeaf holds the leaf to written entries and to moving forward (12).
func (c *checker) checkLeaf(before State) {
	path := map[string]bool{}
	for id := c.s.Leaf; id != c.base; {
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

// crash loses everything but the stored state, and resumes.
func (c *checker) crash(now int64) (Transition, error) {
	c.t.Helper()
	s, err := Decode(c.s.Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	c.s = s
	return c.step(Resumed{At{now}})
}
