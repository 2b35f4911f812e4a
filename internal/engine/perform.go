package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

var (
	errLeaving = errors.New("agentd is stopping")
	errIdle    = fault.New(fault.Timeout, "nothing came from the model for too long")
	errTotal   = fault.New(fault.Timeout, "the model call took too long")
	errStopped = errors.New("the run is ending")
)

// perform starts an effect. What is decided at once is returned as the next input.
func (d *driver) perform(eff run.Effect, b *batch) run.Input {
	if d.postpones(eff) {
		return nil
	}
	switch eff := eff.(type) {
	case run.Judge:
		return d.tools.judge(eff, d.at())
	case run.CallModel:
		// A model call may start ahead of the commit: if that fails the reply
		// is dropped, and nothing but tokens is lost.
		b.start = append(b.start, d.callModel(eff))
	case run.CallTool:
		start := d.callTool(eff)
		if eff.Effect == string(tool.Once) {
			b.after = append(b.after, start)
		} else {
			b.start, b.quick = append(b.start, start), true
		}
	case run.SpawnChild:
		b.after = append(b.after, d.spawn(eff))
	case run.Sleep:
		d.sleep(eff)
	case run.Compact:
		return run.Compacted{At: d.at(), Error: "the conversation no longer fits the model's context window"}
	case run.StopEffects:
		for _, cancel := range d.effects {
			cancel(errStopped)
		}
	}
	return nil
}

// effect registers an open effect. settle hands its outcome in; it does nothing
// if the driver is gone.
func (d *driver) effect(key string) (ctx context.Context, cancel context.CancelCauseFunc, settle func(run.Input)) {
	ctx, cancel = context.WithCancelCause(d.ctx)
	d.effects[key] = cancel
	return ctx, cancel, func(in run.Input) {
		// What ended because the driver lets go of the run is no outcome.
		if d.ctx.Err() == nil {
			d.put(item{in: in, effect: key})
		}
		cancel(nil)
	}
}

// attempt is an effect that is being performed, in a goroutine of its own. It
// ends once: with its outcome or, because it did not end when it was told to, by
// being abandoned. What it brings after that is dropped.
type attempt struct {
	d      *driver
	settle func(run.Input)
	seen   func(run.Input) // told of the outcome; or nil
	over   atomic.Bool
}

func (d *driver) attempt(settle func(run.Input)) *attempt {
	d.e.wg.Add(1)
	return &attempt{d: d, settle: settle}
}

// end hands in the outcome, unless there is one.
func (a *attempt) end(in run.Input) {
	if a.over.CompareAndSwap(false, true) {
		if a.seen != nil {
			a.seen(in)
		}
		a.settle(in)
		a.d.e.wg.Done()
	}
}

// abandonAfter ends the attempt with what abandoned gives, if it is not over some
// time after ctx ended. The function it returns is to be called when it is.
func (a *attempt) abandonAfter(ctx context.Context, abandoned func() run.Input) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.AfterFunc(a.d.e.cfg.AbandonAfter, func() {
			if !a.over.Load() {
				a.end(abandoned())
			}
		})
	})
}

func (d *driver) sleep(eff run.Sleep) {
	if eff.ID != run.TimerRetry && eff.ID != run.TimerDeadline {
		d.e.expireAt(expiry{d.ref, eff.ID}, eff.Until)
		return
	}
	if stop := d.timers[eff.ID]; stop != nil {
		stop()
	}
	wait := time.Duration(eff.Until-d.e.now())*time.Millisecond + time.Millisecond
	d.timers[eff.ID] = time.AfterFunc(max(wait, 0), func() {
		d.put(item{in: run.TimerFired{At: run.At{Now: max(d.e.now(), eff.Until)}, ID: eff.ID}})
	}).Stop
}

