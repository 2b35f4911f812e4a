package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// Answer answers an open interrupt. It can be answered once; a second answer is
// a conflict that says what the first one was.
func (e *Engine) Answer(ctx context.Context, req AnswerRequest) (*InterruptView, error) {
	row, err := e.findInterrupt(ctx, &req)
	if err != nil {
		return nil, err
	}
	if err := e.wanted(ctx, req.Tenant, row); err != nil {
		return nil, err
	}
	if err := e.canGoOn(ctx, req.Tenant, row); err != nil {
		return nil, err
	}
	if err := e.planMode(ctx, row, &req); err != nil {
		return nil, err
	}
	in := run.Answered{At: run.At{Now: e.now()}, Interrupt: row.ID, Decision: req.Decision, Reason: req.Reason, Mode: req.SessionMode}
	change := store.InterruptChange{ID: row.ID, InterruptAnswer: store.InterruptAnswer{Status: "answered",
		Answer: req.Answer, Reason: req.Reason, AnsweredBy: req.By, Answered: in.Now}}
	if err := e.complete(ctx, &in, &change, row, &req); err != nil {
		return nil, err
	}
	change.Decision = in.Decision
	var rules []*store.Rule
	if req.Remember {
		var amended json.RawMessage
		if in.Amended {
			amended = change.Answer
		}
		rule, err := e.remember(ctx, row, &req, amended)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	var input run.Input = in
	if in.Amended {
		input = withArgs{in, row.CallID, change.Answer}
	}
	e.overdue(ctx, req.Tenant, row)
	err = e.send(ctx, Ref{req.Tenant, row.RunID}, input, func(tx *store.Tx) {
		tx.Answers, tx.NewRules = append(tx.Answers, change), append(tx.NewRules, rules...)
	})
	if err != nil {
		// Somebody may have been faster.
		if now, err2 := e.store.Interrupt(ctx, req.Tenant, row.ID); err2 == nil && now.Status != "open" {
			return nil, answeredAlready(req.Tenant, now)
		}
		return nil, err
	}
	e.settled(expiry{Ref{req.Tenant, row.RunID}, row.ID})
	return e.Interrupt(ctx, Ref{req.Tenant, row.ID})
}

// withArgs is an answer with the arguments that it changed.
type withArgs struct {
	run.Input
	call string
	args json.RawMessage
}

// findInterrupt finds the one that is answered.
func (e *Engine) findInterrupt(ctx context.Context, req *AnswerRequest) (*store.Interrupt, error) {
	if req.Tenant == "" {
		req.Tenant = store.DefaultTenant
	}
	if req.Interrupt == "" {
		r, err := e.store.Run(ctx, req.Tenant, req.Run)
		if err != nil {
			return nil, notFound("run", req.Run, err)
		}
		open, err := e.openBelow(ctx, req.Tenant, r)
		if err != nil {
			return nil, internal("engine.Answer", err)
		}
		switch len(open) {
		case 0:
			return nil, e.nothingOpen(ctx, req, r)
		case 1:
			return open[0], nil
		}
		ids := make([]string, len(open))
		for i := range open {
			ids[i] = open[i].ID
		}
		return nil, &fault.Error{Kind: fault.Conflict, Field: "interrupt_id",
			Err:  fmt.Errorf("%d interrupts are open: %s", len(open), strings.Join(ids, ", ")),
			Hint: "Name the one that you answer as interrupt_id."}
	}
	row, err := e.store.Interrupt(ctx, req.Tenant, req.Interrupt)
	if err != nil || req.Run != "" && !within(row.RunID, req.Run) {
		if err == nil {
			err = store.ErrNotFound
		}
		return nil, notFound("interrupt", req.Interrupt, err)
	}
	if row.Status != "open" {
		return nil, answeredAlready(req.Tenant, row)
	}
	return row, nil
}

// wanted refuses an answer to a run whose parent, or who is above that, is ending:
// the cancel is on its way down, and what was acknowledged as cancelled must not
// start anything any more.
func (e *Engine) wanted(ctx context.Context, tenant string, row *store.Interrupt) error {
	for id := run.ParentID(row.RunID); id != ""; id = run.ParentID(id) {
		above, err := e.store.Run(ctx, tenant, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return internal("engine.Answer", err)
		}
		state, err := run.Decode(above.State)
		if over := run.Status(above.Status).Ended(); over || err == nil && state.Stopping() {
			what := "is being cancelled"
			if over {
				what = "is " + above.Status
			}
			return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("interrupt %s can not be answered any more: run %s above it %s", row.ID, id, what)}
		}
	}
	return nil
}

