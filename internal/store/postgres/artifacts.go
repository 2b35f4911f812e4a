package postgres

import (
	"context"
	"encoding/hex"
	"io"

	"agentd/internal/store"
)

// artifacts gives up contents and notes what requests leave out.
func (s *Store) artifacts(b *batch, c *change) {
	for _, x := range c.tx.ExpireArtifacts {
		hash, _ := hex.DecodeString(x.ID) // form.Check has looked
		b.add(`WITH u AS (UPDATE artifacts SET expired = $4, why = $5 WHERE session = `+sessionIs+` AND hash = $3 AND expired = 0 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG404', 'artifact ' || encode($3, 'hex') || ' of session ' || $2) END`,
			c.tenant, x.SessionID, hash, max(x.At, 1), raw(x.Why))
		// Whoever begins to use it meanwhile waits, and finds it or makes it anew.
		b.add("SELECT key FROM blobs WHERE tenant = $1 AND hash = $2 FOR UPDATE", c.tenant, hash)
		// A use by another session, or one from before uses were noted, keeps it.
		b.add(`WITH d AS (DELETE FROM blob_uses WHERE session = `+sessionIs+` AND blob = (SELECT key FROM blobs WHERE tenant = $1 AND hash = $3) RETURNING session, blob)
			DELETE FROM blobs USING d WHERE blobs.key = d.blob AND NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.blob = d.blob AND u.session <> d.session)`,
			c.tenant, x.SessionID, hash)
	}
	for _, q := range c.tx.Quarantine {
		b.add(`INSERT INTO quarantine (session, entry, what, reason, run_id, created) VALUES (`+sessionKey+`, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			c.tenant, q.SessionID, q.EntryID, q.What, raw(q.Reason), text(q.RunID), q.Created)
	}
}

const artifactColumns = `SELECT s.id, a.hash, a.run_id, a.call_id, a.name, a.mime_type, a.size, a.created, a.expired, a.why
	FROM artifacts a JOIN sessions s ON s.key = a.session WHERE s.tenant = (SELECT key FROM tenants WHERE id = $1)`

func artifactOf(r row) *store.Artifact {
	return &store.Artifact{SessionID: r.Text(0), ID: hex.EncodeToString(r.Blob(1)), RunID: r.Text(2), CallID: r.Text(3), Name: r.Text(4),
		MimeType: r.Text(5), Size: r.Int(6), Created: r.Int(7), Expired: r.Int(8), Why: r.Text(9)}
}

// Artifacts implements store.ArtifactReader.
func (s *Store) Artifacts(ctx context.Context, tenant, sessionID string) ([]*store.Artifact, error) {
	out, err := list(ctx, s, artifactColumns+" AND s.id = $2 ORDER BY a.created, a.key", artifactOf, tenant, sessionID)
	if err == nil && len(out) == 0 {
		err = s.exists(ctx, "sessions", "session", tenant, sessionID)
	}
	return out, err
}

// ArtifactUses implements store.ArtifactReader.
func (s *Store) ArtifactUses(ctx context.Context, tenant, id string) ([]*store.Artifact, error) {
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) == 0 {
		return nil, nil // nobody has such an id
	}
	out, err := list(ctx, s, artifactColumns+" AND a.hash = $2 ORDER BY a.created, a.key", artifactOf, tenant, hash)
	return out, unknownIsNone(err)
}

// Overdue implements store.ArtifactReader. The server looks at everything that is kept,
// which the retention itself bounds, and tells of what is too much alone.
func (s *Store) Overdue(ctx context.Context, keep store.Retention, session *store.SessionRef, limit int) ([]store.Overdue, error) {
	if limit <= 0 {
		return nil, nil
	}
	w := &where{args: []any{keep.Before, keep.Files, keep.Bytes}}
	if session != nil {
		if err := s.exists(ctx, "sessions", "session", session.Tenant, session.ID); err != nil {
			return nil, err
		}
		w.and("session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $%d)", session.Tenant)
		w.and("id = $%d)", session.ID)
	}
	// Each counts with everything that is newer.
	sql := `SELECT t.id, s.id, o.hash, o.over FROM (SELECT session, hash, created, key,
				CASE WHEN created < $1::bigint THEN 'age' WHEN $2::bigint > 0 AND files > $2 THEN 'files' WHEN $3::bigint > 0 AND bytes > $3 THEN 'bytes' END AS over
			FROM (SELECT session, hash, created, key, count(*) OVER newer AS files, sum(size) OVER newer AS bytes FROM artifacts WHERE expired = 0` + w.sql + `
				WINDOW newer AS (PARTITION BY session ORDER BY created DESC, key DESC ROWS UNBOUNDED PRECEDING)) a) o
		JOIN sessions s ON s.key = o.session JOIN tenants t ON t.key = s.tenant WHERE o.over IS NOT NULL`
	var out []store.Overdue
	err := s.read(ctx, func() error {
		out = nil
		return query(ctx, s.pool, sql+" ORDER BY o.session, o.created DESC, o.key DESC", func(r row) error {
			out = append(out, store.Overdue{Tenant: r.Text(0), SessionID: r.Text(1), ID: hex.EncodeToString(r.Blob(2)), Limit: r.Text(3)})
			if len(out) == limit {
				return io.EOF
			}
			return nil
		}, w.args...)
	})
	return out, err
}

// Quarantined implements store.QuarantineReader.
func (s *Store) Quarantined(ctx context.Context, tenant, sessionID string) ([]*store.Quarantine, error) {
	out, err := list(ctx, s, `SELECT q.entry, q.what, q.reason, q.run_id, q.created FROM quarantine q
		WHERE q.session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2) ORDER BY q.key`, func(r row) *store.Quarantine {
		return &store.Quarantine{SessionID: sessionID, EntryID: r.Text(0), What: r.Text(1), Reason: r.Text(2), RunID: r.Text(3), Created: r.Int(4)}
	}, tenant, sessionID)
	if err == nil && len(out) == 0 {
		err = s.exists(ctx, "sessions", "session", tenant, sessionID)
	}
	return out, err
}
