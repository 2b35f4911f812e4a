package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
)

// childEnd is what became of a child run.
type childEnd struct {
	message   *message.Message // the call's result
	cancelled bool
}

// runChild starts the child run of a call, or finds it, and waits for its end. If
// the parent's process is stopping there is no result: the next one finds the
// child again.
func (e *Engine) runChild(ctx context.Context, tenant string, parent *store.Run, eff run.SpawnChild, args json.RawMessage, mode string, pots []run.Pot) (childEnd, bool) {
	fail := func(err error) (childEnd, bool) {
		m := message.ToolResult(eff.CallID, CreateSubagent, true, message.Text("Subagent failed: "+describe(err)))
		return childEnd{message: &m}, true
	}
	ref := Ref{tenant, eff.Child}
	_, err := e.store.Run(ctx, tenant, eff.Child)
	for e.away(ctx, err) {
		_, err = e.store.Run(ctx, tenant, eff.Child)
	}
	if eff.Stop {
		if errors.Is(err, store.ErrNotFound) {
			m := message.ToolResult(eff.CallID, CreateSubagent, true, message.Text("Subagent cancelled before it started"))
			return childEnd{&m, true}, true
		}
		return e.stopChild(ref, eff, fail)
	}
	if errors.Is(err, store.ErrNotFound) {
		err = e.startChild(ctx, tenant, parent, eff, args, mode, pots)
		for e.away(ctx, err) {
			// It may have been made all the same.
			if _, err = e.store.Run(ctx, tenant, eff.Child); errors.Is(err, store.ErrNotFound) {
				err = e.startChild(ctx, tenant, parent, eff, args, mode, pots)
			}
		}
	}
	if err != nil && ctx.Err() == nil && e.ctx.Err() == nil {
		return fail(err)
	}
	r, err := e.Wait(ctx, ref)
	for e.away(ctx, err) {
		r, err = e.Wait(ctx, ref)
	}
	if e.ctx.Err() != nil {
		return childEnd{}, false // not an outcome: the next engine finds the child
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errStopped) {
			// The chain of cancels: the child ends first, then its parent.
			return e.stopChild(ref, eff, fail)
		}
		return childEnd{}, false
	}
	if err != nil {
		return fail(err)
	}
	return childResult(eff, r)
}

func (e *Engine) stopChild(ref Ref, eff run.SpawnChild, fail func(error) (childEnd, bool)) (childEnd, bool) {
	ctx, cancel := context.WithTimeout(e.ctx, 5*e.cfg.AbandonAfter+time.Second)
	defer cancel()
	if _, err := e.Cancel(ctx, ref, "its parent run was cancelled"); err != nil && fault.KindOf(err) != fault.Conflict && e.ctx.Err() == nil {
		return fail(err)
	}
	r, err := e.Wait(ctx, ref)
	if e.ctx.Err() != nil {
		return childEnd{}, false
	}
	if err != nil {
		return fail(err)
	}
	return childResult(eff, r)
}

// endChildren cancels what is left of the children of a run that was aborted: that
// one did not wait for them. A child that is loaded later finds out by itself.
func (e *Engine) endChildren(parent Ref, children int) {
	defer e.wg.Done()
	for n := range children {
		id := run.ChildID(parent.ID, n+1)
		_, err := e.Cancel(e.ctx, Ref{parent.Tenant, id}, "its parent run has ended")
		if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.NotFound && e.ctx.Err() == nil {
			e.log.Error("a child run of an aborted run can not be cancelled", "run", id, "error", err)
		}
	}
}

func childResult(eff run.SpawnChild, r *Run) (childEnd, bool) {
	text, isError := r.Output, false
	if r.Status != string(run.Completed) {
		isError = true
		if text = "Subagent failed"; r.Status == string(run.Cancelled) {
			text = "Subagent cancelled"
		}
		if r.Error != nil {
			text += ": " + r.Error.Message
		}
		if r.Output != "" {
			text += "\nIts last words: " + r.Output
		}
	} else if text == "" {
		text = "(the subagent gave no answer; stop reason " + r.StopReason + ")"
	}
	m := message.ToolResult(eff.CallID, CreateSubagent, isError, message.Text(text))
	details, err := json.Marshal(map[string]any{"run_id": r.ID, "session_id": r.SessionID, "status": r.Status, "usage": r.Usage})
	if err == nil {
		m.Details = details
	}
	return childEnd{&m, r.Status == string(run.Cancelled)}, true
}

// deepen notes how many runs are above a child, and what it shares with them.
// mode is the parent's: the child's is that or a stricter one.
func deepen(child, parent *store.Run, mode string, pots []run.Pot) error {
	var above, sp spec
	if err := errors.Join(json.Unmarshal(parent.Spec, &above), json.Unmarshal(child.Spec, &sp)); err != nil {
		return err
	}
	sp.Depth, sp.Pots, sp.MaxMode = above.Depth+1, pots, mode
	var err error
	child.Spec, err = json.Marshal(sp)
	return err
}

// startChild creates the child run with a session of its own.
func (e *Engine) startChild(ctx context.Context, tenant string, parent *store.Run, eff run.SpawnChild, args json.RawMessage, mode string, pots []run.Pot) error {
	var a subagentArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	agent, err := e.cfg.Agents.Outline(ctx, tenant, a.Type)
	if err != nil {
		return err
	}
	ses, err := e.store.Session(ctx, tenant, parent.SessionID)
	if err != nil {
		return notFound("session", parent.SessionID, err)
	}
	req := StartRequest{Tenant: tenant, Profile: a.Type, Input: []message.Block{message.Text(a.Prompt)}, Mode: parent.Mode, Ephemeral: ses.Ephemeral}
	if err := req.validate(); err != nil {
		return err
	}
	if err := priced(agent, pots, agent.Caps); err != nil {
		return err
	}
	row, tx, err := e.accept(ctx, &req, agent)
	if err != nil {
		return err
	}
	// The id is the parent's to choose: a second attempt finds this run.
	for _, in := range tx.Inputs {
		in.RunID = eff.Child
	}
	row.ID, row.ParentID, row.ParentCall, row.User = eff.Child, parent.ID, eff.CallID, parent.User
	row.RootID = parent.RootID
	if row.RootID == "" {
		row.RootID = parent.ID
	}
	if err := deepen(row, parent, mode, pots); err != nil {
		return internal("engine.startChild", err)
	}
	st := run.New(row.ID, row.SessionID)
	row.State = st.Encode()
	if err := e.put(ctx, tx); err != nil {
		if errors.Is(err, store.ErrUnknown) {
			e.maybeAccepted(Ref{tenant, row.SessionID}, row.ID)
		}
		return internal("engine.startChild", err)
	}
	e.submit(ctx, Ref{tenant, row.SessionID}, row)
	return nil
}
