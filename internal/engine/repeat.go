package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"agentd/fault"
	"agentd/internal/session"
	"agentd/internal/store"
)

// repetition finds the run that an earlier request under the same key started.
func (e *Engine) repetition(ctx context.Context, req *StartRequest) (*Run, error) {
	if req.IdempotencyKey == "" {
		return nil, nil
	}
	if req.WhenBusy == Steer {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "Idempotency-Key", Err: errors.New("it can not be used with when_busy: steer"),
			Hint: "A message that steers a run does not start one; send it without the key."}
	}
	rows, _, err := e.store.Runs(ctx, req.Tenant, store.RunFilter{IdempotencyKey: req.IdempotencyKey, Limit: 1})
	if err != nil {
		return nil, internal("engine.Start", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return e.startFailed(ctx, req.Tenant, &store.ExistsError{RunID: rows[0].ID, SameRequest: rows[0].RequestHash == req.hash()})
}

// hash tells an honest repetition of a request from another one.
func (req *StartRequest) hash() string {
	if req.Fingerprint != "" {
		return requestHash([]byte(req.Fingerprint))
	}
	c := *req
	c.IdempotencyKey = ""
	raw, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	return requestHash(raw)
}

func requestHash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// keyTaken is the error of another request under a used key, which did something.
func keyTaken(did string) error {
	return &fault.Error{Kind: fault.Conflict, Field: "Idempotency-Key", Err: errors.New("the key was used for another request, which " + did),
		Hint: "Use a new key for a new request."}
}

func (e *Engine) startFailed(ctx context.Context, tenant string, err error) (*Run, error) {
	var exists *store.ExistsError
	switch {
	case errors.As(err, &exists) && exists.SameRequest:
		return e.Get(ctx, Ref{tenant, exists.RunID})
	case errors.As(err, &exists):
		return nil, keyTaken("started run " + exists.RunID)
	case errors.Is(err, store.ErrNotFound):
		return nil, &fault.Error{Kind: fault.NotFound, Field: "session_id", Err: errors.New("the session was deleted meanwhile"), Hint: "Start without session_id for a new one."}
	}
	return nil, internal("engine.Start", err)
}

// asked is what a request to navigate is known by, nil without a key. The key is that of
// its session, and is kept as a hash with what the request wrote: there is nothing that
// could be forgotten, or be told twice, apart from that.
func (req *NavigateRequest) asked() (*session.Asked, error) {
	if req.IdempotencyKey == "" {
		return nil, nil
	}
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, internal("engine.Navigate", err)
	}
	return &session.Asked{Key: requestHash([]byte("navigate " + req.SessionID + " " + req.IdempotencyKey)), Request: requestHash(raw)}, nil
}

// navigationKey is the key of the run that summarises what is left: no client's own key
// for a run has to be another one.
func navigationKey(ask *session.Asked) string { return "navigate:" + ask.Key }

// navigated gives what a request to navigate did before, nil if that was nothing.
func (e *Engine) navigated(ctx context.Context, req *NavigateRequest, ask *session.Asked) (*Moved, error) {
	if ask == nil {
		return nil, nil
	}
	ses, t, err := e.tree(ctx, Ref{req.Tenant, req.SessionID})
	if err != nil {
		return nil, err
	}
	return e.movedBefore(ctx, req, ask, ses, t)
}

// movedBefore finds what a request did in the tree, or the run that it started.
func (e *Engine) movedBefore(ctx context.Context, req *NavigateRequest, ask *session.Asked, ses *store.Session, t *session.Tree) (*Moved, error) {
	if ask == nil {
		return nil, nil
	}
	m := &Moved{SessionView: sessionView(ses)}
	did, same := "", false
	for _, n := range slices.Backward(t.Nodes) {
		if a := session.AskedOf(n.Entry); a != nil && a.Key == ask.Key {
			did, same, m.Entry = "wrote entry "+n.ID, a.Request == ask.Request, entryView(n.Entry)
			break
		}
	}
	if did == "" {
		rows, _, err := e.store.Runs(ctx, req.Tenant, store.RunFilter{IdempotencyKey: navigationKey(ask), Limit: 1})
		if err != nil {
			return nil, internal("engine.Navigate", err)
		}
		if len(rows) == 0 {
			return nil, nil
		}
		did, same, m.RunID = "started run "+rows[0].ID, rows[0].RequestHash == requestHash([]byte(ask.Request)), rows[0].ID
	}
	if !same {
		return nil, keyTaken(did)
	}
	var err error
	_, m.Input, err = target(t, req.SessionID, req.Entry, req.Before)
	return m, err
}
