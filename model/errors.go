package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentd/message"
)

// Class says what an error of a model call means for the run.
type Class string

// The classes.
const (
	ClassRateLimited Class = "rate_limited"    // 429; retry after a while
	ClassOverloaded  Class = "overloaded"      // 503, 529; retry after a while
	ClassServer      Class = "server"          // other 5xx; retry
	ClassConnection  Class = "connection"      // no or a broken connection; retry
	ClassTimeout     Class = "timeout"         // nothing came for too long; retry
	ClassTruncated   Class = "truncated"       // the stream ended without its end; retry
	ClassMalformed   Class = "malformed"       // the reply could not be read; retry
	ClassOverflow    Class = "overflow"        // the prompt does not fit; compact, never retry
	ClassQuota       Class = "quota"           // money or plan limit; a person must act
	ClassAuth        Class = "auth"            // bad key or no permission
	ClassInvalid     Class = "invalid"         // the request is wrong
	ClassNotFound    Class = "model_not_found" // no such model
	ClassRefused     Class = "refused"         // the provider's safety system refused
	ClassCancelled   Class = "cancelled"       // the caller's context ended
	ClassOpen        Class = "circuit_open"    // not sent: it failed too often lately, RetryAfter says for how long
)

// Retryable reports whether the same request may succeed later.
func (c Class) Retryable() bool {
	switch c {
	case ClassRateLimited, ClassOverloaded, ClassServer, ClassConnection, ClassTimeout, ClassTruncated, ClassMalformed:
		return true
	}
	return false
}

// Error is the error of a model call.
type Error struct {
	Class    Class
	Provider string
	Model    string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Code is the provider's own code or type.
	Code    string
	Message string
	// RetryAfter is how long the provider asked to wait; 0 if it did not say.
	RetryAfter time.Duration
	RequestID  string
	// Usage is what the provider had counted when the call failed, because a
	// failed call may have to be paid too; nil if it had counted nothing.
	Usage *message.Usage
	Err   error
}

// Error names provider, status and message.
func (e *Error) Error() string {
	s := e.Provider
	if e.Model != "" {
		s += " (" + e.Model + ")"
	}
	s += ": " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. Errors of another type become
// ClassCancelled if the context ended, else ClassConnection.
func AsError(ctx context.Context, provider, model string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	class := ClassConnection
	switch {
	case ctx.Err() != nil:
		class = ClassCancelled
	case errors.Is(err, context.DeadlineExceeded):
		class = ClassTimeout
	}
	return &Error{Class: class, Provider: provider, Model: model, Message: err.Error(), Err: err}
}
