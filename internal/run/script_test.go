package run

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"agentd/event"
	"agentd/message"
)

// player runs scripts: one input a line, words separated by spaces, a text in
// double quotes.
//
//	start [prompt=ID,ID] [SETTING[=N]]…    models max_steps max_tool_calls max_failures max_run
//	                                       retry=MAX,BASE,LIMIT autonomous skip_rest all
//	                                       fail_on_tool_error sequential step_retries=N same_failures=N same_calls=N
//	                                       max_approvals=N min_tool_calls=N
//	                                       routing=STRATEGY facts=PRICE/LATENCY,…
//	                                       pot (of the run, $1) pot_asks day (of the tenant) ask_more
//	                                       expire expire_approves expire_answer=TEXT
//	reply ["text"] [ID:TOOL]… [stop=length] [unfit=WHY]     an empty ID is written as :TOOL
//	fail CLASS [after=MS] [free] ["partial text"] [ID:TOOL]…
//	reserved [max=TOKENS] [calls=N] [near]
//	exhausted LIMIT [pot=KIND] [cap=N] [used=N] [held=N] [need=N] [final]
//	allow|ask|deny|capture CALL [effect=E] [kind=K] [key=K] [sequential] [grave] ["prompt or reason"]
//	done CALL [error] [terminate] [cached] ["text"]
//	waits CALL [paused] [INTERRUPT]… [closed=INTERRUPT]   what is open below a child run
//	answer INTERRUPT DECISION [amended] [raise=N] [mode=MODE] [forbids=CALL,…] ["text"]
//	steer ID · follow ID · timer ID · full [tokens=N] [grow=N] · spent used=N · compacted [error] [nothing] [used=N] · cancel [rollback] ["reason"] · abort · crash
//	tick MS                                lets time pass; no input
type player struct {
	*checker
	now     int64
	out     strings.Builder
	effects []Effect
	writes  []Write
}

// play runs a script from a new run on, which starts at time 0.
func play(t testing.TB, script string) *player {
	t.Helper()
	p := &player{checker: newChecker(t)}
	p.run(script)
	return p
}

func (p *player) run(script string) {
	p.t.Helper()
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		p.line(line)
	}
}

// words are the arguments of a line: flags and key=value pairs by name, the
// others in order.
type words struct {
	args  []string
	named map[string]string
	text  string
	said  bool // there was a text, if only ""
}

func (p *player) parse(line string) (verb string, w words) {
	if before, after, ok := strings.Cut(line, `"`); ok {
		text, rest, ok := strings.Cut(after, `"`)
		if !ok {
			p.t.Fatalf("the text does not end: %s", line)
		}
		w.text, w.said, line = text, true, before+rest
	}
	w.named = map[string]string{}
	fields := strings.Fields(line)
	for _, f := range fields[1:] {
		if k, v, ok := strings.Cut(f, "="); ok {
			w.named[k] = v
		} else {
			w.args = append(w.args, f)
		}
	}
	return fields[0], w
}

// flag takes a bare word out of the arguments.
func (w *words) flag(name string) bool {
	for i, a := range w.args {
		if a == name {
			w.args = append(w.args[:i:i], w.args[i+1:]...)
			return true
		}
	}
	return false
}

func (p *player) number(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatalf("not a number: %q", s)
	}
	return n
}

func (p *player) line(line string) {
	p.t.Helper()
	verb, w := p.parse(line)
	p.printf("> %s\n", line)
	switch verb {
	case "tick":
		p.now += int64(p.number(w.args[0]))
		return
	case "crash":
		tr, err := p.crash(p.now, w.args...)
		p.record(tr, err)
		return
	}
	in := p.input(verb, w)
	if in == nil {
		p.t.Fatalf("unknown line: %s", line)
	}
	tr, err := p.step(in)
	p.record(tr, err)
}

