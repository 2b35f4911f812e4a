package sqlite

import (
	"encoding/hex"
	"fmt"

	"agentd/internal/store"
)

// blob stores a blob unless the tenant has one with that content.
func (a *applier) blob(t int64, b *store.Blob) error {
	hash, err := hex.DecodeString(b.ID)
	if err != nil {
		return invalid("blob id %q: %w", b.ID, err)
	}
	_, _, err = a.c.exec(`INSERT INTO blobs (tenant, hash, mime_type, name, created, data) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, hash) DO NOTHING`, t, hash, text(b.MimeType), text(b.Name), b.Created, blob(b.Data))
	return err
}

func (a *applier) blobUse(t int64, u store.BlobUse) error {
	s, err := a.session(t, u.SessionID)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(u.BlobID)
	if err != nil {
		return invalid("blob id %q: %w", u.BlobID, err)
	}
	var k int64
	ok, err := a.c.get("SELECT key FROM blobs WHERE tenant = ? AND hash = ?", []any{&k}, t, hash)
	if err != nil {
		return err
	}
	if !ok {
		return refuse(store.ErrNotFound, "blob %s", u.BlobID)
	}
	if _, _, err = a.c.exec("INSERT INTO blob_uses (session, blob) VALUES (?, ?) ON CONFLICT DO NOTHING", s.key, k); err != nil {
		return err
	}
	// The same content again is the same artifact, as new as its last use.
	_, _, err = a.c.exec(`INSERT INTO artifacts (session, hash, run_id, call_id, name, mime_type, size, created, expired)
		SELECT ?, hash, ?, ?, coalesce(?, name), mime_type, coalesce(length(data), 0), coalesce(?, created), 0 FROM blobs WHERE key = ?
		ON CONFLICT DO UPDATE SET run_id = excluded.run_id, call_id = excluded.call_id, name = excluded.name, created = excluded.created, expired = 0, why = NULL`,
		s.key, text(u.RunID), text(u.CallID), text(u.Name), key(u.Created), k)
	return err
}

// dropSession deletes what belongs to a session, but for its usage: the keys in
// there are those of nothing from then on, as keys are never used again.
func (a *applier) dropSession(t int64, id string) error {
	s, err := a.session(t, id)
	if err != nil {
		return err
	}
	var active string
	ok, err := a.c.get("SELECT id FROM runs WHERE session = ? AND status NOT IN ('completed', 'failed', 'cancelled')", []any{&active}, s.key)
	if err != nil {
		return err
	}
	if ok {
		return refuse(store.ErrSessionBusy, "session %s, run %s", id, active)
	}
	for _, sql := range []string{
		"DELETE FROM journal WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM inputs WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM run_specs WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM interrupts WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM proposals WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM mail WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM claims WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM effects WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		"DELETE FROM session_rules WHERE session = ?",
		"DELETE FROM holds WHERE run IN (SELECT key FROM runs WHERE session = ?)",
		`DELETE FROM pots WHERE kind = 'run' AND (tenant, id) IN (SELECT tenant, id FROM runs WHERE session = ?)`,
		`DELETE FROM pots WHERE kind = 'session' AND (tenant, id) IN (SELECT tenant, id FROM sessions WHERE key = ?)`,
		"DELETE FROM entries WHERE session = ?",
		"DELETE FROM runs WHERE session = ?",
		// One use alone is that of this session.
		`DELETE FROM blobs WHERE key IN (SELECT blob FROM blob_uses WHERE session = ?)
			AND (SELECT count(*) FROM blob_uses u WHERE u.blob = blobs.key) = 1`,
		"DELETE FROM blob_uses WHERE session = ?",
		"DELETE FROM artifacts WHERE session = ?",
		"DELETE FROM quarantine WHERE session = ?",
		"DELETE FROM sessions WHERE key = ?",
	} {
		if _, _, err := a.c.exec(sql, s.key); err != nil {
			return fmt.Errorf("drop session %s: %w", id, err)
		}
	}
	// Its runs are among what is remembered.
	a.forget()
	return nil
}
