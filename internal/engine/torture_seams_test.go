package engine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/internal/store/sqlite"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// moody is a model of a provider that bills into b, refuses some messages and all
// pictures, sometimes when it has begun, and guesses what it used.
func moody(b *bill, info *model.Info) model.Provider {
	return providerFunc(func(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (*message.Message, error) {
		r := b.random(20, 10, 2000, 30)
		if r[3] == 0 { // it takes until it is cancelled, or the process ends
			b.charge(info, req)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if bad := images(req) > 0 || strings.Contains(conversationOf(req), "POISON"); bad && r[0] < 15 {
			return nil, refusal("the image or message is bad: " + strings.Repeat("because ", int(r[1])*5))
		}
		switch r[0] {
		case 0, 1:
			return nil, &model.Error{Class: model.ClassServer, Provider: "fake"}
		case 2, 3:
			u := b.charge(info, req)
			m, _ := say("h")
			emit(model.StreamEvent{Type: model.StreamStart, Partial: m})
			return nil, &model.Error{Class: model.ClassInvalid, Provider: "fake", Message: "image, midway", Usage: &message.Usage{Input: u.Input / 2}}
		case 4:
			b.charge(info, req)
			return nil, &model.Error{Class: model.ClassTimeout, Provider: "fake"}
		}
		u := b.charge(info, req)
		m, _ := say(strings.Repeat("text ", int(r[1])))
		m.Model, m.Usage = req.Model, u
		if r[0] == 5 {
			guess := *u
			guess.Input, guess.CacheRead, guess.CacheWrite, guess.Estimated = u.Input/3, u.CacheRead/3, u.CacheWrite/3, true
			guess.Cost = model.Cost(info, &guess)
			m.Usage = &guess
		}
		if r[1] < 6 && req.ToolChoice != model.ToolChoiceNone {
			m.Content = append(m.Content, call(fmt.Sprint("k", r[2]), "long", fmt.Sprint(r[2])))
		}
		return m, nil
	})
}

// TestBudgetTortureOfSessions: runs in the same sessions that are steered, cancelled,
// rolled back, restarted, refused and cured, and fall back on a dearer model. By the
// provider's own books no cap is passed; nothing stays held, and every run ends.
func TestBudgetTortureOfSessions(t *testing.T) {
	rounds := uint64(8)
	if underRace {
		rounds = 3
	}
	for seed := range rounds {
		tortureSessions(t, seed)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func tortureSessions(t *testing.T, seed uint64) {
	s, err := sqlite.Open(sqlite.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := &bill{t: t, rand: rand.New(rand.NewPCG(seed, 3)), cap: message.Money(10+seed*37%200) * message.Dollar}
	rnd := rand.New(rand.NewPCG(seed, 4))
	cheap := model.Info{Source: "torture", MaxOutput: 4000, Price: model.Price{Input: 3 * message.Dollar, Output: 15 * message.Dollar, CacheRead: message.Dollar, CacheWrite: 4 * message.Dollar}}
	dear := model.Info{Source: "torture", MaxOutput: 8000, Price: model.Price{Input: 900 * message.Dollar, Output: 5000 * message.Dollar, CacheRead: 90 * message.Dollar, CacheWrite: 1000 * message.Dollar}}
	long := toolFunc{tool.Spec{Name: "long", Effect: tool.Read, Schema: []byte(`{"type":"integer"}`)}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult(fmt.Sprintf("%0*d", len(c.Args)*300, 1)), nil
	}}
	a := testAgent(t, nil, long)
	a.Models = []Model{{Provider: moody(b, &cheap), ID: "m", Name: "fake/m", Info: cheap}, {Provider: moody(b, &dear), ID: "n", Name: "fake/n", Info: dear}}
	a.Models[0].MaxTokens, a.Models[1].MaxTokens = 2000, 4000
	a.Settings.Retry, a.Settings.MaxSteps, a.Settings.MaxSameCalls = run.Retry{Max: 1, BaseMS: 1, LimitMS: 1}, 6, 2
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	start := func() *Engine {
		e, err := New(Config{Store: s, Agents: agents{"test": a}, Log: log, AbandonAfter: 100 * time.Millisecond, Now: func() time.Time { return now },
			Budgets: Budgets{TenantDay: Caps{MaxCost: b.cap}, Session: Caps{MaxTokens: 150_000}, MinReplyTokens: 16, ClosingTokens: 32, ClosingInputTokens: 64}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := start()
	var sessions, runs []string
	for range 150 {
		req := StartRequest{Mode: Autonomous, Input: blocks(strings.Repeat("go ", rnd.IntN(50)+1)), WhenBusy: []WhenBusy{Enqueue, Steer, Interrupt, Rollback}[rnd.IntN(4)]}
		switch rnd.IntN(10) {
		case 0:
			req.Input = append(req.Input, picture())
		case 1:
			req.Input = blocks("POISON")
		}
		if len(sessions) > 0 && rnd.IntN(8) > 0 {
			req.SessionID = sessions[rnd.IntN(len(sessions))]
		}
		r, err := e.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r.ID)
		if req.SessionID == "" {
			sessions = append(sessions, r.SessionID)
		}
		switch rnd.IntN(25) {
		case 0:
			e.Close()
			e = start()
		case 1, 2, 3:
			_, _ = e.Cancel(t.Context(), ref(runs[rnd.IntN(len(runs))]), "enough") // one that has ended is a conflict
		case 4, 5, 6, 7:
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, _ = e.Wait(ctx, ref(r.ID))
			cancel()
		}
	}
	for _, id := range runs {
		for end := false; !end; {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			_, err := e.Wait(ctx, ref(id))
			if end = err == nil; !end {
				_, _ = e.Cancel(t.Context(), ref(id), "it takes for ever")
			}
			cancel()
		}
	}
	e.Close()
	pots, err := s.Pots(t.Context(), store.DefaultTenant, "", []store.PotRef{{Kind: store.PotDay, ID: now.Format(time.DateOnly)}})
	if err != nil {
		t.Fatal(err)
	}
	p := pots[0]
	if p.Held != (store.Amounts{}) || p.Settled.Money > int64(b.cap) || p.Settled.Money < int64(b.spent) {
		t.Errorf("the pot says %s and %+v held, the provider %s, the cap is %s", message.Money(p.Settled.Money), p.Held, b.spent, b.cap)
	}
	for _, id := range sessions {
		pots, err := s.Pots(t.Context(), store.DefaultTenant, "", []store.PotRef{{Kind: store.PotSession, ID: id}})
		if err != nil || pots[0].Held != (store.Amounts{}) || pots[0].Settled.Tokens > 150_000 {
			t.Errorf("the session's pot has %+v, %v", pots, err)
		}
	}
	if strings.Contains(logged.String(), "more than the most") {
		t.Errorf("the engine complains: %s", logged.String())
	}
	report, err := s.Check(t.Context(), store.CheckOptions{State: Examine})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Check == "budgets" || f.Severity == store.SeverityError {
			t.Errorf("the store: %+v", f)
		}
	}
	if testing.Verbose() {
		t.Logf("seed %d: spent %s in %d calls, settled %s, %d sessions", seed, b.spent, b.calls, message.Money(p.Settled.Money), len(sessions))
	}
}
