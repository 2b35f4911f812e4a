package engine

import (
	"context"
	"testing"

	"agentd/internal/memory"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// A run that goes on with the tools of a server that came back asks as before about what
// may come from outputs of tools.
func TestWhatIsUntrustedIsAskedAboutAfterAServerIsBack(t *testing.T) {
	g := newGate()
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		switch step {
		case 0:
			return say("", call("a", "work", `{}`))
		case 1:
			return say("", call("b", memory.Remember, noted("likes tea")))
		}
		return say("done")
	}, gated("work", tool.Read, g))
	m, _ := remembers(t, h.agents["test"], memory.Explicit, memory.OnDemand)
	r := h.run("go")
	<-g.entered
	a := h.remotely()
	a.reach = func(context.Context) { a.set(false) }
	a.set(true)
	close(g.open)
	h.over(a, h.log)
	h.paused(r, 1)
	if got := h.remembered(m); got != "" {
		t.Errorf("before anybody agreed: %s", got)
	}
	h.cancel(r)
	h.ends(r, "cancelled")
}
