package postgres

import (
	"context"

	"agentd/internal/store"
	"agentd/internal/store/form"
)

func (s *Store) memories(b *batch, c *change) {
	for _, m := range c.tx.Memories {
		if m.Revision == 1 {
			b.addUnique(taken("the memory %q was changed", m.Name), "INSERT INTO memories (tenant, name, text, revision, updated) VALUES ($1, $2, $3, 1, $4)",
				c.tenant, []byte(m.Name), blob(m.Text), m.Updated)
			continue
		}
		b.add(`WITH u AS (UPDATE memories SET text = $3, revision = $4, updated = $5 WHERE tenant = $1 AND name = $2 AND revision = $4 - 1 RETURNING 1)
			SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM u) THEN agentd_refuse('AG409', 'the memory was changed') END`,
			c.tenant, []byte(m.Name), blob(m.Text), m.Revision, m.Updated)
	}
}

// Memory implements store.MemoryReader.
func (s *Store) Memory(ctx context.Context, tenant, name string) (*store.Memory, error) {
	var out *store.Memory
	ok, err := s.one(ctx, "SELECT m.text, m.revision, m.updated FROM memories m JOIN tenants t ON t.key = m.tenant WHERE t.id = $1 AND m.name = $2", func(r row) {
		out = &store.Memory{Name: name, Text: r.Blob(0), Revision: r.Int(1), Updated: r.Int(2)}
	}, tenant, []byte(name))
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "memory %q", name)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
