package run

import (
	"fmt"
	"strings"
	"testing"
)

// TestRaces plays both orders of every race. Two things that happen at the same
// time have exactly two histories, and both are right.
func TestRaces(t *testing.T) {
	for _, race := range []struct {
		name, setup, a, b string
		// The outcome of each order: what was refused, the state after it, and
		// what the session and the sender of queued input got.
		ab, ba string
	}{
		{"steer × finish", "start prompt=u1", "steer s1", `reply "bye"`,
			`running/model; bye, input s1`,
			`refused "the run has ended"; completed stop; bye`},
		{"follow_up × finish", "start prompt=u1", "follow f1", `reply "bye"`,
			`running/model; bye, input f1`,
			`refused "the run has ended"; completed stop; bye`},
		{"steer × follow_up, then finish", "start prompt=u1", "steer s1", "follow f1\n" + `reply "bye"`,
			`running/model; bye, input s1`,
			`running/model; bye, input f1`},
		{"cancel × ModelDone", "start prompt=u1", "cancel", `reply "bye"`,
			`cancelled cancelled; bye`,
			`refused "the run has ended"; completed stop; bye`},
		{"rollback × ModelDone", "start prompt=u1", "cancel rollback", `reply "bye"`,
			`cancelled rolled_back; bye, rolled back`,
			`refused "the run has ended"; completed stop; bye`},
		{"rollback × ToolDone", "start prompt=u1\nreply a:read\nallow a", "cancel rollback", `done a "file"`,
			`cancelled rolled_back; calls, a: file, rolled back`,
			`running/model; calls, a: file`},
		{"rollback × Answered", "start prompt=u1\nreply a:pay\nask a", "cancel rollback", "answer r1.i1 approve",
			`refused "interrupt \"r1.i1\" is not open"; cancelled rolled_back; calls, a: Not executed: cancelled, rolled back`,
			`running/tools; calls`},
		{"rollback × steer", "start prompt=u1 retry=1,100,0\nfail retryable", "cancel rollback", "steer s1",
			`refused "the run has ended"; cancelled rolled_back; rolled back`,
			`cancelled rolled_back; rolled back`},
		{"rollback × Started", "", "cancel rollback", "start prompt=u1",
			`refused "the run has started"; cancelled rolled_back; `,
			`running/model; `},
		{"rollback × crash", "start prompt=u1\nreply a:pay\nallow a", "cancel rollback", "crash",
			`cancelled rolled_back; calls, a: Cancelled: agentd was restarted while this call ran; it may have happened., rolled back`,
			`cancelled rolled_back; calls, a: agentd was restarted while this call ran; it may have happened., rolled back`},
		{"cancel × ModelDone with calls", "start prompt=u1", "cancel", "reply a:read",
			`cancelled cancelled; calls`,
			`running/tools; calls`},
		{"cancel × ModelFailed", "start prompt=u1 retry=3,100,0", "cancel", "fail retryable",
			`cancelled cancelled; `,
			`cancelled cancelled; `},
		{"cancel × overflow", "start prompt=u1", "cancel", "fail overflow",
			`cancelled cancelled; `,
			`running/compact; `},
		{"cancel × Compacted", "start prompt=u1\nfail overflow", "cancel", "compacted",
			`cancelled cancelled; `,
			`running/model; `},
		{"cancel × Verdict", "start prompt=u1\nreply a:read", "cancel", "allow a",
			`cancelled cancelled; calls, a: Not executed: the run is ending.`,
			`running/tools; calls`},
		{"cancel × ToolDone", "start prompt=u1\nreply a:read\nallow a", "cancel", `done a "file"`,
			`cancelled cancelled; calls, a: file`,
			`running/model; calls, a: file`},
		{"cancel × last ToolDone that terminates", "start prompt=u1\nreply a:read\nallow a", "cancel", `done a terminate "file"`,
			`cancelled cancelled; calls, a: file`,
			`refused "the run has ended"; completed terminated_by_tool; calls, a: file`},
		{"cancel × Answered", "start prompt=u1\nreply a:pay\nask a", "cancel", "answer r1.i1 approve",
			`refused "interrupt \"r1.i1\" is not open"; cancelled cancelled; calls, a: Not executed: cancelled`,
			`running/tools; calls`},
		{"cancel × steer", "start prompt=u1", "cancel", "steer s1",
			`refused "the run is ending"; running/model; `,
			`running/model; `},
		{"cancel × Started", "", "cancel", "start prompt=u1",
			`refused "the run has started"; cancelled cancelled; `,
			`running/model; `},
		{"lost × ToolDone", "start prompt=u1\nreply a:pay\nallow a", "lost a", `done a "paid"`,
			`refused "call \"a\" is not running"; paused_checkpoint/tools; calls`,
			`refused "there is no call \"a\""; running/model; calls, a: paid`},
		{"lost × cancel", "start prompt=u1\nreply a:pay\nallow a", "lost a", "cancel",
			`cancelled cancelled; calls, a: agentd was restarted while this call ran; it may have happened.`,
			`cancelled cancelled; calls, a: Cancelled: agentd was restarted while this call ran; it may have happened.`},
		{"lost × crash of the home, which had asked", "start prompt=u1\nreply a:pay\nallow a", "lost a", "crash a",
			`paused_checkpoint/tools; calls`,
			`paused_checkpoint/tools; calls`},
		{"lost × ToolDone of a sibling", "start prompt=u1\nreply a:pay b:read\nallow a\nallow b effect=read", "lost a", `done b "file"`,
			`paused_checkpoint/tools; calls, b: file`,
			`paused_checkpoint/tools; calls, b: file`},
		{"answer × ToolDone of a sibling", "start prompt=u1\nreply a:pay b:read\nask a\nallow b", "answer r1.i1 reject", `done b "file"`,
			`running/model; calls, a: A person rejected this call: no reason given, b: file`,
			`running/model; calls, b: file, a: A person rejected this call: no reason given`},
		{"approve × ToolDone of a sibling", "start prompt=u1\nreply a:pay b:read\nask a\nallow b", "answer r1.i1 approve", `done b "file"`,
			`running/tools; calls, b: file`,
			`running/tools; calls, b: file`},
		{"answer × answer", "start prompt=u1\nreply a:pay\nask a", "answer r1.i1 approve", "answer r1.i1 reject",
			`refused "interrupt \"r1.i1\" is not open"; running/tools; calls`,
			`refused "interrupt \"r1.i1\" is not open"; running/model; calls, a: A person rejected this call: no reason given`},
		{"answer × expiry", "start prompt=u1 expire=100\nreply a:pay\nask a\ntick 99", "answer r1.i1 approve", "tick 1\ntimer r1.i1",
			`running/tools; calls`,
			`refused "interrupt \"r1.i1\" is not open"; running/model; calls, a: Not executed: it needs a person's approval, and nobody answered in time.`},
		{"late answer × expiry", "start prompt=u1 expire=100\nreply a:pay\nask a\ntick 100", "answer r1.i1 approve", "timer r1.i1",
			`refused "interrupt \"r1.i1\" has expired"; running/model; calls, a: Not executed: it needs a person's approval, and nobody answered in time.`,
			`refused "interrupt \"r1.i1\" is not open"; running/model; calls, a: Not executed: it needs a person's approval, and nobody answered in time.`},
		{"rejection × expiry that approves", "start prompt=u1 expire=100 expire_approves\nreply a:pay\nask a\ntick 99", "answer r1.i1 reject", "tick 1\ntimer r1.i1",
			`running/model; calls, a: A person rejected this call: no reason given`,
			`refused "interrupt \"r1.i1\" is not open"; running/tools; calls`},
		{"cancel × expiry", "start prompt=u1 expire=100 expire_approves\nreply a:pay\nask a\ntick 100", "cancel", "timer r1.i1",
			`cancelled cancelled; calls, a: Not executed: cancelled`,
			`running/tools; calls`},
		{"crash × expiry", "start prompt=u1 expire=100\nreply a:pay\nask a\ntick 100", "crash", "timer r1.i1",
			`running/model; calls, a: Not executed: it needs a person's approval, and nobody answered in time.`,
			`running/model; calls, a: Not executed: it needs a person's approval, and nobody answered in time.`},
		{"answer × steer with skip_rest", "start prompt=u1 skip_rest\nreply a:pay\nask a", "answer r1.i1 approve", "steer s1",
			`running/tools; calls`,
			`refused "interrupt \"r1.i1\" is not open"; running/model; calls, a: Skipped because of a new message., input s1`},
		{"steer × ToolDone", "start prompt=u1\nreply a:read\nallow a", "steer s1", `done a "file"`,
			`running/model; calls, a: file, input s1`,
			`running/model; calls, a: file`},
		{"steer × ToolDone with skip_rest", "start prompt=u1 skip_rest sequential\nreply a:read b:read\nallow a\nallow b", "steer s1", `done a "file"`,
			`running/model; calls, b: Skipped because of a new message., a: file, input s1`,
			`running/tools; calls, a: file`},
		{"steer × Verdict with skip_rest", "start prompt=u1 skip_rest\nreply a:read", "steer s1", "allow a",
			`running/model; calls, a: Skipped because of a new message., input s1`,
			`running/tools; calls`},
		{"deadline × ModelDone", "start prompt=u1 max_run=100\ntick 100", "timer deadline", `reply "bye"`,
			`failed max_run_time; bye`,
			`completed stop; bye`},
		{"deadline × ToolDone", "start prompt=u1 max_run=100\nreply a:read\nallow a\ntick 100", "timer deadline", `done a "file"`,
			`failed max_run_time; calls, a: file`,
			`running/model; calls, a: file`},
		{"deadline × ask", "start prompt=u1 max_run=100\nreply a:pay\ntick 100", "timer deadline", "ask a",
			`failed max_run_time; calls, a: Not executed: the run is ending.`,
			`paused_checkpoint/tools; calls`},
		{"deadline × cancel", "start prompt=u1 max_run=100\ntick 100", "timer deadline", "cancel\nfail cancelled",
			`failed max_run_time; `,
			`cancelled cancelled; `},
		{"timer × cancel", "start prompt=u1 retry=3,100,0\nfail retryable\ntick 100", "timer retry", "cancel",
			`running/model; `,
			`cancelled cancelled; `},
		{"deadline × retry timer", "start prompt=u1 retry=3,100,0 max_run=100\nfail retryable\ntick 100", "timer deadline", "timer retry",
			`failed max_run_time; `,
			`running/model; `},
		{"ToolDone × ToolDone with fail_on_tool_error", "start prompt=u1 fail_on_tool_error\nreply a:read b:read\nallow a\nallow b", `done a error "no"`, `done b "file"`,
			`failed tool_failed; calls, a: no, b: file`,
			`failed tool_failed; calls, b: file, a: no`},
		{"crash × ToolDone", "start prompt=u1\nreply a:pay\nallow a", "crash", `done a "paid"`,
			`refused "call \"a\" is not running"; paused_checkpoint/tools; calls`,
			`running/model; calls, a: paid`},
		{"news of a child × its end", "start prompt=u1\nreply a:agent\nallow a kind=spawn", "waits a paused r1.c1.i1", `done a "found"`,
			`running/model; calls, a: found`,
			`refused "call \"a\" does not wait for a child run"; running/model; calls, a: found`},
		{"news of a child × ToolDone of a sibling", "start prompt=u1\nreply a:agent b:read\nallow a kind=spawn\nallow b", "waits a paused r1.c1.i1", `done b "file"`,
			`paused_checkpoint/tools; calls, b: file`,
			`paused_checkpoint/tools; calls, b: file`},
		{"news of a child × cancel", "start prompt=u1\nreply a:agent\nallow a kind=spawn", "waits a paused r1.c1.i1", "cancel",
			`running/tools; calls`,
			`running/tools; calls`},
		{"news of a child × deadline", "start prompt=u1 max_run=100\nreply a:agent\nallow a kind=spawn\ntick 100", "waits a paused r1.c1.i1", "timer deadline",
			`paused_checkpoint/tools; calls`,
			`running/tools; calls`},
		{"reserved × cancel", "start prompt=u1 pot", "reserved", "cancel",
			`running/model; `,
			`cancelled cancelled; `},
		{"exhausted × cancel", "start prompt=u1 pot", "exhausted max_cost used=999 need=5", "cancel",
			`running/budget; `,
			`cancelled cancelled; `},
		{"reserved × steer", "start prompt=u1 pot", "reserved", "steer s1",
			`running/model; `,
			`running/model; `},
		{"reserved × deadline", "start prompt=u1 pot max_run=100\ntick 100", "reserved", "timer deadline",
			`running/model; `,
			`failed max_run_time; `},
		{"reserved × crash", "start prompt=u1 pot", "reserved", "crash",
			`running/budget; `,
			`running/model; `},
		{"more × expiry", "start prompt=u1 pot_asks expire=100\nexhausted max_cost used=900000000 need=300000000\ntick 99", "answer r1.i1 approve", "tick 1\ntimer r1.i1",
			`running/budget; `,
			`refused "interrupt \"r1.i1\" is not open"; running/budget; `},
		{"late more × expiry", "start prompt=u1 pot_asks expire=100 expire_approves\nexhausted max_cost used=900000000 need=300000000\ntick 100", "answer r1.i1 approve", "timer r1.i1",
			`refused "interrupt \"r1.i1\" has expired"; running/budget; `,
			`refused "interrupt \"r1.i1\" is not open"; running/budget; `},
		{"more × cancel", "start prompt=u1 pot_asks\nexhausted max_cost used=900000000 need=300000000", "answer r1.i1 approve", "cancel",
			`running/budget; `,
			`refused "interrupt \"r1.i1\" is not open"; cancelled cancelled; `},
		{"more × more", "start prompt=u1 pot_asks\nexhausted max_cost used=900000000 need=300000000", "answer r1.i1 approve", "answer r1.i1 reject",
			`refused "interrupt \"r1.i1\" is not open"; running/budget; `,
			`refused "interrupt \"r1.i1\" is not open"; running/budget; `},
		{"more steps × steer", "start prompt=u1 max_steps=1 ask_more\nreply a:read\nallow a\ndone a", "answer r1.i1 reject", "steer s1",
			`running/model; calls, a: `,
			`refused "interrupt \"r1.i1\" is not open"; running/model; calls, a: , input s1`},
		{"more × crash", "start prompt=u1 pot_asks\nexhausted max_cost used=900000000 need=300000000", "answer r1.i1 approve", "crash",
			`running/budget; `,
			`running/budget; `},
		{"steer × answer that is nudged", "start prompt=u1 min_tool_calls=1", "steer s1", `reply "bye"`,
			`running/model; bye, input s1`,
			`running/model; bye, nudge`},
		{"steer × answer to a nudge", "start prompt=u1 min_tool_calls=1\n" + `reply "well"`, "steer s1", `reply "bye"`,
			`running/model; well, nudge, bye, input s1`,
			`refused "the run has ended"; completed stop; well, nudge, bye`},
		{"steer × failure of a nudge", "start prompt=u1 min_tool_calls=1\n" + `reply "well"`, "steer s1", "fail fatal",
			`running/model; well, nudge, input s1`,
			`refused "the run has ended"; completed stop; well, nudge`},
		{"steer × answer in another form", "start prompt=u1", "steer s1", `reply "bye" unfit=words`,
			`running/model; bye, input s1`,
			`running/model; bye, nudge`},
		{"cancel × answer in another form", "start prompt=u1", "cancel", `reply "bye" unfit=words`,
			`cancelled cancelled; bye`,
			`running/model; bye, nudge`},
		{"cancel × failure of another form", "start prompt=u1\n" + `reply "well" unfit=words`, "cancel", "fail fatal",
			`cancelled cancelled; well, nudge`,
			`refused "the run has ended"; completed stop; well, nudge`},
		{"cancel × answer that is nudged", "start prompt=u1 min_tool_calls=1", "cancel", `reply "bye"`,
			`cancelled cancelled; bye`,
			`running/model; bye, nudge`},
		{"cancel × failure of a nudge", "start prompt=u1 min_tool_calls=1\n" + `reply "well"`, "cancel", "fail fatal",
			`cancelled cancelled; well, nudge`,
			`refused "the run has ended"; completed stop; well, nudge`},
		{"earlier result × crash", "start prompt=u1\nreply a:read\nallow a effect=read key=k1\n" + `done a "file"` + "\nreply b:read\nallow b effect=read key=k1", `done b cached "file"`, "crash",
			`running/model; calls, a: file, calls, b: file`,
			`running/model; calls, a: file, calls, b: file`},
		{"read × write beside it", "start prompt=u1\nreply a:read b:write\nallow a effect=read key=k1\nallow b", `done a "file"`, `done b "written"`,
			`running/model; calls, a: file, b: written`,
			`running/model; calls, b: written, a: file`},
		{"abort × ToolDone", "start prompt=u1\nreply a:pay\nallow a", "abort", `done a "paid"`,
			`refused "there is no call \"a\""; failed profile_gone; calls, a: The run ended while this call ran; it may have happened.`,
			`failed profile_gone; calls, a: paid`},
		{"crash × cancel", "start prompt=u1\nreply a:pay\nallow a", "crash", "cancel",
			`cancelled cancelled; calls, a: agentd was restarted while this call ran; it may have happened.`,
			`cancelled cancelled; calls, a: Cancelled: agentd was restarted while this call ran; it may have happened.`},
	} {
		for order, want := range map[string]string{race.a + "\n" + race.b: race.ab, race.b + "\n" + race.a: race.ba} {
			first, _, _ := strings.Cut(order, "\n")
			t.Run(race.name+"/"+first, func(t *testing.T) {
				p := play(t, race.setup)
				p.out.Reset()
				p.run(order)
				if got := p.outcome(); got != want {
					t.Errorf("got  %s\nwant %s\n%s", got, want, p.out.String())
				}
			})
		}
	}
}

