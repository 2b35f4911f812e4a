package sqlite

import (
	"context"
	"errors"
	"fmt"

	"agentd/internal/store"
	"agentd/internal/store/check"
)

// Check implements store.Checker. It needs the store for itself if it repairs;
// without that it sees one state of it.
func (s *Store) Check(ctx context.Context, o store.CheckOptions) (*store.Report, error) {
	report := &store.Report{}
	var repairs []check.Repair
	err := s.read(ctx, func(c *conn) error {
		ok, err := s.checkFile(ctx, c, report)
		if err == nil && ok {
			repairs, err = check.Run(ctx, checked{s, c}, o, report)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.Repair && len(repairs) > 0 {
		if err := s.repair(report, repairs); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// repair does all repairs in one transaction.
func (s *Store) repair(report *store.Report, repairs []check.Repair) (err error) {
	if s.writer == nil {
		return errors.New("the store was opened for reading alone")
	}
	s.memoryMu.Lock()
	defer s.memoryMu.Unlock()
	if _, _, err := s.writer.exec("BEGIN IMMEDIATE"); err != nil {
		return s.readError(err)
	}
	defer func() {
		if err != nil {
			_, _, e := s.writer.exec("ROLLBACK")
			err = errors.Join(s.readError(err), e)
		}
	}()
	for _, r := range repairs {
		if _, _, err := s.writer.exec(r.SQL, r.Args...); err != nil {
			return fmt.Errorf("%s: %w", r.SQL, err)
		}
		report.Findings[r.Finding].Repaired = true
	}
	_, _, err = s.writer.exec("COMMIT")
	return err
}

// checkFile asks SQLite about its file. If pages are damaged the rows are not looked
// at: what they say would be noise.
func (s *Store) checkFile(ctx context.Context, c *conn, report *store.Report) (ok bool, err error) {
	ok = true
	found := func(what, advice string) {
		report.Findings = append(report.Findings, store.Finding{Check: "file", Severity: store.SeverityError, Where: s.path, What: what, Advice: advice})
	}
	err = c.query(ctx, "PRAGMA integrity_check(20)", func(r row) error {
		what := r.text(0)
		if what == "ok" {
			return nil
		}
		ok = false
		found("SQLite says: "+what, "Restore the file from a backup. Without one, the sqlite3 program's .recover saves what can be read.")
		return nil
	})
	if code(err) != 0 {
		found("SQLite can not read the file: "+err.Error(), "Restore the file from a backup.")
		return false, nil
	}
	return ok, err
}

// checked is the file as the checks need it.
type checked struct {
	s *Store
	c *conn
}

func (d checked) Query(ctx context.Context, sql string, each func(check.Row) error, args ...any) error {
	return d.c.query(ctx, sql, func(r row) error { return each(checkedRow{r}) }, args...)
}

func (d checked) Journal(ctx context.Context, runID string, run, after int64, limit int, each func(key, lastSeq int64, content []byte) error) (int, error) {
	return d.s.journalRows(ctx, d.c, runID, "WHERE run = ? AND +key > ? ORDER BY key LIMIT ?", each, run, after, limit)
}

func (d checked) Failed(err error) bool { return code(err) != 0 }

type checkedRow struct{ row }

func (r checkedRow) Int(i int) int64   { return r.int(i) }
func (r checkedRow) Text(i int) string { return r.text(i) }
func (r checkedRow) Blob(i int) []byte { return r.blob(i) }