func (e *Engine) nothingOpen(ctx context.Context, req *AnswerRequest, row *store.Run) error {
	all, err := e.allInterrupts(ctx, req.Tenant, below(row))
	if err == nil && len(all) > 0 {
		return answeredAlready(req.Tenant, all[len(all)-1])
	}
	return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s does not wait for an answer", req.Run)}
}

func answeredAlready(tenant string, row *store.Interrupt) error {
	what := row.Status
	if row.Decision != "" {
		what += ": " + row.Decision
	}
	if by := who(tenant, row.AnsweredBy); by != "" {
		what += " by " + by
	}
	if row.Reason != "" {
		what += ", " + strings.TrimPrefix(row.Reason, "expired: ")
	}
	return &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("interrupt %s is no longer open (%s at %s)", row.ID, what, timestamp(row.Answered)),
		Hint: "An interrupt can be answered once."}
}

// who says who decided something, "" where nobody has a name.
func who(tenant, by string) string {
	switch by {
	case store.DefaultTenant: // without keys
		return ""
	case tenant:
		return "tenant " + by
	}
	return by
}

// complete fills the answer in by the interrupt's kind and checks it.
func (e *Engine) complete(ctx context.Context, in *run.Answered, change *store.InterruptChange, row *store.Interrupt, req *AnswerRequest) error {
	bad := func(field, format string, args ...any) error {
		return &fault.Error{Kind: fault.Invalid, Field: field, Err: fmt.Errorf(format, args...)}
	}
	allowed := map[string][]string{"approval": {"approve", "reject"}, "plan": {"approve", "reject"}, "question": {"answer", "reject"}, "uncertain": {"retry", "skip", "done"}}[row.Kind]
	if in.Decision == "" && row.Kind == "question" && len(req.Answer) > 0 {
		in.Decision = "answer"
	}
	ok := false
	for _, d := range allowed {
		ok = ok || d == in.Decision
	}
	switch {
	case in.Decision == "":
		return bad("decision", "an interrupt of kind %s needs a decision: use %s", row.Kind, strings.Join(allowed, ", "))
	case !ok:
		return bad("decision", "%q does not answer an interrupt of kind %s: use %s", in.Decision, row.Kind, strings.Join(allowed, ", "))
	case len(req.Args) > 0 && in.Decision != "approve":
		return bad("args", "arguments can only be amended with decision approve")
	case len(req.Answer) > 0 && in.Decision != "answer" && in.Decision != "done":
		// Whoever meant to change the call must not believe to have done so.
		return &fault.Error{Kind: fault.Invalid, Field: "answer", Err: fmt.Errorf("decision %s takes no answer", in.Decision),
			Hint: "Changed arguments go into args, with decision approve; what the model should read goes into reason."}
	case in.Decision == "answer" && len(req.Answer) == 0:
		return bad("answer", "the question needs an answer")
	case len(req.Answer) > 0 && !json.Valid(req.Answer):
		return bad("answer", "it is not JSON")
	}
	if len(req.Args) > 0 && row.CallID == "" {
		raise, err := e.raise(row, req.Args)
		if err != nil {
			return err
		}
		in.Raise, change.Answer = raise, req.Args
	} else if len(req.Args) > 0 {
		args, err := e.amendment(ctx, row, req)
		if err != nil {
			return err
		}
		in.Amended, change.Answer = true, args
	}
	if in.Decision == "answer" && len(row.Schema) > 0 {
		// What the model asked for is what it gets: a form that is not filled
		// in goes back to the person, and the interrupt stays open.
		answer, verr := e.validator.Value(row.Schema, req.Answer)
		if verr != nil {
			return &fault.Error{Kind: fault.Invalid, Field: "answer", Err: verr, Hint: "The interrupt is still open; its schema says what the answer must be."}
		}
		req.Answer, change.Answer = answer, answer
	}
	if err := json.Unmarshal(req.Answer, &in.Text); err != nil {
		in.Text = string(req.Answer)
	}
	if row.Kind == "plan" && in.Amended {
		in.Text = planOf(change.Answer)
	}
	return nil
}

