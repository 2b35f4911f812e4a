// Package policy decides whether a tool call may run: pure functions from what
// is known about the call to a verdict with its reason. Nothing here asks a
// person or looks at a clock, so the same call always gets the same verdict.
package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"agentd/tool"
)

// Mode says when people are asked.
type Mode string

// The modes. The empty value is Policy.
const (
	Never  Mode = "never"  // nobody is asked; calls that need approval by the tool's own rule still do
	Always Mode = "always" // every call that is not a read is asked for
	Policy Mode = "policy" // the tool's rules and the profile's policies decide
)

// Rules are a profile's part in the decision. The zero value asks for what the
// tool's own rules say and for nothing else.
type Rules struct {
	Mode Mode
	// Classes ask for approval by what a tool does: write, delete, network,
	// shell, dangerous.
	Classes []string
	// AutoApprove lets autonomous runs execute what would need approval.
	AutoApprove bool
	// Capture records such calls as proposals instead of refusing them.
	Capture bool
}

// Verdict is a decision and why.
type Verdict struct {
	// Ask: a person must agree. Deny: nobody can, the call is refused.
	// Capture: it is recorded for a person to decide about later. None of
	// them: the call may run.
	Ask, Deny, Capture bool
	Reason             string
}

// Judge decides about a call with validated arguments. A condition that is not
// a valid regular expression matches everything: a broken guard must not open
// the door. Conditions see numbers as they are written and without exponents, so
// that 1e6 is a number of seven digits, too.
func (r *Rules) Judge(spec *tool.Spec, args json.RawMessage, autonomous bool) Verdict {
	reason := r.gate(spec, args)
	switch {
	case reason == "":
		return Verdict{Reason: "no rule asks for approval"}
	case !autonomous:
		return Verdict{Ask: true, Reason: reason}
	case r.AutoApprove:
		return Verdict{Reason: "auto_approve_in_daemon allows it; " + reason}
	case r.Capture && (spec.Kind == "" || spec.Kind == "spawn"):
		return Verdict{Capture: true, Reason: "it needs a person's approval (" + reason + ") and this run is autonomous"}
	default:
		return Verdict{Deny: true, Reason: "it needs a person's approval (" + reason + ") and this run is autonomous"}
	}
}

// gate gives the reason for which a person must agree, or "".
func (r *Rules) gate(spec *tool.Spec, args json.RawMessage) string {
	switch spec.Approval {
	case "always":
		if spec.ApprovalBy != "" {
			return spec.ApprovalBy
		}
		return "requires_approval.always names " + spec.Name
	case "conditional":
		plain := tool.PlainNumbers(args)
		for _, c := range spec.Conditions {
			re, err := regexp.Compile(c)
			if err != nil || re.Match(args) || re.Match(plain) {
				return fmt.Sprintf("requires_approval.conditional %q matches the arguments", c)
			}
		}
	}
	switch r.Mode {
	case Never:
		return ""
	case Always:
		if spec.EffectOrDefault() != tool.Read {
			return "approval_mode is always"
		}
		return ""
	}
	for _, class := range spec.Classes {
		if slices.Contains(r.Classes, class) {
			return "approval_policies asks for " + class + " calls"
		}
	}
	return ""
}
