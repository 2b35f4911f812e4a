package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	"agentd/fault"
	"agentd/internal/store/form"
)

func errClosed() error {
	return &fault.Error{Op: "sqlite", Kind: fault.Unavailable, Err: errors.New("the store is closed")}
}

func refuse(cause error, format string, args ...any) error {
	return form.Refuse(cause, format, args...)
}

func invalid(format string, args ...any) error { return form.Invalid(format, args...) }

// openError makes an error of Open one that says what to do.
func (s *Store) openError(op string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	e := &fault.Error{Op: op, Kind: fault.Internal, Err: fmt.Errorf("open %s: %w", s.path, err)}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Hint = fault.NotFound, "check the data folder; a store is created by the first run or server"
	case errors.Is(err, fs.ErrPermission):
		e.Kind, e.Hint = fault.Unavailable, "choose a data folder that this user may write to"
	default:
		e.Kind, e.Hint = advice(err)
	}
	return e
}

// readError makes an error of SQLite one that says what to do, and leaves
// others alone.
func (s *Store) readError(err error) error {
	if err == nil || code(err) == 0 {
		return err
	}
	kind, hint := advice(err)
	return &fault.Error{Op: "sqlite", Kind: kind, Err: fmt.Errorf("%s: %w", s.path, err), Hint: hint}
}

func advice(err error) (fault.Kind, string) {
	switch primary(err) {
	case codeNotADB, codeCorrupt:
		return fault.Internal, "the file is damaged or is not a store of agentd: restore it from a backup, or move it and its -wal file away to start with an empty store"
	case codeFull:
		return fault.Unavailable, "the disk is full: free some space and try again"
	case codeBusy:
		return fault.Unavailable, "another program holds the file: close it and try again"
	case codeReadOnly, codeCantOpen:
		return fault.Unavailable, "check that the file and its folder exist and that this user may write to them"
	}
	return fault.Internal, ""
}
