package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// maxGroup is the most Tx in one transaction.
const maxGroup = 256

// job is a Tx on its way to the writer, with what could be worked out before.
type job struct {
	tx       *store.Tx
	journals []form.Journal
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
	if err := form.Check(tx); err != nil {
		return nil, err
	}
	j := &job{tx: tx, done: make(chan struct{})}
	var err error
	if j.journals, err = s.codec.Journals(tx); err != nil {
		return nil, invalid("%w", err)
	}
	for _, e := range tx.Entries {
		j.bodies = append(j.bodies, s.codec.PackBody(e.Body))
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
	return s.codec.Pack(make([]byte, 0, len(b)/2+32), b)
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

// commit commits group and leaves each job's error in it. A job that is refused
// after it wrote takes the transaction with it; the group is then tried once more
// with a savepoint for each job. (Always with savepoints it would make SQLite copy
// every page that it changes.) If even that transaction breaks, each job is alone.
func (s *Store) commit(group []*job) {
	if s.memory {
		s.memoryMu.Lock()
		defer s.memoryMu.Unlock()
	}
	if s.attempt(group, false) || s.attempt(group, true) {
		return
	}
	for i := range group {
		s.attempt(group[i:i+1], true)
	}
}

// attempt tries to commit group in one transaction and reports whether that is
// settled: each job is committed, or has its error. A job alone always is.
func (s *Store) attempt(group []*job, savepoints bool) (settled bool) {
	defer func() {
		if p := recover(); p != nil {
			// Whoever leads may be in the goroutine of somebody who survives a
			// panic; the others must not wait for ever.
			s.applier.rollback()
			settled = fail(group, fmt.Errorf("the store panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	n, err := s.applier.run(group, savepoints)
	switch {
	case err == nil:
	case errors.Is(err, errBroken) && len(group) > 1:
		return false
	default:
		return fail(group, err)
	}
	if n > 0 {
		s.commits.Add(int64(n))
		s.groups.Add(1)
	}
	return true
}

// fail gives err to the jobs of a transaction that did not happen, also to those
// that were refused: what they were refused for may not have happened either.
func fail(group []*job, err error) bool {
	for _, j := range group {
		if j.err == nil || len(group) > 1 {
			j.err = err
		}
	}
	return true
}

// errBroken is the error of a transaction that one of its jobs has ended.
var errBroken = errors.New("a change ended the transaction of its group")

// run applies the jobs in one transaction and gives the number of those that are
// committed. A job that is refused gets its error and leaves no trace; without
// savepoints one that is refused after it wrote, and with them one that ended the
// transaction, makes the error errBroken, and nothing is committed.
func (a *applier) run(group []*job, savepoints bool) (n int, err error) {
	if _, _, err := a.c.exec("BEGIN IMMEDIATE"); err != nil {
		return 0, err
	}
	broken := func() (int, error) {
		a.rollback()
		return 0, errBroken
	}
	for _, j := range group {
		if savepoints {
			if _, _, err := a.c.exec("SAVEPOINT tx"); err != nil {
				return broken()
			}
		}
		before := a.c.execs
		j.err = a.apply(j)
		switch {
		case j.err == nil:
			n++
		case code(j.err) != 0 && primary(j.err) != codeConstraint:
			// SQLite may have ended the transaction by itself (a failing disk,
			// no memory, no space): what followed would be committed at once.
			return broken()
		case a.c.execs == before:
			// Nothing was written.
		case !savepoints:
			return broken()
		default:
			a.forget()
			if _, _, err := a.c.exec("ROLLBACK TO tx"); err != nil {
				return broken()
			}
		}
		if savepoints {
			if _, _, err := a.c.exec("RELEASE tx"); err != nil {
				return broken()
			}
		}
	}
	if n == 0 {
		a.rollback()
		return 0, nil
	}
	if _, _, err := a.c.exec("COMMIT"); err != nil {
		a.rollback()
		return 0, err
	}
	return n, nil
}

// rollback ends the transaction, which SQLite may have done already.
func (a *applier) rollback() {
	a.forget()
	_, _, _ = a.c.exec("ROLLBACK")
}
