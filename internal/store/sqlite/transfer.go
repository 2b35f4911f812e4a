package sqlite

import (
	"context"
	"strings"

	"agentd/internal/store/transfer"
)

// Transfer calls f with the file as the source and target of a copy. A store that was
// opened for writing is written in one transaction, which f's Commit ends; nobody else
// may use the store meanwhile.
func (s *Store) Transfer(ctx context.Context, f func(transfer.Target) error) error {
	if s.writer == nil {
		return s.read(ctx, func(c *conn) error { return f(&copied{s: s, c: c}) })
	}
	s.memoryMu.Lock()
	defer s.memoryMu.Unlock()
	if _, _, err := s.writer.exec("BEGIN IMMEDIATE"); err != nil {
		return s.readError(err)
	}
	d := &copied{s: s, c: s.writer}
	err := f(d)
	if !d.done {
		_, _, _ = s.writer.exec("ROLLBACK")
	}
	s.applier.forget()
	return s.readError(err)
}

// copied is the file as a copy needs it.
type copied struct {
	s    *Store
	c    *conn
	done bool
}

func (d *copied) Version(context.Context) (int, error) { return schemaVersion(d.c) }

func (d *copied) Tables(ctx context.Context) ([]transfer.Table, error) {
	var out []transfer.Table
	if err := d.c.query(ctx, `SELECT name, sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema
		WHERE type = 'table' AND name <> 'schema_version' AND name NOT LIKE 'sqlite_%' AND name NOT IN `+transfer.Living+` ORDER BY name`, func(r row) error {
		out = append(out, transfer.Table{Name: r.text(0), Sequence: r.int(1) != 0})
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range out {
		t := &out[i]
		order := map[int64]string{}
		if err := d.c.query(ctx, "SELECT name, pk FROM pragma_table_info(?)", func(r row) error {
			t.Columns = append(t.Columns, r.text(0))
			if pk := r.int(1); pk > 0 {
				order[pk] = r.text(0)
			}
			return nil
		}, t.Name); err != nil {
			return nil, err
		}
		for n := int64(1); order[n] != ""; n++ {
			t.Order = append(t.Order, order[n])
		}
	}
	return out, nil
}

func (d *copied) Rows(ctx context.Context, t transfer.Table, each func([]transfer.Value) error) error {
	sql := "SELECT " + quoted(t.Columns) + " FROM " + quoted([]string{t.Name}) + transfer.Where(t.Name)
	if len(t.Order) > 0 {
		sql += " ORDER BY " + quoted(t.Order)
	}
	return d.c.query(ctx, sql, func(r row) error {
		values := make([]transfer.Value, len(r))
		for i := range r {
			values[i] = r[i]
		}
		return each(values)
	})
}

// Insert gives texts the type of their column: another store may keep them as bytes.
func (d *copied) Insert(ctx context.Context, t transfer.Table, rows func(func([]transfer.Value) error) error) error {
	texts := map[string]bool{}
	if err := d.c.query(ctx, "SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'", func(r row) error {
		texts[r.text(0)] = true
		return nil
	}, t.Name); err != nil {
		return err
	}
	sql := "INSERT INTO " + quoted([]string{t.Name}) + " (" + quoted(t.Columns) + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(t.Columns)), ", ") + ")"
	return rows(func(values []transfer.Value) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, v := range values {
			if b, ok := v.([]byte); ok && texts[t.Columns[i]] {
				values[i] = string(b)
			}
		}
		_, _, err := d.c.exec(sql, values...)
		return err
	})
}

func (d *copied) Last(_ context.Context, t transfer.Table) (last int64, err error) {
	key := quoted(t.Order[:1])
	if _, err = d.c.get("SELECT coalesce(max("+key+"), 0) FROM "+quoted([]string{t.Name}), []any{&last}); err != nil {
		return 0, err
	}
	var given int64
	_, err = d.c.get("SELECT seq FROM sqlite_sequence WHERE name = ?", []any{&given}, t.Name)
	return max(last, given), err
}

func (d *copied) GoOnAfter(_ context.Context, t transfer.Table, last int64) error {
	var counts int64
	if _, err := d.c.get("SELECT count(*) FROM sqlite_schema WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'", []any{&counts}, t.Name); err != nil || counts == 0 {
		return err // the next key is the one above the highest
	}
	n, _, err := d.c.exec("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", last, t.Name)
	if err == nil && n == 0 {
		_, _, err = d.c.exec("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", t.Name, last)
	}
	return err
}

func (d *copied) Count(_ context.Context, t transfer.Table) (n int64, err error) {
	_, err = d.c.get("SELECT count(*) FROM "+quoted([]string{t.Name}), []any{&n})
	return n, err
}

func (d *copied) Commit(context.Context) error {
	_, _, err := d.c.exec("COMMIT")
	d.done = err == nil
	return err
}

// quoted lists names of this package's schema.
func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }
