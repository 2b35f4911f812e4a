package engine

import (
	"context"
	"testing"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/tool"
)

// A run is accepted at once, however long its MCP servers take: it connects in
// its own time, and can be looked at and cancelled meanwhile.
func TestARunIsAcceptedBeforeItsAgentIsThere(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{}`), echoTool(tool.Read))
	g := h.stuck()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	var rs []*Run
	for range 2 {
		r, err := h.engine.Start(ctx, StartRequest{Input: []message.Block{message.Text("go")}})
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		if r, err = h.engine.Get(ctx, ref(r.ID)); err != nil || r.Status != "queued" {
			t.Fatalf("%+v, %v", r, err)
		}
		rs = append(rs, r)
	}
	h.cancel(rs[1])
	h.ends(rs[1], "cancelled")
	close(g.open)
	h.ends(rs[0], "completed")
	if _, err := h.engine.Start(ctx, StartRequest{Profile: "nobody", Input: []message.Block{message.Text("go")}}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a profile that does not exist: %v", err)
	}
}

// Who has given up gets no run that nobody knows of.
func TestNoRunForAClientThatHasGivenUp(t *testing.T) {
	h := newHarness(t, oneCall("echo", `{}`), echoTool(tool.Read))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r, err := h.engine.Start(ctx, StartRequest{Input: []message.Block{message.Text("go")}}); err == nil {
		t.Errorf("it started run %s", r.ID)
	}
	if all, _, err := h.engine.List(t.Context(), store.DefaultTenant, RunFilter{}); err != nil || len(all) != 0 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

// lateAgents are agents whose tools are known only when they are made.
type lateAgents struct{ agents }

func (a lateAgents) Outline(ctx context.Context, tenant, name string) (*Agent, error) {
	ag, err := a.agents.Agent(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	b := *ag
	b.Tools = tool.Set{}
	return &b, nil
}

// What only the servers could tell ends the run with a clear error.
func TestAClientToolWithTheNameOfAServersTool(t *testing.T) {
	mine := Overrides{ClientTools: []ClientTool{{Name: "echo"}}}
	h := newHarness(t, oneCall("echo", `{}`), echoTool(tool.Read))
	h.over(lateAgents{h.agents}, h.log)
	r, err := h.engine.Start(t.Context(), StartRequest{Input: []message.Block{message.Text("go")}, Overrides: mine})
	if err != nil {
		t.Fatal(err)
	}
	r = h.ends(r, "failed")
	if r.StopReason != "bad_tools" || r.Error == nil || r.Error.Message != `the client's tool "echo" has the name of a tool of the server: rename it` {
		t.Errorf("%+v %+v", r, r.Error)
	}
	h.over(h.agents, h.log)
	if _, err := h.engine.Start(t.Context(), StartRequest{Input: []message.Block{message.Text("go")}, Overrides: mine}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a name that is known to be taken: %v", err)
	}
}
