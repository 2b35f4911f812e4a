package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentd/fault"
	"agentd/tool"
)

// State is where the connection to a server stands.
type State string

// The states.
const (
	Idle       State = "idle"       // nobody has asked for it yet
	Connecting State = "connecting" // the first attempt is under way
	Ready      State = "ready"      // calls can be made
	Down       State = "down"       // it failed and will be tried again
	Closed     State = "closed"     // the manager was closed
)

// errNotConnected means that a call was never sent.
var errNotConnected = errors.New("the server is not connected")

// server keeps the connection to one server.
type server struct {
	name     string
	cfg      ServerConfig // with defaults
	m        *Manager
	log      *slog.Logger
	access   access
	approval approval
	redactor *redactor
	slots    chan struct{}
	legacy   atomic.Bool // the newer protocol was tried in vain
	starting sync.Once
	wake     chan struct{}

	mu       sync.Mutex
	state    State
	err      error // why it is down
	attempts int   // finished ones
	restarts int
	conn     *conn // while ready
	news     chan struct{}
	tools    []remoteTool // of the newest list
	listed   bool
	per      map[string]chan struct{} // slots of single tools
	waiting  int
}

// set changes the state and tells everybody who waits.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.news)
	s.news = make(chan struct{})
}

// start begins to keep the connection. It is called under the manager's lock.
func (s *server) start() {
	s.starting.Do(func() {
		s.set(func() { s.state = Connecting })
		s.m.running.Go(func() { s.keep(s.m.ctx) })
	})
}

// keep connects and connects again until ctx ends.
func (s *server) keep(ctx context.Context) {
	pause := s.m.opts.MinPause
	for ctx.Err() == nil {
		began := s.m.opts.Now()
		c, tools, err := s.connect(ctx)
		if err != nil {
			s.fail(ctx, err)
		} else {
			s.set(func() {
				if s.listed {
					s.restarts++
				}
				s.state, s.err, s.conn, s.tools, s.listed = Ready, nil, c, tools, true
				s.attempts++
			})
			s.log.Info("an MCP server is connected", "server", s.name, "tools", len(tools), "duration", s.m.opts.Now().Sub(began))
			err = s.attend(ctx, c)
			s.set(func() { s.conn = nil; s.state = Down; s.err = err })
			s.shut(ctx, c, err)
			if ctx.Err() == nil {
				s.log.Warn("the connection to an MCP server ended", "server", s.name, "error", err)
			}
			if s.m.opts.Now().Sub(began) > s.m.opts.MaxPause {
				pause = s.m.opts.MinPause
			}
		}
		if errors.Is(err, sdk.ErrSessionMissing) && s.m.opts.Now().Sub(began) > pause {
			continue // the server is there, and has only forgotten us
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		pause = min(2*pause, s.m.opts.MaxPause)
	}
	s.set(func() { s.state, s.conn = Closed, nil })
}

func (s *server) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.set(func() { s.state, s.err = Down, err; s.attempts++ })
	s.log.Warn("an MCP server can not be reached", "server", s.name, "error", err)
}

// connect makes a connection and reads the tools, within the connect timeout.
func (s *server) connect(ctx context.Context) (*conn, []remoteTool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	c, err := s.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := c.list(ctx, s.m.opts.MaxTools)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the server did not list its tools within %s", s.cfg.Timeouts.Connect)
		}
		if u := (*unreadable)(nil); errors.As(err, &u) {
			s.log.Warn("the list of tools of an MCP server can not be read", "server", s.name, "error", s.redactor.text(u.err.Error()))
		}
		s.shut(ctx, c, err)
		return nil, nil, err
	}
	return c, s.describe(list), nil
}

// shut closes a connection within a bounded time, whatever became of ctx.
func (s *server) shut(ctx context.Context, c *conn, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*s.m.opts.TerminateGrace+time.Second)
	defer cancel()
	c.close(ctx, fmt.Errorf("%w: %w", errDead, why))
}

// attend looks after a live connection until it ends, and says why it did.
func (s *server) attend(ctx context.Context, c *conn) error {
	ended := make(chan error, 1)
	go func() { ended <- c.session.Wait() }()
	var exited chan struct{}
	if c.proc != nil {
		exited = c.proc.exited
	}
	ping := time.NewTicker(s.m.opts.PingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.New("agentd is stopping")
		case err := <-ended:
			return ending(err)
		case <-c.ctx.Done():
			return ending(context.Cause(c.ctx))
		case <-exited:
			how := "status 0"
			if c.proc.status != nil {
				how = c.proc.status.Error()
			}
			return fmt.Errorf("the server's program ended (%s)", how)
		case <-c.changed:
			s.refresh(ctx, c)
		case <-s.wake: // somebody hurried while it was ready
		case <-ping.C:
			if c.modern() || c.calls.Load() > 0 {
				continue // a server that works may be too busy to answer
			}
			if err := s.ping(ctx, c); err != nil && c.calls.Load() == 0 && ctx.Err() == nil {
				return fmt.Errorf("the server does not answer a ping: %w", err)
			}
		}
	}
}

