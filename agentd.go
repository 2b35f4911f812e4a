package agentd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/keys"
	"agentd/internal/profile"
	"agentd/internal/server"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/internal/timetable"
	"agentd/message"
	"agentd/tool"
)

// Config says what a runtime is made of. The zero value uses the embedded
// profiles and keeps nothing on disk.
type Config struct {
	// Configs is the folder with agents/, mcp/ and agentd.yaml; empty for the
	// embedded defaults.
	Configs string
	// Data is the folder of the store, or the URL of a PostgreSQL database
	// (postgres://…); empty or ":memory:" keeps nothing.
	Data string
	// Tenant is whose sessions and runs the runtime's methods see; empty:
	// "default", which is also that of servers without API keys. Servers of the
	// runtime serve every tenant.
	Tenant string
	// Workspace is the folder that built-in tools may read; empty for what
	// agentd.yaml says, else the working folder.
	Workspace string
	// Tools are added to every profile that names them, or "extra", under
	// tools.builtin.
	Tools []tool.Tool
	// TransformContext may change what the model sees of a conversation ahead
	// of each model call. Nil changes nothing.
	TransformContext func(ctx context.Context, runID string, msgs []message.Message) ([]message.Message, error)
	// ConvertToLLM turns a conversation into what models take: this is where
	// messages of an application's own roles (see [Runtime.Append]) become user
	// messages. Nil leaves them out.
	ConvertToLLM func([]message.Message) []message.Message
	// Log gets what operators must know; nil discards.
	Log *slog.Logger
	// Env looks up environment variables; nil means the process's.
	Env func(name string) (string, bool)
	// ReadOnly opens an existing store beside the process that has it open,
	// to look at it. Nothing is started or gone on with; what would change
	// something fails with kind Unsupported, Handler and Server too. Watch
	// follows no run that goes on: use Replay. A configuration that can not be
	// used is no obstacle: it is logged, and what tools were given and gave
	// is hidden whole, because nobody knows what must be.
	ReadOnly bool
	// Dormant leaves the runs alone that were under way: only those that are
	// named to a method go on, and those of a session in which a run is started,
	// which they are ahead of. It is for programs that come and go: one that
	// cancels a run, or makes one, does not take over what others left.
	Dormant bool
	// NoWorker takes requests and leaves it to others that share the store to drive
	// runs. Alone, with an embedded store, it is an error.
	NoWorker bool
	// Engine says who decides which node of a shared store drives a run, instead of
	// agentd.yaml's cluster.engine: "store", or temporal://host:port/namespace.
	Engine string
	// Pools is what a node of a shared store does instead of agentd.yaml's
	// cluster.pools: run, model, tool, model.NAME and tool.NAME between commas.
	Pools string
}

// Runtime runs agents. Its methods are safe for concurrent use.
type Runtime struct {
	config *profile.Config
	store  store.Store
	engine *engine.Engine
	agents *agents
	log    *slog.Logger
	tenant string
	keys   *keys.Keys
	// readOnly refuses what would change something.
	readOnly bool
	// dormant: what was under way is not gone on with.
	dormant bool
	// shared: others may use the store, too; closeBus ends what connects them.
	shared   bool
	closeBus func() error
	// endSchedules ends what starts runs at certain times, or is nil.
	endSchedules func()
	timetable    *timetable.Table
	// distributor has runs driven where Temporal says, or is nil.
	distributor *distributor
	// observation is where logs, traces and metrics go.
	observation *observation
}

