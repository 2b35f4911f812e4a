package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentd/event"
	"agentd/message"
)

// checker steps a machine and holds every step to the numbered invariants of
// the package comment. It keeps its own books, from writes, effects and inputs
// alone, and compares the machine's state with them.
type checker struct {
	t testing.TB
	s State
	// log is every input so far, for failures.
	log []string

	open       map[string]Effect // effects that are not answered, timers aside
	timers     map[string]int64  // timers that have not fired
	interrupts map[string]string // open interrupts → call
	asked      map[string]bool   // every interrupt ever opened
	amended    map[string]string // calls of this batch → interrupt with their arguments

	entries  map[string]string // entry → parent
	base     string            // where the session stood
	settings Settings

	batch    []string // calls of the last committed reply, in source order
	reply    string   // its entry
	cut      bool     // it was cut by its length
	verdicts map[string]Verdict
	results  map[string]string // call → entry of its result
	started  map[string]bool   // once calls that started and nobody vouched for
	told     map[string]bool   // calls with a tool_started and no end of it
	keys     map[string]string // idempotency key → step and call
	children map[string]string // call of a step → child

	steering, followUps []string
	compactions         map[string]bool // compactions of the open reply
	usage               message.Usage
	terminal            int
	kept                []kept
}

// kept is a state that was handed to Step, with its form at that time.
type kept struct {
	state State
	form  string
}

func newChecker(t testing.TB) *checker {
	return &checker{t: t, s: New("r1", "s1"), open: map[string]Effect{}, timers: map[string]int64{},
		interrupts: map[string]string{}, asked: map[string]bool{}, amended: map[string]string{},
		entries: map[string]string{}, keys: map[string]string{}, children: map[string]string{}}
}

// fail reports a broken invariant, with all inputs that led to it.
func (c *checker) fail(invariant int, format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("invariant %d: %s\nstate: %s\ninputs:\n  %s", invariant, fmt.Sprintf(format, args...), c.s.Encode(), strings.Join(c.log, "\n  "))
}

// form is everything in v, as text: the JSON forms of inputs leave messages out.
func form(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	switch v := v.(type) {
	case ModelDone:
		b = append(b, form(v.Message)...)
	case ModelFailed:
		b = append(b, form(v.Partial)...)
	case ToolDone:
		b = append(b, form(v.Message)...)
	case Answered:
		b = append(b, v.Text...)
	}
	return string(b)
}

func kindOf(in Input) string {
	if in == nil {
		return "nil"
	}
	return in.Kind()
}

// step applies an input and checks what can be checked about it.
func (c *checker) step(in Input) (Transition, error) {
	c.t.Helper()
	c.log = append(c.log, kindOf(in)+" "+form(in))
	before := c.s
	stateForm, inputForm := form(&before), form(in)
	tr, err := c.call(before, in)
	if got := form(&before); got != stateForm {
		c.fail(2, "the state handed in changed from %s to %s", stateForm, got)
	}
	if got := form(in); got != inputForm {
		c.fail(2, "the input changed from %s to %s", inputForm, got)
	}
	// The same input on a copy gives the same, and what was handed out before
	// stays as it was.
	again, err2 := c.call(before.clone(), in)
	if !reflect.DeepEqual(tr, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
		c.fail(1, "%s is not deterministic: %+v, %v and %+v, %v", kindOf(in), tr, err, again, err2)
	}
	for _, k := range c.kept {
		if got := form(&k.state); got != k.form {
			c.fail(2, "an earlier state changed from %s to %s", k.form, got)
		}
	}
	if err != nil {
		c.checkError(tr, in, err)
		return tr, err
	}
	c.kept = append(c.kept, kept{before, stateForm})
	if len(c.kept) > 4 {
		c.kept = c.kept[1:]
	}
	c.s = tr.State
	c.checkRoundTrip()
	c.settleInput(before, in, tr)
	for _, w := range tr.Writes {
		c.write(before, in, w)
	}
	for _, e := range tr.Effects {
		c.effect(before, in, e)
	}
	c.events(in, tr)
	c.checkState(before, in, tr)
	return tr, nil
}

func (c *checker) call(s State, in Input) (tr Transition, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.fail(1, "%s panicked: %v", kindOf(in), p)
		}
	}()
	return Step(s, in)
}

func (c *checker) checkError(tr Transition, in Input, err error) {
	var illegal *IllegalError
	if !errors.As(err, &illegal) {
		c.fail(1, "the error of %s is a %T", kindOf(in), err)
	}
	if !reflect.DeepEqual(tr, Transition{}) {
		c.fail(2, "a transition came with the error %v", err)
	}
	if illegal.Reason == "" || !strings.Contains(err.Error(), strings.Join(c.s.Trail, " ")) {
		c.fail(1, "the error does not say what happened: %v", err)
	}
}

func (c *checker) checkRoundTrip() {
	back, err := Decode(c.s.Encode())
	if err != nil {
		c.fail(1, "the state can not be read back: %v", err)
	}
	if !reflect.DeepEqual(back, c.s) {
		c.fail(2, "the state reads back as %s", back.Encode())
	}
}

