package postgres

import (
	"context"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

func (s *Store) newRun(b *batch, c *change, r *store.Run) {
	why := func(ctx context.Context) error {
		if r.IdempotencyKey != "" {
			var exists *store.ExistsError
			if _, err := get(ctx, s.pool, "SELECT id, request_hash FROM runs WHERE tenant = $1 AND idempotency_key = $2", func(row row) {
				exists = &store.ExistsError{RunID: row.Text(0), SameRequest: row.Text(1) == r.RequestHash}
			}, c.tenant, raw(r.IdempotencyKey)); err != nil {
				return err
			}
			if exists != nil {
				return form.Refuse(exists, "idempotency key %q", r.IdempotencyKey)
			}
		}
		there, err := get(ctx, s.pool, "SELECT 1 FROM runs WHERE tenant = $1 AND id = $2", func(row) {}, c.tenant, r.ID)
		if err != nil {
			return err
		}
		if there {
			return form.Refuse(store.ErrConflict, "run %s exists", r.ID)
		}
		return s.busy(ctx, c.tenant, r.SessionID)
	}
	b.addUnique(why, `WITH r AS (INSERT INTO runs (tenant, session, id, status, epoch, seq, steps, created, started, ended,
				stop_reason, output_entry, root_id, parent_id, parent_call, profile, version, mode,
				idempotency_key, request_hash, error, usage, state)
			VALUES ($1, `+sessionKey+`, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23) RETURNING key)
		INSERT INTO run_specs (run, spec, metadata) SELECT key, $24, $25 FROM r WHERE $24::bytea IS NOT NULL OR $25::bytea IS NOT NULL`,
		c.tenant, r.SessionID, r.ID, r.Status, r.Epoch, r.Seq, r.Steps, r.Created, r.Started, r.Ended,
		raw(r.StopReason), text(r.OutputEntry), text(r.RootID), text(r.ParentID), raw(r.ParentCall),
		text(r.Profile), text(r.Version), text(r.Mode),
		raw(r.IdempotencyKey), text(r.RequestHash), blob(r.Error), blob(r.Usage), s.packed(r.State), s.packed(r.Spec), blob(r.Metadata))
}

// busy names the run that is in the way of another one of its session; nil if there is
// none any more.
func (s *Store) busy(ctx context.Context, tenant int64, session string) error {
	var id string
	ok, err := get(ctx, s.pool, `SELECT r.id FROM runs r JOIN sessions s ON s.key = r.session
		WHERE s.tenant = $1 AND s.id = $2 AND r.status IN ('running', 'paused_checkpoint')`, func(r row) { id = r.Text(0) }, tenant, session)
	if err == nil && ok {
		err = form.Refuse(store.ErrSessionBusy, "session %s, run %s", session, id)
	}
	return err
}

// busyOf is busy for the session of a run.
func (s *Store) busyOf(c *change, run string) func(context.Context) error {
	return func(ctx context.Context) error {
		session := ""
		if _, err := get(ctx, s.pool, "SELECT s.id FROM runs r JOIN sessions s ON s.key = r.session WHERE r.tenant = $1 AND r.id = $2",
			func(r row) { session = r.Text(0) }, c.tenant, run); err != nil {
			return err
		}
		return s.busy(ctx, c.tenant, session)
	}
}

const runChanges = `stop_reason = $3, epoch = $4, seq = $5, state = $6, output_entry = $7, error = $8, usage = $9, steps = $10, started = $11, ended = $12, status = $13`

func (s *Store) runChange(c *change, r *store.RunChange) []any {
	return []any{c.tenant, r.ID, raw(r.StopReason), r.Epoch, r.Seq, s.packed(r.State), text(r.OutputEntry), blob(r.Error), blob(r.Usage),
		r.Steps, r.Started, r.Ended, r.Status}
}

func (s *Store) changeRun(b *batch, c *change, r *store.RunChange) {
	b.addUnique(s.busyOf(c, r.ID), `WITH u AS (UPDATE runs SET `+runChanges+` WHERE tenant = $1 AND id = $2 RETURNING 1)
		SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG404', 'run ' || $2) END`, s.runChange(c, r)...)
}

// advance is changeRun and the fence in one: it locks the row, and names the change.
func (s *Store) advance(b *batch, c *change, r *store.RunChange) {
	var expects any
	if c.expects != (commitID{}) {
		expects = c.expects
	}
	b.addUnique(s.busyOf(c, r.ID), `WITH u AS (UPDATE runs SET `+runChanges+`, commit_id = $14
			WHERE tenant = $1 AND id = $2 AND epoch = $15 AND commit_id IS NOT DISTINCT FROM $16 RETURNING 1)
		SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG100', 'run ' || $2) END`,
		append(s.runChange(c, r), c.id, c.tx.Fences[0].Epoch, expects)...)
}

func (s *Store) inputs(b *batch, c *change) {
	for _, in := range c.tx.Inputs {
		b.addUnique(taken("input %s of run %s exists", in.ID, in.RunID), `INSERT INTO inputs (run, id, kind, created, body) VALUES (`+runKey+`, $3, $4, $5, $6)`,
			c.tenant, in.RunID, in.ID, in.Kind, in.Created, blob(in.Body))
	}
	for _, in := range c.tx.DropInputs {
		// If somebody has taken it already, to go on would take it twice.
		b.add(`WITH d AS (DELETE FROM inputs WHERE run = `+runKey+` AND id = $3 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM d) THEN agentd_refuse('AG404', 'input ' || $3 || ' of run ' || $2) END`, c.tenant, in.RunID, in.ID)
	}
}

func (s *Store) interrupts(b *batch, c *change) {
	for _, i := range c.tx.NewInterrupts {
		b.addUnique(taken("interrupt %s exists", i.ID), `INSERT INTO interrupts (tenant, run, id, root_id, call_id, kind, prompt, schema, tool_call,
				created, expires, status, decision, answer, reason, answered_by, answered)
			VALUES ($1, CASE WHEN $3::text IS NULL OR EXISTS (SELECT 1 FROM runs r JOIN sessions s ON s.key = r.session WHERE r.tenant = $1 AND r.id = $2 AND s.id = $3)
					THEN `+runKey+`
				WHEN EXISTS (SELECT 1 FROM runs WHERE tenant = $1 AND id = $2) AND EXISTS (SELECT 1 FROM sessions WHERE tenant = $1 AND id = $3)
					THEN agentd_refuse('AG400', 'interrupt ' || $4 || ': run ' || $2 || ' is not of session ' || $3)
				ELSE agentd_refuse('AG404', 'run ' || $2 || ' or session ' || $3) END,
				$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
			c.tenant, i.RunID, text(i.SessionID), i.ID, text(i.RootID), raw(i.CallID), i.Kind, raw(i.Prompt), blob(i.Schema), blob(i.ToolCall),
			i.Created, i.Expires, i.Status, raw(i.Decision), blob(i.Answer), raw(i.Reason), raw(i.AnsweredBy), i.Answered)
	}
	for _, a := range c.tx.Answers {
		b.add(`WITH u AS (UPDATE interrupts SET status = $3, decision = $4, answer = $5, reason = $6, answered_by = $7, answered = $8
				WHERE tenant = $1 AND id = $2 AND status = 'open' RETURNING 1)
			SELECT CASE WHEN EXISTS (SELECT 1 FROM u) THEN NULL
				WHEN EXISTS (SELECT 1 FROM interrupts WHERE tenant = $1 AND id = $2) THEN agentd_refuse('AG409', 'interrupt ' || $2 || ' is not open')
				ELSE agentd_refuse('AG404', 'interrupt ' || $2) END`,
			c.tenant, a.ID, a.Status, raw(a.Decision), blob(a.Answer), raw(a.Reason), raw(a.AnsweredBy), a.Answered)
	}
}
