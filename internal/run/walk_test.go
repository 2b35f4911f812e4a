package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentd/event"
	"agentd/message"
)

// source makes the choices of a walk. Zero is always the dullest one, so that
// a short fuzz input means a plain run.
type source interface{ intn(n int) int }

type randSource struct{ *rand.Rand }

func (r randSource) intn(n int) int { return r.IntN(n) }

// byteSource reads choices from fuzz data and ends with it.
type byteSource struct{ data []byte }

func (b *byteSource) intn(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	v := int(b.data[0]) % n
	b.data = b.data[1:]
	return v
}

// walk drives a machine as the engine would, and as it never should.
type walk struct {
	*checker
	src source
	now int64
	n   int // for ids
	// illegal counts the inputs that were refused, cachedCalls the calls that got an
	// earlier result.
	illegal, cachedCalls int
	// reads: most calls of this walk are equal reads.
	reads bool
}

func newWalk(t testing.TB, src source) *walk {
	return &walk{checker: newChecker(t), src: src, now: 1000}
}

func (w *walk) at() At { return At{w.now} }

func (w *walk) flag() bool { return w.src.intn(3) == 2 }

func (w *walk) id(prefix string) string {
	w.n++
	return fmt.Sprint(prefix, w.n)
}

func (w *walk) randomSettings() Settings {
	pick := func(limits ...int) int { return limits[w.src.intn(len(limits))] }
	return Settings{
		Autonomous: w.flag(), Models: pick(1, 2, 3), MaxSteps: pick(0, 0, 0, 1, 2, 5), MaxToolCalls: pick(0, 0, 0, 1, 3, 8),
		MaxFailures: pick(0, 0, 0, 1, 4), MaxRunMS: int64(pick(0, 0, 0, 500, 5000)), SkipRest: w.flag(), AllAtOnce: w.flag(),
		FailOnToolError: w.src.intn(5) == 4, Sequential: w.flag(), StepRetries: pick(0, 0, 1),
		MaxSameFailures: pick(0, 1, 2), MaxSameCalls: pick(0, 0, 2, 1),
		Retry:        Retry{Max: pick(0, 1, 3), BaseMS: int64(pick(0, 100, 2000)), LimitMS: int64(pick(0, 300, 8000))},
		Interrupts:   Expiry{AfterMS: int64(pick(0, 0, 300, 3000)), Approve: w.flag(), Answer: []string{"", "yes"}[w.src.intn(2)]},
		MaxApprovals: pick(0, 0, 1, 2), MinToolCalls: pick(0, 0, 1, 3),
		AskMore: w.flag(), Pots: [][]Pot{nil, nil, {{Kind: "run", ID: "r1", MaxCost: 100, MaxToolCalls: 5, Ask: w.flag()}}, {{Kind: "tenant_day", MaxCost: 9}}}[w.src.intn(4)],
		CompactWait: pick(0, 1, 4),
	}
}

func (w *walk) start() {
	w.reads = w.flag()
	var prompt []string
	for range w.src.intn(3) {
		prompt = append(prompt, w.id("p"))
	}
	leaf := ""
	if w.flag() {
		leaf = "a9"
	}
	in := Started{At: w.at(), Settings: w.randomSettings(), EntryBase: "b", Leaf: leaf, Prompt: prompt,
		Routing: []string{"", "single", "fallback", "cost_aware", "latency_aware"}[w.src.intn(5)], Compact: w.src.intn(12) == 11, Mode: []string{"", "plan"}[w.src.intn(2)]}
	if w.src.intn(3) == 2 {
		in.Set = []Setting{{SettingMode, "plan"}, {"model", "x/y"}}
	}
	for range in.Settings.Models {
		in.Facts = append(in.Facts, ModelFacts{Price: int64(w.src.intn(3)), LatencyMS: int64(w.src.intn(3))})
	}
	w.try(in)
}

func (w *walk) try(in Input) bool {
	_, err := w.step(in)
	if err != nil {
		w.illegal++
	}
	return err == nil
}

// modelDone is a reply, which may have another form than the one that was asked for.
func (w *walk) modelDone() ModelDone {
	return ModelDone{At: w.at(), Message: w.reply(), Unfit: []string{"", "", "it is no JSON"}[w.src.intn(3)]}
}

// reply makes a reply with up to four calls, some with ids that a careless
// provider would give.
func (w *walk) reply() *message.Message {
	m := &message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd,
		Usage: &message.Usage{Input: 10, Output: 3, TotalTokens: 13}}
	if w.src.intn(3) != 1 {
		m.Content = append(m.Content, message.Text("text"))
	}
	for i := range w.src.intn(5) {
		id := []string{fmt.Sprint("c", i), "c0", "", "c0_1"}[max(0, w.src.intn(8)-4)]
		m.Content = append(m.Content, message.Call(id, fmt.Sprint("tool", i), nil))
		m.StopReason = message.StopToolUse
	}
	if w.src.intn(8) == 7 {
		m.StopReason = message.StopLength
	}
	if w.src.intn(8) == 7 {
		m.Usage = nil
	}
	return m
}

