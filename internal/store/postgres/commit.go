package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/internal/store/form"
)

// change is a Tx on its way to the server.
type change struct {
	tx     *store.Tx
	tenant int64
	id     commitID
	// fenced is the run whose row names the change, or "": then the table commits does.
	fenced string
	// expects is the name that the run's row must have: that of the change before. A
	// server that is slow to notice that a connection is gone may still make what was
	// sent over it, after it was sent again and others followed.
	expects commitID
	// strict is whether another name means that the run is another's: it claims what
	// was read before.
	strict   bool
	journals []form.Journal
	models   []int64 // of tx.Usage
}

// Commit applies tx atomically and durably; see package store and the promises of this
// one. A transaction that is under way is waited for although ctx has ended, at most as
// long as a statement may take, so that its outcome is known. tx must not be changed
// before Commit returned.
func (s *Store) Commit(ctx context.Context, tx *store.Tx) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.active.Done()
	if err := s.presence.allowed(); err != nil {
		return err
	}
	if tx.Tenant != "" && tx.Empty() && len(tx.Fences) == 0 {
		return nil
	}
	if err := form.Check(tx); err != nil {
		return err
	}
	c := &change{tx: tx}
	var err error
	// Without its entries: this store can not keep their rows together.
	if c.journals, err = s.codec.Journals(&store.Tx{Events: tx.Events, Trace: tx.Trace}); err != nil {
		return form.Invalid("%w", err)
	}
	retry := s.retrying(ctx)
	if err := s.keysOf(ctx, c, retry); err != nil {
		return s.target.wrap("postgres.Commit", err)
	}
	if len(tx.Fences) > 0 && len(tx.Runs) > 0 && tx.Fences[0].RunID == tx.Runs[0].ID && len(tx.NewRuns) == 0 {
		c.fenced = tx.Runs[0].ID
		s.mu.Lock()
		c.expects = s.last[runName{c.tenant, c.fenced}]
		if tx.Runs[0].Epoch > tx.Fences[0].Epoch {
			if read, ok := s.loaded[runName{c.tenant, c.fenced}]; ok {
				c.expects, c.strict = read, true
			}
		}
		s.mu.Unlock()
	}
	// A Tx whose outcome nobody knew keeps its name.
	unknown := copy(c.id[:], tx.Attempt) > 0
	if !unknown {
		if c.id, err = s.newID(); err != nil {
			return err
		}
	}
	return s.settle(ctx, c, retry, unknown)
}

// settle makes the change, as often as it takes to know what became of it.
func (s *Store) settle(ctx context.Context, c *change, retry *retrying, unknown bool) error {
	for {
		o, err := s.attempt(ctx, c)
		switch o {
		case made:
			c.known()
			if c.fenced != "" {
				s.mu.Lock()
				remember(s.last, runName{c.tenant, c.fenced}, c.id)
				if c.strict {
					delete(s.loaded, runName{c.tenant, c.fenced})
				}
				s.mu.Unlock()
			}
			return nil
		case refuse:
			var said *fault.Error
			if unknown && !errors.As(err, &said) {
				// The server takes nothing any more, so it can not be asked either.
				return s.gaveUp(ctx, c, unknown, err)
			}
			c.known()
			return s.target.wrap("postgres.Commit", err)
		case lost:
			unknown = true
		case again, notMade:
		}
		if o != again {
			err = retry.pause(err)
		}
		if barred := s.presence.allowed(); err == nil {
			err = barred
		}
		if err != nil {
			return s.gaveUp(ctx, c, unknown, err)
		}
	}
}

// known forgets the name under which a Tx might have been committed.
func (c *change) known() {
	if c.tx.Attempt != nil {
		c.tx.Attempt = nil
	}
}

// gaveUp is the error of a change that was not made, or that nobody knows of.
func (s *Store) gaveUp(ctx context.Context, c *change, unknown bool, err error) error {
	if !unknown {
		if e := ctx.Err(); e != nil {
			return e
		}
		return s.target.wrap("postgres.Commit", err)
	}
	c.tx.Attempt = c.id[:]
	err = s.target.wrap("postgres.Commit", err)
	if e := ctx.Err(); e != nil {
		err = e
	}
	return &fault.Error{Op: "postgres.Commit", Kind: fault.Unavailable, Err: fmt.Errorf("%w: %w", store.ErrUnknown, err),
		Hint: "It may have happened: look before it is done again."}
}

// outcome is what became of an attempt.
type outcome int

const (
	made    outcome = iota
	refuse          // for good; the error says why
	again           // not made, and now it is known how
	notMade         // the error may pass
	lost            // made or not
)

// attempt sends the change once and finds out what became of it.
func (s *Store) attempt(ctx context.Context, c *change) (outcome, error) {
	b := &batch{}
	s.statements(b, c)
	acquire, done := context.WithTimeout(ctx, s.opts.RetryFor)
	pool := s.pool
	if len(c.tx.Nodes) > 0 {
		pool = s.ahead
	}
	conn, err := pool.Acquire(acquire)
	done()
	if err != nil {
		if passing(err) || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) { // all connections are busy
			return notMade, err
		}
		return refuse, err
	}
	defer conn.Release()
	// Who gave up in the middle would not know what happened.
	ctx, done = context.WithTimeout(context.WithoutCancel(ctx), s.opts.StatementTimeout+10*time.Second)
	defer done()
	s.sent.Add(1)
	results := conn.SendBatch(ctx, &b.Batch)
	at := 0
	for ; at < len(b.unique) && err == nil; at++ {
		_, err = results.Exec()
	}
	// All statements are one transaction, which ends when the answer to them all has
	// come: what they said one by one was not yet committed.
	if e := results.Close(); err == nil {
		err = e
	}
	switch {
	case err == nil:
		return made, nil
	case !settled(err):
		if passing(err) {
			s.lost.Add(1)
			return lost, err
		}
		return refuse, err
	}
	conn.Release() // what follows asks again
	return s.why(ctx, c, b.unique[at-1], err)
}

