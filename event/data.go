package event

import (
	"encoding/json"
	"fmt"

	"agentd/message"
)

// Payloads, by type:
//
//	run_started                    *Started
//	run_resumed                    *Resumed
//	run_completed/failed/cancelled *Ended
//	step_started, step_completed   *Step
//	text_delta, thinking_delta     *Delta
//	final_text                     *Text
//	tool_*                         *Tool
//	checkpoint_*                   *Checkpoint
//	subagent_*                     *Subagent
//	model_retry, model_fallback    *Retry
//	budget_warning                 *Budget
//	session_compacted              *Compaction
//	cache_broken                   *CacheBreak
//	the others                     json.RawMessage

// Started says what a run was asked to do.
type Started struct {
	SessionID      string `json:"session_id"`
	RootRunID      string `json:"root_run_id,omitempty"`
	ParentRunID    string `json:"parent_run_id,omitempty"`
	Profile        string `json:"profile"`
	ProfileVersion string `json:"profile_version,omitempty"`
	Mode           string `json:"mode"`
	Model          string `json:"model,omitempty"`
	// SessionMode is ask, plan or edit; Thinking is what the session asks of the model, if
	// it does.
	SessionMode string `json:"session_mode,omitempty"`
	Thinking    string `json:"thinking,omitempty"`
	// Warnings say what the run has to do without, such as the tools of a server
	// that can not be reached.
	Warnings []string `json:"warnings,omitempty"`
}

// Resumed says that a run goes on after its process ended. Partial text of the
// current step is void.
type Resumed struct {
	// Reason is "restart" or "answered".
	Reason string `json:"reason"`
	// Uncertain lists the tool calls of which nobody knows whether they happened.
	Uncertain []string `json:"uncertain,omitempty"`
	// Warnings are those of Started, as they are now.
	Warnings []string `json:"warnings,omitempty"`
}

// Ended says how a run ended.
type Ended struct {
	StopReason string         `json:"stop_reason"`
	Output     string         `json:"output,omitempty"`
	Usage      *message.Usage `json:"usage,omitempty"`
	Error      *Error         `json:"error,omitempty"`
	Steps      int            `json:"steps"`
	ToolCalls  int            `json:"tool_calls"`
	// Returned are the texts of queued messages that the run never took.
	Returned []string `json:"returned,omitempty"`
}

// Error is an error as people and programs see it.
type Error struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Field   string `json:"field,omitempty"`
}

// Step describes one model call and its tool calls. Only Model is set when it starts.
type Step struct {
	Model      string         `json:"model,omitempty"`
	StopReason string         `json:"stop_reason,omitempty"`
	Usage      *message.Usage `json:"usage,omitempty"`
	// CacheRatio is the part of the prompt that came from the provider's cache, 0 to 1.
	CacheRatio float64 `json:"cache_ratio,omitempty"`
	// Saved is what the provider's cache saved: the price of the prompt without it less
	// what was paid for the prompt. It is negative where more was written than read.
	Saved message.Money `json:"saved_usd,omitempty"`
	// CacheSeconds is how long the provider keeps a prompt after its last use, at the
	// least; 0: nobody knows. It is set when the step starts.
	CacheSeconds int64  `json:"cache_seconds,omitempty"`
	ToolCalls    int    `json:"tool_calls,omitempty"`
	EntryID      string `json:"entry_id,omitempty"`
}

// Compaction says that the conversation's older part was replaced by a summary.
type Compaction struct {
	EntryID string `json:"entry_id,omitempty"`
	// Reason is overflow, threshold, manual, or branch: what is summarised is a way that
	// the session left.
	Reason string `json:"reason,omitempty"`
	// TokensBefore and TokensAfter are about how large the conversation was and is.
	TokensBefore int `json:"tokens_before,omitempty"`
	TokensAfter  int `json:"tokens_after,omitempty"`
	// Summarised is how many messages the summary stands for, Kept how many stay as
	// they are, Shortened how many of those were cut because they were too large.
	Summarised int `json:"summarised,omitempty"`
	Kept       int `json:"kept,omitempty"`
	Shortened  int `json:"shortened,omitempty"`
	// Model wrote the summary; empty: none could be asked, and it is made of excerpts.
	Model string         `json:"model,omitempty"`
	Usage *message.Usage `json:"usage,omitempty"`
}

// Delta is a piece of text or thinking.
type Delta struct {
	Text string `json:"text"`
	// Block is the index of the content block it belongs to.
	Block int `json:"block,omitempty"`
}

// Text is the whole answer of a turn.
type Text struct {
	Text    string `json:"text"`
	EntryID string `json:"entry_id,omitempty"`
}

