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
	callAsked  map[string]string // their calls
	expires    map[string]int64  // when those end by themselves
	amended    map[string]string // calls of this batch → interrupt with their arguments
	below      map[string]below  // children that people are asked in, by call
	toldBelow  map[string]bool   // interrupts below that were told and not told to end

	entries  map[string]string // entry → parent
	base     string            // where the run started
	mode     string
	sets     []Setting // to be written
	stood    string    // where the session stood
	settings Settings

	batch     []string // calls of the last committed reply, in source order
	reply     string   // its entry
	cut       bool     // it was cut by its length
	closing   bool     // it was asked for without tools
	rollback  string   // the entry that took the run off the path
	rollsBack bool     // it was asked for
	verdicts  map[string]Verdict
	results   map[string]string // call → entry of its result
	started   map[string]bool   // once calls that started and nobody vouched for
	told      map[string]bool   // calls with a tool_started and no end of it
	ended     map[string]bool   // calls with a tool_completed or tool_failed
	keys      map[string]string // idempotency key → step and call
	children  map[string]string // call of a step → child

	steering, followUps []string
	compactions         map[string]string // compactions of the open reply, and why
	wait                heldBack
	turn                turnBooks
	reserved            bool            // the means of a model call are reserved and not settled
	released            bool            // nothing is held any more
	ofRun               map[string]bool // interrupts of the run itself
	usage               message.Usage
	terminal            int
	expired             int // interrupts that nobody answered in time
	kept                []kept
}

// below is what is open below a call's child.
type below struct {
	paused bool
	ids    []string
}

// kept is a state that was handed to Step, with its form at that time.
type kept struct {
	state State
	form  string
}

