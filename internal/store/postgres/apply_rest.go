package postgres

import (
	"encoding/hex"
	"strings"
)

func (s *Store) rules(b *batch, c *change) {
	for _, r := range c.tx.NewRules {
		b.addUnique(taken("rule %s of session %s exists", r.ID, r.SessionID), `INSERT INTO session_rules (session, id, tool, pattern, text, interrupt, by, created)
			VALUES (`+sessionKey+`, $3, $4, $5, $6, $7, $8, $9)`,
			c.tenant, r.SessionID, r.ID, bytes(r.Tool), []byte(r.Pattern), raw(r.Text), text(r.Interrupt), raw(r.By), r.Created)
	}
	for _, r := range c.tx.DropRules {
		b.add(`WITH d AS (DELETE FROM session_rules WHERE session = `+sessionIs+` AND id = $3 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM d) THEN agentd_refuse('AG404', 'rule ' || $3 || ' of session ' || $2) END`, c.tenant, r.SessionID, r.ID)
	}
}

func (s *Store) proposals(b *batch, c *change) {
	for _, p := range c.tx.NewProposals {
		b.addUnique(taken("proposal %s exists", p.ID), `INSERT INTO proposals (run, id, call_id, name, effect, idem_key, args, temp, predicted, reason, created, status, result, "real", by, decided)
			VALUES (`+runKey+`, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			c.tenant, p.RunID, p.ID, bytes(p.CallID), bytes(p.Name), p.Effect, bytes(p.Key), blob(p.Args), raw(p.Temp), raw(p.Predicted), raw(p.Reason), p.Created,
			p.Status, raw(p.Result), blob(p.Real), raw(p.By), p.Decided)
	}
	for _, p := range c.tx.Proposals {
		// A proposal's id begins with its run's.
		run, _, _ := strings.Cut(p.ID, ".p")
		b.add(`WITH u AS (UPDATE proposals SET status = $4, result = $5, "real" = $6, by = $7, decided = $8 WHERE run = `+runIs+` AND id = $3 AND status = $9 RETURNING 1)
			SELECT CASE WHEN EXISTS (SELECT 1 FROM u) THEN NULL WHEN `+runIs+` IS NULL THEN agentd_refuse('AG404', 'run ' || $2)
				ELSE agentd_refuse('AG409', 'proposal ' || $3 || ' is no longer ' || $9) END`,
			c.tenant, run, p.ID, p.Status, raw(p.Result), blob(p.Real), raw(p.By), p.Decided, p.From)
	}
}

// blobs stores blobs that the tenant does not have yet, and who uses which. A row that
// is there is locked by changing nothing in it: whoever deletes it with its last use
// waits, and then sees the new one.
func (s *Store) blobs(b *batch, c *change) {
	for _, x := range c.tx.Blobs {
		hash, _ := hex.DecodeString(x.ID) // form.Check has looked
		b.add(`INSERT INTO blobs (tenant, hash, mime_type, name, created, data) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (tenant, hash) DO UPDATE SET created = blobs.created`, c.tenant, hash, raw(x.MimeType), raw(x.Name), x.Created, blob(x.Data))
	}
	for _, u := range c.tx.BlobUses {
		hash, err := hex.DecodeString(u.BlobID)
		if err != nil {
			hash = nil // nobody's
		}
		b.add(`INSERT INTO blob_uses (session, blob) VALUES (`+sessionKey+`,
				coalesce((SELECT key FROM blobs WHERE tenant = $1 AND hash = $3 FOR KEY SHARE), agentd_refuse('AG404', 'blob ' || $4))) ON CONFLICT DO NOTHING`,
			c.tenant, u.SessionID, hash, u.BlobID)
		// The same content again is the same artifact, as new as its last use.
		b.add(`INSERT INTO artifacts (session, hash, run_id, call_id, name, mime_type, size, created, expired)
			SELECT `+sessionKey+`, hash, $4, $5, coalesce($6, name), mime_type, coalesce(length(data), 0), coalesce($7, created), 0 FROM blobs WHERE tenant = $1 AND hash = $3
			ON CONFLICT (session, hash) DO UPDATE SET run_id = excluded.run_id, call_id = excluded.call_id, name = excluded.name, created = excluded.created, expired = 0, why = NULL`,
			c.tenant, u.SessionID, hash, text(u.RunID), raw(u.CallID), raw(u.Name), unlessZero(u.Created))
	}
}

// dropSession deletes what belongs to a session, but for its usage: the keys in there
// are those of nothing from then on, as keys are never used again. Its runs, itself, its
// pots and its blobs are locked first; what others wrote before that is seen by what follows.
func (s *Store) dropSession(b *batch, c *change, id string) {
	const (
		session = sessionIs
		runs    = "(SELECT key FROM runs WHERE session = " + session + ")"
		ownPots = "tenant = $1 AND (kind = 'run' AND id IN (SELECT id FROM runs WHERE session = " + session + ") OR kind = 'session' AND id = $2)"
	)
	lockRuns := "SELECT key FROM runs WHERE session = " + session + " ORDER BY key FOR UPDATE"
	for _, sql := range []string{
		lockRuns,
		"SELECT coalesce((SELECT key FROM sessions WHERE tenant = $1 AND id = $2 FOR UPDATE), agentd_refuse('AG404', 'session ' || $2))",
		lockRuns, // those that came meanwhile
		"SELECT key FROM pots WHERE " + ownPots + " ORDER BY kind, id FOR UPDATE",
		"SELECT key FROM blobs WHERE key IN (SELECT blob FROM blob_uses WHERE session = " + session + ") ORDER BY key FOR UPDATE",
		`SELECT agentd_refuse('AG423', 'session ' || $2 || ', run ' || id) FROM runs WHERE session = ` + session + ` AND status NOT IN ('completed', 'failed', 'cancelled') LIMIT 1`,
		"DELETE FROM journal WHERE run IN " + runs,
		"DELETE FROM inputs WHERE run IN " + runs,
		"DELETE FROM run_specs WHERE run IN " + runs,
		"DELETE FROM interrupts WHERE run IN " + runs,
		"DELETE FROM proposals WHERE run IN " + runs,
		"DELETE FROM mail WHERE run IN " + runs,
		"DELETE FROM claims WHERE run IN " + runs,
		"DELETE FROM effects WHERE run IN " + runs,
		"DELETE FROM session_rules WHERE session = " + session,
		"DELETE FROM holds WHERE run IN " + runs,
		"DELETE FROM pots WHERE " + ownPots,
		"DELETE FROM entries WHERE session = " + session,
		"DELETE FROM runs WHERE session = " + session,
		// One use alone is that of this session.
		"DELETE FROM blobs WHERE key IN (SELECT blob FROM blob_uses WHERE session = " + session + ") AND (SELECT count(*) FROM blob_uses u WHERE u.blob = blobs.key) = 1",
		"DELETE FROM blob_uses WHERE session = " + session,
		"DELETE FROM artifacts WHERE session = " + session,
		"DELETE FROM quarantine WHERE session = " + session,
		"DELETE FROM sessions WHERE tenant = $1 AND id = $2",
	} {
		b.add(sql, c.tenant, id)
	}
}

func (s *Store) keys(b *batch, c *change) {
	for _, k := range c.tx.NewKeys {
		b.addUnique(taken("API key %s exists", k.ID), `INSERT INTO api_keys (tenant, id, name, hash, scopes, created, expires, revoked, last_used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			c.tenant, k.ID, raw(k.Name), k.Hash, strings.Join(k.Scopes, " "), k.Created, k.Expires, k.Revoked, k.LastUsed)
	}
	for _, k := range c.tx.Keys {
		b.add(`WITH u AS (UPDATE api_keys SET revoked = CASE revoked WHEN 0 THEN $3 ELSE revoked END, last_used = greatest(last_used, $4) WHERE tenant = $1 AND id = $2 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG404', 'API key ' || $2) END`, c.tenant, k.ID, k.Revoked, k.LastUsed)
	}
}
