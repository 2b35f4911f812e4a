package run

import (
	"slices"
	"strconv"

	"agentd/event"
	"agentd/message"
)

const (
	kindAsk    = "ask"
	kindSpawn  = "spawn"
	kindClient = "client"

	kindPlan = "plan"

	// Kinds of interrupts, besides kindPlan.
	kindApproval  = "approval"
	kindQuestion  = "question"
	kindUncertain = "uncertain" // the call may have happened

	// modeEdit is the mode in which nothing is forbidden.
	modeEdit = "edit"

	effectRead       = "read"
	effectIdempotent = "idempotent"
	effectOnce       = "once"
)

// planCalls plans the calls of a reply and reserves the ids of their results.
// Call ids are the model's to make but ours to rely on: an empty or repeated one
// is replaced, in the reply too, so that every call has its own result.
func (m *machine) planCalls(reply *message.Message) []Call {
	var calls []Call
	seen := map[string]bool{}
	reply.Content = slices.Clone(reply.Content)
	for i := range reply.Content {
		b := &reply.Content[i]
		if b.Type != message.BlockToolCall {
			continue
		}
		given := b.ID
		for n := len(calls); b.ID == "" || seen[b.ID]; n++ {
			b.ID = given + "_" + strconv.Itoa(n)
		}
		seen[b.ID] = true
		calls = append(calls, Call{ID: b.ID, Name: b.Name, Phase: CallPlanned, Entry: m.State.nextEntry(), Sig: m.signature(b)})
	}
	return calls
}

func (m *machine) call(id string) int {
	for i := range m.State.Calls {
		if m.State.Calls[i].ID == id {
			return i
		}
	}
	return -1
}

// verdict records what was decided about a call. Calls are judged one after
// the other in source order; nothing starts before the last verdict.
func (m *machine) verdict(in Verdict) error {
	s := &m.State
	i := m.call(in.CallID)
	if s.Phase != PhaseTools || i < 0 {
		return m.illegal("there is no call %q", in.CallID)
	}
	c := &s.Calls[i]
	if c.Phase != CallPlanned {
		return m.illegal("call %q has its verdict", in.CallID)
	}
	if i > 0 && s.Calls[i-1].Phase == CallPlanned {
		return m.illegal("call %q is judged before the one ahead of it", in.CallID)
	}
	c.Effect, c.Sequential, c.Kind, c.Grave = in.Effect, in.Sequential, in.ToolKind, in.Grave
	if c.Effect != effectRead && c.Effect != effectIdempotent {
		c.Effect = effectOnce // what nobody declared safe is not
	}
	if c.Kind == "" && c.Effect != effectOnce {
		c.CacheKey = in.CacheKey
	}
	over := s.Settings.MaxToolCalls > 0 && s.ToolCalls-len(s.Calls)+i >= s.Settings.MaxToolCalls
	shared := s.Model.Calls != nil && i >= *s.Model.Calls
	switch {
	case s.stopping():
		m.fail(i, "Not executed: the run is ending.")
	case over:
		m.fail(i, "Not executed: the run's limit of "+strconv.Itoa(s.Settings.MaxToolCalls)+" tool calls is used up.")
	case shared:
		m.fail(i, "Not executed: the limit of tool calls, which the run shares with others, is used up.")
	case in.Decision == Allow:
		c.Phase = CallReady
	case in.Decision == Ask:
		kind := kindApproval
		switch c.Kind {
		case kindAsk:
			kind = kindQuestion
		case kindPlan:
			kind = kindPlan
		}
		if m.askedEnough(kind) {
			m.fail(i, m.approvalsUsedUp())
			s.Failures-- // people are asked no more: the tool did not fail
			break
		}
		if kind == kindApproval {
			s.TurnAsked++
		}
		m.ask(c, kind, in.Prompt, in.Schema, in.ExpiresAt)
	case in.Decision == Capture:
		m.capture(i, in.Reason)
	case in.Decision == Deny:
		m.fail(i, in.Reason)
	default:
		return m.illegal("unknown decision %q", in.Decision)
	}
	if i+1 < len(s.Calls) {
		m.do(Judge{CallID: s.Calls[i+1].ID, Name: s.Calls[i+1].Name})
		return nil
	}
	m.advance()
	return nil
}

