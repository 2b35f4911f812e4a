package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/tool"
)

// startProposed starts the subagent that a run proposed. The run that wanted it has
// ended, so that nobody waits for its answer: it is a run of its own, for the same
// user and in the same mode, in a session of its own, and counts as one level below
// the run that proposed it. The same proposal starts the same run, however often.
func (e *Engine) startProposed(ctx context.Context, tenant string, row *store.Run, p *store.Proposal, args json.RawMessage) tool.Result {
	started := func(id, session string) tool.Result {
		return tool.TextResult(`{"id":"` + id + `","session_id":"` + session + `","status":"` + string(run.Queued) + `"}`)
	}
	id, session, err := e.startProposedRun(context.WithoutCancel(ctx), tenant, row, p, args)
	if err != nil {
		return tool.ErrorResult("The subagent could not be started: " + describe(err))
	}
	return started(id, session)
}

func (e *Engine) startProposedRun(ctx context.Context, tenant string, parent *store.Run, p *store.Proposal, args json.RawMessage) (id, session string, err error) {
	var a subagentArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return "", "", err
	}
	agent, err := e.cfg.Agents.Outline(ctx, tenant, a.Type)
	if err != nil {
		return "", "", err
	}
	ses, err := e.store.Session(ctx, tenant, parent.SessionID)
	if err != nil {
		return "", "", notFound("session", parent.SessionID, err)
	}
	req := StartRequest{Tenant: tenant, Profile: a.Type, Input: []message.Block{message.Text(a.Prompt)}, Mode: parent.Mode, Ephemeral: ses.Ephemeral,
		IdempotencyKey: "proposal:" + p.Key}
	if strings.HasPrefix(parent.User, callerPrefix) {
		req.Caller = parent.User
	} else {
		req.User = parent.User
	}
	if err := req.validate(); err != nil {
		return "", "", err
	}
	child, tx, err := e.accept(ctx, &req, agent)
	if err != nil {
		return "", "", err
	}
	// What the run that proposed it may cost holds for it, too.
	above, err := run.Decode(parent.State)
	if err != nil {
		return "", "", internal("engine.startProposed", err)
	}
	if err := deepen(child, parent, above.Mode, above.Settings.Pots); err != nil {
		return "", "", internal("engine.startProposed", err)
	}
	lane := Ref{tenant, child.SessionID}
	if e.node == nil {
		e.reserve(lane, child.ID, false) // nobody else knows the session
	}
	if err := e.put(ctx, tx); err != nil {
		if errors.Is(err, store.ErrUnknown) {
			// Another attempt finds it by its key if it is there.
			e.maybeAccepted(lane, child.ID)
			return "", "", internal("engine.startProposed", err)
		}
		e.leave(lane, child.ID)
		var exists *store.ExistsError
		if errors.As(err, &exists) {
			// An earlier attempt started it, and did not get as far as to say so.
			old, err := e.store.Run(ctx, tenant, exists.RunID)
			if err != nil {
				return "", "", notFound("run", exists.RunID, err)
			}
			return old.ID, old.SessionID, nil
		}
		return "", "", internal("engine.startProposed", err)
	}
	if e.node != nil {
		e.submit(ctx, lane, child)
	} else if e.confirm(lane, child.ID) {
		e.drive(Ref{tenant, child.ID})
	}
	return child.ID, child.SessionID, nil
}
