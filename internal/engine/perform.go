package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
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
	errIdle    = errors.New("nothing came from the model for too long")
	errStopped = errors.New("the run is ending")
)

// perform starts an effect. What is decided at once is returned as the next input.
func (d *driver) perform(eff run.Effect, b *batch) run.Input {
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
			b.start = append(b.start, start)
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
		d.put(item{in: in, effect: key})
		cancel(nil)
	}
}

func (d *driver) sleep(eff run.Sleep) {
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
	d.spec.Overrides.options(&options)
	msgs := d.conv.messages
	req := prompt.Build(&prompt.Parts{
		Model: m.ID, System: d.system(), Messages: msgs[:len(msgs):len(msgs)], Tools: d.tools.set.Specs(),
		Options: options, Session: d.row.SessionID, Scratch: d.scratch(eff.Index),
	})
	ctx, cancel, settle := d.effect("model")
	return func() {
		d.e.wg.Add(1)
		go func() {
			defer d.e.wg.Done()
			g := &generation{d: d, m: m, step: eff.Step, idle: d.agent.ModelIdle}
			var err error
			if req.Messages, err = d.e.context(ctx, d.ref, req.Messages); err != nil {
				failed := failure(model.AsError(ctx, m.Name, req.Model, err))
				failed.At = d.at()
				settle(failed)
				return
			}
			req.Messages = d.prefixed(req.Messages)
			settle(g.run(ctx, cancel, req))
		}()
	}
}

// generation is a model call under way.
type generation struct {
	d       *driver
	m       Model
	step    int
	idle    time.Duration
	partial *message.Message
}

type generated struct {
	msg *message.Message
	err error
}

func (g *generation) run(ctx context.Context, cancel context.CancelCauseFunc, req *model.Request) run.Input {
	d := g.d
	var watchdog *time.Timer
	if g.idle > 0 {
		watchdog = time.AfterFunc(g.idle, func() { cancel(errIdle) })
		defer watchdog.Stop()
	}
	emit := func(ev model.StreamEvent) {
		if watchdog != nil {
			watchdog.Reset(g.idle)
		}
		if ctx.Err() != nil {
			return
		}
		g.partial = ev.Partial
		g.publish(ev)
	}
	done := make(chan generated, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				d.e.log.Error("a model adapter panicked", "run", d.ref.ID, "model", g.m.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				done <- generated{err: &model.Error{Class: model.ClassMalformed, Provider: g.m.Name, Message: fmt.Sprint("the adapter panicked: ", p)}}
			}
		}()
		msg, err := g.m.Provider.Generate(ctx, req, emit)
		done <- generated{msg, err}
	}()
	var out generated
	abandoned := false
	select {
	case out = <-done:
	case <-ctx.Done():
		select {
		case out = <-done:
		case <-time.After(d.e.cfg.AbandonAfter):
			abandoned = true
			out.err = &model.Error{Class: model.ClassCancelled, Provider: g.m.Name, Message: "the call did not end and was abandoned"}
		}
	}
	if out.err == nil {
		if out.msg.Timestamp == 0 {
			out.msg.Timestamp = d.e.now()
		}
		return run.ModelDone{At: d.at(), Message: out.msg}
	}
	merr := model.AsError(ctx, g.m.Name, req.Model, out.err)
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		merr = &model.Error{Class: model.ClassTimeout, Provider: g.m.Name, Model: req.Model, Err: errIdle,
			Message: fmt.Sprintf("nothing came for %s", g.idle)}
	}
	failed := failure(merr)
	failed.At = d.at()
	if failed.Class == run.FailCancelled && !abandoned && g.partial != nil {
		p := *g.partial
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
	args := d.tools.args(eff.CallID)
	timeout := spec.Timeout
	if timeout <= 0 {
		timeout = d.agent.ToolTimeout
	}
	return func() {
		d.e.wg.Add(1)
		go func() {
			defer d.e.wg.Done()
			if !found {
				settle(run.ToolDone{At: d.at(), CallID: eff.CallID,
					Message: toolMessage(eff, tool.ErrorResult("The tool is no longer available."))})
				return
			}
			if eff.Interrupt != "" {
				amended, err := d.e.amended(ctx, Ref{d.ref.Tenant, eff.Interrupt})
				if err != nil {
					settle(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(err.Error()))})
					return
				}
				args = amended
			}
			start := time.Now()
			call := tool.Call{ID: eff.CallID, Name: eff.Name, Args: args, Key: eff.Key, Tenant: d.ref.Tenant,
				RunID: d.ref.ID, SessionID: d.row.SessionID, Step: eff.Step}
			res := d.runTool(ctx, t, call, timeout)
			blob := d.e.capResult(&res, eff.Name)
			var in run.Input = run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, res), Terminate: res.Terminate,
				DurationMS: time.Since(start).Milliseconds()}
			if blob != nil {
				in = withBlob{in, blob}
			}
			settle(in)
		}()
	}
}

