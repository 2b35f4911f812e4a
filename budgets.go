package agentd

import (
	"context"
	"maps"
	"slices"

	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/message"
	"agentd/model"
)

type (
	// Pot is how much of a budget is used that several runs share.
	Pot = engine.PotView
	// PotFilter selects budgets.
	PotFilter = engine.PotFilter
)

// Budgets lists budgets that runs share, the newest first.
func (rt *Runtime) Budgets(ctx context.Context, f PotFilter) ([]*Pot, string, error) {
	return rt.engine.Pots(ctx, rt.tenant, f)
}

// catalogue is what is known of models, with the prices of the profiles.
func catalogue(conf *profile.Config) *model.Catalogue {
	known := model.NewCatalogue()
	var extra []model.Info
	for _, name := range conf.Names() {
		p := conf.Profiles[name]
		for _, m := range slices.Concat([]profile.Model{p.PrimaryModel}, p.FallbackModels, p.Models) {
			if m.Price == nil {
				continue
			}
			info := known.Lookup(m.Provider, m.Model)
			or := func(price message.Money) message.Money {
				if price == 0 {
					return m.Price.Input
				}
				return price
			}
			info.Price = model.Price{Input: m.Price.Input, Output: m.Price.Output, CacheRead: or(m.Price.CacheRead),
				CacheWrite: or(m.Price.CacheWrite), CacheWrite1h: or(m.Price.CacheWrite)}
			info.Long, info.Source = nil, "configuration"
			info.Tiers = []model.Tier{{PerMille: 1000}} // whoever writes a price knows the tier
			extra = append(extra, info)
		}
	}
	return model.NewCatalogue(extra...)
}

func budgets(b *profile.SharedBudgets) engine.Budgets {
	caps := func(c *profile.Caps) engine.Caps {
		return engine.Caps{MaxCost: c.MaxCostUSD, MaxTokens: int64(c.MaxTokens)}
	}
	out := engine.Budgets{Session: caps(&b.PerSession), TenantDay: caps(&b.PerTenantDay), Tenants: map[string]engine.TenantBudgets{},
		WarnPercent: b.WarnPercent, MinReplyTokens: b.MinReplyTokens, ClosingTokens: b.ClosingTokens, ClosingInputTokens: b.ClosingInputTokens}
	for name, t := range b.Tenants {
		out.Tenants[name] = engine.TenantBudgets{Session: caps(&t.PerSession), TenantDay: caps(&t.PerTenantDay)}
	}
	return out
}

// unpriced reports money caps that can not be held, because nobody knows what a model
// costs.
func unpriced(conf *profile.Config) []Problem {
	known := catalogue(conf)
	b := &conf.Settings.Budgets
	shared := b.PerSession.MaxCostUSD > 0 || b.PerTenantDay.MaxCostUSD > 0
	for _, name := range slices.Sorted(maps.Keys(b.Tenants)) {
		t := b.Tenants[name]
		shared = shared || t.PerSession.MaxCostUSD > 0 || t.PerTenantDay.MaxCostUSD > 0
	}
	var out []Problem
	for _, name := range conf.Names() {
		p := conf.Profiles[name]
		if p.MaxCostUSD == 0 && !shared {
			continue
		}
		for _, m := range slices.Concat([]profile.Model{p.PrimaryModel}, p.FallbackModels, p.Models) {
			if info := known.Lookup(m.Provider, m.Model); info.Priced() || m.Provider == "script" {
				continue
			}
			problem := Problem{File: p.File, Key: "max_cost_usd", Severity: profile.SeverityError,
				Message: "can not be held: the price of " + m.Provider + "/" + m.Model + " is not known",
				Hint:    "write its price (price: {input: …, output: …}, dollars for a million tokens), or use max_tokens_per_run"}
			if p.MaxCostUSD == 0 {
				problem.Severity = profile.SeverityWarning
				problem.Message = "runs of this profile are refused where agentd.yaml caps money: the price of " + m.Provider + "/" + m.Model + " is not known"
			}
			out = append(out, problem)
		}
	}
	return out
}
