package postgres

import (
	"context"

	"agentd/internal/store"
)

// Recent implements store.RunReader. A session changes with each run and each reply
// in it, so that those which changed lately are all that can have used something.
func (s *Store) Recent(ctx context.Context, tenant string, f store.RecentFilter) (runs, tokens int64, err error) {
	const lately = "s.tenant = (SELECT key FROM tenants WHERE id = $1) AND s.ephemeral IN (0, 1) AND s.minute >= $2::bigint"
	since := minute(f.Since)
	ofRuns, ofUsage := "", ""
	args := []any{tenant, since}
	if f.One {
		ofRuns, ofUsage = ` AND r."user" IS NOT DISTINCT FROM $3::bytea`, ` AND u."user" IS NOT DISTINCT FROM $3::bytea`
		args = append(args, raw(f.User))
	}
	_, err = s.one(ctx, `SELECT (SELECT count(*) FROM sessions s JOIN runs r ON r.session = s.key WHERE `+lately+` AND r.created >= $2 * 60000 AND r.parent_id IS NULL`+ofRuns+`),
		(SELECT coalesce(sum(u.input + u.output + u.cache_read + u.cache_write), 0)::bigint FROM sessions s JOIN usage u ON u.tenant = s.tenant AND u.session = s.key
			WHERE `+lately+` AND u.minute >= $2`+ofUsage+`)`, func(r row) { runs, tokens = r.Int(0), r.Int(1) }, args...)
	return runs, tokens, unknownIsNone(err)
}
