package postgres

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// row is one row of a result, as it came. It is valid until the next one; what its
// methods give may be kept.
type row struct {
	values [][]byte
	fields []pgconn.FieldDescription
}

// Int reads a number or a boolean; 0 for NULL.
func (r row) Int(i int) int64 {
	v := r.values[i]
	if r.fields[i].Format == pgx.TextFormatCode && len(v) > 0 {
		if s := string(v); s == "t" {
			return 1
		} else if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		return 0
	}
	switch len(v) {
	case 1:
		return int64(v[0])
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))) //nolint:gosec // its bits
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))) //nolint:gosec // its bits
	case 8:
		return int64(binary.BigEndian.Uint64(v)) //nolint:gosec // its bits
	}
	return 0
}

// Blob reads bytes; nil for NULL and for none.
func (r row) Blob(i int) []byte {
	v := r.values[i]
	if len(v) == 0 {
		return nil
	}
	if r.fields[i].Format == pgx.TextFormatCode && r.fields[i].DataTypeOID == pgtype.ByteaOID {
		b, err := hex.DecodeString(strings.TrimPrefix(string(v), `\x`))
		if err != nil {
			return nil
		}
		return b
	}
	return append([]byte(nil), v...)
}

// Text reads a text, whether its column is text or bytea; "" for NULL.
func (r row) Text(i int) string {
	if r.fields[i].Format == pgx.TextFormatCode && r.fields[i].DataTypeOID == pgtype.ByteaOID {
		return string(r.Blob(i))
	}
	return string(r.values[i])
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// query calls each for every row. io.EOF from each ends it without an error.
func query(ctx context.Context, q querier, sql string, each func(row) error, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := row{fields: rows.FieldDescriptions()}
	for rows.Next() {
		r.values = rows.RawValues()
		if err := each(r); err != nil {
			rows.Close()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}

// get reads the first row of a query; ok is whether there is one.
func get(ctx context.Context, q querier, sql string, each func(row), args ...any) (ok bool, err error) {
	err = query(ctx, q, sql, func(r row) error {
		ok = true
		each(r)
		return io.EOF
	}, args...)
	return ok, err
}

// text is NULL for "", for columns of ids and words.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// raw is NULL for "", for columns of any bytes.
func raw(s string) any {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// bytes is s for a column of any bytes that is never NULL.
func bytes(s string) []byte { return append([]byte{}, s...) }

// blob is NULL for no bytes.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// number is 1 for true.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
