package run

import (
	"fmt"
	"slices"
	"strings"
)

// What the checker holds effects to: ids, order, and what may start at all.

func (c *checker) effect(before State, in Input, e Effect) {
	_, aborted := in.(Aborted)
	if _, stop := e.(StopEffects); c.s.Status.Ended() && !(aborted && stop) {
		c.fail(3, "%s %+v starts as the run ends", e.EffectKind(), e)
	}
	open := func(what string) {
		if _, twice := c.open[what]; twice {
			c.fail(4, "%s is opened twice", what)
		}
		c.open[what] = e
	}
	reserved := func(id string) {
		if _, written := c.entries[id]; written || !strings.HasPrefix(id, c.s.EntryBase) || id >= c.nextID() {
			c.fail(6, "%s has the entry %q, which is not reserved", e.EffectKind(), id)
		}
	}
	nextCall := func(what string) {
		c.startsWork(before, in, what+" starts")
		if _, done := in.(ModelDone); done && before.Closing != "" && len(before.Steering)+len(before.FollowUps) == 0 {
			c.fail(16, "the last reply of a turn is followed by another call")
		}
		if before.Step != c.s.Step {
			c.compactions = map[string]string{}
			c.checkBatch()
		}
	}
	switch e := e.(type) {
	case Reserve:
		nextCall("a reservation")
		if c.reserved || len(c.settings.Pots) == 0 || e.Step != c.s.Step || e.Index != c.s.Model.Index || e.Closing != c.s.Closing || !strings.HasPrefix(e.Key, c.s.Model.Entry) {
			c.fail(20, "%+v is reserved; reserved before: %t", e, c.reserved)
		}
		open("budget")
	case CallModel:
		nextCall("a model call")
		if _, ok := in.(Reserved); ok != (len(c.settings.Pots) > 0) {
			c.fail(20, "a model call starts after %s", in.Kind())
		}
		if c.s.Model == nil || c.s.Model.Entry != e.Entry || c.s.Step != e.Step || c.s.Model.Index != e.Index || e.Index >= max(1, c.settings.Models) {
			c.fail(6, "%+v is not the model call of the state", e)
		}
		if e.Closing != c.s.Closing {
			c.fail(16, "%+v closes the turn for %q", e, c.s.Closing)
		}
		reserved(e.Entry)
		open("model")
	case Compact:
		c.startsWork(before, in, "a compaction starts")
		reserved(e.Entry)
		for entry, why := range c.compactions {
			if entry != e.Entry && why == e.Reason {
				c.fail(13, "two compactions for one reply because of %s", why)
			}
		}
		if e.Reason == CompactThreshold && (c.s.Closing != "" || c.s.Held != "" || c.compactions[e.Entry] == "" && len(c.compactions) > 0) {
			c.fail(13, "a compaction comes ahead of a call that it must not hold up")
		}
		if c.compactions == nil {
			c.compactions = map[string]string{}
		}
		c.compactions[e.Entry] = e.Reason
		open("compact")
	case Judge:
		c.mayRun(e.CallID)
		open("judge " + e.CallID)
	case CallTool:
		c.startsWork(before, in, "call "+e.CallID+" starts")
		c.starts(in, e.CallID)
		open("call " + e.CallID)
		c.checkCallTool(e)
		c.cached(in, e)
	case SpawnChild:
		if e.Stop {
			// A child that may be there is told to end, after a crash.
			if _, resumed := in.(Resumed); !resumed || !before.stopping() {
				c.fail(10, "child %s is stopped though nobody said so", e.Child)
			}
			open("call " + e.CallID)
			break
		}
		c.startsWork(before, in, "child "+e.Child+" starts")
		c.starts(in, e.CallID)
		open("call " + e.CallID)
		call := fmt.Sprint(e.Step, e.CallID)
		if have, ok := c.children[call]; e.Child == "" || ok && have != e.Child {
			c.fail(6, "the child of %s was %q and is %q", call, have, e.Child)
		}
		for other, child := range c.children {
			if child == e.Child && other != call {
				c.fail(6, "%s and %s share the child %s", call, other, child)
			}
		}
		c.children[call] = e.Child
		clear(c.turn.cache)
		c.turn.changing[e.CallID] = true
		if e.Interrupt != c.amended[e.CallID] {
			c.fail(6, "child of %s starts with the arguments of %q, amended in %q", e.CallID, e.Interrupt, c.amended[e.CallID])
		}
	case Sleep:
		c.timers[e.ID] = e.Until
	case StopEffects:
		if len(c.open) == 0 && !aborted {
			c.fail(4, "nothing is open to be stopped")
		}
	default:
		c.fail(1, "unknown effect %T", e)
	}
	if call := c.callOf(e); call != "" {
		i := c.s.callIndex(call)
		if i < 0 {
			c.fail(6, "%s of a call that the state does not have: %s", e.EffectKind(), call)
		}
		reserved(c.s.Calls[i].Entry)
	}
}

