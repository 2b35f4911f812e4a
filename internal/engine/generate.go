package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"agentd/event"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
)

// ask prepares the next model call, and gives what was asked of it before anything
// was filled in.
func (d *driver) ask(index int, reason string) (*asked, prompt.Options) {
	m := d.model()
	options := d.agent.Options
	d.spec.Overrides.options(&options, d.state.TurnSteps > 1)
	given := options
	m.defaults(&options)
	msgs, less := d.shown()
	system, sections := d.system()
	ask := &asked{d: d, m: m, less: less, made: d.conv.made, late: d.tools.late, replies: d.replies(len(msgs)), origins: d.conv.origins[:len(msgs):len(msgs)], parts: prompt.Parts{
		Model: m.ID, System: system, Sections: sections, Messages: d.conv.asCalled(msgs[:len(msgs):len(msgs)]), Tools: d.declared(),
		Session: d.row.SessionID, Scratch: d.scratch(index),
	}}
	if reason != "" {
		// Asked beside the conversation: nothing of it is stored, here or in
		// the adapter's memory of what it has encoded.
		last := message.User(closing(reason))
		options.ToolChoice, ask.parts.Scratch, ask.closing = model.ToolChoiceNone, nil, &last
	}
	ask.parts.Options = options
	ask.compacts = !d.agent.Compaction.Off && (d.state.Model == nil || !d.state.Model.Compacted)
	ask.large = ask.tooLarge()
	d.tooLarge = ask.large
	return ask, given
}

// callModel prepares a call of the model and gives the function that starts it.
func (d *driver) callModel(eff run.CallModel) func() {
	paid := d.grant
	var ask *asked
	if paid != nil {
		ask = paid.ask
	} else {
		ask, _ = d.ask(eff.Index, eff.Closing)
	}
	m := ask.m
	d.asking = ask
	ctx, cancel, settle := d.effect("model")
	idle, total := d.agent.ModelIdle, d.agent.ModelTotal
	if d.modelAway(&m) {
		idle, total = 0, 0
		m.Provider = &poolProvider{d: d, m: m, eff: eff, epoch: d.row.Epoch}
	}
	gateway := d.tools.late != nil
	watched, pace := d.watchModel(eff, &m, ask), d.pace()
	return func() {
		if !d.holds() {
			return
		}
		a := d.attempt(settle)
		d.e.workers.run(func() {
			g := &generation{d: d, m: m, step: eff.Step, idle: idle, total: total, watched: watched, gateway: gateway, form: formOf(&ask.parts.Options)}
			a.seen = func(in run.Input) {
				if c, ok := in.(cured); ok {
					in = c.Input
				}
				pace.settle(in)
				watched.ended(d.e, in)
			}
			// From here on, because an application's TransformContext may not listen either.
			stop := a.abandonAfter(ctx, func() run.Input {
				return g.failed(ctx, &model.Request{Model: m.ID}, &model.Error{Class: model.ClassCancelled, Provider: m.Name, Message: "the call did not end and was abandoned"}, nil)
			})
			defer stop()
			var req *model.Request
			var err error
			if paid != nil {
				req, err = paid.req, paid.err
			} else {
				req, err = ask.request(ctx, nil)
			}
			if err == nil {
				err = pace.wait(ctx, eff.Step, req)
			}
			if errors.Is(err, errHandedOver) {
				a.leave("model", nil, nil)
				return
			}
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx) // the run was told to end before it was made: nothing is owed for it
			}
			if req == nil {
				req = prompt.Build(&ask.parts) // for whoever observes
			}
			watched.began(d.e, req)
			if err != nil {
				failed := failure(model.AsError(ctx, m.Name, m.ID, err))
				failed.At, failed.Free = d.at(), true
				a.end(failed)
				return
			}
			in := ask.again(ctx, cancel, g, g.run(ctx, cancel, req), paid)
			ask.noteLess(in, paid)
			ask.awaitLook(ctx)
			stop()
			a.end(in)
		})
	}
}

