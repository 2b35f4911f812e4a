// Package fault is the one error type that agentd shows to people and
// programs. A [Kind] decides what callers may do (retry, HTTP status, exit
// code); Err says what was wrong; Hint says what to do about it.
//
// Errors are made where the cause is known, wrapped at most once on the way
// up, and logged only at the top.
package fault

import "errors"

// Kind classifies an error. Kinds are stable and appear in the API.
type Kind string

// The kinds.
const (
	Invalid      Kind = "invalid"      // the input is wrong; sending it again will not help
	NotFound     Kind = "not_found"    // no such thing, or not yours
	Conflict     Kind = "conflict"     // the thing is not in a state that allows it
	Unauthorized Kind = "unauthorized" // no key, or an unknown one
	Forbidden    Kind = "forbidden"    // a key without that scope
	TooLarge     Kind = "too_large"    // over a documented limit
	RateLimited  Kind = "rate_limited" // slow down and try again
	Unavailable  Kind = "unavailable"  // a dependency failed; may be retried
	Timeout      Kind = "timeout"      // took longer than allowed
	Cancelled    Kind = "cancelled"    // the caller or a person stopped it
	Unsupported  Kind = "unsupported"  // not available in this build or on this system
	Internal     Kind = "internal"     // a bug or a broken store
)

// Error is an error with a kind and a hint. The zero value is not useful; use
// a literal or [New].
type Error struct {
	Op    string // what was being done, as "package.Func"; may be empty
	Kind  Kind   // empty means Internal
	Err   error  // what was wrong
	Hint  string // what to do; may be empty
	Field string // the offending field, path or key; may be empty
}

// New returns an error of a kind with a message.
func New(kind Kind, msg string) *Error { return &Error{Kind: kind, Err: errors.New(msg)} }

// Error returns the message without the hint.
func (e *Error) Error() string {
	s := ""
	if e.Op != "" {
		s = e.Op + ": "
	}
	if e.Field != "" {
		s += e.Field + ": "
	}
	if e.Err == nil {
		return s + string(e.kind())
	}
	return s + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same kind with nothing else
// set, so that errors.Is(err, &fault.Error{Kind: fault.NotFound}) asks for a kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Err == nil && t.Op == "" && t.Kind == e.kind()
}

func (e *Error) kind() Kind {
	if e.Kind == "" {
		return Internal
	}
	return e.Kind
}

// KindOf returns the kind of the first *Error in err's chain, or Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.kind()
	}
	return Internal
}

// HintOf returns the hint of the first *Error in err's chain that has one.
func HintOf(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// HTTPStatus is the status that stands for the kind.
func (k Kind) HTTPStatus() int {
	switch k {
	case Invalid:
		return 400
	case NotFound:
		return 404
	case Conflict:
		return 409
	case Unauthorized:
		return 401
	case Forbidden:
		return 403
	case TooLarge:
		return 413
	case RateLimited:
		return 429
	case Unavailable:
		return 503
	case Timeout:
		return 504
	case Cancelled:
		return 499
	case Unsupported:
		return 501
	}
	return 500
}
