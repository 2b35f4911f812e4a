package cli

import (
	"context"
	"fmt"
	"iter"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
)

// local is the place of a runtime in this process. It speaks the client's types,
// so that commands are written once.
type local struct{ rt *agentd.Runtime }

// Close implements place.
func (l *local) Close() error { return l.rt.Close() }

// knows reports whether the configuration here has the profiles of a run and of those
// above it. Without them a run that goes on fails: a folder that was not named would
// end what waits for a person.
func (l *local) knows(ctx context.Context, id string) error {
	for id != "" {
		r, err := l.Run(ctx, id)
		if err != nil {
			return err
		}
		if err := l.rt.Knows(r.Profile); err != nil {
			return &fault.Error{Kind: fault.NotFound, Err: fmt.Errorf("run %s is of profile %s, which the configuration here does not have", r.ID, r.Profile),
				Hint: "Name the configuration that it was started with: --configs DIR. The run stays as it is."}
		}
		id = r.ParentID
	}
	return nil
}

// Run implements runs.
func (l *local) Run(ctx context.Context, id string) (*client.Run, error) {
	return runOf(l.rt.Get(ctx, id))
}

// Runs implements runs.
func (l *local) Runs(ctx context.Context, f client.RunFilter) ([]*client.Run, string, error) {
	rows, cursor, err := l.rt.Runs(ctx, f.SessionID, f.Status, f.Cursor, f.Limit)
	if err != nil {
		return nil, "", err
	}
	out := make([]*client.Run, len(rows))
	for i, r := range rows {
		out[i], _ = runOf(r, nil)
	}
	return out, cursor, nil
}

// Replay implements runs.
func (l *local) Replay(ctx context.Context, id string, after int64) iter.Seq2[event.Event, error] {
	return l.rt.Replay(ctx, id, after)
}

// Watch implements runs.
func (l *local) Watch(ctx context.Context, id string, after int64) iter.Seq2[event.Event, error] {
	return l.rt.Watch(ctx, id, after)
}

// Cancel implements runs.
func (l *local) Cancel(ctx context.Context, id, reason string) (*client.Run, error) {
	return runOf(l.rt.Cancel(ctx, id, reason))
}

// Trace implements runs.
func (l *local) Trace(ctx context.Context, id string, after, limit int) ([]*client.Trace, bool, error) {
	rows, more, err := l.rt.Trace(ctx, id, after, limit)
	var out []*client.Trace
	for _, r := range rows {
		t := &client.Trace{N: r.N, Time: r.Time, Input: r.Input, Data: r.Data}
		for _, e := range r.Effects {
			t.Effects = append(t.Effects, client.TraceEffect(e))
		}
		out = append(out, t)
	}
	return out, more, err
}

// Session implements sessions.
func (l *local) Session(ctx context.Context, id string) (*client.Session, error) {
	s, err := l.rt.Session(ctx, id)
	return (*client.Session)(s), err
}

// Sessions implements sessions.
func (l *local) Sessions(ctx context.Context, f client.SessionFilter) ([]*client.Session, string, error) {
	rows, next, err := l.rt.Sessions(ctx, agentd.SessionFilter(f))
	out := make([]*client.Session, len(rows))
	for i, s := range rows {
		out[i] = (*client.Session)(s)
	}
	return out, next, err
}

// Entries implements sessions.
func (l *local) Entries(ctx context.Context, id string) ([]*client.Entry, error) {
	rows, err := l.rt.Entries(ctx, id)
	out := make([]*client.Entry, len(rows))
	for i, e := range rows {
		out[i] = (*client.Entry)(e)
	}
	return out, err
}

// DeleteSession implements sessions. A dormant runtime does not know which runs
// are active, so the store is asked.
func (l *local) DeleteSession(ctx context.Context, id string) error {
	for _, status := range []string{client.Queued, client.Running, client.Paused} {
		open, _, err := l.rt.Runs(ctx, id, status, "", 1)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s of the session has not ended: it is %s", open[0].ID, status),
				Hint: "Cancel it first: agentd runs cancel " + open[0].ID}
		}
	}
	return l.rt.DeleteSession(ctx, id)
}

// Interrupt implements interrupts.
func (l *local) Interrupt(ctx context.Context, id string) (*client.Interrupt, error) {
	i, err := l.rt.Interrupt(ctx, id)
	return (*client.Interrupt)(i), err
}

// Interrupts implements interrupts.
func (l *local) Interrupts(ctx context.Context, status, cursor string, limit int) ([]*client.Interrupt, string, error) {
	rows, next, err := l.rt.Interrupts(ctx, status, cursor, limit)
	return interruptsOf(rows), next, err
}

// Answer implements interrupts.
func (l *local) Answer(ctx context.Context, req client.AnswerRequest) (*client.Interrupt, error) {
	i, err := l.rt.Answer(ctx, agentd.AnswerRequest{Run: req.Run, Interrupt: req.Interrupt, Decision: req.Decision, Args: req.Args,
		Answer: req.Answer, Reason: req.Reason, By: "terminal", Remember: req.Remember, SessionMode: req.SessionMode})
	return (*client.Interrupt)(i), err
}

func interruptsOf(rows []*agentd.Interrupt) []*client.Interrupt {
	var out []*client.Interrupt
	for _, i := range rows {
		out = append(out, (*client.Interrupt)(i))
	}
	return out
}

func runOf(r *agentd.Run, err error) (*client.Run, error) {
	if err != nil {
		return nil, err
	}
	out := &client.Run{ID: r.ID, SessionID: r.SessionID, RootID: r.RootID, ParentID: r.ParentID, Profile: r.Profile,
		ProfileVersion: r.ProfileVersion, Mode: r.Mode, SessionMode: r.SessionMode, Model: r.Model, Thinking: r.Thinking, Status: r.Status, StopReason: r.StopReason, Output: r.Output, Steps: r.Steps,
		Usage: r.Usage, Interrupts: interruptsOf(r.Interrupts), ToolCalls: r.ToolCalls, Error: r.Error, Metadata: r.Metadata,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt, LastSeq: r.LastSeq}
	out.Proposals, _ = proposalsOf(r.Proposals, nil)
	if b := r.Budget; b != nil {
		out.Budget = &client.RunBudget{Limits: client.Budget(b.Limits), Used: client.BudgetUsed(b.Used), Pots: potsOf(b.Pots)}
	}
	return out, nil
}