// settleInput closes what the input answered.
func (c *checker) settleInput(before State, in Input, tr Transition) {
	if before.Status.Ended() {
		if _, late := in.(TimerFired); !late {
			c.fail(3, "%s was accepted after the end", in.Kind())
		}
		if len(tr.Writes)+len(tr.Effects)+len(tr.Events) > 0 {
			c.fail(3, "a late timer had consequences: %+v", tr)
		}
		after := tr.State
		after.Trail = before.Trail
		if !reflect.DeepEqual(after, before) {
			c.fail(3, "a late timer changed the state")
		}
		return
	}
	switch in := in.(type) {
	case Started:
		c.settings, c.base = in.Settings, in.Leaf
	case ModelDone:
		c.close("model", in)
		c.usage.Add(in.Message.Usage)
	case ModelFailed:
		c.close("model", in)
		if before.stopping() && in.Partial != nil && len(in.Partial.Content) > 0 {
			c.usage.Add(in.Partial.Usage)
		}
		c.checkFailure(before, in, tr)
	case Verdict:
		c.close("judge "+in.CallID, in)
		for _, id := range c.batch[:slices.Index(c.batch, in.CallID)] {
			if _, ok := c.verdicts[id]; !ok {
				c.fail(8, "%s has its verdict before %s", in.CallID, id)
			}
		}
		if _, twice := c.verdicts[in.CallID]; twice {
			c.fail(8, "%s has two verdicts", in.CallID)
		}
		c.verdicts[in.CallID] = in
	case ToolDone:
		c.close("call "+in.CallID, in)
	case Compacted:
		c.close("compact", in)
		if in.Error == "" {
			// Who performs the compaction writes its entry, in the same commit.
			c.entry(before.Model.CompactEntry, before.Leaf)
		}
	case Answered:
		id, ok := c.interrupts[in.Interrupt]
		if !ok {
			c.fail(3, "the answer to %s was accepted, which is not open", in.Interrupt)
		}
		delete(c.interrupts, in.Interrupt)
		if in.Decision == "retry" {
			delete(c.started, id)
		}
		if in.Decision == "approve" && in.Amended {
			c.amended[id] = in.Interrupt
		}
	case Steered:
		c.steering = append(c.steering, in.ID)
	case FollowedUp:
		c.followUps = append(c.followUps, in.ID)
	case TimerFired:
		delete(c.timers, in.ID)
	case Aborted:
		clear(c.open) // nobody waits for them
	case Resumed:
		// Whatever was under way ended with the process. What people were
		// asked is durable.
		if before.Status != Paused {
			clear(c.open)
			clear(c.timers)
		}
	}
}

func (c *checker) close(what string, in Input) {
	if _, ok := c.open[what]; !ok {
		c.fail(4, "%s was accepted and %s is not open", in.Kind(), what)
	}
	delete(c.open, what)
}

// checkFailure holds overflow to its own way (13).
func (c *checker) checkFailure(before State, in ModelFailed, tr Transition) {
	if in.Class != FailOverflow || before.stopping() {
		return
	}
	if !before.Model.Compacted {
		if len(tr.Effects) != 1 || tr.Effects[0].EffectKind() != "Compact" {
			c.fail(13, "the first overflow led to %+v", tr.Effects)
		}
		return
	}
	if tr.State.Status != Failed || len(tr.Effects) > 0 {
		c.fail(13, "the second overflow led to %s, %+v", tr.State.Status, tr.Effects)
	}
}

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
	case AppendMessage:
		c.entry(w.Entry, w.Parent)
		if w.Message.Role == message.RoleAssistant {
			c.newReply(w)
		} else {
			c.newResult(w)
		}
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
		c.interrupts[w.ID] = w.CallID
	case CloseInterrupt:
		if _, ok := c.interrupts[w.ID]; !ok {
			c.fail(3, "interrupt %s is closed and was not open", w.ID)
		}
		delete(c.interrupts, w.ID)
	default:
		c.fail(1, "unknown write %T", w)
	}
}

