package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// Options are the choices of Open. The zero value of each field is its default.
type Options struct {
	// Connections is the most connections at a time for commits and reads; 0 means
	// 8, or two for each processor if that is more. One more tells the others that
	// the store is in use; a node has another for its lease and what it tells, and one
	// to hear what others tell.
	Connections int
	// RetryFor is how long a commit or a read is tried again when the server can not
	// be reached, is starting, or ends a transaction for another's sake; 0 means 10 s.
	RetryFor time.Duration
	// StatementTimeout ends a statement that takes longer; 0 means 30 s. Checks and
	// migrations have none.
	StatementTimeout time.Duration
	// ReadOnly is for looking at an existing store. Commit is refused.
	ReadOnly bool
	// Exclusive keeps everybody else who would write out, and is refused while
	// somebody is in.
	Exclusive bool
	// Rand is where the names of changes come from; nil means the system's.
	Rand io.Reader
}

func (o *Options) defaults() {
	if o.Connections <= 0 {
		o.Connections = max(8, 2*runtime.GOMAXPROCS(0))
	}
	if o.RetryFor <= 0 {
		o.RetryFor = 10 * time.Second
	}
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = 30 * time.Second
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
}

// Store implements store.Store.
type Store struct {
	opts   Options
	target *target
	pool   *pgxpool.Pool
	// ahead is for what must not wait behind everything else: leases, and notes on the
	// bus. It connects when it is needed.
	ahead    *pgxpool.Pool
	presence *presence // nil: ReadOnly
	codec    *form.Codec

	// tenants and models have the keys of rows that are never deleted.
	mu      sync.Mutex
	tenants map[string]int64
	models  map[modelName]int64
	// last has, by run, the name of the last change that this store knows of.
	last map[runName]commitID
	// loaded has, by run, the name of the last change of what somebody has read to
	// drive it, until he has claimed it.
	loaded map[runName]commitID

	randMu  sync.Mutex
	marks   atomic.Int64 // changes whose names are in the table commits
	sent    atomic.Int64
	lost    atomic.Int64
	found   atomic.Int64
	closed  atomic.Bool
	closing chan struct{}
	active  sync.WaitGroup
	// activeMu orders the start of what active counts and Close.
	activeMu sync.RWMutex
}

type modelName struct{ provider, model string }

type runName struct {
	tenant int64
	id     string
}

// maxRemembered bounds each map; a full one starts again.
const maxRemembered = 4096

// maxLoaded bounds the runs that were read and not yet claimed.
const maxLoaded = 1 << 16

func remember[K comparable, V any](m map[K]V, k K, v V) {
	if len(m) >= maxRemembered {
		clear(m)
	}
	m[k] = v
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Checker = (*Store)(nil)
)

// Is reports whether a location names a store of this package: a URL that begins
// with postgres:// or postgresql://.
func Is(location string) bool {
	return strings.HasPrefix(location, "postgres://") || strings.HasPrefix(location, "postgresql://")
}

// Open opens the store in the database that url names, and brings its schema up to
// date; any number of processes may do that at once. Tables are in the schema that
// the URL's search_path names, or in "agentd", which is made if needed. What the URL
// leaves out comes from PostgreSQL's environment variables (PGPASSWORD, PGPASSFILE and
// so on) and files. opts may be nil.
//
// Errors are *fault.Error without the URL's password: Invalid for a URL that can not
// be used, Unavailable if the server can not be reached, Conflict if another process
// keeps this one out, Unsupported (and store.ErrTooNew) if a newer agentd wrote it.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	s := &Store{codec: form.NewCodec(), closing: make(chan struct{}),
		tenants: map[string]int64{}, models: map[modelName]int64{}, last: map[runName]commitID{}, loaded: map[runName]commitID{}}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.defaults()
	var err error
	if s.target, err = parse(url, &s.opts); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		if s.presence != nil {
			s.presence.close()
		}
		for _, p := range []*pgxpool.Pool{s.pool, s.ahead} {
			if p != nil {
				p.Close()
			}
		}
		return nil, s.target.openError(err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	retry := s.retrying(ctx)
	// A server that is starting is waited for; one that is not there is told of at once.
	waiting := func(f func() error) (err error) {
		for {
			if err = f(); err == nil || pgError(err) == nil || !passing(err) {
				return err
			}
			if err = retry.pause(err); err != nil {
				return err
			}
		}
	}
	var err error
	if s.opts.ReadOnly {
		err = waiting(func() error { return s.target.checkVersion(ctx) })
	} else {
		// The place first: whoever keeps others out also keeps their migrations out.
		err = waiting(func() (err error) {
			s.presence, err = s.target.enter(ctx, s.opts.Exclusive)
			return err
		})
		if err == nil {
			err = waiting(func() error { return s.target.migrate(ctx) })
		}
	}
	if err != nil {
		return err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, s.target.pool.Copy()); err != nil {
		return err
	}
	few := s.target.pool.Copy()
	few.MaxConns, few.MinConns, few.MinIdleConns = 1, 0, 0
	s.ahead, err = pgxpool.NewWithConfig(ctx, few)
	return err
}

// Close waits for the commits and reads under way and gives the connections back.
// Those that wait for a server that can not be reached end at once, with their outcome
// unknown. Calls after the first do nothing.
func (s *Store) Close() error {
	s.activeMu.Lock()
	first := s.closed.CompareAndSwap(false, true)
	if first {
		close(s.closing)
	}
	s.activeMu.Unlock()
	s.active.Wait()
	if first {
		if s.presence != nil {
			s.presence.close()
		}
		s.pool.Close()
		s.ahead.Close()
	}
	return nil
}

// begin counts a commit or read in, unless the store is closed.
func (s *Store) begin() error {
	s.activeMu.RLock()
	defer s.activeMu.RUnlock()
	if s.closed.Load() {
		return &fault.Error{Op: "postgres", Kind: fault.Unavailable, Err: errors.New("the store is closed")}
	}
	s.active.Add(1)
	return nil
}

// Name is the database for people: the URL without its password.
func (s *Store) Name() string { return s.target.name }

// Stats counts since Open.
type Stats struct {
	// Sent is how often a change was sent, Lost how often no answer came, and Found how
	// many changes turned out to have been made although no answer came.
	Sent, Lost, Found int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{Sent: s.sent.Load(), Lost: s.lost.Load(), Found: s.found.Load()}
}

// commitID names a change.
type commitID [16]byte

func (s *Store) newID() (id commitID, err error) {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	_, err = io.ReadFull(s.opts.Rand, id[:])
	if err != nil {
		err = fmt.Errorf("a name for the change: %w", err)
	}
	return id, err
}

func minute(ms int64) int64 { return ms / 60_000 }
