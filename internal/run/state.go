package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"agentd/message"
)

// Status is the public state of a run.
type Status string

// The statuses.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Paused    Status = "paused_checkpoint"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Ended reports whether no input but a late one can follow.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// Phase says what the run is doing.
type Phase string

// The phases. Control (a requested cancel) is orthogonal to them.
const (
	PhaseQueued  Phase = "queued"  // not started
	PhaseModel   Phase = "model"   // a model call is open
	PhaseRetry   Phase = "retry"   // waiting to try the model call again
	PhaseCompact Phase = "compact" // the session is being compacted
	PhaseTools   Phase = "tools"   // a batch of tool calls is open
	PhaseBudget  Phase = "budget"  // a reservation is open, or a person is asked for more
	PhaseEnded   Phase = "ended"
)

// StopClientTools is the stop reason of a run that ended because the model called
// tools that the run's client performs. Their calls have no results.
const StopClientTools = "client_tool_calls"

// Settings are captured when the run starts; a change of the profile does not
// reach a run under way. Zero limits mean no limit.
type Settings struct {
	// Autonomous: nobody watches; nothing waits for a person that need not.
	Autonomous bool `json:"autonomous,omitempty"`
	// Models is how many models there are to fall back on, in order; at least 1.
	Models int `json:"models"`
	// Order is in which order they are tried; empty: as they are counted.
	Order []int `json:"order,omitempty"`
	// MaxSteps bounds the steps per user message.
	MaxSteps int `json:"max_steps,omitempty"`
	// MaxToolCalls bounds the tool calls of the run.
	MaxToolCalls int `json:"max_tool_calls,omitempty"`
	// MaxFailures bounds failed tool calls of the run.
	MaxFailures int `json:"max_failures,omitempty"`
	// MaxRunMS bounds the time from start to end, waits for people not counted.
	MaxRunMS int64 `json:"max_run_ms,omitempty"`
	// SkipRest makes a steering message skip the tools not started yet.
	SkipRest bool `json:"skip_rest,omitempty"`
	// AllAtOnce delivers the whole queue at a drain point instead of one message.
	AllAtOnce bool `json:"all_at_once,omitempty"`
	// FailOnToolError ends the run when a tool call failed; otherwise the
	// model is told and decides.
	FailOnToolError bool `json:"fail_on_tool_error,omitempty"`
	// Sequential runs all tool batches one call at a time.
	Sequential bool  `json:"sequential,omitempty"`
	Retry      Retry `json:"retry"`
	// StepRetries is how often in a row a failed step is tried again: one whose
	// model calls failed on every model, from the first model on, and one with
	// a failed tool call under FailOnToolError, by telling the model.
	StepRetries int `json:"step_retries,omitempty"`
	// MaxSameFailures and MaxSameCalls are how often in a row, from step to step,
	// a call may fail, or have the same result, with the same arguments. Then the
	// model is asked once more, without tools, to close its answer.
	MaxSameFailures int `json:"max_same_failures,omitempty"`
	MaxSameCalls    int `json:"max_same_calls,omitempty"`
	// MaxApprovals bounds the approvals that people are asked for, and MinToolCalls is
	// how many calls the model should make, both per user message.
	MaxApprovals int `json:"max_approvals,omitempty"`
	MinToolCalls int `json:"min_tool_calls,omitempty"`
	// Interrupts says what becomes of those that nobody answers.
	Interrupts Expiry `json:"interrupts,omitzero"`
	// Pots are the budgets that the run shares with others. Without any there are no
	// reservations.
	Pots []Pot `json:"pots,omitempty"`
	// CompactWait is for how many steps a compaction ahead of a call that failed is not
	// tried again, unless the conversation grows; 0: it is tried in each step.
	CompactWait int `json:"compact_wait,omitempty"`
	// Model and Thinking are the session's: the name of the model that is asked first, and
	// how much it thinks; "" leaves it to the profile.
	Model    string `json:"model,omitempty"`
	Thinking string `json:"thinking,omitempty"`
	// AskMore: an interactive run asks a person for more of its own limits before it
	// ends for them.
	AskMore bool `json:"ask_more,omitempty"`
}

// Retry says how failed model calls are tried again.
type Retry struct {
	Max     int   `json:"max,omitempty"`
	BaseMS  int64 `json:"base_ms,omitempty"`
	LimitMS int64 `json:"limit_ms,omitempty"`
}

