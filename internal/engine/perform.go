package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"sync/atomic"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
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
		d.unreserve(eff, b)
		return nil
	}
	switch eff := eff.(type) {
	case run.Judge:
		return d.tools.judge(eff, d.at())
	case run.CallModel:
		if in := d.full(); in != nil {
			return in
		}
		// A model call may start ahead of the commit: if that fails the reply
		// is dropped, and nothing but tokens is lost.
		m := d.model()
		if d.modelAway(&m) { // the ledger takes what the run's newest epoch asks for alone
			d.askedModel = true
			b.after = append(b.after, d.callModel(eff))
			break
		}
		b.start = append(b.start, d.callModel(eff))
		b.quick = d.grant != nil // the reservation is durable, and says that it may be made
	case run.Reserve:
		if in := d.full(); in != nil {
			return in
		}
		// It waits for the commit, which settles the call before: a reservation that
		// was faster would have that call settled as lost, and the settlement that
		// comes then would be taken for its own.
		b.after = append(b.after, d.reserve(eff))
	case run.CallTool:
		if pool := d.away(&eff); pool != "" {
			b.after = append(b.after, d.askTool(eff, pool, b))
			break
		}
		start := d.callTool(eff)
		// What a person approved is durable before it happens, and artifacts are read from
		// the store: they must be there.
		if eff.Effect == string(tool.Once) || eff.Interrupt != "" || d.tools.readOn && eff.Name == ReadArtifact {
			b.after = append(b.after, start)
		} else {
			b.start, b.quick = append(b.start, start), true
		}
	case run.SpawnChild:
		b.after = append(b.after, d.spawn(eff))
	case run.Sleep:
		d.sleep(eff)
	case run.Compact:
		return d.compact(eff, b)
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
	if eff.ID == run.TimerRetry {
		wait += spread(d.ref.ID, eff.Until, wait)
	}
	d.timers[eff.ID] = time.AfterFunc(max(wait, 0), func() {
		d.put(item{in: run.TimerFired{At: run.At{Now: max(d.e.now(), eff.Until)}, ID: eff.ID}})
	}).Stop
}

// spread is what a wait for another attempt takes longer, at most a tenth: runs
// that were turned away together would come back together. It is a function of the
// run and the time: no randomness is needed to tell runs apart.
func spread(runID string, until int64, wait time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, runID, until)
	return max(wait, 0) / 10 * time.Duration(h.Sum32()%1000) / 1000
}

// callTool prepares the call of a tool and gives the function that starts it.
func (d *driver) callTool(eff run.CallTool) func() {
	ctx, _, settle := d.effect("tool/" + eff.CallID)
	t, spec, found := d.tools.set.Lookup(eff.Name)
	args, approved := d.tools.args(eff.CallID, eff.Name), d.tools.amended[eff.CallID]
	lost := lostTool{d: d, agent: d.agent, row: *d.row}
	watched := d.watchTool(eff.Step, eff.CallID, eff.Name, found, d.agent.Redact)
	parent, readOn := d.traceparent(eff.CallID), d.tools.readOn
	user, doubt := named(d.row), d.doubtful(&eff, args)
	earlier := d.earlier(eff)
	return func() {
		if !d.holds() {
			return
		}
		a := d.attempt(settle)
		d.e.workers.run(func() {
			if earlier != nil {
				a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: earlier, Cached: true})
				return
			}
			if !found {
				var why string
				if t, spec, args, why = lost.find(ctx, eff.Name, args); t == nil {
					a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(why))})
					return
				}
				if why := d.misplaced(&spec); why != "" {
					a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(why))})
					return
				}
			}
			timeout := spec.Timeout
			if timeout <= 0 {
				timeout = lost.agent.ToolTimeout
			}
			if eff.Interrupt != "" {
				if approved == nil {
					a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(approvedGone))})
					return
				}
				args = approved
			}
			a.seen = watched(args)
			start := time.Now()
			call := tool.Call{ID: eff.CallID, Name: eff.Name, Args: args, Key: eff.Key, Tenant: d.ref.Tenant,
				User: user, Untrusted: doubt, RunID: d.ref.ID, SessionID: d.row.SessionID, Step: eff.Step, Traceparent: parent}
			d.runTool(ctx, a, t, call, timeout, lost.agent.Redact, func(res tool.Result) run.Input {
				var blob *store.Blob
				if !own(t) { // the guard: what is read of an artifact is not stored as another
					blob = d.e.capResult(&res, eff.Name, readOn)
				}
				var in run.Input = run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, res), Terminate: res.Terminate,
					DurationMS: time.Since(start).Milliseconds()}
				if blob != nil {
					in = withBlob{in, blob, eff.CallID}
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
	return message.Clean(&m)
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
	// The last moment: what it is called with may have taken long to find, and the machine
	// may have slept meanwhile.
	if !d.holds() || ctx.Err() != nil {
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
	args, approved := d.tools.args(eff.CallID, CreateSubagent), d.tools.amended[eff.CallID]
	parent, pots, readOn, mode := *d.row, d.state.Settings.Pots, d.tools.readOn, d.mode()
	watched := d.watchTool(eff.Step, eff.CallID, CreateSubagent, true, d.agent.Redact)
	return func() {
		d.e.wg.Add(1)
		go func() {
			defer d.e.wg.Done()
			seen, start := watched(args), time.Now()
			if eff.Interrupt != "" {
				if approved == nil {
					m := message.ToolResult(eff.CallID, CreateSubagent, true, message.Text(approvedGone))
					settle(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: &m})
					return
				}
				args = approved
			}
			end, done := d.e.runChild(ctx, d.ref.Tenant, &parent, eff, args, mode, pots)
			if done {
				res := tool.Result{Content: end.message.Content}
				blob := d.e.capResult(&res, CreateSubagent, readOn) // it may have written a book
				end.message.Content = res.Content
				in := run.ToolDone{At: d.at(), CallID: eff.CallID, Message: end.message, Cancelled: end.cancelled, DurationMS: time.Since(start).Milliseconds()}
				if seen != nil {
					seen(in)
				}
				if blob != nil {
					settle(withBlob{in, blob, eff.CallID})
					return
				}
				settle(in)
			}
		}()
	}
}
