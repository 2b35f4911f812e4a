package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/internal/store/sqlite"
	"agentd/internal/store/transfer"
)

// CopiedTable is how many rows of a table were copied.
type CopiedTable = transfer.Copied

// CopyReport is what a copy of a store wrote, and what a check of it found.
type CopyReport struct {
	Tables []CopiedTable `json:"tables"`
	// Check is that of the copy, as [CheckStore] does it.
	Check *CheckReport `json:"check"`
	// Unfinished is how many runs the copy goes on with as soon as it is opened. The
	// source still has them, too.
	Unfinished int `json:"unfinished"`
}

// copyable is a store that can be the source or the target of a copy.
type copyable interface {
	store.Store
	store.Checker
	Transfer(ctx context.Context, f func(transfer.Target) error) error
}

// CopyStore copies the store at a location (a data folder, or the URL of a PostgreSQL
// database) to another one, which must be empty. Nobody else may use either of them
// meanwhile: a server that drives one is a conflict. The target has all of it or
// nothing. progress, if it is not nil, is told of every table that is done.
func CopyStore(ctx context.Context, from, to string, progress func(CopiedTable)) (_ *CopyReport, err error) {
	const op = "agentd.CopyStore"
	if from == to {
		return nil, &fault.Error{Op: op, Kind: fault.Invalid, Err: errors.New("a store can not be copied onto itself")}
	}
	src, err := openAlone(ctx, from, true)
	if err != nil {
		return nil, fmt.Errorf("copy from: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := openAlone(ctx, to, false)
	if err != nil {
		return nil, fmt.Errorf("copy to: %w", err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	report := &CopyReport{}
	err = src.Transfer(ctx, func(s transfer.Target) error {
		return dst.Transfer(ctx, func(t transfer.Target) (err error) {
			report.Tables, err = transfer.Copy(ctx, s, t, progress)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if report.Check, err = dst.Check(ctx, store.CheckOptions{State: engine.Examine, Now: time.Now().UnixMilli()}); err != nil {
		return nil, err
	}
	refs, err := dst.Unfinished(ctx)
	report.Unfinished = len(refs)
	return report, err
}

// openAlone opens a store so that nobody else writes to it.
func openAlone(ctx context.Context, location string, mustExist bool) (copyable, error) {
	if postgres.Is(location) {
		if mustExist {
			st, err := postgres.Open(ctx, location, &postgres.Options{ReadOnly: true})
			if fault.KindOf(err) == fault.NotFound {
				return nil, err // rather than make an empty one
			}
			if err == nil {
				err = st.Close()
			}
			if err != nil && fault.KindOf(err) != fault.Conflict { // an older schema is brought up to date
				return nil, err
			}
		}
		return postgres.Open(ctx, location, &postgres.Options{Exclusive: true})
	}
	path := storePath(location)
	if path == sqlite.Memory {
		return nil, &fault.Error{Kind: fault.Invalid, Err: errors.New("a store in memory can not be copied"), Hint: "Name a data folder or a database."}
	}
	if mustExist {
		if _, err := os.Stat(path); err != nil {
			return nil, &fault.Error{Kind: fault.NotFound, Err: fmt.Errorf("there is no store: %w", err), Hint: "Name the data folder of a server or of runs."}
		}
	}
	return sqlite.Open(path, nil)
}

