package engine

import (
	"context"
	"encoding/json"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
)

// Budget is what a request allowed its run, and what of it is used.
type Budget struct {
	Limits BudgetLimits `json:"limits"`
	Used   BudgetUsed   `json:"used"`
	// Pots are the budgets that the run shares with others.
	Pots []*PotView `json:"pots,omitempty"`
}

// BudgetLimits are the limits that the request gave; 0 is none. A lower one of the
// profile applies all the same.
type BudgetLimits struct {
	MaxSteps          int `json:"max_steps,omitempty"`
	MaxToolCalls      int `json:"max_tool_calls,omitempty"`
	MaxRunTimeSeconds int `json:"max_run_time_seconds,omitempty"`
	// MaxOutputTokens bounds each reply: of it nothing is used up.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// MaxCostUSD and MaxTokens cap the run and all below it; Pots have what is used.
	MaxCostUSD message.Money `json:"max_cost_usd,omitempty"`
	MaxTokens  int64         `json:"max_tokens,omitempty"`
}

// BudgetUsed is what counts against the limits.
type BudgetUsed struct {
	// Steps are those since the last message of a person.
	Steps int `json:"steps"`
	// ToolCalls includes those that were refused.
	ToolCalls int `json:"tool_calls"`
	// RunTimeSeconds leaves waits for people out. 0 where the run has no
	// clock, or has not started.
	RunTimeSeconds float64 `json:"run_time_seconds,omitempty"`
}

func (o *Overrides) limits() BudgetLimits {
	return BudgetLimits{MaxSteps: o.MaxSteps, MaxToolCalls: o.MaxToolCalls, MaxRunTimeSeconds: o.MaxRunTimeSeconds, MaxOutputTokens: o.MaxOutputTokens,
		MaxCostUSD: o.MaxCostUSD, MaxTokens: o.MaxTokens}
}

// budget is that of a run whose request gave one, or that shares some with others,
// else nil. What can not be read is not shown: the run's driver is who complains.
func (e *Engine) budget(ctx context.Context, tenant string, row *store.Run) *Budget {
	var sp spec
	if json.Unmarshal(row.Spec, &sp) != nil {
		return nil
	}
	s, err := run.Decode(row.State)
	if err != nil || sp.Overrides.limits() == (BudgetLimits{}) && len(s.Settings.Pots) == 0 {
		return nil
	}
	b := &Budget{Limits: sp.Overrides.limits(), Used: BudgetUsed{Steps: s.TurnSteps, ToolCalls: s.ToolCalls, RunTimeSeconds: e.ran(&s)}}
	if len(s.Settings.Pots) == 0 {
		return b
	}
	at := e.now()
	if row.Ended != 0 {
		at = row.Ended
	}
	pots, err := e.store.Pots(ctx, tenant, row.ID, potRefs(s.Settings.Pots, at))
	if err != nil {
		return b
	}
	for i, c := range potCaps(s.Settings.Pots, at) {
		v := potView(&pots[i])
		v.Limits = capsOf(&c.Max, &pots[i].More)
		b.Pots = append(b.Pots, v)
	}
	return b
}

// PotView is a budget that several runs share, as clients see it.
type PotView struct {
	// Kind is run (ID and the runs below it), session or tenant_day (ID is the date).
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// Limits contain what people allowed beyond them. What is not there is not limited.
	Limits PotAmounts `json:"limits"`
	Used   PotAmounts `json:"used"`
	// Held is reserved by calls under way, and for closing answers.
	Held      PotAmounts `json:"held"`
	UpdatedAt string     `json:"updated_at,omitempty"`
}

// PotAmounts are amounts of a budget.
type PotAmounts struct {
	CostUSD      message.Money `json:"cost_usd,omitempty"`
	Tokens       int64         `json:"tokens,omitempty"`
	ToolCalls    int64         `json:"tool_calls,omitempty"`
	ToolFailures int64         `json:"tool_failures,omitempty"`
}

func potView(p *store.Pot) *PotView {
	return &PotView{Kind: p.Kind, ID: p.ID, UpdatedAt: timestamp(p.Updated),
		Used: PotAmounts{CostUSD: message.Money(p.Settled.Money), Tokens: p.Settled.Tokens, ToolCalls: p.Calls, ToolFailures: p.Failures},
		Held: PotAmounts{CostUSD: message.Money(p.Held.Money), Tokens: p.Held.Tokens}}
}

func capsOf(max, more *store.PotLimits) PotAmounts {
	cap := func(cap, more int64) int64 {
		if cap == 0 {
			return 0
		}
		return store.Sum(cap, more)
	}
	return PotAmounts{CostUSD: message.Money(cap(max.Money, more.Money)), Tokens: cap(max.Tokens, more.Tokens),
		ToolCalls: cap(max.Calls, more.Calls), ToolFailures: cap(max.Failures, more.Failures)}
}

// PotFilter selects pots; empty fields select all.
type PotFilter struct {
	Kind, ID, Cursor string
	Limit            int // 0: 50
}

// Pots lists the pots of a tenant, the newest first. Those of sessions and days have
// the limits of the configuration, those of runs what people allowed beyond theirs.
func (e *Engine) Pots(ctx context.Context, tenant string, f PotFilter) ([]*PotView, string, error) {
	rows, cursor, err := e.store.ListPots(ctx, tenant, store.PotFilter{Kind: f.Kind, ID: f.ID, Limit: f.Limit, Cursor: f.Cursor})
	if err != nil {
		return nil, "", internal("engine.Pots", err)
	}
	caps := e.cfg.Budgets.of(tenant)
	views := make([]*PotView, len(rows))
	for i := range rows {
		v := potView(&rows[i])
		var c Caps
		switch v.Kind {
		case store.PotSession:
			c = caps.Session
		case store.PotDay:
			c = caps.TenantDay
		case store.PotRun:
			if row, err := e.store.Run(ctx, tenant, v.ID); err == nil {
				if b := e.budget(ctx, tenant, row); b != nil && len(b.Pots) > 0 {
					v.Limits = b.Pots[len(b.Pots)-1].Limits
				}
			}
		}
		if v.Kind != store.PotRun {
			v.Limits = PotAmounts{CostUSD: c.MaxCost, Tokens: c.MaxTokens}
		}
		views[i] = v
	}
	return views, cursor, nil
}

// ran is the time in seconds that counts against max_run_time_seconds.
func (e *Engine) ran(s *run.State) float64 {
	left := s.Remaining
	switch {
	case s.Settings.MaxRunMS == 0 || s.Status == run.Queued:
		return 0
	case s.Deadline != 0:
		left = max(s.Deadline-e.now(), 0)
	case left == 0 && s.StopReason != "max_run_time":
		return 0 // it ended before what was left was kept
	}
	return float64(s.Settings.MaxRunMS-left) / 1000
}