func toolMessage(eff run.CallTool, res tool.Result) *message.Message {
	m := message.ToolResult(eff.CallID, eff.Name, res.IsError, res.Content...)
	m.Details = res.Details
	if len(m.Details) > 0 && !json.Valid(m.Details) {
		m.Details = nil
	}
	if len(m.Content) == 0 {
		m.Content = []message.Block{message.Text("(no output)")}
	}
	return &m
}

// runTool runs a tool under its timeout. A tool that does not end when it is told
// to is abandoned: the run must not hang on it.
func (d *driver) runTool(ctx context.Context, t tool.Tool, call tool.Call, timeout time.Duration) tool.Result {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fault.New(fault.Timeout, fmt.Sprintf("%s took longer than %s", call.Name, timeout)))
		defer cancel()
	}
	if ctx.Err() != nil {
		return tool.ErrorResult("Not executed: " + context.Cause(ctx).Error())
	}
	over := make(chan struct{})
	defer close(over)
	call.Progress = func(p tool.Progress) {
		select {
		case <-over:
		default:
			d.progress(call, p)
		}
	}
	done := make(chan tool.Result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				d.e.log.Error("a tool panicked", "run", d.ref.ID, "tool", call.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				done <- tool.ErrorResult(fmt.Sprintf("%s panicked: %v", call.Name, p))
			}
		}()
		res, err := t.Run(ctx, call)
		if err != nil {
			res = tool.ErrorResult(describe(err))
		}
		done <- res
	}()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
	}
	select {
	case res := <-done:
		return res
	case <-time.After(d.e.cfg.AbandonAfter):
		return tool.ErrorResult(fmt.Sprintf("%s did not end when it was told to (%v) and was abandoned; it may still happen.", call.Name, context.Cause(ctx)))
	}
}

func describe(err error) string {
	s := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		s += " (" + hint + ")"
	}
	return s
}

func (d *driver) progress(call tool.Call, p tool.Progress) {
	base := event.Tool{ToolCallID: call.ID, Name: call.Name}
	tell := func(t event.Type, data event.Tool) {
		data.Text = d.agent.Redact.text(call.Name, data.Text)
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
	args := d.tools.args(eff.CallID)
	parent := *d.row
	return func() {
		d.e.wg.Add(1)
		go func() {
			defer d.e.wg.Done()
			if eff.Interrupt != "" {
				amended, err := d.e.amended(ctx, Ref{d.ref.Tenant, eff.Interrupt})
				if err != nil {
					m := message.ToolResult(eff.CallID, CreateSubagent, true, message.Text(err.Error()))
					settle(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: &m})
					return
				}
				args = amended
			}
			m, done := d.e.runChild(ctx, d.ref.Tenant, &parent, eff, args)
			if done {
				settle(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: m})
			}
		}()
	}
}
