package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// A run with pots reserves what a model call may cost at most, and what closing the
// answer after it may cost, before it makes the call. The store decides whether that
// fits: what is read before is for making the reply as short as it has to be.

// granted is a reservation with the request that it is for.
type granted struct {
	run.Input
	grant *grant
}

// grant is a request that can be paid. It is made once: hooks of the application may
// change a request, so that another one could cost more.
type grant struct {
	req *model.Request
	ask *asked
	// cut: parts of results were left out, for a call that closes an answer.
	cut bool
	// err is why there is no request.
	err error
	// call is what was reserved for it, info the model's. input is what that takes
	// the request to have at most, least the shortest reply that is worth a call.
	call  store.Amounts
	info  *model.Info
	input int64
	least int64
	// held is whether it was: where nothing is capped nothing is.
	held bool
}

// reserveTries is how often a reservation is fitted again that others were ahead of.
const reserveTries = 16

// reserve prepares the next model call and gives the function that reserves for it.
func (d *driver) reserve(eff run.Reserve) func() {
	ask, given := d.ask(eff.Index, eff.Closing)
	r := &reservation{d: d, eff: eff, m: ask.m, ask: ask, pots: d.state.Settings.Pots, measured: d.measured, overspent: d.overspent,
		defaulted: given.Thinking == "" && ask.parts.Options.Thinking != "", fence: d.row.Epoch, pace: d.pace()}
	if d.e.hooked() {
		r.measured = measured{} // what a reply told does not hold for another request
	}
	ctx, _, settle := d.effect("budget")
	return func() {
		if !d.holds() {
			return
		}
		a := d.attempt(settle)
		d.e.workers.run(func() {
			stop := a.abandonAfter(ctx, r.ending)
			in, err := r.make(ctx)
			stop()
			if errors.Is(err, store.ErrConflict) { // the run has ended meanwhile
				in, err = r.ending(), nil
			}
			if err == nil {
				a.end(in)
				return
			}
			if errors.Is(err, errHandedOver) {
				a.leave("budget", nil, nil)
				return
			}
			if d.ctx.Err() == nil {
				d.commits.fail(err, nil)
			}
			if a.over.CompareAndSwap(false, true) {
				d.e.wg.Done()
			}
		})
	}
}

// reservation is one under way.
type reservation struct {
	d         *driver
	eff       run.Reserve
	m         Model
	ask       *asked
	req       *model.Request
	pots      []run.Pot
	measured  measured
	overspent bool
	// defaulted: nobody asked the model to think.
	defaulted bool
	fence     int64
	pace      *pace

	input, reply int64 // bounds
	keeps        bool  // a call that closes the answer may have to follow
}

// make reserves, and gives the machine's input. An error is one of the store.
func (r *reservation) make(ctx context.Context) (run.Input, error) {
	d := r.d
	if r.overspent {
		in := run.Exhausted{At: d.at(), PotUse: run.PotUse{Limit: run.StopMaxCost, Cap: 1, Used: 1}, Final: true}
		if i := slices.IndexFunc(r.pots, holdsOf); i >= 0 {
			ref := potRefs(r.pots, d.e.now())[i]
			if in.Pot, in.ID = ref.Kind, ref.ID; r.pots[i].MaxCost == 0 {
				in.Limit = run.StopMaxTokens
			}
		}
		return in, nil
	}
	if err := r.pace.room(ctx, r.eff.Step); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return r.ending(), nil
	}
	var err error
	if r.req, err = r.ask.request(ctx, nil); err == nil {
		err = r.unpriced()
	}
	if err != nil {
		return granted{run.Reserved{At: d.at()}, &grant{ask: r.ask, err: err}}, nil
	}
	r.input = r.bound(r.req)
	o := prompt.Options{MaxTokens: r.req.MaxTokens}
	r.reply = replyBound(&o, &r.m.Info)
	r.keeps = r.eff.Closing == "" && len(r.req.Tools) > 0 && r.req.ToolChoice != model.ToolChoiceNone
	for try := 0; ; try++ {
		in, err := r.once(ctx)
		var full *store.ExhaustedError
		switch {
		case err == nil:
			return in, nil
		case errors.As(err, &full) && try < reserveTries:
			continue // others were ahead: what is left is less
		case errors.As(err, &full):
			return r.exhausted(full, false), nil
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound), try >= commitTries:
			return nil, err
		}
		select {
		case <-time.After(commitPause << try):
		case <-d.ctx.Done():
			return nil, err
		}
	}
}

