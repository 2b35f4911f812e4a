package sqlite

import (
	"context"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

func (a *applier) schedules(t int64, tx *store.Tx) error {
	for _, x := range tx.NewSchedules {
		_, _, err := a.c.exec("INSERT INTO schedules (tenant, id, name, plan, paused, revision, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			t, x.ID, x.Name, blob(x.Plan), x.Paused, x.Revision, x.Created, x.Updated)
		if primary(err) == codeConstraint {
			return refuse(store.ErrConflict, "schedule %s, or one with its name, exists", x.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, x := range tx.Schedules {
		n, _, err := a.c.exec("UPDATE schedules SET name = ?, plan = ?, paused = ?, revision = ?, updated = ? WHERE tenant = ? AND id = ? AND revision = ?",
			x.Name, blob(x.Plan), x.Paused, x.Revision, x.Updated, t, x.ID, x.Revision-1)
		switch {
		case primary(err) == codeConstraint:
			return refuse(store.ErrConflict, "a schedule with the name of %s exists", x.ID)
		case err != nil:
			return err
		case n > 0:
			continue
		}
		var key int64
		if ok, err := a.c.get("SELECT key FROM schedules WHERE tenant = ? AND id = ?", []any{&key}, t, x.ID); err != nil || ok {
			if err == nil {
				err = refuse(store.ErrConflict, "schedule %s was changed", x.ID)
			}
			return err
		}
		return refuse(store.ErrNotFound, "schedule %s", x.ID)
	}
	for _, id := range tx.DropSchedules {
		n, _, err := a.c.exec("DELETE FROM schedules WHERE tenant = ? AND id = ?", t, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return refuse(store.ErrNotFound, "schedule %s", id)
		}
	}
	return nil
}

const scheduleColumns = "SELECT s.key, t.id, s.id, s.name, s.plan, s.paused, s.revision, s.created, s.updated FROM schedules s JOIN tenants t ON t.key = s.tenant WHERE "

func scheduleOf(r row) *store.Schedule {
	return &store.Schedule{Tenant: r.text(1), ID: r.text(2), Name: r.text(3), Plan: r.blob(4), Created: r.int(7),
		ScheduleUpdate: store.ScheduleUpdate{Paused: r.int(5) != 0, Revision: r.int(6), Updated: r.int(8)}}
}

// Schedule implements store.ScheduleReader.
func (s *Store) Schedule(ctx context.Context, tenant, id string) (*store.Schedule, error) {
	var out *store.Schedule
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, scheduleColumns+"t.id = ? AND s.id = ?", func(r row) error {
			out = scheduleOf(r)
			return nil
		}, tenant, id)
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "schedule %s", id)
	}
	return out, err
}

// Schedules implements store.ScheduleReader.
func (s *Store) Schedules(ctx context.Context, tenant string, f store.ScheduleFilter) ([]*store.Schedule, string, error) {
	limit, last := limitOr(f.Limit, 50), int64(0)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.ScheduleList, f.Cursor, &last); err != nil {
			return nil, "", err
		}
	}
	sql, args := scheduleColumns+"s.key > ?", []any{last}
	if !f.AllTenants {
		sql, args = sql+" AND s.tenant = (SELECT key FROM tenants WHERE id = ?)", append(args, tenant)
	}
	var out []*store.Schedule
	cursor := ""
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, sql+" ORDER BY s.key LIMIT ?", func(r row) error {
			if len(out) == limit {
				cursor = form.Cursor(form.ScheduleList, last)
				return nil
			}
			out = append(out, scheduleOf(r))
			last = r.int(0)
			return nil
		}, append(args, limit+1)...)
	})
	if err != nil {
		return nil, "", err
	}
	return out, cursor, nil
}

// LastKeyed implements store.ScheduleReader.
func (s *Store) LastKeyed(ctx context.Context, tenant, prefix string) (*store.Run, error) {
	var out *store.Run
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, runColumns+runTables+`WHERE r.key = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = ?)
			AND idempotency_key >= ? AND idempotency_key < ? ORDER BY idempotency_key DESC LIMIT 1)`, func(r row) error {
			out = runOf(r)
			return nil
		}, tenant, prefix, form.After(prefix))
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "no run has a key that begins with %s", prefix)
	}
	return out, err
}
