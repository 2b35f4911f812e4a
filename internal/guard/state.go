package guard

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/failsafe-go/failsafe-go/bulkhead"
)

// State is a breaker or a bulkhead as it is.
type State struct {
	Thing
	// Tenant is whose breaker it is; "" for everybody's.
	Tenant string
	// Breaker and Limit are what was configured: a breaker has Failures, a bulkhead
	// has a Limit.
	Breaker Breaker
	Limit   int
	// Circuit is closed, open or half_open: one call finds out how it is by now.
	Circuit string
	// Used and Waiting are the calls in a bulkhead, and those in front of it.
	Used, Waiting int
}

// States gives all breakers and bulkheads that were asked for, in a fixed order.
// One that was open for long enough is half open, though nobody has tried yet.
func (g *Guards) States() []State {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []State
	for k, cb := range g.breakers {
		s := State{Thing: k.what, Tenant: k.tenant, Breaker: k.Breaker, Circuit: "closed"}
		switch {
		case cb.IsOpen() && cb.RemainingDelay() > 0:
			s.Circuit = "open"
		case cb.IsOpen(), cb.IsHalfOpen():
			s.Circuit = "half_open"
		}
		out = append(out, s)
	}
	for k, b := range g.bulkheads {
		out = append(out, State{Thing: k.what, Limit: k.limit, Used: int(b.used.Load()), Waiting: int(b.waiting.Load())})
	}
	slices.SortFunc(out, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tenant, b.Tenant),
			cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Breaker.Failures, b.Breaker.Failures), cmp.Compare(a.Breaker.Cooldown, b.Breaker.Cooldown))
	})
	return out
}

// seats are a bulkhead that knows how full it is.
type seats struct {
	places        bulkhead.Bulkhead[any]
	used, waiting atomic.Int64
}

// try takes a place if one is free.
func (s *seats) try() bool {
	ok := s.places.TryAcquirePermit()
	if ok {
		s.used.Add(1)
	}
	return ok
}

// take waits for a place.
func (s *seats) take(ctx context.Context) error {
	s.waiting.Add(1)
	err := s.places.AcquirePermit(ctx)
	s.waiting.Add(-1)
	if err == nil {
		s.used.Add(1)
	}
	return err
}

func (s *seats) leave() {
	s.used.Add(-1)
	s.places.ReleasePermit()
}
