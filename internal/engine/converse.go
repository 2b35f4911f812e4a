package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// A client that keeps its own history and names its conversation gets one session for
// it, in which its history is found again: what it has in common with the tree is not
// written again, and what differs is a branch. The entries of a tree never change, so
// what was found stays true whatever other clients of the conversation do meanwhile.

// Conversation is a client's own history of a conversation that it names.
type Conversation struct {
	Tenant string
	// Name is the client's name for it, and User whose it is: conversations of
	// others with the same name are others.
	Name, User string
	// Messages are what was said, without what the next run is started with, unless it
	// is started with nothing else: then the last one is what it begins with.
	Messages []message.Message
	Input    []message.Block
	// IdempotencyKey is that of the run.
	IdempotencyKey string
	// Told says what the client was told by a run that has ended; false: nobody knows.
	Told func(run Ref) (session.Told, bool)
}

// Place is where a conversation goes on.
type Place struct {
	SessionID string
	// From is the entry, or Root.
	From string
	// Known is how many of the messages the session has up to there.
	Known int
}

// conversationKey begins the idempotency keys of sessions of conversations. No header
// can have it, so no client can name one.
const conversationKey = "\x1fconversation "

// Converse finds where a conversation goes on. The first time it makes its session. A
// run that waits for a person there is cancelled: the client said something else.
func (e *Engine) Converse(ctx context.Context, c *Conversation) (Place, error) {
	id, err := json.Marshal([]string{c.User, c.Name})
	if err != nil {
		return Place{}, internal("engine.Converse", err)
	}
	first := c.Input
	if len(c.Messages) > 0 {
		first = c.Messages[0].Content
	}
	now := e.now()
	ses := &store.Session{ID: "ses_" + e.cfg.NewID(), Title: title(first), Created: now, Updated: now, IdempotencyKey: conversationKey + requestHash(id), RequestHash: "conversation"}
	v, err := e.created(ctx, "engine.Converse", &store.Tx{Tenant: c.Tenant, NewSessions: []*store.Session{ses}})
	if err != nil {
		return Place{}, err
	}
	p := Place{SessionID: v.ID, From: Root}
	ref := Ref{c.Tenant, v.ID}
	if err := e.unasked(ctx, ref, c.IdempotencyKey); err != nil {
		return p, err
	}
	_, t, err := e.tree(ctx, ref)
	if err != nil {
		return p, err
	}
	known := c.Messages
	if len(c.Input) == 0 && len(known) > 0 {
		known = known[:len(known)-1] // there has to be something to begin with
	}
	at, n := t.Follow(known, func(id string) (session.Told, bool) {
		row, err := e.store.Run(ctx, c.Tenant, id)
		if err != nil || !run.Status(row.Status).Ended() || row.SessionID != v.ID {
			return session.Told{}, false
		}
		return c.Told(Ref{c.Tenant, id})
	})
	if p.Known = n; at != "" {
		p.From = at
	}
	return p, ctx.Err()
}

// unasked cancels the run of a session that waits for a person, unless it is that of
// the request itself.
func (e *Engine) unasked(ctx context.Context, ref Ref, key string) error {
	active, err := e.ahead(ctx, ref)
	if err != nil || active == "" {
		return err
	}
	row, err := e.store.Run(ctx, ref.Tenant, active)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // it is being accepted
	case err != nil:
		return internal("engine.Converse", err)
	case row.Status != string(run.Paused) || key != "" && row.IdempotencyKey == key:
		return nil
	}
	_, err = e.cancel(ctx, Ref{ref.Tenant, active}, run.CancelRequested{Reason: "the conversation went on without an answer"})
	if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.NotFound {
		return err
	}
	return nil
}

// from has a run start at an entry of its session, with what of a client's history is
// not there yet. That is written as the run starts, so that it stands behind what other
// runs wrote until then.
func (e *Engine) from(ctx context.Context, req *StartRequest, runID string, sp *spec, tx *store.Tx, now int64) error {
	at := req.From
	if at == Root {
		at = ""
	}
	path, err := e.store.Path(ctx, req.Tenant, req.SessionID, at)
	if errors.Is(err, store.ErrNotFound) {
		return &fault.Error{Kind: fault.Invalid, Field: "from", Err: fmt.Errorf("there is no way to an entry %s in session %s", clipped(at), req.SessionID),
			Hint: "GET /sessions/" + req.SessionID + "/tree lists the entries."}
	}
	if err != nil {
		return internal("engine.Start", err)
	}
	sp.From = &at
	for _, m := range behind(path, req.History) {
		if m.Timestamp == 0 {
			m.Timestamp = now
		}
		body, err := json.Marshal(&m)
		if err != nil {
			return &fault.Error{Kind: fault.Invalid, Field: "history", Err: err}
		}
		in := &store.Input{RunID: runID, ID: "in_" + e.cfg.NewID(), Kind: "prompt", Body: body, Created: now}
		tx.Inputs = append(tx.Inputs, in)
		sp.Prompt = append(sp.Prompt, in.ID)
	}
	return nil
}

// behind makes a history acceptable to providers that comes behind a path: every call
// has a result, and every result a call.
func behind(path []*store.Entry, history []message.Message) []message.Message {
	if len(history) == 0 {
		return nil
	}
	items, _ := session.Items(path)
	msgs := session.Texts(items)
	last := len(msgs)
	for last > 0 && msgs[last-1].Role == message.RoleToolResult {
		last--
	}
	if last > 0 && msgs[last-1].Role == message.RoleAssistant && msgs[last-1].StopReason != message.StopError && msgs[last-1].StopReason != message.StopAborted {
		msgs = msgs[last-1:]
	} else {
		msgs = nil
	}
	known := len(session.Heal(msgs)) - len(open(msgs))
	return session.Heal(append(msgs[:len(msgs):len(msgs)], history...))[known:]
}

// open are the calls of a reply that have no result among what follows it.
func open(msgs []message.Message) map[string]bool {
	calls := map[string]bool{}
	for i := range msgs {
		for _, c := range msgs[i].ToolCalls() {
			calls[c.ID] = true
		}
		delete(calls, msgs[i].ToolCallID)
	}
	return calls
}
