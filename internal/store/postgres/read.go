package postgres

import (
	"context"
	"errors"
	"fmt"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// read runs f, again if the way to the server breaks: f makes its answer anew each time.
func (s *Store) read(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.active.Done()
	err := s.retrying(ctx).do(f)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case code(err) == codeNotText || code(err) == codeUntranslated:
		// No id can be such a text.
		return form.Refuse(store.ErrNotFound, "an id that is no text")
	}
	return s.target.wrap("postgres", err)
}

// one reads the first row; ok is whether there is one.
func (s *Store) one(ctx context.Context, sql string, each func(row), args ...any) (ok bool, err error) {
	err = s.read(ctx, func() (err error) {
		ok, err = get(ctx, s.pool, sql, each, args...)
		return err
	})
	return ok, err
}

// list reads all rows.
func list[T any](ctx context.Context, s *Store, sql string, of func(row) T, args ...any) ([]T, error) {
	var out []T
	err := s.read(ctx, func() error {
		out = nil
		return query(ctx, s.pool, sql, func(r row) error {
			out = append(out, of(r))
			return nil
		}, args...)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// exists says that there is no such session or run if there is none: an empty list is
// not an answer about what is unknown.
func (s *Store) exists(ctx context.Context, table, what, tenant, id string) error {
	ok, err := s.one(ctx, "SELECT 1 FROM "+table+" WHERE tenant = (SELECT key FROM tenants WHERE id = $1) AND id = $2", func(row) {}, tenant, id)
	if err == nil && !ok {
		err = form.Refuse(store.ErrNotFound, "%s %s", what, id)
	}
	return err
}

// damaged names what could not be read, where the value itself is at fault.
func (s *Store) damaged(what string, err error) error {
	if !errors.Is(err, form.ErrDamaged) {
		return err
	}
	return &fault.Error{Op: "postgres", Kind: fault.Internal, Err: fmt.Errorf("%s: %s: %w", s.target.name, what, err),
		Hint: "The database is damaged: restore it from a backup."}
}

func (s *Store) unpacked(v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return s.codec.Unpack(v)
}

func limitOr(limit, standard int) int {
	if limit <= 0 {
		return standard
	}
	return limit
}

// where is a condition that grows, with its arguments.
type where struct {
	sql  string
	args []any
}

// and adds a condition about one more argument, whose place is written as %d.
func (w *where) and(format string, arg any) {
	w.args = append(w.args, arg)
	w.sql += " AND " + fmt.Sprintf(format, len(w.args))
}

// limit adds the number of rows.
func (w *where) limit(order string, n int) string {
	w.args = append(w.args, n)
	return w.sql + fmt.Sprintf(" ORDER BY %s LIMIT $%d", order, len(w.args))
}