// Names from the engine that callers need.
type (
	// StartRequest starts a run.
	StartRequest = engine.StartRequest
	// Overrides narrow a profile for one run.
	Overrides = engine.Overrides
	// Run is a run as callers see it.
	Run = engine.Run
	// Interrupt is a wait for a person.
	Interrupt = engine.InterruptView
	// AnswerRequest answers an interrupt.
	AnswerRequest = engine.AnswerRequest
	// UnfinishedRun is a run that has not ended.
	UnfinishedRun = engine.UnfinishedRun
	// SessionRequest creates a session.
	SessionRequest = engine.SessionRequest
	// Session is one conversation.
	Session = engine.SessionView
	// SessionFilter selects sessions.
	SessionFilter = engine.SessionFilter
	// Entry is one entry of a session.
	Entry = engine.EntryView
	// ContextBlock is a piece of context that goes with what a person says.
	ContextBlock = engine.ContextBlock
	// ClientTool is a tool that the caller of a run performs.
	ClientTool = engine.ClientTool
)

// Text is an input of one text.
func Text(s string) []message.Block { return []message.Block{message.Text(s)} }

// Open makes a runtime and goes on with the runs that were under way when the
// last one on the same data ended. The error is a *fault.Error; for a wrong
// configuration it lists every problem with file and line.
func Open(ctx context.Context, cfg Config) (*Runtime, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Tenant == "" {
		cfg.Tenant = store.DefaultTenant
	}
	if err := keys.CheckTenant(cfg.Tenant); err != nil {
		return nil, err
	}
	conf, err := loadConfig(&cfg)
	if err != nil && cfg.ReadOnly {
		cfg.Log.Warn("the store is read without the configuration, which has errors", "error", err)
		conf, err = &profile.Config{}, nil
	}
	if err != nil {
		return nil, err
	}
	obs, err := newObservation(&cfg, conf)
	if err != nil {
		return nil, err
	}
	cfg.Log = obs.log
	st, err := openStore(ctx, cfg.Data, cfg.ReadOnly, &conf.Settings.Database)
	if err != nil {
		return nil, errors.Join(err, obs.close())
	}
	rt := &Runtime{observation: obs, config: conf, store: st, log: cfg.Log, tenant: cfg.Tenant, readOnly: cfg.ReadOnly, dormant: cfg.Dormant,
		keys: keys.New(keys.Config{Store: st, Log: cfg.Log})}
	if rt.agents, err = newAgents(&cfg, conf); err != nil && cfg.ReadOnly {
		cfg.Log.Warn("the store is read without the configuration, which can not be used here", "error", err)
		rt.config, cfg.Workspace = &profile.Config{}, ""
		rt.agents, err = newAgents(&cfg, rt.config)
	}
	if err != nil {
		return nil, errors.Join(err, st.Close(), obs.close())
	}
	rt.agents.learning = newLearning(&cfg, rt.config, rt.agents.servers, rt.agents.workspace.Dir(), st, rt.agents.env)
	var transform func(context.Context, engine.Ref, []message.Message) ([]message.Message, error)
	if f := cfg.TransformContext; f != nil {
		transform = func(ctx context.Context, ref engine.Ref, msgs []message.Message) ([]message.Message, error) {
			return f(ctx, ref.ID, msgs)
		}
	}
	cluster, closeBus, err := clusterOf(&cfg, &conf.Settings.Cluster, st)
	if err != nil {
		return nil, errors.Join(err, rt.agents.close(), st.Close(), obs.close())
	}
	rt.shared, rt.closeBus = cluster != nil, closeBus
	if cfg.NoWorker && !rt.shared {
		return nil, errors.Join(&fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Err: errors.New("nobody would drive the runs of this store: it has one process alone"),
			Hint: "Drop NoWorker (--no-worker), or name a PostgreSQL database as the store."}, rt.agents.close(), st.Close(), obs.close())
	}
	if rt.distributor, err = distribute(&cfg, conf, cluster); err != nil {
		return nil, errors.Join(err, closeBus(), rt.agents.close(), st.Close(), obs.close())
	}
	rt.engine, err = engine.New(engine.Config{Cluster: cluster, Store: st, Agents: rt.agents, Log: cfg.Log, Observer: obs.observer(), Traceparent: obs.traceparent(), TransformContext: transform, ConvertToLLM: cfg.ConvertToLLM,
		ReaderBuffer: conf.Settings.Limits.MaxEventLag, MaxConcurrentRuns: conf.Settings.Limits.MaxConcurrentRuns,
		MaxResultBytes: int(conf.Settings.Limits.MaxResultBytes), MaxPageBytes: int(conf.Settings.Limits.MaxPageBytes),
		MaxReferencesBytes: int(conf.Settings.Limits.MaxReferencesBytes), MaxContextBytes: int(conf.Settings.Limits.MaxContextBytes), ContextTimeout: conf.Settings.Limits.ContextTimeout.Std(), MaxSubagentDepth: conf.Settings.Limits.MaxSubagentDepth,
		ConversationBytes: conversationBytes(conf.Settings.Limits.ConversationCacheMB),
		Artifacts:         artifactLimits(&conf.Settings.Artifacts),
		Images:            session.ImageLimits{Count: conf.Settings.Images.MaxCount, Bytes: conf.Settings.Images.MaxBytes},
		Trees:             treeLimits(&conf.Settings.Sessions),
		Budgets:           budgets(&conf.Settings.Budgets),
		KeepEphemeral:     time.Duration(conf.Settings.Limits.EphemeralSessionsHours) * time.Hour})
	if err != nil {
		return nil, errors.Join(err, rt.distributor.close(), closeBus(), rt.agents.close(), st.Close(), obs.close())
	}
	rt.timetable = rt.newTimetable(rt.config)
	obs.engine.Store(rt.engine)
	obs.runtime.Store(rt)
	if cfg.ReadOnly || cfg.Dormant && !rt.shared {
		return rt, nil
	}
	n, err := rt.engine.Recover(ctx)
	if err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	if n > 0 {
		cfg.Log.Info("going on with unfinished runs", "runs", n)
	}
	if !cfg.Dormant { // a command goes on with what it is told of, with a configuration of its own perhaps
		rt.schedule()
	}
	rt.distributor.start(rt.engine)
	return rt, nil
}