const unpricedCode = "unpriced"

// unpriced is why the money of the call can not be capped, or nil: the profile may
// have another model since the run was accepted. Such a model is left for the next.
func (r *reservation) unpriced() error {
	for i := range r.pots {
		if r.pots[i].MaxCost > 0 && !r.m.Info.Priced() {
			return &model.Error{Class: model.ClassQuota, Provider: r.m.Name,
				Code: unpricedCode, Message: "its price is not known, so max_cost_usd can not be held: write its price into the profile, or limit tokens instead"}
		}
	}
	return nil
}

// once reads the pots, fits the call and reserves.
func (r *reservation) once(ctx context.Context) (run.Input, error) {
	d, now := r.d, r.d.e.now()
	caps := potCaps(r.pots, now)
	pots, err := d.e.store.Pots(ctx, d.ref.Tenant, d.ref.ID, potRefs(r.pots, now))
	if err != nil {
		if ctx.Err() != nil && d.ctx.Err() == nil {
			// The run is ending, and waits for the answer alone.
			return r.ending(), nil
		}
		return nil, err
	}
	if r.eff.Closing != "" {
		for i := range caps {
			caps[i].Max.Calls = 0 // it calls none
		}
	}
	req, reply, full := r.fit(pots, caps)
	if full != nil {
		return r.exhausted(full, false), nil
	}
	cut := req != r.req
	input := r.inputOf(req)
	call, keep := r.amounts(input, reply)
	if r.holds() {
		err = d.e.put(ctx, &store.Tx{Tenant: d.ref.Tenant, Fences: []store.Fence{{RunID: d.ref.ID, Epoch: r.fence}},
			Reserves: []store.Reservation{{RunID: d.ref.ID, Key: r.key(), Call: call, Keep: keep, Pots: caps, Time: now}}})
	}
	if err != nil {
		return nil, err
	}
	in := run.Reserved{At: d.at()}
	if r.holds() && req.MaxTokens != int(reply) {
		c := *req
		c.MaxTokens, in.MaxTokens = int(reply), int(reply)
		if r.defaulted && reply < thinkingRoom {
			c.Thinking = "" // thoughts that nobody asked for would use up a short answer
		}
		req = &c
	}
	for i := range pots {
		r.look(&in, &pots[i], &caps[i].Max)
	}
	return granted{in, &grant{req: req, ask: r.ask, cut: cut, call: call, info: &r.m.Info, input: input,
		least: min(int64(d.e.cfg.Budgets.MinReplyTokens), reply), held: r.holds()}}, nil
}

// ending answers for a run that is ending, and does not care for what.
func (r *reservation) ending() run.Input {
	return run.Exhausted{At: r.d.at(), PotUse: run.PotUse{Limit: run.StopMaxCost, Cap: 1}, Final: true}
}

// holds is whether there is anything to hold: limits of tool calls and failures are
// only looked at, which takes no commit.
func (r *reservation) holds() bool {
	return slices.ContainsFunc(r.pots, holdsOf)
}

func holdsOf(p run.Pot) bool { return p.MaxCost > 0 || p.MaxTokens > 0 }

// key names the call and the driver: what one before this one reserved and never
// settled may have been called, so that the store must count it and not replace it.
func (r *reservation) key() string { return r.eff.Key + "@" + strconv.FormatInt(r.fence, 10) }

func (r *reservation) inputOf(req *model.Request) int64 {
	if req == r.req {
		return r.input
	}
	return min(r.input, r.bound(req))
}

// bound is the best bound of a request's tokens that is known.
func (r *reservation) bound(req *model.Request) int64 {
	before := len(r.d.agent.Examples)
	n := r.measured.bound(req, r.eff.Index, before)
	if known := remembered(req, r.m.Name, before, r.ask.origins, r.d.agent.DropReasoning.Milliseconds()); known > 0 && !r.d.e.hooked() {
		n = min(n, known)
	}
	return n
}

// amounts is what a call costs at most, and what is kept to close the answer after
// it: that call reads this request, its reply and some results.
func (r *reservation) amounts(input, reply int64) (call, keep store.Amounts) {
	b := &r.d.e.cfg.Budgets
	call = store.Amounts{Money: int64(model.MaxCost(&r.m.Info, input, reply)), Tokens: input + reply}
	if r.keeps {
		again, closing := input+reply+int64(b.ClosingInputTokens), int64(b.ClosingTokens)
		keep = store.Amounts{Money: int64(model.MaxCost(&r.m.Info, again, closing)), Tokens: again + closing}
	}
	return call, keep
}