func (w *walk) failure() Input {
	f := ModelFailed{At: w.at(), Class: []FailureClass{FailRetryable, FailUnavailable, FailRetryable, FailOverflow, FailOverflow, FailFatal, FailCancelled}[w.src.intn(7)],
		Reason: "overloaded", Error: "the provider is busy", Free: w.flag()}
	if w.flag() {
		f.RetryAfterMS = int64(w.src.intn(3)) * 1000
	}
	if w.flag() {
		f.Partial = w.reply()
	}
	return f
}

func (w *walk) verdict(id string) Input {
	v := Verdict{At: w.at(), CallID: id, Decision: []Decision{Allow, Allow, Ask, Deny, Capture}[w.src.intn(5)], Reason: "no", Prompt: "may it?",
		Effect:   []string{"read", "idempotent", "once", "", "unheard of"}[w.src.intn(5)],
		ToolKind: []string{"", "", "", "ask", "spawn", "client", "plan"}[w.src.intn(7)], Grave: w.flag()}
	v.Sequential = w.src.intn(5) == 4
	v.CacheKey = []string{"", "", "k1", "k2"}[w.src.intn(4)]
	if w.reads && w.src.intn(8) > 0 {
		v.Decision, v.Effect, v.ToolKind, v.CacheKey = Allow, []string{"read", "idempotent"}[w.src.intn(5)/4], "", "k1"
	}
	return v
}

func (w *walk) toolDone(id string) Input {
	r := message.ToolResult(id, "any", w.src.intn(4) == 3, message.Text("result"))
	cached := false
	if e, ok := w.open["call "+id].(CallTool); ok && e.Cached != "" {
		w.cachedCalls++
		cached = w.src.intn(4) < 3 // else it could not be read, and the call was made
	}
	return ToolDone{At: w.at(), CallID: id, Message: &r, Terminate: w.src.intn(4) == 3, DurationMS: 5, Cached: cached}
}

func (w *walk) answer(id string) Input {
	in := Answered{At: w.at(), Interrupt: id, Decision: []string{"approve", "reject", "answer", "retry", "skip", "done"}[w.src.intn(6)],
		Amended: w.flag(), Text: "because", Mode: []string{"", "edit", "plan"}[w.src.intn(3)], Raise: int64(max(0, w.src.intn(8)-6) * 50)}
	if in.Mode != "" {
		in.Forbidden = map[string]string{}
		for _, c := range w.s.Calls {
			if w.flag() {
				in.Forbidden[c.ID] = "the mode forbids it"
			}
		}
	}
	return in
}

// budget answers a reservation.
func (w *walk) budget() Input {
	if w.src.intn(4) < 3 {
		in := Reserved{At: w.at()}
		if w.flag() {
			calls := w.src.intn(3)
			in.Calls = &calls
		}
		if w.flag() {
			in.Near = []PotUse{{Pot: "run", ID: "r1", Limit: StopMaxCost, Cap: 100, Used: 90}}
		}
		return in
	}
	in := Exhausted{At: w.at(), PotUse: PotUse{Pot: "run", ID: "r1", Cap: 100, Used: int64(w.src.intn(200))}, Need: int64(w.src.intn(100)), Final: w.src.intn(8) == 7}
	in.Limit = []string{StopMaxCost, StopMaxTokens, StopMaxToolCalls, StopMaxFailures}[w.src.intn(4)]
	if len(w.settings.Pots) > 0 && w.settings.Pots[0].ID == "" {
		in.Pot, in.ID = "tenant_day", "2026-01-02"
	}
	return in
}

