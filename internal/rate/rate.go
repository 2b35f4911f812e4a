// Package rate counts what tenants and their users use in a minute: runs that
// start, and tokens of models.
//
// # What it promises
//
//   - What somebody uses counts against every limit that holds for them, whichever
//     profile it was used with.
//   - Over time no more is used than the limit says. Tokens are known only when a
//     call is over: a call starts when there is room, holds what its prompt is likely
//     to take, and what it takes beyond that is a debt that later calls wait for.
//   - A new process gives nothing away: whoever is not counted yet starts with what
//     the store says of the last minute.
//   - Memory is bounded: who used nothing for a while is forgotten.
//
// The counts are of one process.
package rate

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// idle is how long somebody is remembered who uses nothing. It is longer than
	// what the store is asked about, so that nobody is charged twice.
	idle = 3 * time.Minute
	// maxSubjects is how many are counted at the same time. Those over it are
	// forgotten, and begin again with what the store says.
	maxSubjects = 1 << 16
	// slack makes up for what is lost in rounding, so that who waited has room.
	slack = time.Millisecond
)

// Limit is what may be used in a minute. Zero fields limit nothing.
type Limit struct {
	// Requests are runs that start.
	Requests int
	// Burst is how many of them may start at once; 0: as many as Requests.
	Burst int
	// Tokens are those of models, read or written, cached ones included.
	Tokens int
}

// None is whether nothing is limited.
func (l Limit) None() bool { return l.Requests <= 0 && l.Tokens <= 0 }

// Subject is who uses something: a tenant, or one of its users. A user without a
// name is a user, too.
type Subject struct {
	Tenant, User string
	// One is whether one user is meant, and not the tenant with all of them.
	One bool
}

// Who uses something: a user of a tenant, and so the tenant, too.
type Who struct{ Tenant, User string }

func (w Who) subjects() [2]Subject {
	return [2]Subject{{Tenant: w.Tenant}, {Tenant: w.Tenant, User: w.User, One: true}}
}

// Rule is a limit that holds for somebody.
type Rule struct {
	Subject
	Limit
	// Key names the limit in the configuration: "rate_limits.per_user".
	Key string
}

// Recent gives what a subject used since a time.
type Recent func(ctx context.Context, s Subject, since time.Time) (requests, tokens int64, err error)

// Level is how far a limit is used up. Limit 0: there is none.
type Level struct {
	Limit, Remaining int
	// Reset is how long it takes until nothing of it is used up.
	Reset time.Duration
}

// Status is how far somebody's limits are used up: of each kind the one of which
// least is left.
type Status struct{ Requests, Tokens Level }

// Exceeded says that a limit is used up.
type Exceeded struct {
	Rule Rule
	// Tokens: it is the limit of tokens, else that of requests.
	Tokens bool
	// For is how long to wait at least; never 0.
	For time.Duration
	// Status is that of all limits that hold for whom it is about.
	Status Status
}

func (e *Exceeded) Error() string {
	n, what := e.Rule.Requests, "requests_per_minute"
	if e.Tokens {
		n, what = e.Rule.Limit.Tokens, "tokens_per_minute"
	}
	whose := "this organisation"
	if e.Rule.One {
		whose = "this user"
	}
	wait := e.For.Round(time.Millisecond)
	if wait >= time.Second {
		wait = wait.Round(time.Second)
	}
	return fmt.Sprintf("%s used up its limit of %d %s (%s); there is room again in %s", whose, n, strings.ReplaceAll(what, "_", " "), e.Rule.Key+"."+what, wait)
}

// RetryAfter is how long to wait at least.
func (e *Exceeded) RetryAfter() time.Duration { return e.For }

// Meters count. They are made by New and safe for concurrent use.
type Meters struct {
	now    func() time.Time
	recent Recent

	mu       sync.Mutex
	subjects map[Subject]*subject
	swept    time.Time
	waiting  int
}

type subject struct {
	buckets map[Limit]*bucket
	seen    time.Time
}

// bucket counts against one limit; what is not limited is nil.
type bucket struct{ requests, tokens *rate.Limiter }

