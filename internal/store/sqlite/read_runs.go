package sqlite

import (
	"context"
	"math"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

const runColumns = `SELECT r.key, r.id, s.id, r.status, r.epoch, r.seq, r.steps, r.created, r.started, r.ended,
	r.stop_reason, r.output_entry, r.root_id, r.parent_id, r.parent_call, r.profile, r.version, r.mode,
	r.idempotency_key, r.request_hash, r.error, r.usage, p.metadata`

const runTables = ` FROM runs r JOIN sessions s ON s.key = r.session LEFT JOIN run_specs p ON p.run = r.key `

func runOf(r row) *store.Run {
	x := &store.Run{ID: r.text(1), SessionID: r.text(2), Created: r.int(7),
		RootID: r.text(12), ParentID: r.text(13), ParentCall: r.text(14), Profile: r.text(15), Version: r.text(16), Mode: r.text(17),
		IdempotencyKey: r.text(18), RequestHash: r.text(19), Metadata: r.blob(22)}
	x.Status, x.Epoch, x.Seq, x.Steps = r.text(3), r.int(4), r.int(5), int(r.int(6))
	x.Started, x.Ended, x.StopReason, x.OutputEntry = r.int(8), r.int(9), r.text(10), r.text(11)
	x.Error, x.Usage = r.blob(20), r.blob(21)
	return x
}

// Run implements store.RunReader.
func (s *Store) Run(ctx context.Context, tenant, id string) (*store.Run, error) {
	var out *store.Run
	var state, spec []byte
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, runColumns+", r.state, p.spec"+runTables+"WHERE r.tenant = (SELECT key FROM tenants WHERE id = ?) AND r.id = ?", func(r row) error {
			out, state, spec = runOf(r), r.blob(23), r.blob(24)
			return nil
		}, tenant, id)
	})
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, refuse(store.ErrNotFound, "run %s", id)
	}
	if out.State, err = s.unpacked(state); err != nil {
		return nil, s.damaged("state of run "+id, err)
	}
	if out.Spec, err = s.unpacked(spec); err != nil {
		return nil, s.damaged("spec of run "+id, err)
	}
	return out, nil
}

// Load implements store.RunReader. No other process writes.
func (s *Store) Load(ctx context.Context, tenant, id string) (*store.Run, error) {
	return s.Run(ctx, tenant, id)
}

func (s *Store) unpacked(v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return s.codec.Unpack(v)
}

// Runs implements store.RunReader. Newest means committed last.
func (s *Store) Runs(ctx context.Context, tenant string, f store.RunFilter) ([]*store.Run, string, error) {
	limit := limitOr(f.Limit, 50)
	last := int64(math.MaxInt64)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.RunList, f.Cursor, &last); err != nil {
			return nil, "", err
		}
	}
	sql := runColumns + runTables + "WHERE r.tenant = (SELECT key FROM tenants WHERE id = ?) AND r.key < ?"
	args := []any{tenant, last}
	filter := func(cond, v string) {
		if v != "" {
			sql, args = sql+cond, append(args, v)
		}
	}
	if f.SessionID != "" {
		sql += " AND r.session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?)"
		args = append(args, tenant, f.SessionID)
	}
	filter(" AND r.root_id = ?", f.RootID)
	filter(" AND r.parent_id = ?", f.ParentID)
	filter(" AND r.status = ?", f.Status)
	filter(" AND r.idempotency_key = ?", f.IdempotencyKey)
	sql += " ORDER BY r.key DESC LIMIT ?"
	args = append(args, limit+1)

	var out []*store.Run
	var next string
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sql, func(r row) error {
			if len(out) == limit {
				next = form.Cursor(form.RunList, last)
				return nil
			}
			out = append(out, runOf(r))
			last = r.int(0)
			return nil
		}, args...)
	})
	if err != nil {
		return nil, "", err
	}
	return out, next, nil
}