// generation is a model call under way.
type generation struct {
	d       *driver
	m       Model
	step    int
	idle    time.Duration
	total   time.Duration
	partial *message.Message
	watched *watchedCall
	// form is what the answer must be; nil: anything.
	form *answerForm
	// began: something came, so that the call has to be paid.
	began atomic.Bool
	// gateway: the model may call tools through [CallByName].
	gateway bool
	// nameless are calls that readers were told of before they had a name.
	nameless []string
	// silent: readers are told nothing, because it is no part of the conversation.
	silent bool
}

func (g *generation) run(ctx context.Context, cancel context.CancelCauseFunc, req *model.Request) run.Input {
	d := g.d
	var watchdog *time.Timer
	if g.idle > 0 {
		watchdog = time.AfterFunc(g.idle, func() { cancel(errIdle) })
		defer watchdog.Stop()
	}
	if g.total > 0 {
		defer time.AfterFunc(g.total, func() { cancel(errTotal) }).Stop()
	}
	began, first := time.Now(), true
	emit := func(ev model.StreamEvent) {
		switch ev.Type {
		case model.StreamWaiting:
			// For a free place, of ours: the model is not idle, it was not asked.
			if watchdog != nil {
				watchdog.Stop()
			}
			return
		case model.StreamAdmitted:
			if began = time.Now(); watchdog != nil {
				watchdog.Reset(g.idle)
			}
			return
		}
		g.began.Store(true)
		if first {
			first = false
			d.e.speed.measured(g.m.Name, time.Since(began), began)
		}
		if watchdog != nil {
			watchdog.Reset(g.idle)
		}
		if ctx.Err() != nil {
			return
		}
		g.partial = ev.Partial
		g.watched.piece(d.e)
		g.publish(ev)
	}
	msg, err := g.generate(ctx, req, emit)
	if err == nil && msg == nil {
		err = &model.Error{Class: model.ClassMalformed, Provider: g.m.Name, Model: req.Model, Message: "the adapter gave neither a reply nor an error"}
	}
	if err != nil {
		in := g.failed(ctx, req, err, g.partial)
		if f, ok := in.(run.ModelFailed); ok && (f.Class == run.FailRetryable || f.Class == run.FailUnavailable) {
			d.e.speed.failed(g.m.Name, began)
		}
		return in
	}
	if silentOverflow(msg, g.m.Window) {
		return run.ModelFailed{At: d.at(), Class: run.FailOverflow, Reason: string(model.ClassOverflow), Usage: msg.Usage,
			Error: fmt.Sprintf("%s: the conversation fills the context window of %d tokens, and there was no room for a reply", g.m.Name, g.m.Window)}
	}
	if msg.Timestamp == 0 {
		msg.Timestamp = d.e.now()
	}
	if msg = message.Clean(msg); g.gateway {
		msg = g.direct(msg)
	}
	return run.ModelDone{At: d.at(), Message: msg, Unfit: g.form.unfit(d.e.validator, msg)}
}

func (g *generation) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (msg *message.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.d.e.log.Error("a model adapter panicked", "run", g.d.ref.ID, "model", g.m.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			msg, err = nil, &model.Error{Class: model.ClassMalformed, Provider: g.m.Name, Message: fmt.Sprint("the adapter panicked: ", p)}
		}
	}()
	// The last moment: what the request is made of, its limits and the calls before it may
	// have taken long, and the machine may have slept meanwhile.
	if !g.d.holds() {
		return nil, &model.Error{Class: model.ClassCancelled, Provider: g.m.Name, Model: req.Model, Message: errLapsed.Error(), Err: errLapsed}
	}
	return g.m.Provider.Generate(ctx, req, emit)
}

