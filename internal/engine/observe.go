package engine

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// Observer is told what happens, after it happened: for logs, traces and metrics.
// Its methods are called from many goroutines, must return at once, and must not
// keep or change what messages and requests hold. Runs are told of after the
// commit that made it so; calls as soon as their outcome is there.
type Observer interface {
	Run(*RunSeen)
	Model(*ModelSeen)
	Tool(*ToolSeen)
	// Commit tells how long a commit took, its repetitions included.
	Commit(took time.Duration, err error)
}

// RunID says which run something belongs to.
type RunID struct {
	Ref
	Session, Profile, Version, Mode string
	// Root is the run's own id if it is a root. Parent and ParentCall are empty then.
	Root, Parent, ParentCall string
}

// RunSeen is a run whose status changed. Times are Unix milliseconds.
type RunSeen struct {
	RunID
	Status run.Status
	// Before is the status that it had; Running for one that goes on after a
	// restart of the process.
	Before run.Status
	// Created, Started and Ended are 0 while they have not been.
	Created, Started, Ended int64
	// StopReason and Error are set when the run has ended.
	StopReason, Error string
	Steps, ToolCalls  int
	Usage             message.Usage
}

// ModelSeen is a call of a model that has ended.
type ModelSeen struct {
	RunID
	Step, Attempt   int
	Provider, Model string
	// First is when the first piece of the reply came; zero if none did.
	Start, First, End time.Time
	Request           *model.Request
	// Reply is nil if the call failed. Class and Error are empty if it did not.
	Reply        *message.Message
	Class, Error string
	Usage        *message.Usage
	// Saved is what the provider's cache saved. Broken says why it could not be read to
	// its end, or is nil.
	Saved  message.Money
	Broken *event.CacheBreak
}

// Outcomes of tool calls.
const (
	ToolOK     = "ok"
	ToolError  = "error"  // it ran, and its result is an error
	ToolDenied = "denied" // policy, validation or lookup refused it: it never ran
)

// ToolSeen is a call of a tool that has ended, or was refused.
type ToolSeen struct {
	RunID
	Step         int
	CallID, Name string
	// Known is whether the configuration gave the run a tool of that name: otherwise
	// the run's client brought it, or the model made it up.
	Known      bool
	Outcome    string
	Start, End time.Time
	// Args and Result are redacted as the profile's servers ask for. Reason is why
	// it was refused.
	Args           json.RawMessage
	Result, Reason string
}

// traceparent is the trace context of a call, or "".
func (d *driver) traceparent(callID string) string {
	id := d.observing()
	if id == nil || d.e.cfg.Traceparent == nil {
		return ""
	}
	return d.e.cfg.Traceparent(id, callID)
}

// observing is the run's identity for the observer, or nil if there is none.
func (d *driver) observing() *RunID {
	if d.e.cfg.Observer == nil {
		return nil
	}
	return &RunID{Ref: d.ref, Session: d.row.SessionID, Profile: d.row.Profile, Version: d.row.Version, Mode: d.row.Mode,
		Root: d.rootID(), Parent: d.row.ParentID, ParentCall: d.row.ParentCall}
}

// observe tells of what a transition decided. was is the state ahead of it.
func (d *driver) observe(b *batch, in run.Input, tr *run.Transition, was *run.State) {
	o, before := d.e.cfg.Observer, was.Status
	if v, ok := in.(run.Verdict); ok && v.Decision == run.Deny {
		seen := &ToolSeen{RunID: *d.observing(), Step: d.state.Step, CallID: v.CallID, Outcome: ToolDenied, Reason: v.Reason,
			Start: d.e.cfg.Now(), End: d.e.cfg.Now()}
		for i := range was.Calls {
			if was.Calls[i].ID == v.CallID {
				seen.Name = was.Calls[i].Name
			}
		}
		_, spec, ok := d.tools.set.Lookup(seen.Name)
		seen.Known = ok && spec.Kind != "client"
		seen.Args = d.agent.Redact.data(seen.Name, d.tools.args(v.CallID, seen.Name))
		b.after = append(b.after, func() { o.Tool(seen) })
	}
	if tr.State.Status == before {
		if _, ok := in.(run.Resumed); !ok {
			return
		}
	}
	seen := &RunSeen{RunID: *d.observing(), Status: tr.State.Status, Before: before, Created: d.row.Created, Started: d.row.Started,
		StopReason: tr.State.StopReason, Steps: tr.State.Step, ToolCalls: tr.State.ToolCalls, Usage: tr.State.Usage}
	if seen.Started == 0 && seen.Status != run.Queued {
		seen.Started = d.e.now()
	}
	if seen.Status.Ended() {
		seen.Ended = d.e.now()
	}
	for _, ev := range tr.Events {
		if end, ok := ev.Data.(*event.Ended); ok && end.Error != nil {
			seen.Error = end.Error.Message
		}
	}
	b.after = append(b.after, func() { o.Run(seen) })
}

// watchedCall observes a model call from its start on.
type watchedCall struct {
	mu    sync.Mutex
	info  *model.Info
	ask   *asked
	seen  ModelSeen
	first atomic.Int64 // Unix nanoseconds
}

// watchModel begins to observe a model call; nil if nobody observes.
func (d *driver) watchModel(eff run.CallModel, m *Model, ask *asked) *watchedCall {
	return watchedModel(d.observing(), eff, m, ask)
}

