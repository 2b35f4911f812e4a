package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/store"
)

// A person who approves a call may ask that it be remembered: calls like it are
// then allowed for the rest of the session, which is that of the root run, as
// subagents have sessions of their own that nobody sees. A rule is read when a
// call would be asked for, so a revoked one counts for nothing from then on.

// RuleView is a rule of a session as clients see it.
type RuleView struct {
	ID   string `json:"rule_id"`
	Tool string `json:"tool"`
	// Allows says which calls, for people.
	Allows      string `json:"allows"`
	InterruptID string `json:"interrupt_id,omitempty"`
	By          string `json:"by,omitempty"`
	CreatedAt   string `json:"created_at"`
}

// Rules gives what people allowed for the rest of a session, oldest first.
func (e *Engine) Rules(ctx context.Context, session Ref) ([]*RuleView, error) {
	rows, err := e.store.Rules(ctx, session.Tenant, session.ID)
	if err != nil {
		return nil, notFound("session", session.ID, err)
	}
	views := make([]*RuleView, len(rows))
	for i, r := range rows {
		views[i] = &RuleView{ID: r.ID, Tool: r.Tool, Allows: r.Text, InterruptID: r.Interrupt, By: who(session.Tenant, r.By), CreatedAt: timestamp(r.Created)}
	}
	return views, nil
}

// Revoke takes a rule of a session back, or all of them if rule is "". Calls that
// have their verdict keep it.
func (e *Engine) Revoke(ctx context.Context, session Ref, rule string) error {
	rows, err := e.store.Rules(ctx, session.Tenant, session.ID)
	if err != nil {
		return notFound("session", session.ID, err)
	}
	tx := &store.Tx{Tenant: session.Tenant}
	for _, r := range rows {
		if rule == "" || r.ID == rule {
			tx.DropRules = append(tx.DropRules, store.RuleRef{SessionID: session.ID, ID: r.ID})
		}
	}
	if rule != "" && len(tx.DropRules) == 0 {
		return notFound("rule", rule, store.ErrNotFound)
	}
	if tx.Empty() {
		return nil
	}
	err = e.put(ctx, tx)
	if errors.Is(err, store.ErrNotFound) {
		return &fault.Error{Kind: fault.Conflict, Err: errors.New("somebody else revoked a rule of this session just now"), Hint: "Look at the rules again."}
	}
	if err != nil {
		return internal("engine.Revoke", err)
	}
	return nil
}

// rootSession is the session of the run that people started.
func (e *Engine) rootSession(ctx context.Context, tenant string, row *store.Run) (string, error) {
	if row.RootID == "" || row.RootID == row.ID {
		return row.SessionID, nil
	}
	root, err := e.store.Run(ctx, tenant, row.RootID)
	if err != nil {
		return "", err
	}
	return root.SessionID, nil
}

// remember makes the rule of an approval that is to be remembered. amended are the
// arguments that the person wrote, or nil.
func (e *Engine) remember(ctx context.Context, row *store.Interrupt, req *AnswerRequest, amended json.RawMessage) (*store.Rule, error) {
	refuse := func(err error) error {
		return &fault.Error{Kind: fault.Invalid, Field: "remember", Err: err, Hint: "Answer without remember: the interrupt is still open."}
	}
	if row.Kind != "approval" || req.Decision != "approve" || row.CallID == "" {
		return nil, refuse(fmt.Errorf("only the approval of a call can be remembered, not %s (kind %s)", req.Decision, row.Kind))
	}
	r, err := e.store.Run(ctx, req.Tenant, row.RunID)
	if err != nil {
		return nil, notFound("run", row.RunID, err)
	}
	agent, box, err := e.boxOf(ctx, req.Tenant, r)
	if err != nil {
		return nil, err
	}
	var call event.Tool
	if err := json.Unmarshal(row.ToolCall, &call); err != nil {
		return nil, internal("engine.Answer", err)
	}
	if amended != nil {
		call.Args = amended
	}
	_, spec, ok := box.set.Lookup(call.Name)
	if !ok {
		return nil, refuse(fmt.Errorf("there is no tool %q any more", call.Name))
	}
	pattern, err := policy.Remember(&spec, call.Args)
	if err != nil {
		return nil, refuse(err)
	}
	session, err := e.rootSession(ctx, req.Tenant, r)
	if err != nil {
		return nil, internal("engine.Answer", err)
	}
	body, err := json.Marshal(pattern)
	if err != nil {
		return nil, internal("engine.Answer", err)
	}
	// What logs must not see, lists must not show.
	pattern.Args = agent.Redact.data(call.Name, pattern.Args)
	if pattern.Key != "" {
		command, err := json.Marshal(map[string]string{pattern.Key: strings.Join(pattern.Command, " ")})
		if shown := agent.Redact.data(call.Name, command); err != nil || string(shown) != string(command) {
			pattern.Command = []string{string(shown)}
		}
	}
	return &store.Rule{SessionID: session, ID: "rule_" + e.cfg.NewID(), Tool: call.Name, Pattern: body, Text: pattern.String(),
		Interrupt: row.ID, By: req.By, Created: e.now()}, nil
}

// boxOf gives what a run may call.
func (e *Engine) boxOf(ctx context.Context, tenant string, r *store.Run) (*Agent, *toolbox, error) {
	agent, err := e.agentOf(ctx, tenant, r)
	if err != nil {
		return nil, nil, err
	}
	var sp spec
	if err := json.Unmarshal(r.Spec, &sp); err != nil {
		return nil, nil, internal("engine.Answer", err)
	}
	box, err := e.newToolbox(agent, &sp.Overrides, r.Mode == Autonomous)
	if err != nil {
		return nil, nil, internal("engine.Answer", err)
	}
	box.prepared = map[string]json.RawMessage{}
	box.mode = func() string { return modeOf(r) }
	return agent, &box, nil
}

// remembered gives what is allowed in the run's session. Who can not read it asks.
func (d *driver) remembered() []policy.Remembered {
	session, err := d.e.rootSession(d.ctx, d.ref.Tenant, d.row)
	var rows []*store.Rule
	if err == nil {
		rows, err = d.e.store.Rules(d.ctx, d.ref.Tenant, session)
	}
	// A session that was accepted just now may not be there yet; it has no rules.
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		d.complain("the rules of a session can not be read; people are asked", err)
	}
	var rules []policy.Remembered
	for _, r := range rows {
		var p policy.Pattern
		if err := json.Unmarshal(r.Pattern, &p); err != nil {
			d.e.log.Error("a rule can not be read and is left out", "session", r.SessionID, "rule", r.ID, "error", err)
			continue
		}
		rules = append(rules, policy.Remembered{ID: r.ID, Tool: r.Tool, Pattern: p})
	}
	return rules
}
