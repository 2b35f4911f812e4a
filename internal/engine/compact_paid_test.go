package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/internal/rate"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// What a compaction used counts, once, also where its run ends with it.
func TestACompactionByHandCountsWhatItUsed(t *testing.T) {
	w := &windowed{}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	id, _ := h.talk(6)
	a := h.agents["test"]
	a.Caps, a.Models[0].Info, a.Models[0].MaxTokens = Caps{MaxTokens: 1_000_000}, dollarPrice(), 500
	r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	r = h.wait(r)
	if p := h.pot(store.PotRun, r.ID); r.StopReason != "compacted" || p.Held != (store.Amounts{}) || p.Settled.Tokens != r.Usage.Input+r.Usage.Output {
		t.Errorf("%s, pot %+v, used %+v", r.StopReason, p, r.Usage)
	}
}

// A call for a summary that breaks off says what it used so far and not what is billed:
// what was reserved counts, as with every call.
func TestASummaryThatBreaksOffCountsAsReserved(t *testing.T) {
	w := &windowed{}
	h := newHarness(t, w.generate)
	h.windowed(w, true)
	a := h.agents["test"]
	id, _ := h.talk(6)
	a.Caps, a.Models[0].Info, a.Models[0].MaxTokens = Caps{MaxTokens: 1_000_000}, dollarPrice(), 500
	w.noSummary = &model.Error{Class: model.ClassConnection, Provider: "fake", Message: "gone", Usage: &message.Usage{Input: 1, Output: 1, TotalTokens: 2}}
	a.Settings.Retry.Max = 0
	r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	if r = h.wait(r); r.Status != "failed" {
		t.Fatalf("%+v", r)
	}
	if p := h.pot(store.PotRun, r.ID); p.Held != (store.Amounts{}) || p.Settled.Tokens < 800 {
		t.Errorf("%+v", p)
	}
}

// A model for summaries is asked at the nodes of its pool, as others are.
func TestTheModelForSummariesIsAskedAtItsPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, cheap := &windowed{}, &windowed{}
		n := newNodes(t, w.generate)
		n.windowed(w, true)
		n.agents["test"].Compaction.Model = &Model{ID: "cheap", Name: "fake/cheap", Pool: "model.cheap", Provider: modelFunc(cheap.generate)}
		home := n.node("home", true, pooled("run", "tool", "model"))
		n.node("maker", false, pooled("model.cheap"))
		id := ""
		for range 3 {
			id = n.ended(home, n.started(home, StartRequest{SessionID: id, Input: blocks("DECISION-1 " + strings.Repeat("word ", 300))}).ID, "completed").SessionID
		}
		r, err := home.Compact(t.Context(), StartRequest{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		r = n.ended(home, r.ID, "completed")
		if made := n.compactions(r.SessionID); len(made) != 1 || made[0].Model != "fake/cheap" || len(cheap.summaries) != 1 {
			t.Errorf("%+v, %d asked", made, len(cheap.summaries))
		}
	})
}

// A node that hands over leaves a compaction that waits between two calls to the next
// one. What was used so far is counted, and nothing stays reserved.
func TestACompactionThatIsHandedOver(t *testing.T) {
	for _, limited := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := &windowed{}
			n := newNodes(t, w.generate)
			n.windowed(w, true)
			a := n.agents["test"]
			a.Caps, a.Models[0].Info, a.Models[0].MaxTokens = Caps{MaxTokens: 1_000_000}, dollarPrice(), 500
			first := n.node("first", true)
			id := ""
			for i := range 4 {
				if i == 3 { // the cut is in the middle of this turn: two calls
					w.answer = func(int, *model.Request) (*message.Message, error) { return say(strings.Repeat("long ", 800)) }
				}
				req := StartRequest{SessionID: id, Input: blocks("DECISION-1 " + strings.Repeat("word ", 300))}
				id = n.ended(first, n.started(first, req).ID, "completed").SessionID
			}
			time.Sleep(5 * time.Minute)
			if limited {
				// Each call uses all that there is for a minute.
				a.Rates.PerOrg = rate.Limit{Tokens: 1000}
			} else {
				a.Settings.Retry.BaseMS, a.Settings.Retry.LimitMS = 300_000, 600_000
				w.noSummary = &model.Error{Class: model.ClassOverloaded, Provider: "fake", Message: "busy"}
			}
			r, err := first.Compact(t.Context(), StartRequest{SessionID: id})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if w.mu.Lock(); len(w.summaries) != 1 {
				t.Fatalf("limited %v: %d calls", limited, len(w.summaries))
			}
			w.mu.Unlock()
			at := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := first.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(at); d > 30*time.Second {
				t.Errorf("limited %v: it took %s to hand over", limited, d)
			}
			w.mu.Lock()
			w.noSummary = nil
			w.mu.Unlock()
			second := n.node("second", true)
			r = n.ended(second, r.ID, "completed")
			p, used := n.pot(store.PotRun, r.ID), int64(0)
			totals, err := n.store.Usage(t.Context(), store.DefaultTenant, store.UsageFilter{RunID: r.ID})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range totals {
				used += u.Input + u.Output
			}
			if r.StopReason != "compacted" || p.Held != (store.Amounts{}) || p.Settled.Tokens != used || r.Usage.Input+r.Usage.Output != used {
				t.Errorf("limited %v: %s, pot %+v, used %d, of the run %+v", limited, r.StopReason, p, used, r.Usage)
			}
		})
	}
}

// What a crash in the middle of a compaction left reserved is used up, and is not kept
// besides for the run's last answer.
func TestACrashInACompactionIsPaidOnce(t *testing.T) {
	w := &windowed{}
	asked, crash := make(chan struct{}), true
	h := newHarness(t, func(ctx context.Context, step int, req *model.Request) (*message.Message, error) {
		if summarises(req) && crash {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return w.generate(ctx, step, req)
	})
	h.windowed(w, true)
	a := h.agents["test"]
	a.Models[0].Info, a.Models[0].MaxTokens = dollarPrice(), 500
	reserved := int64(1_000_000)
	for try := range 2 {
		a.Caps, crash = Caps{}, true
		id, _ := h.talk(6)
		if a.Caps = (Caps{MaxTokens: reserved}); try == 1 {
			a.Caps.MaxTokens = reserved * 5 / 2
		}
		r, err := h.engine.Compact(t.Context(), StartRequest{SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		reserved = h.pot(store.PotRun, r.ID).Held.Tokens
		h.engine.Close()
		crash = false
		h.start()
		if r = h.wait(r); r.StopReason != "compacted" {
			t.Fatalf("try %d: %s %+v", try, r.StopReason, r.Error)
		}
	}
}
