package engine

import (
	"testing"

	"agentd/event"
	"agentd/message"
)

// What a session's journal says of caches is explained step by step.
func TestCacheHistory(t *testing.T) {
	h := cacheHistory{view: &CacheView{}}
	clock := int64(1_000_000)
	step := func(wait int64, keep int64, u message.Usage, broken *event.CacheBreak) CacheStep {
		clock += wait * 1000
		h.add(&event.Event{RunID: "r", Time: clock, Step: 1, Type: event.StepStarted, Data: &event.Step{Model: "p/m", CacheSeconds: keep}})
		if broken != nil {
			h.add(&event.Event{RunID: "r", Time: clock + 900, Type: event.CacheBroken, Data: broken})
		}
		ratio := float64(u.CacheRead) / float64(max(1, u.Prompt()))
		u.Cost.Total = 10
		h.add(&event.Event{RunID: "r", Time: clock + 900, Step: 1, Type: event.StepCompleted, Data: &event.Step{Model: "m", Usage: &u, CacheRatio: ratio, Saved: 3}})
		return h.view.Steps[len(h.view.Steps)-1]
	}
	use := func(in, read, write int64) message.Usage {
		return message.Usage{Input: in, CacheRead: read, CacheWrite: write, Output: 5}
	}
	for _, tt := range []struct {
		name string
		got  CacheStep
		miss string
		lost int64
	}{
		{"the first", step(0, 300, use(0, 0, 5000), nil), MissFirst, 0},
		{"all of it", step(10, 300, use(0, 5000, 200), nil), "", 0},
		{"changed", step(10, 300, use(0, 0, 5400), &event.CacheBreak{Part: "tool", Name: "zoom", Change: "added"}), MissBroken, 5200},
		{"too late", step(301, 300, use(0, 0, 5600), nil), MissExpired, 5400},
		{"in time", step(299, 300, use(0, 5600, 100), nil), "", 0},
		{"gone", step(5, 300, use(0, 0, 5800), nil), MissProvider, 5700},
		{"nobody knows how long it is kept", step(9000, 0, use(0, 0, 5900), nil), MissProvider, 5800},
		{"rounded", step(5, 0, use(200, 5760, 0), nil), "", 0},
		{"who does not say what it writes", step(5, 0, use(300, 5888, 0), nil), "", 0},
	} {
		if tt.got.Miss != tt.miss || tt.got.Missed != tt.lost {
			t.Errorf("%s: %q, %d tokens, want %q, %d", tt.name, tt.got.Miss, tt.got.Missed, tt.miss, tt.lost)
		}
	}
	v := h.done()
	if v.Total.Steps != 9 || v.Total.Breaks != 1 || v.Total.Expired != 1 || v.Total.Cost != 90 || v.Total.Saved != 27 || v.Steps[2].Broken == nil || v.Steps[3].WaitSeconds != 301 {
		t.Errorf("%+v", v.Total)
	}

	small := cacheHistory{view: &CacheView{}}
	for i := range 2 {
		u := use(int64(500+i*10), 0, 0)
		small.add(&event.Event{Type: event.StepStarted, Data: &event.Step{}})
		small.add(&event.Event{Type: event.StepCompleted, Data: &event.Step{Usage: &u}})
	}
	if got := small.done().Steps[1].Miss; got != MissSmall {
		t.Errorf("too short: %q", got)
	}
	none := cacheHistory{view: &CacheView{}}
	for range 2 {
		u := use(5000, 0, 0)
		none.add(&event.Event{Type: event.StepStarted, Data: &event.Step{}})
		none.add(&event.Event{Type: event.StepCompleted, Data: &event.Step{Usage: &u}})
	}
	if got := none.done().Steps[1].Miss; got != MissNone {
		t.Errorf("without a cache: %q", got)
	}
}
