package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// conn is one connection with its prepared statements. It is used by one
// goroutine at a time. It sits on the driver and not on database/sql, whose
// pool, locks and copies cost more than most of the statements here.
type conn struct {
	c     driver.Conn
	stmts map[string]*stmt
	args  []driver.NamedValue
	dest  []driver.Value
	execs int // calls of exec so far
}

type stmt struct {
	driver.Stmt
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
}

// dsn names the database at path for the driver. Extra are URI parameters of
// SQLite itself.
func dsn(path string, extra url.Values) string {
	if path == Memory {
		return "file::memory:"
	}
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // C:/x
	}
	u := url.URL{Scheme: "file", Path: p, OmitHost: true, RawQuery: extra.Encode()}
	return u.String()
}

func openConn(dsn string) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: map[string]*stmt{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

func (c *conn) prepare(sql string) (*stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	d, err := c.c.Prepare(sql)
	if err != nil {
		return nil, err
	}
	s := &stmt{Stmt: d}
	var ok1, ok2 bool
	s.exec, ok1 = d.(driver.StmtExecContext)
	s.query, ok2 = d.(driver.StmtQueryContext)
	if !ok1 || !ok2 {
		return nil, errors.New("the SQLite driver lacks StmtExecContext or StmtQueryContext")
	}
	c.stmts[sql] = s
	return s, nil
}

// bind makes the driver's form of args: int64, string, []byte or nil.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int:
			a = int64(v)
		case bool:
			a = int64(0)
			if v {
				a = int64(1)
			}
		case json.RawMessage:
			a = blob(v)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement and gives the number of rows it changed and the key of
// the row it inserted. Statements never take the caller's context: with one the
// driver starts a goroutine per statement, and they are all short.
func (c *conn) exec(sql string, args ...any) (changed, key int64, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, 0, err
	}
	c.execs++
	r, err := s.exec.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, 0, err
	}
	changed, _ = r.RowsAffected()
	key, _ = r.LastInsertId()
	return changed, key, nil
}

// script runs several statements without parameters.
func (c *conn) script(sql string) error {
	s, err := c.c.Prepare(sql)
	if err != nil {
		return err
	}
	e, ok := s.(driver.StmtExecContext)
	if !ok {
		return errors.New("the SQLite driver lacks StmtExecContext")
	}
	_, err = e.ExecContext(context.Background(), nil)
	return errors.Join(err, s.Close())
}

// query calls each for every row. The row is valid during the call; the strings
// and bytes in it may be kept.
func (c *conn) query(ctx context.Context, sql string, each func(row) error, args ...any) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	rows, err := s.query.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer rows.Close()
	n := len(rows.Columns())
	for len(c.dest) < n {
		c.dest = append(c.dest, nil)
	}
	dest := c.dest[:n]
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := rows.Next(dest); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := each(dest); err != nil {
			return err
		}
	}
}

// get reads the first row of a query into to, which are *int64, *int, *string
// or *[]byte. ok is false if there is none.
func (c *conn) get(sql string, to []any, args ...any) (ok bool, err error) {
	err = c.query(context.Background(), sql, func(r row) error {
		ok = true
		for i, p := range to {
			switch p := p.(type) {
			case *int64:
				*p = r.int(i)
			case *string:
				*p = r.text(i)
			default:
				return fmt.Errorf("cannot read a column into %T", p)
			}
		}
		return io.EOF
	}, args...)
	if err == io.EOF {
		err = nil
	}
	return ok, err
}

// row is one row of a result.
type row []driver.Value

func (r row) int(i int) int64 {
	v, _ := r[i].(int64)
	return v
}

func (r row) text(i int) string {
	v, _ := r[i].(string)
	return v
}

func (r row) blob(i int) []byte {
	v, _ := r[i].([]byte)
	return v
}

// text is NULL for "".
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// blob is NULL for no bytes.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// key is NULL for 0.
func key(k int64) any {
	if k == 0 {
		return nil
	}
	return k
}

// code is SQLite's extended result code, 0 for other errors.
// See https://www.sqlite.org/rescode.html.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// Primary result codes; see code.
const (
	codeBusy       = 5
	codeReadOnly   = 8
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeConstraint = 19
	codeNotADB     = 26
)

func primary(err error) int { return code(err) & 0xff }
