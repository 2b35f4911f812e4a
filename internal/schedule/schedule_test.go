package schedule

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
)

func at(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestTimes(t *testing.T) {
	for _, c := range []struct{ cron, zone, after, want string }{
		{"0 3 * * *", "", "2026-11-21 03:00", "2026-11-22 03:00"},
		{"*/15 9-17 * * 1-5", "", "2026-11-20 17:50", "2026-11-23 09:00"},
		{"0 3 * * *", "Europe/Berlin", "2026-11-21 00:00", "2026-11-21 02:00"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 00:30"}, // it comes twice that night
		{"30 2 * * *", "Europe/Berlin", "2026-10-25 00:30", "2026-10-26 01:30"},
		{"0 0 29 2 *", "", "2026-01-01 00:00", "2028-02-29 00:00"},
		{"0 0 13 * 5", "", "2026-11-14 00:00", "2027-08-13 00:00"}, // both days must match
	} {
		x, err := Parse(c.cron, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Next(at(c.after)); !got.Equal(at(c.want)) {
			t.Errorf("%s %s after %s: %s, want %s", c.cron, c.zone, c.after, got, c.want)
		}
	}
}

func TestWhatIsNoSchedule(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"* * * *", ""}, {"0 0 * * * *", ""}, {"@every 1s", ""}, {"61 * * * *", ""}, {"0 0 31 2 *", ""}, {"0 3 * * *", "Nowhere"},
		{"0 3 * * *", "Local"}, {"TZ=UTC 0 3 * *", ""}} {
		if _, err := Parse(c[0], c[1]); err == nil {
			t.Errorf("%q in %q is a schedule", c[0], c[1])
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0 3 * * *", "UTC")
	f.Add("*/5 1-3,7 * jan-dec mon", "Europe/Berlin")
	f.Add("?/7 22-2/2 ? nov-feb fri-mon", "")
	f.Fuzz(func(t *testing.T, expr, zone string) {
		x, err := Parse(expr, zone)
		if err != nil {
			return
		}
		now := at("2026-11-21 00:00")
		if n := x.Next(now); !n.IsZero() && !n.After(now) {
			t.Errorf("%q: %s is not after %s", expr, n, now)
		}
		a, errA := Parse(expr, "")
		b, errB := Parse(x.Lists(), "")
		if errA != nil || errB != nil || !a.Next(now).Equal(b.Next(now)) {
			t.Errorf("%q is not the same as %q: %v, %v", expr, x.Lists(), errA, errB)
		}
	})
}

func runs(t *testing.T, it Item, d time.Duration, fire Fire) []string {
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	Run(ctx, []Item{it}, func(ctx context.Context, id string, due time.Time) error {
		got = append(got, fmt.Sprint(id, " ", due.Format("15:04"), " at ", time.Now().UTC().Format("15:04:05")))
		if fire != nil {
			return fire(ctx, id, due)
		}
		return nil
	})
	return got
}

func item(t *testing.T, cron string, catchUp time.Duration) Item {
	x, err := Parse(cron, "")
	if err != nil {
		t.Fatal(err)
	}
	return Item{ID: "x", Times: x, CatchUp: catchUp}
}

// The clock of synctest begins at midnight.

func TestEveryTimeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runs(t, item(t, "*/20 * * * *", 0), time.Hour+time.Minute, nil)
		if want := []string{"x 00:20 at 00:20:00", "x 00:40 at 00:40:00", "x 01:00 at 01:00:00"}; !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	})
}

func TestTheLastMissedTimeIsMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runs(t, item(t, "*/20 * * * *", time.Hour), time.Minute, nil)
		if want := []string{"x 00:00 at 00:00:00"}; !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	})
}

func TestAFailureIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		got := runs(t, item(t, "20 * * * *", 0), 30*time.Minute, func(context.Context, string, time.Time) error {
			if n++; n < 3 {
				return fault.New(fault.Unavailable, "the store is away")
			}
			return nil
		})
		if want := []string{"x 00:20 at 00:20:00", "x 00:20 at 00:20:05", "x 00:20 at 00:20:10"}; !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	})
}

func TestARefusalIsNotToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := runs(t, item(t, "20 * * * *", 0), 30*time.Minute, func(context.Context, string, time.Time) error {
			return fault.New(fault.Conflict, "busy")
		})
		if len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}

// TestItemsChange: what was learned of late is told of from its own time on, once; what
// is gone or changed is not told of as it was.
func TestItemsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		r := NewRunner(func(_ context.Context, id string, due time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprint(id, " ", due.Format("15:04"), " at ", time.Now().UTC().Format("15:04:05")))
			return nil
		})
		a, b := item(t, "*/10 * * * *", 0), item(t, "5 * * * *", time.Hour)
		a.ID, a.Since, a.Revision = "a", at("1999-12-31 00:00"), 1
		b.ID = "b"
		time.Sleep(10*time.Minute + 5*time.Second) // it is 0:10:05
		a.Since = time.Now().Add(-10 * time.Second)
		r.Set([]Item{a, b})
		r.Set([]Item{a, b})
		time.Sleep(10 * time.Minute)
		a2 := item(t, "*/15 * * * *", 0)
		a2.ID, a2.Since, a2.Revision = "a", time.Now(), 2
		r.Set([]Item{a2})
		time.Sleep(time.Hour)
		r.Set(nil)
		time.Sleep(time.Hour)
		r.Close()
		r.Set([]Item{b})
		slices.Sort(got)
		want := []string{"a 00:10 at 00:10:05", "a 00:20 at 00:20:00", "a 00:30 at 00:30:00", "a 00:45 at 00:45:00", "a 01:00 at 01:00:00", "a 01:15 at 01:15:00", "b 00:05 at 00:10:05"}
		if !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	})
}
