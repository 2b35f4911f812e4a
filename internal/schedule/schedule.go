// Package schedule says when scheduled work is due, and tells so in time.
//
// It promises that every due time after the start is told once by each runner that
// lives then, with the time that was due and not the one at which it is told, so that
// several runners on one store can agree by that time; that a clock which jumps, and a
// machine that slept, are noticed within a minute; and that what fails is told again
// until the next time is due. It keeps nothing: who starts work by a name made of the
// schedule and the time starts it once.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/netresearch/go-cron"

	"agentd/fault"
)

// Times are the times of a cron expression. Use Parse.
type Times struct {
	cron string
	zone *time.Location
	next cron.Schedule
}

// Parse reads five fields (minute, hour, day of month, month, day of week) and the name
// of a time zone ("": UTC). A time that a change of the clock leaves out is made up for
// right after it.
func Parse(expr, zone string) (*Times, error) {
	if strings.ContainsAny(expr, "@=#") || len(strings.Fields(expr)) != 5 {
		return nil, errors.New("has not five fields: minute, hour, day of month, month, day of week")
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("no time zone is named %q", zone)
	}
	s, err := cron.ParseStandard(expr)
	if err != nil {
		return nil, err
	}
	t := &Times{cron: expr, zone: loc, next: s}
	if t.Next(time.Unix(0, 0)).IsZero() {
		return nil, errors.New("is never due")
	}
	return t, nil
}

// Cron is the expression and Zone the name of the time zone.
func (t *Times) Cron() string { return t.cron }

// Zone is the name of the time zone.
func (t *Times) Zone() string { return t.zone.String() }

// Next is the first time after another one; zero if there is none.
func (t *Times) Next(after time.Time) time.Time {
	n := t.next.Next(after.In(t.zone))
	for !n.IsZero() && t.repeats(n) {
		n = t.next.Next(n)
	}
	if n.IsZero() {
		return n
	}
	return n.UTC()
}

// repeats is whether the clock, set back, shows a time for the second time that the
// expression names by its hour: it is due once.
func (t *Times) repeats(n time.Time) bool {
	if strings.HasPrefix(strings.Fields(t.cron)[1], "*") {
		return false
	}
	for _, back := range []time.Duration{time.Hour, 30 * time.Minute} {
		before := n.Add(-back)
		if before.Day() == n.Day() && before.Hour() == n.Hour() && before.Minute() == n.Minute() {
			return true
		}
	}
	return false
}

// Last is the last time in (from, to]; zero if there is none. It looks at no more than
// so many days as are between them.
func (t *Times) Last(from, to time.Time) (last time.Time) {
	for n := t.Next(from); !n.IsZero() && !n.After(to); n = t.Next(n) {
		last = n
	}
	return last
}

// Item is one schedule.
type Item struct {
	ID    string
	Times *Times
	// CatchUp is how old a time may be that passed while nobody was there: the last
	// one since then is told at the start. 0: none is.
	CatchUp time.Duration
	// Since is from when on times count, for an item that may be learned of a little
	// late: those of the last minute are told then, too. Zero: from the start of its runner on.
	Since time.Time
	// Revision tells what an item was from what it is.
	Revision int64
}

// MaxCatchUp bounds Item.CatchUp.
const MaxCatchUp = 7 * 24 * time.Hour

// Fire is told that an item was due at a time. An error that may go away
// (fault.Unavailable, Timeout or Internal) has it told again.
type Fire func(ctx context.Context, id string, due time.Time) error

const (
	// look is the longest a runner sleeps: the clock may be set meanwhile.
	look = time.Minute
	// again is how long it waits after a failure.
	again = 5 * time.Second
)

// Run tells of all items until ctx ends. What is due while fire is told of another time
// of the same item is told after it.
func Run(ctx context.Context, items []Item, fire Fire) {
	r := NewRunner(fire)
	r.Set(items)
	<-ctx.Done()
	r.Close()
}

// Runner tells of items that change while it lives. Use NewRunner.
type Runner struct {
	fire Fire
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	items  map[string]running
}

type running struct {
	revision int64
	end      context.CancelFunc
}

// NewRunner makes a runner without items, which lives until Close.
func NewRunner(fire Fire) *Runner { return &Runner{fire: fire, items: map[string]running{}} }

// Set makes these the runner's items: it tells no more of those that are not among them,
// and begins anew with those of another revision.
func (r *Runner) Set(items []Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	keep := make(map[string]running, len(items))
	for _, it := range items {
		if have, ok := r.items[it.ID]; ok && have.revision == it.Revision {
			keep[it.ID] = have
			continue
		}
		ctx, end := context.WithCancel(context.Background())
		keep[it.ID] = running{it.Revision, end}
		r.wg.Go(func() { it.run(ctx, r.fire) })
	}
	for id, old := range r.items {
		if keep[id].end == nil || keep[id].revision != old.revision {
			old.end()
		}
	}
	r.items = keep
}

// Close ends the runner and waits for what it is telling.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, it := range r.items {
		it.end()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (it *Item) run(ctx context.Context, fire Fire) {
	now := time.Now()
	last := now
	back := min(it.CatchUp, MaxCatchUp)
	if !it.Since.IsZero() {
		back = max(0, min(max(back, look), now.Sub(it.Since)))
	}
	if back > 0 {
		if due := it.Times.Last(now.Add(-back), now); !due.IsZero() {
			it.tell(ctx, fire, due)
		}
	}
	for ctx.Err() == nil {
		due := it.Times.Next(last)
		if due.IsZero() {
			return
		}
		for wait := time.Until(due); wait > 0; wait = time.Until(due.Round(0)) {
			if !sleep(ctx, min(wait, look)) {
				return
			}
		}
		it.tell(ctx, fire, due)
		last = due
		if now := time.Now().Round(0); now.Sub(last) > look {
			last = it.Times.Last(last, now) // a machine that slept: the last one counts
			if last.IsZero() {
				last = due
			} else if last.After(due) {
				it.tell(ctx, fire, last)
			}
		}
	}
}

// tell tells of a time until that succeeds or the next one is due.
func (it *Item) tell(ctx context.Context, fire Fire, due time.Time) {
	until := it.Times.Next(due)
	for {
		err := fire(ctx, it.ID, due)
		switch fault.KindOf(err) {
		case fault.Unavailable, fault.Timeout, fault.Internal:
		default:
			return
		}
		if err == nil || !until.IsZero() && time.Now().Add(again).After(until) || !sleep(ctx, again) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