// why finds out what an error of the server means for a change that it ended.
func (s *Store) why(ctx context.Context, c *change, unique func(context.Context) error, err error) (outcome, error) {
	e := pgError(err)
	switch {
	case e.Code == stateLook:
		return s.look(ctx, c)
	case e.Code == stateExhausted:
		return refuse, c.exhausted(e.Message)
	case e.Code == codeUnique && e.ConstraintName == "commits_pkey":
		s.found.Add(1)
		return made, nil
	case e.Code == codeUnique && unique != nil:
		if err := unique(ctx); err != nil {
			if passing(err) {
				return notMade, err
			}
			return refuse, err
		}
		return notMade, err // what stood in the way is gone
	}
	if refusal := refused(e); refusal != nil {
		return refuse, refusal
	}
	if passing(err) {
		return notMade, err
	}
	return refuse, err
}

// look decides by the row of the run that a change is fenced by.
func (s *Store) look(ctx context.Context, c *change) (outcome, error) {
	var epoch int64
	var id commitID
	ok, err := get(ctx, s.pool, "SELECT epoch, uuid_send(commit_id) FROM runs WHERE tenant = $1 AND id = $2", func(r row) {
		epoch = r.Int(0)
		copy(id[:], r.Blob(1))
	}, c.tenant, c.fenced)
	fence := c.tx.Fences[0].Epoch
	switch {
	case err != nil && passing(err):
		return notMade, err
	case err != nil:
		return refuse, err
	case !ok:
		return refuse, form.Refuse(store.ErrNotFound, "run %s", c.fenced)
	case id == c.id:
		s.found.Add(1)
		return made, nil
	case epoch != fence:
		return refuse, form.Refuse(store.ErrFenced, "run %s has epoch %d and not %d", c.fenced, epoch, fence)
	case c.strict:
		return refuse, form.Refuse(store.ErrFenced, "run %s was changed by another process since it was read", c.fenced)
	}
	c.expects = id
	return again, nil
}

// keysOf finds the keys of the tenant and the models of a change. Their rows are made
// ahead of it and stay for good.
func (s *Store) keysOf(ctx context.Context, c *change, retry *retrying) error {
	var err error
	key := func(known func() (int64, bool), note func(int64), insert, sel string, args ...any) (k int64) {
		if err != nil {
			return 0
		}
		s.mu.Lock()
		k, ok := known()
		s.mu.Unlock()
		if ok {
			return k
		}
		err = retry.do(func() error {
			// The second statement sees what the first one met.
			for _, sql := range []string{sel, insert, sel} {
				found, err := get(ctx, s.pool, sql, func(r row) { k = r.Int(0) }, args...)
				if err != nil || found {
					return err
				}
			}
			return fmt.Errorf("a row of %v can not be made", args)
		})
		if err == nil {
			s.mu.Lock()
			note(k)
			s.mu.Unlock()
		}
		return k
	}
	tx := c.tx
	c.tenant = key(func() (int64, bool) { k, ok := s.tenants[tx.Tenant]; return k, ok }, func(k int64) { remember(s.tenants, tx.Tenant, k) },
		"INSERT INTO tenants (id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING key", "SELECT key FROM tenants WHERE id = $1", tx.Tenant)
	for _, u := range tx.Usage {
		name := modelName{u.Provider, u.Model}
		c.models = append(c.models, key(func() (int64, bool) { k, ok := s.models[name]; return k, ok }, func(k int64) { remember(s.models, name, k) },
			"INSERT INTO models (provider, model) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING key", "SELECT key FROM models WHERE provider = $1 AND model = $2",
			bytes(u.Provider), bytes(u.Model)))
	}
	if e := pgError(err); e != nil && refused(e) != nil {
		return refused(e)
	}
	return err
}

// retrying is the patience of one commit or read.
type retrying struct {
	ctx     context.Context
	closing <-chan struct{}
	until   time.Time
	n       int
}

func (s *Store) retrying(ctx context.Context) *retrying {
	return &retrying{ctx: ctx, closing: s.closing, until: time.Now().Add(s.opts.RetryFor)}
}

const (
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// pause waits before the next attempt, or gives err back if there is none.
func (r *retrying) pause(err error) error {
	pause := min(firstPause<<min(r.n, 10), longestPause)
	r.n++
	if time.Now().Add(pause).After(r.until) {
		return err
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.ctx.Done():
	case <-r.closing:
	}
	return err
}

// do calls f until it works, or fails for good.
func (r *retrying) do(f func() error) error {
	for {
		err := f()
		if err == nil || !passing(err) {
			return err
		}
		if err := r.pause(err); err != nil {
			return err
		}
	}
}

// batch is the statements of one change.
type batch struct {
	pgx.Batch
	// unique tells, for each statement, which row was in the way of a unique index.
	unique []func(context.Context) error
}

func (b *batch) add(sql string, args ...any) { b.addUnique(nil, sql, args...) }

func (b *batch) addUnique(unique func(context.Context) error, sql string, args ...any) {
	b.Queue(sql, args...)
	b.unique = append(b.unique, unique)
}
