package guard

import (
	"context"
	"fmt"

	"agentd/message"
	"agentd/model"
)

// Provider guards a provider under a name that stands for its service. limit is
// how many of its calls run at the same time, 0 any number; further ones wait,
// for as long as their callers do. Calls of an open breaker fail at once with an
// error of class circuit_open that says when to try again.
func (g *Guards) Provider(name string, inner model.Provider, b Breaker, limit int) model.Provider {
	what := Thing{Kind: "provider", Name: name}
	p := &provider{name: name, inner: inner, gate: g.gate(what, "", b), seats: g.bulkhead(what, limit)}
	if p.gate == nil && p.seats == nil {
		return inner
	}
	return p
}

type provider struct {
	name  string
	inner model.Provider
	gate  *gate
	seats *seats
}

// Generate implements model.Provider.
func (p *provider) Generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (msg *message.Message, err error) {
	if e := p.gate.refusal(); e != nil {
		return nil, p.refused(req, e)
	}
	if p.seats != nil {
		if err := p.seat(ctx, emit); err != nil {
			return nil, model.AsError(ctx, p.name, req.Model, fmt.Errorf("the call waited for a free place (concurrency_limit): %w", err))
		}
		defer p.seats.leave()
	}
	if e := p.gate.enter(); e != nil {
		return nil, p.refused(req, e)
	}
	says := fails // a panic, too
	defer func() { p.gate.leave(says) }()
	msg, err = p.inner.Generate(ctx, req, emit)
	says = saysModel(ctx, err)
	return msg, err
}

// seat waits for a free place, and says so: who waits for the model to say something
// must not take this for its silence.
func (p *provider) seat(ctx context.Context, emit func(model.StreamEvent)) error {
	if p.seats.try() {
		return nil
	}
	tell := func(t model.StreamType) {
		if emit != nil {
			emit(model.StreamEvent{Type: t})
		}
	}
	tell(model.StreamWaiting)
	if err := p.seats.take(ctx); err != nil {
		return err
	}
	tell(model.StreamAdmitted)
	return nil
}

func (p *provider) refused(req *model.Request, e *OpenError) error {
	return &model.Error{Class: model.ClassOpen, Provider: p.name, Model: req.Model, Message: e.Error(), RetryAfter: e.For, Err: e}
}

// saysModel is what the end of a model call says about the provider. One that
// refuses a request for what is in it works.
func saysModel(ctx context.Context, err error) outcome {
	switch {
	case err == nil:
		return works
	case givenUp(ctx):
		return nothing
	case ctx.Err() != nil || model.AsError(ctx, "", "", err).Class.Retryable():
		return fails
	}
	return works
}
