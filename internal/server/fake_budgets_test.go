package server_test

import (
	"context"
	"strings"
	"testing"

	"agentd/internal/engine"
	"agentd/message"
)

// Pots implements server.Budgets: something was used on one day.
func (e *fake) Pots(_ context.Context, _ string, f engine.PotFilter) ([]*engine.PotView, string, error) {
	if f.Kind == "session" {
		return nil, "", nil
	}
	return []*engine.PotView{{Kind: "tenant_day", ID: "2026-01-02", Limits: engine.PotAmounts{CostUSD: 5 * message.Dollar}, Used: engine.PotAmounts{CostUSD: message.Dollar / 4, Tokens: 9},
		UpdatedAt: "2026-01-02T03:04:05.000Z"}}, "next", nil
}

func TestBudgetsAreListed(t *testing.T) {
	a := start(t, nil)
	for path, want := range map[string]string{
		"/budgets?kind=tenant_day&limit=1": `{"budgets":[{"kind":"tenant_day","id":"2026-01-02","limits":{"cost_usd":5},"used":{"cost_usd":0.25,"tokens":9},"held":{},"updated_at":"2026-01-02T03:04:05.000Z"}],"cursor":"next"}`,
		"/budgets?kind=session":            `{"budgets":[]}`,
	} {
		if r := a.do("GET", path, ""); r.status != 200 || strings.TrimSpace(string(r.body)) != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := a.do("GET", "/budgets?kind=tea", ""); r.status != 400 || !strings.Contains(string(r.body), "kind") {
		t.Errorf("%d %s", r.status, r.body)
	}
}