// New makes meters; now and recent are required.
func New(now func() time.Time, recent Recent) *Meters {
	return &Meters{now: now, recent: recent, subjects: map[Subject]*subject{}, swept: now()}
}

func limiter(perMinute, burst int) *rate.Limiter {
	if perMinute <= 0 {
		return nil
	}
	if burst <= 0 {
		burst = perMinute
	}
	return rate.NewLimiter(rate.Limit(float64(perMinute)/60), burst)
}

// open finds the buckets of rules, or makes them from what was used lately.
func (m *Meters) open(ctx context.Context, rules []Rule) error {
	for i := range rules {
		r := &rules[i]
		m.mu.Lock()
		known := m.find(r) != nil
		m.mu.Unlock()
		if known {
			continue
		}
		now := m.now()
		requests, tokens, err := m.recent(ctx, r.Subject, now.Add(-time.Minute))
		if err != nil {
			return err
		}
		b := &bucket{limiter(r.Requests, r.Burst), limiter(r.Limit.Tokens, 0)}
		// Not below nothing: what was used before is not to be waited for twice.
		if b.requests != nil {
			take(b.requests, now, min(requests, int64(b.requests.Burst())))
		}
		if b.tokens != nil {
			take(b.tokens, now, min(tokens, int64(b.tokens.Burst())))
		}
		m.mu.Lock()
		m.sweep(now)
		if m.find(r) == nil {
			s := m.subjects[r.Subject]
			if s == nil {
				s = &subject{buckets: map[Limit]*bucket{}}
				m.subjects[r.Subject] = s
			}
			s.buckets[r.Limit], s.seen = b, now
		}
		m.mu.Unlock()
	}
	return nil
}

// find gives the bucket of a rule, or nil. The caller holds the lock.
func (m *Meters) find(r *Rule) *bucket {
	if s := m.subjects[r.Subject]; s != nil {
		return s.buckets[r.Limit]
	}
	return nil
}

// take takes n away, below nothing if need be; a negative n gives back. The limiter
// lets nobody have more than its burst at once, so that this has to be raised for it.
func take(l *rate.Limiter, now time.Time, n int64) {
	n = min(max(n, math.MinInt32), math.MaxInt32)
	burst := l.Burst()
	if int(n) > burst {
		l.SetBurstAt(now, int(n))
		defer l.SetBurstAt(now, burst)
	}
	l.ReserveN(now, int(n))
}

// lacks is how long it takes until one is there; 0 if it is.
func lacks(l *rate.Limiter, now time.Time) time.Duration {
	have := l.TokensAt(now)
	if have >= 1 {
		return 0
	}
	return time.Duration((1-have)/float64(l.Limit())*float64(time.Second)) + slack
}

// refusal is the rule for which one has to wait longest, or nil. The caller holds
// the lock.
func (m *Meters) refusal(rules []Rule, now time.Time, requests bool) *Exceeded {
	var worst *Exceeded
	for i := range rules {
		b := m.find(&rules[i])
		if b == nil {
			continue // forgotten a moment ago, because it was not used
		}
		if b.tokens != nil {
			if d := lacks(b.tokens, now); d > 0 && (worst == nil || d > worst.For) {
				worst = &Exceeded{Rule: rules[i], Tokens: true, For: d}
			}
		}
		if requests && b.requests != nil {
			if d := lacks(b.requests, now); d > 0 && (worst == nil || d > worst.For) {
				worst = &Exceeded{Rule: rules[i], For: d}
			}
		}
	}
	if worst != nil {
		worst.Status = m.status(rules, now)
	}
	return worst
}

func (m *Meters) status(rules []Rule, now time.Time) (s Status) {
	least := func(into *Level, l *rate.Limiter) {
		if l == nil {
			return
		}
		have := l.TokensAt(now)
		left := max(int(have), 0)
		if into.Limit == 0 || left < into.Remaining {
			reset := time.Duration((float64(l.Burst()) - have) / float64(l.Limit()) * float64(time.Second))
			*into = Level{Limit: int(math.Round(float64(l.Limit()) * 60)), Remaining: left, Reset: max(reset, 0)}
		}
	}
	for i := range rules {
		if b := m.find(&rules[i]); b != nil {
			least(&s.Requests, b.requests)
			least(&s.Tokens, b.tokens)
		}
	}
	return s
}

