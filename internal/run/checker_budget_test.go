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
		if want = SettleUsed; in.Message.Usage == nil || in.Message.Usage.Estimated {
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
