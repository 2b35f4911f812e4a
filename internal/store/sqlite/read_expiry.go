package sqlite

import (
	"context"

	"agentd/internal/store"
)

// Expiring implements store.InterruptReader. What it costs depends on the number of
// such interrupts alone.
func (s *Store) Expiring(ctx context.Context) ([]store.InterruptRef, error) {
	var out []store.InterruptRef
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, `SELECT t.id, r.id, i.id, i.expires FROM interrupts i INDEXED BY interrupts_expiring
			JOIN runs r ON r.key = i.run JOIN tenants t ON t.key = i.tenant
			WHERE i.status = 'open' AND i.expires > 0 ORDER BY i.expires, i.key`, func(r row) error {
			out = append(out, store.InterruptRef{Tenant: r.text(0), RunID: r.text(1), ID: r.text(2), Expires: r.int(3)})
			return nil
		})
	})
	return out, err
}