func (p *player) input(verb string, w words) Input {
	at := At{p.now}
	arg := func(i int) string {
		if i < len(w.args) {
			return w.args[i]
		}
		return ""
	}
	switch verb {
	case "start":
		return p.start(at, w)
	case "reply":
		return ModelDone{At: at, Message: p.message(w), Unfit: w.named["unfit"]}
	case "fail":
		f := ModelFailed{At: at, Class: FailureClass(arg(0)), Reason: "reason_" + arg(0), Error: "it failed", RetryAfterMS: int64(p.number(w.named["after"])), Free: w.flag("free")}
		w.args = w.args[1:]
		if w.said || len(w.args) > 0 {
			f.Partial = p.message(w)
		}
		return f
	case "reserved":
		in := Reserved{At: at, MaxTokens: p.number(w.named["max"])}
		if n := w.named["calls"]; n != "" {
			calls := p.number(n)
			in.Calls = &calls
		}
		if w.flag("near") {
			in.Near = []PotUse{{Pot: "run", ID: "r1", Limit: StopMaxCost, Cap: 1e9, Used: 9e8}}
		}
		return in
	case "exhausted":
		use := PotUse{Pot: "run", ID: "r1", Limit: arg(0), Cap: 1e9, Used: int64(p.number(w.named["used"])), Held: int64(p.number(w.named["held"]))}
		if kind := w.named["pot"]; kind != "" {
			use.Pot, use.ID = kind, "2026-01-02"
		}
		if n := w.named["cap"]; n != "" {
			use.Cap = int64(p.number(n))
		}
		return Exhausted{At: at, PotUse: use, Need: int64(p.number(w.named["need"])), Final: w.flag("final")}
	case "allow", "ask", "deny", "capture":
		sequential, grave := w.flag("sequential"), w.flag("grave")
		return Verdict{At: at, CallID: arg(0), Decision: Decision(verb), Reason: w.text, Prompt: w.text,
			Effect: w.named["effect"], ToolKind: w.named["kind"], CacheKey: w.named["key"], Sequential: sequential, Grave: grave}
	case "done":
		isError, terminate := w.flag("error"), w.flag("terminate")
		r := message.ToolResult("", "", isError, message.Text(w.text))
		return ToolDone{At: at, CallID: arg(0), Message: &r, Terminate: terminate, Cancelled: w.flag("cancelled"), Cached: w.flag("cached")}
	case "waits":
		in := ChildWaits{At: at, Paused: w.flag("paused"), CallID: arg(0)}
		for _, id := range w.args[1:] {
			in.Open = append(in.Open, checkpoint(id))
		}
		if id := w.named["closed"]; id != "" {
			c := checkpoint(id)
			c.Decision = "approve"
			in.Closed = append(in.Closed, c)
		}
		return in
	case "answer":
		return Answered{At: at, Interrupt: arg(0), Decision: arg(1), Amended: w.flag("amended"), Text: w.text, Reason: w.text,
			Raise: int64(p.number(w.named["raise"])), Mode: w.named["mode"], Forbidden: forbids(w.named["forbids"], w.named["mode"])}
	case "steer":
		return Steered{at, arg(0)}
	case "follow":
		return FollowedUp{at, arg(0)}
	case "timer":
		return TimerFired{at, arg(0)}
	case "compacted":
		c := Compacted{At: at}
		if w.flag("error") {
			c.Error = "it can not be made to fit"
		}
		if w.flag("nothing") {
			c.Error, c.Nothing = "there is nothing to leave out", true
		}
		if n := w.named["used"]; n != "" {
			c.Usage = &message.Usage{Input: int64(p.number(n)), TotalTokens: int64(p.number(n))}
		}
		return c
	case "full":
		return Full{At: at, Tokens: p.number(w.named["tokens"]), Grow: p.number(w.named["grow"])}
	case "spent":
		n := int64(p.number(w.named["used"]))
		return Spent{At: at, Usage: &message.Usage{Input: n, TotalTokens: n}}
	case "cancel":
		return CancelRequested{at, w.text, w.flag("rollback")}
	case "abort":
		return Aborted{at, "profile_gone", "the profile is gone", ""}
	case "lost":
		return InDoubt{at, arg(0)}
	case "resume":
		return Resumed{At: at, Elsewhere: w.args}
	}
	return nil
}

// forbids are the calls that a mode forbids, "b,c".
func forbids(calls, mode string) map[string]string {
	if calls == "" {
		return nil
	}
	out := map[string]string{}
	for _, id := range strings.Split(calls, ",") {
		out[id] = "Not executed: mode " + mode + " forbids it."
	}
	return out
}

// checkpoint is an interrupt of a run below, by its id.
func checkpoint(id string) event.Checkpoint {
	run, _, _ := strings.Cut(id, ".i")
	return event.Checkpoint{InterruptID: id, RunID: run, Kind: "approval", Prompt: "may it?",
		ToolCall: &event.Tool{ToolCallID: "x", Name: "act"}}
}

