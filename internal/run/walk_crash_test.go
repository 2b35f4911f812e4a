package run

import (
	"math/rand/v2"
	"testing"
)

// TestCrashEverywhere crashes walks after each of their steps and shows that the
// run still ends and no once call runs twice. Most of that is the checker's work.
func TestCrashEverywhere(t *testing.T) {
	const walks = 60
	crashes := map[string]int{}
	for seed := range walks {
		for length := range 30 {
			w := newWalk(t, randSource{rand.New(rand.NewPCG(uint64(seed), 3))})
			for range length {
				w.move()
			}
			if w.s.Status.Ended() {
				break
			}
			if w.s.Status != Queued {
				crashes[string(w.s.Phase)+" "+string(w.s.Status)]++
				w.crash(w.now, w.elsewhere()...)
				w.crash(w.now, w.elsewhere()...) // and again, before anything else happened
			}
			w.finish()
		}
	}
	for _, want := range []string{"model running", "retry running", "compact running", "budget running", "budget paused_checkpoint", "tools running", "tools paused_checkpoint"} {
		if crashes[want] < 3 {
			t.Errorf("%d crashes in %s", crashes[want], want)
		}
	}
}
