package engine

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// What a tool or a model gives back because the engine closes is no outcome: the
// run goes on at the next engine as if nothing had been said. Here the driver is
// busy at the moment of the close and finds such answers in its inbox later.
func TestWhatEndsBecauseTheEngineClosesIsNoOutcome(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.Once} {
		t.Run(string(effect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { closeWhileBusy(t, effect) })
		})
	}
}

func closeWhileBusy(t *testing.T, effect tool.Effect) {
	g, quick, busy := newGate(), newGate(), newGate()
	h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
		if step == 0 {
			return say("", call("a", "slow", `{}`), call("b", "quick", `{}`))
		}
		return say("Done.")
	}, gated("slow", effect, g), gated("quick", tool.Read, quick))
	// The driver hides secrets in results itself, so this keeps it busy.
	h.agents["test"].Redact = func(_ string, data json.RawMessage) json.RawMessage {
		if strings.Contains(string(data), "quick is done") {
			<-busy.open
		}
		return data
	}
	r := h.begin(StartRequest{Mode: Autonomous})
	<-g.entered
	close(quick.open)
	synctest.Wait() // the driver is busy with the result of quick
	closed := make(chan struct{})
	go func() { h.engine.Close(); close(closed) }()
	synctest.Wait() // slow has ended, because the engine closes
	close(busy.open)
	<-closed
	close(g.open)
	h.start()
	r = h.ends(r, "completed")
	want := `toolResult "slow is done" for a error=false`
	if effect == tool.Once {
		want = `toolResult "agentd was restarted while this call ran. It may or may not have happened`
	}
	if got := h.transcript(r.SessionID); !strings.Contains(got, want) {
		t.Errorf("transcript:\n%s", got)
	}
}

// The same for a model: a call that ended because the engine closed did not fail.
func TestAModelCallThatEndsBecauseTheEngineClosesDidNotFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, busy := newGate(), newGate()
		h := newHarness(t, listener)
		h.agents["test"].Models[0].Provider = streamer{"Half a sentence", g}
		r := h.run("go")
		<-g.entered
		synctest.Wait()
		// A timer that means nothing keeps the driver busy.
		h.engine.mu.Lock()
		d := h.engine.drivers[ref(r.ID)]
		h.engine.mu.Unlock()
		d.put(item{in: run.TimerFired{ID: "none"}, extra: func(*store.Tx) { <-busy.open }})
		synctest.Wait()
		closed := make(chan struct{})
		go func() { h.engine.Close(); close(closed) }()
		synctest.Wait()
		close(busy.open)
		<-closed
		close(g.open)
		h.start()
		r = h.ends(r, "completed")
		if r.Output != "Half a sentence" {
			t.Errorf("%+v", r)
		}
	})
}

// Close during everything leaves nothing behind.
func TestCloseLeavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	g := newGate()
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Text() == "think":
			return nil, g.pass(ctx)
		case last.Text() == "retry":
			g.entered <- struct{}{}
			return nil, &model.Error{Class: model.ClassOverloaded, Provider: "fake"}
		case step == 0 && last.Text() == "ask":
			return say("", call("q", "approve", `{}`))
		case step == 0 && last.Text() == "delegate":
			return say("", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"think"}`))
		case step == 0:
			return say("", call("a", "work", `{}`))
		}
		return say("Done.")
	}, gated("work", tool.Read, g), asking(toolFunc{tool.Spec{Name: "approve"}, nil}))
	h.agents["test"].Subagents = []string{"test"}
	h.agents["test"].Settings.Retry = run.Retry{Max: 9, BaseMS: 1 << 20, LimitMS: 1 << 30}
	h.agents["test"].Settings.MaxRunMS = 1 << 20
	watching := make(chan error, 10)
	for _, what := range []string{"think", "retry", "work", "delegate", "ask"} {
		r := h.run(what)
		h.begin(StartRequest{SessionID: r.SessionID})
		go func() { var rec recording; watching <- h.watch(t.Context(), r.ID, &rec, nil) }()
		go func() { _, err := h.engine.Wait(t.Context(), ref(r.ID)); watching <- err }()
		if what == "ask" {
			h.paused(r, 1)
		} else {
			<-g.entered
		}
	}
	h.engine.Close()
	for range 10 {
		if err := <-watching; fault.KindOf(err) != fault.Unavailable {
			t.Errorf("who waited for a closed engine got %v", err)
		}
	}
	if _, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x")}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a start after the close: %v", err)
	}
	if h.engine.Ready(t.Context()) == nil {
		t.Error("a closed engine is ready")
	}
	h.store.Close()
	if n := settled(func(n int) bool { return n <= before }); n > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
