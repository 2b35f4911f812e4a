package profile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentd/fault"
)

// Severity says how bad a problem is.
type Severity string

// The severities.
const (
	// SeverityError: the configuration cannot be used.
	SeverityError Severity = "error"
	// SeverityWarning: it can be used, but something will likely not work.
	SeverityWarning Severity = "warning"
	// SeverityNotice: good to know.
	SeverityNotice Severity = "notice"
)

// Problem is one thing that is wrong with the configuration, and where.
type Problem struct {
	File string `json:"file"`
	// Line and Column count from 1.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Key is the dotted path of the key, such as tools.mcp_servers[0].
	Key      string   `json:"key,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
	Severity Severity `json:"severity"`
}

// String gives the problem on one line: file:line:column: severity: key: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": " + string(p.Severity) + ": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems is what was found, sorted by file, line and column.
type Problems []Problem

// Errors gives the problems that are errors.
func (ps Problems) Errors() Problems {
	return ps.only(SeverityError)
}

func (ps Problems) only(s Severity) Problems {
	var out Problems
	for _, p := range ps {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Err is nil if there is no error among the problems, else a *fault.Error of
// kind invalid that lists them all, one a line.
func (ps Problems) Err() error {
	errs := ps.Errors()
	if len(errs) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("the configuration has an error")
	if len(errs) > 1 {
		b.Reset()
		fmt.Fprintf(&b, "the configuration has %d errors", len(errs))
	}
	for _, p := range errs {
		b.WriteString("\n  " + p.String())
	}
	return &fault.Error{
		Kind: fault.Invalid, Err: errors.New(b.String()),
		Hint: "correct the files, then run: agentd config check",
	}
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Key, b.Key))
	})
}
