package executors

import (
	"context"
	"fmt"
	"strings"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	history "go.temporal.io/api/history/v1"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// TestALongHistoryBeginsAnew: a server that wants short histories gets them, and nobody
// who talks to the run notices. Wakes that come while the loop begins anew count.
func TestALongHistoryBeginsAnew(t *testing.T) {
	t.Parallel()
	s := serverOn(t, "", "-suggest", "30")
	const asks = 12
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		act := w.Counting("act", tool.Once, false).(enginetest.Tool)
		act.S.Approval = "always"
		a := enginetest.Agent(w.T, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			switch {
			case strings.Contains(req.Messages[0].Text(), "leaf") && step > 0, step > asks:
				return enginetest.Say("done")
			case strings.Contains(req.Messages[0].Text(), "leaf"), step != asks/2:
				return enginetest.Say("", enginetest.Call(fmt.Sprint("a", step), "act", fmt.Sprintf(`{"n":%d}`, step)))
			}
			return enginetest.Say("", enginetest.Call("k", engine.CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
		}, act)
		a.Subagents = []string{"test"}
		return enginetest.Agents{"test": a}
	})
	r := w.Start(engine.StartRequest{})
	for range asks + 1 {
		w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "approve"})
	}
	w.Ended(r.ID, "completed")
	w.never(t, 2)
	c := s.client()
	if err := c.GetWorkflow(t.Context(), "run/default/"+r.ID, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	// From the last execution back to the first.
	executions, id := 0, ""
	for executions == 0 || id != "" {
		executions++
		it := c.GetWorkflowHistory(t.Context(), "run/default/"+r.ID, id, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		events, h := 0, &history.History{}
		for it.HasNext() {
			ev, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			if a := ev.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				id = a.ContinuedExecutionRunId
			}
			events++
			h.Events = append(h.Events, ev)
		}
		if *update {
			keep(t, map[bool]string{true: "last", false: "continued"}[executions == 1], h)
		}
		if events > 90 {
			t.Errorf("an execution has %d events", events)
		}
	}
	t.Logf("%d executions", executions)
	if executions < 3 {
		t.Errorf("%d executions", executions)
	}
}