func newChecker(t testing.TB) *checker {
	return &checker{t: t, s: New("r1", "s1"), open: map[string]Effect{}, timers: map[string]int64{},
		interrupts: map[string]string{}, asked: map[string]bool{}, callAsked: map[string]string{}, expires: map[string]int64{}, amended: map[string]string{},
		turn: newTurnBooks(), below: map[string]below{}, toldBelow: map[string]bool{}, ofRun: map[string]bool{},
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
	if len(c.kept) > 2 {
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
	c.settleMode(before, in)
	switch in := in.(type) {
	case Started:
		c.settings, c.base, c.stood = in.Settings, in.Leaf, in.Leaf
		if in.Stood != nil {
			c.stood = *in.Stood
		}
	case ModelDone:
		c.close("model", in)
		c.usage.Add(in.Message.Usage)
	case ModelFailed:
		c.close("model", in)
		if before.stopping() && in.Partial != nil && len(in.Partial.Content) > 0 {
			c.usage.Add(in.Partial.Usage)
		}
		c.checkFailure(before, in, tr)
	case Reserved:
		c.close("budget", in)
		c.reserved = true
	case Exhausted:
		c.close("budget", in)
	case Verdict:
		c.close("judge "+in.CallID, in)
		if in.CacheKey != "" {
			c.turn.keys[in.CallID] = in.CacheKey
		}
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
		c.turn.done(in)
		delete(c.below, in.CallID)
	case ChildWaits:
		if _, open := c.open["call "+in.CallID].(SpawnChild); !open {
			c.fail(15, "the news of call %s was accepted, which has no child", in.CallID)
		}
		b := below{}
		for _, w := range in.Open {
			if !slices.Contains(b.ids, w.InterruptID) {
				b.ids = append(b.ids, w.InterruptID)
			}
		}
		b.paused = in.Paused && len(b.ids) > 0
		c.below[in.CallID] = b
	case Compacted:
		c.close("compact", in)
		c.usage.Add(in.Usage)
		writes := slices.ContainsFunc(tr.Writes, func(w Write) bool { _, ok := w.(AppendCompaction); return ok })
		if want := in.Error == "" && !before.stopping(); writes != want {
			c.fail(13, "the compaction has an entry: %t, want %t", writes, want)
		}
		c.checkHeldBack(before, in, tr)
	case Spent:
		if _, open := c.open["compact"]; !open {
			c.fail(13, "what a compaction used was taken in while there is none")
		}
		c.usage.Add(in.Usage)
	case Full:
		if !before.MayCompact() {
			c.fail(13, "a call was put off that may not be")
		}
		c.checkFull(before, in)
		if len(c.settings.Pots) > 0 {
			c.close("budget", in)
		} else {
			c.close("model", in)
		}
	case Answered:
		if until := c.expires[in.Interrupt]; until != 0 && in.Now >= until {
			c.fail(18, "the answer to %s was accepted after it expired", in.Interrupt)
		}
		clear(c.turn.cache)
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
		_, asked := before.asks(in.ID)
		if after, still := tr.State.asks(in.ID); asked && still && after.Expires != 0 && after.Expires <= in.Now {
			c.fail(18, "interrupt %s is open past its time", in.ID)
		}
	case CancelRequested:
		c.rollsBack = c.rollsBack || in.Rollback
	case InDoubt:
		if e, tool := c.open["call "+in.CallID].(CallTool); !tool || e.Effect != "once" {
			c.fail(25, "call %s was taken for lost, which is no once call that runs", in.CallID)
		}
		c.close("call "+in.CallID, in)
		if i := tr.State.callIndex(in.CallID); i >= 0 && tr.State.Phase == PhaseTools {
			if phase := tr.State.Calls[i].Phase; phase != CallAsked && phase != CallDone {
				c.fail(25, "call %s is lost and %s", in.CallID, phase)
			}
		}
	case Aborted:
		clear(c.open) // nobody waits for them
		clear(c.below)
	case Resumed:
		// Whatever was under way ended with the process. What people were
		// asked is durable. A paused run has children open at most.
		for what := range c.open {
			if _, child := c.open[what].(SpawnChild); before.Status == Paused && !child {
				c.fail(14, "the run was paused and %s is open", what)
			}
		}
		for _, id := range in.Elsewhere {
			if _, tool := c.open["call "+id].(CallTool); tool {
				delete(c.started, id) // to wait for it is not to start it
			}
		}
		clear(c.open)
		clear(c.timers)
	}
}

func (c *checker) close(what string, in Input) {
	if _, ok := c.open[what]; !ok {
		c.fail(4, "%s was accepted and %s is not open", in.Kind(), what)
	}
	delete(c.open, what)
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
			if c.ended[d.ToolCallID] {
				c.fail(5, "the end of call %s is told twice", d.ToolCallID)
			}
			c.ended[d.ToolCallID] = true
			if c.results[d.ToolCallID] != d.EntryID {
				c.fail(5, "%s names the entry %q, the result is in %q", ev.Type, d.EntryID, c.results[d.ToolCallID])
			}
		case event.CheckpointRequired:
			d := ev.Data.(*event.Checkpoint)
			if d.RunID != "" {
				if c.toldBelow[d.InterruptID] {
					c.fail(15, "interrupt %s below is told twice", d.InterruptID)
				}
				c.toldBelow[d.InterruptID] = true
				continue
			}
			checkpoints++
			if _, ok := c.interrupts[d.InterruptID]; !ok {
				// It may have been opened and closed in one step.
				checkpoints--
			}
		case event.CheckpointResolved:
			if d := ev.Data.(*event.Checkpoint); d.RunID != "" {
				if !c.toldBelow[d.InterruptID] {
					c.fail(15, "the end of interrupt %s below is told, which was not told", d.InterruptID)
				}
				delete(c.toldBelow, d.InterruptID)
			}
		}
		if ev.Type.Terminal() {
			c.terminal++
		}
	}
	for id := range c.results {
		if !c.ended[id] {
			c.fail(5, "call %s has its result and its end is not told", id)
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
	c.checkMode()
	if !slices.Equal(s.Steering, c.steering) || !slices.Equal(s.FollowUps, c.followUps) {
		c.fail(9, "queued are %v and %v", c.steering, c.followUps)
	}
	if s.Usage != c.usage {
		c.fail(1, "usage should be %+v", c.usage)
	}
	if s.Status.Ended() != (s.Phase == PhaseEnded) || s.Status.Ended() != (c.terminal == 1) || c.terminal > 1 {
		c.fail(3, "%d terminal events", c.terminal)
	}
	if model := c.open["model"] != nil; len(c.settings.Pots) > 0 && model != c.reserved {
		c.fail(20, "a model call is open: %t, and its means are held: %t", model, c.reserved)
	}
	if s.Status.Ended() {
		c.checkEnd(tr)
		return
	}
	working, asked, told := false, len(c.interrupts) > 0, 0
	for what := range c.open {
		b := c.below[strings.TrimPrefix(what, "call ")]
		working = working || !b.paused || s.stopping()
		asked = asked || b.paused
	}
	for _, b := range c.below {
		for _, id := range b.ids {
			if told++; !c.toldBelow[id] {
				c.fail(15, "interrupt %s below was not told", id)
			}
		}
	}
	if told != len(c.toldBelow) || len(s.Below()) != told {
		c.fail(15, "told are %v, open below are %v, the state has %v", c.toldBelow, c.below, s.Below())
	}
	if _, ok := c.timers[TimerRetry]; ok && s.Phase == PhaseRetry {
		working = true
	}
	if !working && !asked && s.Status != Queued {
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
	for _, id := range open {
		if until := c.timers[id]; until != c.expires[id] {
			c.fail(18, "interrupt %s expires at %d, its timer is set to %d", id, c.expires[id], until)
		}
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