// State is the whole control state of a run.
type State struct {
	Version   int      `json:"v"`
	RunID     string   `json:"run"`
	SessionID string   `json:"session"`
	Status    Status   `json:"status"`
	Phase     Phase    `json:"phase"`
	Settings  Settings `json:"settings"`

	// EntryBase and Entries make entry ids: base and counter.
	EntryBase string `json:"entry_base,omitempty"`
	Entries   int    `json:"entries,omitempty"`
	// Leaf is the tip of the session's path as far as it has no gap.
	Leaf string `json:"leaf,omitempty"`
	// Start is where the run started; nil in runs that
	// started before this was kept, which can not be rolled back.
	Start *string `json:"start,omitempty"`
	// Stood is where the session stood then if the run started elsewhere, or nil.
	Stood *string `json:"stood,omitempty"`

	// Mode is the mode of the session as the run has it, fixed when it started and changed
	// by the approval of a plan alone; "" is edit. Switched: that approval changed it, and
	// the session's path does not have the change yet.
	Mode     string `json:"mode,omitempty"`
	Switched bool   `json:"switched,omitempty"`

	// Step counts model calls (retries not counted), TurnSteps those since
	// the last user message, but for one that closes the turn.
	Step      int `json:"step,omitempty"`
	TurnSteps int `json:"turn_steps,omitempty"`
	ToolCalls int `json:"tool_calls,omitempty"`
	Failures  int `json:"failures,omitempty"`
	Children  int `json:"children,omitempty"`
	Asked     int `json:"asked,omitempty"`
	Proposed  int `json:"proposed,omitempty"`

	// FailedSteps counts steps in a row with a failed tool, under StepRetries.
	FailedSteps int `json:"failed_steps,omitempty"`
	// Streaks are the calls of the last step, and how often they were repeated.
	Streaks []Streak `json:"streaks,omitempty"`
	// Closing is why the model call of this step is the turn's last, without
	// tools; it becomes the stop reason.
	Closing string `json:"closing,omitempty"`
	// TurnAsked counts the approvals that were asked for, TurnCalls the calls that were
	// made, since the last user message.
	TurnAsked int `json:"turn_asked,omitempty"`
	TurnCalls int `json:"turn_calls,omitempty"`
	// Nudged is whether the model was asked to call tools before it answers, since
	// the last user message. Held is the answer that stands if nothing comes of it;
	// empty once there is a reply.
	Nudged bool   `json:"nudged,omitempty"`
	Held   string `json:"held,omitempty"`
	// Reformed is whether the model was asked for its answer in another form, since
	// the last user message.
	Reformed bool `json:"reformed,omitempty"`
	// Cached are results of this turn that equal calls may get.
	Cached []Cached `json:"cached,omitempty"`
	// CompactWait is set while a compaction ahead of a call is open, and after one that
	// failed.
	CompactWait *CompactWait `json:"compact_wait,omitempty"`
	// Asks is the open question for more of a limit.
	Asks *More `json:"asks,omitempty"`
	// Warned are the limits of pots that were told to be nearly used up.
	Warned []string `json:"warned,omitempty"`

	Usage message.Usage `json:"usage"`

	// Model is the open or awaited model call.
	Model *ModelCall `json:"model,omitempty"`
	// Calls is the open batch, in source order.
	Calls []Call `json:"calls,omitempty"`

	Steering  []string `json:"steering,omitempty"`
	FollowUps []string `json:"follow_ups,omitempty"`

	// Cancel is why a cancel was requested; empty if none was.
	Cancel string `json:"cancel,omitempty"`
	// Rollback is whether the run leaves the session where it started.
	Rollback bool `json:"rollback,omitempty"`
	// Deadline is when the run must have ended, Unix milliseconds; 0: never.
	// While paused, and once the run has ended, Remaining holds the time left
	// instead.
	Deadline  int64 `json:"deadline,omitempty"`
	Remaining int64 `json:"remaining,omitempty"`

	// StopReason is why the run ended or, while it has not, why it must end.
	StopReason string `json:"stop_reason,omitempty"`
	// Output is the entry of the final answer.
	Output string `json:"output,omitempty"`

	// Trail is the last transitions, for error messages.
	Trail []string `json:"trail,omitempty"`
}

