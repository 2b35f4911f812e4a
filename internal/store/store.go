package store

import (
	"context"
	"errors"
)

// Errors that implementations return, possibly wrapped.
var (
	ErrNotFound    = errors.New("not found")
	ErrFenced      = errors.New("another driver has taken over the run")
	ErrSessionBusy = errors.New("the session has another active run")
	ErrConflict    = errors.New("the row is no longer in the expected state")
	// ErrUnknown is the error of a Commit that nobody knows the outcome of: the way to
	// the store was lost in the middle of it and did not come back in time. The same
	// *Tx may be committed again: if it happened, that changes nothing and returns nil.
	ErrUnknown = errors.New("nobody knows whether the change was made")
	// ErrAway is the error of a store that can not be reached for now, by a Commit that
	// did not happen or a read.
	ErrAway = errors.New("the store can not be reached")
	// ErrTooNew is returned at open for a schema of a later version.
	ErrTooNew = errors.New("the store was written by a newer version of agentd")
)

// ExistsError says that a run, or a session, with the same idempotency key exists.
// The keys of runs and those of sessions are apart.
type ExistsError struct {
	// RunID or SessionID names it.
	RunID, SessionID string
	// SameRequest is whether its RequestHash is the same.
	SameRequest bool
}

func (e *ExistsError) Error() string {
	if e.SessionID != "" {
		return "a session with this idempotency key exists: " + e.SessionID
	}
	return "a run with this idempotency key exists: " + e.RunID
}

// Store is everything durable. Implementations are safe for concurrent use.
type Store interface {
	// Commit applies tx atomically and durably. The order of calls from one
	// goroutine is kept. If ctx ends first, and after ErrUnknown, the outcome is unknown.
	Commit(ctx context.Context, tx *Tx) error
	RunReader
	SessionReader
	JournalReader
	InterruptReader
	RuleReader
	ProposalReader
	BudgetReader
	BlobReader
	ArtifactReader
	QuarantineReader
	DropReader
	KeyReader
	ScheduleReader
	MemoryReader
	// Close waits for commits under way and releases the store. It writes
	// nothing special: closing is a controlled crash.
	Close() error
}

// RunReader reads runs.
type RunReader interface {
	Run(ctx context.Context, tenant, id string) (*Run, error)
	// Load is Run for who is about to drive the run. If the run is changed by another
	// process before this store's next Tx that raises its epoch, that Tx is refused
	// with ErrFenced: what was read is no longer what is there.
	Load(ctx context.Context, tenant, id string) (*Run, error)
	// Runs lists runs, newest first, without State and Spec. The cursor is
	// "" at the end.
	Runs(ctx context.Context, tenant string, f RunFilter) (runs []*Run, cursor string, err error)
	// Unfinished gives every run that is not completed, failed or cancelled,
	// oldest first, of all tenants: what a starting engine must look at.
	Unfinished(ctx context.Context) ([]RunRef, error)
	// Inputs gives the queued inputs of a run, oldest first.
	Inputs(ctx context.Context, tenant, runID string) ([]*Input, error)
	// Usage sums usage.
	Usage(ctx context.Context, tenant string, f UsageFilter) ([]*UsageTotal, error)
	// Recent gives how many runs without a parent were created, and how many tokens
	// used, of sessions that are there. Its cost depends on what happened lately
	// alone. Minutes count as a whole.
	Recent(ctx context.Context, tenant string, f RecentFilter) (runs, tokens int64, err error)
}

// SessionReader reads sessions and their trees.
type SessionReader interface {
	Session(ctx context.Context, tenant, id string) (*Session, error)
	// Sessions lists sessions, most recently updated first, ephemeral ones or
	// the others.
	Sessions(ctx context.Context, tenant string, f SessionFilter) (s []*Session, cursor string, err error)
	Entry(ctx context.Context, tenant, sessionID, id string) (*Entry, error)
	// Path gives the entries from the root to leaf, root first. An empty
	// leaf gives none.
	Path(ctx context.Context, tenant, sessionID, leaf string) ([]*Entry, error)
	// Entries lists all entries of a session in the order of their ids,
	// after the given id.
	Entries(ctx context.Context, tenant, sessionID, after string, limit int) ([]*Entry, error)
}

// AheadReader is a [SessionReader] whose entries can be read while it still gets others.
type AheadReader interface {
	// PathAhead is Path, and gives the entries of the session to ahead meanwhile: those
	// of other branches, too, and also where it fails in the end. Entries whose Body
	// ahead has taken, by making it nil, are without it in the path.
	PathAhead(ctx context.Context, tenant, sessionID, leaf string, ahead Ahead) ([]*Entry, error)
}

// Ahead takes in entries, the greatest ids first, each of them once. It is called from
// several goroutines, and not any more when what it was given to has returned. The RunID of
// entries is not known yet, and their Body is as it is stored: body gives what it is, until
// it is called again.
type Ahead func(entries []*Entry, body func(*Entry) ([]byte, error))

// JournalReader reads what a run told and did.
type JournalReader interface {
	// Events gives events with Seq > after in order, at most limit (0: all).
	Events(ctx context.Context, tenant, runID string, after int64, limit int) ([]*Event, error)
	// Trace gives the inputs and effects of a run in order: those after the
	// first ones (after; 0: all), at most limit (0: all).
	Trace(ctx context.Context, tenant, runID string, after, limit int) ([]*Trace, error)
}

// InterruptReader reads interrupts.
type InterruptReader interface {
	Interrupt(ctx context.Context, tenant, id string) (*Interrupt, error)
	// Interrupts lists interrupts, oldest first. The cursor is "" at the end.
	Interrupts(ctx context.Context, tenant string, f InterruptFilter) (i []*Interrupt, cursor string, err error)
	// Expiring gives the open interrupts of all tenants that end by themselves,
	// the first to end first.
	Expiring(ctx context.Context) ([]InterruptRef, error)
}

// BlobReader reads blobs.
type BlobReader interface {
	Blob(ctx context.Context, tenant, id string) (*Blob, error)
}

// DropReader finds what to drop.
type DropReader interface {
	// Expired gives ephemeral sessions of all tenants, at most limit, of which
	// everything ended before a time: no run of them or below them is under way
	// or ended later, and they were not updated since. A session of a child run
	// is not among them: it goes with that of its root.
	Expired(ctx context.Context, before int64, limit int) ([]SessionRef, error)
	// Family gives the ids of a session and of those of the runs that descend
	// from its runs, itself first.
	Family(ctx context.Context, tenant, sessionID string) ([]string, error)
}
