package engine

import (
	"encoding/json"

	"agentd/event"
	"agentd/internal/rate"
	"agentd/message"
)

// Ref names a run, a session or an interrupt of a tenant.
type Ref struct{ Tenant, ID string }

// Modes of a run.
const (
	Interactive = "interactive"
	Autonomous  = "autonomous"
)

// WhenBusy says what a new run does when its session has an active one.
type WhenBusy string

// The choices. The empty value is Enqueue.
const (
	Enqueue   WhenBusy = "enqueue"   // wait for its turn
	Reject    WhenBusy = "reject"    // fail with kind conflict
	Steer     WhenBusy = "steer"     // hand the input to the active run instead
	Interrupt WhenBusy = "interrupt" // cancel the active run, then run
	Rollback  WhenBusy = "rollback"  // the same, and leave out of the conversation what it wrote
)

// StartRequest starts a run.
type StartRequest struct {
	Tenant string
	// Profile is "name" or "name@version"; empty is the default profile.
	Profile string
	// Defaulted says that nobody asked for Profile: any profile's run may be
	// steered with the input.
	Defaulted bool `json:"-"`
	// Input is what the user says. It may be empty if History is not.
	Input []message.Block
	// History is written to the session ahead of Input: the messages of a
	// client that keeps its own history. Only for new sessions, and with From.
	History []message.Message
	// SessionID continues a session; empty makes a new one.
	SessionID string
	// From is the entry that the run goes on from, Root for the beginning of the
	// session; "" is the leaf. What was said after it stays in the tree. With it, History
	// is written behind it as the run starts.
	From string `json:",omitempty"`
	// Fingerprint says what the request is to an IdempotencyKey; "" goes by the request.
	Fingerprint string `json:"-"`
	// Ephemeral makes a new session one of a client that keeps its own history:
	// it is listed apart, and deleted Config.KeepEphemeral after its last run.
	Ephemeral bool
	Mode      string // Interactive (also ""), Autonomous
	// SessionMode sets the mode of the session from this run on: ModeAsk, ModePlan or
	// ModeEdit; "" leaves it as it is.
	SessionMode string `json:",omitempty"`
	WhenBusy    WhenBusy
	// Context is free-form data that the prompt shows to the model.
	Context json.RawMessage
	// Page is the page of the host application that is open: a JSON text or
	// object. References are what the person attached: each a text, or an
	// object with kind, id and anything else. Both are shown to the model
	// with the input, and kept with the run. (Requests without them have the
	// hash that they always had.)
	Page       json.RawMessage   `json:",omitempty"`
	References []json.RawMessage `json:",omitempty"`
	// ContextBlocks are what else the model is to know with the input: a file tree, the
	// environment. Each is shown again only when it differs from what the session was
	// told last of its kind; one without a text says that what was told no longer
	// holds.
	ContextBlocks []ContextBlock `json:",omitempty"`
	Metadata      json.RawMessage
	// Compact has the run do nothing but compact its session. See [Engine.Compact].
	Compact *CompactRequest `json:",omitempty"`
	leaves  *leaving
	// skill is the one that Input calls.
	skill string
	// Overrides narrow the profile for this run.
	Overrides Overrides
	// User is the end user that the client names, for limits and sums; at most 256
	// bytes. Caller is the user where none is named: see [CallerOf]. It is no part of
	// the request, which another key may repeat.
	User   string `json:",omitempty"`
	Caller string `json:"-"`
	// IdempotencyKey makes a repetition return the first run. A different
	// request under the same key is a conflict.
	IdempotencyKey string
	// Scheduled has IdempotencyKey count whatever the profile says of keys: it names
	// what was due, and several nodes start that.
	Scheduled bool `json:"-"`
	// anyMode says that nobody asked for Mode.
	anyMode bool
}