// failed is the outcome of a call that gave no reply. partial is what there is
// of one, if the adapter no longer writes to it.
func (g *generation) failed(ctx context.Context, req *model.Request, err error, partial *message.Message) run.Input {
	merr := model.AsError(ctx, g.m.Name, req.Model, err)
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		merr = &model.Error{Class: model.ClassTimeout, Provider: g.m.Name, Model: req.Model, Err: errIdle, Usage: merr.Usage,
			Message: fmt.Sprintf("nothing came for %s", g.idle)}
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTotal) {
		merr = &model.Error{Class: model.ClassTimeout, Provider: g.m.Name, Model: req.Model, Err: errTotal, Usage: merr.Usage,
			Message: fmt.Sprintf("the call took longer than %s", g.total)}
	}
	failed := failure(merr)
	failed.At, failed.Free = g.d.at(), !g.began.Load() && free(merr)
	if failed.Class == run.FailCancelled && partial != nil {
		p := *partial
		if g.gateway {
			p = *unwrapped(&p)
		}
		failed.Partial = &p
	}
	return failed
}

// publish tells readers of a piece of the reply.
func (g *generation) publish(ev model.StreamEvent) {
	if g.silent {
		return
	}
	d := g.d
	out := event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: g.step}
	switch ev.Type {
	case model.StreamTextDelta, model.StreamThinkingDelta:
		if ev.Delta == "" {
			return
		}
		out.Type = event.TextDelta
		if ev.Type == model.StreamThinkingDelta {
			out.Type = event.ThinkingDelta
		}
		out.Data = &event.Delta{Text: ev.Delta, Block: ev.Index}
	case model.StreamToolStart:
		if g.held(&ev) {
			return
		}
		t := &event.Tool{}
		if ev.ToolCall != nil {
			t.ToolCallID, t.Name = ev.ToolCall.ID, ev.ToolCall.Name
			if g.gateway && t.Name == "" {
				g.nameless = append(g.nameless, t.ToolCallID)
			}
		}
		out.Type, out.Data = event.ToolInputStarted, t
	default:
		return
	}
	d.stream.publishLive(out)
}

// silentOverflow is whether a provider cut a reply to nothing because the request fills
// the window: some say so in no other way.
func silentOverflow(m *message.Message, window int) bool {
	return window > 0 && m.StopReason == message.StopLength && m.Text() == "" && len(m.ToolCalls()) == 0 &&
		m.Usage != nil && m.Usage.Output == 0 && m.Usage.Prompt() >= int64(window)*99/100
}

// failure turns what stopped a model call into what the machine reads.
func failure(err *model.Error) run.ModelFailed {
	f := run.ModelFailed{Usage: err.Usage, Reason: string(err.Class), Error: err.Error(), RetryAfterMS: err.RetryAfter.Milliseconds(), Class: run.FailFatal}
	switch {
	case err.Class == model.ClassCancelled:
		f.Class = run.FailCancelled
	case err.Class == model.ClassOverflow:
		f.Class = run.FailOverflow
	case err.Class.Retryable():
		f.Class = run.FailRetryable
	case err.Class == model.ClassQuota, err.Class == model.ClassOpen:
		// Another model may answer; asking this one again is of no use.
		f.Class = run.FailUnavailable
	}
	if err.Code == unpricedCode {
		return f
	}
	switch err.Class {
	case model.ClassAuth:
		f.Hint = "Check the provider's API key (api_key_env in the profile)."
	case model.ClassNotFound:
		f.Hint = "Check the model's name in the profile."
	case model.ClassQuota:
		f.Hint = "The provider's account has no credit or is over its plan's limit."
	}
	return f
}

// free is whether a call that gave nothing costs nothing, for certain: the provider
// refused it, or was never reached. What was cut off or given up may have to be paid.
func free(err *model.Error) bool {
	switch err.Class {
	case model.ClassRateLimited, model.ClassOverloaded, model.ClassServer, model.ClassOverflow, model.ClassQuota, model.ClassAuth,
		model.ClassInvalid, model.ClassNotFound, model.ClassOpen:
		return true
	case model.ClassConnection:
		var op *net.OpError
		var dns *net.DNSError
		return errors.As(err.Err, &dns) || errors.As(err.Err, &op) && op.Op == "dial"
	}
	return false
}
