// Package guard leaves alone what keeps failing, and keeps calls from piling up.
//
// A circuit breaker belongs to a provider, an MCP server or a tool. After a number
// of failures in a row it opens: calls fail at once with an [OpenError], until a
// cooldown is over and one call is let through to try. A bulkhead bounds the calls
// of a provider that run at the same time; those of MCP servers and their tools
// are bounded in internal/mcp, next to their connections.
//
// # What it promises
//
//   - Breakers and bulkheads are shared by all who name the same thing with the
//     same limits, whichever profile and tenant they come from: a server that is
//     down is down for everybody. Only the breaker of a single tool is each
//     tenant's own: it also counts errors that a tool answers with, and those
//     depend on what it is asked.
//   - A call that the caller gave up says nothing about whom it called. It never
//     opens a breaker, and never closes one.
//   - Nothing is guarded that is not configured: then the thing itself is returned,
//     and a call costs nothing more.
//   - Nothing is stored. After a restart every breaker is closed.
package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"agentd/fault"
)

// DefaultCooldown is how long a breaker stays open if nobody says how long.
const DefaultCooldown = 30 * time.Second

// Breaker configures a circuit breaker. The zero value is none.
type Breaker struct {
	// Failures in a row open it; 0: there is no breaker.
	Failures int
	// Cooldown is how long it stays open; 0 means DefaultCooldown.
	Cooldown time.Duration
}

// OpenError says that a call was not made, because what it would have called
// failed too often lately.
type OpenError struct {
	// What is left alone, for people: provider "x", MCP server "x", tool "x".
	What string
	// Failures is how many in a row it took.
	Failures int
	// For is how long it will be left alone yet; never 0.
	For time.Duration
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%s failed %d times in a row and is left alone for %s", e.What, e.Failures, e.For.Round(time.Millisecond))
}

// Guards are the breakers and bulkheads of a process. The zero value is ready. Its
// methods are safe for concurrent use.
type Guards struct {
	mu        sync.Mutex
	breakers  map[breakerKey]circuitbreaker.CircuitBreaker[any]
	bulkheads map[bulkheadKey]*seats
}

// Thing is what is guarded.
type Thing struct {
	// Kind is provider, server or tool.
	Kind, Name string
	// Server is that of an MCP tool: another server may have one of its name.
	Server string
}

// String is for people.
func (t Thing) String() string {
	s := t.Kind
	if t.Kind == "server" {
		s = "MCP server"
	}
	s += fmt.Sprintf(" %q", t.Name)
	if t.Server != "" {
		s += fmt.Sprintf(" of MCP server %q", t.Server)
	}
	return s
}

type breakerKey struct {
	what Thing
	// tenant is whose breaker it is, "" for everybody's.
	tenant string
	Breaker
}

type bulkheadKey struct {
	what  Thing
	limit int
}

// outcome is what a call says about whom it called.
type outcome int

const (
	nothing outcome = iota // it was given up, or never sent
	works
	fails
)

// gate is a breaker with its words; nil lets everything pass.
type gate struct {
	breakerKey
	cb circuitbreaker.CircuitBreaker[any]
}

func (g *Guards) gate(what Thing, tenant string, b Breaker) *gate {
	if b.Failures <= 0 {
		return nil
	}
	if b.Cooldown <= 0 {
		b.Cooldown = DefaultCooldown
	}
	key := breakerKey{what, tenant, b}
	g.mu.Lock()
	defer g.mu.Unlock()
	cb := g.breakers[key]
	if cb == nil {
		if g.breakers == nil {
			g.breakers = map[breakerKey]circuitbreaker.CircuitBreaker[any]{}
		}
		cb = circuitbreaker.NewBuilder[any]().WithFailureThreshold(uint(b.Failures)).WithSuccessThreshold(1).WithDelay(b.Cooldown).Build()
		g.breakers[key] = cb
	}
	return &gate{key, cb}
}

func (g *Guards) bulkhead(what Thing, limit int) *seats {
	if limit <= 0 {
		return nil
	}
	key := bulkheadKey{what, limit}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bulkheads[key]
	if b == nil {
		if g.bulkheads == nil {
			g.bulkheads = map[bulkheadKey]*seats{}
		}
		b = &seats{places: bulkhead.New[any](uint(limit))}
		g.bulkheads[key] = b
	}
	return b
}

// refusal is why a call may not even wait for its turn, or nil.
func (t *gate) refusal() *OpenError {
	if t == nil || !t.cb.IsOpen() || t.cb.RemainingDelay() <= 0 {
		return nil
	}
	return t.open()
}

// enter asks to make a call. Whoever is let in must leave.
func (t *gate) enter() *OpenError {
	if t == nil || t.cb.TryAcquirePermit() {
		return nil
	}
	return t.open()
}

func (t *gate) open() *OpenError {
	left := t.cb.RemainingDelay()
	if left <= 0 {
		// Somebody else is trying it just now.
		left = min(t.Cooldown, time.Second)
	}
	return &OpenError{What: t.what.String(), Failures: t.Failures, For: left}
}

func (t *gate) leave(o outcome) {
	switch {
	case t == nil:
	case o == works:
		t.cb.RecordSuccess()
	case o == fails:
		t.cb.RecordFailure()
	case t.cb.IsHalfOpen():
		// The one call that was to find out found out nothing. Its permit goes
		// back only with a result, and the cautious one is to wait once more.
		t.cb.RecordFailure()
	}
}

// givenUp is whether a call ended because its caller did not want it any more,
// rather than because it took too long.
func givenUp(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) && fault.KindOf(context.Cause(ctx)) != fault.Timeout
}
