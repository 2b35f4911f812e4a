package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// TestALateToolSurvivesACrashAtEveryCommit kills the engine at each commit of a run that
// calls a late tool. The run goes on with the list that its conversation began with, says
// the same, and the tool does not run twice.
func TestALateToolSurvivesACrashAtEveryCommit(t *testing.T) {
	for at, over := 0, false; !over; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) { over = lateCrash(t, at, after) })
		}
	}
}

// lateCrash reports whether the run ended before the crash; at 0 there is none.
func lateCrash(t *testing.T, at int, after bool) bool {
	calls := &counter{}
	l := &lateModel{}
	script := func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		m, err := l.generate(ctx, step, req)
		if step == 0 && strings.Contains(req.Messages[len(req.Messages)-1].Text(), "closer") {
			return say("", call("z", CallByName, `{"tool":"zoom","arguments":{"n":1}}`), call("d", "drop", `{}`))
		}
		return m, err
	}
	h := newHarness(t, script, namedTool("keep", ""), namedTool("drop", ""))
	h.engine.Close()
	a := h.agents["test"]
	a.LateTools, a.NoReadArtifact = true, true
	cs := &crashStore{Store: h.store, down: make(chan struct{})}
	h.store = cs
	h.start()
	r := h.ends(h.run("go"), "completed")
	first := l.last()
	h.has(namedTool("keep", ""), toolFunc{tool.Spec{Name: "zoom", Effect: tool.Once}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		calls.add(c.Name)
		return tool.TextResult("larger " + string(c.Args)), nil
	}})
	cs.mu.Lock()
	if at > 0 {
		cs.at, cs.after = cs.n+at, after
	}
	cs.mu.Unlock()
	ctx := t.Context()
	next, err := h.engine.Start(ctx, inSession(r.SessionID, "look closer"))
	if err != nil && at != 1 {
		t.Fatal(err)
	}
	if err == nil && at > 0 {
		engine := h.engine
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range engine.Watch(ctx, ref(next.ID), 0) {
				if err != nil {
					return
				}
			}
		}()
		select {
		case <-cs.down:
		case <-ended:
		}
		engine.Close()
		<-ended
	}
	crashed := false
	select {
	case <-cs.down:
		crashed = true
	default:
	}
	if crashed {
		h.engine.Close()
		cs.mu.Lock()
		cs.at = 0
		cs.mu.Unlock()
		h.restart()
		if err != nil {
			left, err := h.store.Unfinished(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(left) == 0 {
				return false // it was never accepted
			}
			next = &Run{ID: left[0].ID}
		}
	} else {
		cs.mu.Lock()
		cs.at = 0
		cs.mu.Unlock()
		if at > 0 {
			h.restart()
		}
	}
	uncertain := answerUncertain(t, h, ref(next.ID))
	if got := h.wait(next); run.Status(got.Status) != run.Completed {
		t.Fatalf("it ended %s: %+v", got.Status, got.Error)
	}
	if n := calls.of("zoom"); n > 1 || n == 0 && !uncertain {
		t.Errorf("zoom ran %d times", n)
	}
	last := l.last()
	extends(t, first, last)
	if told := newestContext(last); !strings.Contains(told, "- zoom:") || !strings.Contains(told, "do not call them: drop.") {
		t.Errorf("told %q", told)
	}
	want := `[z zoom {"n":1}]`
	if text := h.transcript(r.SessionID); !strings.Contains(text, want) || !uncertain && !strings.Contains(text, `"larger {\"n\":1}" for z`) || !strings.Contains(text, "for d error=true") {
		t.Errorf("transcript:\n%s", text)
	}
	return at > 0 && !crashed
}
