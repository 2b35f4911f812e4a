package cli

import "testing"

// The commands know which proposals they are told about.
func TestProposals(t *testing.T) {
	b := newBench(t)
	b.agent("talk", "x").exits(0)
	b.here("runs", "proposals", "run_x").exits(1).complains("there is no run run_x")
	b.here("runs", "proposals", "run_x", "--apply", "--discard").exits(2).complains("not both")
	b.here("runs", "proposals", "run_x", "run_x.p1").exits(2).complains("--apply or --discard")
	b.here("runs", "proposals", "run_x", "--uncertain", "done").exits(2).complains("go with --apply")
	b.here("runs", "proposals", "run_x", "--apply").exits(1).complains("there is no run run_x")
}
