package sqlite

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

const sessionColumns = "SELECT id, title, leaf, metadata, created, updated, key, ephemeral, idempotency_key, request_hash FROM sessions"

func sessionOf(r row) *store.Session {
	return &store.Session{ID: r.text(0), Title: r.text(1), Leaf: r.text(2), Metadata: r.blob(3), Created: r.int(4), Updated: r.int(5), Ephemeral: r.int(7) != 0,
		IdempotencyKey: r.text(8), RequestHash: r.text(9)}
}

// Session implements store.SessionReader.
func (s *Store) Session(ctx context.Context, tenant, id string) (*store.Session, error) {
	var out *store.Session
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sessionColumns+" WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?", func(r row) error {
			out = sessionOf(r)
			return nil
		}, tenant, id)
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "session %s", id)
	}
	return out, err
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
	var out []*store.Session
	var next string
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sessionColumns+` WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND ephemeral = ? AND minute <= ? AND (updated, key) < (?, ?)
			ORDER BY minute DESC, updated DESC, key DESC LIMIT ?`, func(r row) error {
			if len(out) == limit {
				next = form.Cursor(form.SessionList, out[limit-1].Updated, last)
				return nil
			}
			out = append(out, sessionOf(r))
			last = r.int(6)
			return nil
		}, tenant, f.Ephemeral, minute(updated), updated, last, limit+1)
	})
	if err != nil {
		return nil, "", err
	}
	return out, next, nil
}

func limitOr(limit, standard int) int {
	if limit <= 0 {
		return standard
	}
	return limit
}

// sessionKey finds a session or says that there is none.
func sessionKey(c *conn, tenant, id string) (int64, error) {
	var k int64
	ok, err := c.get("SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?", []any{&k}, tenant, id)
	if err == nil && !ok {
		err = refuse(store.ErrNotFound, "session %s", id)
	}
	return k, err
}

// The kind of most entries is message. Long sessions are read as a whole, and a NULL is
// read several times faster than a text.
const (
	usualKind    = "message"
	entryColumns = "SELECT id, parent, CASE kind WHEN '" + usualKind + "' THEN NULL ELSE kind END, run, run_id, created, body FROM entries"
)

// entryReader makes entries of rows. Most of them are of a handful of runs,
// whose ids it looks up once (after the rows: a connection runs one statement
// at a time).
type entryReader struct {
	session string
	out     []*store.Entry
	runs    []int64 // the key of the run of each entry in out
	free    []store.Entry
}

func (er *entryReader) add(r row) {
	if len(er.free) == 0 {
		er.free = make([]store.Entry, min(len(er.out)+1, 128)) // read together, kept together
	}
	e := &er.free[0]
	er.free = er.free[1:]
	*e = store.Entry{SessionID: er.session, ID: r.text(0), Parent: r.text(1), Kind: r.text(2),
		RunID: r.text(4), Created: r.int(5), Body: r.blob(6)}
	if r[2] == nil {
		e.Kind = usualKind
	}
	er.out = append(er.out, e)
	er.runs = append(er.runs, r.int(3))
}

// unpack fills in the bodies of those of the entries that are wanted.
func unpack(es []*store.Entry) {
	form.UnpackBodies(len(es), func(i int) *json.RawMessage { return &es[i].Body })
}

// fewRuns is how many runs are asked for one by one.
const fewRuns = 8

// resolve fills in the runs, which add left open. session is the key of the session.
func (er *entryReader) resolve(ctx context.Context, c *conn, session int64) error {
	ids := map[int64]string{}
	several := 0
	for i, k := range er.runs {
		if k != 0 && (i == 0 || k != er.runs[i-1]) {
			several++
		}
	}
	if several > fewRuns {
		if err := c.query(ctx, "SELECT key, id FROM runs WHERE session = ?", func(r row) error {
			ids[r.int(0)] = r.text(1)
			return nil
		}, session); err != nil {
			return err
		}
	}
	for i, k := range er.runs {
		if k == 0 {
			continue
		}
		id, ok := ids[k]
		if !ok {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := c.get("SELECT id FROM runs WHERE key = ?", []any{&id}, k); err != nil {
				return err
			}
			ids[k] = id
		}
		er.out[i].RunID = id
	}
	return nil
}

