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
	step := func(wait int64, keep int64, u message.Usage, broken *event.CacheBreak) int {
		clock += wait * 1000
		h.add(&event.Event{RunID: "r", Time: clock, Step: 1, Type: event.StepStarted, Data: &event.Step{Model: "p/m", CacheSeconds: keep}})
		if broken != nil {
			h.add(&event.Event{RunID: "r", Time: clock + 900, Type: event.CacheBroken, Data: broken})
		}
		ratio := float64(u.CacheRead) / float64(max(1, u.Prompt()))
		u.Cost.Total = 10
		h.add(&event.Event{RunID: "r", Time: clock + 900, Step: 1, Type: event.StepCompleted, Data: &event.Step{Model: "m", Usage: &u, CacheRatio: ratio, Saved: 3}})
		return len(h.view.Steps) - 1
	}
	use := func(in, read, write int64) message.Usage {
		return message.Usage{Input: in, CacheRead: read, CacheWrite: write, Output: 5}
	}
	cases := []struct {
		name string
		at   int
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
	}
	v := h.done()
	for _, tt := range cases {
		if got := v.Steps[tt.at]; got.Miss != tt.miss || got.Missed != tt.lost {
			t.Errorf("%s: %q, %d tokens, want %q, %d", tt.name, got.Miss, got.Missed, tt.miss, tt.lost)
		}
	}
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

// A step is compared with the one before on its path, also where others were made since.
func TestCacheHistoryGoesByThePath(t *testing.T) {
	h := cacheHistory{view: &CacheView{}, parents: map[string]string{
		"u1": "", "a1": "u1", "u2": "a1", "a2": "u2", "b": "a1", "u3": "b", "a3": "u3", "r": "", "u4": "r", "a4": "u4", "loop": "loop2", "loop2": "loop"}}
	for i, entry := range []string{"a1", "a2", "a3", "", "a4", "loop"} {
		h.add(&event.Event{RunID: "r", Step: i + 1, Time: int64(i) * 10_000, Type: event.StepStarted, Data: &event.Step{CacheSeconds: 15}})
		h.add(&event.Event{RunID: "r", Step: i + 1, Time: int64(i)*10_000 + 1, Type: event.StepCompleted, Data: &event.Step{EntryID: entry, Usage: &message.Usage{CacheWrite: 5000}}})
	}
	v := h.done()
	for i, want := range []CacheStep{
		{Miss: MissFirst},
		{ComparedStep: 1, WaitSeconds: 10, Miss: MissProvider},
		{ComparedStep: 1, WaitSeconds: 20, Miss: MissExpired},
		{ComparedStep: 3, WaitSeconds: 10, Miss: MissProvider}, // its reply is not in the tree
		{Miss: MissFirst}, // a way that begins anew
		{Miss: MissFirst},
	} {
		got := v.Steps[i]
		if got.ComparedStep != want.ComparedStep || got.WaitSeconds != want.WaitSeconds || got.Miss != want.Miss || (got.ComparedRun != "") != (got.ComparedStep > 0) {
			t.Errorf("step %d: %+v, want %+v", i+1, got, want)
		}
	}
}

// A session that went back is explained by its path, from the store.
func TestCacheAfterNavigate(t *testing.T) {
	var rec recorder
	h := newHarness(t, rec.model)
	one := h.ends(h.begin(StartRequest{Input: blocks("one")}), "completed")
	h.ends(h.begin(StartRequest{SessionID: one.SessionID, Input: blocks("two")}), "completed")
	h.navigate(one.SessionID, h.said(one.SessionID, "I hear one."), nil)
	h.ends(h.begin(StartRequest{SessionID: one.SessionID, Input: blocks("three")}), "completed")
	v, err := h.engine.Cache(t.Context(), ref(one.SessionID), "", 0)
	if err != nil || len(v.Steps) != 3 {
		t.Fatalf("%v %+v", err, v)
	}
	for i, want := range []string{"", one.ID, one.ID} {
		if v.Steps[i].ComparedRun != want {
			t.Errorf("step %d is compared with %q, want %q", i, v.Steps[i].ComparedRun, want)
		}
	}
}
