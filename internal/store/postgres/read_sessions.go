package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

const sessionColumns = "SELECT id, title, leaf, metadata, created, updated, key, ephemeral, idempotency_key, request_hash FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1)"

func sessionOf(r row) *store.Session {
	return &store.Session{ID: r.Text(0), Title: r.Text(1), Leaf: r.Text(2), Metadata: r.Blob(3), Created: r.Int(4), Updated: r.Int(5), Ephemeral: r.Int(7) != 0,
		IdempotencyKey: r.Text(8), RequestHash: r.Text(9)}
}

// Session implements store.SessionReader.
func (s *Store) Session(ctx context.Context, tenant, id string) (*store.Session, error) {
	var out *store.Session
	ok, err := s.one(ctx, sessionColumns+" AND id = $2", func(r row) { out = sessionOf(r) }, tenant, id)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "session %s", id)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Sessions implements store.SessionReader.
func (s *Store) Sessions(ctx context.Context, tenant string, f store.SessionFilter) ([]*store.Session, string, error) {
	limit := limitOr(f.Limit, 50)
	updated, last := int64(math.MaxInt64), int64(math.MaxInt64)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.SessionList, f.Cursor, &updated, &last); err != nil {
			return nil, "", err
		}
	}
	type keyed struct {
		*store.Session
		key int64
	}
	rows, err := list(ctx, s, sessionColumns+` AND ephemeral = $2 AND minute <= $3 AND (updated, key) < ($4, $5) ORDER BY minute DESC, updated DESC, key DESC LIMIT $6`,
		func(r row) keyed { return keyed{sessionOf(r), r.Int(6)} }, tenant, number(f.Ephemeral), minute(updated), updated, last, limit+1)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = form.Cursor(form.SessionList, rows[limit-1].Updated, rows[limit-1].key)
	}
	var out []*store.Session
	for _, r := range rows {
		out = append(out, r.Session)
	}
	return out, next, nil
}

const entryColumns = `SELECT e.id, e.parent, e.kind, coalesce(r.id, e.run_id), e.created, e.body FROM entries e LEFT JOIN runs r ON r.key = e.run
	WHERE e.session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2)`

// entryOf leaves the body packed, until it is known which entries are wanted.
func entryOf(session string) func(row) *store.Entry {
	return func(r row) *store.Entry {
		return &store.Entry{SessionID: session, ID: r.Text(0), Parent: r.Text(1), Kind: r.Text(2), RunID: r.Text(3), Created: r.Int(4), Body: r.Blob(5)}
	}
}

// unpack fills in the bodies.
func unpack(es []*store.Entry) {
	form.UnpackBodies(len(es), func(i int) *json.RawMessage { return &es[i].Body })
}

// Entry implements store.SessionReader.
func (s *Store) Entry(ctx context.Context, tenant, sessionID, id string) (*store.Entry, error) {
	es, err := list(ctx, s, entryColumns+" AND e.id = $3", entryOf(sessionID), tenant, sessionID, id)
	if err != nil {
		return nil, err
	}
	if len(es) == 0 {
		return nil, form.Refuse(store.ErrNotFound, "entry %s of session %s", id, sessionID)
	}
	unpack(es)
	return es[0], nil
}

// Path implements store.SessionReader. An entry whose parent is missing, or that is
// its own ancestor, is an error (store.ErrNotFound): a path with a hole would be a wrong conversation.
//
// It reads the session and links it in memory: the usual session is nearly one line.
func (s *Store) Path(ctx context.Context, tenant, sessionID, leaf string) ([]*store.Entry, error) {
	if leaf == "" {
		return nil, s.exists(ctx, "sessions", "session", tenant, sessionID)
	}
	all, err := list(ctx, s, entryColumns, entryOf(sessionID), tenant, sessionID)
	if err != nil {
		return nil, err
	}
	if path := form.Line(all, leaf); path != nil {
		unpack(path)
		return path, nil
	}
	byID := make(map[string]*store.Entry, len(all))
	for _, e := range all {
		byID[e.ID] = e
	}
	var path []*store.Entry
	for id := leaf; id != ""; {
		e := byID[id]
		if e == nil {
			return nil, form.Refuse(store.ErrNotFound, "entry %s of session %s, on the path to %s", id, sessionID, leaf)
		}
		if len(path) > len(all) {
			return nil, form.Refuse(store.ErrNotFound, "the root of session %s: its entries form a circle", sessionID)
		}
		path = append(path, e)
		id = e.Parent
	}
	slices.Reverse(path)
	unpack(path)
	return path, nil
}