// Entry implements store.SessionReader.
func (s *Store) Entry(ctx context.Context, tenant, sessionID, id string) (*store.Entry, error) {
	er := entryReader{session: sessionID}
	err := s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		if err := c.query(ctx, entryColumns+" WHERE session = ? AND id = ?", func(r row) error {
			er.add(r)
			return nil
		}, k, id); err != nil {
			return err
		}
		return er.resolve(ctx, c, k)
	})
	if err != nil {
		return nil, err
	}
	unpack(er.out)
	if len(er.out) == 0 {
		return nil, refuse(store.ErrNotFound, "entry %s of session %s", id, sessionID)
	}
	return er.out[0], nil
}

// Path implements store.SessionReader. An entry whose parent is missing, or that is
// its own ancestor, is an error (store.ErrNotFound): a path with a hole would be a wrong conversation.
//
// It reads the session and links it in memory: for the usual session, which is
// nearly one line, that is several times faster than a recursive query.
func (s *Store) Path(ctx context.Context, tenant, sessionID, leaf string) ([]*store.Entry, error) {
	return s.PathAhead(ctx, tenant, sessionID, leaf, nil)
}

// PathAhead implements store.AheadReader.
func (s *Store) PathAhead(ctx context.Context, tenant, sessionID, leaf string, ahead store.Ahead) ([]*store.Entry, error) {
	er := entryReader{session: sessionID}
	var path []*store.Entry
	bodies := form.Ahead(ahead)
	err := s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil || leaf == "" {
			return err
		}
		// The newest first: what is ahead of a compaction need not be decoded.
		if err := c.query(ctx, entryColumns+" WHERE session = ? ORDER BY id DESC", func(r row) error {
			er.add(r)
			bodies.Add(er.out)
			return nil
		}, k); err != nil {
			return err
		}
		if path, err = er.chain(leaf); err != nil {
			return err
		}
		return er.resolve(ctx, c, k)
	})
	bodies.End(er.out)
	if err != nil {
		return nil, err
	}
	unpack(path)
	return path, nil
}

// chain gives the path to a leaf. The newest entry was read first.
func (er *entryReader) chain(leaf string) ([]*store.Entry, error) {
	line := slices.Clone(er.out) // others still go through it
	slices.Reverse(line)
	if path := form.Line(line, leaf); path != nil {
		return path, nil
	}
	byID := make(map[string]int, len(er.out))
	for i, e := range er.out {
		byID[e.ID] = i
	}
	var path []*store.Entry
	for id := leaf; id != ""; {
		i, ok := byID[id]
		if !ok {
			return nil, refuse(store.ErrNotFound, "entry %s of session %s, on the path to %s", id, er.session, leaf)
		}
		if len(path) > len(er.out) {
			return nil, refuse(store.ErrNotFound, "the root of session %s: its entries form a circle", er.session)
		}
		path = append(path, er.out[i])
		id = er.out[i].Parent
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, nil
}

// Entries implements store.SessionReader. A limit of 0 gives all.
func (s *Store) Entries(ctx context.Context, tenant, sessionID, after string, limit int) ([]*store.Entry, error) {
	er := entryReader{session: sessionID}
	err := s.read(ctx, func(c *conn) error {
		k, err := sessionKey(c, tenant, sessionID)
		if err != nil {
			return err
		}
		if err := c.query(ctx, entryColumns+" WHERE session = ? AND id > ? ORDER BY id LIMIT ?", func(r row) error {
			er.add(r)
			return nil
		}, k, after, limitOr(limit, -1)); err != nil {
			return err
		}
		return er.resolve(ctx, c, k)
	})
	if err != nil {
		return nil, err
	}
	unpack(er.out)
	return er.out, nil
}
