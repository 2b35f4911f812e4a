// Package transfer moves a whole store into an empty one, row by row, with its keys.
// Stores keep the same tables with the same columns, so what is packed stays packed and
// what refers to what needs no translation. The target has all of it or none.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentd/fault"
)

// Table is a table as it is copied.
type Table struct {
	Name    string
	Columns []string
	// Order are the columns that rows are read in the order of, the primary key.
	Order []string
	// Sequence is whether its keys are given out in order and never again.
	Sequence bool
}

// Living lists, for SQL, the tables that are about the processes which use a store: their
// leases, by that database's clock, and what counts as long as those do. They stay there.
const Living = "('nodes', 'claims', 'node_holds')"

// Where is the condition of the rows of a table that are copied, or "". Of mail that is
// what tells a run to look at its children; who waits for an answer to other mail is gone,
// and it must not be applied long after he gave up.
func Where(table string) string {
	if table == "mail" {
		return " WHERE applied = 0 AND body IS NULL"
	}
	return ""
}

// Value is an int64, a string, a []byte or nil. Text may be either of string and
// []byte: who writes it knows what its column takes.
type Value = any

// Source is what is read. It sees one state of the store.
type Source interface {
	// Version is that of its schema.
	Version(ctx context.Context) (int, error)
	// Tables lists those that hold what is stored.
	Tables(ctx context.Context) ([]Table, error)
	// Rows calls each for every row. The values may be kept.
	Rows(ctx context.Context, t Table, each func([]Value) error) error
	// Last is the highest key that a table ever gave out.
	Last(ctx context.Context, t Table) (int64, error)
}

// Target is what is written. Nothing of it is there for anybody before Commit.
type Target interface {
	Source
	// Insert writes what rows gives.
	Insert(ctx context.Context, t Table, rows func(yield func([]Value) error) error) error
	// GoOnAfter has the next key of a table be above last.
	GoOnAfter(ctx context.Context, t Table, last int64) error
	Count(ctx context.Context, t Table) (int64, error)
	Commit(ctx context.Context) error
}

// Copied is what was copied of a table.
type Copied struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// Copy copies everything. progress, if it is not nil, is told of every table that is
// done. The counts are those of the target.
func Copy(ctx context.Context, from Source, to Target, progress func(Copied)) ([]Copied, error) {
	tables, err := matching(ctx, from, to)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		n, err := to.Count(ctx, t)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			return nil, &fault.Error{Op: "store copy", Kind: fault.Conflict, Err: fmt.Errorf("the target is not empty: its table %s has %d rows", t.Name, n),
				Hint: "Copy into a folder, database or schema (?search_path=NAME) that has never been used."}
		}
	}
	var out []Copied
	for _, t := range tables {
		read := int64(0)
		err := to.Insert(ctx, t, func(yield func([]Value) error) error {
			return from.Rows(ctx, t, func(row []Value) error {
				read++
				return yield(row)
			})
		})
		if err != nil {
			return nil, fmt.Errorf("table %s, row %d: %w", t.Name, read, err)
		}
		last := int64(0)
		if t.Sequence {
			if last, err = from.Last(ctx, t); err == nil {
				err = to.GoOnAfter(ctx, t, last)
			}
			if err != nil {
				return nil, fmt.Errorf("table %s: %w", t.Name, err)
			}
		}
		written, err := to.Count(ctx, t)
		if err != nil {
			return nil, err
		}
		if written != read {
			return nil, fmt.Errorf("table %s: %d rows were read and %d are there", t.Name, read, written)
		}
		out = append(out, Copied{t.Name, written})
		if progress != nil {
			progress(out[len(out)-1])
		}
	}
	return out, to.Commit(ctx)
}

// matching are the tables of both, which must be the same.
func matching(ctx context.Context, from Source, to Target) ([]Table, error) {
	v1, err1 := from.Version(ctx)
	v2, err2 := to.Version(ctx)
	a, err3 := from.Tables(ctx)
	b, err4 := to.Tables(ctx)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if v1 != v2 {
		return nil, fmt.Errorf("the stores have schema versions %d and %d", v1, v2)
	}
	columns := func(ts []Table) map[string]string {
		m := map[string]string{}
		for _, t := range ts {
			m[t.Name] = strings.Join(slices.Sorted(slices.Values(t.Columns)), " ")
		}
		return m
	}
	if x, y := columns(a), columns(b); !maps.Equal(x, y) {
		for name, c := range x {
			if y[name] != c {
				return nil, fmt.Errorf("table %s has columns %q here and %q there", name, c, y[name])
			}
		}
		return nil, fmt.Errorf("the stores have %d and %d tables", len(x), len(y))
	}
	// The target says which of them go on counting; the order of columns is the source's.
	for i := range a {
		for j := range b {
			if b[j].Name == a[i].Name {
				a[i].Sequence = a[i].Sequence || b[j].Sequence
			}
		}
	}
	return a, nil
}
