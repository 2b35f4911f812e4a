package sqlite

import (
	"context"
	"math"
	"strconv"
	"strings"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

func (a *applier) keys(t int64, tx *store.Tx) error {
	for _, k := range tx.NewKeys {
		_, _, err := a.c.exec(`INSERT INTO api_keys (tenant, id, name, hash, scopes, created, expires, revoked, last_used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			t, k.ID, text(k.Name), k.Hash, strings.Join(k.Scopes, " "), k.Created, k.Expires, k.Revoked, k.LastUsed)
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "API key %s exists", k.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range tx.Keys {
		n, _, err := a.c.exec(`UPDATE api_keys SET revoked = CASE revoked WHEN 0 THEN ? ELSE revoked END, last_used = max(last_used, ?)
			WHERE id = ? AND tenant = ?`, c.Revoked, c.LastUsed, c.ID, t)
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(store.ErrNotFound, "API key %s", c.ID)
		}
	}
	return nil
}

const keyColumns = `SELECT k.key, t.id, k.id, k.name, k.hash, k.scopes, k.created, k.expires, k.revoked, k.last_used
	FROM api_keys k JOIN tenants t ON t.key = k.tenant WHERE `

func keyOf(r row) *store.APIKey {
	return &store.APIKey{Tenant: r.text(1), ID: r.text(2), Name: r.text(3), Hash: r.blob(4), Scopes: strings.Fields(r.text(5)),
		Created: r.int(6), Expires: r.int(7), Revoked: r.int(8), LastUsed: r.int(9)}
}

// APIKey implements store.KeyReader.
func (s *Store) APIKey(ctx context.Context, id string) (*store.APIKey, error) {
	var out *store.APIKey
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, keyColumns+"k.id = ?", func(r row) error {
			out = keyOf(r)
			return nil
		}, id)
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "API key %s", id)
	}
	return out, err
}

// APIKeys implements store.KeyReader.
func (s *Store) APIKeys(ctx context.Context, tenant string, f store.KeyFilter) ([]*store.APIKey, string, error) {
	limit := limitOr(f.Limit, 50)
	last := int64(math.MinInt64)
	if f.Cursor != "" {
		var err error
		if last, err = strconv.ParseInt(f.Cursor, 36, 64); err != nil {
			return nil, "", form.BadCursor(f.Cursor)
		}
	}
	sql, args := keyColumns+"k.key > ?", []any{last}
	if !f.AllTenants {
		sql, args = sql+" AND k.tenant = (SELECT key FROM tenants WHERE id = ?)", append(args, tenant)
	}
	var out []*store.APIKey
	var cursor string
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sql+" ORDER BY k.key LIMIT ?", func(r row) error {
			if len(out) == limit {
				cursor = strconv.FormatInt(last, 36)
				return nil
			}
			out = append(out, keyOf(r))
			last = r.int(0)
			return nil
		}, append(args, limit+1)...)
	})
	if err != nil {
		return nil, "", err
	}
	return out, cursor, nil
}
