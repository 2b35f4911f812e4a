package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
	"agentd/internal/store/sqlite/walvfs"
)

// Memory is the path of a private store that lives in memory.
const Memory = ":memory:"

// Durability is what a returned Commit survives.
type Durability string

// The durabilities.
const (
	// Full survives a power cut: every group of commits waits for the disk.
	Full Durability = "full"
	// Process survives the end of the process, also by kill -9, but a power
	// cut may take the last commits (never half of one).
	Process Durability = "process"
)

// Options are the choices of Open. The zero value of each field is its default.
type Options struct {
	// Durability is Full by default.
	Durability Durability
	// Readers is the most reads at a time, each on a connection of its own;
	// 0 means 4. Connections are opened when they are first needed.
	Readers int
	// ReadOnly opens an existing store beside the process that writes to it.
	// Commit is refused.
	ReadOnly bool

	pageSize int // of a new file, in bytes; 0 means pageSize
}

// Settings that were chosen by measuring; see the benchmarks.
const (
	pageSize       = 4096
	autocheckpoint = 2000 // pages in the log before they move to the main file
	logLimit       = 32 << 20
	defaultReaders = 4
)

// applicationID marks the file as ours ("agtd"); see PRAGMA application_id.
const applicationID = 0x61677464

// Store implements store.Store.
type Store struct {
	path   string
	memory bool
	opts   Options
	codec  *form.Codec
	lock   *lockFile

	// writer is used by the one who writes, except in memory, where there is
	// one connection and memoryMu guards it.
	writer   *conn
	memoryMu sync.Mutex
	// readers has a place for each read at a time. idle are the open
	// connections that nobody uses; the last one used is used next, so that
	// few reads at a time keep few connections and their caches.
	readers chan struct{}
	idleMu  sync.Mutex
	idle    []*conn

	closeMu sync.RWMutex
	closed  bool

	// applier is used by the one who writes; taken is the group it works on.
	applier *applier
	taken   []*job
	// queue are the jobs that wait, writing whether somebody writes, quiet
	// tells that nobody does any more.
	queueMu     sync.Mutex
	queue       []*job
	writing     bool
	queueClosed bool
	quiet       *sync.Cond

	commits, groups atomic.Int64
}

var (
	_ store.Store       = (*Store)(nil)
	_ store.AheadReader = (*Store)(nil)
)

// Open opens the store at path, or a private one in memory for [Memory], and
// brings its schema up to date. It creates the folder (0700) and the file
// (0600) if needed. opts may be nil.
//
// Errors are *fault.Error that name the file: Conflict if another process has
// it open for writing, Unsupported (and store.ErrTooNew) if a newer agentd
// wrote it, Internal if it is damaged or no store.
func Open(path string, opts *Options) (*Store, error) {
	const op = "sqlite.Open"
	s := &Store{path: path, memory: path == Memory, codec: form.NewCodec()}
	s.quiet = sync.NewCond(&s.queueMu)
	if opts != nil {
		s.opts = *opts
	}
	switch s.opts.Durability {
	case "":
		s.opts.Durability = Full
	case Full, Process:
	default:
		return nil, &fault.Error{Op: op, Kind: fault.Invalid, Field: "durability",
			Err:  fmt.Errorf("%q is not a durability", s.opts.Durability),
			Hint: `use "full" or "process"`}
	}
	if s.opts.Readers <= 0 {
		s.opts.Readers = defaultReaders
	}
	if s.opts.pageSize == 0 {
		s.opts.pageSize = pageSize
	}
	if path == "" {
		return nil, &fault.Error{Op: op, Kind: fault.Invalid, Err: errors.New("the store has no path"),
			Hint: "name a file, or " + Memory}
	}
	if err := s.open(); err != nil {
		for _, c := range append(s.idle, s.writer) {
			if c != nil {
				err = errors.Join(err, c.close())
			}
		}
		s.lock.release()
		return nil, s.openError(op, err)
	}
	return s, nil
}