// watchedModel is for who is not the driver's goroutine.
func watchedModel(id *RunID, eff run.CallModel, m *Model, ask *asked) *watchedCall {
	if id == nil {
		return nil
	}
	w := &watchedCall{info: &m.Info, ask: ask, seen: ModelSeen{RunID: *id, Step: eff.Step, Attempt: eff.Attempt, Model: m.ID}}
	w.seen.Provider, _, _ = strings.Cut(m.Name, "/")
	return w
}

// began is when the call is made.
func (w *watchedCall) began(e *Engine, req *model.Request) {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen.Start, w.seen.Request = e.cfg.Now(), req
	}
}

// piece is called with each piece of the reply.
func (w *watchedCall) piece(e *Engine) {
	if w != nil && w.first.Load() == 0 {
		w.first.CompareAndSwap(0, e.cfg.Now().UnixNano())
	}
}

// ended tells the observer.
func (w *watchedCall) ended(e *Engine, in run.Input) {
	if w == nil {
		return
	}
	w.mu.Lock() // one that is abandoned may begin just now
	defer w.mu.Unlock()
	s := &w.seen
	s.End = e.cfg.Now()
	if s.Start.IsZero() {
		s.Start = s.End
	}
	if n := w.first.Load(); n != 0 {
		s.First = time.Unix(0, n)
	}
	if c, ok := in.(cured); ok {
		in = c.Input
	}
	switch in := in.(type) {
	case run.ModelDone:
		s.Reply, s.Usage = in.Message, in.Message.Usage
		s.Saved = model.Saved(w.info, s.Usage)
		if w.ask == nil {
			break // a summary, which goes on from nothing
		}
		if l := w.ask.looked.Load(); l != nil {
			s.Broken = l.broken
		}
	case run.ModelFailed:
		s.Class, s.Error, s.Usage = in.Reason, in.Error, in.Usage
		if s.Usage == nil && in.Partial != nil {
			s.Usage = in.Partial.Usage
		}
	}
	e.cfg.Observer.Model(s)
}

// watchTool prepares to observe a tool call. What it gives is called when the call
// begins, and gives what is called with the outcome, or nil if nobody observes.
func (d *driver) watchTool(step int, callID, name string, known bool, redact Redact) func(args json.RawMessage) func(run.Input) {
	id, e := d.observing(), d.e
	if id == nil {
		return func(json.RawMessage) func(run.Input) { return nil }
	}
	return func(args json.RawMessage) func(run.Input) {
		seen := &ToolSeen{RunID: *id, Step: step, CallID: callID, Name: name, Known: known, Outcome: ToolOK, Start: e.cfg.Now()}
		return func(in run.Input) {
			if w, ok := in.(withBlob); ok {
				in = w.Input
			}
			done, ok := in.(run.ToolDone)
			if !ok {
				return
			}
			seen.End = e.cfg.Now()
			seen.Args = redact.data(name, args)
			if done.Message != nil {
				seen.Result = redact.text(name, done.Message.Text())
				if done.Message.IsError {
					seen.Outcome = ToolError
				}
			}
			e.cfg.Observer.Tool(seen)
		}
	}
}

// observeCommit writes and tells how long that took.
func (c *committer) observeCommit(tx *store.Tx) error {
	o := c.d.e.cfg.Observer
	if o == nil {
		return c.write(tx)
	}
	start := c.d.e.cfg.Now()
	err := c.write(tx)
	o.Commit(c.d.e.cfg.Now().Sub(start), err)
	return err
}

// Load is what an engine has to do at a moment.
type Load struct {
	// Runs counts the runs of the store that have not ended, by status.
	Runs map[run.Status]int
	// Driven are the runs in memory, Waiting those of them that wait for a free
	// place (limits.max_concurrent_runs).
	Driven, Waiting int
	// Lanes are the sessions with a run, Lined the runs that wait in them for
	// their turn.
	Lanes, Lined int
	// Streams are the runs with a stream in memory, Readers those who follow them.
	Streams, Readers int
	// Broken is whether the store refused the last commit.
	Broken bool
}

// Load counts what there is to do. The store is asked for the runs; if it does not
// answer, everything else is there beside the error, and Runs is nil.
func (e *Engine) Load(ctx context.Context) (Load, error) {
	var l Load
	e.slots.mu.Lock()
	l.Waiting = len(e.slots.waiting)
	e.slots.mu.Unlock()
	e.mu.Lock()
	l.Driven, l.Streams, l.Lanes = len(e.drivers), len(e.streams), len(e.lanes)
	for _, lane := range e.lanes {
		l.Lined += len(lane.waiting)
	}
	streams := make([]*stream, 0, len(e.streams))
	for _, s := range e.streams {
		streams = append(streams, s)
	}
	e.mu.Unlock()
	for _, s := range streams {
		s.mu.Lock()
		l.Readers += len(s.subs) + len(s.feeds.readers)
		s.mu.Unlock()
	}
	l.Broken = e.broken.Load() != nil
	refs, err := e.store.Unfinished(ctx)
	if err != nil {
		return l, internal("engine.Load", err)
	}
	l.Runs = map[run.Status]int{run.Queued: 0, run.Running: 0, run.Paused: 0}
	for _, r := range refs {
		l.Runs[run.Status(r.Status)]++
	}
	return l, nil
}
