package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/fault"
	"agentd/tool"
)

// Options change how a [Manager] works. The zero value of a field means its
// default.
type Options struct {
	// Log receives what happens; default: nothing is logged.
	Log *slog.Logger
	// Version is what servers are told about agentd; default "dev".
	Version string
	// Reserved are names that tools of servers must not take, such as those of
	// built-in tools: a tool of that name is offered as server_tool.
	Reserved []string
	// MaxMessageBytes bounds one message of a server; default 10 MiB.
	MaxMessageBytes int
	// MaxTools bounds the tools of one server; default 2,000.
	MaxTools int
	// TerminateGrace is how long a program may take to end after its input was
	// closed, and again after it was asked to; default 2s.
	TerminateGrace time.Duration
	// MinPause and MaxPause bound the pauses between attempts to connect, which
	// double; defaults 500ms and 60s.
	MinPause, MaxPause time.Duration
	// PingEvery is how often an idle server is asked whether it lives; default 30s.
	PingEvery time.Duration
	// Now is the clock of states and logs; default time.Now.
	Now func() time.Time
}

// Manager keeps the connections to all configured servers. It is safe for
// concurrent use and must be closed.
type Manager struct {
	opts    Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	servers map[string]*server
	schemas *tool.Validator

	mu     sync.Mutex // guards closed and starting
	closed bool
}

// Problem is a server that gives no tools, and why.
type Problem struct {
	Server string
	// Err is a *fault.Error.
	Err error
	// Stale is true where the tools that the server had are still offered;
	// calls try to connect again.
	Stale bool
}

// New returns a manager of the servers. Nothing is started yet. The error joins
// what is wrong with the configurations.
func New(cfgs map[string]ServerConfig, opts *Options) (*Manager, error) {
	m := &Manager{servers: map[string]*server{}, schemas: tool.NewValidator()}
	if opts != nil {
		m.opts = *opts
	}
	m.opts.setDefaults()
	m.ctx, m.cancel = context.WithCancel(context.Background())
	for _, name := range slices.Sorted(maps.Keys(cfgs)) {
		cfg := cfgs[name]
		if err := cfg.Validate(); err != nil {
			m.cancel()
			return nil, &fault.Error{Op: "mcp.New", Kind: fault.Invalid, Field: "servers." + name, Err: err, Hint: "see configs/mcp/servers.yaml"}
		}
		m.servers[name] = newServer(m, name, cfg.withDefaults())
	}
	return m, nil
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = 10 << 20
	}
	if o.MaxTools == 0 {
		o.MaxTools = 2000
	}
	if o.TerminateGrace == 0 {
		o.TerminateGrace = 2 * time.Second
	}
	if o.MinPause == 0 {
		o.MinPause = 500 * time.Millisecond
	}
	if o.MaxPause == 0 {
		o.MaxPause = 60 * time.Second
	}
	if o.PingEvery == 0 {
		o.PingEvery = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// newServer builds a server whose configuration was validated.
func newServer(m *Manager, name string, cfg ServerConfig) *server {
	s := &server{
		name: name, cfg: cfg, m: m, log: m.opts.Log, state: Idle,
		slots: make(chan struct{}, cfg.ConcurrencyLimit), per: map[string]chan struct{}{},
		wake: make(chan struct{}, 1), news: make(chan struct{}),
	}
	s.access.allow, _ = compileRules(cfg.Allowlist)
	s.access.deny, _ = compileRules(cfg.Denylist)
	s.approval, _ = compileApproval(cfg.RequiresApproval)
	s.redactor, _ = newRedactor(cfg.Redaction)
	return s
}

// Start begins to connect to the named servers, or to all if none is named, and
// does not wait. Connections end with ctx or [Manager.Close]. Without Start, a
// server is connected when its tools are first asked for.
func (m *Manager) Start(ctx context.Context, names ...string) {
	context.AfterFunc(ctx, m.cancel)
	if len(names) == 0 {
		names = m.Names()
	}
	for _, name := range names {
		if s := m.servers[name]; s != nil {
			m.begin(s)
		}
	}
}

func (m *Manager) begin(s *server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		s.start()
	}
}

