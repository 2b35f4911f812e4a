package sqlite

import (
	"context"

	"agentd/internal/store"
)

func (a *applier) memories(t int64, tx *store.Tx) error {
	for _, m := range tx.Memories {
		var err error
		n := int64(1)
		if m.Revision == 1 {
			_, _, err = a.c.exec("INSERT INTO memories (tenant, name, text, revision, updated) VALUES (?, ?, ?, 1, ?)", t, m.Name, blob(m.Text), m.Updated)
		} else {
			n, _, err = a.c.exec("UPDATE memories SET text = ?, revision = ?, updated = ? WHERE tenant = ? AND name = ? AND revision = ?",
				blob(m.Text), m.Revision, m.Updated, t, m.Name, m.Revision-1)
		}
		if primary(err) == codeConstraint || err == nil && n == 0 {
			return refuse(store.ErrConflict, "the memory %q was changed", m.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Memory implements store.MemoryReader.
func (s *Store) Memory(ctx context.Context, tenant, name string) (*store.Memory, error) {
	var out *store.Memory
	err := s.read(ctx, func(c *conn) error {
		return c.query(ctx, "SELECT m.text, m.revision, m.updated FROM memories m JOIN tenants t ON t.key = m.tenant WHERE t.id = ? AND m.name = ?", func(r row) error {
			out = &store.Memory{Name: name, Text: r.blob(0), Revision: r.int(1), Updated: r.int(2)}
			return nil
		}, tenant, name)
	})
	if err == nil && out == nil {
		err = refuse(store.ErrNotFound, "memory %q", name)
	}
	return out, err
}