func (p *player) start(at At, w words) Input {
	s := Settings{Models: p.number(w.named["models"]), MaxSteps: p.number(w.named["max_steps"]), MaxToolCalls: p.number(w.named["max_tool_calls"]),
		MaxFailures: p.number(w.named["max_failures"]), MaxRunMS: int64(p.number(w.named["max_run"])),
		Autonomous: w.flag("autonomous"), SkipRest: w.flag("skip_rest"), AllAtOnce: w.flag("all"),
		FailOnToolError: w.flag("fail_on_tool_error"), Sequential: w.flag("sequential"),
		Interrupts: Expiry{AfterMS: int64(p.number(w.named["expire"])), Approve: w.flag("expire_approves"), Answer: w.named["expire_answer"]}}
	if r := w.named["retry"]; r != "" {
		parts := strings.Split(r, ",")
		s.Retry = Retry{Max: p.number(parts[0]), BaseMS: int64(p.number(parts[1])), LimitMS: int64(p.number(parts[2]))}
	}
	s.StepRetries = p.number(w.named["step_retries"])
	s.MaxSameFailures, s.MaxSameCalls = p.number(w.named["same_failures"]), p.number(w.named["same_calls"])
	s.MaxApprovals, s.MinToolCalls = p.number(w.named["max_approvals"]), p.number(w.named["min_tool_calls"])
	s.AskMore, s.CompactWait = w.flag("ask_more"), p.number(w.named["compact_wait"])
	if asks := w.flag("pot_asks"); w.flag("pot") || asks {
		s.Pots = append(s.Pots, Pot{Kind: "run", ID: "r1", MaxCost: 1e9, MaxTokens: 1000, MaxToolCalls: 5, MaxFailures: 3, Ask: asks})
	}
	if w.flag("day") {
		s.Pots = append(s.Pots, Pot{Kind: "tenant_day", MaxCost: 1e9})
	}
	compact := w.flag("compact")
	if len(w.args) > 0 {
		p.t.Fatalf("unknown settings %v", w.args)
	}
	in := Started{At: at, Settings: s, EntryBase: "e", Routing: w.named["routing"], Compact: compact, Mode: w.named["mode"]}
	if set := w.named["set"]; set != "" {
		name, value, _ := strings.Cut(set, ":")
		in.Set = []Setting{{name, value}}
	}
	if at := w.named["stood"]; at != "" {
		in.Stood = &at
	}
	if facts := w.named["facts"]; facts != "" {
		for f := range strings.SplitSeq(facts, ",") {
			price, latency, _ := strings.Cut(f, "/")
			in.Facts = append(in.Facts, ModelFacts{Price: int64(p.number(price)), LatencyMS: int64(p.number(latency))})
		}
	}
	if prompt := w.named["prompt"]; prompt != "" {
		in.Prompt = strings.Split(prompt, ",")
	}
	return in
}

func (p *player) message(w words) *message.Message {
	m := &message.Message{Role: message.RoleAssistant, StopReason: message.StopEnd}
	if w.text != "" {
		m.Content = append(m.Content, message.Text(w.text))
	}
	for _, a := range w.args {
		id, name, ok := strings.Cut(a, ":")
		if !ok {
			p.t.Fatalf("not a call: %q", a)
		}
		m.Content = append(m.Content, message.Call(id, name, nil))
		m.StopReason = message.StopToolUse
	}
	if stop := w.named["stop"]; stop != "" {
		m.StopReason = message.StopReason(stop)
	}
	return m
}

func (p *player) printf(format string, args ...any) { fmt.Fprintf(&p.out, format, args...) }

// record prints a transition: writes, effects, events, and the state after it.
func (p *player) record(tr Transition, err error) {
	if err != nil {
		illegal := err.(*IllegalError)
		p.printf("  illegal: %s\n\n", illegal.Reason)
		return
	}
	p.effects = append(p.effects, tr.Effects...)
	p.writes = append(p.writes, tr.Writes...)
	for _, w := range tr.Writes {
		p.printf("  write  %s\n", showWrite(w))
	}
	for _, e := range tr.Effects {
		p.printf("  do     %s\n", showEffect(e))
	}
	for _, e := range tr.Events {
		p.printf("  tell   %s\n", showEvent(e))
	}
	p.printf("  state  %s\n\n", showState(&tr.State))
}

// resultOf is the text of a call's result, or "".
func (p *player) resultOf(call string) string {
	for _, w := range p.writes {
		if w, ok := w.(AppendMessage); ok && w.Message.ToolCallID == call {
			return w.Message.Text()
		}
	}
	return ""
}

// line builds "name key=value…", leaving out empty values.
type show struct{ b strings.Builder }

func (s *show) add(key string, value any) *show {
	v := fmt.Sprint(value)
	if v == "" || v == "0" || v == "false" || v == "[]" {
		return s
	}
	if strings.Contains(v, " ") {
		v = strconv.Quote(v)
	}
	fmt.Fprintf(&s.b, " %s=%s", key, v)
	return s
}