func loadConfig(cfg *Config) (*profile.Config, error) {
	opts := &profile.Options{Env: cfg.Env, Builtins: builtinNames(cfg.Tools)}
	conf, problems := read(cfg.Configs, opts)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	for _, p := range problems {
		cfg.Log.Debug("configuration", "problem", p.String())
	}
	return conf, nil
}

// Close stops the runtime. Runs under way go on at the next Open on the same data.
func (rt *Runtime) Close() error {
	if rt.endSchedules != nil {
		rt.endSchedules()
	}
	return errors.Join(rt.distributor.close(), rt.engine.Close(), rt.closeBus(), rt.agents.close(), rt.observation.flush(), rt.store.Close(), rt.observation.close())
}

// writable is the error of a change to a runtime that was opened to look.
func (rt *Runtime) writable(op string) error {
	if !rt.readOnly {
		return nil
	}
	return &fault.Error{Op: "agentd." + op, Kind: fault.Unsupported, Err: errors.New("the store was opened for reading alone"),
		Hint: "Open it without ReadOnly, or use the server that has it open."}
}

// Start accepts a run; it is durable when Start returns. An empty profile is that
// of [Runtime.DefaultProfile]; if there is none, the error is of kind Invalid.
func (rt *Runtime) Start(ctx context.Context, req StartRequest) (*Run, error) {
	if err := rt.writable("Start"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	if rt.dormant && req.SessionID != "" {
		if _, err := rt.engine.RecoverSession(ctx, rt.ref(req.SessionID)); err != nil {
			return nil, err
		}
	}
	if req.Profile == "" {
		req.Profile, _ = rt.DefaultProfile()
	}
	return rt.engine.Start(ctx, req)
}

// Resume goes on with an unfinished run of a runtime that is Dormant, and with those
// of its session and of its children. It does not wait for them.
func (rt *Runtime) Resume(ctx context.Context, runID string) error {
	if err := rt.writable("Resume"); err != nil {
		return err
	}
	return rt.engine.Resume(ctx, rt.ref(runID))
}

// Unfinished lists the runs that have not ended, oldest first: those that go on
// here and, of a runtime that is ReadOnly or Dormant, those that nobody may go on with.
func (rt *Runtime) Unfinished(ctx context.Context) ([]UnfinishedRun, error) {
	return rt.engine.Unfinished(ctx, rt.tenant)
}

// Get gives a run.
func (rt *Runtime) Get(ctx context.Context, runID string) (*Run, error) {
	return rt.engine.Get(ctx, rt.ref(runID))
}

// Wait gives a run when it has ended.
func (rt *Runtime) Wait(ctx context.Context, runID string) (*Run, error) {
	return rt.engine.Wait(ctx, rt.ref(runID))
}

// Watch yields the events of a run with numbers above after: stored ones, then
// live ones, until the terminal event. An error is the last thing it yields.
func (rt *Runtime) Watch(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return rt.engine.Watch(ctx, rt.ref(runID), after)
}

// Replay yields the stored events of a run with numbers above after, without
// waiting for more. It reads them in batches: what it holds does not grow with
// the run. An error is the last thing it yields.
func (rt *Runtime) Replay(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return rt.engine.Replay(ctx, rt.ref(runID), after)
}

// Events is Replay in a list: all of it is in memory.
func (rt *Runtime) Events(ctx context.Context, runID string, after int64) ([]event.Event, error) {
	return rt.engine.Events(ctx, rt.ref(runID), after)
}

// Steer gives a running run a message, which the model gets after the tools under way,
// and blocks of context that go with it.
func (rt *Runtime) Steer(ctx context.Context, runID string, input []message.Block, about ...ContextBlock) error {
	if err := rt.writable("Steer"); err != nil {
		return err
	}
	return rt.engine.Steer(ctx, rt.ref(runID), input, about...)
}

// FollowUp gives a run a message for when it would otherwise end, and blocks of context
// that go with it.
func (rt *Runtime) FollowUp(ctx context.Context, runID string, input []message.Block, about ...ContextBlock) error {
	if err := rt.writable("FollowUp"); err != nil {
		return err
	}
	return rt.engine.FollowUp(ctx, rt.ref(runID), input, about...)
}

// Cancel asks a run to stop and returns it as it is then.
func (rt *Runtime) Cancel(ctx context.Context, runID, reason string) (*Run, error) {
	if err := rt.writable("Cancel"); err != nil {
		return nil, err
	}
	return rt.engine.Cancel(ctx, rt.ref(runID), reason)
}

// Answer answers an interrupt. A second answer is a conflict.
func (rt *Runtime) Answer(ctx context.Context, req AnswerRequest) (*Interrupt, error) {
	if err := rt.writable("Answer"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.Answer(ctx, req)
}

// Runs lists runs, newest first. status and sessionID may be empty.
func (rt *Runtime) Runs(ctx context.Context, sessionID, status, cursor string, limit int) ([]*Run, string, error) {
	return rt.engine.List(ctx, rt.tenant, engine.RunFilter{SessionID: sessionID, Status: status, Cursor: cursor, Limit: limit})
}

// Interrupts lists interrupts by status ("open", or "" for all), oldest first, at
// most limit (0: 50) a page. next is "" when there are no more.
func (rt *Runtime) Interrupts(ctx context.Context, status, cursor string, limit int) (interrupts []*Interrupt, next string, err error) {
	return rt.engine.Interrupts(ctx, rt.tenant, engine.InterruptFilter{Status: status, Cursor: cursor, Limit: limit})
}

// Interrupt gives one interrupt.
func (rt *Runtime) Interrupt(ctx context.Context, id string) (*Interrupt, error) {
	return rt.engine.Interrupt(ctx, rt.ref(id))
}

// CreateSession makes an empty session. A repetition under the same idempotency
// key gives the first one.
func (rt *Runtime) CreateSession(ctx context.Context, req SessionRequest) (*Session, error) {
	if err := rt.writable("CreateSession"); err != nil {
		return nil, err
	}
	req.Tenant = rt.tenant
	return rt.engine.CreateSession(ctx, req)
}

// Session gives a session.
func (rt *Runtime) Session(ctx context.Context, id string) (*Session, error) {
	return rt.engine.Session(ctx, rt.ref(id))
}

// Sessions lists sessions, most recently used first: those of clients that keep
// their own history, or the others.
func (rt *Runtime) Sessions(ctx context.Context, f SessionFilter) ([]*Session, string, error) {
	return rt.engine.Sessions(ctx, rt.tenant, f)
}

// Entries gives a session's conversation, oldest first.
func (rt *Runtime) Entries(ctx context.Context, sessionID string) ([]*Entry, error) {
	return rt.engine.Entries(ctx, rt.ref(sessionID), "", 0)
}

// Append writes a message into a session that no run is active in. Its role may
// be the application's own.
func (rt *Runtime) Append(ctx context.Context, sessionID string, m message.Message) (*Entry, error) {
	if err := rt.writable("Append"); err != nil {
		return nil, err
	}
	return rt.engine.Append(ctx, rt.ref(sessionID), m)
}

// DeleteSession deletes a session with its runs and their subagents'.
func (rt *Runtime) DeleteSession(ctx context.Context, id string) error {
	if err := rt.writable("DeleteSession"); err != nil {
		return err
	}
	return rt.engine.DeleteSession(ctx, rt.ref(id))
}

// Handler serves the native API and the faces. It asks for API keys as soon as
// there is one ([Runtime.CreateKey]); until then everybody who reaches it may do
// everything. It answers to localhost, loopback addresses and the hosts of
// agentd.yaml. A runtime that was opened ReadOnly has none: the error is of kind
// Unsupported.
func (rt *Runtime) Handler() (http.Handler, error) {
	if err := rt.writable("Handler"); err != nil {
		return nil, err
	}
	s, err := rt.Server()
	if err != nil {
		return nil, err
	}
	return s.Handler(), nil
}

// Server is the HTTP server of the runtime, configured by agentd.yaml. A runtime
// that was opened ReadOnly has none.
func (rt *Runtime) Server() (*server.Server, error) {
	if err := rt.writable("Server"); err != nil {
		return nil, err
	}
	return server.New(rt.engine, rt.serverOptions()), nil
}

// Connecting lists the MCP servers that runs may be waiting for: their first
// attempt to connect is under way.
func (rt *Runtime) Connecting() []string { return rt.agents.servers.Connecting() }

// Settings are the server's own settings.
func (rt *Runtime) Settings() profile.Settings { return rt.config.Settings }

// DefaultProfile is the profile of those who name none to Start: default_profile of
// agentd.yaml, else the one named default; "" if there is neither. scripted says
// that it is the demonstration, because the models of default have no API key.
// Requests over HTTP go by agentd.yaml alone.
func (rt *Runtime) DefaultProfile() (name string, scripted bool) { return rt.agents.defaultProfile() }

// Knows reports whether the configuration has the profile of this name; the error is
// of kind not_found and lists those it has. A run whose profile is not there fails
// when it goes on, so whoever makes one go on by hand asks first.
func (rt *Runtime) Knows(name string) error {
	_, err := rt.config.Profile(name)
	return err
}

func (rt *Runtime) ref(id string) engine.Ref { return engine.Ref{Tenant: rt.tenant, ID: id} }

// Version is the version of agentd as the Go tool recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// DataFolder is the default folder for the store: the user's data folder.
func DataFolder() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "agentd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &fault.Error{Op: "agentd.DataFolder", Kind: fault.Invalid, Err: fmt.Errorf("no home folder: %w", err), Hint: "Name a folder with --data."}
	}
	return filepath.Join(home, ".local", "share", "agentd"), nil
}
