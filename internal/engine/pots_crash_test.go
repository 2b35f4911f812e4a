package engine

import (
	"fmt"
	"testing"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
)

// A crash at every commit of a run with a cap, its reservations among them: the run
// ends as if nothing had happened, what it used is counted at least once, and
// nothing stays held.
func TestCrashAtEveryCommitWithACap(t *testing.T) {
	const limit = 1_000_000
	capped := func(h *harness) {
		a := h.agents["test"]
		a.Caps, a.Models[0].Info, a.Models[0].MaxTokens = Caps{MaxTokens: limit, MaxCost: message.Dollar * limit}, dollarPrice(), 1000
	}
	h, cs, _ := crashHarness(t, 0, false)
	capped(h)
	r := h.wait(h.run("go"))
	want, commits := h.transcript(r.SessionID), cs.n
	if r.Status != "completed" || commits < 16 {
		t.Fatalf("the uninterrupted run: %+v with %d commits", r, commits)
	}
	once := h.pot(store.PotRun, r.ID).Settled.Tokens
	for at := 1; at <= commits; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d after=%v", at, after), func(t *testing.T) {
				h, r := crashOnce(t, at, after, want, capped)
				if r == nil {
					return
				}
				p := h.pot(store.PotRun, r.ID)
				if !run.Status(r.Status).Ended() || p.Held != (store.Amounts{}) || p.Settled.Tokens < once || p.Settled.Tokens > once+20_000 {
					t.Errorf("the run is %s, the pot has %+v; without a crash it has %d tokens", r.Status, p, once)
				}
				report, err := h.store.(*crashStore).Store.(store.Checker).Check(t.Context(), store.CheckOptions{State: Examine})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range report.Findings {
					if f.Check != "server" { // one that does not wait for the disk, which is how it is tested
						t.Errorf("the store: %+v", f)
					}
				}
			})
		}
	}
}