// advance starts what may start and ends the batch when every call has its result.
func (m *machine) advance() {
	s := &m.State
	sequential := s.Settings.Sequential
	running, open := false, false
	for i := range s.Calls {
		c := &s.Calls[i]
		sequential = sequential || c.Sequential
		running = running || c.Phase == CallRunning
		if c.Phase == CallPlanned {
			return // preflight is not over
		}
	}
	if m.handBack() {
		return
	}
	skip := s.Settings.SkipRest && len(s.Steering) > 0
	for i := range s.Calls {
		c := &s.Calls[i]
		switch {
		case (c.Phase == CallReady || c.Phase == CallAsked) && s.stopping():
			m.drop(i, "the run is ending", "Not executed: the run is ending.")
		case (c.Phase == CallReady || c.Phase == CallAsked) && skip:
			m.drop(i, "skipped because of a new message", "Skipped because of a new message.")
			s.Failures-- // the person's choice, not the tool's failure
			c.Sig = ""
		case c.Phase == CallReady && !(sequential && running):
			running = true
			m.start(c)
		}
		open = open || c.Phase != CallDone
	}
	if !open {
		m.batchDone()
	}
}

// handBack ends the run when the whole batch is for the client that started it,
// who performs the calls and comes back with the results. In a mixed batch the
// client's calls fail and ask to be made alone: a client never sees the results
// of the server's tools, so handing back half a batch would lose the other half.
func (m *machine) handBack() bool {
	s := &m.State
	client, waiting := 0, 0
	for i := range s.Calls {
		switch c := &s.Calls[i]; {
		case c.Kind == kindClient && c.Phase == CallReady:
			client++
		case c.Kind == kindClient && c.Phase == CallAsked:
			waiting++
		}
	}
	switch {
	case client == 0 || s.stopping():
		return false
	case client+waiting == len(s.Calls) && waiting > 0 && !(s.Settings.SkipRest && len(s.Steering) > 0):
		return true // a person's word comes first
	case client == len(s.Calls):
		s.Output = s.Model.Entry
		m.finish(Completed, StopClientTools, nil)
		return true
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Kind == kindClient && c.Phase == CallReady {
			m.fail(i, "Not executed: "+c.Name+" runs on the client and can not share a reply with other tools. Call it again, alone.")
		}
	}
	return false
}

func (m *machine) start(c *Call) {
	s := &m.State
	m.recall(c)
	c.Phase = CallRunning
	m.tell(event.ToolStarted, &event.Tool{ToolCallID: c.ID, Name: c.Name})
	if c.Kind == kindSpawn {
		if c.Child == "" {
			s.Children++
			c.Child = ChildID(s.RunID, s.Children)
		}
		m.tell(event.SubagentStarted, &event.Subagent{RunID: c.Child, ToolCallID: c.ID})
	}
	m.callTool(c)
}

// callTool emits the effect of a call that runs, the same one each time.
func (m *machine) callTool(c *Call) {
	s := &m.State
	if c.Kind == kindSpawn {
		m.do(SpawnChild{CallID: c.ID, Child: c.Child, Step: s.Step, Interrupt: c.AmendedBy})
		return
	}
	m.do(CallTool{CallID: c.ID, Name: c.Name, Effect: c.Effect, Key: s.Key(c.ID), Step: s.Step, Interrupt: c.AmendedBy, Cached: c.Cached})
}

