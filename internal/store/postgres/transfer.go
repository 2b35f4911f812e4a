package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"agentd/internal/store/transfer"
)

// own are the tables that are about this database and not about what is stored.
const own = "('schema_version', 'commits')"

// Transfer calls f with the database as the source and target of a copy, in one
// transaction, which f's Commit ends. It sees one state of the database.
func (s *Store) Transfer(ctx context.Context, f func(transfer.Target) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.active.Done()
	c, err := s.target.connect(ctx)
	if err != nil {
		return s.target.wrap("postgres.Transfer", err)
	}
	defer closeSoon(c)
	mode := pgx.ReadWrite
	if s.opts.ReadOnly {
		mode = pgx.ReadOnly
	}
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: mode})
	if err == nil {
		err = f(&copied{s: s, tx: tx})
		_ = tx.Rollback(context.WithoutCancel(ctx)) // what is committed stays so
	}
	return s.target.wrap("postgres.Transfer", err)
}

// copied is the database as a copy needs it.
type copied struct {
	s  *Store
	tx pgx.Tx
}

func (d *copied) Version(ctx context.Context) (int, error) { return d.s.target.version(ctx, d.tx) }

// Tables leaves out the columns by which this store recognises its own changes.
func (d *copied) Tables(ctx context.Context) ([]transfer.Table, error) {
	var out []transfer.Table
	err := query(ctx, d.tx, `SELECT c.relname, a.attname, a.attidentity <> '' FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
		AND c.relname NOT IN `+own+` AND c.relname NOT IN `+transfer.Living+` AND a.attname <> 'commit_id' ORDER BY c.relname COLLATE "C", a.attnum`, func(r row) error {
		if len(out) == 0 || out[len(out)-1].Name != r.Text(0) {
			out = append(out, transfer.Table{Name: r.Text(0)})
		}
		t := &out[len(out)-1]
		t.Columns = append(t.Columns, r.Text(1))
		if r.Int(2) != 0 {
			t.Sequence = true
		}
		return nil
	}, pgx.Identifier{d.s.target.schema}.Sanitize())
	if err != nil {
		return nil, err
	}
	for i := range out {
		t := &out[i]
		if err := query(ctx, d.tx, `SELECT a.attname FROM pg_index i JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k (num, place) ON true
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num WHERE i.indrelid = $1::text::regclass AND i.indisprimary ORDER BY k.place`, func(r row) error {
			t.Order = append(t.Order, r.Text(0))
			return nil
		}, pgx.Identifier{t.Name}.Sanitize()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *copied) Rows(ctx context.Context, t transfer.Table, each func([]transfer.Value) error) error {
	sql := "SELECT " + names(t.Columns) + " FROM " + names([]string{t.Name}) + transfer.Where(t.Name)
	if len(t.Order) > 0 {
		sql += " ORDER BY " + names(t.Order)
	}
	return query(ctx, d.tx, sql, func(r row) error {
		values := make([]transfer.Value, len(t.Columns))
		for i := range values {
			switch {
			case r.values[i] == nil:
			case r.fields[i].DataTypeOID == pgtype.Int8OID:
				values[i] = r.Int(i)
			case r.fields[i].DataTypeOID == pgtype.ByteaOID:
				values[i] = append([]byte{}, r.Blob(i)...)
			default:
				values[i] = r.Text(i)
			}
		}
		return each(values)
	})
}

// Insert streams rows to the server. Texts become bytes where this store keeps them so.
func (d *copied) Insert(ctx context.Context, t transfer.Table, rows func(func([]transfer.Value) error) error) error {
	raw := map[string]bool{}
	if err := query(ctx, d.tx, "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND atttypid = 'bytea'::regtype", func(r row) error {
		raw[r.Text(0)] = true
		return nil
	}, pgx.Identifier{t.Name}.Sanitize()); err != nil {
		return err
	}
	stopped := errors.New("the server takes no more")
	source := &pulled{}
	var stop func()
	source.next, stop = iter.Pull(func(yield func([]any) bool) {
		source.err = rows(func(values []transfer.Value) error {
			for i, v := range values {
				if text, ok := v.(string); ok && raw[t.Columns[i]] {
					values[i] = []byte(text)
				}
			}
			if !yield(values) {
				return stopped
			}
			return nil
		})
	})
	_, err := d.tx.CopyFrom(ctx, pgx.Identifier{t.Name}, t.Columns, source)
	stop()
	if err == nil && !errors.Is(source.err, stopped) {
		err = source.err
	}
	return err
}

// pulled gives rows to a COPY.
type pulled struct {
	next func() ([]any, bool)
	row  []any
	err  error
}

func (p *pulled) Next() (ok bool)        { p.row, ok = p.next(); return ok }
func (p *pulled) Values() ([]any, error) { return p.row, nil }
func (p *pulled) Err() error             { return p.err }

func (d *copied) sequence(ctx context.Context, t transfer.Table) (name string, err error) {
	_, err = get(ctx, d.tx, "SELECT pg_get_serial_sequence($1, $2)", func(r row) { name = r.Text(0) }, names([]string{t.Name}), t.Order[0])
	if err == nil && name == "" {
		err = io.ErrUnexpectedEOF
	}
	return name, err
}

func (d *copied) Last(ctx context.Context, t transfer.Table) (last int64, err error) {
	name, err := d.sequence(ctx, t)
	if err != nil {
		return 0, fmt.Errorf("its sequence: %w", err)
	}
	_, err = get(ctx, d.tx, "SELECT greatest((SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM "+name+"), (SELECT max("+names(t.Order[:1])+") FROM "+names([]string{t.Name})+"))",
		func(r row) { last = r.Int(0) })
	return last, err
}

func (d *copied) GoOnAfter(ctx context.Context, t transfer.Table, last int64) error {
	if last == 0 {
		return nil
	}
	name, err := d.sequence(ctx, t)
	if err == nil {
		_, err = get(ctx, d.tx, "SELECT setval($1::text::regclass, $2)", func(row) {}, name, last)
	}
	return err
}

func (d *copied) Count(ctx context.Context, t transfer.Table) (n int64, err error) {
	_, err = get(ctx, d.tx, "SELECT count(*) FROM "+names([]string{t.Name}), func(r row) { n = r.Int(0) })
	return n, err
}

func (d *copied) Commit(ctx context.Context) error { return d.tx.Commit(ctx) }

// names lists names of columns, or of a table.
func names(list []string) string {
	s := ""
	for i, n := range list {
		if i > 0 {
			s += ", "
		}
		s += pgx.Identifier{n}.Sanitize()
	}
	return s
}
