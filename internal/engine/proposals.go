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
	"agentd/tool"
)

// Statuses of proposals. Applying means that the call was started and its outcome
// is not known: it runs now, the process ended meanwhile, or its answer was lost.
const (
	proposed  = "proposed"
	applying  = "applying"
	applied   = "applied"
	failed    = "failed"
	discarded = "discarded"
)

// ProposalView is a call that an autonomous run recorded instead of making it.
type ProposalView struct {
	ID         string          `json:"proposal_id"`
	RunID      string          `json:"run_id"`
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`
	// TempID stands in Predicted, and in the arguments of later proposals, for the
	// id of what the call makes; RealID is what took its place.
	TempID    string          `json:"temp_id"`
	RealID    json.RawMessage `json:"real_id,omitempty"`
	Predicted string          `json:"predicted"`
	Reason    string          `json:"reason"`
	// Status is proposed, applying, applied, failed or discarded.
	Status    string `json:"status"`
	Result    string `json:"result,omitempty"`
	By        string `json:"by,omitempty"`
	CreatedAt string `json:"created_at"`
	DecidedAt string `json:"decided_at,omitempty"`
}

// DecideRequest applies or discards proposals of a run that has ended.
type DecideRequest struct {
	Tenant, Run string
	// Proposal is the one that is meant; empty means all that are left.
	Proposal string
	By       string
	// Uncertain says what became of a call that was started and whose outcome was
	// lost: "retry" makes it again, "done" takes it as made, with RealID as its id.
	Uncertain string
	RealID    string
	turn      *deciding // of one of several nodes, while it decides
}

// Proposals lists what a run, and the runs below it, recorded, in order.
func (e *Engine) Proposals(ctx context.Context, ref Ref) ([]*ProposalView, error) {
	rows, err := e.store.Proposals(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("run", ref.ID, err)
	}
	views := make([]*ProposalView, len(rows))
	redact := map[string]hydrator{}
	for i, p := range rows {
		h, ok := redact[p.RunID]
		if !ok {
			h.run(ctx, e, ref.Tenant, p.RunID)
			redact[p.RunID] = h
		}
		views[i] = &ProposalView{ID: p.ID, RunID: p.RunID, ToolCallID: p.CallID, Tool: p.Name, Args: h.redact.data(p.Name, p.Args), TempID: p.Temp,
			RealID: p.Real, Predicted: p.Predicted, Reason: p.Reason, Status: p.Status, Result: h.redact.text(p.Name, p.Result), By: who(ref.Tenant, p.By),
			CreatedAt: timestamp(p.Created), DecidedAt: timestamp(p.Decided)}
	}
	return views, nil
}

// Discard decides that proposals are never applied.
func (e *Engine) Discard(ctx context.Context, req DecideRequest) ([]*ProposalView, error) {
	return e.decide(ctx, &req, func(p *store.Proposal, _ []*store.Proposal) error {
		if p.Status == applying && p.Effect != string(tool.Read) {
			return unclear(p)
		}
		return e.setProposal(ctx, req.Tenant, p, store.ProposalUpdate{Status: discarded, Result: p.Result, By: req.By, Decided: e.now()}, nil)
	})
}

// Apply makes the calls that were proposed, in order, each once: that it starts is
// durable before it does, and its outcome before the next one starts. It stops at
// the first that fails; a later Apply goes on there. The ids of what was made take
// the place of temporary ones.
func (e *Engine) Apply(ctx context.Context, req DecideRequest) ([]*ProposalView, error) {
	switch req.Uncertain {
	case "", "retry", "done":
	default:
		return nil, &fault.Error{Kind: fault.Invalid, Field: "uncertain", Err: fmt.Errorf("%q: use retry or done", req.Uncertain)}
	}
	return e.decide(ctx, &req, func(p *store.Proposal, all []*store.Proposal) error {
		return e.applyOne(ctx, &req, p, all)
	})
}

// decide goes through the proposals that are left, one caller at a time.
func (e *Engine) decide(ctx context.Context, req *DecideRequest, one func(*store.Proposal, []*store.Proposal) error) ([]*ProposalView, error) {
	row, err := e.store.Run(ctx, req.Tenant, req.Run)
	if err != nil {
		return nil, notFound("run", req.Run, err)
	}
	if !run.Status(row.Status).Ended() {
		return nil, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s has not ended: it is %s", row.ID, row.Status),
			Hint: "Its proposals can be decided about when it has, because it may make more."}
	}
	top := Ref{req.Tenant, row.RootID}
	if top.ID == "" {
		top.ID = row.ID
	}
	e.mu.Lock()
	closed, busy, over := e.closed, e.deciding[top] != nil, make(chan struct{})
	if !busy && !closed {
		e.deciding[top] = over
		e.wg.Add(1)
	}
	e.mu.Unlock()
	switch {
	case closed:
		return nil, fault.New(fault.Unavailable, "the engine is closing")
	case busy:
		return nil, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("the proposals of run %s are being decided about", req.Run), Hint: "Look at them again in a while."}
	}
	defer e.wg.Done()
	defer func() {
		e.mu.Lock()
		delete(e.deciding, top)
		e.mu.Unlock()
		close(over)
	}()
	if e.node != nil {
		var letGo func()
		if req.turn, letGo, err = e.node.decide(top, e.cfg.NewID()); err != nil {
			return nil, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("the proposals of run %s can not be decided about now: %w", req.Run, err), Hint: "Look at them again in a while."}
		}
		defer letGo()
	}
	// Ids of one run may stand in the calls of another run of its tree.
	all, err := e.store.Proposals(ctx, req.Tenant, top.ID)
	if err != nil {
		return nil, internal("engine.decide", err)
	}
	found := req.Proposal == ""
	for _, p := range all {
		if !within(p.RunID, req.Run) || req.Proposal != "" && p.ID != req.Proposal {
			continue
		}
		found = true
		if p.Status == applied || p.Status == discarded {
			if req.Proposal != "" {
				return nil, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("proposal %s is %s already (at %s)", p.ID, p.Status, timestamp(p.Decided))}
			}
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err // who asked is gone, or may not ask any more: the next one is not begun
		}
		if err := one(p, all); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, notFound("proposal", req.Proposal, store.ErrNotFound)
	}
	return e.Proposals(ctx, Ref{req.Tenant, req.Run})
}

func unclear(p *store.Proposal) error {
	why := "agentd ended while proposal %s (%s) was applied"
	if p.Result != "" {
		why = "proposal %s (%s) was started and nobody knows its outcome" // what came of it was kept
	}
	return &fault.Error{Kind: fault.Conflict, Field: "uncertain", Err: fmt.Errorf(why+": it may have happened", p.ID, p.Name),
		Hint: "Find out whether it happened, then apply it with uncertain: retry, or done (with its real_id)."}
}

// setProposal commits what becomes of a proposal.
func (e *Engine) setProposal(ctx context.Context, tenant string, p *store.Proposal, u store.ProposalUpdate, more func(*store.Tx)) error {
	tx := &store.Tx{Tenant: tenant, Proposals: []store.ProposalChange{{ID: p.ID, From: p.Status, ProposalUpdate: u}}}
	if more != nil {
		more(tx)
	}
	err := e.put(ctx, tx)
	if errors.Is(err, store.ErrConflict) {
		return &fault.Error{Kind: fault.Conflict, Err: err, Hint: "Somebody else decided about it just now: look at it again."}
	}
	if err != nil {
		return internal("engine.proposals", err)
	}
	p.ProposalUpdate = u
	return nil
}

func (e *Engine) applyOne(ctx context.Context, req *DecideRequest, p *store.Proposal, all []*store.Proposal) error {
	if p.Status == applying {
		switch {
		case req.Uncertain == "" && p.Effect == string(tool.Once):
			return unclear(p)
		case req.Uncertain == "done": // also of what could be repeated: its tool may be gone
			var realID json.RawMessage
			if req.RealID != "" {
				realID, _ = json.Marshal(req.RealID)
			}
			return e.setProposal(ctx, req.Tenant, p, store.ProposalUpdate{Status: applied, Real: realID, By: req.By, Decided: e.now(),
				Result: "A person checked that it happened."}, nil)
		}
		req.Uncertain = "" // it was said of this one
	}
	args, err := e.substitute(ctx, req.Tenant, p, all)
	if err != nil {
		return err
	}
	row, err := e.store.Run(ctx, req.Tenant, p.RunID)
	if err != nil {
		return notFound("run", p.RunID, err)
	}
	agent, box, err := e.boxOf(ctx, req.Tenant, row)
	if err != nil {
		return err
	}
	t, spec, ok := box.set.Lookup(p.Name)
	if !ok {
		return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("proposal %s: there is no tool %q any more. %s", p.ID, p.Name, box.missing)}
	}
	if spec.Pool != "" && e.node != nil && !e.node.serves(spec.Pool) {
		return elsewhere(p, &spec)
	}
	args, aerr := e.validator.Prepare(spec, args)
	if aerr != nil {
		return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("proposal %s can not be applied: %w", p.ID, aerr)}
	}
	if err := e.setProposal(ctx, req.Tenant, p, store.ProposalUpdate{Status: applying, By: req.By}, req.turn.assert); err != nil {
		return err
	}
	if !req.turn.lasts() {
		return lapsedProposal(p)
	}
	var res tool.Result
	doubt := false
	if spec.Kind == "spawn" {
		res = e.startProposed(ctx, req.Tenant, row, p, args)
	} else {
		res, doubt = e.makeProposed(req.turn.context(e.ctx), t, &spec, agent, row, req.Tenant, p, args)
	}
	if e.ctx.Err() != nil {
		// What the end of the process did to the call is no outcome of it.
		return fault.New(fault.Unavailable, "the engine is closing: proposal "+p.ID+" may have been applied")
	}
	if doubt && !req.turn.lasts() {
		return lapsedProposal(p)
	}
	u := store.ProposalUpdate{Status: applied, By: req.By, Decided: e.now()}
	whole := contentText(res.Content)
	b := e.capResult(&res, p.Name, false)
	u.Result = contentText(res.Content)
	switch {
	case res.IsError && doubt && p.Effect == string(tool.Once):
		u.Status, u.Decided = applying, 0 // until a person finds out
		if u.Result == "" {
			u.Result = "It did not end in time."
		}
	case res.IsError:
		u.Status = failed
	default:
		u.Real = madeID(whole)
	}
	err = e.setProposal(ctx, req.Tenant, p, u, func(tx *store.Tx) {
		if b != nil {
			tx.Blobs, tx.BlobUses = append(tx.Blobs, b), append(tx.BlobUses, store.BlobUse{SessionID: row.SessionID, BlobID: b.ID, RunID: row.ID, CallID: p.CallID, Name: b.Name, Created: b.Created})
		}
	})
	if err == nil && b != nil {
		e.trimArtifacts(Ref{req.Tenant, row.SessionID})
	}
	if err == nil && u.Status == applying {
		err = unclear(p)
		return &fault.Error{Kind: fault.Conflict, Field: "uncertain", Err: fmt.Errorf("%w: %s", err, agent.Redact.text(p.Name, u.Result)), Hint: fault.HintOf(err)}
	}
	if err == nil && res.IsError {
		err = &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("proposal %s failed, and those after it were not applied: %s", p.ID, agent.Redact.text(p.Name, u.Result)),
			Hint: "Apply again to try it again, or discard it first."}
	}
	return err
}

// makeProposed makes the call. The person who asked for it may go; the end of the
// engine ends it. doubt is whether a call that failed may have happened: it did not
// end in time, gave up because of that, or its answer was lost.
func (e *Engine) makeProposed(ctx context.Context, t tool.Tool, spec *tool.Spec, agent *Agent, row *store.Run, tenant string, p *store.Proposal, args json.RawMessage) (res tool.Result, doubt bool) {
	timeout := spec.Timeout
	if timeout <= 0 {
		timeout = agent.ToolTimeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	call := tool.Call{ID: p.CallID, Name: p.Name, Args: args, Key: p.Key, Tenant: tenant, User: named(row), RunID: p.RunID, SessionID: row.SessionID,
		Progress: func(tool.Progress) {}}
	type outcome struct {
		res   tool.Result
		doubt bool
	}
	done := make(chan outcome, 1)
	go func() { // an abandoned one may go on for ever, and nobody waits for it
		defer func() {
			if r := recover(); r != nil {
				done <- outcome{tool.ErrorResult(fmt.Sprintf("%s panicked: %v", p.Name, r)), true}
			}
		}()
		var lost *tool.InDoubtError
		res, err := t.Run(ctx, call)
		if err != nil {
			res = tool.ErrorResult(describe(err))
		}
		done <- outcome{res, errors.As(err, &lost)}
	}()
	select {
	case o := <-done:
		return o.res, o.doubt || ctx.Err() != nil
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.res, true
	case <-time.After(e.cfg.AbandonAfter):
		return tool.ErrorResult(p.Name + " did not end in time; it may still happen."), true
	}
}

func contentText(blocks []message.Block) string {
	m := message.Message{Content: blocks}
	return m.Text()
}
