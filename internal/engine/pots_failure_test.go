package engine

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// A call that a provider refused costs nothing; one of which nobody knows what it
// cost counts as the most that it could.
func TestBudgetOfFailedCalls(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for name, tt := range map[string]struct {
		err    *model.Error
		began  bool
		counts bool
	}{
		"rate limited":   {&model.Error{Class: model.ClassRateLimited, Status: 429}, false, false},
		"server":         {&model.Error{Class: model.ClassServer, Status: 500}, false, false},
		"no credit":      {&model.Error{Class: model.ClassQuota}, false, false},
		"circuit open":   {&model.Error{Class: model.ClassOpen, RetryAfter: 1}, false, false},
		"never reached":  {&model.Error{Class: model.ClassConnection, Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, false, false},
		"no such host":   {&model.Error{Class: model.ClassConnection, Err: &net.DNSError{Err: "no such host"}}, false, false},
		"reset":          {&model.Error{Class: model.ClassConnection, Err: reset}, false, true},
		"timeout":        {&model.Error{Class: model.ClassTimeout}, false, true},
		"cut":            {&model.Error{Class: model.ClassTruncated}, true, true},
		"server, midway": {&model.Error{Class: model.ClassServer}, true, true},
		"refused":        {&model.Error{Class: model.ClassRefused}, true, true},
		"some usage":     {&model.Error{Class: model.ClassServer, Usage: &message.Usage{Input: 3}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			p := providerFunc(func(_ context.Context, _ *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
				if calls++; calls > 1 {
					m, _ := say("hi")
					return using(m, 20, 5)
				}
				if tt.began {
					m, _ := say("h")
					emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
				}
				return nil, tt.err
			})
			h := newHarness(t, nil)
			a := costly(h, "test", Caps{MaxTokens: 10_000})
			a.Models[0].Provider = p
			a.Models = append(a.Models, a.Models[0])
			a.Settings.Retry = run.Retry{Max: 1}
			r := h.wait(h.run("go"))
			used := int64(25)
			if tt.err.Class == model.ClassRefused {
				used = 0 // which is the end
			}
			got := h.pot(store.PotRun, r.ID)
			if counts := got.Settled.Tokens > used+900; counts != tt.counts || got.Held.Tokens != 0 || !counts && got.Settled.Tokens != used {
				t.Errorf("after %d calls the pot has %+v", calls, got)
			}
		})
	}
}

// The clock of a tree is its root's: a child ends with it.
func TestBudgetOfTimeIsTheRoots(t *testing.T) {
	// Whether the child came to its call in time is the machine's affair; what is
	// certain is that it does not outlive its root.
	var entered atomic.Bool
	h := newHarness(t, func(ctx context.Context, _ int, req *model.Request) (*message.Message, error) {
		if !strings.Contains(req.Messages[0].Text(), "leaf") {
			return say("", call("k", CreateSubagent, `{"subagent_type":"test","prompt":"leaf"}`))
		}
		entered.Store(true)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a := costly(h, "test", Caps{MaxTokens: 100_000})
	a.Subagents, a.Settings.MaxRunMS = []string{"test"}, 300
	r := h.ends(h.run("go"), "failed")
	child, err := h.engine.Get(t.Context(), ref(r.ID+".c1"))
	if fault.KindOf(err) == fault.NotFound && !entered.Load() {
		return
	}
	if err != nil || r.StopReason != "max_run_time" || !run.Status(child.Status).Ended() {
		t.Fatalf("%s; the child: %+v, %v", r.StopReason, child, err)
	}
	if p := h.pot(store.PotRun, r.ID); p.Held != (store.Amounts{}) || entered.Load() && p.Settled.Tokens < 1000 {
		t.Errorf("the pot has %+v", p)
	}
}

// A run that is cancelled in a call, or while it waits for more, holds nothing.
func TestBudgetOfCancelledRuns(t *testing.T) {
	h := short(t)
	r := h.run("go")
	h.paused(r, 1)
	if _, err := h.engine.Cancel(t.Context(), ref(r.ID), "enough"); err != nil && fault.KindOf(err) != fault.Conflict {
		t.Fatal(err)
	}
	h.ends(r, "cancelled")
	if p := h.pot(store.PotRun, r.ID); p.Held != (store.Amounts{}) {
		t.Errorf("the pot has %+v", p)
	}
	g := newGate()
	h = newHarness(t, func(ctx context.Context, _ int, _ *model.Request) (*message.Message, error) {
		if err := g.pass(ctx); err != nil {
			return nil, err
		}
		return say("hi")
	})
	costly(h, "test", Caps{MaxTokens: 100_000})
	r = h.run("go")
	<-g.entered
	if _, err := h.engine.Cancel(t.Context(), ref(r.ID), "enough"); err != nil {
		t.Fatal(err)
	}
	h.ends(r, "cancelled")
	if p := h.pot(store.PotRun, r.ID); p.Held != (store.Amounts{}) || p.Settled.Tokens < 1000 {
		t.Errorf("the pot has %+v", p)
	}
}