// ModelCall is a model call and its attempts.
type ModelCall struct {
	// Entry is the id that the reply will have.
	Entry string `json:"entry"`
	// Attempt counts from 1 for each model, also over the rounds of a step that is
	// tried again. Tried are those before the present round, by model; nil in the
	// first.
	Attempt int   `json:"attempt"`
	Tried   []int `json:"tried,omitempty"`
	// Index is the model in use: 0 is the primary one.
	Index int `json:"index,omitempty"`
	// Compacted is whether the session was compacted for this reply because it was
	// refused as too large, Trimmed whether that was tried ahead of the call.
	Compacted bool `json:"compacted,omitempty"`
	Trimmed   bool `json:"trimmed,omitempty"`
	// CompactEntry is the id that the compaction under way will have, CompactFor why
	// there is one; empty: overflow.
	CompactEntry string `json:"compact_entry,omitempty"`
	CompactFor   string `json:"compact_for,omitempty"`
	// RetryAt is when the next attempt starts, in PhaseRetry.
	RetryAt int64 `json:"retry_at,omitempty"`
	// Again is how often the step was tried again.
	Again int `json:"again,omitempty"`
	// Calls is how many calls of the reply may run; nil: as many as it has.
	Calls *int `json:"calls,omitempty"`
}

// CallPhase says how far a tool call is.
type CallPhase string

// The phases of a call.
const (
	CallPlanned CallPhase = "planned" // no verdict yet
	CallReady   CallPhase = "ready"   // allowed, not started
	CallRunning CallPhase = "running" // intent written, outcome open
	CallAsked   CallPhase = "asked"   // waits for a person
	CallDone    CallPhase = "done"    // has its result
)

// Call is a tool call of the open batch. Its arguments are in the reply's entry.
type Call struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Phase CallPhase `json:"phase"`
	// Entry is the id that the result will have.
	Entry string `json:"entry"`
	// Effect is read, idempotent or once.
	Effect     string `json:"effect,omitempty"`
	Sequential bool   `json:"sequential,omitempty"`
	// Kind is "", "ask", "plan", "spawn" or "client".
	Kind string `json:"kind,omitempty"`
	// Child is the id of the child run of a spawn. Waits are the interrupts that
	// are open below it, as far as this run was told, and Paused is whether it
	// waits for nothing else.
	Child  string   `json:"child,omitempty"`
	Waits  []string `json:"waits,omitempty"`
	Paused bool     `json:"paused,omitempty"`
	// Interrupt is the open or answered interrupt, InterruptKind its kind.
	Interrupt     string `json:"interrupt,omitempty"`
	InterruptKind string `json:"interrupt_kind,omitempty"`
	// Expires is when it ends by itself, 0 for never. Grave: not by approval.
	Expires int64 `json:"expires,omitempty"`
	Grave   bool  `json:"grave,omitempty"`
	// Amended is whether a person changed the arguments; they are in the
	// interrupt AmendedBy, also when the call has a later one.
	Amended   bool   `json:"amended,omitempty"`
	AmendedBy string `json:"amended_by,omitempty"`
	Terminate bool   `json:"terminate,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`
	// Failed: it ran and ended in an error.
	Failed bool `json:"failed,omitempty"`
	// Sig and Out are fingerprints of the call and of its result, where streaks
	// are limited. A call without Sig is part of none.
	Sig string `json:"sig,omitempty"`
	Out string `json:"out,omitempty"`
	// CacheKey is under which the result may be remembered, Cached the entry of an
	// earlier result that this call gets without being made.
	CacheKey string `json:"cache_key,omitempty"`
	Cached   string `json:"cached,omitempty"`
}

// AwaitsChild is whether the call is a child run under way.
func (c *Call) AwaitsChild() bool { return c.Kind == kindSpawn && c.Phase == CallRunning }

// AwaitsChild is whether a child run is under way.
func (s *State) AwaitsChild() bool {
	return s.Phase == PhaseTools && slices.ContainsFunc(s.Calls, func(c Call) bool { return c.AwaitsChild() })
}

// Below gives the interrupts that are open below the run, as far as it was told,
// in the order of the calls.
func (s *State) Below() []string {
	var ids []string
	for i := range s.Calls {
		ids = append(ids, s.Calls[i].Waits...)
	}
	return ids
}

// New returns the state of a run that has not started.
func New(runID, sessionID string) State {
	return State{Version: StateVersion, RunID: runID, SessionID: sessionID, Status: Queued, Phase: PhaseQueued}
}

