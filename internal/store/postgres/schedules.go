package postgres

import (
	"context"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

func (s *Store) schedules(b *batch, c *change) {
	for _, x := range c.tx.NewSchedules {
		b.addUnique(taken("schedule %s, or one with its name, exists", x.ID), `INSERT INTO schedules (tenant, id, name, plan, paused, revision, created, updated) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			c.tenant, x.ID, x.Name, []byte(x.Plan), number(x.Paused), x.Revision, x.Created, x.Updated)
	}
	for _, x := range c.tx.Schedules {
		b.addUnique(taken("a schedule with the name of %s exists", x.ID), `WITH u AS (UPDATE schedules SET name = $3, plan = $4, paused = $5, revision = $6, updated = $7
				WHERE tenant = $1 AND id = $2 AND revision = $6 - 1 RETURNING 1)
			SELECT CASE WHEN EXISTS (SELECT 1 FROM u) THEN NULL WHEN EXISTS (SELECT 1 FROM schedules WHERE tenant = $1 AND id = $2) THEN agentd_refuse('AG409', 'schedule ' || $2 || ' was changed')
				ELSE agentd_refuse('AG404', 'schedule ' || $2) END`,
			c.tenant, x.ID, x.Name, []byte(x.Plan), number(x.Paused), x.Revision, x.Updated)
	}
	for _, id := range c.tx.DropSchedules {
		b.add(`WITH d AS (DELETE FROM schedules WHERE tenant = $1 AND id = $2 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM d) THEN agentd_refuse('AG404', 'schedule ' || $2) END`, c.tenant, id)
	}
}

const scheduleColumns = "SELECT s.key, t.id, s.id, s.name, s.plan, s.paused, s.revision, s.created, s.updated FROM schedules s JOIN tenants t ON t.key = s.tenant WHERE true"

func scheduleOf(r row) *store.Schedule {
	return &store.Schedule{Tenant: r.Text(1), ID: r.Text(2), Name: r.Text(3), Plan: r.Blob(4), Created: r.Int(7),
		ScheduleUpdate: store.ScheduleUpdate{Paused: r.Int(5) != 0, Revision: r.Int(6), Updated: r.Int(8)}}
}

// Schedule implements store.ScheduleReader.
func (s *Store) Schedule(ctx context.Context, tenant, id string) (*store.Schedule, error) {
	var out *store.Schedule
	ok, err := s.one(ctx, scheduleColumns+" AND t.id = $1 AND s.id = $2", func(r row) { out = scheduleOf(r) }, tenant, id)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "schedule %s", id)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Schedules implements store.ScheduleReader.
func (s *Store) Schedules(ctx context.Context, tenant string, f store.ScheduleFilter) ([]*store.Schedule, string, error) {
	limit, last := limitOr(f.Limit, 50), int64(0)
	if f.Cursor != "" {
		if err := form.PlaceOf(form.ScheduleList, f.Cursor, &last); err != nil {
			return nil, "", err
		}
	}
	w := &where{sql: scheduleColumns}
	w.and("s.key > $%d", last)
	if !f.AllTenants {
		w.and("s.tenant = (SELECT key FROM tenants WHERE id = $%d)", tenant)
	}
	type keyed struct {
		*store.Schedule
		key int64
	}
	rows, err := list(ctx, s, w.limit("s.key", limit+1), func(r row) keyed { return keyed{scheduleOf(r), r.Int(0)} }, w.args...)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = form.Cursor(form.ScheduleList, rows[limit-1].key)
	}
	var out []*store.Schedule
	for _, r := range rows {
		out = append(out, r.Schedule)
	}
	return out, next, nil
}

// LastKeyed implements store.ScheduleReader.
func (s *Store) LastKeyed(ctx context.Context, tenant, prefix string) (*store.Run, error) {
	var out *store.Run
	ok, err := s.one(ctx, runColumns+runTables+` AND r.key = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = $1)
		AND idempotency_key >= $2 AND idempotency_key < $3 ORDER BY idempotency_key DESC LIMIT 1)`, func(r row) { out = runOf(r) }, tenant, []byte(prefix), []byte(form.After(prefix)))
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "no run has a key that begins with %s", prefix)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
