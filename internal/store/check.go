package store

import "context"

// Finding is something that is wrong with a store, or might be.
type Finding struct {
	// Check names the invariant: "file", "leaf", "interrupts" and so on.
	Check string `json:"check"`
	// Severity is "error" (something is lost or can not go on), "warning" (it
	// works, and should not be so) or "notice".
	Severity string `json:"severity"`
	// Where names the tenant and the row: "default: session ses_…".
	Where string `json:"where,omitempty"`
	// What is wrong, and what that means, for people.
	What string `json:"what"`
	// Advice is what to do where nothing can be repaired.
	Advice string `json:"advice,omitempty"`
	// Repair says what a repair does; "" if nothing safe can be done.
	Repair string `json:"repair,omitempty"`
	// Repaired is whether it was done.
	Repaired bool `json:"repaired,omitempty"`
}

// Severities of findings.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityNotice  = "notice"
)

// CheckOptions are the choices of a check.
type CheckOptions struct {
	// Repair does what is safe: nothing that holds what somebody said is deleted.
	Repair bool
	// State says what is wrong with the control state of a run, or "". The store
	// does not know what states mean. open are the ids of the run's open
	// interrupts. Nil looks at no states.
	State func(run *Run, open []string) string
	// Now is for what a repair writes, in Unix milliseconds.
	Now int64
}

// Report is what a check found.
type Report struct {
	Sessions   int64     `json:"sessions"`
	Runs       int64     `json:"runs"`
	Entries    int64     `json:"entries"`
	Events     int64     `json:"events"`
	Interrupts int64     `json:"interrupts"`
	Blobs      int64     `json:"artifacts"`
	Findings   []Finding `json:"findings"`
}

// Checker is a store that can look for what is wrong in it. Nobody else may write
// meanwhile.
type Checker interface {
	// Check looks at everything. Its error says that it could not, not that
	// something was found.
	Check(ctx context.Context, o CheckOptions) (*Report, error)
}
