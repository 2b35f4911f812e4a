package uptime

import (
	"testing"
	"time"
)

// The clock goes on as Go's does where nothing sleeps, and never back.
func TestTheClockGoesOn(t *testing.T) {
	c := Clock()
	last, began, from := c(), time.Now(), c()
	for time.Since(began) < 20*time.Millisecond {
		now := c()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
	// Asked around what Go's clock measured, it measured no less.
	if d := c() - from; d+time.Millisecond < 20*time.Millisecond {
		t.Errorf("it measured %v where at least 20 ms passed", d)
	}
}

func BenchmarkClock(b *testing.B) {
	c := Clock()
	for b.Loop() {
		_ = c()
	}
}

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}