func (c *checker) newReply(w AppendMessage) {
	c.checkBatch()
	c.batch, c.cut, c.reply = nil, w.Message.StopReason == message.StopLength, w.Entry
	c.verdicts, c.results = map[string]Verdict{}, map[string]string{}
	c.started, c.told = map[string]bool{}, map[string]bool{}
	clear(c.amended)
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
		if done, ok := in.(ModelDone); ok && len(done.Message.ToolCalls()) > 0 {
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
	switch e := e.(type) {
	case CallModel:
		c.startsWork(before, in, "a model call starts")
		if c.s.Model == nil || c.s.Model.Entry != e.Entry || c.s.Step != e.Step || c.s.Model.Index != e.Index || e.Index >= max(1, c.settings.Models) {
			c.fail(6, "%+v is not the model call of the state", e)
		}
		reserved(e.Entry)
		if before.Step != c.s.Step {
			c.compactions = map[string]bool{}
			c.checkBatch()
		}
		open("model")
	case Compact:
		c.startsWork(before, in, "a compaction starts")
		reserved(e.Entry)
		c.compactions[e.Entry] = true
		if len(c.compactions) > 1 {
			c.fail(13, "two compactions for one reply")
		}
		open("compact")
	case Judge:
		c.mayRun(e.CallID)
		open("judge " + e.CallID)
	case CallTool:
		c.startsWork(before, in, "call "+e.CallID+" starts")
		c.starts(in, e.CallID)
		open("call " + e.CallID)
		c.checkCallTool(e)
	case SpawnChild:
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
	if v.Decision == Deny || v.ToolKind == "client" {
		c.fail(8, "call %s starts, its verdict is %+v", id, v)
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

func (c *checker) events(in Input, tr Transition) {
	checkpoints := 0
	for _, ev := range tr.Events {
		if c.terminal > 0 {
			c.fail(3, "%s follows the terminal event", ev.Type)
		}
		if ev.Time != in.at() || ev.Step != tr.State.Step && ev.Step != tr.State.Step-1 || ev.Seq != 0 {
			c.fail(1, "%s is of step %d, time %d, number %d", ev.Type, ev.Step, ev.Time, ev.Seq)
		}
		switch ev.Type {
		case event.ToolStarted:
			c.told[ev.Data.(*event.Tool).ToolCallID] = true
		case event.ToolCompleted, event.ToolFailed:
			d := ev.Data.(*event.Tool)
			delete(c.told, d.ToolCallID)
			if c.results[d.ToolCallID] != d.EntryID {
				c.fail(5, "%s names the entry %q, the result is in %q", ev.Type, d.EntryID, c.results[d.ToolCallID])
			}
		case event.CheckpointRequired:
			checkpoints++
			if _, ok := c.interrupts[ev.Data.(*event.Checkpoint).InterruptID]; !ok {
				// It may have been opened and closed in one step.
				checkpoints--
			}
		}
		if ev.Type.Terminal() {
			c.terminal++
		}
	}
	opened := 0
	for _, w := range tr.Writes {
		if w, ok := w.(OpenInterrupt); ok && c.interrupts[w.ID] != "" {
			opened++
		}
	}
	if opened != checkpoints {
		c.fail(3, "%d interrupts opened, %d told", opened, checkpoints)
	}
}

// checkState compares the state with the books.
func (c *checker) checkState(before State, in Input, tr Transition) {
	s := &c.s
	c.checkLeaf(before)
	if !slices.Equal(s.Steering, c.steering) || !slices.Equal(s.FollowUps, c.followUps) {
		c.fail(9, "queued are %v and %v", c.steering, c.followUps)
	}
	if s.Usage != c.usage {
		c.fail(1, "usage should be %+v", c.usage)
	}
	if s.Status.Ended() != (s.Phase == PhaseEnded) || s.Status.Ended() != (c.terminal == 1) || c.terminal > 1 {
		c.fail(3, "%d terminal events", c.terminal)
	}
	if s.Status.Ended() {
		c.checkEnd(tr)
		return
	}
	working := len(c.open) > 0
	if _, ok := c.timers[TimerRetry]; ok && s.Phase == PhaseRetry {
		working = true
	}
	if !working && len(c.interrupts) == 0 && s.Status != Queued {
		c.fail(4, "the run is stuck")
	}
	if paused := !working && s.Status != Queued; paused != (s.Status == Paused) {
		c.fail(14, "the status is %s, open are %v and %v", s.Status, c.open, c.interrupts)
	}
	open := s.Interrupts()
	for _, id := range open {
		if _, ok := c.interrupts[id]; !ok {
			c.fail(3, "interrupt %s is not open", id)
		}
	}
	if len(open) != len(c.interrupts) {
		c.fail(3, "open interrupts are %v", c.interrupts)
	}
	if s.Status == Paused && s.Deadline != 0 {
		c.fail(14, "the clock runs while people are awaited")
	}
	if until := c.timers[TimerDeadline]; s.Deadline != 0 && !s.stopping() && until != s.Deadline {
		c.fail(4, "the deadline's timer is set to %d", until)
	}
	if until := c.timers[TimerRetry]; s.Phase == PhaseRetry && until != s.Model.RetryAt {
		c.fail(4, "the retry's timer is set to %d", until)
	}
}

func (c *checker) checkEnd(tr Transition) {
	if len(c.open) > 0 || len(c.interrupts) > 0 {
		c.fail(3, "open at the end: %v, %v", c.open, c.interrupts)
	}
	if len(c.steering)+len(c.followUps) > 0 {
		c.fail(9, "lost at the end: %v, %v", c.steering, c.followUps)
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
	for id := c.s.Leaf; id != c.base; {
		path[id] = true
		parent, ok := c.entries[id]
		if !ok {
			c.fail(12, "%s is on the path to the leaf and was never written", id)
		}
		id = parent
	}
	if before.Status != Queued && before.Leaf != c.base && !path[before.Leaf] {
		c.fail(12, "the leaf moved from %s to %s", before.Leaf, c.s.Leaf)
	}
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
