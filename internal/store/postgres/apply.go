package postgres

import (
	"context"
	"slices"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

// The keys of a session and of a run whose tenant is $1 and whose id is $2. A session
// that is being written to is not deleted meanwhile.
const (
	sessionKey = `coalesce((SELECT key FROM sessions WHERE tenant = $1 AND id = $2 FOR KEY SHARE), agentd_refuse('AG404', 'session ' || $2))`
	runKey     = `coalesce((SELECT key FROM runs WHERE tenant = $1 AND id = $2), agentd_refuse('AG404', 'run ' || $2))`
	// sessionIs and runIs are these keys for conditions, NULL if there is no such row: a
	// condition that might refuse would be asked of every row of the table.
	sessionIs = `(SELECT key FROM sessions WHERE tenant = $1 AND id = $2)`
	runIs     = `(SELECT key FROM runs WHERE tenant = $1 AND id = $2)`
	// lockRun lets one change at a time write to a run.
	lockRun = `SELECT coalesce((SELECT key FROM runs WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE), agentd_refuse('AG404', 'run ' || $2))`
)

// statements makes the changes of a Tx in the order of its fields, behind what locks
// and names it.
func (s *Store) statements(b *batch, c *change) {
	tx := c.tx
	fences, runs := tx.Fences, tx.Runs
	if c.fenced != "" {
		s.advance(b, c, &tx.Runs[0])
		fences, runs = fences[1:], runs[1:]
	} else {
		b.add("INSERT INTO commits (id) VALUES ($1)", c.id)
		if s.marks.Add(1)%marksKept == 0 {
			b.add("DELETE FROM commits WHERE at < now() - interval '1 hour'")
		}
	}
	for _, f := range fences {
		b.add(`SELECT CASE coalesce((SELECT CASE epoch WHEN $3 THEN 1 ELSE 2 END FROM runs WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE), 0)
			WHEN 0 THEN agentd_refuse('AG404', 'run ' || $2) WHEN 2 THEN agentd_refuse('AG412', 'run ' || $2) END`, c.tenant, f.RunID, f.Epoch)
	}
	for i := range c.journals {
		id := c.journals[i].Run
		if id != c.fenced && !slices.ContainsFunc(fences, func(f store.Fence) bool { return f.RunID == id }) &&
			!slices.ContainsFunc(tx.NewRuns, func(r *store.Run) bool { return r.ID == id }) {
			b.add(lockRun, c.tenant, id)
		}
	}
	for _, x := range tx.NewSessions {
		s.newSession(b, c, x)
	}
	for _, x := range tx.NewRuns {
		s.newRun(b, c, x)
	}
	for _, e := range tx.Entries {
		b.addUnique(taken("entry %s of session %s exists", e.ID, e.SessionID), `INSERT INTO entries (session, id, parent, kind, run, run_id, created, body)
			SELECT `+sessionKey+`, $3, $4, $5, r.key, CASE WHEN r.key IS NULL THEN $6 END, $7, $8
			FROM (SELECT 1) x LEFT JOIN runs r ON r.tenant = $1 AND r.id = $6`,
			c.tenant, e.SessionID, e.ID, text(e.Parent), e.Kind, text(e.RunID), e.Created, blob(s.codec.PackBody(e.Body)))
	}
	for _, l := range tx.Leaves {
		b.add(`WITH u AS (UPDATE sessions SET leaf = $3, updated = $4, minute = $5 WHERE tenant = $1 AND id = $2
				AND ($3::text IS NULL OR EXISTS (SELECT 1 FROM entries e WHERE e.session = sessions.key AND e.id = $3)) RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG404', coalesce('entry ' || $3 || ' of ', '') || 'session ' || $2) END`,
			c.tenant, l.SessionID, text(l.EntryID), l.Updated, minute(l.Updated))
	}
	for i := range runs {
		s.changeRun(b, c, &runs[i])
	}
	s.inputs(b, c)
	s.interrupts(b, c)
	s.rules(b, c)
	s.proposals(b, c)
	s.budgets(b, c)
	for i := range c.journals {
		s.journal(b, c, &c.journals[i])
	}
	for i, u := range tx.Usage {
		s.usage(b, c, u, c.models[i])
	}
	s.blobs(b, c)
	s.artifacts(b, c)
	for _, id := range tx.DropSessions {
		s.dropSession(b, c, id)
	}
	s.keys(b, c)
	s.schedules(b, c)
	s.memories(b, c)
	s.cluster(b, c)
}

// marksKept is how many changes that are named in the table commits go by before old
// names are deleted.
const marksKept = 1000

// taken is for a unique index that can be broken in one way alone.
func taken(format string, args ...any) func(context.Context) error {
	return func(context.Context) error { return form.Refuse(store.ErrConflict, format, args...) }
}

func (s *Store) newSession(b *batch, c *change, x *store.Session) {
	why := func(ctx context.Context) error {
		if x.IdempotencyKey != "" {
			var exists *store.ExistsError
			if _, err := get(ctx, s.pool, "SELECT id, request_hash FROM sessions WHERE tenant = $1 AND idempotency_key = $2", func(r row) {
				exists = &store.ExistsError{SessionID: r.Text(0), SameRequest: r.Text(1) == x.RequestHash}
			}, c.tenant, raw(x.IdempotencyKey)); err != nil {
				return err
			}
			if exists != nil {
				return form.Refuse(exists, "idempotency key %q", x.IdempotencyKey)
			}
		}
		return s.unlessGone(ctx, form.Refuse(store.ErrConflict, "session %s exists", x.ID), "SELECT 1 FROM sessions WHERE tenant = $1 AND id = $2", c.tenant, x.ID)
	}
	b.addUnique(why, `INSERT INTO sessions (tenant, id, created, minute, updated, leaf, title, metadata, ephemeral, idempotency_key, request_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		c.tenant, x.ID, x.Created, minute(x.Updated), x.Updated, text(x.Leaf), raw(x.Title), blob(x.Metadata), number(x.Ephemeral),
		raw(x.IdempotencyKey), text(x.RequestHash))
}

// unlessGone gives refusal if the row that it is about is there; nil means that the
// change is worth another attempt.
func (s *Store) unlessGone(ctx context.Context, refusal error, sql string, args ...any) error {
	ok, err := get(ctx, s.pool, sql, func(row) {}, args...)
	if err == nil && ok {
		err = refusal
	}
	return err
}

// journal writes the events and trace of a run, whose row is locked by now: what the
// statement sees of the journal is the newest there is.
func (s *Store) journal(b *batch, c *change, j *form.Journal) {
	var first, last any
	if j.Last > 0 {
		first, last = j.First, j.Last
	}
	b.addUnique(taken("event %d of run %s: its events go further", j.Last, j.Run), `INSERT INTO journal (run, last_seq, entries, body)
		SELECT CASE WHEN EXISTS (SELECT 1 FROM journal o WHERE o.run = x.key AND o.last_seq >= $3)
			THEN agentd_refuse('AG409', 'event ' || $3 || ' of run ' || $2 || ': its events go further') ELSE x.key END, $4, 0, $5
		FROM (SELECT `+runKey+` AS key) x`, c.tenant, j.Run, first, last, j.Body)
}

func (s *Store) usage(b *batch, c *change, u *store.Usage, model int64) {
	session, run := "0", "0"
	if u.RunID != "" {
		run = runKey
		session = "(SELECT session FROM runs WHERE tenant = $1 AND id = $2)"
	}
	if u.SessionID != "" {
		session = `coalesce((SELECT key FROM sessions WHERE tenant = $1 AND id = $3), agentd_refuse('AG404', 'session ' || $3))`
	}
	// The condition gives parameters that are not used a type.
	b.add(`INSERT INTO usage (tenant, session, run, model, minute, calls, input, output, cache_read, cache_write, cost, "user")
		SELECT $1, `+session+`, `+run+`, $4, $5, 1, $6, $7, $8, $9, $10, $11 WHERE coalesce($2::text, $3::text) IS NULL OR true
		ON CONFLICT (tenant, session, run, model, minute) DO UPDATE SET calls = usage.calls + 1, input = usage.input + excluded.input, output = usage.output + excluded.output,
			cache_read = usage.cache_read + excluded.cache_read, cache_write = usage.cache_write + excluded.cache_write, cost = usage.cost + excluded.cost`,
		c.tenant, text(u.RunID), text(u.SessionID), model, minute(u.Time), u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost, raw(u.User))
}

// packed is the stored form of states and specs.
func (s *Store) packed(v []byte) any {
	if len(v) == 0 {
		return nil
	}
	return s.codec.Pack(make([]byte, 0, len(v)/2+32), v)
}