func (s *Store) open() error {
	if s.memory {
		if s.opts.ReadOnly {
			return fault.New(fault.Invalid, "a store in memory cannot be opened for reading alone")
		}
	} else {
		path, err := filepath.Abs(s.path)
		if err != nil {
			return err
		}
		s.path = path
		if err := s.prepareFile(); err != nil {
			return err
		}
	}
	if s.opts.ReadOnly {
		return s.openReadOnly()
	}

	layer, err := walvfs.Register()
	if err != nil {
		return err
	}
	w, err := openConn(dsn(s.path, layerOf(layer)))
	if err != nil {
		return err
	}
	s.writer = w
	if err := s.configure(w); err != nil {
		return err
	}
	if err := migrate(w); err != nil {
		return err
	}
	s.startReaders()
	s.applier = newApplier(w, s.codec)
	return nil
}

// layerOf are the parameters of a connection that goes through a file layer.
func layerOf(name string) url.Values {
	if name == "" {
		return nil
	}
	return url.Values{"vfs": {name}}
}

// prepareFile makes folder and file with their permissions and takes the lock.
func (s *Store) prepareFile() error {
	if s.opts.ReadOnly {
		if _, err := os.Stat(s.path); err != nil {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	var err error
	if s.lock, err = takeLock(s.path + ".lock"); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *Store) configure(c *conn) error {
	synchronous := "FULL"
	if s.opts.Durability == Process {
		synchronous = "NORMAL"
	}
	return c.script(fmt.Sprintf(`
PRAGMA busy_timeout = 5000;
PRAGMA page_size = %d;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = %s;
PRAGMA fullfsync = ON; -- macOS: reach the disk, not its cache
PRAGMA checkpoint_fullfsync = ON;
PRAGMA wal_autocheckpoint = %d;
PRAGMA journal_size_limit = %d;
PRAGMA temp_store = MEMORY;
`, s.opts.pageSize, synchronous, autocheckpoint, logLimit))
}

func (s *Store) startReaders() {
	if s.memory {
		return
	}
	s.readers = make(chan struct{}, s.opts.Readers)
}

func (s *Store) openReadOnly() error {
	s.startReaders()
	c, err := s.openReader()
	if err != nil {
		return err
	}
	s.idle = append(s.idle, c)
	return checkVersion(c)
}

func (s *Store) openReader() (*conn, error) {
	c, err := openConn(dsn(s.path, url.Values{"mode": {"ro"}}))
	if err != nil {
		return nil, err
	}
	// A cache of half a megabyte (in KiB, negative): the system's own cache is
	// behind it, and several readers must not add up to more than all runs.
	if err := c.script("PRAGMA busy_timeout = 5000; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -500;"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// read runs f with a connection on which it sees one state of the store, the
// newest one.
func (s *Store) read(ctx context.Context, f func(*conn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.closeMu.RLock()
	defer s.closeMu.RUnlock()
	if s.closed {
		return errClosed()
	}
	if s.memory {
		s.memoryMu.Lock()
		defer s.memoryMu.Unlock()
		return s.readError(f(s.writer))
	}
	select {
	case s.readers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.readers }()
	c := s.takeIdle()
	if c == nil {
		if c, err = s.openReader(); err != nil {
			return s.readError(err)
		}
	}
	if _, _, err = c.exec("BEGIN"); err == nil {
		err = f(c)
		if _, _, e := c.exec("COMMIT"); e != nil {
			err = errors.Join(err, e)
		}
	}
	if code(err) != 0 {
		// Nothing was written; what counts is that the next read starts afresh.
		return s.readError(errors.Join(err, c.close()))
	}
	s.idleMu.Lock()
	s.idle = append(s.idle, c)
	s.idleMu.Unlock()
	return err
}

func (s *Store) takeIdle() *conn {
	s.idleMu.Lock()
	defer s.idleMu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	c := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	return c
}

// Close waits for the commits and reads under way and closes the file. Calls
// after the first do nothing.
func (s *Store) Close() error {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	s.queueMu.Lock()
	s.queueClosed = true
	for s.writing {
		s.quiet.Wait()
	}
	s.queueMu.Unlock()
	for _, c := range s.idle { // all of them: no read is under way
		errs = append(errs, c.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	s.lock.release()
	if err := errors.Join(errs...); err != nil {
		return s.readError(err)
	}
	return nil
}

// Stats counts since Open.
type Stats struct {
	// Commits is the number of Tx that were committed, Groups the number of
	// transactions (and with Full durability, of waits for the disk) that
	// took.
	Commits, Groups int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.commits.Load(), Groups: s.groups.Load()}
}
