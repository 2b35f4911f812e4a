package server

import (
	"context"
	"iter"
	"time"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/message"
)

// Engine is what the server needs of the engine. Errors are *fault.Error.
type Engine interface {
	Runs
	Steering
	People
	Proposals
	Journal
	Sessions
	Catalogue
	Budgets
	// Ready says why the engine can not take runs, or nil.
	Ready(ctx context.Context) error
}

// Runs starts and shows runs.
type Runs interface {
	// Start is idempotent for requests with a key: a repetition gives the
	// first run, another request under the same key is a conflict.
	Start(ctx context.Context, req engine.StartRequest) (*engine.Run, error)
	Get(ctx context.Context, ref engine.Ref) (*engine.Run, error)
	List(ctx context.Context, tenant string, f engine.RunFilter) (runs []*engine.Run, cursor string, err error)
	Cancel(ctx context.Context, ref engine.Ref, reason string) (*engine.Run, error)
}

// Steering hands input to a run under way.
type Steering interface {
	Steer(ctx context.Context, ref engine.Ref, input []message.Block, about ...engine.ContextBlock) error
	FollowUp(ctx context.Context, ref engine.Ref, input []message.Block, about ...engine.ContextBlock) error
}

// People shows and answers interrupts.
type People interface {
	Answer(ctx context.Context, req engine.AnswerRequest) (*engine.InterruptView, error)
	Interrupts(ctx context.Context, tenant string, f engine.InterruptFilter) (interrupts []*engine.InterruptView, cursor string, err error)
	Interrupt(ctx context.Context, ref engine.Ref) (*engine.InterruptView, error)
	// Rules gives what people allowed for the rest of a session. Revoke takes a
	// rule back, or all if it is "".
	Rules(ctx context.Context, session engine.Ref) ([]*engine.RuleView, error)
	Revoke(ctx context.Context, session engine.Ref, rule string) error
}

// Proposals shows and decides what autonomous runs recorded instead of doing it.
type Proposals interface {
	Proposals(ctx context.Context, ref engine.Ref) ([]*engine.ProposalView, error)
	// Apply makes the calls in order, each once, and stops at the first that fails.
	Apply(ctx context.Context, req engine.DecideRequest) ([]*engine.ProposalView, error)
	Discard(ctx context.Context, req engine.DecideRequest) ([]*engine.ProposalView, error)
}

// Journal reads what runs told.
type Journal interface {
	// Watch yields the events above after, stored ones first, then those
	// that come, until the terminal event. It yields an error at most once, last.
	Watch(ctx context.Context, ref engine.Ref, after int64) iter.Seq2[event.Event, error]
	// Follow is Watch in batches: what is there at a time comes at a time. A batch
	// without events comes whenever none came for as long as idle.
	Follow(ctx context.Context, ref engine.Ref, after int64, idle time.Duration) iter.Seq2[engine.Batch, error]
	// Replay yields the stored events above after, without waiting. It
	// reads on as its reader does. It yields an error at most once, last.
	Replay(ctx context.Context, ref engine.Ref, after int64) iter.Seq2[event.Event, error]
	// Trace lists inputs and effects after a number, at most limit.
	Trace(ctx context.Context, ref engine.Ref, after, limit int) (rows []engine.TraceView, more bool, err error)
}

// Sessions keeps conversations.
type Sessions interface {
	// CreateSession is idempotent for requests with a key, like Start.
	CreateSession(ctx context.Context, req engine.SessionRequest) (*engine.SessionView, error)
	Session(ctx context.Context, ref engine.Ref) (*engine.SessionView, error)
	Sessions(ctx context.Context, tenant string, f engine.SessionFilter) ([]*engine.SessionView, string, error)
	DeleteSession(ctx context.Context, ref engine.Ref) error
	// Compact starts the run that compacts a session.
	Compact(ctx context.Context, req engine.StartRequest) (*engine.Run, error)
	// Entries gives the path from the root to the leaf, above after.
	Entries(ctx context.Context, ref engine.Ref, after string, limit int) ([]*engine.EntryView, error)
	// Cache gives what providers' caches did for the session: steps after a cursor, at
	// most limit.
	Cache(ctx context.Context, ref engine.Ref, cursor string, limit int) (*engine.CacheView, error)
	Trees
}

// Catalogue shows what there is besides runs and sessions.
type Catalogue interface {
	Profiles(ctx context.Context, tenant string) ([]engine.ProfileView, error)
	// Artifacts gives what is known of a session's artifacts, oldest first.
	Artifacts(ctx context.Context, session engine.Ref) ([]*engine.ArtifactView, error)
	Artifact(ctx context.Context, ref engine.Ref) (name, mimeType string, data []byte, err error)
	// Usage sums usage from (inclusive) to (exclusive), Unix milliseconds; 0 is open.
	Usage(ctx context.Context, tenant string, from, to int64, session, user string) ([]engine.UsageView, error)
}
