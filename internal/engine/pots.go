package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// Caps are limits of money and tokens; 0 is none.
type Caps struct {
	MaxCost   message.Money
	MaxTokens int64
}

// Budgets are the pots that runs share beyond their own tree, and how means are
// reserved. The zero value has no pots and the defaults.
type Budgets struct {
	// Session caps what is done for one session, TenantDay what a tenant may use on
	// one day (UTC). Tenants has those of tenants with caps of their own, which take
	// the place of both.
	Session, TenantDay Caps
	Tenants            map[string]TenantBudgets
	// MinReplyTokens is the shortest reply that is worth a call: a call whose reply
	// would have to be shorter is not made. 0: 512.
	MinReplyTokens int
	// ClosingTokens is the length of reply that is kept back for closing an answer,
	// ClosingInputTokens how much of new results it may read then. 0: 1024 and 2048.
	ClosingTokens, ClosingInputTokens int
	// WarnPercent is how much of a cap is used when budget_warning is told. 0: 80.
	WarnPercent int
}

// TenantBudgets are the caps of one tenant.
type TenantBudgets struct{ Session, TenantDay Caps }

func (b Budgets) withDefaults() Budgets {
	for _, d := range []struct {
		have *int
		want int
	}{{&b.MinReplyTokens, 512}, {&b.ClosingTokens, 1024}, {&b.ClosingInputTokens, 2048}, {&b.WarnPercent, 80}} {
		if *d.have <= 0 {
			*d.have = d.want
		}
	}
	return b
}

// of are the caps of a tenant.
func (b *Budgets) of(tenant string) TenantBudgets {
	if t, ok := b.Tenants[tenant]; ok {
		return t
	}
	return TenantBudgets{b.Session, b.TenantDay}
}

func (c *Caps) lower(to Caps) {
	if to.MaxCost > 0 && (c.MaxCost == 0 || to.MaxCost < c.MaxCost) {
		c.MaxCost = to.MaxCost
	}
	if to.MaxTokens > 0 && (c.MaxTokens == 0 || to.MaxTokens < c.MaxTokens) {
		c.MaxTokens = to.MaxTokens
	}
}

// above are the pots that a run shares with others from its start on: those of the
// runs above it, or for a root those of its session and tenant.
func (e *Engine) above(tenant, session, parent string, inherited []run.Pot) []run.Pot {
	if parent != "" || len(inherited) > 0 { // a proposed run has no parent, and shares all the same
		return inherited
	}
	var pots []run.Pot
	b := e.cfg.Budgets.of(tenant)
	if c := b.TenantDay; c != (Caps{}) {
		pots = append(pots, run.Pot{Kind: store.PotDay, MaxCost: int64(c.MaxCost), MaxTokens: c.MaxTokens})
	}
	if c := b.Session; c != (Caps{}) {
		pots = append(pots, run.Pot{Kind: store.PotSession, ID: session, MaxCost: int64(c.MaxCost), MaxTokens: c.MaxTokens})
	}
	return pots
}

// pots completes the settings of a run that starts. Limits of tool calls and failures
// are the machine's own to count, unless there may be runs below that share them.
func (d *driver) pots(s *run.Settings) {
	pots := d.e.above(d.ref.Tenant, d.row.SessionID, d.row.ParentID, d.spec.Pots)
	caps := d.agent.Caps
	caps.lower(d.spec.Overrides.caps())
	own := run.Pot{Kind: store.PotRun, ID: d.ref.ID, MaxCost: int64(caps.MaxCost), MaxTokens: caps.MaxTokens, Ask: s.AskMore}
	if len(d.agent.Subagents) > 0 && !d.spec.Overrides.NoTools {
		own.MaxToolCalls, own.MaxFailures = int64(s.MaxToolCalls), int64(s.MaxFailures)
		s.MaxToolCalls, s.MaxFailures = 0, 0
	}
	if own != (run.Pot{Kind: own.Kind, ID: own.ID, Ask: own.Ask}) {
		pots = append(pots[:len(pots):len(pots)], own)
	}
	s.Pots = pots
}

func (o *Overrides) caps() Caps { return Caps{o.MaxCostUSD, o.MaxTokens} }

// priced refuses to cap the money of models whose price nobody knows: the cap would
// not hold.
func priced(agent *Agent, pots []run.Pot, own Caps) error {
	whose := ""
	switch {
	case own.MaxCost > 0:
		whose = "max_cost_usd of the run"
	default:
		for i := range pots {
			if pots[i].MaxCost > 0 {
				whose = "max_cost_usd of the " + pots[i].Kind
			}
		}
	}
	if whose == "" {
		return nil
	}
	for i := range agent.Models {
		if m := &agent.Models[i]; !m.Info.Priced() {
			return &fault.Error{Kind: fault.Invalid, Field: "budget.max_cost_usd",
				Err:  fmt.Errorf("%s can not be held: the price of %s is not known", whose, m.Name),
				Hint: "Write its price into the profile (price: {input: …, output: …}, dollars for a million tokens), or limit max_tokens instead."}
		}
	}
	return nil
}

