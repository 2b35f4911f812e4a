package run

import (
	"strings"
	"testing"
)

// TestAnApprovalTooManyIsNoFailure: a batch that needs more approvals than people are
// asked for must not end the run with "too many failures" once they gave them.
func TestAnApprovalTooManyIsNoFailure(t *testing.T) {
	p := play(t, `
start prompt=u1 max_approvals=1 max_failures=2 same_failures=3
reply a:pay b:pay c:pay
ask a
ask b
ask c
answer r1.i1 approve
done a "paid"
`)
	if p.s.Phase != PhaseModel || p.s.Failures != 0 {
		t.Fatalf("phase %s, %d failures, %s", p.s.Phase, p.s.Failures, p.s.StopReason)
	}
}

// TestANudgeCostsNoAnswerByTime: time that runs out while the model is asked once more
// leaves the answer that there was, whatever the run is doing then.
func TestANudgeCostsNoAnswerByTime(t *testing.T) {
	for name, meanwhile := range map[string]string{
		"no reply":      "tick 1000\ntimer deadline\nfail cancelled \"half an\"",
		"a late reply":  "tick 1000\ntimer deadline\nreply \"too late\"",
		"late calls":    "tick 1000\ntimer deadline\nreply a:read",
		"a retry":       "fail retryable after=5000\ntick 1000\ntimer deadline",
		"a message":     "steer s1\ntick 1000\ntimer deadline\nfail cancelled",
		"after a crash": "crash\ntick 1000\ntimer deadline\nfail cancelled",
		"crash, too":    "tick 1000\ntimer deadline\ncrash",
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, "start prompt=u1 min_tool_calls=1 max_run=1000 retry=3,10,60000\nreply \"I know it\"\n"+meanwhile+"\n")
			if out := p.out.String(); p.s.Status != Completed || p.s.Output != "e0001" || p.s.StopReason != "stop" || !strings.Contains(out, "kind=nudge_failed") ||
				name == "a message" && !strings.Contains(out, "s1") {
				t.Errorf("%s, %s, output %s\n%s", p.s.Status, p.s.StopReason, p.s.Output, out)
			}
		})
	}
	// A cancel is a person's word, and comes first.
	if p := play(t, "start prompt=u1 min_tool_calls=1 max_run=1000\nreply \"I know it\"\ncancel\nfail cancelled\n"); p.s.Status != Cancelled {
		t.Errorf("%s after a cancel", p.s.Status)
	}
	// A call that was made after the nudge is work under way: the run ends as any other.
	if p := play(t, "start prompt=u1 min_tool_calls=1 max_run=1000\nreply \"I know it\"\nreply a:read\nallow a\ntick 1000\ntimer deadline\ndone a error\n"); p.s.Status != Failed {
		t.Errorf("%s after a call", p.s.Status)
	}
}
