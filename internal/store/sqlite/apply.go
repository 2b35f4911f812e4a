package sqlite

import (
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// applier writes Tx on the writer's connection. It remembers the keys of what
// it has seen, and of runs what decides whether a Tx is allowed: as nobody else
// writes, memory and file agree. When anything is rolled back it forgets all.
type applier struct {
	c     *conn
	codec *form.Codec

	tenants  map[string]int64
	models   map[modelName]int64
	sessions map[rowName]*sessionRow
	runs     map[rowName]*runRow
}

type modelName struct{ provider, model string }

type rowName struct {
	tenant int64
	id     string
}

type sessionRow struct{ key, minute int64 }

type runRow struct {
	key, session, epoch int64
	lastSeq             int64 // of its newest event
	status              string
}

// maxRemembered bounds each map; a full one starts again.
const maxRemembered = 4096

func newApplier(c *conn, codec *form.Codec) *applier {
	return &applier{c: c, codec: codec,
		tenants: map[string]int64{}, models: map[modelName]int64{},
		sessions: map[rowName]*sessionRow{}, runs: map[rowName]*runRow{}}
}

func (a *applier) forget() {
	clear(a.tenants)
	clear(a.models)
	clear(a.sessions)
	clear(a.runs)
}

func remember[K comparable, V any](m map[K]V, k K, v V) {
	if len(m) >= maxRemembered {
		clear(m)
	}
	m[k] = v
}

// apply makes the changes of one Tx in the order of its fields.
func (a *applier) apply(j *job) error {
	tx := j.tx
	t, err := a.tenant(tx.Tenant)
	if err != nil {
		return err
	}
	for _, f := range tx.Fences {
		r, err := a.runRow(t, f.RunID)
		if err != nil {
			return err
		}
		if r.epoch != f.Epoch {
			return refuse(store.ErrFenced, "run %s has epoch %d and not %d", f.RunID, r.epoch, f.Epoch)
		}
	}
	for _, s := range tx.NewSessions {
		if err := a.newSession(t, s); err != nil {
			return err
		}
	}
	for i, r := range tx.NewRuns {
		if err := a.newRun(t, r, j.newStates[i], j.specs[i]); err != nil {
			return err
		}
	}
	first, err := a.entries(t, tx.Entries, j.bodies)
	if err != nil {
		return err
	}
	for i := range tx.Leaves {
		if err := a.leaf(t, tx, &tx.Leaves[i]); err != nil {
			return err
		}
	}
	for i := range tx.Runs {
		if err := a.changeRun(t, &tx.Runs[i], j.states[i]); err != nil {
			return err
		}
	}
	if err := a.inputs(t, tx); err != nil {
		return err
	}
	if err := a.interrupts(t, tx); err != nil {
		return err
	}
	if err := a.rules(t, tx); err != nil {
		return err
	}
	if err := a.proposals(t, tx); err != nil {
		return err
	}
	if err := a.budgets(t, tx); err != nil {
		return err
	}
	for i := range j.journals {
		if err := a.journal(t, tx, &j.journals[i], first); err != nil {
			return err
		}
	}
	for _, u := range tx.Usage {
		if err := a.usage(t, u); err != nil {
			return err
		}
	}
	for _, b := range tx.Blobs {
		if err := a.blob(t, b); err != nil {
			return err
		}
	}
	for _, u := range tx.BlobUses {
		if err := a.blobUse(t, u); err != nil {
			return err
		}
	}
	if err := a.artifacts(t, tx); err != nil {
		return err
	}
	for _, id := range tx.DropSessions {
		if err := a.dropSession(t, id); err != nil {
			return err
		}
	}
	if err := a.keys(t, tx); err != nil {
		return err
	}
	if err := a.schedules(t, tx); err != nil {
		return err
	}
	if err := a.memories(t, tx); err != nil {
		return err
	}
	return a.cluster(t, tx)
}

func (a *applier) tenant(id string) (int64, error) {
	if k, ok := a.tenants[id]; ok {
		return k, nil
	}
	var k int64
	ok, err := a.c.get("SELECT key FROM tenants WHERE id = ?", []any{&k}, id)
	if err != nil {
		return 0, err
	}
	if !ok {
		if _, k, err = a.c.exec("INSERT INTO tenants (id) VALUES (?)", id); err != nil {
			return 0, err
		}
	}
	remember(a.tenants, id, k)
	return k, nil
}

func (a *applier) session(t int64, id string) (*sessionRow, error) {
	name := rowName{t, id}
	if s := a.sessions[name]; s != nil {
		return s, nil
	}
	s := &sessionRow{}
	ok, err := a.c.get("SELECT key, minute FROM sessions WHERE tenant = ? AND id = ?", []any{&s.key, &s.minute}, t, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, refuse(store.ErrNotFound, "session %s", id)
	}
	remember(a.sessions, name, s)
	return s, nil
}

// findRun gives nil for an unknown run.
func (a *applier) findRun(t int64, id string) (*runRow, error) {
	name := rowName{t, id}
	if r := a.runs[name]; r != nil {
		return r, nil
	}
	r := &runRow{}
	ok, err := a.c.get(`SELECT r.key, r.session, r.epoch, r.status,
		(SELECT max(last_seq) FROM journal j WHERE j.run = r.key)
		FROM runs r WHERE r.tenant = ? AND r.id = ?`,
		[]any{&r.key, &r.session, &r.epoch, &r.status, &r.lastSeq}, t, id)
	if err != nil || !ok {
		return nil, err
	}
	remember(a.runs, name, r)
	return r, nil
}

func (a *applier) runRow(t int64, id string) (*runRow, error) {
	r, err := a.findRun(t, id)
	if err == nil && r == nil {
		err = refuse(store.ErrNotFound, "run %s", id)
	}
	return r, err
}

func minute(ms int64) int64 { return ms / 60_000 }

func (a *applier) newSession(t int64, s *store.Session) error {
	// Before anything is written: a refusal then costs the group nothing.
	if err := a.keyTaken(t, s); err != nil {
		return err
	}
	_, k, err := a.c.exec(`INSERT INTO sessions (tenant, id, created, minute, updated, leaf, title, metadata, ephemeral, idempotency_key, request_hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t, s.ID, s.Created, minute(s.Updated), s.Updated, text(s.Leaf), text(s.Title), blob(s.Metadata), s.Ephemeral,
		text(s.IdempotencyKey), text(s.RequestHash))
	if primary(err) == codeConstraint {
		return refuse(store.ErrConflict, "session %s exists", s.ID)
	}
	if err != nil {
		return err
	}
	remember(a.sessions, rowName{t, s.ID}, &sessionRow{key: k, minute: minute(s.Updated)})
	return nil
}

// keyTaken refuses a session whose idempotency key another one has.
func (a *applier) keyTaken(t int64, s *store.Session) error {
	if s.IdempotencyKey == "" {
		return nil
	}
	var id, hash string
	ok, err := a.c.get("SELECT id, request_hash FROM sessions WHERE tenant = ? AND idempotency_key = ?", []any{&id, &hash}, t, s.IdempotencyKey)
	if err != nil || !ok {
		return err
	}
	return refuse(&store.ExistsError{SessionID: id, SameRequest: hash == s.RequestHash}, "idempotency key %q", s.IdempotencyKey)
}

// entries inserts es and gives the key of the first. Their keys follow each
// other, as keys are given out by this goroutine alone.
func (a *applier) entries(t int64, es []*store.Entry, bodies [][]byte) (first int64, err error) {
	for i, e := range es {
		s, err := a.session(t, e.SessionID)
		if err != nil {
			return 0, err
		}
		var run, runID any
		if e.RunID != "" {
			r, err := a.findRun(t, e.RunID)
			if err != nil {
				return 0, err
			}
			if r != nil {
				run = r.key
			} else {
				runID = e.RunID
			}
		}
		_, k, err := a.c.exec("INSERT INTO entries (session, id, parent, kind, run, run_id, created, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			s.key, e.ID, text(e.Parent), e.Kind, run, runID, e.Created, blob(bodies[i]))
		if primary(err) == codeConstraint {
			return 0, refuse(store.ErrConflict, "entry %s of session %s exists", e.ID, e.SessionID)
		}
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = k
		}
	}
	return first, nil
}

func (a *applier) leaf(t int64, tx *store.Tx, l *store.Leaf) error {
	s, err := a.session(t, l.SessionID)
	if err != nil {
		return err
	}
	if l.EntryID != "" && !wrote(tx, l) {
		var k int64
		ok, err := a.c.get("SELECT key FROM entries WHERE session = ? AND id = ?", []any{&k}, s.key, l.EntryID)
		if err != nil {
			return err
		}
		if !ok {
			return refuse(store.ErrNotFound, "entry %s of session %s", l.EntryID, l.SessionID)
		}
	}
	if m := minute(l.Updated); m != s.minute {
		_, _, err = a.c.exec("UPDATE sessions SET leaf = ?, updated = ?, minute = ? WHERE key = ?", text(l.EntryID), l.Updated, m, s.key)
		if err == nil {
			s.minute = m
		}
		return err
	}
	_, _, err = a.c.exec("UPDATE sessions SET leaf = ?, updated = ? WHERE key = ?", text(l.EntryID), l.Updated, s.key)
	return err
}

// wrote reports whether tx itself writes the entry of a leaf.
func wrote(tx *store.Tx, l *store.Leaf) bool {
	for i := len(tx.Entries) - 1; i >= 0; i-- {
		if e := tx.Entries[i]; e.ID == l.EntryID && e.SessionID == l.SessionID {
			return true
		}
	}
	return false
}

func (a *applier) journal(t int64, tx *store.Tx, j *form.Journal, firstEntry int64) error {
	r, err := a.runRow(t, j.Run)
	if err != nil {
		return err
	}
	if j.First > 0 && j.First <= r.lastSeq {
		return refuse(store.ErrConflict, "event %d of run %s: its events go up to %d", j.First, j.Run, r.lastSeq)
	}
	body, entry, n := j.Body, firstEntry+int64(j.From), j.To-j.From
	if n > 0 {
		s, err := a.session(t, tx.Entries[j.From].SessionID)
		if err != nil {
			return err
		}
		if s.key != r.session {
			// The dictionary must not be deleted before the journal.
			plain, err := j.Plain(nil, tx)
			if err != nil {
				return err
			}
			body, n = a.codec.Pack(nil, plain, []byte(j.Run)), 0
		}
	}
	var last any
	if j.Last > 0 {
		last = j.Last
	}
	if n == 0 {
		entry = 0
	}
	_, _, err = a.c.exec("INSERT INTO journal (run, last_seq, entry, entries, body) VALUES (?, ?, ?, ?, ?)",
		r.key, last, key(entry), n, body)
	if err == nil && j.Last > 0 {
		r.lastSeq = j.Last
	}
	return err
}

func (a *applier) usage(t int64, u *store.Usage) error {
	var session, run int64
	if u.RunID != "" {
		r, err := a.runRow(t, u.RunID)
		if err != nil {
			return err
		}
		run, session = r.key, r.session
	}
	if u.SessionID != "" {
		s, err := a.session(t, u.SessionID)
		if err != nil {
			return err
		}
		session = s.key
	}
	name := modelName{u.Provider, u.Model}
	model, ok := a.models[name]
	if !ok {
		found, err := a.c.get("SELECT key FROM models WHERE provider = ? AND model = ?", []any{&model}, u.Provider, u.Model)
		if err != nil {
			return err
		}
		if !found {
			if _, model, err = a.c.exec("INSERT INTO models (provider, model) VALUES (?, ?)", u.Provider, u.Model); err != nil {
				return err
			}
		}
		remember(a.models, name, model)
	}
	_, _, err := a.c.exec(`INSERT INTO usage (tenant, session, run, model, minute, calls, input, output, cache_read, cache_write, cost, user)
		VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET calls = calls + 1, input = input + excluded.input, output = output + excluded.output,
			cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write, cost = cost + excluded.cost`,
		t, session, run, model, minute(u.Time), u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost, text(u.User))
	return err
}