// day is the day that counts, UTC.
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// caps gives the run's pots as the store takes them, at a time.
func potCaps(pots []run.Pot, now int64) []store.PotCap {
	out := make([]store.PotCap, len(pots))
	for i := range pots {
		p := &pots[i]
		out[i] = store.PotCap{PotRef: store.PotRef{Kind: p.Kind, ID: p.ID},
			Max: store.PotLimits{Money: p.MaxCost, Tokens: p.MaxTokens, Calls: p.MaxToolCalls, Failures: p.MaxFailures}}
		if p.Kind == store.PotDay {
			out[i].ID = day(now)
		}
	}
	return out
}

func potRefs(pots []run.Pot, now int64) []store.PotRef {
	out := make([]store.PotRef, len(pots))
	for i, c := range potCaps(pots, now) {
		out[i] = c.PotRef
	}
	return out
}

// settlement is the row's form of what became of a model call.
func (d *driver) settlement(w run.Settle, now int64) store.Settlement {
	s := store.Settlement{RunID: d.ref.ID, How: w.How, Last: w.Last, Time: now, Pots: potRefs(d.state.Settings.Pots, now)}
	if w.Usage != nil {
		s.Used = d.spent(w.Usage)
	}
	return s
}

// spent is what counts of a call: adapters that do not say what it cost are helped.
func (d *driver) spent(u *message.Usage) store.Amounts {
	cost := u.Cost.Total
	if g := d.grant; cost == 0 && g != nil && g.info != nil {
		cost = model.Cost(g.info, u).Total
	}
	return store.Amounts{Money: int64(cost), Tokens: u.Prompt() + u.Output}
}

// raise is the row's form of what a person allowed.
func raise(w run.RaisePot, now int64) store.PotRaise {
	r := store.PotRaise{PotRef: store.PotRef{Kind: w.Pot, ID: w.ID}, Time: now}
	switch w.Limit {
	case run.StopMaxCost:
		r.By.Money = w.By
	case run.StopMaxTokens:
		r.By.Tokens = w.By
	case run.StopMaxToolCalls:
		r.By.Calls = w.By
	case run.StopMaxFailures:
		r.By.Failures = w.By
	}
	return r
}

// count adds the tool calls and failures of a transition to the pots that limit them.
func (d *driver) count(tx *store.Tx, calls, failures int) {
	calls, failures = d.state.ToolCalls-calls, d.state.Failures-failures
	if calls == 0 && failures == 0 {
		return
	}
	c := store.PotCount{Calls: int64(calls), Failures: int64(failures), Time: d.e.now()}
	for i := range d.state.Settings.Pots {
		if p := &d.state.Settings.Pots[i]; p.MaxToolCalls > 0 || p.MaxFailures > 0 {
			c.Pots = append(c.Pots, store.PotRef{Kind: p.Kind, ID: p.ID})
		}
	}
	if len(c.Pots) > 0 {
		tx.Counts = append(tx.Counts, c)
	}
}

// raise reads how much more a person allows who was asked for it.
func (e *Engine) raise(row *store.Interrupt, args json.RawMessage) (int64, error) {
	bad := func(err error) error {
		return &fault.Error{Kind: fault.Invalid, Field: "args", Err: err, Hint: `Amend it as {"raise_by": 2.5}: dollars, tokens or a number, as the limit is. The interrupt is still open.`}
	}
	var asked struct{ Args event.Budget }
	if err := json.Unmarshal(row.ToolCall, &asked); err != nil {
		return 0, internal("engine.Answer", err)
	}
	var given struct {
		RaiseBy json.Number `json:"raise_by"`
	}
	if err := json.Unmarshal(args, &given); err != nil || given.RaiseBy == "" {
		return 0, bad(errors.New("raise_by is missing, or no number"))
	}
	if asked.Args.Limit == run.StopMaxCost {
		m, err := message.ParseMoney(given.RaiseBy.String())
		if err == nil && (m <= 0 || m > 1<<53) { // nine million dollars: sums of it stay numbers
			err = errors.New("raise_by must be above 0, and not above 9000000")
		}
		if err != nil {
			return 0, bad(err)
		}
		return int64(m), nil
	}
	n, err := given.RaiseBy.Int64()
	if err != nil || n <= 0 || n > 1<<53 {
		return 0, bad(errors.New("raise_by must be a whole number above 0"))
	}
	return n, nil
}
