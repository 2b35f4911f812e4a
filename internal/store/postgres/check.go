package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"agentd/internal/store"
	"agentd/internal/store/check"
	"agentd/internal/store/form"
)

// Check implements store.Checker. It sees one state of the database; to repair, the
// store must have been opened Exclusive.
func (s *Store) Check(ctx context.Context, o store.CheckOptions) (*store.Report, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.active.Done()
	if o.Repair && (s.presence == nil || !s.presence.exclusive) {
		return nil, errors.New("a store is repaired by one who has it alone")
	}
	report := &store.Report{}
	c, err := s.target.connect(ctx) // one of its own: without a timeout of statements
	if err != nil {
		return nil, s.target.wrap("postgres.Check", err)
	}
	defer closeSoon(c)
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err == nil {
		if err = s.checkServer(ctx, tx, report); err == nil {
			var repairs []check.Repair
			repairs, err = check.Run(ctx, checked{s, tx}, o, report)
			if e := tx.Rollback(ctx); err == nil {
				err = e
			}
			if err == nil && o.Repair && len(repairs) > 0 {
				err = repair(ctx, c, report, repairs)
			}
		}
	}
	if err != nil {
		return nil, s.target.wrap("postgres.Check", err)
	}
	return report, nil
}

// repair does all repairs in one transaction.
func repair(ctx context.Context, c *pgx.Conn, report *store.Report, repairs []check.Repair) error {
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		for _, r := range repairs {
			if _, err := tx.Exec(ctx, numbered(r.SQL), typed(r.Args)...); err != nil {
				return fmt.Errorf("%s: %w", r.SQL, err)
			}
			report.Findings[r.Finding].Repaired = true
		}
		return nil
	})
}

// checkServer looks at settings that a server must not have for what this package
// promises.
func (s *Store) checkServer(ctx context.Context, q querier, report *store.Report) error {
	return query(ctx, q, "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'", func(r row) error {
		report.Findings = append(report.Findings, store.Finding{Check: "server", Severity: store.SeverityWarning, Where: s.target.name,
			What:   "the server runs with " + r.Text(0) + " = off: a crash of its machine can damage everything",
			Advice: "Set " + r.Text(0) + " = on in postgresql.conf."})
		return nil
	})
}

// checked is the database as the checks need it.
type checked struct {
	s  *Store
	tx pgx.Tx
}

func (d checked) Query(ctx context.Context, sql string, each func(check.Row) error, args ...any) error {
	var stop error
	err := query(ctx, d.tx, numbered(sql), func(r row) error {
		stop = each(r)
		return stop
	}, typed(args)...)
	if err == nil {
		err = stop // io.EOF is the check's own
	}
	return err
}

func (d checked) Journal(ctx context.Context, runID string, run, after int64, limit int, each func(key, lastSeq int64, content []byte) error) (int, error) {
	return d.s.journalRows(ctx, d.tx, runID, "WHERE j.run = $1 AND j.key > $2 ORDER BY j.key LIMIT $3", each, run, after, limit)
}

func (d checked) Failed(err error) bool {
	return !errors.Is(err, form.ErrDamaged) && (pgError(err) != nil || d.tx.Conn().IsClosed())
}

// numbered writes the marks of arguments the way of PostgreSQL.
func numbered(sql string) string {
	parts := strings.Split(sql, "?")
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(p)
	}
	return b.String()
}

// typed leaves arguments as they are but for those that have no column's type.
func typed(args []any) []any {
	for i, a := range args {
		if v, ok := a.(int); ok {
			args[i] = int64(v)
		}
	}
	return args
}
