package run

import "slices"

// What the checker holds modes to (27): the run has the one that it started with until
// the approval of a plan switches it, and then the session's path gets the change once.

// settled notes what an input makes of the mode.
func (c *checker) settleMode(before State, in Input) {
	switch in := in.(type) {
	case Started:
		c.mode, c.sets = in.Mode, slices.Clone(in.Set)
	case Answered:
		if call, ok := before.asks(in.Interrupt); ok && call.Kind == kindPlan && in.Decision == "approve" && in.Mode != "" && in.Mode != c.mode {
			c.mode = in.Mode
			c.sets = []Setting{{SettingMode, in.Mode}}
		}
	}
}

func (c *checker) setting(before State, in Input, w AppendSetting) {
	if len(c.sets) == 0 || c.sets[0] != w.Setting {
		c.fail(27, "%+v is written by %s, expected are %v", w, in.Kind(), c.sets)
		return
	}
	c.sets = c.sets[1:]
}

func (c *checker) checkMode() {
	s := &c.s
	if s.Mode != c.mode {
		c.fail(27, "the mode is %q and should be %q", s.Mode, c.mode)
	}
	if s.Switched != (len(c.sets) > 0) || s.Switched && s.Phase != PhaseTools {
		c.fail(27, "to be written are %v in phase %s", c.sets, s.Phase)
	}
}
