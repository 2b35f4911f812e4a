package rate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lately is a store that knows what was used.
type lately struct {
	requests, tokens int64
	asked            int
	err              error
}

func (l *lately) recent(context.Context, Subject, time.Time) (int64, int64, error) {
	l.asked++
	return l.requests, l.tokens, l.err
}

func org(l Limit) []Rule {
	return []Rule{{Subject: Subject{Tenant: "acme"}, Limit: l, Key: "rate_limits.per_org"}}
}

func user(name string, l Limit) []Rule {
	return []Rule{{Subject: Subject{Tenant: "acme", User: name, One: true}, Limit: l, Key: "rate_limits.per_user"}}
}

// whoOf is whom rules are about.
func whoOf(rules []Rule) Who {
	w := Who{Tenant: rules[0].Tenant}
	for _, r := range rules {
		w.User += r.User
	}
	return w
}

func admits(t *testing.T, m *Meters, rules []Rule, want time.Duration) *Permit {
	t.Helper()
	p, err := m.Admit(t.Context(), whoOf(rules), rules)
	var over *Exceeded
	switch {
	case want == 0 && err != nil:
		t.Fatal(err)
	case want != 0 && (!errors.As(err, &over) || over.For.Round(time.Second) != want):
		t.Fatalf("%v, want a wait of %s", err, want)
	}
	return p
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Now, (&lately{}).recent)
		rules := org(Limit{Requests: 6, Burst: 2})
		admits(t, m, rules, 0)
		p := admits(t, m, rules, 0)
		if s := p.Status.Requests; s.Limit != 6 || s.Remaining != 0 || s.Reset != 20*time.Second || p.Status.Tokens.Limit != 0 {
			t.Errorf("%+v", p.Status)
		}
		admits(t, m, rules, 10*time.Second)
		// Another limit of the same tenant is open, and counts for this one, too.
		admits(t, m, org(Limit{Requests: 60}), 0)
		admits(t, m, rules, 20*time.Second)
		time.Sleep(20*time.Second + slack)
		admits(t, m, rules, 0).Cancel()
		admits(t, m, rules, 0)
		admits(t, m, rules, 10*time.Second)
		// Others are not concerned.
		admits(t, m, user("kim", Limit{Requests: 1}), 0)
		admits(t, m, []Rule{{Subject: Subject{Tenant: "other"}, Limit: Limit{Requests: 1}}}, 0)
		if p, err := m.Admit(t.Context(), Who{Tenant: "new"}, nil); p == nil || p.Status != (Status{}) || err != nil {
			t.Errorf("no limits: %v %v", p, err)
		}
	})
}

// One refusal takes nothing from the other limits.
func TestRefusalsTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Now, (&lately{}).recent)
		both := append(user("kim", Limit{Requests: 1}), org(Limit{Requests: 2})...)
		admits(t, m, both, 0)
		for range 5 {
			admits(t, m, both, time.Minute)
		}
		admits(t, m, append(user("lee", Limit{Requests: 1}), org(Limit{Requests: 2})...), 0)
		_, err := m.Admit(t.Context(), Who{"acme", "max"}, append(user("max", Limit{Requests: 1}), org(Limit{Requests: 2})...))
		const want = "this organisation used up its limit of 2 requests per minute (rate_limits.per_org.requests_per_minute); there is room again in 30s"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v", err)
		}
	})
}

// Tokens are held while a call lasts, and what it took beyond is waited for.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Now, (&lately{}).recent)
		rules := user("kim", Limit{Tokens: 60})
		told := 0
		wait := func(ctx context.Context, hold int64) error {
			_, err := m.Wait(ctx, Who{"acme", "kim"}, rules, hold, func(e *Exceeded) {
				if told++; !e.Tokens || e.Status.Tokens.Limit != 60 || m.Waiting() != 1 {
					t.Errorf("%+v, %d wait", e, m.Waiting())
				}
			})
			return err
		}
		start := time.Now()
		if err := wait(t.Context(), 30); err != nil || told != 0 {
			t.Fatal(err)
		}
		m.Spend(Who{"acme", "kim"}, 90-30)  // 30 are owed
		admits(t, m, rules, 31*time.Second) // and one to begin with
		if err := wait(t.Context(), 30); err != nil || told != 1 || m.Waiting() != 0 {
			t.Fatal(err, told)
		}
		if took := time.Since(start).Round(time.Second); took != 31*time.Second {
			t.Errorf("waited for %s", took)
		}
		m.Spend(Who{"acme", "kim"}, 0-30) // nothing came of it
		admits(t, m, rules, 0)
		m.Spend(Who{"acme", "lee"}, 1000)
		m.Spend(Who{"other", "kim"}, 1000)
		admits(t, m, rules, 0)
		m.Spend(Who{"acme", "kim"}, 1<<40)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if err := wait(ctx, 1); !errors.Is(err, gone) || m.Waiting() != 0 {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// A new process starts with what the store says, and nobody owes it anything.
func TestNoFreeBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lately{requests: 50, tokens: 5000}
		m := New(time.Now, l.recent)
		admits(t, m, org(Limit{Requests: 60, Burst: 5}), time.Second)
		admits(t, m, org(Limit{Tokens: 30}), 2*time.Second)
		l.err = errors.New("no store")
		if _, err := m.Admit(t.Context(), Who{"acme", "kim"}, user("kim", Limit{Requests: 1})); !errors.Is(err, l.err) {
			t.Errorf("%v", err)
		}
	})
}

// Who uses nothing for a while is forgotten, and however many come, not all are kept.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Now, (&lately{}).recent)
		for i := range maxSubjects + 10 {
			admits(t, m, user(fmt.Sprint(i), Limit{Requests: 5}), 0)
		}
		if n := len(m.subjects); n > maxSubjects {
			t.Errorf("%d are kept", n)
		}
		m.Spend(Who{"acme", ""}, 1)
		time.Sleep(idle + time.Second)
		admits(t, m, user("new", Limit{Requests: 5}), 0)
		if n := len(m.subjects); n != 1 {
			t.Errorf("%d are kept after a while", n)
		}
	})
}

// What is used where nothing is limited counts where something is, and what is held
// for a user is held for its tenant.
func TestAllUseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Now, (&lately{}).recent)
		if p, err := m.Admit(t.Context(), Who{"acme", "kim"}, nil); p != nil || err != nil {
			t.Errorf("nobody is counted: %v %v", p, err)
		}
		both := Limit{Requests: 2, Tokens: 60}
		admits(t, m, org(both), 0)
		p, err := m.Admit(t.Context(), Who{"acme", "kim"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		admits(t, m, org(both), 30*time.Second)
		p.Cancel()
		admits(t, m, org(both), 0)
		time.Sleep(2 * time.Minute)
		admits(t, m, user("kim", Limit{Tokens: 1000}), 0)
		held, err := m.Wait(t.Context(), Who{"acme", "kim"}, user("kim", Limit{Tokens: 1000}), 50, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Spend(Who{"acme", "kim"}, 70-held)
		admits(t, m, org(both), 11*time.Second)
	})
}

// Who has stopped waiting holds nothing, also where there is room.
func TestWhoIsGoneHoldsNothing(t *testing.T) {
	l := &lately{}
	m := New(time.Now, l.recent)
	rules := org(Limit{Tokens: 100})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if held, err := m.Wait(ctx, whoOf(rules), rules, 50, nil); held != 0 || !errors.Is(err, gone) {
		t.Errorf("%d, %v", held, err)
	}
	if p := admits(t, m, rules, 0); p.Status.Tokens.Remaining < 100 {
		t.Errorf("%+v", p.Status)
	}
}