func (m *machine) toolDone(in ToolDone) error {
	s := &m.State
	i := m.call(in.CallID)
	if s.Phase != PhaseTools || i < 0 {
		return m.illegal("there is no call %q", in.CallID)
	}
	c := &s.Calls[i]
	if c.Phase != CallRunning {
		return m.illegal("call %q is not running", in.CallID)
	}
	if in.Message == nil || in.Message.Role != message.RoleToolResult {
		return m.illegal("the outcome of call %q is not a tool result", in.CallID)
	}
	if in.Cached && c.Cached == "" {
		return m.illegal("call %q has no earlier result to get", in.CallID)
	}
	m.closeBelow(c, nil, nil)
	result := *in.Message
	result.ToolCallID, result.ToolName = c.ID, c.Name
	told := &event.Tool{ToolCallID: c.ID, Name: c.Name, EntryID: c.Entry, Result: result.Text(), DurationMS: in.DurationMS}
	if in.Cached {
		told.Decision, told.Reason = "cached", "an equal call of this turn had this result"
	} else {
		c.Cached = "" // it was made after all
	}
	t := event.ToolCompleted
	if result.IsError {
		t = event.ToolFailed
	}
	m.tell(t, told)
	if c.Kind == kindSpawn {
		status := "completed"
		switch {
		case in.Cancelled:
			status = "cancelled"
		case result.IsError:
			status = "failed"
		}
		m.tell(event.SubagentCompleted, &event.Subagent{RunID: c.Child, ToolCallID: c.ID, Status: status})
	}
	c.Failed = result.IsError
	m.settle(i, &result, in.Terminate)
	if c.Cached == "" {
		m.made(c, !result.IsError && !in.Terminate)
	}
	if s.Settings.FailOnToolError && result.IsError && !s.stopping() && s.FailedSteps >= s.Settings.StepRetries {
		return m.failBatch("tool_failed", &event.Error{Kind: "tool_failed", Message: c.Name + ": " + result.Text()})
	}
	m.advance()
	return nil
}

// fail settles a call that never ran, or never ended, with an error that the model
// reads. Readers of events may have seen its input begin, so they are told too.
func (m *machine) fail(i int, reason string) {
	c := &m.State.Calls[i]
	m.closeBelow(c, nil, nil)
	m.tell(event.ToolFailed, &event.Tool{ToolCallID: c.ID, Name: c.Name, EntryID: c.Entry, Result: reason})
	m.settle(i, errorResult(c, reason), false)
}

// drop settles a call that is not started, or not again, and closes its
// interrupt. Of a call that may have happened before a crash it says so.
func (m *machine) drop(i int, reason, result string) {
	c := &m.State.Calls[i]
	if c.Phase == CallAsked {
		m.closeInterrupt(c, reason)
	}
	if c.InterruptKind == kindUncertain {
		result = mayHaveHappened
	}
	m.fail(i, result)
}

// settle gives a call its result and moves the leaf as far as there is no gap.
func (m *machine) settle(i int, result *message.Message, terminate bool) {
	s := &m.State
	c := &s.Calls[i]
	result.Timestamp = m.now
	parent := ""
	if i > 0 {
		parent = s.Calls[i-1].Entry
	} else {
		parent = s.Model.Entry
	}
	m.write(AppendMessage{Entry: c.Entry, Parent: parent, Message: result})
	c.Phase, c.IsError, c.Terminate = CallDone, result.IsError, terminate
	if c.Sig != "" && c.Cached == "" { // what an earlier call gave is the same by name
		c.Out = fingerprint("", result.Text())
	}
	if c.IsError {
		s.Failures++
	}
	for j := range s.Calls {
		if s.Calls[j].Phase != CallDone {
			break
		}
		s.Leaf = s.Calls[j].Entry
	}
}

// batchDone goes on when every call has its result.
func (m *machine) batchDone() {
	s := &m.State
	m.switched()
	m.countStep()
	m.countCalls()
	switch {
	case s.stopping():
		m.end()
	case s.Settings.MaxFailures > 0 && s.Failures >= s.Settings.MaxFailures:
		use := PotUse{Limit: StopMaxFailures, Cap: int64(s.Settings.MaxFailures), Used: int64(s.Failures)}
		if !m.mayAsk(&use) {
			m.tooManyFailures(use.Used)
			return
		}
		m.askMore(More{PotUse: use, By: max(use.Cap, use.Used-use.Cap+1)})
	default:
		m.afterBatch()
	}
}

// afterBatch goes on after a batch that broke no limit, or whose failures a person
// allowed.
func (m *machine) afterBatch() {
	s := &m.State
	if len(s.Calls) > 0 && !slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.Terminate }) {
		s.Output = s.Model.Entry
		m.endOfTurn("terminated_by_tool")
		return
	}
	s.Closing = m.streak()
	m.checkpoint()
}

func errorResult(c *Call, text string) *message.Message {
	r := message.ToolResult(c.ID, c.Name, true, message.Text(text))
	return &r
}
