package postgres

import (
	"context"
	"math"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

const runColumns = `SELECT r.key, r.id, s.id, r.status, r.epoch, r.seq, r.steps, r.created, r.started, r.ended,
	r.stop_reason, r.output_entry, r.root_id, r.parent_id, r.parent_call, r.profile, r.version, r.mode,
	r.idempotency_key, r.request_hash, r.error, r.usage, p.metadata`

const runTables = ` FROM runs r JOIN sessions s ON s.key = r.session LEFT JOIN run_specs p ON p.run = r.key WHERE r.tenant = (SELECT key FROM tenants WHERE id = $1)`

func runOf(r row) *store.Run {
	x := &store.Run{ID: r.Text(1), SessionID: r.Text(2), Created: r.Int(7),
		RootID: r.Text(12), ParentID: r.Text(13), ParentCall: r.Text(14), Profile: r.Text(15), Version: r.Text(16), Mode: r.Text(17),
		IdempotencyKey: r.Text(18), RequestHash: r.Text(19), Metadata: r.Blob(22)}
	x.Status, x.Epoch, x.Seq, x.Steps = r.Text(3), r.Int(4), r.Int(5), int(r.Int(6))
	x.Started, x.Ended, x.StopReason, x.OutputEntry = r.Int(8), r.Int(9), r.Text(10), r.Text(11)
	x.Error, x.Usage = r.Blob(20), r.Blob(21)
	return x
}

// Run implements store.RunReader.
func (s *Store) Run(ctx context.Context, tenant, id string) (*store.Run, error) {
	return s.run(ctx, tenant, id, func(int64, commitID) {})
}

// Load implements store.RunReader: it notes the last change of what it read.
func (s *Store) Load(ctx context.Context, tenant, id string) (*store.Run, error) {
	return s.run(ctx, tenant, id, func(tenant int64, last commitID) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.loaded) >= maxLoaded {
			clear(s.loaded)
		}
		s.loaded[runName{tenant, id}] = last
	})
}

func (s *Store) run(ctx context.Context, tenant, id string, note func(tenant int64, last commitID)) (*store.Run, error) {
	var out *store.Run
	var state, spec []byte
	ok, err := s.one(ctx, runColumns+", r.state, p.spec, r.tenant, uuid_send(r.commit_id)"+runTables+" AND r.id = $2", func(r row) {
		out, state, spec = runOf(r), r.Blob(23), r.Blob(24)
		var last commitID
		copy(last[:], r.Blob(26))
		note(r.Int(25), last)
	}, tenant, id)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "run %s", id)
	}
	if err != nil {
		return nil, err
	}
	if out.State, err = s.unpacked(state); err != nil {
		return nil, s.damaged("state of run "+id, err)
	}
	if out.Spec, err = s.unpacked(spec); err != nil {
		return nil, s.damaged("spec of run "+id, err)
	}
	return out, nil
}

// Runs implements store.RunReader. Newest means the one that was begun to be written
// last.
func (s *Store) Runs(ctx context.Context, tenant string, f store.RunFilter) ([]*store.Run, string, error) {
	limit, last := limitOr(f.Limit, 50), int64(math.MaxInt64)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.RunList, f.Cursor, &last); err != nil {
			return nil, "", err
		}
	}
	w := &where{sql: runColumns + runTables, args: []any{tenant}}
	w.and("r.key < $%d", last)
	for _, c := range []struct {
		sql string
		arg any
	}{
		{"r.session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $%d)", text(f.SessionID)},
		{"r.root_id = $%d", text(f.RootID)}, {"r.parent_id = $%d", text(f.ParentID)}, {"r.status = $%d", text(f.Status)},
		{"r.idempotency_key = $%d", raw(f.IdempotencyKey)},
	} {
		if c.arg != nil {
			w.and(c.sql, c.arg)
		}
	}
	type keyed struct {
		*store.Run
		key int64
	}
	rows, err := list(ctx, s, w.limit("r.key DESC", limit+1), func(r row) keyed { return keyed{runOf(r), r.Int(0)} }, w.args...)
	if err != nil {
		return nil, "", unknownIsNone(err)
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = form.Cursor(form.RunList, rows[limit-1].key)
	}
	var out []*store.Run
	for _, r := range rows {
		out = append(out, r.Run)
	}
	return out, next, nil
}

// Unfinished implements store.RunReader. What it costs depends on the number of
// such runs alone.
func (s *Store) Unfinished(ctx context.Context) ([]store.RunRef, error) {
	return list(ctx, s, `SELECT t.id, r.id, s.id, r.status,
			EXISTS (SELECT 1 FROM runs c WHERE c.tenant = r.tenant AND c.parent_id = r.id)
		FROM runs r JOIN sessions s ON s.key = r.session JOIN tenants t ON t.key = r.tenant
		WHERE r.status NOT IN ('completed', 'failed', 'cancelled') ORDER BY r.key`, func(r row) store.RunRef {
		return store.RunRef{Tenant: r.Text(0), ID: r.Text(1), SessionID: r.Text(2), Status: r.Text(3), Parent: r.Int(4) != 0}
	})
}

// Inputs implements store.RunReader.
func (s *Store) Inputs(ctx context.Context, tenant, runID string) ([]*store.Input, error) {
	out, err := list(ctx, s, `SELECT i.id, i.kind, i.created, i.body FROM inputs i JOIN runs r ON r.key = i.run
		WHERE r.tenant = (SELECT key FROM tenants WHERE id = $1) AND r.id = $2 ORDER BY i.key`, func(r row) *store.Input {
		return &store.Input{RunID: runID, ID: r.Text(0), Kind: r.Text(1), Created: r.Int(2), Body: r.Blob(3)}
	}, tenant, runID)
	if err == nil && len(out) == 0 {
		err = s.exists(ctx, "runs", "run", tenant, runID)
	}
	return out, err
}

// Usage implements store.RunReader; sums are ordered by provider and model.
func (s *Store) Usage(ctx context.Context, tenant string, f store.UsageFilter) ([]*store.UsageTotal, error) {
	w := &where{sql: `SELECT m.provider, m.model, sum(u.calls)::bigint, sum(u.input)::bigint, sum(u.output)::bigint, sum(u.cache_read)::bigint, sum(u.cache_write)::bigint, sum(u.cost)::bigint
		FROM usage u JOIN models m ON m.key = u.model WHERE u.tenant = (SELECT key FROM tenants WHERE id = $1)`, args: []any{tenant}}
	if f.RunID != "" {
		// Rows lie by session, then by run.
		w.and("(u.session, u.run) = (SELECT session, key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $%d)", f.RunID)
	}
	if f.SessionID != "" {
		w.and("u.session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $%d)", f.SessionID)
	}
	if f.From != 0 {
		w.and("u.minute >= $%d", minute(f.From))
	}
	if f.To != 0 {
		w.and("u.minute < $%d", minute(f.To+59_999))
	}
	out, err := list(ctx, s, w.sql+" GROUP BY m.key ORDER BY m.provider, m.model", func(r row) *store.UsageTotal {
		return &store.UsageTotal{Provider: r.Text(0), Model: r.Text(1), Calls: r.Int(2),
			Input: r.Int(3), Output: r.Int(4), CacheRead: r.Int(5), CacheWrite: r.Int(6), Cost: r.Int(7)}
	}, w.args...)
	return out, unknownIsNone(err)
}