// Names lists the configured servers, sorted.
func (m *Manager) Names() []string { return slices.Sorted(maps.Keys(m.servers)) }

// Tools gives the tools of the named servers, sorted by name, and the servers
// that could not be reached. It waits for the first attempt to connect to each,
// at most for its connect timeout; nil names means no servers.
//
// A tool is called what its server calls it, with characters outside
// [A-Za-z0-9_-] replaced by _. Where that is the name of another server's tool
// or a reserved name, all of the tools with that name are called server_tool
// instead. Names that had to be changed otherwise, or are too long, end in a
// hash of the original. The names depend on the servers that are named and on
// what they offer, and on nothing else.
//
// The tools are a snapshot: they keep their specs when the server changes its own.
func (m *Manager) Tools(ctx context.Context, names []string) ([]tool.Tool, []Problem) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		s := m.servers[name]
		if s == nil {
			errs[i] = &fault.Error{Op: "mcp", Kind: fault.NotFound, Field: "tools.mcp_servers",
				Err: fmt.Errorf("no MCP server is named %q", name), Hint: "servers: " + strings.Join(m.Names(), ", ")}
			continue
		}
		m.begin(s)
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeouts.Connect+time.Second,
				fmt.Errorf("no connection within %s", s.cfg.Timeouts.Connect))
			defer cancel()
			if err := s.settled(ctx); err != nil {
				errs[i] = s.fault(fault.Unavailable, s.hint(), "%s", s.redactor.text(network(err).Error()))
			}
		})
	}
	wg.Wait()
	var all []remoteTool
	var problems []Problem
	for i, name := range names {
		s := m.servers[name]
		stale := false
		if s != nil {
			s.mu.Lock()
			all = append(all, s.tools...)
			stale = s.listed
			s.mu.Unlock()
		}
		if errs[i] != nil {
			problems = append(problems, Problem{Server: name, Err: errs[i], Stale: stale})
		}
	}
	return expose(all, m.opts.Reserved), problems
}

// Connecting lists the servers whose first attempt to connect is under way, sorted.
func (m *Manager) Connecting() []string {
	return slices.DeleteFunc(m.Names(), func(name string) bool {
		s := m.servers[name]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.state != Connecting
	})
}

// Reach tries to connect to the named servers and returns when each of them is
// connected or its connect timeout is over, whatever the number of attempts in
// between, or when ctx ends. What became of it is what [Manager.Tools] says.
func (m *Manager) Reach(ctx context.Context, names []string) {
	var wg sync.WaitGroup
	for _, name := range names {
		if s := m.servers[name]; s != nil {
			m.begin(s)
			wg.Go(func() { s.reach(ctx) })
		}
	}
	wg.Wait()
}

func (s *server) hint() string {
	if s.cfg.Transport == "http" {
		return "check url and headers of servers." + s.name
	}
	return "run its command by hand: " + s.cfg.Command
}

// Redact masks, in arguments or a result of a tool, what the configuration of
// the server says. name may be the server's name of the tool or the one the
// model knows. Data that is not JSON is masked as a whole; an unknown server
// masks nothing.
func (m *Manager) Redact(server, name string, data json.RawMessage) json.RawMessage {
	s := m.servers[server]
	if s == nil {
		return data
	}
	return s.redact(name, data)
}

func (s *server) redact(name string, data json.RawMessage) json.RawMessage {
	data = s.redactor.json(data)
	for own, cfg := range s.cfg.Tools {
		if len(cfg.Redaction) > 0 && s.calls(own, name) {
			if r, err := newRedactor(cfg.Redaction); err == nil {
				data = r.json(data)
			}
		}
	}
	return data
}

// Close ends all connections and processes and returns when they are gone.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
	return nil
}

// sdkLog gives the SDK a logger that knows the server.
func (s *server) sdkLog() *slog.Logger { return s.log.With("server", s.name) }
