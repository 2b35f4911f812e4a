package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"agentd/fault"
	"agentd/internal/store"
)

// maxGroup is the most Tx in one transaction.
const maxGroup = 256

// job is a Tx on its way to the writer, with what could be worked out before.
type job struct {
	tx       *store.Tx
	journals []journal
	// newStates and states are the packed State of NewRuns and Runs, specs
	// the packed Spec of NewRuns.
	newStates, states, specs [][]byte
	// bodies are the stored forms of the bodies of Entries.
	bodies [][]byte

	err  error
	done chan struct{}
}

// Commit applies tx atomically and durably; see package store. tx must not be
// changed before it returned, nor after it returned because ctx ended.
func (s *Store) Commit(ctx context.Context, tx *store.Tx) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.opts.ReadOnly {
		return &fault.Error{Op: "sqlite.Commit", Kind: fault.Unsupported, Err: errors.New("the store was opened for reading alone")}
	}
	if tx.Tenant != "" && tx.Empty() && len(tx.Fences) == 0 {
		return nil
	}
	j, err := s.newJob(tx)
	if err != nil {
		return err
	}
	s.queueMu.Lock()
	if s.queueClosed {
		s.queueMu.Unlock()
		return errClosed()
	}
	s.queue = append(s.queue, j)
	lead := !s.writing
	s.writing = true
	s.queueMu.Unlock()
	if lead {
		s.lead()
	}
	if ctx.Done() == nil {
		<-j.done
		return s.readError(j.err)
	}
	select {
	case <-j.done: // rather than ctx's error, if both
		return s.readError(j.err)
	default:
	}
	select {
	case <-j.done:
		return s.readError(j.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newJob checks tx as far as that is possible without the store, and encodes
// what needs encoding.
func (s *Store) newJob(tx *store.Tx) (*job, error) {
	if err := check(tx); err != nil {
		return nil, err
	}
	j := &job{tx: tx, done: make(chan struct{})}
	var err error
	if j.journals, err = s.codec.journals(tx); err != nil {
		return nil, invalid("%w", err)
	}
	for _, e := range tx.Entries {
		j.bodies = append(j.bodies, s.codec.packBody(e.Body))
	}
	for _, r := range tx.NewRuns {
		j.newStates = append(j.newStates, s.packed(r.State))
		j.specs = append(j.specs, s.packed(r.Spec))
	}
	for i := range tx.Runs {
		j.states = append(j.states, s.packed(tx.Runs[i].State))
	}
	return j, nil
}

func (s *Store) packed(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return s.codec.pack(make([]byte, 0, len(b)/2+32), b)
}

func check(tx *store.Tx) error {
	if tx.Tenant == "" {
		return invalid("a Tx without a tenant")
	}
	for _, x := range tx.NewSessions {
		if x.ID == "" {
			return invalid("a session without an id")
		}
	}
	for _, x := range tx.NewRuns {
		if x.ID == "" || x.SessionID == "" || x.Status == "" {
			return invalid("run %q lacks an id, a session or a status", x.ID)
		}
	}
	for _, x := range tx.Entries {
		if x.ID == "" || x.Kind == "" {
			return invalid("entry %q of session %q lacks an id or a kind", x.ID, x.SessionID)
		}
	}
	for _, x := range tx.Runs {
		if x.Status == "" {
			return invalid("a change of run %q without a status", x.ID)
		}
	}
	for _, x := range tx.Inputs {
		if x.ID == "" {
			return invalid("an input of run %q without an id", x.RunID)
		}
	}
	for _, x := range tx.NewInterrupts {
		if x.ID == "" || x.Status == "" {
			return invalid("interrupt %q lacks an id or a status", x.ID)
		}
	}
	for _, x := range tx.Answers {
		if x.Status == "" {
			return invalid("an answer to interrupt %q without a status", x.ID)
		}
	}
	for _, x := range tx.Blobs {
		if sum := sha256.Sum256(x.Data); hex.EncodeToString(sum[:]) != x.ID {
			return invalid("the id of blob %q is not the SHA-256 of its data", x.ID)
		}
	}
	return checkKeys(tx)
}

// lead commits what waits, as the one writer there is at a time. Whoever finds
// nobody writing leads a first group in its own goroutine, which spares handing it
// over; what gathered meanwhile gets a goroutine, so that nobody works for others
// for long. It waits for nothing: while one group is on its way to the disk the
// next one gathers.
func (s *Store) lead() {
	if s.group() {
		go func() {
			for s.group() {
			}
		}()
	}
}

// group commits one group and reports whether there is another.
func (s *Store) group() (more bool) {
	s.queueMu.Lock()
	n := min(len(s.queue), maxGroup)
	group := append(s.taken[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	s.queueMu.Unlock()
	s.commit(group)
	for i, j := range group {
		close(j.done)
		group[i] = nil
	}
	s.taken = group
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	if len(s.queue) > 0 {
		return true
	}
	s.writing = false
	s.quiet.Broadcast()
	return false
}

// commit runs group in one transaction and leaves each job's error in it. A job
// that is refused after it wrote takes the transaction with it; the others are
// then committed without it. (A savepoint for each instead would make SQLite copy
// every page that it changes.)
func (s *Store) commit(group []*job) {
	if s.memory {
		s.memoryMu.Lock()
		defer s.memoryMu.Unlock()
	}
	left := group
	for len(left) > 0 {
		n, refused, err := s.applier.run(left)
		if refused != nil {
			s.left = s.left[:0]
			for _, j := range left {
				if j.err == nil {
					s.left = append(s.left, j)
				}
			}
			left = s.left
			continue
		}
		for _, j := range left {
			if j.err == nil {
				j.err = err
			}
		}
		if n > 0 {
			s.commits.Add(int64(n))
			s.groups.Add(1)
		}
		return
	}
}

// run applies the jobs in one transaction. One that is refused before it wrote
// anything gets its error and is left out; n is how many were committed. One that
// fails later gets its error, is returned, and nothing is committed.
func (a *applier) run(group []*job) (n int, refused *job, err error) {
	if _, _, err := a.c.exec("BEGIN IMMEDIATE"); err != nil {
		return 0, nil, err
	}
	for _, j := range group {
		before := a.c.execs
		j.err = a.apply(j)
		if j.err == nil {
			n++
		} else if a.c.execs != before {
			a.rollback()
			return 0, j, nil
		}
	}
	if n == 0 {
		a.rollback()
		return 0, nil, nil
	}
	if _, _, err := a.c.exec("COMMIT"); err != nil {
		a.rollback()
		return 0, nil, err
	}
	return n, nil, nil
}

// rollback ends the transaction, which SQLite may have done already.
func (a *applier) rollback() {
	a.forget()
	_, _, _ = a.c.exec("ROLLBACK")
}
