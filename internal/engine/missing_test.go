package engine

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"agentd/event"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// remote are agents whose tools are on a server: while it is away there are none.
type remote struct {
	agents
	mu   sync.Mutex
	away bool
	// reach is what happens while a run tries to reach the server.
	reach func(ctx context.Context)
}

func (r *remote) set(away bool) { r.mu.Lock(); r.away = away; r.mu.Unlock() }

func (r *remote) Agent(ctx context.Context, tenant, name string) (*Agent, error) {
	a, err := r.agents.Agent(ctx, tenant, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || !r.away {
		return a, err
	}
	b := *a
	b.Tools, b.Unreachable, b.Reach = tool.Set{}, []Unreachable{{"files", "connection refused"}}, r.reach
	return &b, nil
}

// remotely puts the agents of a harness on a server.
func (h *harness) remotely() *remote {
	h.t.Helper()
	return &remote{agents: h.agents, reach: func(context.Context) { h.t.Error("nobody was to reach the server") }}
}

// over starts an engine with other agents on the same store.
func (h *harness) over(a Agents, log *slog.Logger) {
	h.t.Helper()
	h.engine.Close()
	e, err := New(Config{Store: h.store, Agents: a, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	h.engine = e
	h.t.Cleanup(func() { e.Close() })
	if _, err := e.Recover(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

const filesAreAway = `MCP server "files" can not be reached, so its tools are missing: connection refused`

// A call that was under way waits for its server, as long as that may take to connect.
func TestAnOpenCallWaitsForItsServerAfterARestart(t *testing.T) {
	for _, back := range []bool{true, false} {
		name := map[bool]string{true: "it comes back", false: "it does not"}[back]
		t.Run(name, func(t *testing.T) {
			g := newGate()
			step2 := make(chan int, 1)
			h := newHarness(t, func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
				if step == 0 {
					return say("", call("a", "work", `{}`))
				}
				step2 <- len(req.Tools)
				return say("It said: " + req.Messages[len(req.Messages)-1].Text())
			}, gated("work", tool.Read, g))
			r := h.run("go")
			<-g.entered
			a := h.remotely()
			tried := 0
			a.reach = func(context.Context) { tried++; a.set(!back) }
			a.set(true)
			close(g.open)
			h.over(a, h.log)
			r = h.ends(r, "completed")
			want, tools := "It said: work is done", 2 // its own, and read_artifact
			if !back {
				want, tools = "It said: Not executed: "+filesAreAway+".", 0
			}
			if n := <-step2; r.Output != want || tried != 1 || n != tools {
				t.Errorf("output %q after %d tries; the next step has %d tools", r.Output, tried, n)
			}
			resumed := 0
			for _, ev := range h.events(r) {
				if d, ok := ev.Data.(*event.Resumed); ok {
					if resumed++; len(d.Warnings) != 1 || d.Warnings[0] != filesAreAway {
						t.Errorf("run_resumed warns of %q", d.Warnings)
					}
				}
			}
			if resumed != 1 {
				t.Errorf("%d times resumed", resumed)
			}
		})
	}
}

// A cancel does not wait for the server.
func TestCancelWhileAnOpenCallWaitsForItsServer(t *testing.T) {
	g := newGate()
	h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Read, g))
	r := h.run("go")
	<-g.entered
	a := h.remotely()
	tries := make(chan struct{})
	a.reach = func(ctx context.Context) { close(tries); <-ctx.Done() }
	a.set(true)
	h.over(a, h.log)
	<-tries
	h.cancel(r)
	r = h.ends(r, "cancelled")
	if got := h.transcript(r.SessionID); !strings.Contains(got, "Not executed: the run is ending") {
		t.Errorf("transcript:\n%s", got)
	}
}

// A new run that has to do without tools says so: in its events, in the log, and
// to a model that asks for one.
func TestARunWithoutTheToolsOfAServerSaysSo(t *testing.T) {
	h := newHarness(t, oneCall("work", `{}`), gated("work", tool.Read, newGate()))
	a := h.remotely()
	a.set(true)
	var log bytes.Buffer
	h.over(a, slog.New(slog.NewTextHandler(&log, nil)))
	r := h.ends(h.run("go"), "completed")
	if !strings.Contains(r.Output, `There is no tool "work"`) || !strings.Contains(r.Output, filesAreAway) {
		t.Errorf("output: %s", r.Output)
	}
	started := h.events(r)[0].Data.(*event.Started)
	if len(started.Warnings) != 1 || started.Warnings[0] != filesAreAway {
		t.Errorf("run_started warns of %q", started.Warnings)
	}
	h.engine.Close()
	if got := log.String(); strings.Count(got, "server=files") != 1 || !strings.Contains(got, r.ID) {
		t.Errorf("the log:\n%s", got)
	}
}
