package sqlite

import (
	"context"

	"agentd/internal/store"
)

// recentWhere leaves the sessions that changed lately; their index is by minute.
const recentWhere = " WHERE s.tenant = (SELECT key FROM tenants WHERE id = ?) AND s.ephemeral IN (0, 1) AND s.minute >= ?"

// Recent implements store.RunReader. A session changes with each run and each reply
// in it, so that those which changed lately are all that can have used something.
func (s *Store) Recent(ctx context.Context, tenant string, f store.RecentFilter) (runs, tokens int64, err error) {
	since := minute(f.Since)
	err = s.read(ctx, func(c *conn) error {
		sql, args := `SELECT count(*) FROM sessions s INDEXED BY sessions_recent CROSS JOIN runs r ON r.session = s.key`+recentWhere+
			" AND r.created >= ? AND r.parent_id IS NULL", []any{tenant, since, since * 60_000}
		if f.One {
			sql, args = sql+" AND r.user IS ?", append(args, text(f.User))
		}
		if _, err := c.get(sql, []any{&runs}, args...); err != nil {
			return err
		}
		sql, args = `SELECT coalesce(sum(u.input + u.output + u.cache_read + u.cache_write), 0)
			FROM sessions s INDEXED BY sessions_recent CROSS JOIN usage u ON u.tenant = s.tenant AND u.session = s.key`+recentWhere+
			" AND u.minute >= ?", []any{tenant, since, since}
		if f.One {
			sql, args = sql+" AND u.user IS ?", append(args, text(f.User))
		}
		_, err := c.get(sql, []any{&tokens}, args...)
		return err
	})
	return runs, tokens, err
}
