package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/postgres/pgtest"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// bill is what the provider of a torture charges, kept by itself: what the pot says
// is compared with it.
type bill struct {
	t   *testing.T
	cap message.Money

	mu    sync.Mutex
	rand  *rand.Rand
	spent message.Money
	calls int
}

// random gives numbers from 0 to each n, exclusive.
func (b *bill) random(ns ...int64) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]int64, len(ns))
	for i, n := range ns {
		if n > 0 {
			out[i] = b.rand.Int64N(n)
		}
	}
	return out
}

// tokens is what a tokenizer makes of a message: always the same of the same text,
// at most one token of a byte, and of a reply not more than it was made of.
func tokens(m *message.Message) (n int64) {
	for _, c := range m.Content {
		text := c.Text + string(c.Arguments)
		h := fnv.New32()
		_, _ = h.Write([]byte(text))
		n += int64(len(text)) * int64(1+h.Sum32()%8) / 8
	}
	if m.Usage != nil {
		n = min(n, m.Usage.Output)
	}
	return n
}

// charge bills a call: what it reads at whatever rates, and a reply that has at most
// as many tokens as were asked for.
func (b *bill) charge(info *model.Info, req *model.Request) *message.Usage {
	size := int64(len(req.Tools)) * 10
	for i := range req.Messages {
		size += tokens(&req.Messages[i]) + 4
	}
	r := b.random(size+1, size+1, int64(req.MaxTokens)+1)
	u := &message.Usage{CacheRead: r[0], CacheWrite: min(r[1], size-r[0]), Output: r[2]}
	u.Input = size - u.CacheRead - u.CacheWrite
	u.Cost = model.Cost(info, u)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += u.Cost.Total
	b.calls++
	if b.spent > b.cap {
		b.t.Errorf("%s were spent after %d calls, the cap is %s", b.spent, b.calls, b.cap)
	}
	return u
}

// tortured answers like a model that does anything, of a provider that fails in
// every way.
func tortured(b *bill, info *model.Info) modelFunc {
	return func(_ context.Context, step int, req *model.Request) (*message.Message, error) {
		r := b.random(20, 10, 2000)
		if r[0] == 0 { // refused, for nothing
			return nil, &model.Error{Class: model.ClassRateLimited, Provider: "fake"}
		}
		u := b.charge(info, req)
		if r[0] == 1 { // charged, and nobody is told
			return nil, &model.Error{Class: model.ClassTruncated, Provider: "fake"}
		}
		m, _ := say("text")
		m.Usage = u
		if req.ToolChoice == model.ToolChoiceNone {
			return m, nil
		}
		var calls []message.Block
		switch {
		case step > 8:
		case r[1] < 3:
			calls = append(calls, call(fmt.Sprint("k", step), CreateSubagent, `{"subagent_type":"child","prompt":"go on"}`), call("e", "long", fmt.Sprint(r[2])))
		case r[1] < 8:
			calls = append(calls, call("e", "long", fmt.Sprint(r[2])))
		}
		m.Content = append(m.Content, calls...)
		return m, nil
	}
}

func torturedAgent(t *testing.T, b *bill, name string) *Agent {
	long := toolFunc{tool.Spec{Name: "long", Effect: tool.Read, Schema: []byte(`{"type":"integer"}`)}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult(fmt.Sprintf("%0*d", len(c.Args)*300, 1)), nil
	}}
	r := b.random(20_000, 80_000, 5_000, 25_000, 200_000)
	price := func(i int) message.Money { return message.Money(r[i]) * message.Dollar / 1000 }
	info := model.Info{Source: "torture", MaxOutput: 4000, Price: model.Price{Input: price(0), Output: price(1), CacheRead: price(2), CacheWrite: price(3)}}
	info.Long = []model.LongPrice{{Above: 2000, Price: model.Price{Input: 2 * info.Price.Input, Output: 2 * info.Price.Output, CacheRead: info.Price.CacheRead, CacheWrite: info.Price.CacheWrite}}}
	a := testAgent(t, tortured(b, &info), long)
	a.Models[0].Info, a.Models[0].MaxTokens = info, 4000
	a.Profile, a.Subagents = name, []string{"child"}
	a.Settings.Retry = run.Retry{Max: 1}
	if r[4]%3 == 0 {
		a.Caps.MaxCost = message.Money(r[4]) * message.Dollar / 100_000
	}
	return a
}

// complaints are of calls that cost more than was reserved, and of whatever else goes
// wrong.
type complaints struct{ t *testing.T }

