package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/rate"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// RateLimits bound what is used in a minute by one user, and by a tenant with all
// its users. What they use with other profiles counts, too.
type RateLimits struct{ PerUser, PerOrg rate.Limit }

// callerPrefix is for users that a client did not name: then the API key is the user.
const callerPrefix = "key:"

// maxUser is how long a user's name may be, in bytes.
const maxUser = 256

// CallerOf is the user of an API key whose client names none.
func CallerOf(key string) string {
	if key == "" {
		return ""
	}
	return callerPrefix + key
}

// checkUser looks at a name that a client gave.
func checkUser(name string) error {
	bad := func(what, hint string) error {
		return &fault.Error{Kind: fault.Invalid, Field: "user", Err: errors.New(what), Hint: hint}
	}
	switch {
	case len(name) > maxUser:
		return bad("it is longer than 256 bytes", "Send an id, or a hash of the name.")
	case strings.ContainsFunc(name, unicode.IsControl):
		return bad("it has control characters", "Send an id of letters and digits.")
	case strings.HasPrefix(name, callerPrefix):
		return bad("names that begin with "+callerPrefix+" stand for API keys", "Send another id.")
	}
	return nil
}

// rules are the limits that hold for a user of a tenant.
func (l *RateLimits) rules(tenant, user string) []rate.Rule {
	var out []rate.Rule
	if !l.PerUser.None() {
		out = append(out, rate.Rule{Subject: rate.Subject{Tenant: tenant, User: user, One: true}, Limit: l.PerUser, Key: "rate_limits.per_user"})
	}
	if !l.PerOrg.None() {
		out = append(out, rate.Rule{Subject: rate.Subject{Tenant: tenant}, Limit: l.PerOrg, Key: "rate_limits.per_org"})
	}
	return out
}

// admit lets a run in that is about to be accepted, or says why not. The permit may
// be nil.
func (e *Engine) admit(ctx context.Context, req *StartRequest, agent *Agent) (*rate.Permit, error) {
	p, err := e.meters.Admit(ctx, rate.Who{Tenant: req.Tenant, User: req.user()}, agent.Rates.rules(req.Tenant, req.user()))
	var over *rate.Exceeded
	if errors.As(err, &over) {
		return nil, &fault.Error{Kind: fault.RateLimited, Err: over, Hint: "Try again later, or raise " + over.Rule.Key + " in the profile."}
	}
	if err != nil {
		return nil, internal("engine.Start", err)
	}
	return p, nil
}

// user is who the run is for.
func (req *StartRequest) user() string {
	if req.User != "" {
		return req.User
	}
	return req.Caller
}

// used is what a user, or a tenant, used since a time; see rate.Recent.
func (e *Engine) used(ctx context.Context, s rate.Subject, since time.Time) (requests, tokens int64, err error) {
	return e.store.Recent(ctx, s.Tenant, store.RecentFilter{Since: since.UnixMilli(), One: s.One, User: s.User})
}

// pace keeps a model call within the limits of its user and tenant.
type pace struct {
	d     *driver
	who   rate.Who
	rules []rate.Rule

	mu   sync.Mutex
	held int64
	over bool // it is settled: who was abandoned may still come to hold something
}

// pace is for the driver's goroutine; what it returns is for the call's.
func (d *driver) pace() *pace {
	return &pace{d: d, who: rate.Who{Tenant: d.ref.Tenant, User: d.row.User}, rules: d.agent.Rates.rules(d.ref.Tenant, d.row.User)}
}

// wait returns when the call may start. Readers of the run are told why it waits. It
// returns errHandedOver if that is the next driver's call.
func (p *pace) wait(ctx context.Context, step int, req *model.Request) error {
	if len(p.rules) == 0 {
		return nil
	}
	d := p.d
	ctx, stop := d.aheadOf(ctx)
	defer stop()
	held, err := d.e.meters.Wait(ctx, p.who, p.rules, model.PromptTokens(req), p.tell(step))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		d.e.meters.Spend(p.who, -held)
		return errStopped
	}
	p.held = held
	return err
}

// room waits until the call might start, and holds nothing. What is reserved of a
// budget meanwhile would keep others from what is not used. The error is errHandedOver.
func (p *pace) room(ctx context.Context, step int) error {
	if len(p.rules) == 0 {
		return nil
	}
	ctx, stop := p.d.aheadOf(ctx)
	defer stop()
	// A store that does not answer is for the call to find out.
	if _, err := p.d.e.meters.Wait(ctx, p.who, p.rules, 0, p.tell(step)); errors.Is(err, errHandedOver) {
		return err
	}
	return nil
}

// tell tells readers why a call waits.
func (p *pace) tell(step int) func(*rate.Exceeded) {
	d := p.d
	return func(e *rate.Exceeded) {
		d.stream.publishLive(event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: step, Type: event.CheckpointInfo,
			Data: &event.Checkpoint{Kind: "rate_limited", Prompt: "The next model call waits: " + e.Error() + "."}})
	}
}

// settle counts what the call used in the place of what was held for it.
func (p *pace) settle(in run.Input) {
	var used int64
	count := func(u *message.Usage) {
		if u != nil {
			used += u.Input + u.Output + u.CacheRead + u.CacheWrite
		}
	}
	switch in := in.(type) {
	case run.ModelDone:
		count(in.Message.Usage)
	case run.ModelFailed:
		count(in.Usage)
		if in.Partial != nil {
			count(in.Partial.Usage)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.d.e.meters.Spend(p.who, used-p.held)
}

// CallsWaiting is how many model calls wait for rate_limits.
func (e *Engine) CallsWaiting() int { return e.meters.Waiting() }