func showWrite(w Write) string {
	switch w := w.(type) {
	case AppendQueued:
		return fmt.Sprintf("entry %s after %q: input %s", w.Entry, w.Parent, w.Input)
	case AppendMessage:
		m := w.Message
		s := fmt.Sprintf("entry %s after %q: ", w.Entry, w.Parent)
		if m.Role == message.RoleToolResult {
			s += "result of " + m.ToolCallID
			if m.IsError {
				s += ", error"
			}
			return s + fmt.Sprintf(" %q", m.Text())
		}
		s += fmt.Sprintf("%s (%s) %q", m.Role, m.StopReason, m.Text())
		for _, b := range m.ToolCalls() {
			s += " " + b.ID + ":" + b.Name
		}
		return s
	case AppendCompaction:
		return fmt.Sprintf("entry %s after %q: compaction", w.Entry, w.Parent)
	case AppendSetting:
		return fmt.Sprintf("entry %s after %q: %s %s", w.Entry, w.Parent, w.Name, w.Value)
	case RollBack:
		return fmt.Sprintf("entry %s after %q: roll back", w.Entry, w.Parent)
	case ReturnQueued:
		return fmt.Sprintf("hand back %v", w.Inputs)
	case OpenInterrupt:
		s := fmt.Sprintf("open %s, %s of %s %q", w.ID, w.Kind, w.CallID, w.Prompt)
		if w.CallID == "" {
			s = fmt.Sprintf("open %s, %s of %s %s %q", w.ID, w.Kind, w.Name, w.Args, w.Prompt)
		}
		if w.Expires != 0 {
			s += fmt.Sprintf(" until %d", w.Expires)
		}
		return s
	case Settle:
		s := strings.TrimSpace("settle " + w.How)
		if w.Last {
			s += ", the last"
		}
		return s
	case RaisePot:
		return fmt.Sprintf("raise %s of %s %s by %d", w.Limit, w.Pot, w.ID, w.By)
	case RecordProposal:
		return fmt.Sprintf("propose %s, %s of %s, temporary id %s", w.ID, w.Name, w.CallID, w.Temp)
	case CloseInterrupt:
		if w.Expired {
			return fmt.Sprintf("close %s, expired: %s %q", w.ID, w.Decision, w.Answer)
		}
		return fmt.Sprintf("close %s %q", w.ID, w.Reason)
	}
	return fmt.Sprintf("%T", w)
}

func showEffect(e Effect) string {
	var s show
	switch e := e.(type) {
	case CallModel:
		s.add("step", e.Step).add("attempt", e.Attempt).add("model", e.Index).add("entry", e.Entry).add("closing", e.Closing)
	case Reserve:
		s.add("step", e.Step).add("key", e.Key).add("model", e.Index).add("closing", e.Closing)
	case Judge:
		s.add("call", e.CallID)
	case CallTool:
		s.add("call", e.CallID).add("effect", e.Effect).add("key", e.Key).add("amended", e.Interrupt).add("cached", e.Cached)
	case SpawnChild:
		s.add("call", e.CallID).add("child", e.Child).add("amended", e.Interrupt)
		if e.Stop {
			s.add("stop", true)
		}
	case Sleep:
		return fmt.Sprintf("Sleep %s until %d", e.ID, e.Until)
	case Compact:
		s.add("entry", e.Entry).add("reason", e.Reason)
	case StopEffects:
		s.add("reason", e.Reason)
	}
	return e.EffectKind() + s.b.String()
}

func showEvent(e event.Event) string {
	var s show
	switch d := e.Data.(type) {
	case *event.Tool:
		s.add("call", d.ToolCallID).add("decision", d.Decision)
	case *event.Checkpoint:
		s.add("run", d.RunID).add("interrupt", d.InterruptID).add("kind", d.Kind).add("decision", d.Decision).add("mode", d.SessionMode)
	case *event.Step:
		s.add("calls", d.ToolCalls)
	case *event.Text:
		s.add("text", d.Text)
	case *event.Budget:
		s.add("limit", d.Limit).add("used", d.Used).add("of", d.Cap)
	case *event.Retry:
		s.add("attempt", d.Attempt).add("delay", d.DelayMS)
	case *event.Subagent:
		s.add("run", d.RunID).add("status", d.Status)
	case *event.Resumed:
		s.add("uncertain", d.Uncertain)
	case *event.Ended:
		s.add("reason", d.StopReason)
		if d.Error != nil {
			s.add("error", d.Error.Kind)
		}
	}
	return string(e.Type) + s.b.String()
}

func showState(st *State) string {
	var s show
	s.add("step", st.Step).add("leaf", st.Leaf).add("mode", st.Mode)
	for i := range st.Calls {
		s.add(st.Calls[i].ID, st.Calls[i].Phase)
	}
	s.add("steering", strings.Join(st.Steering, ",")).add("follow_ups", strings.Join(st.FollowUps, ","))
	s.add("cancel", st.Cancel).add("deadline", st.Deadline).add("remaining", st.Remaining)
	s.add("stop", st.StopReason).add("output", st.Output)
	if c := st.CompactWait; c != nil {
		s.add("compact_wait", fmt.Sprintf("%d/%d", c.Step, c.Tokens))
	}
	phase := string(st.Status)
	if !st.Status.Ended() && st.Status != Queued {
		phase += "/" + string(st.Phase)
	}
	return phase + s.b.String()
}