func (c complaints) Write(b []byte) (int, error) {
	c.t.Errorf("the engine complains: %s", b)
	return len(b), nil
}

// fifty runs with children spend from one pot, which is too small for them. Each of
// the stores is that of a process of its own.
func torture(t *testing.T, seed uint64, stores ...store.Store) (calls int) {
	const runs = 50
	b := &bill{t: t, rand: rand.New(rand.NewPCG(seed, 7))}
	b.cap = message.Money(b.random(int64(20 * message.Dollar))[0]) + message.Dollar
	all := agents{"child": torturedAgent(t, b, "child")}
	for i := range runs {
		name := fmt.Sprint("a", i)
		all[name] = torturedAgent(t, b, name)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(seed))
	log := slog.New(slog.NewTextHandler(complaints{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	var engines []*Engine
	for _, s := range stores {
		e, err := New(Config{Store: s, Agents: all, Log: log, AbandonAfter: time.Second, Now: func() time.Time { return now },
			Budgets: Budgets{TenantDay: Caps{MaxCost: b.cap}, MinReplyTokens: 16, ClosingTokens: 32, ClosingInputTokens: 64}, MaxSubagentDepth: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		engines = append(engines, e)
	}
	ref := store.PotRef{Kind: store.PotDay, ID: now.Format(time.DateOnly)}
	pot := func() store.Pot {
		pots, err := stores[0].Pots(t.Context(), store.DefaultTenant, "", []store.PotRef{ref})
		if err != nil {
			t.Fatal(err)
		}
		return pots[0]
	}
	ids := make([]string, runs)
	for i := range runs {
		r, err := engines[i%len(engines)].Start(t.Context(), StartRequest{Profile: fmt.Sprint("a", i), Input: []message.Block{message.Text("go")}, Mode: Autonomous})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = r.ID
	}
	ends := map[string]int{}
	for i, id := range ids {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := engines[i%len(engines)].Wait(ctx, Ref{store.DefaultTenant, id})
		cancel()
		if err != nil {
			t.Fatalf("run %s does not end: %v; it is %+v", id, err, r)
		}
		ends[r.StopReason]++
		if p := pot(); p.Settled.Money+p.Held.Money > int64(b.cap) {
			t.Fatalf("the pot has %+v, the cap is %s", p, b.cap)
		}
	}
	p := pot()
	if p.Held != (store.Amounts{}) {
		t.Errorf("in the end %+v is held", p.Held)
	}
	if p.Settled.Money > int64(b.cap) || p.Settled.Money < int64(b.spent) {
		t.Errorf("the pot says %s, the provider %s, the cap is %s", message.Money(p.Settled.Money), b.spent, b.cap)
	}
	if testing.Verbose() {
		t.Logf("cap %s, spent %s in %d calls, settled %s, %v", b.cap, b.spent, b.calls, message.Money(p.Settled.Money), ends)
	}
	return b.calls
}

// TestBudgetTorture: fifty runs with children at a time, ten thousand calls at random
// prices, against one pot after the other: by the provider's own books a cap is never
// passed, and nothing stays held.
func TestBudgetTorture(t *testing.T) {
	one := func(s store.Store, err error) []store.Store {
		if err != nil {
			t.Fatal(err)
		}
		return []store.Store{s}
	}
	for _, tt := range []struct {
		name  string
		open  func(t *testing.T) []store.Store
		calls int
	}{
		{"memory", func(*testing.T) []store.Store { return one(sqlite.Open(sqlite.Memory, nil)) }, 10_000},
		{"file", func(t *testing.T) []store.Store {
			return one(sqlite.Open(filepath.Join(t.TempDir(), "agentd.db"), nil))
		}, 1_000},
		{"two processes on PostgreSQL", func(t *testing.T) []store.Store {
			url := pgtest.Start(t, "fsync = off").NewURL()
			return append(one(postgres.Open(t.Context(), url, nil)), one(postgres.Open(t.Context(), url, nil))...)
		}, 1_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stores := tt.open(t)
			for _, s := range stores {
				defer s.Close()
			}
			if underRace {
				tt.calls /= 5
			}
			for calls, seed := 0, uint64(1); calls < tt.calls && !t.Failed(); seed++ {
				n := torture(t, seed, stores...)
				if calls += n; n == 0 {
					t.Fatal("nothing was called")
				}
			}
			report, err := stores[0].(store.Checker).Check(t.Context(), store.CheckOptions{State: Examine})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				if f.Check == "budgets" || f.Severity == store.SeverityError {
					t.Errorf("the store: %+v", f)
				}
			}
		})
	}
}
