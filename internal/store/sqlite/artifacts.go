package sqlite

import (
	"context"
	"encoding/hex"

	"agentd/internal/store"
)

// artifacts gives up contents and notes what requests leave out.
func (a *applier) artifacts(t int64, tx *store.Tx) error {
	for _, x := range tx.ExpireArtifacts {
		if err := a.expireArtifact(t, x); err != nil {
			return err
		}
	}
	for _, q := range tx.Quarantine {
		s, err := a.session(t, q.SessionID)
		if err != nil {
			return err
		}
		if _, _, err := a.c.exec(`INSERT INTO quarantine (session, entry, what, reason, run_id, created) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, s.key, q.EntryID, q.What, text(q.Reason), text(q.RunID), q.Created); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) expireArtifact(t int64, x store.ArtifactExpiry) error {
	s, err := a.session(t, x.SessionID)
	if err != nil {
		return err
	}
	hash, _ := hex.DecodeString(x.ID) // form.Check has looked
	n, _, err := a.c.exec("UPDATE artifacts SET expired = ?, why = ? WHERE session = ? AND hash = ? AND expired = 0", max(x.At, 1), text(x.Why), s.key, hash)
	if err != nil {
		return err
	}
	if n == 0 {
		return refuse(store.ErrNotFound, "artifact %s of session %s", x.ID, x.SessionID)
	}
	var blob, uses int64
	ok, err := a.c.get("SELECT key FROM blobs WHERE tenant = ? AND hash = ?", []any{&blob}, t, hash)
	if err != nil || !ok {
		return err
	}
	if n, _, err = a.c.exec("DELETE FROM blob_uses WHERE session = ? AND blob = ?", s.key, blob); err != nil || n == 0 {
		return err
	}
	// A use by another session, or one from before uses were noted, keeps it.
	if _, err := a.c.get("SELECT count(*) FROM blob_uses WHERE blob = ?", []any{&uses}, blob); err != nil || uses > 0 {
		return err
	}
	_, _, err = a.c.exec("DELETE FROM blobs WHERE key = ?", blob)
	return err
}

const artifactColumns = `SELECT s.id, a.hash, a.run_id, a.call_id, a.name, a.mime_type, a.size, a.created, a.expired, a.why
	FROM artifacts a JOIN sessions s ON s.key = a.session `

func artifactOf(r row) *store.Artifact {
	return &store.Artifact{SessionID: r.text(0), ID: hex.EncodeToString(r.blob(1)), RunID: r.text(2), CallID: r.text(3), Name: r.text(4),
		MimeType: r.text(5), Size: r.int(6), Created: r.int(7), Expired: r.int(8), Why: r.text(9)}
}

// Artifacts implements store.ArtifactReader.
func (s *Store) Artifacts(ctx context.Context, tenant, sessionID string) (out []*store.Artifact, err error) {
	err = s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		return c.query(ctx, artifactColumns+"WHERE a.session = ? ORDER BY a.created, a.key", func(r row) error {
			out = append(out, artifactOf(r))
			return nil
		}, k)
	})
	return out, err
}

// ArtifactUses implements store.ArtifactReader.
func (s *Store) ArtifactUses(ctx context.Context, tenant, id string) (out []*store.Artifact, err error) {
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) == 0 {
		return nil, nil // nobody has such an id
	}
	err = s.read(ctx, func(c *conn) error {
		return c.query(ctx, artifactColumns+"WHERE a.hash = ? AND s.tenant = (SELECT key FROM tenants WHERE id = ?) ORDER BY a.created, a.key", func(r row) error {
			out = append(out, artifactOf(r))
			return nil
		}, hash, tenant)
	})
	return out, err
}

// Overdue implements store.ArtifactReader. Of all sessions it looks at everything
// that is kept, which the retention itself bounds.
func (s *Store) Overdue(ctx context.Context, keep store.Retention, session *store.SessionRef, limit int) (out []store.Overdue, err error) {
	err = s.read(ctx, func(c *conn) error {
		sql, args := "SELECT session, hash, size, created FROM artifacts INDEXED BY artifacts_session WHERE expired = 0", []any{}
		if session != nil {
			k, err := sessionKey(c, session.Tenant, session.ID)
			if err != nil {
				return err
			}
			sql, args = sql+" AND session = ?", append(args, k)
		}
		var keys []int64
		var at, files, bytes int64
		err := c.query(ctx, sql+" ORDER BY session, created DESC, key DESC", func(r row) error {
			if r.int(0) != at {
				at, files, bytes = r.int(0), 0, 0
			}
			// Each counts with everything that is newer.
			files, bytes = files+1, bytes+r.int(2)
			over := ""
			switch {
			case r.int(3) < keep.Before:
				over = "age"
			case keep.Files > 0 && files > keep.Files:
				over = "files"
			case keep.Bytes > 0 && bytes > keep.Bytes:
				over = "bytes"
			}
			if over != "" && len(out) < limit {
				keys = append(keys, at)
				out = append(out, store.Overdue{ID: hex.EncodeToString(r.blob(1)), Limit: over})
			}
			return nil
		}, args...)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if _, err := c.get("SELECT s.id, t.id FROM sessions s JOIN tenants t ON t.key = s.tenant WHERE s.key = ?", []any{&out[i].SessionID, &out[i].Tenant}, k); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// Quarantined implements store.QuarantineReader.
func (s *Store) Quarantined(ctx context.Context, tenant, sessionID string) (out []*store.Quarantine, err error) {
	err = s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		return c.query(ctx, "SELECT entry, what, reason, run_id, created FROM quarantine WHERE session = ? ORDER BY key", func(r row) error {
			out = append(out, &store.Quarantine{SessionID: sessionID, EntryID: r.text(0), What: r.text(1), Reason: r.text(2), RunID: r.text(3), Created: r.int(4)})
			return nil
		}, k)
	})
	return out, err
}
