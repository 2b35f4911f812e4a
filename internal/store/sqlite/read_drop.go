package sqlite

import (
	"context"

	"agentd/internal/store"
)

// Expired implements store.DropReader. It looks at ephemeral sessions of that
// age alone.
func (s *Store) Expired(ctx context.Context, before int64, limit int) ([]store.SessionRef, error) {
	var out []store.SessionRef
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, `SELECT t.id, s.id FROM sessions s INDEXED BY sessions_ephemeral JOIN tenants t ON t.key = s.tenant
			WHERE s.ephemeral = 1 AND s.minute <= ? AND s.updated < ?
			AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.key
				AND (r.parent_id IS NOT NULL OR r.ended >= ? OR r.status NOT IN ('completed', 'failed', 'cancelled')))
			AND NOT EXISTS (SELECT 1 FROM runs r JOIN runs d ON d.tenant = r.tenant AND d.root_id = r.id WHERE r.session = s.key
				AND (d.ended >= ? OR d.status NOT IN ('completed', 'failed', 'cancelled')))
			ORDER BY s.minute LIMIT ?`, func(r row) error {
			out = append(out, store.SessionRef{Tenant: r.text(0), ID: r.text(1)})
			return nil
		}, minute(before), before, before, before, limit)
	})
	return out, err
}

// Family implements store.DropReader.
func (s *Store) Family(ctx context.Context, tenant, sessionID string) ([]string, error) {
	ids := []string{sessionID}
	err := s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		keys, seen := []int64{k}, map[int64]bool{k: true}
		for i := 0; i < len(keys); i++ {
			if err := c.query(ctx, `SELECT DISTINCT s.key, s.id FROM runs r JOIN runs d ON d.tenant = r.tenant AND d.parent_id = r.id
				JOIN sessions s ON s.key = d.session WHERE r.session = ?`, func(r row) error {
				if k := r.int(0); !seen[k] {
					seen[k] = true
					keys, ids = append(keys, k), append(ids, r.text(1))
				}
				return nil
			}, keys[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}