// callModel prepares a call of the model and gives the function that starts it.
func (d *driver) callModel(eff run.CallModel) func() {
	m := d.model()
	options := d.agent.Options
	d.spec.Overrides.options(&options, d.state.TurnSteps > 1)
	m.defaults(&options)
	msgs := d.conv.messages
	msgs = msgs[:len(msgs):len(msgs)]
	scratch := d.scratch(eff.Index)
	if eff.Closing != "" {
		// Asked beside the conversation: nothing of it is stored, here or in
		// the adapter's memory of what it has encoded.
		options.ToolChoice, scratch = model.ToolChoiceNone, nil
		msgs = append(msgs, message.User(closing(eff.Closing)))
	}
	req := prompt.Build(&prompt.Parts{
		Model: m.ID, System: d.system(), Messages: msgs, Tools: d.tools.set.Specs(),
		Options: options, Session: d.row.SessionID, Scratch: scratch,
	})
	ctx, cancel, settle := d.effect("model")
	idle, total := d.agent.ModelIdle, d.agent.ModelTotal
	watched := d.watchModel(eff, &m)
	return func() {
		if !d.e.holds() {
			return
		}
		a := d.attempt(settle)
		if watched.began(d.e, req); watched != nil {
			a.seen = func(in run.Input) { watched.ended(d.e, in) }
		}
		d.e.workers.run(func() {
			g := &generation{d: d, m: m, step: eff.Step, idle: idle, total: total, watched: watched}
			var err error
			if req.Messages, err = d.e.context(ctx, d.ref, req.Messages); err != nil {
				failed := failure(model.AsError(ctx, m.Name, req.Model, err))
				failed.At = d.at()
				a.end(failed)
				return
			}
			req.Messages = d.prefixed(req.Messages)
			stop := a.abandonAfter(ctx, func() run.Input {
				return g.failed(ctx, req, &model.Error{Class: model.ClassCancelled, Provider: m.Name, Message: "the call did not end and was abandoned"}, nil)
			})
			in := g.run(ctx, cancel, req)
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
	if msg.Timestamp == 0 {
		msg.Timestamp = d.e.now()
	}
	return run.ModelDone{At: d.at(), Message: msg}
}

func (g *generation) generate(ctx context.Context, req *model.Request, emit func(model.StreamEvent)) (msg *message.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.d.e.log.Error("a model adapter panicked", "run", g.d.ref.ID, "model", g.m.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			msg, err = nil, &model.Error{Class: model.ClassMalformed, Provider: g.m.Name, Message: fmt.Sprint("the adapter panicked: ", p)}
		}
	}()
	return g.m.Provider.Generate(ctx, req, emit)
}

// failed is the outcome of a call that gave no reply. partial is what there is
// of one, if the adapter no longer writes to it.
func (g *generation) failed(ctx context.Context, req *model.Request, err error, partial *message.Message) run.Input {
	merr := model.AsError(ctx, g.m.Name, req.Model, err)
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		merr = &model.Error{Class: model.ClassTimeout, Provider: g.m.Name, Model: req.Model, Err: errIdle,
			Message: fmt.Sprintf("nothing came for %s", g.idle)}
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTotal) {
		merr = &model.Error{Class: model.ClassTimeout, Provider: g.m.Name, Model: req.Model, Err: errTotal,
			Message: fmt.Sprintf("the call took longer than %s", g.total)}
	}
	failed := failure(merr)
	failed.At = g.d.at()
	if failed.Class == run.FailCancelled && partial != nil {
		p := *partial
		failed.Partial = &p
	}
	return failed
}

// publish tells readers of a piece of the reply.
func (g *generation) publish(ev model.StreamEvent) {
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
		t := &event.Tool{}
		if ev.ToolCall != nil {
			t.ToolCallID, t.Name = ev.ToolCall.ID, ev.ToolCall.Name
		}
		out.Type, out.Data = event.ToolInputStarted, t
	default:
		return
	}
	d.stream.publishLive(out)
}

// callTool prepares the call of a tool and gives the function that starts it.
func (d *driver) callTool(eff run.CallTool) func() {
	ctx, _, settle := d.effect("tool/" + eff.CallID)
	t, spec, found := d.tools.set.Lookup(eff.Name)
	args := d.tools.args(eff.CallID, eff.Name)
	lost := lostTool{d: d, agent: d.agent, row: *d.row}
	watched := d.watchTool(eff.Step, eff.CallID, eff.Name, found, d.agent.Redact)
	parent := d.traceparent(eff.CallID)
	return func() {
		if !d.e.holds() {
			return
		}
		a := d.attempt(settle)
		d.e.workers.run(func() {
			if !found {
				var why string
				if t, spec, args, why = lost.find(ctx, eff.Name, args); t == nil {
					a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(why))})
					return
				}
			}
			timeout := spec.Timeout
			if timeout <= 0 {
				timeout = lost.agent.ToolTimeout
			}
			if eff.Interrupt != "" {
				amended, err := d.e.amended(ctx, Ref{d.ref.Tenant, eff.Interrupt})
				if err != nil {
					a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(err.Error()))})
					return
				}
				args = amended
			}
			a.seen = watched(args)
			start := time.Now()
			call := tool.Call{ID: eff.CallID, Name: eff.Name, Args: args, Key: eff.Key, Tenant: d.ref.Tenant,
				RunID: d.ref.ID, SessionID: d.row.SessionID, Step: eff.Step, Traceparent: parent}
			d.runTool(ctx, a, t, call, timeout, lost.agent.Redact, func(res tool.Result) run.Input {
				blob := d.e.capResult(&res, eff.Name)
				var in run.Input = run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, res), Terminate: res.Terminate,
					DurationMS: time.Since(start).Milliseconds()}
				if blob != nil {
					in = withBlob{in, blob}
				}
				return in
			})
		})
	}
}

