package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrExhausted is what an [ExhaustedError] is.
var ErrExhausted = errors.New("a budget is used up")

// Kinds of pots.
const (
	PotRun     = "run"        // a run and all below it; its id is the run's
	PotSession = "session"    // what is done for a session; its id is the root runs' session
	PotDay     = "tenant_day" // all of a tenant on one day; its id is the date, UTC
)

// Limits of pots, as errors name them.
const (
	LimitCost     = "max_cost"
	LimitTokens   = "max_tokens"
	LimitCalls    = "max_tool_calls"
	LimitFailures = "max_failures_per_run"
)

// PotRef names a pot of a tenant.
type PotRef struct{ Kind, ID string }

// Amounts are what calls of models cost: money in billionths of a dollar, and
// tokens, read and written.
type Amounts struct{ Money, Tokens int64 }

// PotLimits are the caps of a pot; 0 is none.
type PotLimits struct{ Money, Tokens, Calls, Failures int64 }

// PotCap is a pot with its caps. A pot's row holds amounts alone: what its caps are
// is for who reserves to say.
type PotCap struct {
	PotRef
	Max PotLimits
}

// Pot is what was used of a budget that several runs share.
type Pot struct {
	PotRef
	// Settled was used. Held is reserved, by all runs together, Own by the run that
	// was asked for.
	Settled, Held, Own Amounts
	// Calls and Failures are tool calls.
	Calls, Failures int64
	// More is what people allowed beyond the caps.
	More PotLimits
	// Updated is when it last changed.
	Updated int64
}

// Reservation holds in each of its pots what a call may cost at most, and beyond it
// what the run needs to close its answer. It takes the place of whatever the run
// held: a call that was not settled, other than that of Key, is settled at what it
// held. If in one pot it does not fit under a cap, together with what is settled and
// what other runs hold, the whole Tx is refused with an [ExhaustedError]. That of a
// run that has ended is refused with ErrConflict.
type Reservation struct {
	RunID string
	// Key names the call: a repetition repeats nothing.
	Key        string
	Call, Keep Amounts
	Pots       []PotCap
	Time       int64
}

// How a call is settled.
const (
	SettledUsed = "used" // what it used is known
	SettledFree = "free" // nothing is owed
	SettledLost = "lost" // nobody knows: what was held counts as used, or Used if that is more
)

// Settlement replaces what a run holds for a call by what it used; the rest of what
// it holds stays. Without an open call it changes nothing, except that what is known
// to be used counts in Pots.
type Settlement struct {
	RunID string
	// How is one of the above; empty with Last alone.
	How  string
	Used Amounts
	// Last: the run has ended and holds nothing any more. A call that is still open
	// then is lost.
	Last bool
	Pots []PotRef
	Time int64
}

// PotCount adds tool calls and failures to pots, without asking.
type PotCount struct {
	Pots            []PotRef
	Calls, Failures int64
	Time            int64
}

// PotRaise lets more be used of a pot than its caps say.
type PotRaise struct {
	PotRef
	By   PotLimits
	Time int64
}

// ExhaustedError says that a reservation does not fit into a pot. It is ErrExhausted.
type ExhaustedError struct {
	PotRef
	// Limit is one of the limits above. Cap contains what people allowed beyond it.
	// Used is settled, Held by other runs, Need what was asked for.
	Limit                 string
	Cap, Used, Held, Need int64
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("%s of pot %s %s: the cap is %d, %d are used, %d are held by others, %d are needed", e.Limit, e.Kind, e.ID, e.Cap, e.Used, e.Held, e.Need)
}

// Is makes it ErrExhausted.
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// PotFilter selects pots; empty fields select all.
type PotFilter struct {
	Kind, ID string
	Limit    int // 0: 50
	Cursor   string
}

// BudgetReader reads pots.
type BudgetReader interface {
	// Pots gives pots as they are, in the order of refs, with what a run holds in
	// each. One that nobody has used yet is all zero.
	Pots(ctx context.Context, tenant, runID string, refs []PotRef) ([]Pot, error)
	// ListPots lists pots, the newest first. The cursor is "" at the end.
	ListPots(ctx context.Context, tenant string, f PotFilter) (pots []Pot, cursor string, err error)
}

// Fits says which cap of a pot a reservation would pass, or nil. p.Own is what it
// takes the place of.
func (p *Pot) Fits(max PotLimits, call, keep Amounts) *ExhaustedError {
	over := func(limit string, cap, more, used, held, need int64, full bool) *ExhaustedError {
		if cap == 0 {
			return nil
		}
		cap = Sum(cap, more)
		if !full && Sum(used, held, need) <= cap || full && used < cap {
			return nil
		}
		return &ExhaustedError{PotRef: p.PotRef, Limit: limit, Cap: cap, Used: used, Held: held, Need: need}
	}
	for _, e := range []*ExhaustedError{
		over(LimitFailures, max.Failures, p.More.Failures, p.Failures, 0, 0, true),
		over(LimitCalls, max.Calls, p.More.Calls, p.Calls, 0, 0, false),
		over(LimitCost, max.Money, p.More.Money, p.Settled.Money, p.Held.Money-p.Own.Money, Sum(call.Money, keep.Money), false),
		over(LimitTokens, max.Tokens, p.More.Tokens, p.Settled.Tokens, p.Held.Tokens-p.Own.Tokens, Sum(call.Tokens, keep.Tokens), false),
	} {
		if e != nil {
			return e
		}
	}
	return nil
}

// Sum adds amounts that are not negative; one too large to hold is the largest.
func Sum(amounts ...int64) int64 {
	const most = 1<<63 - 1
	var sum int64
	for _, a := range amounts {
		if a > most-sum {
			return most
		}
		sum += a
	}
	return sum
}