// Encode gives the stored form.
func (s *State) Encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // no browser reads it, and the trail is full of ">"
	if err := enc.Encode(s); err != nil {
		panic("run: a state is always JSON: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Decode reads the stored form. A state of a later version is an error, and so
// is one that no machine wrote: Step relies on what it finds in a state.
func Decode(b []byte) (State, error) {
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return State{}, &IllegalError{Reason: "the stored state can not be read: " + err.Error()}
	}
	if s.Version > StateVersion {
		return State{}, &IllegalError{Newer: true, Reason: "the stored state has version " + strconv.Itoa(s.Version) +
			", this agentd knows " + strconv.Itoa(StateVersion) + ": use the newer agentd"}
	}
	if what := s.damage(); what != "" {
		return State{}, &IllegalError{Reason: "the stored state is damaged: " + what}
	}
	return s, nil
}

// damage says what makes a state unusable, or "".
func (s *State) damage() string {
	switch {
	case s.Version < 1:
		return "version " + strconv.Itoa(s.Version)
	case !slices.Contains([]Status{Queued, Running, Paused, Completed, Failed, Cancelled}, s.Status):
		return "status " + strconv.Quote(string(s.Status))
	case !slices.Contains([]Phase{PhaseQueued, PhaseModel, PhaseRetry, PhaseCompact, PhaseTools, PhaseBudget, PhaseEnded}, s.Phase):
		return "phase " + strconv.Quote(string(s.Phase))
	case (s.Status == Queued) != (s.Phase == PhaseQueued), s.Status.Ended() != (s.Phase == PhaseEnded),
		s.Status == Paused && s.Phase != PhaseTools && s.Asks == nil, s.Asks != nil && s.Phase != PhaseBudget:
		return "status " + string(s.Status) + " in phase " + string(s.Phase)
	case s.Status != Running && s.Status != Paused:
		return ""
	case s.Model == nil || s.Model.Attempt < 1:
		return "there is no model call"
	case s.Phase == PhaseTools && len(s.Calls) == 0:
		return "there are no calls"
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; !slices.Contains([]CallPhase{CallPlanned, CallReady, CallRunning, CallAsked, CallDone}, c.Phase) {
			return "call " + strconv.Quote(c.ID) + " in phase " + strconv.Quote(string(c.Phase))
		}
	}
	return ""
}

// clone copies what Step may change, so that the caller's state stays as it was.
func (s *State) clone() State {
	c := *s
	if s.Model != nil {
		m := *s.Model
		m.Tried = slices.Clone(m.Tried)
		c.Model = &m
	}
	c.Calls = slices.Clone(s.Calls)
	c.Steering = slices.Clone(s.Steering)
	c.FollowUps = slices.Clone(s.FollowUps)
	c.Streaks = slices.Clone(s.Streaks)
	c.Warned = slices.Clone(s.Warned)
	c.Cached = slices.Clone(s.Cached)
	c.Trail = slices.Clone(s.Trail)
	return c
}

const digits = "0123456789abcdefghjkmnpqrstvwxyz"

// NextEntry makes the next entry id of the base, for who writes entries besides
// the machine.
func (s *State) NextEntry() string { return s.nextEntry() }

// nextEntry makes the next entry id: the base and four digits that sort.
func (s *State) nextEntry() string {
	n := s.Entries
	s.Entries++
	var d [4]byte
	for i := len(d) - 1; i >= 0; i-- {
		d[i] = digits[n&31]
		n >>= 5
	}
	return s.EntryBase + string(d[:])
}

// Key is the idempotency key of a call: the same for every attempt.
func (s *State) Key(callID string) string {
	return s.RunID + "/" + strconv.Itoa(s.Step) + "/" + callID
}

// ChildID is the id of the n-th child of a run, counted from 1.
func ChildID(runID string, n int) string { return runID + ".c" + strconv.Itoa(n) }

// ParentID is the id of the run that started a child, "" for any other run.
func ParentID(runID string) string {
	if i := strings.LastIndex(runID, ".c"); i > 0 {
		return runID[:i]
	}
	return ""
}

// Stopping is whether the run ends as soon as its open effects have answered, or
// has ended.
func (s *State) Stopping() bool { return s.stopping() || s.Status.Ended() }

// stopping is whether the run ends as soon as its open effects have answered: a
// cancel was requested, or StopReason says what went wrong.
func (s *State) stopping() bool { return s.Cancel != "" || s.StopReason != "" }

// Interrupts gives the ids of the open interrupts: of calls, in source order, or the
// run's own.
func (s *State) Interrupts() []string {
	var ids []string
	for i := range s.Calls {
		if s.Calls[i].Phase == CallAsked {
			ids = append(ids, s.Calls[i].Interrupt)
		}
	}
	if s.Asks != nil {
		ids = append(ids, s.Asks.Interrupt)
	}
	return ids
}
