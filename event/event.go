package event

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Version is the version of the wire form.
const Version = 1

// Type names what happened.
type Type string

// The types of events.
const (
	RunStarted   Type = "run_started"
	RunResumed   Type = "run_resumed"
	RunCompleted Type = "run_completed"
	RunFailed    Type = "run_failed"
	RunCancelled Type = "run_cancelled"

	StepStarted   Type = "step_started"
	StepCompleted Type = "step_completed"

	TextDelta     Type = "text_delta"
	ThinkingDelta Type = "thinking_delta"
	FinalText     Type = "final_text"

	ToolInputStarted Type = "tool_input_started"
	ToolStarted      Type = "tool_started"
	ToolStdout       Type = "tool_stdout"
	ToolStderr       Type = "tool_stderr"
	ToolProgress     Type = "tool_progress"
	ToolCompleted    Type = "tool_completed"
	ToolFailed       Type = "tool_failed"

	CheckpointRequired Type = "checkpoint_required"
	CheckpointInfo     Type = "checkpoint_info"
	CheckpointResolved Type = "checkpoint_resolved"

	ArtifactCreated   Type = "artifact_created"
	MemoryUpdated     Type = "memory_updated"
	SessionCompacted  Type = "session_compacted"
	ModeChanged       Type = "mode_changed"
	TodoUpdated       Type = "todo_updated"
	PlanUpdated       Type = "plan_updated"
	TaskNotification  Type = "task_notification"
	SubagentStarted   Type = "subagent_started"
	SubagentCompleted Type = "subagent_completed"

	ModelRetry    Type = "model_retry"
	ModelFallback Type = "model_fallback"
	BudgetWarning Type = "budget_warning"
	CacheBroken   Type = "cache_broken"

	EntryQuarantined Type = "entry_quarantined"
	EventsLost       Type = "events_lost"
)

// Terminal reports whether no event follows one of this type.
func (t Type) Terminal() bool {
	return t == RunCompleted || t == RunFailed || t == RunCancelled
}

// Delta reports whether events of this type are numbered by position.
func (t Type) Delta() bool { return t == TextDelta || t == ThinkingDelta }

// Event is one thing that happened in a run.
type Event struct {
	RunID string
	Seq   int64
	// Time is Unix milliseconds.
	Time int64
	Type Type
	// Step is the step it belongs to, counted from 1; 0 before the first.
	Step int
	// Data is the payload, of the type that the table in data.go names for
	// Type, or a json.RawMessage when the event was read from outside.
	Data any
}

type wire struct {
	V     int             `json:"v"`
	RunID string          `json:"run_id"`
	Seq   int64           `json:"seq"`
	TS    string          `json:"ts"`
	Type  Type            `json:"type"`
	Step  int             `json:"step"`
	Data  json.RawMessage `json:"data"`
}

// TimeLayout is the form of "ts" on the wire: RFC 3339 in UTC with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z07:00"

// UnmarshalJSON reads the wire form. Data becomes the typed payload where the
// type is known, and a json.RawMessage where it is not.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.V > Version {
		return fmt.Errorf("event version %d is newer than %d", w.V, Version)
	}
	ts, err := time.Parse(time.RFC3339, w.TS)
	if err != nil {
		return fmt.Errorf("event ts: %w", err)
	}
	data, err := Decode(w.Type, w.Data)
	if err != nil {
		return err
	}
	*e = Event{RunID: w.RunID, Seq: w.Seq, Time: ts.UnixMilli(), Type: w.Type, Step: w.Step, Data: data}
	return nil
}

// After returns what a reader who has seen everything up to seq still needs of
// e: e itself, the rest of a delta, or nothing (false).
func After(e Event, seq int64) (Event, bool) {
	if e.Seq <= seq {
		return e, false
	}
	d, ok := e.Data.(*Delta)
	if !ok || !e.Type.Delta() {
		return e, true
	}
	seen := seq - (e.Seq - int64(len(d.Text)))
	if seen <= 0 {
		return e, true
	}
	// A reader's position is always between runes; if it is not, it was made up.
	for seen > 0 && !utf8.RuneStart(d.Text[seen]) {
		seen--
	}
	rest := *d
	rest.Text = d.Text[seen:]
	e.Data = &rest
	return e, true
}