// Entries implements store.SessionReader. A limit of 0 gives all.
func (s *Store) Entries(ctx context.Context, tenant, sessionID, after string, limit int) ([]*store.Entry, error) {
	es, err := list(ctx, s, entryColumns+" AND e.id > $3 ORDER BY e.id LIMIT $4", entryOf(sessionID), tenant, sessionID, after, limitOr(limit, math.MaxInt64))
	if err == nil && len(es) == 0 {
		err = s.exists(ctx, "sessions", "session", tenant, sessionID)
	}
	if err != nil {
		return nil, err
	}
	unpack(es)
	return es, nil
}

// Rules implements store.RuleReader.
func (s *Store) Rules(ctx context.Context, tenant, sessionID string) ([]*store.Rule, error) {
	out, err := list(ctx, s, `SELECT id, tool, pattern, "text", interrupt, by, created FROM session_rules
		WHERE session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2) ORDER BY key`, func(r row) *store.Rule {
		return &store.Rule{SessionID: sessionID, ID: r.Text(0), Tool: r.Text(1), Pattern: r.Blob(2), Text: r.Text(3), Interrupt: r.Text(4), By: r.Text(5), Created: r.Int(6)}
	}, tenant, sessionID)
	if err == nil && len(out) == 0 {
		err = s.exists(ctx, "sessions", "session", tenant, sessionID)
	}
	return out, err
}

// Expired implements store.DropReader. It looks at ephemeral sessions of that age alone.
func (s *Store) Expired(ctx context.Context, before int64, limit int) ([]store.SessionRef, error) {
	return list(ctx, s, `SELECT t.id, s.id FROM sessions s JOIN tenants t ON t.key = s.tenant
		WHERE s.ephemeral = 1 AND s.minute <= $1 AND s.updated < $2
		AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.key
			AND (r.parent_id IS NOT NULL OR r.ended >= $2 OR r.status NOT IN ('completed', 'failed', 'cancelled')))
		AND NOT EXISTS (SELECT 1 FROM runs r JOIN runs d ON d.tenant = r.tenant AND d.root_id = r.id WHERE r.session = s.key
			AND (d.ended >= $2 OR d.status NOT IN ('completed', 'failed', 'cancelled')))
		ORDER BY s.minute LIMIT $3`, func(r row) store.SessionRef { return store.SessionRef{Tenant: r.Text(0), ID: r.Text(1)} }, minute(before), before, limit)
}

// Family implements store.DropReader.
func (s *Store) Family(ctx context.Context, tenant, sessionID string) ([]string, error) {
	// Level by level, each session once, itself first.
	ids, err := list(ctx, s, `WITH RECURSIVE family (key, id, level) AS (
			SELECT key, id, 0 FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2
			UNION SELECT s.key, s.id, f.level + 1 FROM family f JOIN runs r ON r.session = f.key JOIN runs d ON d.tenant = r.tenant AND d.parent_id = r.id
				JOIN sessions s ON s.key = d.session WHERE s.key <> f.key AND f.level < 1000)
		SELECT id FROM family GROUP BY id ORDER BY min(level), id`, func(r row) string { return r.Text(0) }, tenant, sessionID)
	if err == nil && len(ids) == 0 {
		err = form.Refuse(store.ErrNotFound, "session %s", sessionID)
	}
	return ids, err
}

// unknownIsNone makes an empty list of a filter by an id that can not be.
func unknownIsNone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
