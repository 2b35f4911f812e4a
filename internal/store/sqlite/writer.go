package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

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
	s.closeMu.RLock()
	if s.closed {
		s.closeMu.RUnlock()
		return errClosed()
	}
	select {
	case s.jobs <- j:
		s.closeMu.RUnlock()
	case <-ctx.Done():
		s.closeMu.RUnlock()
		return ctx.Err()
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
	return nil
}

// write is the writer goroutine. It commits what waits and waits for nothing:
// while one group is on its way to the disk the next one gathers.
func (s *Store) write() {
	defer close(s.done)
	a := newApplier(s.writer, s.codec)
	group := make([]*job, 0, maxGroup)
	for j := range s.jobs {
		group = append(group[:0], j)
	gather:
		for len(group) < maxGroup {
			select {
			case j, ok := <-s.jobs:
				if !ok {
					break gather // the range ends as well, after this group
				}
				group = append(group, j)
			default:
				break gather
			}
		}
		s.commit(a, group)
		for i, j := range group {
			close(j.done)
			group[i] = nil
		}
	}
}

// commit runs group in one transaction and leaves each job's error in it.
func (s *Store) commit(a *applier, group []*job) {
	if s.memory {
		s.memoryMu.Lock()
		defer s.memoryMu.Unlock()
	}
	n, err := a.run(group)
	if err != nil && len(group) > 1 && n < 0 {
		// The whole transaction was lost to one of them. Alone, each can
		// fail only itself.
		for i := range group {
			s.commitOne(a, group[i:i+1])
		}
		return
	}
	s.settle(group, n, err)
}

func (s *Store) commitOne(a *applier, one []*job) {
	n, err := a.run(one)
	s.settle(one, n, err)
}

func (s *Store) settle(group []*job, n int, err error) {
	if err != nil {
		for _, j := range group {
			if j.err == nil {
				j.err = err
			}
		}
		return
	}
	if n > 0 {
		s.commits.Add(int64(n))
		s.groups.Add(1)
	}
}

// run applies the jobs in one transaction. Jobs that are refused get their
// error and leave no trace. n is how many were committed; it is negative, with
// err, if applying a job broke the transaction.
func (a *applier) run(group []*job) (n int, err error) {
	if _, _, err := a.c.exec("BEGIN IMMEDIATE"); err != nil {
		return 0, err
	}
	for _, j := range group {
		j.err = nil
		if len(group) > 1 {
			if _, _, err := a.c.exec("SAVEPOINT tx"); err != nil {
				a.rollback()
				return -1, err
			}
		}
		j.err = a.apply(j)
		switch {
		case j.err == nil:
			n++
		case len(group) == 1:
			a.rollback()
			return 0, nil
		default:
			a.forget()
			if _, _, err := a.c.exec("ROLLBACK TO tx"); err != nil {
				a.rollback()
				return -1, err
			}
		}
		if len(group) > 1 {
			if _, _, err := a.c.exec("RELEASE tx"); err != nil {
				a.rollback()
				return -1, err
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
