package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

// cachePages is a session of so many steps.
type cachePages struct {
	steps []client.CacheStep
	saved message.Money
}

func (p cachePages) Cache(_ context.Context, id, cursor string, limit int) (*client.Cache, error) {
	from := 0
	_, _ = fmt.Sscan(cursor, &from)
	out := &client.Cache{SessionID: id, Steps: p.steps[from:], Total: client.CacheTotal{Steps: len(p.steps), Input: 10, CacheRead: 90, Ratio: 0.9, Cost: message.Dollar / 4, Saved: p.saved, Breaks: 1, Expired: 1}}
	if len(out.Steps) > limit {
		out.Steps, out.Cursor = out.Steps[:limit], fmt.Sprint(from+limit)
	}
	return out, nil
}

func TestSessionsCacheExplains(t *testing.T) {
	steps := []client.CacheStep{
		{RunID: "run_1", Step: 1, Miss: "first"},
		{RunID: "run_1", Step: 2, CacheRead: 4000, Ratio: 0.95},
		{RunID: "run_2", Step: 1, Miss: "broken", Missed: 4000, Broken: &event.CacheBreak{Part: "tool", Name: "zoom", Change: "added"}},
		{RunID: "run_3", Step: 1, Miss: "expired", Missed: 4200, WaitSeconds: 566, CacheSeconds: 300},
		{RunID: "run_4", Step: 1, Miss: "broken", Broken: &event.CacheBreak{Part: "settings", Name: "thinking", Change: "changed", Old: "low", New: "high"}},
		{RunID: "run_5", Step: 1, Miss: "broken", Broken: &event.CacheBreak{Part: "message", EntryID: "01A", Change: "replaced", Reason: "compaction"}},
		{RunID: "run_6", Step: 1, Miss: "provider", Missed: 7, ComparedRun: "run_5", ComparedStep: 1},
		{RunID: "run_b", Step: 1, Miss: "expired", WaitSeconds: 400, CacheSeconds: 300, ComparedRun: "run_1", ComparedStep: 2},
		{RunID: "run_c", Step: 1, ComparedRun: "run_2", ComparedStep: 1},
	}
	for len(steps) < cachePage+50 { // more than a page
		steps = append(steps, client.CacheStep{RunID: fmt.Sprint("run_", len(steps)), Step: 1})
	}
	var out bytes.Buffer
	a := &app{Streams: Streams{Out: &out, Terminal: true}}
	if err := a.showCache(t.Context(), cachePages{steps, message.Dollar * 3 / 4}, "ses_1"); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"the first request", "tool zoom added (4000 tokens)", "kept for 5m0s (4200 tokens)", `settings thinking changed from "low" to "high"`, "message 01A replaced: compaction",
		"the provider did not have it (7 tokens)\n", "kept for 5m0s, after step 2 of run_1\n", " after step 1 of run_2\n", fmt.Sprint("run_", cachePage+49), "95.0%", "90.0% of 100 prompt tokens came from the cache; $0.25, $0.75 saved, 75.0% less than without a cache; 1 broken, 1 expired"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	// One request that was written and never read costs more than it would have without.
	out.Reset()
	if err := a.showCache(t.Context(), cachePages{steps[:1], -message.Dollar / 20}, "ses_1"); err != nil || !strings.Contains(out.String(), ", 25.0% more than without a cache") {
		t.Errorf("%v\n%s", err, &out)
	}
}
