package tool

import (
	"context"
	"encoding/json"
	"time"

	"agentd/message"
)

// Effect is what running a tool again would do. It decides what happens to a
// call of which a crash left nobody knowing whether it happened.
type Effect string

// The effects.
const (
	// Read changes nothing; it may run any number of times.
	Read Effect = "read"
	// Idempotent may run again with the same [Call.Key] and has then happened once.
	Idempotent Effect = "idempotent"
	// Once must never run again without a person's word. It is the default
	// for anything unknown.
	Once Effect = "once"
)

// Valid reports whether e is one of the three.
func (e Effect) Valid() bool { return e == Read || e == Idempotent || e == Once }

// Spec is what a tool says about itself.
type Spec struct {
	// Name is unique within a set and matches [A-Za-z0-9_-]{1,64}.
	Name string
	// Label is the name for people; empty means Name.
	Label       string
	Description string
	// Schema is the JSON Schema of the arguments, an object at the top.
	Schema json.RawMessage
	// Effect is empty for Once.
	Effect Effect
	// Sequential makes a batch that contains the tool run one call at a time.
	Sequential bool
	// Timeout bounds one call; 0 means the engine's default.
	Timeout time.Duration
	// Source is "builtin", or "mcp:NAME" for a tool of an MCP server.
	Source string
	// Pool names the nodes that make calls of the tool, where several share the runs:
	// those that serve it. "" is the pool of all tools that name none.
	Pool string
	// Classes say what the tool does, for approval policies: write, delete,
	// network, shell, dangerous.
	Classes []string
	// Approval says whether a person must agree: "" (the profile decides),
	// "always", or "conditional" (see Conditions).
	Approval string
	// ApprovalBy is the rule that made it "always", for people; empty: one that
	// names the tool.
	ApprovalBy string
	// Conditions are regular expressions over the arguments' JSON; a match
	// makes approval necessary.
	Conditions []string
	// RememberBy names the arguments that calls must share for a person's
	// approval of one to hold for the other too, when they ask that it be
	// remembered. Empty: all of them.
	RememberBy []string
	// Untrusted is what becomes of calls that are untrusted (see [Call.Untrusted]):
	// "" makes no difference, "tell" has the call say so, "ask" makes a person's
	// agreement necessary, and has the call say so where nobody can be asked.
	Untrusted string
	// Trusted says that results of the tool are the words of people or of the
	// operator, which do not make later calls untrusted.
	Trusted bool
	// Kind is empty for a tool that is run, or names a tool that the run
	// machine itself performs: "ask" (a question to a person) or "spawn" (a
	// child run).
	Kind string
}

// EffectOrDefault returns the effect, Once if none was declared.
func (s *Spec) EffectOrDefault() Effect {
	if s.Effect.Valid() {
		return s.Effect
	}
	return Once
}

// Tool can be called.
type Tool interface {
	Spec() Spec
	// Run performs the call. A returned error becomes an error result that
	// the model reads; a result with IsError set is the same without Go's
	// error. ctx ends when the call must stop.
	Run(ctx context.Context, call Call) (Result, error)
}

// InDoubtError is an error of Run after which the call may have happened all the
// same: its answer was lost, or did not come in time. Errors of any other type say
// that it did not happen, or that who performs it has answered.
type InDoubtError struct{ Err error }

// Error implements error, with the words of Err.
func (e *InDoubtError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *InDoubtError) Unwrap() error { return e.Err }

// Call is one call that passed validation and policy.
type Call struct {
	// ID is the model's id of the call.
	ID   string
	Name string
	// Args are the validated, coerced arguments.
	Args json.RawMessage
	// Key is the same for every attempt of this call: "run/step/call".
	Key       string
	Tenant    string
	RunID     string
	SessionID string
	Step      int
	// User is the tenant's user that the run is for; "" if the client named none.
	User string
	// Untrusted: outputs of tools were before the model when it wrote the call, or
	// another model's words instead of a person's, and no person has looked at the
	// call. What it says may be what somebody put there. False for tools to which it
	// makes no difference: see [Spec.Untrusted].
	Untrusted bool
	// Traceparent is the W3C trace context of this call; "" if its run is not
	// traced. What the call asks of others should carry it.
	Traceparent string
	// Progress may be called any number of times while the call runs; what
	// comes after Run returned is dropped. Never nil.
	Progress func(Progress)
}

// Progress is news of a running call. The zero value of a field means none.
type Progress struct {
	Stdout, Stderr string
	Message        string
	Done, Total    float64
}

// Result is what a call gives back.
type Result struct {
	// Content is for the model: text and images.
	Content []message.Block
	// Details is for programs and people.
	Details json.RawMessage
	IsError bool
	// Terminate asks to end the turn without another model call. It takes
	// effect only if every result of the batch asks for it.
	Terminate bool
}

// TextResult returns a result of one text.
func TextResult(s string) Result { return Result{Content: []message.Block{message.Text(s)}} }

// ErrorResult returns an error result of one text.
func ErrorResult(s string) Result { r := TextResult(s); r.IsError = true; return r }