// Unfinished implements store.RunReader. What it costs depends on the number of
// such runs alone.
func (s *Store) Unfinished(ctx context.Context) ([]store.RunRef, error) {
	var out []store.RunRef
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, `SELECT t.id, r.id, s.id, r.status,
				EXISTS (SELECT 1 FROM runs c WHERE c.tenant = r.tenant AND c.parent_id = r.id)
			FROM runs r INDEXED BY runs_unfinished JOIN sessions s ON s.key = r.session JOIN tenants t ON t.key = r.tenant
			WHERE r.status NOT IN ('completed', 'failed', 'cancelled') ORDER BY r.key`, func(r row) error {
			out = append(out, store.RunRef{Tenant: r.text(0), ID: r.text(1), SessionID: r.text(2), Status: r.text(3), Parent: r.int(4) != 0})
			return nil
		})
	})
	return out, err
}

// runKey finds a run or says that there is none.
func runKey(c *conn, tenant, id string) (int64, error) {
	var k int64
	ok, err := c.get("SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?", []any{&k}, tenant, id)
	if err == nil && !ok {
		err = refuse(store.ErrNotFound, "run %s", id)
	}
	return k, err
}

// Inputs implements store.RunReader.
func (s *Store) Inputs(ctx context.Context, tenant, runID string) ([]*store.Input, error) {
	var out []*store.Input
	err := s.read(ctx, func(c *conn) error {
		k, err := runKey(c, tenant, runID)
		if err != nil {
			return err
		}
		return c.query(ctx, "SELECT id, kind, created, body FROM inputs WHERE run = ? ORDER BY key", func(r row) error {
			out = append(out, &store.Input{RunID: runID, ID: r.text(0), Kind: r.text(1), Created: r.int(2), Body: r.blob(3)})
			return nil
		}, k)
	})
	return out, err
}

// Usage implements store.RunReader; sums are ordered by provider and model.
func (s *Store) Usage(ctx context.Context, tenant string, f store.UsageFilter) ([]*store.UsageTotal, error) {
	var out []*store.UsageTotal
	err := s.read(ctx, func(c *conn) error {
		var t, session, run int64
		ok, err := c.get("SELECT key FROM tenants WHERE id = ?", []any{&t}, tenant)
		if err != nil || !ok {
			return err
		}
		sql, args := `SELECT m.provider, m.model, sum(u.calls), sum(u.input), sum(u.output), sum(u.cache_read), sum(u.cache_write), sum(u.cost)
			FROM usage u JOIN models m ON m.key = u.model WHERE u.tenant = ?`, []any{t}
		if f.RunID != "" {
			ok, err := c.get("SELECT key, session FROM runs WHERE tenant = ? AND id = ?", []any{&run, &session}, t, f.RunID)
			if err != nil || !ok {
				return err
			}
			// Rows lie by session, then by run.
			sql, args = sql+" AND u.session = ? AND u.run = ?", append(args, session, run)
		}
		if f.SessionID != "" {
			ok, err := c.get("SELECT key FROM sessions WHERE tenant = ? AND id = ?", []any{&session}, t, f.SessionID)
			if err != nil || !ok {
				return err
			}
			sql, args = sql+" AND u.session = ?", append(args, session)
		}
		if f.From != 0 {
			sql, args = sql+" AND u.minute >= ?", append(args, minute(f.From))
		}
		if f.To != 0 {
			sql, args = sql+" AND u.minute < ?", append(args, minute(f.To+59_999))
		}
		return c.query(ctx, sql+" GROUP BY u.model ORDER BY m.provider, m.model", func(r row) error {
			out = append(out, &store.UsageTotal{Provider: r.text(0), Model: r.text(1), Calls: r.int(2),
				Input: r.int(3), Output: r.int(4), CacheRead: r.int(5), CacheWrite: r.int(6), Cost: r.int(7)})
			return nil
		}, args...)
	})
	return out, err
}
