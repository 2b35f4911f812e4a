package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// stuckAgents are agents that do not come until they are let go, whatever the
// context says: their MCP servers take their time.
type stuckAgents struct {
	agents
	g gate
}

func (a stuckAgents) Agent(ctx context.Context, tenant, name string) (*Agent, error) {
	a.g.entered <- struct{}{}
	<-a.g.open
	return a.agents.Agent(ctx, tenant, name)
}

// stuck replaces the engine by one whose agents do not come.
func (h *harness) stuck() gate {
	h.t.Helper()
	h.engine.Close()
	g := newGate()
	e, err := New(Config{Store: h.store, Agents: stuckAgents{h.agents, g}, Log: h.log, AbandonAfter: 100 * time.Millisecond})
	if err != nil {
		h.t.Fatal(err)
	}
	h.engine = e
	h.t.Cleanup(func() { e.Close() })
	if _, err := e.Recover(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return g
}

// A cancel does not wait for the agent of a run that is being loaded.
func TestCancelOfARunThatIsBeingLoaded(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T) (*harness, *Run)
		// wake has the run loaded where the engine would not by itself.
		wake func(h *harness, r *Run)
	}{
		{"with a call under way", func(t *testing.T) (*harness, *Run) {
			g := newGate()
			h := newHarness(t, twoTools, gated("echo", tool.Once, g))
			r := h.run("go")
			<-g.entered
			<-g.entered
			return h, r
		}, nil},
		{"with a model call under way", func(t *testing.T) (*harness, *Run) {
			g := newGate()
			h := newHarness(t, func(ctx context.Context, _ int, _ *model.Request) (*message.Message, error) {
				return nil, g.pass(ctx)
			})
			r := h.run("go")
			<-g.entered
			return h, r
		}, nil},
		{"that has just been answered", func(t *testing.T) (*harness, *Run) {
			h := newHarness(t, twoTools, asking(echoTool(tool.Once)))
			return h, h.paused(h.run("go"), 2)
		}, func(h *harness, r *Run) {
			go h.engine.Answer(h.t.Context(), AnswerRequest{Interrupt: r.ID + ".i1", Decision: "approve"})
		}},
		{"that waits for a person below", func(t *testing.T) (*harness, *Run) {
			h, _ := dynasty(t)
			return h, h.paused(h.run("go"), 1)
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, r := tt.run(t)
			g := h.stuck()
			defer close(g.open)
			if tt.wake != nil {
				tt.wake(h, r)
			}
			<-g.entered
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			if _, err := h.engine.Cancel(ctx, ref(r.ID), "enough"); err != nil {
				t.Fatal(err)
			}
			now, err := h.engine.Wait(ctx, ref(r.ID))
			if err != nil || now.Status != "cancelled" {
				t.Fatalf("%+v, %v", now, err)
			}
			if open, _, err := h.engine.Interrupts(ctx, store.DefaultTenant, InterruptFilter{Status: "open"}); err != nil || len(open) > 0 {
				t.Errorf("open: %+v, %v", open, err)
			}
		})
	}
}

// An engine that closes while an agent is being made leaves the run as it was.
func TestCloseOfAnEngineThatLoadsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		h := newHarness(t, twoTools, gated("echo", tool.Read, g))
		r := h.run("go")
		<-g.entered
		agents := h.agents["test"]
		delete(h.agents, "test") // what comes after the close is an error
		stuck := h.stuck()
		<-stuck.entered
		closed := make(chan struct{})
		go func() { h.engine.Close(); close(closed) }()
		synctest.Wait()
		close(stuck.open)
		<-closed
		h.agents["test"] = agents
		close(g.open)
		h.start()
		h.ends(r, "completed")
	})
}

// However often a run fails to be driven, one pause is pending.
func TestOnePausePerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, oneCall("echo", `{}`), asking(echoTool(tool.Once)))
		r := h.paused(h.run("go"), 1)
		h.gone(r)
		h.engine.Close()
		var reads atomic.Int32
		var failing atomic.Bool
		failing.Store(true)
		h.store = &unreadable{Store: h.store, fails: func(id string) bool { reads.Add(1); return failing.Load() && id == r.SessionID }}
		h.start()
		for range 20 {
			_, err := h.engine.Answer(t.Context(), AnswerRequest{Run: r.ID, Decision: "approve"})
			if fault.KindOf(err) != fault.Internal {
				t.Fatalf("an answer to a run that can not be read: %v", err)
			}
		}
		synctest.Wait()
		h.engine.mu.Lock()
		n := len(h.engine.later)
		h.engine.mu.Unlock()
		before := reads.Load()
		<-time.After(h.engine.cfg.RetryPause)
		synctest.Wait()
		if n != 1 || reads.Load() != before+1 {
			t.Errorf("%d pauses are pending, and the run was read %d times after them", n, reads.Load()-before)
		}
		failing.Store(false)
		<-time.After(h.engine.cfg.RetryPause)
		synctest.Wait()
		h.engine.mu.Lock()
		n = len(h.engine.later)
		h.engine.mu.Unlock()
		if n != 0 {
			t.Errorf("%d pauses are pending", n)
		}
		h.answer(AnswerRequest{Run: r.ID, Decision: "approve"})
		h.ends(r, "completed")
	})
}

// unreadable is a store that can not read the conversations of some sessions.
type unreadable struct {
	store.Store
	fails func(session string) bool
}

func (s *unreadable) Path(ctx context.Context, tenant, session, leaf string) ([]*store.Entry, error) {
	if s.fails(session) {
		return nil, errors.New("the disk is busy")
	}
	return s.Store.Path(ctx, tenant, session, leaf)
}