// Overrides narrow a profile for one run. Zero values change nothing; limits can
// be lowered, never raised.
type Overrides struct {
	MaxSteps          int `json:"max_steps,omitempty"`
	MaxToolCalls      int `json:"max_tool_calls,omitempty"`
	MaxRunTimeSeconds int `json:"max_run_time_seconds,omitempty"`
	MaxOutputTokens   int `json:"max_output_tokens,omitempty"`
	// MaxCostUSD and MaxTokens cap the run and all below it.
	MaxCostUSD  message.Money `json:"max_cost_usd,omitempty"`
	MaxTokens   int64         `json:"max_tokens,omitempty"`
	Temperature *float64      `json:"temperature,omitempty"`
	TopP        *float64      `json:"top_p,omitempty"`
	Stop        []string      `json:"stop,omitempty"`
	// System is appended to the system prompt.
	System string `json:"system,omitempty"`
	// NoTools removes every tool: a one-shot answer.
	NoTools bool `json:"no_tools,omitempty"`
	// JSON asks for a JSON answer, of Schema if it is set.
	JSON   bool            `json:"json,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	// ClientTools are declared by the client and handed back to it: a call of
	// one ends the run with stop reason "client_tool_calls".
	ClientTools []ClientTool `json:"client_tools,omitempty"`
	// ToolChoice is "", "none", "required" or a tool's name.
	ToolChoice string `json:"tool_choice,omitempty"`
	// SingleToolCall asks the model for one tool call at a time.
	SingleToolCall bool   `json:"single_tool_call,omitempty"`
	Thinking       string `json:"thinking,omitempty"`
}

// ClientTool is a tool that the client of a run performs.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// Run is a run as clients see it.
type Run struct {
	ID             string           `json:"run_id"`
	SessionID      string           `json:"session_id"`
	RootID         string           `json:"root_run_id"`
	ParentID       string           `json:"parent_run_id,omitempty"`
	Profile        string           `json:"profile"`
	ProfileVersion string           `json:"profile_version,omitempty"`
	Mode           string           `json:"mode"`
	SessionMode    string           `json:"session_mode,omitempty"` // of a run that started; lists leave it out, and the next two
	Model          string           `json:"model,omitempty"`        // that the session chose
	Thinking       string           `json:"thinking,omitempty"`
	User           string           `json:"user,omitempty"` // who the run is for: as the client named them, or "key:" and the API key's id
	Status         string           `json:"status"`
	StopReason     string           `json:"stop_reason,omitempty"`
	Output         string           `json:"output,omitempty"`
	Steps          int              `json:"steps"`
	Usage          message.Usage    `json:"usage"`
	Budget         *Budget          `json:"budget,omitempty"` // if the request gave one, or the run has pots; lists leave it out
	Interrupts     []*InterruptView `json:"interrupts,omitempty"`
	Proposals      []*ProposalView  `json:"proposals,omitempty"`  // of an autonomous run and those below it; lists leave them out
	ToolCalls      []message.Block  `json:"tool_calls,omitempty"` // client tool calls, when the run ended for them
	Error          *event.Error     `json:"error,omitempty"`
	Metadata       json.RawMessage  `json:"metadata,omitempty"`
	CreatedAt      string           `json:"created_at"`
	StartedAt      string           `json:"started_at,omitempty"`
	EndedAt        string           `json:"ended_at,omitempty"`
	LastSeq        int64            `json:"last_seq"`
	// JSON is whether the answer is one JSON value, which is known only when its turn ends: one
	// that is none is asked for once more. Of a run that was just started.
	JSON bool `json:"-"`
	// Rates is how far the user's limits are used up, of a run that was just started.
	Rates *rate.Status `json:"-"`
}

// InterruptView is an interrupt as clients see it.
type InterruptView struct {
	ID         string          `json:"interrupt_id"`
	RunID      string          `json:"run_id"`
	SessionID  string          `json:"session_id"`
	Kind       string          `json:"kind"`
	Status     string          `json:"status"`
	Prompt     string          `json:"prompt"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	ToolCall   *event.Tool     `json:"tool_call,omitempty"`
	Decision   string          `json:"decision,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Answer     json.RawMessage `json:"answer,omitempty"`
	AnsweredBy string          `json:"answered_by,omitempty"`
	CreatedAt  string          `json:"created_at"`
	AnsweredAt string          `json:"answered_at,omitempty"`
	ExpiresAt  string          `json:"expires_at,omitempty"`
}

// AnswerRequest answers an interrupt: of a run (Interrupt empty: the only open
// one) or by its own id (Run empty).
type AnswerRequest struct {
	Tenant    string
	Run       string
	Interrupt string
	// Decision is approve or reject; for an uncertain call retry, skip or
	// done. Empty with an Answer means the question is answered.
	Decision string
	// Args are amended arguments of an approved call; they are validated.
	Args json.RawMessage
	// Answer is the answer to a question, text or JSON. It must fit the
	// interrupt's schema, after the conversions that arguments get too.
	Answer json.RawMessage
	Reason string
	By     string
	// SessionMode is the mode that the approval of a plan switches the session to; ""
	// leaves it.
	SessionMode string
	// Remember allows calls like the approved one for the rest of the session. It
	// is refused, and the interrupt stays open, for calls that are a person's
	// decision each time: those that delete, and all but plain commands.
	Remember bool
}

// SessionRequest creates a session; every field may be empty.
type SessionRequest struct {
	Tenant string `json:"-"`
	Title  string `json:"title,omitempty"`
	// Metadata is a JSON object that comes back with the session.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// IdempotencyKey makes a repetition return the first session. A different
	// request under the same key is a conflict. Keys of runs are others.
	IdempotencyKey string `json:"-"`
}

// SessionView is a session as clients see it.
type SessionView struct {
	ID        string          `json:"session_id"`
	Title     string          `json:"title,omitempty"`
	Leaf      string          `json:"leaf,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Ephemeral bool            `json:"ephemeral,omitempty"`
	CreatedAt string          `json:"created_at"`
	UpdatedAt string          `json:"updated_at"`
}

