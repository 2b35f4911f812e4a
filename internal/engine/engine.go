package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentd/fault"
	"agentd/internal/policy"
	"agentd/internal/prompt"
	"agentd/internal/rate"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
	"agentd/tool"
)

// Agents gives the agents that runs are made of.
type Agents interface {
	// Agent resolves "name", "name@version", or "" for the default. The agent
	// does not change afterwards. An unknown name is a *fault.Error of kind
	// NotFound.
	Agent(ctx context.Context, tenant, profile string) (*Agent, error)
	// Outline is Agent at once, for accepting runs: it waits for no server, and
	// the tools of those that are not connected are missing.
	Outline(ctx context.Context, tenant, profile string) (*Agent, error)
	// Redactor gives what hides secrets in the events of a profile's runs,
	// without making the agent. Nil hides nothing.
	Redactor(tenant, profile string) (Redact, error)
	// Profiles lists what there is, sorted by name.
	Profiles(ctx context.Context, tenant string) ([]ProfileView, error)
}

// Agent is a profile with everything that it names.
type Agent struct {
	Profile, Version string
	Settings         run.Settings
	// Models are tried in order; at least one.
	Models []Model
	// Choices are further models that a session may choose.
	Choices []Model
	// Modes are what the modes of sessions mean to it.
	Modes Modes
	Tools tool.Set
	// Unreachable are the sources of tools that gave none when the agent was
	// made: its runs work without, and say so. Reach, which is not nil then,
	// tries to reach them again, for as long as each may take to connect; after
	// it another agent may have what this one lacks.
	Unreachable []Unreachable
	Reach       func(ctx context.Context)
	// Subagents are the profiles that create_subagent may start.
	Subagents []string
	// AskUser adds the ask_user_question tool.
	AskUser bool
	// Freeform has questions answered in free text: the model can not ask with a
	// form, and its choices are part of the question.
	Freeform bool
	// Caps are those of a run of the agent and all below it.
	Caps Caps
	// Plans gives interactive runs the tool propose_plan.
	Plans bool
	// Prompt is what is said ahead of every conversation and, by its sections of tier
	// turn, with every message; nil says nothing. Facts are the agent's own, for its
	// sections. Context is asked for what goes with the messages of a run.
	Prompt  *prompt.Set
	Facts   map[string]string
	Context []ContextSource
	// Examples are exchanges shown ahead of every conversation.
	Examples []message.Message
	Options  prompt.Options
	Rules    policy.Rules
	// ModelIdle ends a model call from which nothing came for so long.
	ModelIdle time.Duration
	// ModelTotal ends a model call that took so long, whatever came from it.
	// Nothing pauses it. 0: no limit.
	ModelTotal time.Duration
	// Routing is how runs choose among Models: one of the strategies of [run.Order].
	Routing string
	// Rates bound what is used in a minute.
	Rates RateLimits
	// ToolTimeout bounds calls of tools without a timeout of their own.
	ToolTimeout time.Duration
	// NoReadArtifact takes the tool read_artifact away, which runs with tools have.
	NoReadArtifact bool
	// IgnoreIdempotencyKeys makes every request a run of its own.
	IgnoreIdempotencyKeys bool
	// FailOnRestart ends runs that were under way when the process ended,
	// instead of going on with them.
	FailOnRestart bool
	// Redact hides what people and logs must not see. Nil hides nothing.
	Redact Redact
	// CacheTools are patterns (* and ?) of the tools whose calls, where they only read
	// or may be repeated, get the result of an equal call of the same turn.
	CacheTools []string
	// Recall gives what goes ahead of the first message of a run: what is remembered
	// and is not in the conversation yet; "" for nothing. Nil: nothing is remembered.
	Recall func(ctx context.Context, req RecallRequest) (string, error)
	// Skill gives what goes with a person's words that call a skill, "" for words that
	// call none. Errors are for whoever said them. Nil: the agent has no skills to call.
	Skill func(words string) (string, error)
	// DropReasoning leaves the reasoning of answered turns out of requests once a
	// message came so long after the answer. 0: never.
	DropReasoning time.Duration
	// LateTools has conversations keep the list of tools that they began with, until a
	// compaction: tools that come later are called through [CallByName].
	LateTools bool
	// ToolRules stands for what says which tools the agent may have. Where it is
	// another one than before, no list is kept: what was taken away is gone at once.
	ToolRules string
	// Compaction says when and how conversations are summarised.
	Compaction Compaction
}