func (c *checker) callOf(e Effect) string {
	switch e := e.(type) {
	case Judge:
		return e.CallID
	case CallTool:
		return e.CallID
	case SpawnChild:
		return e.CallID
	}
	return ""
}

func (s *State) callIndex(id string) int {
	return slices.IndexFunc(s.Calls, func(c Call) bool { return c.ID == id })
}

func (c *checker) mayRun(id string) {
	if c.closing {
		c.fail(16, "call %s of a reply that was to close the turn", id)
	}
	if c.cut {
		c.fail(7, "call %s of a reply that was cut", id)
	}
	if _, done := c.results[id]; done {
		c.fail(5, "call %s has its result and is started", id)
	}
}

// starts checks what holds for tools and children alike (7, 8).
func (c *checker) starts(in Input, id string) {
	c.mayRun(id)
	sequential := c.settings.Sequential
	for _, other := range c.batch {
		v, ok := c.verdicts[other]
		if !ok {
			c.fail(8, "call %s starts before the verdict on %s", id, other)
		}
		sequential = sequential || v.Sequential
	}
	v := c.verdicts[id]
	if v.Decision == Deny || v.Decision == Capture || v.ToolKind == "client" {
		c.fail(8, "call %s starts, its verdict is %+v", id, v)
	}
	if v.Decision == Ask && v.ToolKind != kindAsk && v.ToolKind != kindPlan && !c.turn.approvals[id] {
		c.fail(22, "call %s starts and nobody was asked about it", id)
	}
	for _, call := range c.interrupts {
		if call == id {
			c.fail(8, "call %s starts while a person is asked about it", id)
		}
	}
	if sequential {
		for what := range c.open {
			if strings.HasPrefix(what, "call ") {
				c.fail(8, "call %s starts beside %s in a sequential batch", id, what)
			}
		}
	}
}

// checkCallTool holds once calls to one start (11) and keys to one call.
func (c *checker) checkCallTool(e CallTool) {
	v := c.verdicts[e.CallID]
	want := v.Effect
	if want != "read" && want != "idempotent" {
		want = "once"
	}
	if e.Effect != want {
		c.fail(11, "call %s starts as %q, it was declared %q", e.CallID, e.Effect, v.Effect)
	}
	if want == "once" && c.started[e.CallID] {
		c.fail(11, "once call %s starts again without a person's word", e.CallID)
	}
	c.started[e.CallID] = true
	call := fmt.Sprint(e.Step, " ", e.CallID)
	if have, ok := c.keys[e.Key]; ok && have != call {
		c.fail(11, "key %s stands for %s and %s", e.Key, have, call)
	}
	c.keys[e.Key] = call
	if e.Key != fmt.Sprintf("r1/%d/%s", e.Step, e.CallID) || e.Step != c.s.Step {
		c.fail(11, "key %s of step %d, call %s", e.Key, e.Step, e.CallID)
	}
	if e.Interrupt != c.amended[e.CallID] {
		c.fail(11, "call %s starts with the arguments of %q, amended in %q", e.CallID, e.Interrupt, c.amended[e.CallID])
	}
}