// amendment validates the arguments that a person wrote as if the model had.
func (e *Engine) amendment(ctx context.Context, row *store.Interrupt, req *AnswerRequest) (json.RawMessage, error) {
	r, err := e.store.Run(ctx, req.Tenant, row.RunID)
	if err != nil {
		return nil, notFound("run", row.RunID, err)
	}
	_, box, err := e.boxOf(ctx, req.Tenant, r)
	if err != nil {
		return nil, err
	}
	var call event.Tool
	if err := json.Unmarshal(row.ToolCall, &call); err != nil {
		return nil, internal("engine.Answer", err)
	}
	args, err := box.amend(row.CallID, call.Name, req.Args)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "args", Err: err}
	}
	return args, nil
}

// approvedGone is what the model reads of a call with arguments that a person approved
// and that the store has no longer.
const approvedGone = "Not executed: the arguments that a person approved are gone."

// amended gives the arguments that a person approved; nil if the store has them no
// longer.
func (e *Engine) amended(ctx context.Context, ref Ref) (json.RawMessage, error) {
	row, err := e.store.Interrupt(ctx, ref.Tenant, ref.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return row.Answer, nil
}

// loadAmended takes in what a person made of the arguments of a call that may be made
// yet. If the store is away now the run is loaded again, as for anything else of it.
func (d *driver) loadAmended(ctx context.Context, c *run.Call) error {
	if c.AmendedBy == "" || c.Phase == run.CallDone {
		return nil
	}
	args, err := d.e.amended(ctx, Ref{d.ref.Tenant, c.AmendedBy})
	if err != nil {
		return internal("engine.load", err)
	}
	if d.tools.amended == nil {
		d.tools.amended = map[string]json.RawMessage{}
	}
	if args != nil {
		d.tools.amended[c.ID] = args
	}
	return nil
}

// Interrupts lists interrupts, oldest first. The cursor is "" at the end.
func (e *Engine) Interrupts(ctx context.Context, tenant string, f InterruptFilter) ([]*InterruptView, string, error) {
	var sf store.InterruptFilter
	if f.RunID != "" {
		row, err := e.store.Run(ctx, tenant, f.RunID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, "", nil
		case err != nil:
			return nil, "", internal("engine.Interrupts", err)
		}
		sf = below(row)
	}
	sf.Status, sf.Limit, sf.Cursor = f.Status, f.Limit, f.Cursor
	rows, cursor, err := e.store.Interrupts(ctx, tenant, sf)
	if err != nil {
		return nil, "", internal("engine.Interrupts", err)
	}
	return e.interruptViews(ctx, tenant, rows), cursor, nil
}

// allInterrupts gives the interrupts of one run, which are few, to the last.
func (e *Engine) allInterrupts(ctx context.Context, tenant string, f store.InterruptFilter) (all []*store.Interrupt, err error) {
	for {
		rows, cursor, err := e.store.Interrupts(ctx, tenant, f)
		if err != nil {
			return nil, err
		}
		if all = append(all, rows...); cursor == "" {
			return all, nil
		}
		f.Cursor = cursor
	}
}

func (e *Engine) interruptViews(ctx context.Context, tenant string, rows []*store.Interrupt) []*InterruptView {
	views := make([]*InterruptView, len(rows))
	for i, row := range rows {
		views[i] = e.interruptView(ctx, tenant, row)
	}
	return views
}

// Interrupt gives one interrupt.
func (e *Engine) Interrupt(ctx context.Context, ref Ref) (*InterruptView, error) {
	row, err := e.store.Interrupt(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return nil, notFound("interrupt", ref.ID, err)
	}
	return e.interruptView(ctx, ref.Tenant, row), nil
}

func (e *Engine) interruptView(ctx context.Context, tenant string, row *store.Interrupt) *InterruptView {
	v := &InterruptView{ID: row.ID, RunID: row.RunID, SessionID: row.SessionID, Kind: row.Kind, Status: row.Status, Prompt: row.Prompt,
		Schema: readable(row.Schema), Decision: row.Decision, Reason: row.Reason, Answer: readable(row.Answer), AnsweredBy: who(tenant, row.AnsweredBy),
		CreatedAt: timestamp(row.Created), AnsweredAt: timestamp(row.Answered), ExpiresAt: timestamp(row.Expires)}
	var call event.Tool
	if len(row.ToolCall) > 0 && json.Unmarshal(row.ToolCall, &call) == nil {
		h := hydrator{}
		h.run(ctx, e, tenant, row.RunID)
		call.Args = h.redact.data(call.Name, call.Args)
		v.ToolCall = &call
		if row.Kind == "approval" {
			// These are arguments of the tool, too: as a person changed them.
			v.Answer = h.redact.data(call.Name, v.Answer)
		}
	}
	return v
}