// Unreachable is a source of tools that can not be reached.
type Unreachable struct {
	// Server is its name in the configuration, Reason why, for people; it holds
	// no secrets.
	Server, Reason string
}

func (u Unreachable) String() string {
	return fmt.Sprintf("MCP server %q can not be reached, so its tools are missing: %s", u.Server, u.Reason)
}

// Redact hides what people and logs must not see in the arguments or the result
// of a tool. It gives JSON back.
type Redact func(toolName string, data json.RawMessage) json.RawMessage

// Model is a provider with one of its models.
type Model struct {
	Provider model.Provider
	ID       string
	// Name is for people: "provider/model".
	Name string
	// Window is how many tokens a request may have; 0: nobody knows. NoImages is
	// whether the model is known to take no images.
	Window   int
	NoImages bool
	// Learned is the window as far as it has become known since, 0 if it has not; it is
	// asked often and must not block. Nil: what Window says is all there is.
	Learned func() int
	// MaxTokens and Thinking are for calls about which neither the profile nor
	// the request says anything. Zero leaves it to the provider.
	MaxTokens int
	Thinking  model.ThinkingLevel
	// Price is what a million tokens cost of which four fifths are read and one
	// is written, in the unit of [message.Money]; 0: nobody knows. It is for
	// choosing among models, not for bills.
	Price int64
	// Info is what is known of it: its prices are what calls are reserved by.
	Info model.Info
	// CacheTTL is how long the provider keeps the beginning of a prompt after its last
	// use, at the least; 0: nobody knows.
	CacheTTL time.Duration
	Pool     string // where its calls are made, of several nodes; "" is [PoolModel]
}

// thinkingRoom is how many tokens a reply must be allowed for a model to think
// without having been asked to: its thoughts must not use up a short answer.
const thinkingRoom = 4096

// defaults fills in what nobody has said. Who asks for a temperature does not get
// thoughts instead of it, as models do not take both.
func (m *Model) defaults(o *prompt.Options) {
	if o.MaxTokens == 0 {
		o.MaxTokens = m.MaxTokens
	}
	if o.Thinking == "" && o.Temperature == nil && o.TopP == nil && (o.MaxTokens == 0 || o.MaxTokens >= thinkingRoom) {
		o.Thinking = m.Thinking
	}
}

// Config configures an engine. Store and Agents are required.
type Config struct {
	Store  store.Store
	Agents Agents
	// Now and NewID are the engine's clock and randomness; nil means the
	// real ones. NewID gives 26 characters that sort by time.
	Now   func() time.Time
	NewID func() string
	// TransformContext may change what the model sees of a conversation ahead
	// of each model call: prune it, add to it. It must not change the messages
	// it is given. An error fails the call. Nil changes nothing.
	TransformContext func(ctx context.Context, run Ref, msgs []message.Message) ([]message.Message, error)
	// ConvertToLLM turns a conversation into what models take, after
	// TransformContext: this is where an application's own roles become user
	// messages. What it returns is healed. Nil leaves those roles out.
	ConvertToLLM func([]message.Message) []message.Message
	// Log gets what people operating the engine must know; nil discards.
	Log *slog.Logger
	// Observer is told what happens; nil costs nothing.
	Observer Observer
	// Traceparent gives the W3C trace context of a tool call, which is passed on
	// to the tool; nil gives none.
	Traceparent func(id *RunID, callID string) string
	// ReaderBuffer is how many events a reader may lag behind before it is
	// disconnected; 0 means 4096.
	ReaderBuffer int
	// MaxConcurrentRuns is how many runs execute at the same time, children of
	// a run not counted; more wait in the queue. 0 means 1024.
	MaxConcurrentRuns int
	// RetryPause is how long a run rests whose store failed before it is
	// driven again; 0 means five seconds.
	RetryPause time.Duration
	// MaxResultBytes is how much text of a tool result the model gets; of a
	// larger one it gets the beginning, and the whole is stored as an
	// artifact. 0 means 30 KiB.
	MaxResultBytes int
	// MaxSubagentDepth is how many levels of child runs there may be below a
	// run that was started from outside; 0 means 4.
	MaxSubagentDepth int
	// MaxPageBytes and MaxReferencesBytes bound what a request may give as its
	// page and, all together, as its references; 0 means 16 KiB and 64 KiB.
	MaxPageBytes, MaxReferencesBytes int
	// MaxContextBytes bounds the blocks of context of a request, all together; 0
	// means 64 KiB. ContextTimeout bounds how long a run asks its agent's sources of
	// context, all together; 0 means two seconds.
	MaxContextBytes int
	ContextTimeout  time.Duration
	// AbandonAfter is how long a cancelled tool may take to end before it is
	// abandoned; 0 means one second.
	AbandonAfter time.Duration
	// Artifacts say how long results that were too large are kept. The zero value
	// keeps them.
	Artifacts ArtifactLimits
	// Images bound what of a conversation's images one request has.
	Images session.ImageLimits
	// Trees bound what is read of session files and copied of sessions.
	Trees TreeLimits
	// Budgets are the pots that runs share beyond their own trees.
	Budgets Budgets
	// KeepEphemeral is how long ephemeral sessions are kept after their last
	// run ended; 0 keeps them. They are deleted from Recover on.
	KeepEphemeral time.Duration
	// ConversationBytes bounds what is kept in memory of long conversations between their
	// runs, decoded; 0 means 32 MiB, less than 0 keeps nothing.
	ConversationBytes int64
	// Cluster makes the engine one of several nodes on the store; nil: it is alone.
	Cluster *Cluster
}