// Tool describes a tool call at one moment of its life.
type Tool struct {
	ToolCallID string          `json:"tool_call_id"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args,omitempty"`
	// Result is the text that the model gets, EntryID the entry that holds it.
	Result  string `json:"result,omitempty"`
	EntryID string `json:"entry_id,omitempty"`
	// Text is output or progress; Progress and Total are in the tool's own units.
	Text       string          `json:"text,omitempty"`
	Progress   float64         `json:"progress,omitempty"`
	Total      float64         `json:"total,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	Decision   string          `json:"decision,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
}

// Checkpoint describes an interrupt: a wait for a person.
type Checkpoint struct {
	InterruptID string          `json:"interrupt_id,omitempty"`
	Kind        string          `json:"kind,omitempty"`
	Prompt      string          `json:"prompt,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	ToolCall    *Tool           `json:"tool_call,omitempty"`
	ExpiresAt   string          `json:"expires_at,omitempty"`
	Decision    string          `json:"decision,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	// SessionMode is the mode that the approval of a plan switched the session to.
	SessionMode string `json:"session_mode,omitempty"`
	// RunID is the run that waits, when the event is shown on its root run.
	RunID string `json:"run_id,omitempty"`
}

// Subagent describes a child run.
type Subagent struct {
	RunID      string         `json:"run_id"`
	SessionID  string         `json:"session_id,omitempty"`
	Profile    string         `json:"profile,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	Status     string         `json:"status,omitempty"`
	Usage      *message.Usage `json:"usage,omitempty"`
}

// Retry says that a model call is tried again, and why. Partial text of the
// current step is void.
type Retry struct {
	Attempt int    `json:"attempt"`
	Class   string `json:"class"`
	Message string `json:"message"`
	DelayMS int64  `json:"delay_ms"`
	Model   string `json:"model,omitempty"`
}

// Budget says how much of a limit is used. Amounts are dollars, tokens or calls, as
// Limit says.
type Budget struct {
	// Pot is who shares the limit: run (ID and the runs below it), session or
	// tenant_day; empty for a limit of the run alone.
	Pot string `json:"pot,omitempty"`
	ID  string `json:"id,omitempty"`
	// Limit is max_cost, max_tokens, max_tool_calls, max_failures_per_run or max_steps.
	Limit string      `json:"limit"`
	Cap   json.Number `json:"cap"`
	Used  json.Number `json:"used"`
	// Held is reserved by calls under way.
	Held json.Number `json:"held,omitempty"`
	// Need is what the next model call may need, where that does not fit.
	Need json.Number `json:"need,omitempty"`
	// RaiseBy is how much more is asked for, where people are asked.
	RaiseBy json.Number `json:"raise_by,omitempty"`
}

// CacheBreak says why a request does not begin with all of the request before it, so that
// the provider's cache could not be read to its end: the first part that is another one.
type CacheBreak struct {
	// Part is model, tool, section (of the system prompt), settings or message: caches go by
	// them in this order. Settings are what changes the provider's view of all messages.
	Part string `json:"part"`
	// Name is that of the tool, section or setting, or the model; EntryID the message's.
	Name    string `json:"name,omitempty"`
	EntryID string `json:"entry_id,omitempty"`
	// Index is where it is in the list of its kind, from 0.
	Index int `json:"index"`
	// Change is changed, added, removed, moved or replaced (another entry in its place);
	// unknown if the request before can not be looked up any more.
	Change string `json:"change"`
	// Old and New are hashes of the part, or values of a setting.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// Reason is why it changed, where that is known: compaction, reasoning_dropped,
	// left_out, closing.
	Reason string `json:"reason,omitempty"`
	// Lost is how many tokens of the request before were not read from the cache.
	Lost int64 `json:"lost_tokens,omitempty"`
}

// Decode reads the payload of a type. Types without a payload of their own
// give the raw JSON back.
func Decode(t Type, raw json.RawMessage) (any, error) {
	var p any
	switch t {
	case RunStarted:
		p = new(Started)
	case RunResumed:
		p = new(Resumed)
	case RunCompleted, RunFailed, RunCancelled:
		p = new(Ended)
	case StepStarted, StepCompleted:
		p = new(Step)
	case TextDelta, ThinkingDelta:
		p = new(Delta)
	case FinalText:
		p = new(Text)
	case ToolInputStarted, ToolStarted, ToolStdout, ToolStderr, ToolProgress, ToolCompleted, ToolFailed:
		p = new(Tool)
	case CheckpointRequired, CheckpointInfo, CheckpointResolved:
		p = new(Checkpoint)
	case SubagentStarted, SubagentCompleted:
		p = new(Subagent)
	case ModelRetry, ModelFallback:
		p = new(Retry)
	case BudgetWarning:
		p = new(Budget)
	case SessionCompacted:
		p = new(Compaction)
	case CacheBroken:
		p = new(CacheBreak)
	default:
		return raw, nil
	}
	if len(raw) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("payload of %s: %w", t, err)
	}
	return p, nil
}
