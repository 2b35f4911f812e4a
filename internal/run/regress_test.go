package run

import (
	"strings"
	"testing"
)

// TestSkippedCallsAreNoFailures: a person who steers away from three calls must
// not end the run with "too many failures".
func TestSkippedCallsAreNoFailures(t *testing.T) {
	p := play(t, `
start prompt=u1 skip_rest max_failures=2 sequential
reply a:read b:read c:read
allow a
allow b
allow c
steer s1
done a "fine"
`)
	if p.s.Phase != PhaseModel || p.s.Failures != 0 {
		t.Fatalf("phase %s, %d failures", p.s.Phase, p.s.Failures)
	}
}

// TestARejectionIsNoFailure: the same for a person who says no, and for one who
// says nothing. What a tool, or the model, gets wrong counts.
func TestARejectionIsNoFailure(t *testing.T) {
	p := play(t, `
start prompt=u1 max_failures=2 expire=100
reply a:pay b:pay c:read
ask a
ask b
allow c
answer r1.i1 reject
tick 200
timer r1.i2
done c "no such file" error
`)
	if p.s.Phase != PhaseModel || p.s.Failures != 1 {
		t.Fatalf("phase %s, %d failures, %s", p.s.Phase, p.s.Failures, p.s.StopReason)
	}
}

// TestUncertainNeverCalledNotExecuted: of a call that may have happened before a
// crash the model is never told that it did not.
func TestUncertainNeverCalledNotExecuted(t *testing.T) {
	const asked = `
start prompt=u1 %s sequential
reply a:pay b:pay
allow a effect=once
allow b effect=once
crash
`
	for name, end := range map[string]string{
		"cancel while asked":  "cancel",
		"cancel after retry":  "ask-nothing",
		"steer with skip":     "steer s1",
		"deadline while busy": "tick 5000\ntimer deadline",
	} {
		t.Run(name, func(t *testing.T) {
			script := strings.Replace(asked, "%s", "skip_rest max_run=4000", 1)
			if end == "ask-nothing" {
				// b runs, so that a, which may be retried, has to wait for it.
				end = "answer r1.i1 retry\ncancel\ndone b"
			} else if strings.Contains(end, "deadline") {
				end += "\ndone b"
			}
			p := play(t, script+end)
			text := p.resultOf("a")
			if !strings.Contains(text, "may have happened") || strings.Contains(text, "Not executed") {
				t.Fatalf("the model reads of a: %q\n%s", text, p.out.String())
			}
		})
	}
}

// TestAmendedArgumentsSurviveDoubt: a person changed the arguments, the call was
// cut by a crash and is retried: with the changed arguments.
func TestAmendedArgumentsSurviveDoubt(t *testing.T) {
	p := play(t, `
start prompt=u1
reply a:pay
ask a effect=once "may it?"
answer r1.i1 approve amended
crash
answer r1.i2 retry
`)
	var last CallTool
	for _, e := range p.effects {
		if e, ok := e.(CallTool); ok {
			last = e
		}
	}
	if last.Interrupt != "r1.i1" || last.Key != "r1/1/a" {
		t.Fatalf("the retry is %+v", last)
	}
}

// TestClientCallsWaitForApproval: client calls that need a person's word are not
// taken for a mixed batch while the word is awaited.
func TestClientCallsWaitForApproval(t *testing.T) {
	p := play(t, `
start prompt=u1
reply a:pick b:pick
allow a kind=client
ask b kind=client "may it?"
`)
	if p.s.Status != Paused {
		t.Fatalf("status %s", p.s.Status)
	}
	p.run("answer r1.i1 approve")
	if p.s.Status != Completed || p.s.StopReason != StopClientTools {
		t.Fatalf("status %s, %s", p.s.Status, p.s.StopReason)
	}
}