// Engine drives runs. Its methods are safe for concurrent use.
type Engine struct {
	cfg   Config
	store store.Store
	log   *slog.Logger
	// validator compiles each tool's schema once, for all runs.
	validator *tool.Validator
	node      *node // nil: the engine is alone on its store

	// ctx ends when the engine closes; everything it started hangs on it.
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup
	mu    sync.Mutex
	lanes map[Ref]*lane
	// drivers are the runs in memory, streams those that somebody drives or
	// watches.
	drivers map[Ref]*driver
	streams map[Ref]*stream
	waiters map[Ref][]chan struct{}
	// later are the pauses of runs that failed to be driven.
	later map[Ref]*time.Timer
	// deciding are the trees of runs whose proposals somebody decides about.
	// Each is closed at the end.
	deciding map[Ref]chan struct{}
	// expiries are the timers of open interrupts.
	expiries map[expiry]*time.Timer
	closed   bool
	slots    slots
	workers  workers
	// speed is how fast models answered lately.
	speed latencies
	// meters count what users and tenants use.
	meters *rate.Meters
	// prefixes are the last requests of sessions.
	prefixes recentPrefixes
	// toolsets are lists of tools that are kept.
	toolsets recentToolsets
	// windows are what nodes of pools learned of models, by windowKey.
	windows sync.Map
	warm    warmSessions
	page    int // replayPage, or less in tests
	// broken is why the store does not take commits, or nil.
	broken atomic.Pointer[error]
}