// outcome sums up what happened: inputs that were refused, the state, and what
// the session got, in the order in which it was written, the prompt left out.
func (p *player) outcome() string {
	var s strings.Builder
	for line := range strings.Lines(p.out.String()) {
		if reason, ok := strings.CutPrefix(line, "  illegal: "); ok {
			fmt.Fprintf(&s, "refused %q; ", strings.TrimSpace(reason))
		}
	}
	s.WriteString(string(p.s.Status))
	if p.s.Status.Ended() {
		s.WriteString(" " + p.s.StopReason)
	} else {
		s.WriteString("/" + string(p.s.Phase))
	}
	s.WriteString("; ")
	var got []string
	for _, w := range p.writes {
		switch w := w.(type) {
		case AppendQueued:
			if w.Input != "u1" {
				got = append(got, "input "+w.Input)
			}
		case RollBack:
			got = append(got, "rolled back")
		case AppendMessage:
			switch {
			case Nudge(w.Message):
				got = append(got, "nudge")
			case w.Message.ToolCallID != "":
				got = append(got, w.Message.ToolCallID+": "+w.Message.Text())
			case len(w.Message.ToolCalls()) > 0:
				got = append(got, "calls")
			default:
				got = append(got, w.Message.Text())
			}
		}
	}
	return s.String() + strings.Join(got, ", ")
}
