package run

import (
	"encoding/json"

	"agentd/event"
	"agentd/message"
)

// Input is something that happened. Every input carries the time, in Unix
// milliseconds.
type Input interface {
	// Kind names the input, for the trace and for errors.
	Kind() string
	at() int64
}

// At is when an input happened.
type At struct {
	Now int64 `json:"now"`
}

func (a At) at() int64 { return a.Now }

// Started starts a queued run.
type Started struct {
	At
	Settings Settings `json:"settings"`
	// EntryBase makes the run's entry ids; it must sort after every id in
	// the session and be unique in it.
	EntryBase string `json:"entry_base"`
	// Leaf is where the run starts.
	Leaf string `json:"leaf,omitempty"`
	// Stood is where the session stands if that is elsewhere, or nil: what is left of a
	// run that is rolled back.
	Stood *string `json:"stood,omitempty"`
	// Prompt is the queued inputs that the run was started with.
	Prompt []string `json:"prompt,omitempty"`
	// Routing and Facts decide the order of the models, see [Order]. Without a
	// strategy it is the order in which they are configured.
	Routing string       `json:"routing,omitempty"`
	Facts   []ModelFacts `json:"facts,omitempty"`
	// Compact: the run is there to compact the session, and calls no model to answer.
	Compact bool `json:"compact,omitempty"`
	// Mode is the session's mode as the run starts; "" is edit. Set are settings of the
	// session that its request changes: they are written ahead of the prompt.
	Mode string    `json:"mode,omitempty"`
	Set  []Setting `json:"set,omitempty"`
}

// Setting is a setting of a session: its mode, model or thinking, see [AppendSetting].
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SettingMode is the name of the mode among the settings.
const SettingMode = "mode"

// ModelDone is a complete reply.
type ModelDone struct {
	At
	Message *message.Message `json:"-"`
	// Unfit is why the reply, which calls no tools, has not the form that was asked for;
	// "" if it has, or none was.
	Unfit string `json:"unfit,omitempty"`
}

// FailureClass says what a failed model call means to the machine.
type FailureClass string

// The failure classes.
const (
	FailRetryable FailureClass = "retryable"
	FailOverflow  FailureClass = "overflow"
	// FailUnavailable: the model is not to be asked again for now. The next one
	// takes over at once; without one the run waits, if it was told how long.
	FailUnavailable FailureClass = "unavailable"
	FailFatal       FailureClass = "fatal"
	FailCancelled   FailureClass = "cancelled" // this process ended the call
)

// ModelFailed is a model call without a reply.
type ModelFailed struct {
	At
	Class FailureClass `json:"class"`
	// Reason is the adapter's class, Error the text for people.
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// RetryAfterMS is how long the provider asked to wait.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Free: the provider did not begin to answer, so nothing is owed.
	Free bool `json:"free,omitempty"`
	// Usage is what the provider had counted, or nil.
	Usage *message.Usage `json:"-"`
	// Partial is what had come of the reply, or nil. It is kept only if the
	// run was cancelled.
	Partial *message.Message `json:"-"`
}

// Decision is what was decided about a tool call.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	// Deny, with the reason as the error result that the model reads. Unknown
	// tools and invalid arguments are denied too.
	Deny Decision = "deny"
)

// Verdict is the answer to a Judge effect.
type Verdict struct {
	At
	CallID   string   `json:"call"`
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	// Effect, Sequential and ToolKind come from the tool's declaration.
	// ToolKind is "", "ask", "plan", "spawn" or "client".
	Effect     string `json:"effect,omitempty"`
	Sequential bool   `json:"sequential,omitempty"`
	ToolKind   string `json:"tool_kind,omitempty"`
	// Prompt, Schema and ExpiresAt describe the interrupt of an Ask.
	Prompt    string          `json:"prompt,omitempty"`
	Schema    json.RawMessage `json:"schema,omitempty"`
	ExpiresAt int64           `json:"expires_at,omitempty"`
	// Grave: nothing but a person's word lets the call run, whatever is declared
	// for when nobody answers.
	Grave bool `json:"grave,omitempty"`
	// CacheKey stands for the tool and its arguments where an equal call of the turn
	// may get this one's result; empty: it may not.
	CacheKey string `json:"cache_key,omitempty"`
}

// ToolDone is the outcome of a call, of a tool or of a child run.
type ToolDone struct {
	At
	CallID string `json:"call"`
	// Message is the result message.
	Message    *message.Message `json:"-"`
	Terminate  bool             `json:"terminate,omitempty"`
	DurationMS int64            `json:"duration_ms,omitempty"`
	// Cancelled: the call's child run was cancelled, and did not fail.
	Cancelled bool `json:"cancelled,omitempty"`
	// Cached: the call was not made, and Message is the earlier result.
	Cached bool `json:"cached,omitempty"`
}

// ChildWaits says what people are asked below a call's child run. Each tells the
// whole of it, so the order in which two arrive does not matter and one that was
// lost is made good by the next.
type ChildWaits struct {
	At
	CallID string `json:"call"`
	// Paused: the child waits for people and for nothing else.
	Paused bool `json:"paused,omitempty"`
	// Open are the interrupts that are open in the child and below it, each with
	// its RunID.
	Open []event.Checkpoint `json:"open,omitempty"`
	// Closed says how those ended that were open the last time.
	Closed []event.Checkpoint `json:"closed,omitempty"`
}

// Answered is a person's answer to an interrupt.
type Answered struct {
	At
	Interrupt string `json:"interrupt"`
	// Decision is approve or reject, of a plan too; for a question answer or reject; for an
	// uncertain call retry, skip or done.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	// Text is the answer to a question, the plan as a person changed it, or what to tell the model about a
	// call that is marked done.
	Text string `json:"-"`
	// Amended: the interrupt's answer holds changed, validated arguments.
	Amended bool `json:"amended,omitempty"`
	// Raise is how much more a person allows who was asked for more of a limit; 0: as
	// much as was proposed.
	Raise int64 `json:"raise,omitempty"`
	// Mode is the mode that an approved plan switches the session to; "" leaves it.
	Mode string `json:"mode,omitempty"`
	// Forbidden says, by call, why that mode forbids calls of the batch: those that are
	// not made yet are not.
	Forbidden map[string]string `json:"forbidden,omitempty"`
}

// Steered queues a message for the next model call. The message is stored under ID.
type Steered struct {
	At
	ID string `json:"id"`
}

// FollowedUp queues a message for when the run would end.
type FollowedUp struct {
	At
	ID string `json:"id"`
}

// TimerFired says that a Sleep is over. Late timers are legal and change nothing.
type TimerFired struct {
	At
	ID string `json:"id"`
}

// CancelRequested asks the run to stop.
type CancelRequested struct {
	At
	Reason string `json:"reason"`
	// Rollback: what the run has written is taken off the session's path when it
	// ends. A run that is stopping takes this in, too.
	Rollback bool `json:"rollback,omitempty"`
}

// Aborted ends a run that can not go on, from outside the machine: its profile is
// gone, or its stored conversation is unusable.
type Aborted struct {
	At
	// Reason becomes the stop reason.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Resumed comes first after the process that drove the run ended.
type Resumed struct {
	At
	// Elsewhere are calls that were asked of somebody else, who may be at them or have
	// their results: they are waited for again, also a once call, because asking for
	// one that is asked for starts nothing.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// InDoubt says that whoever had a once call is gone without a word: it may have
// happened. It is to the call what a crash of the run's own process is.
type InDoubt struct {
	At
	CallID string `json:"call"`
}

// Kind implements Input.
func (Started) Kind() string { return "Started" }

// Kind implements Input.
func (ModelDone) Kind() string { return "ModelDone" }

// Kind implements Input.
func (ModelFailed) Kind() string { return "ModelFailed" }

// Kind implements Input.
func (Verdict) Kind() string { return "Verdict" }

// Kind implements Input.
func (ToolDone) Kind() string { return "ToolDone" }

// Kind implements Input.
func (ChildWaits) Kind() string { return "ChildWaits" }

// Kind implements Input.
func (Answered) Kind() string { return "Answered" }

// Kind implements Input.
func (Steered) Kind() string { return "Steered" }

// Kind implements Input.
func (FollowedUp) Kind() string { return "FollowedUp" }

// Kind implements Input.
func (TimerFired) Kind() string { return "TimerFired" }

// Kind implements Input.
func (CancelRequested) Kind() string { return "CancelRequested" }

// Kind implements Input.
func (Aborted) Kind() string { return "Aborted" }

// Kind implements Input.
func (Resumed) Kind() string { return "Resumed" }

// Kind implements Input.
func (InDoubt) Kind() string { return "InDoubt" }
