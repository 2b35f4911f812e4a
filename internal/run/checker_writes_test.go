package run

import (
	"slices"
	"strings"

	"agentd/message"
)

// What the checker holds writes to: entries, results, queues and interrupts.

func (c *checker) entry(id, parent string) {
	if id == "" {
		c.fail(12, "an entry has no id")
	}
	if _, twice := c.entries[id]; twice {
		c.fail(5, "entry %s is written twice", id)
	}
	if parent != c.base && id <= parent {
		c.fail(12, "entry %s does not sort after its parent %s", id, parent)
	}
	if !strings.HasPrefix(id, c.s.EntryBase) || id >= c.nextID() {
		c.fail(6, "entry %s was not reserved", id)
	}
	c.entries[id] = parent
}

// nextID is the id after the last reserved one.
func (c *checker) nextID() string {
	s := c.s.clone()
	return s.nextEntry()
}

func (c *checker) write(before State, in Input, w Write) {
	switch w := w.(type) {
	case AppendQueued:
		c.entry(w.Entry, w.Parent)
		c.consume(before, in, w.Input)
		c.turn.reset()
	case AppendMessage:
		c.entry(w.Entry, w.Parent)
		switch {
		case w.Message.Role == message.RoleUser:
			c.nudged(before, in, w)
		case w.Message.Role == message.RoleAssistant:
			c.closing = before.Closing != ""
			c.newReply(w)
		default:
			c.newResult(w)
			c.turn.result(w)
		}
	case AppendCompaction:
		c.entry(w.Entry, w.Parent)
		if before.Model == nil || w.Entry != before.Model.CompactEntry || w.Parent != before.Leaf {
			c.fail(13, "%+v; the session stood at %q", w, before.Leaf)
		}
	case AppendSetting:
		c.entry(w.Entry, w.Parent)
		c.setting(before, in, w)
	case RollBack:
		c.entry(w.Entry, w.Parent)
		if !c.rollsBack || w.Parent != c.stood || !c.s.Status.Ended() || c.rollback != "" || w.Entry != c.s.Leaf {
			c.fail(17, "%+v; the session stood at %q", w, c.stood)
		}
		c.rollback = w.Entry
	case ReturnQueued:
		if !slices.Equal(w.Inputs, slices.Concat(c.steering, c.followUps)) {
			c.fail(9, "%v was handed back, queued are %v and %v", w.Inputs, c.steering, c.followUps)
		}
		c.steering, c.followUps = nil, nil
	case OpenInterrupt:
		if c.asked[w.ID] {
			c.fail(3, "interrupt %s is opened twice", w.ID)
		}
		c.asked[w.ID] = true
		c.expires[w.ID] = w.Expires
		call := w.CallID
		if c.ofRun[w.ID] = call == ""; call == "" {
			call = "(the run)"
			c.asksMore(w)
		} else if w.Kind == kindApproval {
			if c.turn.asked++; c.settings.MaxApprovals > 0 && c.turn.asked > c.settings.MaxApprovals {
				c.fail(22, "%d approvals are asked for", c.turn.asked)
			}
			c.turn.approvals[call] = true
		}
		c.interrupts[w.ID], c.callAsked[w.ID] = call, call
	case CloseInterrupt:
		if _, ok := c.interrupts[w.ID]; !ok {
			c.fail(3, "interrupt %s is closed and was not open", w.ID)
		}
		delete(c.interrupts, w.ID)
		c.checkExpired(in, w)
		if w.Expired {
			clear(c.turn.cache)
		}
	case Settle:
		c.settle(in, w)
	case RaisePot:
		if a, ok := in.(Answered); !ok || a.Decision != "approve" || !c.ofRun[a.Interrupt] || w.By <= 0 || before.Asks == nil || w.Limit != before.Asks.Limit || w.ID != before.Asks.ID {
			c.fail(21, "%+v by %+v", w, in)
		}
	case RecordProposal:
		if v, ok := in.(Verdict); !ok || v.Decision != Capture || v.CallID != w.CallID || c.asked[w.ID] {
			c.fail(19, "proposal %s of call %s comes from %+v", w.ID, w.CallID, in)
		}
		c.asked[w.ID] = true
	default:
		c.fail(1, "unknown write %T", w)
	}
}