// New returns an engine. Call Recover before the first run.
func New(cfg Config) (*Engine, error) {
	if cfg.Store == nil || cfg.Agents == nil {
		return nil, &fault.Error{Op: "engine.New", Kind: fault.Invalid, Err: errors.New("a store and agents are required")}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = newIDs(cfg.Now)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ReaderBuffer <= 0 {
		cfg.ReaderBuffer = 4096
	}
	if cfg.MaxConcurrentRuns <= 0 {
		cfg.MaxConcurrentRuns = 1024
	}
	if cfg.RetryPause <= 0 {
		cfg.RetryPause = 5 * time.Second
	}
	if cfg.MaxResultBytes <= 0 {
		cfg.MaxResultBytes = 30 << 10
	}
	if cfg.MaxSubagentDepth <= 0 {
		cfg.MaxSubagentDepth = 4
	}
	if cfg.MaxPageBytes <= 0 {
		cfg.MaxPageBytes = 16 << 10
	}
	if cfg.MaxReferencesBytes <= 0 {
		cfg.MaxReferencesBytes = 64 << 10
	}
	if cfg.MaxContextBytes <= 0 {
		cfg.MaxContextBytes = 64 << 10
	}
	if cfg.ContextTimeout <= 0 {
		cfg.ContextTimeout = 2 * time.Second
	}
	cfg.Budgets = cfg.Budgets.withDefaults()
	if cfg.AbandonAfter <= 0 {
		cfg.AbandonAfter = time.Second
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &Engine{cfg: cfg, slots: slots{free: cfg.MaxConcurrentRuns}, page: replayPage, store: cfg.Store, log: cfg.Log, validator: tool.NewValidator(), ctx: ctx, stop: stop,
		lanes: map[Ref]*lane{}, drivers: map[Ref]*driver{}, streams: map[Ref]*stream{}, waiters: map[Ref][]chan struct{}{},
		later: map[Ref]*time.Timer{}, expiries: map[expiry]*time.Timer{}, deciding: map[Ref]chan struct{}{}}
	if e.warm.limit = cfg.ConversationBytes; e.warm.limit == 0 {
		e.warm.limit = 32 << 20
	}
	e.meters = rate.New(cfg.Now, e.used)
	if cfg.Cluster != nil {
		var err error
		if e.node, err = newNode(e, *cfg.Cluster); err != nil {
			stop()
			return nil, err
		}
	}
	return e, nil
}

// Recover goes on with every run that was under way when the last engine ended,
// and returns how many there are. It does not wait for them. From then on
// ephemeral sessions are deleted when their time is over. One of several nodes begins
// to take part instead: it counts nothing, and takes what nobody drives.
func (e *Engine) Recover(ctx context.Context) (int, error) {
	var refs []store.RunRef
	if e.node != nil {
		if err := e.node.start(); err != nil {
			return 0, err
		}
	} else {
		var err error
		if refs, err = e.store.Unfinished(ctx); err != nil {
			return 0, &fault.Error{Op: "engine.Recover", Kind: fault.Unavailable, Err: err}
		}
		e.goOn(refs)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.KeepEphemeral > 0 && !e.closed {
		e.wg.Add(1)
		go e.sweep()
	}
	if e.cfg.Artifacts.any() && !e.closed {
		e.wg.Add(1)
		go e.sweepArtifacts()
	}
	return len(refs), nil
}

// goOn lines runs up and drives those whose turn it is.
func (e *Engine) goOn(refs []store.RunRef) {
	// Active runs own their session's lane before queued ones line up.
	for _, r := range refs {
		if r.Status == string(run.Running) || r.Status == string(run.Paused) {
			e.lineUp(Ref{r.Tenant, r.SessionID}, r.ID)
		}
	}
	known := e.expireAll(refs)
	here := make(map[Ref]bool, len(refs))
	for _, r := range refs {
		here[Ref{r.Tenant, r.ID}] = true
	}
	for _, r := range refs {
		if r.Status == string(run.Queued) && !e.lineUp(Ref{r.Tenant, r.SessionID}, r.ID) {
			continue
		}
		// A paused run whose question was its own has nothing to do. One with
		// children may have missed what became of theirs, and one whose parent is
		// not under way has to find out that nobody waits for it.
		above := run.ParentID(r.ID)
		if r.Status != string(run.Paused) || r.Parent || !known || above != "" && !here[Ref{r.Tenant, above}] {
			e.drive(Ref{r.Tenant, r.ID})
		}
	}
}

// Close stops driving. Nothing is written: what was not committed has not
// happened, and the next engine's Recover goes on from there. One of several nodes
// gives its lease back, so that others go on at once; see also Drain.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	for _, t := range e.later {
		t.Stop()
	}
	for _, t := range e.expiries {
		t.Stop()
	}
	e.mu.Unlock()
	e.stop()
	if e.node != nil {
		e.node.end()
	}
	e.wg.Wait()
	e.workers.close()
	return nil
}

// Profiles lists the profiles.
func (e *Engine) Profiles(ctx context.Context, tenant string) ([]ProfileView, error) {
	return e.cfg.Agents.Profiles(ctx, tenant)
}

func (e *Engine) now() int64 { return e.cfg.Now().UnixMilli() }

// driveLater drives a run again after a pause, from what is committed. At most one
// such pause is pending for a run, however often it fails: the last one counts.
func (e *Engine) driveLater(ref Ref) {
	if e.node != nil {
		e.node.rest(ref)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.later[ref]; t != nil && t.Stop() {
		t.Reset(e.cfg.RetryPause)
		return
	}
	e.later[ref] = time.AfterFunc(e.cfg.RetryPause, func() { e.driveAgain(ref) })
}

// driveAgain is the end of a pause. A driver that has not left yet may be the one
// that failed: it must be gone before the next can come.
func (e *Engine) driveAgain(ref Ref) {
	e.mu.Lock()
	delete(e.later, ref)
	d := e.drivers[ref]
	e.mu.Unlock()
	if d != nil && d.departing() {
		select {
		case <-d.gone:
		case <-e.ctx.Done():
		}
	}
	if e.ctx.Err() == nil {
		e.drive(ref)
	}
}

func userMessage(blocks []message.Block, now int64) message.Message {
	return message.Message{Role: message.RoleUser, Content: blocks, Timestamp: now}
}
