package executors

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	history "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"agentd/internal/engine"
	"agentd/internal/engine/enginetest"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

var update = flag.Bool("update", false, "write the histories that the loop's replay test reads")

// keep writes a history for later versions of the loop to replay.
func keep(t *testing.T, name string, h *history.History) {
	t.Helper()
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err == nil {
		err = os.WriteFile(filepath.Join("../../internal/engine/temporal/testdata", "v1-"+name+".json"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHistories looks at what Temporal keeps of runs: ids, and little. With -update what
// it saw becomes what later versions of the loop must replay.
func TestHistories(t *testing.T) {
	s := newServer(t)
	g := newStep()
	w := newWorld(t, s, func(w *enginetest.World) enginetest.Agents {
		act := w.Counting("act", tool.Once, false).(enginetest.Tool)
		act.S.Approval = "always"
		a := enginetest.Agent(w.T, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
			first := req.Messages[0].Text()
			switch {
			case strings.Contains(first, "stuck"):
				return enginetest.Say("", enginetest.Call("w", "wait", `{"words":"xyzzy"}`))
			case step == 0 && strings.Contains(first, "asks"):
				return enginetest.Say("", enginetest.Call("a", "act", `{"words":"xyzzy"}`))
			case step == 0 && !strings.Contains(first, "answers"):
				return enginetest.Say("", enginetest.Call("k1", engine.CreateSubagent, `{"subagent_type":"leaf","prompt":"asks xyzzy"}`),
					enginetest.Call("k2", engine.CreateSubagent, `{"subagent_type":"leaf","prompt":"answers xyzzy"}`))
			}
			return enginetest.Say("done xyzzy")
		}, act, g.tool(w, "wait", tool.Read))
		a.Subagents = []string{"leaf"}
		leaf := *a
		leaf.Profile, leaf.Subagents = "leaf", nil
		slow := *a
		slow.Profile, slow.Settings.Interrupts = "slow", run.Expiry{AfterMS: 500, Approve: true}
		return enginetest.Agents{"test": a, "leaf": &leaf, "slow": &slow}
	})
	c := s.client()
	take := func(name, id string) {
		t.Helper()
		h := &history.History{}
		_ = c.GetWorkflow(t.Context(), "run/default/"+id, "").Get(t.Context(), nil) // cancelled is an end, too
		it := c.GetWorkflowHistory(t.Context(), "run/default/"+id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			ev, err := it.Next()
			if err != nil {
				t.Fatal(err)
			}
			h.Events = append(h.Events, ev)
		}
		raw, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d events, %d bytes", name, len(h.Events), h.Size())
		if bytes.Contains(raw, []byte("xyzzy")) || bytes.Contains(raw, []byte("eHl6enk")) {
			t.Errorf("%s: Temporal was told more than ids", name)
		}
		if len(h.Events) > 80 {
			t.Errorf("%s has %d events", name, len(h.Events))
		}
		if *update {
			keep(t, name, h)
		}
	}

	r := w.Start(engine.StartRequest{Profile: "leaf", Input: enginetest.Text("just answers xyzzy")})
	w.Ended(r.ID, "completed")
	take("answer", r.ID)

	r = w.Start(engine.StartRequest{Profile: "leaf", Input: enginetest.Text("asks xyzzy")})
	w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "approve"})
	w.Ended(r.ID, "completed")
	take("approval", r.ID)

	r = w.Start(engine.StartRequest{Profile: "slow", Input: enginetest.Text("asks xyzzy")})
	w.Ended(r.ID, "completed")
	take("timer", r.ID)

	r = w.Start(engine.StartRequest{})
	w.Answer(engine.AnswerRequest{Interrupt: w.Asks(r.ID).ID, Decision: "approve"})
	w.Ended(r.ID, "completed")
	take("children", r.ID)
	take("child", run.ChildID(r.ID, 1))

	r = w.Start(engine.StartRequest{Input: enginetest.Text("stuck xyzzy")})
	g.in(t)
	if err := c.CancelWorkflow(t.Context(), "run/default/"+r.ID, ""); err != nil {
		t.Fatal(err)
	}
	w.Ended(r.ID, "cancelled")
	take("cancelled", r.ID)
}