// EntryView is an entry of a session as clients see it.
type EntryView struct {
	ID        string           `json:"id"`
	Parent    string           `json:"parent,omitempty"`
	Kind      string           `json:"kind"`
	RunID     string           `json:"run_id,omitempty"`
	CreatedAt string           `json:"created_at"`
	Message   *message.Message `json:"message,omitempty"`
	Data      json.RawMessage  `json:"data,omitempty"`
	// Context is what was put beside the words of the message; models read it ahead of
	// them.
	Context []message.Block `json:"context,omitempty"`
	// LeftOut says why models are not shown the entry, or a part of it.
	LeftOut string `json:"left_out,omitempty"`
}

// ProfileView is a profile as clients see it.
type ProfileView struct {
	Name        string   `json:"name"`
	Version     string   `json:"version,omitempty"`
	Description string   `json:"description,omitempty"`
	Labels      []string `json:"labels,omitempty"`
	// Model is the primary model, as "provider/model".
	Model string `json:"model,omitempty"`
}

// UsageView is what the calls of one model used and cost.
type UsageView struct {
	Provider   string        `json:"provider"`
	Model      string        `json:"model"`
	Calls      int64         `json:"calls"`
	Input      int64         `json:"input"`
	Output     int64         `json:"output"`
	CacheRead  int64         `json:"cache_read"`
	CacheWrite int64         `json:"cache_write"`
	Cost       message.Money `json:"cost"`
}

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	SessionID, Status, Cursor string
	Limit                     int
}

// SessionFilter selects sessions: the ephemeral ones, or the others.
type SessionFilter struct {
	Ephemeral bool
	Cursor    string
	Limit     int
}

// InterruptFilter selects interrupts; zero fields select all. RunID selects those
// of the run and of the runs below it.
type InterruptFilter struct {
	RunID, Status, Cursor string
	Limit                 int // 0: 50
}
