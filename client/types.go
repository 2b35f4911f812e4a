package client

import (
	"encoding/json"

	"agentd/event"
	"agentd/message"
)

// Statuses of a run.
const (
	Queued    = "queued"
	Running   = "running"
	Paused    = "paused_checkpoint" // waits for a person: see Run.Interrupts
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Run is a run. Times are RFC 3339 in UTC with milliseconds, "" if not yet.
type Run struct {
	ID             string `json:"run_id"`
	SessionID      string `json:"session_id"`
	RootID         string `json:"root_run_id"`
	ParentID       string `json:"parent_run_id,omitempty"`
	Profile        string `json:"profile"`
	ProfileVersion string `json:"profile_version,omitempty"`
	Mode           string `json:"mode"`
	// SessionMode is ask, plan or edit; Model and Thinking are what the session chose.
	// Lists leave them out.
	SessionMode string `json:"session_mode,omitempty"`
	Model       string `json:"model,omitempty"`
	Thinking    string `json:"thinking,omitempty"`
	// User is who the run is for; "key:" and a key's id if the client named nobody.
	User       string        `json:"user,omitempty"`
	Status     string        `json:"status"`
	StopReason string        `json:"stop_reason,omitempty"`
	Output     string        `json:"output,omitempty"` // lists leave it out
	Steps      int           `json:"steps"`
	Usage      message.Usage `json:"usage"`
	// Budget is there if the request gave one, or the run shares some with others;
	// lists leave it out.
	Budget *RunBudget `json:"budget,omitempty"`
	// Interrupts are the open ones; lists leave them out.
	Interrupts []*Interrupt `json:"interrupts,omitempty"`
	// Proposals are what an autonomous run, and those below it, recorded.
	Proposals []*Proposal `json:"proposals,omitempty"`
	// ToolCalls are for the caller to perform, if StopReason is
	// "client_tool_calls".
	ToolCalls []message.Block `json:"tool_calls,omitempty"`
	Error     *event.Error    `json:"error,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	CreatedAt string          `json:"created_at"`
	StartedAt string          `json:"started_at,omitempty"`
	EndedAt   string          `json:"ended_at,omitempty"`
	// LastSeq is a number that no event is above. While the run goes on it
	// may be above the last event's.
	LastSeq int64 `json:"last_seq"`
}

// Ended reports whether nothing more happens in the run.
func (r *Run) Ended() bool {
	return r.Status == Completed || r.Status == Failed || r.Status == Cancelled
}

// Interrupt is a durable wait for a person.
type Interrupt struct {
	ID        string `json:"interrupt_id"`
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	// Kind is approval, question, plan or uncertain.
	Kind string `json:"kind"`
	// Status is open, answered, expired or cancelled.
	Status string `json:"status"`
	Prompt string `json:"prompt"`
	// Schema is the JSON Schema of the answer, if it has one.
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

// Session is one conversation.
type Session struct {
	ID       string          `json:"session_id"`
	Title    string          `json:"title,omitempty"`
	Leaf     string          `json:"leaf,omitempty"` // the newest entry
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Ephemeral sessions are those of clients that keep their own history, and
	// of their subagents. They are deleted some time after their last run.
	Ephemeral bool   `json:"ephemeral,omitempty"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

// SessionFilter selects sessions: the ephemeral ones, or the others.
type SessionFilter struct {
	Ephemeral bool
	Cursor    string
	Limit     int // of a page; 0 means 50
}

// Entry is one entry of a session. Message is set if Kind is "message", Data
// otherwise.
type Entry struct {
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

// Profile is an agent that runs can be started with.
type Profile struct {
	Name        string   `json:"name"`
	Version     string   `json:"version,omitempty"`
	Description string   `json:"description,omitempty"`
	Labels      []string `json:"labels,omitempty"`
	Model       string   `json:"model,omitempty"` // "provider/model"
}

// StartRequest starts a run. Only Input is required.
type StartRequest struct {
	// Profile is "name" or "name@version"; empty is the server's default.
	Profile string          `json:"profile,omitempty"`
	Input   []message.Block `json:"input"`
	// SessionID continues a session; empty makes a new one.
	SessionID string `json:"session_id,omitempty"`
	// From is the entry of the session that the run goes on from, EntryRoot for its
	// beginning; "" is the leaf.
	From string `json:"from,omitempty"`
	// Mode is interactive (also "") or autonomous.
	Mode string `json:"mode,omitempty"`
	// SessionMode sets the mode of the session from this run on: ask, plan or edit.
	SessionMode string `json:"session_mode,omitempty"`
	// WhenBusy says what to do if the session has an active run: enqueue
	// (also ""), reject, steer, interrupt or rollback.
	WhenBusy string `json:"when_busy,omitempty"`
	// Context is free-form data that the prompt shows to the model.
	Context json.RawMessage `json:"context,omitempty"`
	// Page is the page of the host application that is open: a JSON text or
	// object. References are what the person attached: each a text, or an
	// object with kind, id and anything else. The model is shown both.
	Page       json.RawMessage   `json:"page,omitempty"`
	References []json.RawMessage `json:"references,omitempty"`
	// ContextBlocks are what else the model is to know with the input. A block is sent
	// again only when it changed; an empty text says that it no longer holds.
	ContextBlocks []ContextBlock `json:"context_blocks,omitempty"`
	Budget        *Budget        `json:"budget,omitempty"`
	// Metadata is a JSON object that comes back with the run.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// User is who the run is for, as the caller knows them.
	User string `json:"user,omitempty"`
	// IdempotencyKey makes a repetition return the first run.
	IdempotencyKey string `json:"-"`
}

// ContextBlock is a piece of context, such as a file tree.
type ContextBlock struct {
	// Kind is 1 to 64 small letters, digits, _, . or -; there is one block of a kind.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// SessionRequest creates a session; every field may be empty.
type SessionRequest struct {
	Title string `json:"title,omitempty"`
	// Metadata is a JSON object that comes back with the session.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// IdempotencyKey makes a repetition return the first session.
	IdempotencyKey string `json:"-"`
}

// Budget lowers a profile's limits for one run. Zero changes nothing.
type Budget struct {
	MaxSteps          int `json:"max_steps,omitempty"`
	MaxToolCalls      int `json:"max_tool_calls,omitempty"`
	MaxRunTimeSeconds int `json:"max_run_time_seconds,omitempty"`
	// MaxOutputTokens bounds each reply.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// MaxCostUSD and MaxTokens cap the run and all below it.
	MaxCostUSD message.Money `json:"max_cost_usd,omitempty"`
	MaxTokens  int64         `json:"max_tokens,omitempty"`
}

// RunBudget is what a request allowed its run, and what of it is used.
type RunBudget struct {
	Limits Budget     `json:"limits"`
	Used   BudgetUsed `json:"used"`
	// Pots are the budgets that the run shares with others.
	Pots []*Pot `json:"pots,omitempty"`
}

// BudgetUsed is what counts against the limits of a budget.
type BudgetUsed struct {
	// Steps are those since the last message of a person.
	Steps int `json:"steps"`
	// ToolCalls includes those that were refused.
	ToolCalls int `json:"tool_calls"`
	// RunTimeSeconds leaves waits for people out. 0 where the run has no
	// clock, or has not started.
	RunTimeSeconds float64 `json:"run_time_seconds,omitempty"`
}

// AnswerRequest answers an interrupt: by its id, or the only open one of a run.
type AnswerRequest struct {
	Run       string `json:"-"`
	Interrupt string `json:"interrupt_id,omitempty"`
	// Decision is approve or reject; for an uncertain call retry, skip or
	// done. Empty with an Answer answers a question.
	Decision string `json:"decision,omitempty"`
	// Args are amended arguments of an approved call.
	Args json.RawMessage `json:"args,omitempty"`
	// Answer is the answer to a question, as JSON that fits the
	// interrupt's schema.
	Answer json.RawMessage `json:"answer,omitempty"`
	Reason string          `json:"reason,omitempty"`
	// SessionMode is the mode that the approval of a plan switches the session to.
	SessionMode string `json:"session_mode,omitempty"`
	// Remember allows calls like the approved one for the rest of the session.
	Remember bool `json:"remember,omitempty"`
}

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	SessionID, Status string
	// Cursor is what the page before gave.
	Cursor string
	// Limit is at most 200; 0 means 50.
	Limit int
}