// Permit is a request that was let in.
type Permit struct {
	// Status is what it left.
	Status Status
	m      *Meters
	who    Who
}

// Cancel gives the place back of a request that came to nothing. A nil permit has
// none.
func (p *Permit) Cancel() {
	if p != nil {
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		p.m.ask(p.who, p.m.now(), -1)
	}
}

// Admit lets a request in, or says with an *Exceeded why not. rules are the limits
// that it is held against, those that limit nothing left out; it counts for others,
// too. The permit is nil if it counts for none.
func (m *Meters) Admit(ctx context.Context, who Who, rules []Rule) (*Permit, error) {
	if err := m.open(ctx, rules); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.subjects) == 0 {
		return nil, nil
	}
	now := m.now()
	if e := m.refusal(rules, now, true); e != nil {
		return nil, e
	}
	m.ask(who, now, 1)
	return &Permit{m: m, who: who, Status: m.status(rules, now)}, nil
}

// ask takes requests from all buckets of a user and its tenant. The caller holds the
// lock.
func (m *Meters) ask(who Who, now time.Time, n int64) {
	for _, id := range who.subjects() {
		s := m.subjects[id]
		if s == nil {
			continue
		}
		s.seen = now
		for _, b := range s.buckets {
			if b.requests != nil {
				take(b.requests, now, n)
			}
		}
	}
}

// Wait waits until there is room for a model call and holds tokens for it; the
// caller must settle them. waiting is called once, if there is none. The error is
// that of recent, or the cause of ctx.
func (m *Meters) Wait(ctx context.Context, who Who, rules []Rule, tokens int64, waiting func(*Exceeded)) (held int64, err error) {
	if len(rules) == 0 {
		return 0, nil
	}
	if err := m.open(ctx, rules); err != nil {
		return 0, err
	}
	for told := false; ; told = true {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx) // there may be room, but nobody to use it
		}
		m.mu.Lock()
		now := m.now()
		e := m.refusal(rules, now, false)
		if e == nil {
			m.spend(who, now, tokens)
			m.mu.Unlock()
			return tokens, nil
		}
		m.waiting++
		m.mu.Unlock()
		if !told {
			waiting(e)
		}
		t := time.NewTimer(e.For)
		select {
		case <-t.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		t.Stop()
		m.mu.Lock()
		m.waiting--
		m.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
}

// Spend counts tokens that somebody used, less what is held for them.
func (m *Meters) Spend(who Who, tokens int64) {
	if tokens == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.subjects) > 0 {
		m.spend(who, m.now(), tokens)
	}
}

// spend takes tokens from all buckets of a user and its tenant. The caller holds the
// lock.
func (m *Meters) spend(who Who, now time.Time, tokens int64) {
	for _, id := range who.subjects() {
		s := m.subjects[id]
		if s == nil {
			continue
		}
		s.seen = now
		for _, b := range s.buckets {
			if b.tokens != nil {
				take(b.tokens, now, tokens)
			}
		}
	}
}

// Waiting is how many model calls wait for room.
func (m *Meters) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

// sweep forgets who used nothing lately and owes nothing. The caller holds the lock.
func (m *Meters) sweep(now time.Time) {
	if now.Sub(m.swept) >= idle {
		m.swept = now
		for who, s := range m.subjects {
			if now.Sub(s.seen) >= idle && s.full(now) {
				delete(m.subjects, who)
			}
		}
	}
	if len(m.subjects) < maxSubjects {
		return
	}
	for who := range m.subjects {
		delete(m.subjects, who)
		if len(m.subjects) <= maxSubjects/2 {
			break
		}
	}
}

func (s *subject) full(now time.Time) bool {
	for _, b := range s.buckets {
		for _, l := range []*rate.Limiter{b.requests, b.tokens} {
			if l != nil && l.TokensAt(now) < float64(l.Burst()) {
				return false
			}
		}
	}
	return true
}