// fit finds the longest reply that can be paid. For a call that closes an answer it
// also leaves out what does not fit of the last results.
func (r *reservation) fit(pots []store.Pot, caps []store.PotCap) (*model.Request, int64, *store.ExhaustedError) {
	least := min(int64(r.d.e.cfg.Budgets.MinReplyTokens), r.reply)
	over := func(input, reply int64) *store.ExhaustedError {
		call, keep := r.amounts(input, reply)
		for i := range pots {
			if e := pots[i].Fits(caps[i].Max, call, keep); e != nil {
				return e
			}
		}
		return nil
	}
	req, input := r.req, r.input
	if full := over(input, least); full != nil {
		if r.eff.Closing == "" || full.Limit != store.LimitCost && full.Limit != store.LimitTokens {
			return nil, 0, full
		}
		fits := most(0, input, func(n int64) bool { return over(n, least) == nil })
		if fits <= 0 {
			return nil, 0, full
		}
		c := *r.req
		c.Messages, c.Scratch = shorten(c.Messages, input-fits), nil
		if req, input = &c, r.inputOf(&c); over(input, least) != nil {
			return nil, 0, full
		}
	}
	return req, most(least, r.reply, func(n int64) bool { return over(input, n) == nil }), nil
}

// most is the largest n from low to high for which ok holds, if it holds for all
// that are smaller; low if it holds for none.
func most(low, high int64, ok func(int64) bool) int64 {
	for low < high {
		mid := low + (high-low+1)/2
		if ok(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// look notes what the machine has to know of a pot.
func (r *reservation) look(in *run.Reserved, p *store.Pot, max *store.PotLimits) {
	if max.Calls > 0 {
		left := 0
		if n := store.Sum(max.Calls, p.More.Calls) - p.Calls; n > 0 {
			left = int(min(n, math.MaxInt32))
		}
		if in.Calls == nil || left < *in.Calls {
			in.Calls = &left
		}
	}
	percent := int64(r.d.e.cfg.Budgets.WarnPercent)
	near := func(limit string, cap, more, used, held int64) {
		if cap > 0 && float64(used)*100 >= float64(store.Sum(cap, more))*float64(percent) {
			in.Near = append(in.Near, run.PotUse{Pot: p.Kind, ID: p.ID, Limit: limit, Cap: store.Sum(cap, more), Used: used, Held: held})
		}
	}
	near(run.StopMaxCost, max.Money, p.More.Money, p.Settled.Money, p.Held.Money-p.Own.Money)
	near(run.StopMaxTokens, max.Tokens, p.More.Tokens, p.Settled.Tokens, p.Held.Tokens-p.Own.Tokens)
	near(run.StopMaxToolCalls, max.Calls, p.More.Calls, p.Calls, 0)
	near(run.StopMaxFailures, max.Failures, p.More.Failures, p.Failures, 0)
}

func (r *reservation) exhausted(e *store.ExhaustedError, final bool) run.Input {
	return run.Exhausted{At: r.d.at(), PotUse: run.PotUse{Pot: e.Kind, ID: e.ID, Limit: e.Limit, Cap: e.Cap, Used: e.Used, Held: e.Held},
		Need: e.Need, Final: final}
}

// overspend looks at a reply that cost more than was reserved for it. That should
// be impossible; if it happens, the books say the truth and the run stops.
func (d *driver) overspend(u *message.Usage) {
	if d.grant == nil || u == nil {
		return
	}
	used, held := d.spent(u), d.grant.call
	money, tokens := d.capped()
	if money && used.Money > held.Money || tokens && used.Tokens > held.Tokens {
		d.overspent = true
		d.e.log.Error("a model call used more than the most that it could: the run stops at its next call", "run", d.ref.ID, "model", d.model().Name,
			"used", fmt.Sprintf("$%s, %d tokens", message.Money(used.Money), used.Tokens), "reserved", fmt.Sprintf("$%s, %d tokens", message.Money(held.Money), held.Tokens))
	}
}

// capped is what a pot of the run caps: where nothing is, nothing can be passed.
func (d *driver) capped() (money, tokens bool) {
	for i := range d.state.Settings.Pots {
		p := &d.state.Settings.Pots[i]
		money, tokens = money || p.MaxCost > 0, tokens || p.MaxTokens > 0
	}
	return money, tokens
}
