package profile

import "agentd/message"

// SharedBudgets are caps beyond those of a run, which its profile has (`max_cost_usd`, `max_tokens_per_run`). They count from when they are set: what was used before is not in them.
type SharedBudgets struct {
	// What is done for one session, by all its runs and their subagents.
	PerSession Caps `json:"per_session,omitzero" example:"{max_cost_usd: 5, max_tokens: 2000000}"`
	// What a tenant uses on one day, UTC.
	PerTenantDay Caps `json:"per_tenant_day,omitzero" example:"{max_cost_usd: 50}"`
	// Tenants with caps of their own, which take the place of both above; what is not set here is not capped for them.
	Tenants map[string]TenantCaps `json:"tenants,omitempty" example:"{acme: {per_tenant_day: {max_cost_usd: 200}}}"`
	// Percent of a cap at which `budget_warning` is told, once for each run and cap.
	WarnPercent int `json:"warn_percent" default:"80" min:"1" max:"100"`
	// Tokens of the shortest reply that is worth a call. If a cap leaves less than that, the call is not made.
	MinReplyTokens int `json:"min_reply_tokens" default:"512" min:"16"`
	// Tokens of reply that are kept back to close an answer, when the cap is near.
	ClosingTokens int `json:"closing_tokens" default:"1024" min:"16"`
	// Tokens of new tool results that the closing call may read; longer ones are cut then.
	ClosingInputTokens int `json:"closing_input_tokens" default:"2048" min:"0"`
}

// Caps are limits of what models use.
type Caps struct {
	// In US dollars. Runs of models whose price is not known are refused where it is set.
	MaxCostUSD message.Money `json:"max_cost_usd,omitempty" min:"0" example:"5"`
	// Tokens, read and written together.
	MaxTokens int `json:"max_tokens,omitempty" min:"0" example:"2000000"`
}

// TenantCaps are the caps of one tenant.
type TenantCaps struct {
	// Of each of its sessions.
	PerSession Caps `json:"per_session,omitzero"`
	// Of all of it on one day, UTC.
	PerTenantDay Caps `json:"per_tenant_day,omitzero"`
}
