package keys

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/store"
)

// checkEvery is how often keys are looked at again that hold something open, and
// how often it is looked whether another process has made the first key.
const checkEvery = time.Second

// ErrEnded is the cause with which what a key holds open ends.
var ErrEnded = errors.New("the API key has ended")

// Verify gives the key that a caller shows. The error is a *fault.Error of kind
// Unauthorized, which says that a key was revoked or has expired to nobody but
// who has the whole key, or one of the store.
func (k *Keys) Verify(ctx context.Context, secret string) (*Key, error) {
	if secret == "" {
		return nil, unauthorized("an API key is needed", "Send the header Authorization: Bearer KEY. agentd keys create makes one.")
	}
	unknown := unauthorized("the API key is not known", "Check that it is complete, and of this server. agentd keys create makes one.")
	sum := hash(secret)
	rest, ok := strings.CutPrefix(secret, prefix)
	id, _, found := strings.Cut(rest, "_")
	if !ok || !found || len(secret) > 200 {
		return nil, unknown
	}
	row, err := k.cfg.Store.APIKey(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		row, err = &store.APIKey{Hash: make([]byte, len(sum))}, nil
	}
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(sum, row.Hash) != 1 {
		return nil, unknown
	}
	now := k.cfg.Now()
	if err := ended(row, now); err != nil {
		return nil, err
	}
	k.used(ctx, row, now)
	return view(row, now), nil
}

func unauthorized(message, hint string) error {
	return &fault.Error{Kind: fault.Unauthorized, Err: errors.New(message), Hint: hint}
}

// ended says how a key has ended, or nil. The error is also ErrEnded.
func ended(row *store.APIKey, now time.Time) error {
	how := ""
	switch {
	case row.Revoked > 0:
		how = "was revoked at " + timestamp(row.Revoked)
	case row.Expires > 0 && row.Expires <= now.UnixMilli():
		how = "expired at " + timestamp(row.Expires)
	default:
		return nil
	}
	return &fault.Error{Kind: fault.Unauthorized, Err: &endedError{"the API key " + how}, Hint: "An admin makes another one: agentd keys create."}
}

type endedError struct{ text string }

func (e *endedError) Error() string { return e.text }

// Is makes it an ErrEnded.
func (e *endedError) Is(target error) bool { return target == ErrEnded }

// used notes that a key was used, coarsely. That it can not be noted is no
// reason to turn the caller away.
func (k *Keys) used(ctx context.Context, row *store.APIKey, now time.Time) {
	at := now.Truncate(lastUsedStep).UnixMilli()
	if at <= row.LastUsed {
		return
	}
	row.LastUsed = at
	tx := &store.Tx{Tenant: row.Tenant, Keys: []store.KeyChange{{ID: row.ID, LastUsed: at}}}
	if err := k.cfg.Store.Commit(context.WithoutCancel(ctx), tx); err != nil {
		k.cfg.Log.Warn("when a key was last used could not be stored", "key_id", row.ID, "error", err)
	}
}

// hold is something that a key holds open.
type hold struct {
	cancel context.CancelCauseFunc
}

// Hold gives a context that ends when the key does, with a cause that is ErrEnded
// and a *fault.Error for the caller. release must be called; until then the key is
// looked at every second. The empty id is nobody's and never ends.
func (k *Keys) Hold(ctx context.Context, id string) (held context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if id == "" {
		return ctx, func() { cancel(context.Canceled) }
	}
	h := &hold{cancel}
	k.mu.Lock()
	if k.holds[id] == nil {
		k.holds[id] = map[*hold]struct{}{}
	}
	k.holds[id][h] = struct{}{}
	if k.timer == nil {
		k.timer = time.AfterFunc(checkEvery, k.check)
	}
	k.mu.Unlock()
	// It may have been revoked after it was verified and before it held.
	k.recheck(id)
	var once sync.Once
	return ctx, func() { once.Do(func() { k.release(id, h) }) }
}

func (k *Keys) release(id string, h *hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.holds[id], h)
	if len(k.holds[id]) == 0 {
		delete(k.holds, id)
	}
	if len(k.holds) == 0 && k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	h.cancel(context.Canceled)
}

// check looks at every key that holds something, and again a while later.
func (k *Keys) check() {
	k.mu.Lock()
	ids := make([]string, 0, len(k.holds))
	for id := range k.holds {
		ids = append(ids, id)
	}
	k.mu.Unlock()
	for _, id := range ids {
		k.recheck(id)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Reset(checkEvery)
	}
}

func (k *Keys) recheck(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), checkEvery)
	defer cancel()
	row, err := k.cfg.Store.APIKey(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		k.end(id, &fault.Error{Kind: fault.Unauthorized, Err: &endedError{"the API key is not known any more"}})
	case err != nil:
		// A store that does not answer now has not revoked anything.
	default:
		if err := ended(row, k.cfg.Now()); err != nil {
			k.end(id, err)
		}
	}
}

// end ends what a key holds.
func (k *Keys) end(id string, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.holds[id] {
		h.cancel(why)
	}
}
