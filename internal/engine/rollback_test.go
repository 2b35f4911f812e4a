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

// rollBack starts a run in place of the active one of a session.
func (h *harness) rollBack(sessionID, input string) *Run {
	h.t.Helper()
	return h.begin(StartRequest{SessionID: sessionID, Input: blocks(input), WhenBusy: Rollback})
}

// The active run is cancelled and the conversation goes on as if it had never been.
// What it wrote stays in the store.
func TestRollback(t *testing.T) {
	var prompts []string
	watching := func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		var texts []string
		for _, m := range req.Messages {
			texts = append(texts, m.Text())
		}
		prompts = append(prompts, strings.Join(texts, "|"))
		return listener(ctx, step, req)
	}
	t.Run("a run under way", func(t *testing.T) {
		prompts = nil
		g := newGate()
		h := newHarness(t, watching, gated("work", tool.Read, g))
		first := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed")
		r := h.begin(StartRequest{SessionID: first.SessionID, Input: blocks("go")})
		<-g.entered
		next := h.rollBack(first.SessionID, "two")
		if r = h.ends(r, "cancelled"); r.StopReason != run.StopRolledBack {
			t.Errorf("%+v", r)
		}
		if next = h.ends(next, "completed"); next.Output != "I hear two." {
			t.Errorf("%+v", next)
		}
		if got := prompts[len(prompts)-1]; got != "one|I hear one.|two" {
			t.Errorf("the model was shown %q", got)
		}
		if got := h.transcript(first.SessionID); got != "user \"one\"\nassistant \"I hear one.\"\nrollback\nuser \"two\"\nassistant \"I hear two.\"\n" {
			t.Error(got)
		}
		// Nothing is deleted: the run's events still tell everything, and its
		// call can be read.
		var calls int
		for _, ev := range h.events(r) {
			if ev.Type == "tool_failed" {
				calls++
			}
		}
		if calls != 1 {
			t.Errorf("%s", kinds(h.events(r)))
		}
	})
	t.Run("a run that has ended meanwhile", func(t *testing.T) {
		prompts = nil
		h := newHarness(t, watching)
		first := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed")
		h.ends(h.rollBack(first.SessionID, "two"), "completed")
		if got := prompts[len(prompts)-1]; got != "one|I hear one.|two" {
			t.Errorf("the model was shown %q", got)
		}
	})
	t.Run("a run that waits for a person", func(t *testing.T) {
		prompts = nil
		h := newHarness(t, watching, asking(gated("work", tool.Read, newGate())))
		r := h.begin(StartRequest{Input: blocks("go")})
		h.paused(r, 1)
		next := h.ends(h.rollBack(r.SessionID, "two"), "completed")
		if h.ends(r, "cancelled"); next.Output != "I hear two." || prompts[len(prompts)-1] != "two" {
			t.Errorf("%+v, %q", next, prompts)
		}
	})
	t.Run("the first run of the session, twice", func(t *testing.T) {
		prompts = nil
		g := newGate()
		h := newHarness(t, watching, gated("work", tool.Read, g))
		r := h.begin(StartRequest{Input: blocks("go")})
		<-g.entered
		again := h.rollBack(r.SessionID, "go")
		<-g.entered
		next := h.ends(h.rollBack(r.SessionID, "two"), "completed")
		h.ends(r, "cancelled")
		h.ends(again, "cancelled")
		if next.Output != "I hear two." || prompts[len(prompts)-1] != "two" {
			t.Errorf("%+v, %q", next, prompts)
		}
		h.restart()
		h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("three")}), "completed")
		if got := prompts[len(prompts)-1]; got != "two|I hear two.|three" {
			t.Errorf("after a restart the model was shown %q", got)
		}
	})
	t.Run("a run in the queue", func(t *testing.T) {
		g := newGate()
		h := newHarness(t, watching, gated("work", tool.Read, g))
		r := h.begin(StartRequest{Input: blocks("go")})
		<-g.entered
		queued := h.begin(StartRequest{SessionID: r.SessionID, Input: blocks("queued")})
		next := h.rollBack(r.SessionID, "two")
		// Only the active run is rolled back: what was accepted is run.
		h.ends(r, "cancelled")
		h.ends(queued, "completed")
		h.ends(next, "completed")
	})
}

// Wherever the process ends while a run is rolled back, the session ends up the
// same: the run's entries are off the path, and the next message is answered.
func TestRollbackCrash(t *testing.T) {
	for at := 1; ; at++ {
		for _, after := range []bool{false, true} {
			if !rollbackCrash(t, at, after) {
				return
			}
		}
	}
}

// rollbackCrash reports whether there was an at-th commit.
func rollbackCrash(t *testing.T, at int, after bool) (reached bool) {
	t.Run(fmt.Sprintf("commit %d, after %t", at, after), func(t *testing.T) {
		g := newGate()
		h := newHarness(t, listener, gated("work", tool.Read, g))
		first := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed")
		r := h.begin(StartRequest{SessionID: first.SessionID, Input: blocks("go")})
		<-g.entered
		h.engine.Close()
		plain := h.store
		crash := &crashStore{Store: plain, down: make(chan struct{})}
		h.store = crash
		h.start()
		<-g.entered
		crash.mu.Lock()
		crash.n, crash.at, crash.after = 0, at, after
		crash.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			next, err := h.engine.Start(ctx, StartRequest{SessionID: first.SessionID, Input: blocks("two"), WhenBusy: Rollback})
			if err == nil {
				h.engine.Wait(ctx, ref(next.ID))
			}
		}()
		select {
		case <-crash.down:
			reached = true
			cancel()
		case <-done:
		}
		cancel()
		<-done
		h.store = plain
		h.restart()
		if v, err := h.engine.Get(t.Context(), ref(r.ID)); err == nil && v.Status == "running" {
			// The wish was not durable: it is made again, as its sender would.
			h.ends(h.rollBack(first.SessionID, "two"), "completed")
		}
		h.ends(r, "cancelled")
		last := h.ends(h.begin(StartRequest{SessionID: first.SessionID, Input: blocks("three")}), "completed")
		got := h.transcript(first.SessionID)
		if last.Output != "I hear three." || strings.Contains(got, `"go"`) || !strings.HasPrefix(got, "user \"one\"\nassistant \"I hear one.\"\nrollback\n") {
			t.Errorf("%s", got)
		}
		if n := strings.Count(got, "rollback"); n != 1 {
			t.Errorf("%d rollbacks: %s", n, got)
		}
	})
	return reached
}
