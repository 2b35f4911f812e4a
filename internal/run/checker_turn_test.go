package run

// What the checker holds approvals, nudges and results that are used again to.

// turnBooks are kept since the last user message.
type turnBooks struct {
	asked     int             // approvals of calls
	approvals map[string]bool // calls of this batch that a person was asked to approve
	nudges    int
	reforms   int

	keys     map[string]string // call of this batch → key of its verdict
	entries  map[string]string // call of this batch → entry of its result
	changing map[string]bool   // calls under way that may change something
	tainted  map[string]bool   // calls under way beside such a one
	cache    map[string]string // key → entry
	last     *ToolDone         // whose result is being written
}

func newTurnBooks() turnBooks {
	return turnBooks{approvals: map[string]bool{}, keys: map[string]string{}, entries: map[string]string{}, changing: map[string]bool{},
		tainted: map[string]bool{}, cache: map[string]string{}}
}

func (b *turnBooks) reset() {
	b.asked, b.nudges, b.reforms = 0, 0, 0
	clear(b.cache)
}

func (b *turnBooks) newBatch() {
	for _, m := range []map[string]bool{b.approvals, b.changing, b.tainted} {
		clear(m)
	}
	clear(b.keys)
	clear(b.entries)
}

// done notes the outcome of a call; its result is written in the same step.
func (b *turnBooks) done(in ToolDone) { b.last = &in }

func (b *turnBooks) result(w AppendMessage) {
	id, in := w.Message.ToolCallID, b.last
	if in == nil || in.CallID != id {
		return // it was not made
	}
	b.last = nil
	if b.changing[id] {
		clear(b.cache)
		delete(b.changing, id)
	}
	key := b.keys[id]
	if in.Cached || key == "" || b.tainted[id] || w.Message.IsError || in.Terminate {
		return
	}
	if len(b.changing) == 0 {
		b.cache[key] = w.Entry
	}
}

// cached holds a call that gets an earlier result to what is known (24).
func (c *checker) cached(in Input, e CallTool) {
	b := &c.turn
	if e.Cached == "" {
		if e.Effect != effectRead {
			clear(b.cache)
			for what := range c.open {
				if call := c.callOf(c.open[what]); call != "" && call != e.CallID {
					b.tainted[call] = true
				}
			}
			b.changing[e.CallID] = true
		}
		return
	}
	if _, again := in.(Resumed); again {
		return // it was held to it when it started
	}
	if key := b.keys[e.CallID]; key == "" || e.Effect == effectOnce || len(b.changing) > 0 || b.cache[key] != e.Cached {
		c.fail(24, "call %s, with key %q, gets %s; known are %v, under way %v", e.CallID, key, e.Cached, b.cache, b.changing)
	}
}

// nudged holds a nudge to its place (23).
func (c *checker) nudged(before State, in Input, w AppendMessage) {
	if string(w.Message.Details) == FormDetails {
		c.reformed(before, in, w)
		return
	}
	c.turn.nudges++
	done, ok := in.(ModelDone)
	if !Nudge(w.Message) || !ok || len(done.Message.ToolCalls()) > 0 || c.turn.nudges > 1 || c.settings.MinToolCalls == 0 || before.stopping() ||
		before.Closing != "" || before.TurnCalls >= c.settings.MinToolCalls || len(before.Steering) > 0 || c.s.Held == "" || c.s.Step != before.Step+1 {
		c.fail(23, "nudge %d after %s: %+v", c.turn.nudges, in.Kind(), w.Message)
	}
}

// reformed holds the wish for another form to its place (26).
func (c *checker) reformed(before State, in Input, w AppendMessage) {
	c.turn.reforms++
	done, ok := in.(ModelDone)
	if !Nudge(w.Message) || !ok || len(done.Message.ToolCalls()) > 0 || done.Unfit == "" || c.turn.reforms > 1 || before.stopping() || before.Closing != "" ||
		len(before.Steering) > 0 || c.s.Held == "" || c.s.Step != before.Step+1 {
		c.fail(26, "wish %d for another form after %s: %+v", c.turn.reforms, in.Kind(), w.Message)
	}
}
