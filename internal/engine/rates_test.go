package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/rate"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// limited is a harness whose runs use 15 tokens a step.
func limited(t *testing.T, l RateLimits) *harness {
	h := newHarness(t, func(context.Context, int, *model.Request) (*message.Message, error) { return say("Yes.") })
	h.agents["test"].Rates = l
	return h
}

func (h *harness) asks(user string, req StartRequest) error {
	h.t.Helper()
	req.User, req.Input = user, blocks("go")
	r, err := h.engine.Start(h.t.Context(), req)
	if err != nil {
		return err
	}
	if r.User != req.user() {
		h.t.Errorf("the run of %q is for %q", user, r.User)
	}
	if req.Tenant == "" {
		h.ends(r, "completed")
	}
	return nil
}

func overLimit(t *testing.T, err error) *rate.Exceeded {
	t.Helper()
	var over *rate.Exceeded
	if fault.KindOf(err) != fault.RateLimited || !errors.As(err, &over) || over.For <= 0 || fault.HintOf(err) == "" {
		t.Fatalf("not refused by a limit: %v", err)
	}
	return over
}

func TestRequestsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := limited(t, RateLimits{PerUser: rate.Limit{Requests: 2}, PerOrg: rate.Limit{Requests: 3}})
		for range 2 {
			if err := h.asks("kim", StartRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		if over := overLimit(t, h.asks("kim", StartRequest{})); !over.Rule.One {
			t.Errorf("%v", over)
		}
		if err := h.asks("", StartRequest{Caller: "key:k1"}); err != nil {
			t.Fatal(err)
		}
		if over := overLimit(t, h.asks("lee", StartRequest{})); over.Rule.One || !strings.Contains(over.Error(), "organisation") {
			t.Errorf("%v", over)
		}
		if err := h.asks("lee", StartRequest{Tenant: "other"}); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		time.Sleep(21 * time.Second)
		if err := h.asks("lee", StartRequest{}); err != nil {
			t.Error(err)
		}
		// A restart gives nothing away.
		h.restart()
		overLimit(t, h.asks("max", StartRequest{}))
		h.engine.Close()
		h.store.Close()
	})
}

// What starts no run takes no place, and a refused request cancels nothing.
func TestOnlyRunsAreCounted(t *testing.T) {
	g := newGate()
	h := newHarness(t, listener, gated("work", tool.Read, g))
	h.agents["test"].Rates = RateLimits{PerUser: rate.Limit{Requests: 1}}
	req := StartRequest{Input: blocks("go"), IdempotencyKey: "k"}
	r, err := h.engine.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rates == nil || r.Rates.Requests.Limit != 1 || r.Rates.Requests.Remaining != 0 {
		t.Errorf("%+v", r.Rates)
	}
	<-g.entered
	if again, err := h.engine.Start(t.Context(), req); err != nil || again.ID != r.ID {
		t.Errorf("the same request: %v", err)
	}
	for _, busy := range []WhenBusy{Interrupt, Rollback, Enqueue} {
		_, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x"), SessionID: r.SessionID, WhenBusy: busy})
		overLimit(t, err)
	}
	if s, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("now"), SessionID: r.SessionID, WhenBusy: Steer}); err != nil || s.ID != r.ID {
		t.Errorf("steering: %v", err)
	}
	close(g.open)
	h.ends(r, "completed")
	for _, name := range []string{"key:x", "a\nb", strings.Repeat("x", 257)} {
		if _, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x"), User: name}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("user %.10q: %v", name, err)
		}
	}
}

// TestTokensPerMinute: a run under way waits, its readers are told why, its clock
// runs, and it can be cancelled. New ones are refused.
func TestTokensPerMinute(t *testing.T) {
	for _, tt := range []struct {
		name, status, reason string
		maxRun               int64
		cancel               bool
	}{{"waits", "completed", "stop", 0, false}, {"clock", "failed", "max_run_time", 1500, false}, {"cancel", "cancelled", "cancelled", 0, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, func(_ context.Context, step int, _ *model.Request) (*message.Message, error) {
					if step == 0 {
						return say("", call("a", "echo", `{}`))
					}
					return say("Yes.")
				}, echoTool(tool.Read))
				h.agents["test"].Rates = RateLimits{PerUser: rate.Limit{Tokens: 12}}
				h.agents["test"].Settings.MaxRunMS = tt.maxRun
				start := time.Now()
				r := h.run("go")
				for ev, err := range h.engine.Watch(t.Context(), ref(r.ID), 0) {
					if err != nil {
						t.Fatal(err)
					}
					if d, ok := ev.Data.(*event.Checkpoint); ok && ev.Type == event.CheckpointInfo {
						if d.Kind != "rate_limited" || !strings.Contains(d.Prompt, "rate_limits.per_user.tokens_per_minute") || h.engine.CallsWaiting() != 1 {
							t.Errorf("%+v, %d wait", d, h.engine.CallsWaiting())
						}
						_, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x")})
						if over := overLimit(t, err); !over.Tokens {
							t.Errorf("%v", over)
						}
						if tt.cancel {
							h.cancel(r)
						}
					}
				}
				if r = h.ends(r, tt.status); r.StopReason != tt.reason {
					t.Errorf("%+v", r)
				}
				// 15 tokens were used of 12, so that four are missing: twenty seconds.
				if took := time.Since(start).Round(time.Second); tt.status == "completed" && took != 20*time.Second {
					t.Errorf("it took %s", took)
				}
				if n := strings.Count(kinds(h.events(r)), "checkpoint_info"); n != 1 {
					t.Errorf("told %d times: %s", n, kinds(h.events(r)))
				}
				h.engine.Close()
				h.store.Close()
			})
		})
	}
}

// A subagent's use is its root's user's, whatever its profile.
func TestChildrenCountToTheirRootsUser(t *testing.T) {
	h := family(t, func(context.Context, int, *model.Request) (*message.Message, error) {
		m, err := say("42")
		m.Usage.Input = 1000
		return m, err
	})
	h.agents["test"].Rates = RateLimits{PerUser: rate.Limit{Tokens: 60_000}}
	h.agents["kid"].Rates = RateLimits{PerUser: rate.Limit{Requests: 1, Tokens: 100}}
	r, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("go"), User: "kim"})
	if err != nil {
		t.Fatal(err)
	}
	r = h.ends(r, "completed")
	if c := h.child(r); c.User != "kim" {
		t.Errorf("the child is for %q", c.User)
	}
	_, err = h.engine.Start(t.Context(), StartRequest{Input: blocks("x"), User: "kim", Profile: "kid"})
	if over := overLimit(t, err); !over.Tokens || !over.Rule.One {
		t.Errorf("%v", over)
	}
	if _, err := h.engine.Start(t.Context(), StartRequest{Input: blocks("x"), User: "lee", Profile: "kid"}); err != nil {
		t.Errorf("another user: %v", err)
	}
	for user, calls := range map[string]int64{"kim": 3, "nobody": 0} {
		views, err := h.engine.Usage(t.Context(), store.DefaultTenant, 0, 0, "", user)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for _, v := range views {
			n += v.Calls
		}
		if n != calls {
			t.Errorf("%s made %d calls, want %d", user, n, calls)
		}
	}
	runs, tokens, err := h.store.Recent(t.Context(), store.DefaultTenant, store.RecentFilter{Since: time.Now().Add(-time.Minute).UnixMilli(), One: true, User: "kim"})
	if err != nil || runs != 1 || tokens < 1030 {
		t.Errorf("lately %d runs, %d tokens: %v", runs, tokens, err)
	}
}
