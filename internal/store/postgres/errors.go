package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// The SQLSTATEs with which statements of this package refuse a change; see
// agentd_refuse in the schema.
const (
	stateInvalid  = "AG400"
	stateNotFound = "AG404"
	stateConflict = "AG409"
	stateLapsed   = "AG410"
	stateFenced   = "AG412"
	stateBusy     = "AG423"
	// stateLook says that the row of the run a change is fenced by is not as it
	// should be: what it is decides.
	stateLook = "AG100"
)

// SQLSTATEs of PostgreSQL; see https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	codeUnique        = "23505"
	codeNotText       = "22021" // a text that is no UTF-8, or holds NUL
	codeUntranslated  = "22P05"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeCancelled     = "57014" // by statement_timeout, or by somebody
	codeNoDatabase    = "3D000"
	codeNoPrivilege   = "42501"
	codeStalePlan     = "0A000"
	codeNoStatement   = "26000"
	codeDiskFull      = "53100"
	codeReadOnly      = "25006" // a standby that is not promoted yet
)

func pgError(err error) *pgconn.PgError {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

func code(err error) string {
	if e := pgError(err); e != nil {
		return e.Code
	}
	return ""
}

// refused is the error of a change that one of its own statements ended.
func refused(e *pgconn.PgError) error {
	cause := error(nil)
	switch e.Code {
	case stateNotFound:
		cause = store.ErrNotFound
	case stateConflict:
		cause = store.ErrConflict
	case stateLapsed:
		cause = store.ErrLapsed
	case stateFenced:
		cause = store.ErrFenced
	case stateBusy:
		cause = store.ErrSessionBusy
	case stateInvalid:
		return form.Invalid("%s", e.Message)
	case codeNotText, codeUntranslated:
		return form.Invalid("an id, status or kind is no text: %s", e.Message)
	default:
		return nil
	}
	return form.Refuse(cause, "%s", e.Message)
}

// settled is whether a failed change certainly did not happen: the server said, while
// the connection went on, that it ended the transaction. An error that ended the
// session too (FATAL) may have come after the commit.
func settled(err error) bool {
	e := pgError(err)
	return e != nil && (e.SeverityUnlocalized == "ERROR" || e.SeverityUnlocalized == "" && e.Severity == "ERROR")
}

// passing is whether the same may work soon.
func passing(err error) bool {
	if e := pgError(err); e != nil {
		switch e.Code {
		case codeSerialization, codeDeadlock, codeCancelled, codeStalePlan, codeNoStatement, codeDiskFull, codeReadOnly:
			return true
		}
		// Connection exceptions, insufficient resources, and what an operator did.
		switch e.Code[:2] {
		case "08", "53", "57", "58":
			return e.Code != "57P04" // the database was dropped
		}
		return false
	}
	var said *fault.Error
	if errors.As(err, &said) {
		return false
	}
	// What is left is the connection: refused, reset, silent. pgx has no type for most
	// of it. Not the connection is a caller that gave up.
	return !errors.Is(err, context.Canceled) && (!errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err))
}

// openError makes an error of Open one that says what to do.
func (t *target) openError(err error) error { return t.wrap("postgres.Open", err) }

// wrap makes an error of PostgreSQL, or of the way to it, one that says what to do and
// has no password. Others are left alone.
func (t *target) wrap(op string, err error) error {
	var f *fault.Error
	if err == nil || errors.As(err, &f) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if !passing(err) {
			return err
		}
	}
	e := &fault.Error{Op: op, Kind: fault.Internal}
	text := t.scrub(err.Error())
	pg := pgError(err)
	var connect *pgconn.ConnectError
	switch {
	case pg != nil && (pg.Code == "28P01" || pg.Code == "28000"):
		e.Kind, e.Hint = fault.Unavailable, "Check the user and the password: they may be in the URL, PGUSER and PGPASSWORD, or a passfile (~/.pgpass, PGPASSFILE)."
	case pg != nil && pg.Code == codeNoDatabase:
		e.Kind, e.Hint = fault.NotFound, "Make the database first: createdb NAME."
	case pg != nil && pg.Code == codeNoPrivilege:
		e.Kind, e.Hint = fault.Unavailable, "The user needs a schema of its own: CREATE SCHEMA "+t.schema+" AUTHORIZATION the user, or CREATE on the database."
	case pg != nil && pg.Code == codeDiskFull:
		e.Kind, e.Hint = fault.Unavailable, "The server's disk is full: free some space and try again."
	case errors.As(err, &connect):
		e.Kind, e.Hint = fault.Unavailable, "Check that PostgreSQL runs there and takes connections from this machine."
	case passing(err):
		e.Kind = fault.Unavailable
	}
	if pg != nil {
		text = t.scrub(fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code))
	}
	e.Err = fmt.Errorf("%s: %w", t.name, &hidden{text, err})
	if passing(err) {
		e.Err = fmt.Errorf("%w: %w", store.ErrAway, e.Err)
	}
	return e
}

// hidden is an error that says only what may be shown; it still is what it is.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }
