package run

import (
	"encoding/json"

	"agentd/event"
	"agentd/message"
)

// Transition is the outcome of a step.
type Transition struct {
	State State
	// Writes belong into one commit with State.
	Writes []Write
	// Effects are started by the caller, in order.
	Effects []Effect
	// Events have Type, Step, Time and Data; the caller numbers them and
	// publishes them after the commit.
	Events []event.Event
}

// Effect is something the caller must do. Except for StopEffects each is
// answered by an input.
type Effect interface{ EffectKind() string }

// CallModel asks for a reply → ModelDone, ModelFailed.
type CallModel struct {
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Index   int    `json:"index,omitempty"`
	Entry   string `json:"entry"`
	// Closing: the model is to close its answer, without tools, for this reason.
	Closing string `json:"closing,omitempty"`
}

// Judge asks for the verdict on a call → Verdict.
type Judge struct {
	CallID string `json:"call"`
	Name   string `json:"name"`
}

// CallTool runs a tool → ToolDone. A once call may start only when the intent,
// this transition, is committed.
type CallTool struct {
	CallID string `json:"call"`
	Name   string `json:"name"`
	Effect string `json:"effect"`
	Key    string `json:"key"`
	Step   int    `json:"step"`
	// Interrupt holds the amended arguments, if not empty.
	Interrupt string `json:"interrupt,omitempty"`
	// Cached is the entry of an earlier result that the call gets without being made.
	// Where that can not be had, the call is made.
	Cached string `json:"cached,omitempty"`
}

// SpawnChild starts or finds the child run of that id and waits for its end → ToolDone.
type SpawnChild struct {
	CallID string `json:"call"`
	Child  string `json:"child"`
	Step   int    `json:"step"`
	// Interrupt holds the amended arguments, if not empty.
	Interrupt string `json:"interrupt,omitempty"`
	// Stop: the child is not started; if it is there it is told to end.
	Stop bool `json:"stop,omitempty"`
}

// Sleep waits → TimerFired. A second Sleep of the same id replaces the first.
type Sleep struct {
	ID    string `json:"id"`
	Until int64  `json:"until"`
}

// Timer ids. Any other is the id of an interrupt that expires then, which has to
// come also when the run has left memory.
const (
	TimerRetry    = "retry"
	TimerDeadline = "deadline"
)

// StopEffects ends every open effect; each still answers with its input.
type StopEffects struct {
	Reason string `json:"reason"`
}

// EffectKind implements Effect.
func (CallModel) EffectKind() string { return "CallModel" }

// EffectKind implements Effect.
func (Judge) EffectKind() string { return "Judge" }

// EffectKind implements Effect.
func (CallTool) EffectKind() string { return "CallTool" }

// EffectKind implements Effect.
func (SpawnChild) EffectKind() string { return "SpawnChild" }

// EffectKind implements Effect.
func (Sleep) EffectKind() string { return "Sleep" }

// EffectKind implements Effect.
func (StopEffects) EffectKind() string { return "StopEffects" }

// Write is a change of durable rows besides the state itself.
type Write interface{ writeKind() string }

// AppendMessage writes an entry.
type AppendMessage struct {
	Entry, Parent string
	Message       *message.Message
}

// AppendQueued moves a queued input into the session as an entry.
type AppendQueued struct {
	Entry, Parent string
	Input         string
}

// AppendSetting writes the entry of a setting that was changed.
type AppendSetting struct {
	Entry, Parent string
	Setting
}

// RollBack writes an entry that takes what the run wrote off the session's path:
// its parent is where the session stood before the run. Nothing is deleted.
type RollBack struct{ Entry, Parent string }

// ReturnQueued hands queued inputs back that the run will never take.
type ReturnQueued struct{ Inputs []string }

// OpenInterrupt writes an interrupt.
type OpenInterrupt struct {
	ID, Kind, CallID, Name string
	Prompt                 string
	Schema                 json.RawMessage
	// Args are what is asked about where it is no call (CallID is empty).
	Args    json.RawMessage
	Expires int64
}

// CloseInterrupt ends an open interrupt that nobody answered. One that Expired has
// the decision that was declared for that, and the answer.
type CloseInterrupt struct {
	ID, Reason       string
	Expired          bool
	Decision, Answer string
}

func (AppendMessage) writeKind() string  { return "AppendMessage" }
func (AppendQueued) writeKind() string   { return "AppendQueued" }
func (AppendSetting) writeKind() string  { return "AppendSetting" }
func (RollBack) writeKind() string       { return "RollBack" }
func (ReturnQueued) writeKind() string   { return "ReturnQueued" }
func (OpenInterrupt) writeKind() string  { return "OpenInterrupt" }
func (CloseInterrupt) writeKind() string { return "CloseInterrupt" }
