package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"agentd/fault"
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
