package postgres

import (
	"context"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

const interruptColumns = `SELECT i.id, r.id, i.root_id, s.id, i.call_id, i.kind, i.prompt, i.schema, i.tool_call, i.created, i.expires,
	i.status, i.decision, i.answer, i.reason, i.answered_by, i.answered, i.key
	FROM interrupts i JOIN runs r ON r.key = i.run JOIN sessions s ON s.key = r.session
	WHERE i.tenant = (SELECT key FROM tenants WHERE id = $1)`

func interruptOf(r row) *store.Interrupt {
	return &store.Interrupt{ID: r.Text(0), RunID: r.Text(1), RootID: r.Text(2), SessionID: r.Text(3), CallID: r.Text(4), Kind: r.Text(5),
		Prompt: r.Text(6), Schema: r.Blob(7), ToolCall: r.Blob(8), Created: r.Int(9), Expires: r.Int(10),
		InterruptAnswer: store.InterruptAnswer{Status: r.Text(11), Decision: r.Text(12), Answer: r.Blob(13), Reason: r.Text(14),
			AnsweredBy: r.Text(15), Answered: r.Int(16)}}
}

// Interrupt implements store.InterruptReader.
func (s *Store) Interrupt(ctx context.Context, tenant, id string) (*store.Interrupt, error) {
	var out *store.Interrupt
	ok, err := s.one(ctx, interruptColumns+" AND i.id = $2", func(r row) { out = interruptOf(r) }, tenant, id)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "interrupt %s", id)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Interrupts implements store.InterruptReader.
func (s *Store) Interrupts(ctx context.Context, tenant string, f store.InterruptFilter) ([]*store.Interrupt, string, error) {
	limit, last := limitOr(f.Limit, 50), int64(0)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.InterruptList, f.Cursor, &last); err != nil {
			return nil, "", err
		}
	}
	w := &where{sql: interruptColumns, args: []any{tenant}}
	w.and("i.key > $%d", last)
	if f.Status != "" {
		w.and("i.status = $%d", f.Status)
	}
	if f.RunID != "" {
		w.and(`i.key IN (SELECT key FROM interrupts WHERE run = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $%[1]d)
			UNION ALL SELECT key FROM interrupts WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND root_id = $%[1]d)`, f.RunID)
	}
	if f.Within != "" {
		w.and("(r.id = $%[1]d OR starts_with(r.id, $%[1]d || '.'))", f.Within)
	}
	type keyed struct {
		*store.Interrupt
		key int64
	}
	rows, err := list(ctx, s, w.limit("i.key", limit+1), func(r row) keyed { return keyed{interruptOf(r), r.Int(17)} }, w.args...)
	if err != nil {
		return nil, "", unknownIsNone(err)
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = form.Cursor(form.InterruptList, rows[limit-1].key)
	}
	var out []*store.Interrupt
	for _, r := range rows {
		out = append(out, r.Interrupt)
	}
	return out, next, nil
}

// Expiring implements store.InterruptReader. What it costs depends on the number of
// such interrupts alone.
func (s *Store) Expiring(ctx context.Context) ([]store.InterruptRef, error) {
	return list(ctx, s, `SELECT t.id, r.id, i.id, i.expires FROM interrupts i JOIN runs r ON r.key = i.run JOIN tenants t ON t.key = i.tenant
		WHERE i.status = 'open' AND i.expires > 0 ORDER BY i.expires, i.key`, func(r row) store.InterruptRef {
		return store.InterruptRef{Tenant: r.Text(0), RunID: r.Text(1), ID: r.Text(2), Expires: r.Int(3)}
	})
}

// Proposals implements store.ProposalReader.
func (s *Store) Proposals(ctx context.Context, tenant, runID string) ([]*store.Proposal, error) {
	out, err := list(ctx, s, `SELECT p.id, r.id, p.call_id, p.name, p.effect, p.idem_key, p.args, p.temp, p.predicted, p.reason, p.created,
			p.status, p.result, p."real", p.by, p.decided
		FROM proposals p JOIN runs r ON r.key = p.run
		WHERE r.tenant = (SELECT key FROM tenants WHERE id = $1) AND (r.id = $2 OR r.root_id = $2) ORDER BY p.key`, func(r row) *store.Proposal {
		return &store.Proposal{ID: r.Text(0), RunID: r.Text(1), CallID: r.Text(2), Name: r.Text(3), Effect: r.Text(4), Key: r.Text(5),
			Args: r.Blob(6), Temp: r.Text(7), Predicted: r.Text(8), Reason: r.Text(9), Created: r.Int(10),
			ProposalUpdate: store.ProposalUpdate{Status: r.Text(11), Result: r.Text(12), Real: r.Blob(13), By: r.Text(14), Decided: r.Int(15)}}
	}, tenant, runID)
	if err == nil && len(out) == 0 {
		err = s.exists(ctx, "runs", "run", tenant, runID)
	}
	return out, err
}

// Blob implements store.BlobReader.
func (s *Store) Blob(ctx context.Context, tenant, id string) (*store.Blob, error) {
	var out *store.Blob
	hash, err := hex.DecodeString(id)
	ok := err == nil
	if ok {
		ok, err = s.one(ctx, "SELECT mime_type, name, created, data FROM blobs WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND hash = $2", func(r row) {
			out = &store.Blob{ID: hex.EncodeToString(hash), MimeType: r.Text(0), Name: r.Text(1), Created: r.Int(2), Data: r.Blob(3)}
		}, tenant, hash)
		if err != nil {
			return nil, err
		}
	}
	if !ok {
		return nil, form.Refuse(store.ErrNotFound, "blob %q", id)
	}
	return out, nil
}

const keyColumns = `SELECT k.key, t.id, k.id, k.name, k.hash, k.scopes, k.created, k.expires, k.revoked, k.last_used
	FROM api_keys k JOIN tenants t ON t.key = k.tenant WHERE true`

func keyOf(r row) *store.APIKey {
	return &store.APIKey{Tenant: r.Text(1), ID: r.Text(2), Name: r.Text(3), Hash: r.Blob(4), Scopes: strings.Fields(r.Text(5)),
		Created: r.Int(6), Expires: r.Int(7), Revoked: r.Int(8), LastUsed: r.Int(9)}
}

// APIKey implements store.KeyReader.
func (s *Store) APIKey(ctx context.Context, id string) (*store.APIKey, error) {
	var out *store.APIKey
	ok, err := s.one(ctx, keyColumns+" AND k.id = $1", func(r row) { out = keyOf(r) }, id)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "API key %s", id)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// APIKeys implements store.KeyReader.
func (s *Store) APIKeys(ctx context.Context, tenant string, f store.KeyFilter) ([]*store.APIKey, string, error) {
	limit, last := limitOr(f.Limit, 50), int64(math.MinInt64)
	if f.Cursor != "" {
		var err error
		if last, err = strconv.ParseInt(f.Cursor, 36, 64); err != nil {
			return nil, "", form.BadCursor(f.Cursor)
		}
	}
	w := &where{sql: keyColumns}
	w.and("k.key > $%d", last)
	if !f.AllTenants {
		w.and("k.tenant = (SELECT key FROM tenants WHERE id = $%d)", tenant)
	}
	type keyed struct {
		*store.APIKey
		key int64
	}
	rows, err := list(ctx, s, w.limit("k.key", limit+1), func(r row) keyed { return keyed{keyOf(r), r.Int(0)} }, w.args...)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = strconv.FormatInt(rows[limit-1].key, 36)
	}
	var out []*store.APIKey
	for _, r := range rows {
		out = append(out, r.APIKey)
	}
	return out, next, nil
}
