package engine

import (
	"context"
	"testing"

	"agentd/fault"
	"agentd/message"
	"agentd/model"
)

// A look that is cut off by the end of the engine says that the engine ends: readers try
// again elsewhere then.
func TestALookAtTheEndSaysSo(t *testing.T) {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("Done.") })
	r := h.ends(h.run("go"), "completed")
	h.engine.stop()
	var l lookup
	if l.fill(h.engine, ref(r.ID), 0); fault.KindOf(l.err) != fault.Unavailable {
		t.Errorf("%v", l.err)
	}
}