// openEffects are the effects that can be answered, in a fixed order.
func (w *walk) openEffects() []string {
	var ids []string
	for id := range w.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// settleOne answers an open effect.
func (w *walk) settleOne(what string) {
	_, id, _ := strings.Cut(what, " ")
	switch {
	case (what == "model" || what == "budget") && w.s.MayCompact() && w.src.intn(6) == 5:
		w.try(Full{At: w.at(), Tokens: w.src.intn(1000), Grow: w.src.intn(200)})
	case what == "model" && w.src.intn(4) == 3:
		w.try(w.failure())
	case what == "model":
		w.try(w.modelDone())
	case what == "budget":
		w.try(w.budget())
	case what == "compact" && w.src.intn(8) == 7:
		w.try(Spent{At: w.at(), Usage: &message.Usage{Input: int64(w.src.intn(50))}})
	case what == "compact":
		c := Compacted{At: w.at()}
		if w.flag() {
			c.Error, c.Nothing = "nothing to leave out", w.flag()
		}
		w.try(c)
	case strings.HasPrefix(what, "judge"):
		w.try(w.verdict(id))
	default:
		if _, child := w.open[what].(SpawnChild); child && w.src.intn(3) == 2 {
			w.try(w.childWaits(id))
			return
		}
		if e, call := w.open[what].(CallTool); call && e.Effect == "once" && w.src.intn(5) == 4 {
			w.try(InDoubt{w.at(), id})
			return
		}
		w.try(w.toolDone(id))
	}
}

// elsewhere are some of the calls under way.
func (w *walk) elsewhere() (ids []string) {
	for _, what := range w.openEffects() {
		if _, id, call := strings.Cut(what, "call "); call && w.src.intn(3) == 2 {
			ids = append(ids, id)
		}
	}
	return ids
}

// childWaits is news of a child: some of what was open is closed, some is new.
func (w *walk) childWaits(id string) Input {
	in := ChildWaits{At: w.at(), CallID: id, Paused: w.src.intn(3) > 0}
	for _, old := range w.below[id].ids {
		if c := checkpoint(old); w.flag() {
			c.Decision = "approve"
			in.Closed = append(in.Closed, c)
		} else if w.src.intn(6) < 5 { // one that is in neither was lost
			in.Open = append(in.Open, c)
		}
	}
	for range w.src.intn(3) {
		in.Open = append(in.Open, checkpoint(w.id("r1.c1.i")))
	}
	if len(in.Open) > 0 && w.src.intn(8) == 7 {
		in.Open = append(in.Open, in.Open[0])
	}
	return in
}

// fire ends a timer; now and then too early, as a clock that is set back would.
func (w *walk) fire() {
	ids := append([]string{TimerRetry, TimerDeadline}, w.s.Interrupts()...)
	id := ids[w.src.intn(len(ids))]
	if until, ok := w.timers[id]; ok && w.src.intn(4) != 3 {
		w.now = max(w.now, until)
	}
	w.try(TimerFired{w.at(), id})
}

// late is the answer to something that may no longer be open.
func (w *walk) late() Input {
	if w.flag() {
		return w.failure()
	}
	return w.modelDone()
}

// anything is an input that may be illegal.
func (w *walk) anything() {
	call := "c0"
	if n := len(w.batch); n > 0 {
		call = w.batch[w.src.intn(n)]
	}
	inputs := []func() Input{
		func() Input { return nil },
		func() Input { return Started{At: w.at()} },
		func() Input { return ModelDone{At: w.at()} },
		func() Input { return ModelDone{At: w.at(), Message: &message.Message{Role: message.RoleUser}} },
		func() Input { return w.verdict(call) },
		func() Input { return Verdict{At: w.at(), CallID: call, Decision: "perhaps"} },
		func() Input { return w.toolDone(call) },
		func() Input { return ToolDone{At: w.at(), CallID: call} },
		func() Input { return w.childWaits(call) },
		func() Input {
			return ChildWaits{At: w.at(), CallID: call, Open: []event.Checkpoint{{InterruptID: "x"}}}
		},
		func() Input { return w.answer(fmt.Sprintf("r1.i%d", 1+w.src.intn(4))) },
		func() Input { return w.answer("") },
		func() Input { return Steered{At: w.at()} },
		func() Input { return FollowedUp{w.at(), fmt.Sprint("q", w.n)} },
		func() Input { return TimerFired{w.at(), "tea"} },
		func() Input { return w.late() },
		func() Input { return w.budget() },
		func() Input { return Exhausted{At: w.at(), PotUse: PotUse{Limit: "patience"}} },
		func() Input { return InDoubt{w.at(), call} },
		func() Input {
			if w.open["compact"] != nil {
				return ModelDone{At: w.at(), Message: w.reply()}
			}
			return Compacted{At: w.at()}
		},
		func() Input {
			if w.s.MayCompact() {
				return TimerFired{w.at(), "tea"}
			}
			return Full{At: w.at()}
		},
		func() Input {
			if w.open["compact"] != nil {
				return TimerFired{w.at(), "tea"}
			}
			return Spent{At: w.at()}
		},
	}
	w.try(inputs[w.src.intn(len(inputs))]())
}

// move makes one step of the walk. Mostly it answers what is open.
func (w *walk) move() {
	w.now += int64(w.src.intn(50))
	open, ids := w.openEffects(), w.s.Interrupts()
	if w.s.Status == Queued && w.src.intn(4) < 3 {
		w.start()
		return
	}
	switch choice := w.src.intn(32); {
	case choice < 18 && len(open) > 0:
		w.settleOne(open[w.src.intn(len(open))])
	case choice < 21 && len(ids) > 0:
		w.try(w.answer(ids[w.src.intn(len(ids))]))
	case choice < 23:
		w.fire()
	case choice < 25:
		w.try(Steered{w.at(), w.id("q")})
	case choice < 26:
		w.try(FollowedUp{w.at(), w.id("q")})
	case choice < 28:
		if w.s.Status.Ended() || w.s.Status == Queued {
			w.try(Resumed{At: w.at()})
		} else {
			w.crash(w.now, w.elsewhere()...)
		}
	case choice == 28 && w.src.intn(3) == 0:
		w.try(CancelRequested{At: w.at(), Reason: "enough", Rollback: w.src.intn(2) == 1})
	case choice == 29 && w.src.intn(8) == 7:
		w.try(Aborted{w.at(), "profile_gone", "the profile is gone", "put it back"})
	default:
		w.anything()
	}
}

// finish ends the run from wherever it is, one way or the other, and shows that
// it does end.
func (w *walk) finish() {
	w.t.Helper()
	w.src = &byteSource{} // dull answers only
	cancelled := false
	for range 400 {
		if w.s.Status.Ended() {
			return
		}
		open := w.openEffects()
		switch {
		case w.s.Status == Queued:
			w.start()
		case len(open) > 0:
			w.settleOne(open[0])
		case w.s.Phase == PhaseRetry:
			w.now = max(w.now, w.s.Model.RetryAt)
			w.try(TimerFired{w.at(), TimerRetry})
		case !cancelled:
			cancelled = w.try(CancelRequested{At: w.at(), Reason: "enough", Rollback: w.src.intn(2) == 1})
		default:
			w.fail(4, "nothing is left to do and the run has not ended")
		}
	}
	w.fail(4, "the run does not end")
}

// TestRandomWalk holds many thousands of steps, with all settings, to the
// invariants. It also counts what the walks met: a walk that never gets
// anywhere would prove nothing.
func TestRandomWalk(t *testing.T) {
	const walks = 2000
	steps, illegal, met := 0, 0, map[string]int{}
	for seed := range walks {
		w := newWalk(t, randSource{rand.New(rand.NewPCG(uint64(seed), 1))})
		for range 60 {
			before := w.s.Status
			w.move()
			met["phase "+string(w.s.Phase)]++
			if w.s.Reformed {
				met["asked for another form"]++
			}
			if w.s.Held != "" {
				met["nudged in "+string(w.s.Phase)]++
			}
			if w.s.Status == Paused {
				met["paused"]++
				if slices.ContainsFunc(w.s.Calls, func(c Call) bool { return c.Phase == CallAsked && c.Expires != 0 }) {
					met["expiring"]++
				}
				if w.s.TurnAsked > 0 && w.s.TurnAsked == w.settings.MaxApprovals {
					met["all approvals of a turn"]++
				}
				if w.s.Asks != nil {
					met["asked for more of "+w.s.Asks.Limit]++
				}
				if w.s.AwaitsChild() {
					met["paused on a child"]++
				}
			}
			if before.Ended() && w.src.intn(2) == 0 {
				break
			}
		}
		w.finish()
		met["end "+w.s.StopReason]++
		met["expired"] += w.expired
		met["cached"] += w.cachedCalls
		steps, illegal = steps+len(w.log), illegal+w.illegal
	}
	for _, want := range []string{"phase queued", "phase model", "phase retry", "phase compact", "phase tools", "phase ended", "paused", "paused on a child", "phase budget", "cached", "all approvals of a turn", "asked for another form",
		"nudged in model", "nudged in budget", "nudged in retry", "nudged in compact", "end max_cost", "end max_tokens", "asked for more of max_steps", "asked for more of max_tool_calls",
		"asked for more of max_failures_per_run", "asked for more of max_cost", "expiring", "expired",
		"end stop", "end length", "end cancelled", "end max_steps", "end max_tool_calls", "end max_failures_per_run", "end max_run_time",
		"end tool_failed", "end profile_gone", "end model_error", "end context_overflow", "end terminated_by_tool", "end " + StopRepeatedFailures, "end " + StopRepeatedCalls, "end " + StopClientTools} {
		if met[want] < 3 {
			t.Errorf("%d walks met %q", met[want], want)
		}
	}
	if steps < walks*12 || illegal < steps/50 || illegal > steps/2 {
		t.Errorf("%d steps, %d of them illegal", steps, illegal)
	}
	t.Logf("%d steps, %d illegal, %v", steps, illegal, met)
}

// FuzzStep lets the fuzzer choose.
func FuzzStep(f *testing.F) {
	for seed := range 20 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		data := make([]byte, 50+20*seed)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &byteSource{data}
		w := newWalk(t, src)
		for len(src.data) > 0 && len(w.log) < 400 {
			w.move()
		}
		w.finish()
	})
}
