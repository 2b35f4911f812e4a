package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/tool"
)

// expiring is a harness whose interrupts end after an hour.
func expiring(t *testing.T, x run.Expiry, effect tool.Effect) *harness {
	h := newHarness(t, oneCall("echo", `{"n":1}`), asking(echoTool(effect)))
	x.AfterMS = time.Hour.Milliseconds()
	h.agents["test"].Settings.Interrupts = x
	return h
}

func TestAnInterruptExpires(t *testing.T) {
	for _, c := range []struct {
		name                     string
		rule                     run.Expiry
		restart                  bool
		decision, reason, output string
	}{
		{"rejects", run.Expiry{}, false, "reject", "nobody answered in time", "It said: Not executed: it needs a person's approval, and nobody answered in time."},
		{"approves where that is declared", run.Expiry{Approve: true}, false, "approve", "nobody answered in time", `It said: echo {"n":1}`},
		{"also after a restart", run.Expiry{Approve: true}, true, "approve", "nobody answered in time", `It said: echo {"n":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := expiring(t, c.rule, tool.Once)
				began := time.Now()
				r := h.paused(h.run("go"), 1)
				i := r.Interrupts[0]
				if want := timestamp(began.Add(time.Hour).UnixMilli()); i.ExpiresAt != want {
					t.Errorf("it expires at %q, not %q", i.ExpiresAt, want)
				}
				h.gone(r) // a run that waits is not in memory; its timer is
				if c.restart {
					h.alone = true // nodes look each Poll
					h.restart()
				}
				r, err := h.engine.Wait(t.Context(), ref(r.ID))
				if err != nil || r.Status != "completed" || r.Output != c.output {
					t.Fatalf("%+v, %v", r, err)
				}
				if d := time.Since(began); d < time.Hour || d > time.Hour+time.Second {
					t.Errorf("it took %v", d)
				}
				got, err := h.engine.Interrupt(t.Context(), ref(i.ID))
				if err != nil || got.Status != "expired" || got.Decision != c.decision || !strings.Contains(got.Reason, c.reason) {
					t.Errorf("%+v, %v", got, err)
				}
				_, err = h.engine.Answer(t.Context(), AnswerRequest{Interrupt: i.ID, Decision: "reject"})
				if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "expired: "+c.decision) {
					t.Errorf("a late answer: %v", err)
				}
				if n := len(h.engine.expiries); n != 0 {
					t.Errorf("%d timers are left", n)
				}
			})
		})
	}
}

// While nobody runs, time goes on: what expired meanwhile ends at the start, and an
// answer that comes first is too late.
func TestAnInterruptExpiresWhileNobodyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := expiring(t, run.Expiry{}, tool.Once)
		r := h.paused(h.run("go"), 1)
		h.engine.Close()
		<-time.After(2 * time.Hour)
		e, err := New(Config{Store: h.store, Agents: h.agents, Log: h.log})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		h.engine = e // it recovers nothing: the answer itself must find out
		_, err = e.Answer(t.Context(), AnswerRequest{Interrupt: r.Interrupts[0].ID, Decision: "approve"})
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "expired: reject") {
			t.Errorf("a late answer: %v", err)
		}
		if r = h.ends(r, "completed"); !strings.Contains(r.Output, "nobody answered in time") {
			t.Errorf("output: %s", r.Output)
		}
	})
}

// An answer in time ends the timer with the interrupt.
func TestAnAnswerEndsTheExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := expiring(t, run.Expiry{}, tool.Once)
		r := h.paused(h.run("go"), 1)
		<-time.After(59 * time.Minute)
		h.answer(AnswerRequest{Run: r.ID, Decision: "approve"})
		if r = h.ends(r, "completed"); r.Output != `It said: echo {"n":1}` {
			t.Errorf("output: %s", r.Output)
		}
		h.engine.mu.Lock()
		defer h.engine.mu.Unlock()
		if n := len(h.engine.expiries); n != 0 {
			t.Errorf("%d timers are left", n)
		}
	})
}

// The end of an interrupt below a run is told above it, by whom it was decided.
func TestAChildsInterruptExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := dynasty(t)
		h.agents["grandkid"].Settings.Interrupts = run.Expiry{AfterMS: time.Hour.Milliseconds()}
		r := h.paused(h.run("go"), 1)
		if r.Interrupts[0].RunID == r.ID || r.Interrupts[0].ExpiresAt == "" {
			t.Fatalf("interrupt: %+v", r.Interrupts[0])
		}
		<-time.After(2 * time.Hour)
		r = h.ends(r, "completed")
		if got := kinds(h.events(r)); !strings.Contains(got, "checkpoint_resolved") {
			t.Errorf("events: %s", got)
		}
	})
}