func toolMessage(eff run.CallTool, res tool.Result) *message.Message {
	m := message.ToolResult(eff.CallID, eff.Name, res.IsError, showable(res.Content)...)
	m.Details = res.Details
	if len(m.Details) > 0 && !json.Valid(m.Details) {
		m.Details = nil
	}
	if len(m.Content) == 0 {
		m.Content = []message.Block{message.Text("(no output)")}
	}
	return &m
}

// runTool runs a tool under its timeout and ends the attempt with what outcome
// makes of the result. A tool that does not end when it is told to is abandoned:
// the run must not hang on it.
func (d *driver) runTool(ctx context.Context, a *attempt, t tool.Tool, call tool.Call, timeout time.Duration, redact Redact, outcome func(tool.Result) run.Input) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fault.New(fault.Timeout, fmt.Sprintf("%s took longer than %s", call.Name, timeout)))
		defer cancel()
	}
	if ctx.Err() != nil {
		a.end(outcome(tool.ErrorResult("Not executed: " + context.Cause(ctx).Error())))
		return
	}
	// returned: what a tool tells after it returned is dropped, even if its
	// outcome is not handed in yet.
	var returned atomic.Bool
	call.Progress = func(p tool.Progress) {
		if !returned.Load() && !a.over.Load() {
			d.progress(call, redact, p)
		}
	}
	stop := a.abandonAfter(ctx, func() run.Input {
		return outcome(tool.ErrorResult(fmt.Sprintf("%s did not end when it was told to (%v) and was abandoned; it may still happen.", call.Name, context.Cause(ctx))))
	})
	res := d.call(ctx, t, call)
	returned.Store(true)
	stop()
	a.end(outcome(res))
}

func (d *driver) call(ctx context.Context, t tool.Tool, call tool.Call) (res tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			d.e.log.Error("a tool panicked", "run", d.ref.ID, "tool", call.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res = tool.ErrorResult(fmt.Sprintf("%s panicked: %v", call.Name, p))
		}
	}()
	res, err := t.Run(ctx, call)
	if err != nil {
		return tool.ErrorResult(describe(err))
	}
	return res
}

func describe(err error) string {
	s := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		s += " (" + hint + ")"
	}
	return s
}

func (d *driver) progress(call tool.Call, redact Redact, p tool.Progress) {
	base := event.Tool{ToolCallID: call.ID, Name: call.Name}
	tell := func(t event.Type, data event.Tool) {
		data.Text = redact.text(call.Name, data.Text)
		d.stream.publishLive(event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: call.Step, Type: t, Data: &data})
	}
	if p.Stdout != "" {
		out := base
		out.Text = p.Stdout
		tell(event.ToolStdout, out)
	}
	if p.Stderr != "" {
		out := base
		out.Text = p.Stderr
		tell(event.ToolStderr, out)
	}
	if p.Message != "" || p.Total != 0 || p.Done != 0 {
		out := base
		out.Text, out.Progress, out.Total = p.Message, p.Done, p.Total
		tell(event.ToolProgress, out)
	}
}

// spawn starts the child run of a call and waits for its end.
func (d *driver) spawn(eff run.SpawnChild) func() {
	ctx, _, settle := d.effect("tool/" + eff.CallID)
	if d.claim != nil {
		if d.children == nil {
			d.children = map[string]bool{}
		}
		d.children["tool/"+eff.CallID] = true
	}
	args := d.tools.args(eff.CallID, CreateSubagent)
	parent := *d.row
	watched := d.watchTool(eff.Step, eff.CallID, CreateSubagent, true, d.agent.Redact)
	return func() {
		d.e.wg.Add(1)
		go func() {
			defer d.e.wg.Done()
			seen := watched(args)
			if eff.Interrupt != "" {
				amended, err := d.e.amended(ctx, Ref{d.ref.Tenant, eff.Interrupt})
				if err != nil {
					m := message.ToolResult(eff.CallID, CreateSubagent, true, message.Text(err.Error()))
					settle(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: &m})
					return
				}
				args = amended
			}
			end, done := d.e.runChild(ctx, d.ref.Tenant, &parent, eff, args)
			if done {
				in := run.ToolDone{At: d.at(), CallID: eff.CallID, Message: end.message, Cancelled: end.cancelled}
				if seen != nil {
					seen(in)
				}
				settle(in)
			}
		}()
	}
}