// ending says in words why a connection ended.
func ending(err error) error {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return errors.New("the server closed the connection")
	case errors.Is(err, sdk.ErrSessionMissing):
		return fmt.Errorf("the server has forgotten the session: %w", sdk.ErrSessionMissing)
	}
	return err
}

func (s *server) ping(ctx context.Context, c *conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.session.Ping(ctx, nil) }()
	select {
	case err := <-done:
		var wire *jsonrpc.Error
		if errors.As(err, &wire) && wire.Code != codeLost {
			return nil // it answered, if only to say that it knows no ping
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh reads the tools again. Tools that were handed out keep working.
func (s *server) refresh(ctx context.Context, c *conn) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	list, err := c.list(ctx, s.m.opts.MaxTools)
	if err != nil {
		s.log.Warn("the changed tools of an MCP server can not be read; the old ones stay", "server", s.name, "error", err)
		return
	}
	tools := s.describe(list)
	same := false
	s.set(func() { same = reflect.DeepEqual(s.tools, tools); s.tools = tools })
	if same {
		return
	}
	s.log.Info("the tools of an MCP server changed", "server", s.name, "tools", len(tools))
}

// live gives the connection, waiting for at most one attempt to make one.
func (s *server) live(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	first := true
	before := 0
	for {
		s.mu.Lock()
		state, c, err, attempts, news := s.state, s.conn, s.err, s.attempts, s.news
		s.mu.Unlock()
		switch {
		case state == Ready && c != nil:
			return c, nil
		case state == Closed:
			return nil, fmt.Errorf("%w: agentd is stopping", errNotConnected)
		case first:
			first, before = false, attempts
			select {
			case s.wake <- struct{}{}:
			default:
			}
		case state == Down && attempts > before:
			return nil, fmt.Errorf("%w: %w", errNotConnected, err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("no connection within %s", s.cfg.Timeouts.Connect)
			}
			return nil, fmt.Errorf("%w: %w", errNotConnected, err)
		}
	}
}

// reach waits until the server is connected or its connect timeout is over, and
// hurries the attempts meanwhile: left alone they come ever more rarely.
func (s *server) reach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	pause := time.Duration(0)
	for {
		s.mu.Lock()
		state, news := s.state, s.news
		s.mu.Unlock()
		if state == Ready || state == Closed {
			return
		}
		hurry := time.NewTimer(pause)
		select {
		case <-hurry.C:
			select {
			case s.wake <- struct{}{}:
			default:
			}
			pause = max(2*pause, s.m.opts.MinPause)
		case <-news:
		case <-ctx.Done():
		}
		hurry.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// settled waits until the first attempt has ended one way or the other.
func (s *server) settled(ctx context.Context) error {
	for {
		s.mu.Lock()
		state, err, news := s.state, s.err, s.news
		s.mu.Unlock()
		switch {
		case state == Ready:
			return nil
		case state == Down:
			return err
		case state == Closed:
			return errors.New("the manager is closed")
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drop gives up a connection that turned out to be useless, before the next
// call takes it.
func (s *server) drop(c *conn, err error) {
	s.set(func() {
		if s.conn == c {
			s.conn, s.state, s.err = nil, Down, err
		}
	})
	c.cancel(err)
}

// slot waits for a free place. Callers that wait for one tool's place do not
// hold a place of the server.
func (s *server) slot(ctx context.Context, name string) (release func(), err error) {
	var places []chan struct{}
	if limit := s.cfg.Tools[name].ConcurrencyLimit; limit > 0 {
		s.mu.Lock()
		if s.per[name] == nil {
			s.per[name] = make(chan struct{}, limit)
		}
		places = append(places, s.per[name])
		s.mu.Unlock()
	}
	places = append(places, s.slots)
	var held []chan struct{}
	release = func() {
		for _, p := range held {
			<-p
		}
	}
	for _, p := range places {
		select {
		case p <- struct{}{}:
			held = append(held, p)
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
}

// transportFailed classifies errors of the network.
func transportFailed(err error) (yes, sent bool) {
	var op *net.OpError
	if errors.As(err, &op) {
		return true, op.Op != "dial"
	}
	var nerr net.Error
	if errors.As(err, &nerr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return true, true
	}
	return false, true
}

func (s *server) fault(kind fault.Kind, hint, format string, args ...any) *fault.Error {
	return &fault.Error{Op: "mcp", Kind: kind, Err: fmt.Errorf("server %q: "+format, append([]any{s.name}, args...)...), Hint: hint}
}

var _ tool.Tool = (*mcpTool)(nil)
