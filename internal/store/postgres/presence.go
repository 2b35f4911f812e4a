package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"agentd/fault"
)

// presence tells other processes that this one uses the store: a session of its own
// holds an advisory lock, shared by all who write, or for one alone. The lock ends
// with the session, and so with the process, however it ends.
type presence struct {
	t         *target
	exclusive bool
	stop      context.CancelFunc
	done      chan struct{}
	// barred is why nothing may be written, or nil: the session was lost, and by the
	// time it was back somebody else had the store for himself.
	barred atomic.Pointer[error]
}

// presencePause is how long to wait before a lost session is made again.
const presencePause = 200 * time.Millisecond

// enter takes the place of this process.
func (t *target) enter(ctx context.Context, exclusive bool) (*presence, error) {
	c, err := t.take(ctx, exclusive)
	if err != nil {
		return nil, err
	}
	p := &presence{t: t, exclusive: exclusive, done: make(chan struct{})}
	live, stop := context.WithCancel(context.Background())
	p.stop = stop
	go p.hold(live, c)
	return p, nil
}

// take connects and takes the lock.
func (t *target) take(ctx context.Context, exclusive bool) (*pgx.Conn, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	sql := "SELECT pg_try_advisory_lock_shared($1, $2)"
	if exclusive {
		sql = "SELECT pg_try_advisory_lock($1, $2)"
	}
	got := false
	if _, err = get(ctx, c, sql, func(r row) { got = r.Int(0) == 1 }, int32(lockClass), t.lock); err == nil && !got {
		err = t.inUse(ctx, c, exclusive)
	}
	if err != nil {
		closeSoon(c)
		return nil, err
	}
	return c, nil
}

// inUse says who has the store.
func (t *target) inUse(ctx context.Context, q querier, exclusive bool) error {
	var who []string
	_ = query(ctx, q, `SELECT a.application_name, coalesce(host(a.client_addr), 'this machine'), a.pid::bigint FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1 AND l.objid = $2 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
		func(r row) error {
			who = append(who, fmt.Sprintf("%s on %s (server process %d)", r.Text(0), r.Text(1), r.Int(2)))
			return nil
		}, uint32(lockClass), uint32(t.lock)) //nolint:gosec // the same bits
	e := &fault.Error{Op: "postgres.Open", Kind: fault.Conflict, Err: fmt.Errorf("%s is in use by %s", t.name, strings.Join(who, ", ")), Hint: "Stop it first."}
	if len(who) == 0 {
		e.Err = fmt.Errorf("%s is in use", t.name)
	}
	if !exclusive {
		e.Err = fmt.Errorf("%w, which copies or repairs it", e.Err)
		e.Hint = "Try again when that is done."
	}
	return e
}

// hold waits for the session to end, and makes it again until it is told to stop.
func (p *presence) hold(ctx context.Context, c *pgx.Conn) {
	defer close(p.done)
	for {
		// Nothing is listened for: this returns when the session or ctx ends.
		_, err := c.WaitForNotification(ctx)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			letGo(c)
			return
		}
		closeSoon(c)
		for c = nil; c == nil; {
			if ctx.Err() != nil {
				return
			}
			if c, err = p.t.take(ctx, p.exclusive); err == nil {
				p.barred.Store(nil)
				break
			}
			var f *fault.Error
			if errors.As(err, &f) && f.Kind == fault.Conflict {
				p.barred.Store(&err)
			} else if p.exclusive {
				lost := error(&fault.Error{Op: "postgres", Kind: fault.Unavailable, Err: fmt.Errorf("%s: the session that kept others out is lost", p.t.name), Hint: "Start again."})
				p.barred.Store(&lost)
				return
			}
			select {
			case <-time.After(presencePause):
			case <-ctx.Done():
			}
		}
	}
}

// letGo ends a session whose lock is to be free when this returns: the server ends it
// some time after it was told to.
func letGo(c *pgx.Conn) {
	if !c.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = c.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	}
	closeSoon(c)
}

// allowed is an error while nothing may be written.
func (p *presence) allowed() error {
	if p == nil {
		return &fault.Error{Op: "postgres.Commit", Kind: fault.Unsupported, Err: errors.New("the store was opened for reading alone")}
	}
	if err := p.barred.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *presence) close() {
	p.stop()
	<-p.done
}
