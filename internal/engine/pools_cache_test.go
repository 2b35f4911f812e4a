package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// An equal call of a turn is not made again at a node of its pool either.
func TestEqualCallsOfPoolsAreMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		n := newNodes(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
			if step < 3 {
				return say("", call(fmt.Sprint("c", step), "act", `{"x":1}`))
			}
			return say("done")
		}, gpu(tool.Read, func(context.Context, tool.Call) (tool.Result, error) {
			made++
			return tool.TextResult(fmt.Sprint("made ", made)), nil
		}))
		n.agents["test"].CacheTools = []string{"act"}
		home := n.node("home", true, pooled("run", "model"))
		n.node("gpu", false, pooled("tool.gpu"))
		r := n.ended(home, n.started(home, StartRequest{}).ID, "completed")
		if tr := n.transcript(r.SessionID); made != 1 || strings.Count(tr, "earlier in this turn") != 2 {
			t.Errorf("%d calls\n%s", made, tr)
		}
		n.clean(r.ID)
	})
}
