package run

import "testing"

// What a call may need is told in three digits, and never as less than it is.
func TestMoneyIsToldRounded(t *testing.T) {
	for n, want := range map[int64]string{0: "$0", 7: "$0.000000007", 300_000_000: "$0.3", 20_808_004: "$0.0209", 999_100_000: "$1", 1_234_567_890: "$1.24"} {
		if got := amount(StopMaxCost, about(StopMaxCost, n)); got != want {
			t.Errorf("%d is told as %s, not %s", n, got, want)
		}
	}
	if n := about(StopMaxTokens, 10360); n != 10360 {
		t.Errorf("tokens became %d", n)
	}
}