// checkExpired holds interrupts that ended by themselves to their time and to what
// was declared for that (16).
func (c *checker) checkExpired(in Input, w CloseInterrupt) {
	if !w.Expired {
		return
	}
	if fired, ok := in.(TimerFired); !ok || fired.ID != w.ID || c.expires[w.ID] == 0 || fired.Now < c.expires[w.ID] {
		c.fail(18, "interrupt %s of time %d ended because of %+v", w.ID, c.expires[w.ID], in)
	}
	c.expired++
	if w.Decision != "reject" && c.ofRun[w.ID] {
		c.fail(21, "nobody's silence spends money: %+v", w)
	}
	call := c.s.callIndex(c.callAsked[w.ID])
	if w.Decision == "approve" && (!c.settings.Interrupts.Approve || call >= 0 && c.s.Calls[call].Grave) {
		c.fail(18, "nobody said that %s may be approved by nobody", w.ID)
	}
}

func (c *checker) newReply(w AppendMessage) {
	c.checkBatch()
	c.batch, c.cut, c.reply = nil, w.Message.StopReason == message.StopLength, w.Entry
	c.verdicts, c.results = map[string]Verdict{}, map[string]string{}
	c.started, c.told, c.ended = map[string]bool{}, map[string]bool{}, map[string]bool{}
	clear(c.amended)
	c.turn.newBatch()
	if w.Message.StopReason == message.StopAborted {
		return // dropped from every later prompt, its calls with it
	}
	for _, b := range w.Message.ToolCalls() {
		if b.ID == "" || slices.Contains(c.batch, b.ID) {
			c.fail(5, "call id %q is empty or repeated", b.ID)
		}
		c.batch = append(c.batch, b.ID)
	}
}

func (c *checker) newResult(w AppendMessage) {
	id := w.Message.ToolCallID
	i := slices.Index(c.batch, id)
	if i < 0 || w.Message.Role != message.RoleToolResult {
		c.fail(5, "a %s for %q, the calls are %v", w.Message.Role, id, c.batch)
	}
	if _, twice := c.results[id]; twice {
		c.fail(5, "call %s has two results", id)
	}
	c.results[id] = w.Entry
	if i == 0 && w.Parent != c.reply {
		c.fail(5, "the first result follows %s, the reply is %s", w.Parent, c.reply)
	}
	// Both neighbours are compared as soon as both are there.
	for j := max(i, 1); j < len(c.batch) && j <= i+1; j++ {
		earlier, ok1 := c.results[c.batch[j-1]]
		later, ok2 := c.results[c.batch[j]]
		if ok1 && ok2 && c.entries[later] != earlier {
			c.fail(5, "the result of %s follows %s, not the result of %s", c.batch[j], c.entries[later], c.batch[j-1])
		}
	}
}

// checkBatch is asked when the next reply comes and when the run ends.
func (c *checker) checkBatch() {
	for _, id := range c.batch {
		_, ok := c.results[id]
		if handed := c.s.Status.Ended() && c.s.StopReason == StopClientTools; ok == handed {
			c.fail(5, "call %s has a result: %t; the run ended for %q", id, ok, c.s.StopReason)
		}
	}
}

// consume takes an input from the head of its queue.
func (c *checker) consume(before State, in Input, id string) {
	if start, ok := in.(Started); ok && slices.Contains(start.Prompt, id) {
		return
	}
	c.startsWork(before, in, "input "+id+" is taken")
	switch {
	case len(c.steering) > 0 && c.steering[0] == id:
		c.steering = c.steering[1:]
	case len(c.followUps) > 0 && c.followUps[0] == id:
		if len(c.steering) > 0 {
			c.fail(9, "follow-up %s is taken while %v is queued", id, c.steering)
		}
		c.followUps = c.followUps[1:]
		if done, ok := in.(ModelDone); ok && len(done.Message.ToolCalls()) > 0 && before.Closing == "" {
			c.fail(9, "follow-up %s is taken while tools are to run", id)
		}
	default:
		c.fail(9, "%s is taken, queued are %v and %v", id, c.steering, c.followUps)
	}
}

// startsWork holds for whatever must not happen once the run is to end (10).
func (c *checker) startsWork(before State, in Input, what string) {
	_, cancel := in.(CancelRequested)
	if before.stopping() || cancel || c.s.Status.Ended() {
		c.fail(10, "%s though the run is ending", what)
	}
}
