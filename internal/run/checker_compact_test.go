package run

import (
	"slices"

	"agentd/event"
)

// heldBack are the checker's books of compactions ahead of calls that failed.
type heldBack struct {
	failed       bool
	told         bool
	step, tokens int // from which on there may be another
	trial        struct{ step, tokens int }
}

// checkFull holds a compaction ahead of a call back after one that failed (13).
func (c *checker) checkFull(before State, in Full) {
	w := &c.wait
	if w.failed && c.settings.CompactWait > 0 && before.Step < w.step && in.Tokens < w.tokens {
		c.fail(13, "a compaction is tried in step %d at %d tokens, after one that failed: not before step %d or %d tokens", before.Step, in.Tokens, w.step, w.tokens)
	}
	w.trial.step, w.trial.tokens = before.Step+c.settings.CompactWait, in.Tokens+max(in.Grow, 1)
}

// checkHeldBack notes how a compaction ended, and holds that a failure is told once.
func (c *checker) checkHeldBack(before State, in Compacted, tr Transition) {
	w := &c.wait
	if before.stopping() {
		return
	}
	tells := slices.ContainsFunc(tr.Events, func(ev event.Event) bool {
		p, ok := ev.Data.(*event.Checkpoint)
		return ok && p.Kind == "compaction_failed"
	})
	switch failed := in.Error != ""; {
	case !failed:
		*w = heldBack{}
	case before.Model.compactFor() == CompactThreshold:
		w.failed, w.step, w.tokens = true, w.trial.step, w.trial.tokens
		if want := c.settings.CompactWait > 0 && !w.told && !in.Nothing; tells != want {
			c.fail(13, "a failed compaction is told: %t, want %t", tells, want)
		}
		w.told = w.told || tells
		return
	}
	if tells {
		c.fail(13, "a compaction that was made is told to have failed")
	}
}
