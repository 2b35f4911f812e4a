package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentd/fault"
	"agentd/model"
)

// FaultKind names a way for a model call to fail.
type FaultKind string

// The kinds. Those of the first group are answers of the service; with After
// they come in the middle of a stream, in the protocol's own way. Those of the
// second group happen to the connection or to its bytes.
const (
	FaultRateLimited FaultKind = "rate_limited" // 429
	FaultOverloaded  FaultKind = "overloaded"   // 529 (Anthropic), 503 (OpenAI)
	FaultServer      FaultKind = "server"       // 500
	FaultOverflow    FaultKind = "overflow"     // 400: the prompt is too long
	FaultAuth        FaultKind = "auth"         // 401: bad key
	FaultQuota       FaultKind = "quota"        // 429 (OpenAI), 400 (Anthropic): no money left

	FaultRefused       FaultKind = "refused"         // the reply ends as a refusal of the safety system
	FaultCut           FaultKind = "cut"             // the connection breaks
	FaultTruncated     FaultKind = "truncated"       // the reply ends cleanly, without its terminal marker
	FaultStall         FaultKind = "stall"           // nothing more comes
	FaultMalformed     FaultKind = "malformed"       // a chunk that is not JSON
	FaultSlowFirstByte FaultKind = "slow_first_byte" // nothing comes for a while, then all of it
)

// faultKinds lists the kinds for errors, in the order of the documentation.
const faultKinds = "rate_limited, overloaded, server, overflow, auth, quota, refused, cut, truncated, stall, malformed, slow_first_byte"

// Fault is how a reply fails.
type Fault struct {
	Kind FaultKind
	// Status replaces the kind's HTTP status; 0 keeps it.
	Status int
	// RetryAfter is what the service asks for; 0 means it says nothing.
	RetryAfter time.Duration
	// After is the number of chunks that come before the fault; -1 means not
	// said: an answer of the service then comes instead of the stream, and
	// the others after the first chunk.
	After int
	// For is how long a slow first byte takes (0: 2 s) and how long a stall
	// lasts before the reply goes on (0: for ever).
	For time.Duration
	// Times is how many attempts fail before the turn succeeds; 0 means all.
	Times int
	// Message replaces the text of the service's error.
	Message string
}

// answer reports whether the fault is an answer of the service.
func (k FaultKind) answer() bool {
	switch k {
	case FaultRateLimited, FaultOverloaded, FaultServer, FaultOverflow, FaultAuth, FaultQuota:
		return true
	}
	return false
}

// Instead reports whether the fault comes instead of a reply: nothing of the
// reply is sent.
func (f *Fault) Instead() bool { return f != nil && f.Kind.answer() && f.After < 0 }

// Midway reports whether the fault comes in the middle of a streamed reply.
func (f *Fault) Midway() bool {
	return f != nil && !f.Instead() && f.Kind != FaultSlowFirstByte
}

// after is the number of chunks before a fault that is Midway.
func (f *Fault) after() int {
	if f.After < 0 {
		return 1
	}
	return f.After
}

// check returns the key that is wrong, what is wrong and what to do, or "".
func (f *Fault) check() (key, msg, hint string) {
	switch f.Kind {
	case "":
		return "kind", "a fault needs a kind", "use one of " + faultKinds
	case FaultRefused, FaultCut, FaultTruncated, FaultStall, FaultMalformed, FaultSlowFirstByte:
		if f.Status != 0 {
			return "status", fmt.Sprintf("%s has no status: it happens after the status was sent", f.Kind), "remove it"
		}
	default:
		if !f.Kind.answer() {
			return "kind", fmt.Sprintf("unknown fault %q", f.Kind), "use one of " + faultKinds
		}
	}
	switch {
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return "status", fmt.Sprintf("%d is not an error", f.Status), "use a status from 400 to 599"
	case f.RetryAfter < 0 || f.RetryAfter > maxDelay:
		return "retry_after", fmt.Sprintf("%v is out of range", f.RetryAfter), "write a duration of 0s to 24h"
	case f.For < 0 || f.For > maxDelay:
		return "for", fmt.Sprintf("%v is out of range", f.For), "write a duration of 0s to 24h"
	case f.For > 0 && f.Kind != FaultStall && f.Kind != FaultSlowFirstByte:
		return "for", fmt.Sprintf("%s does not last", f.Kind), "remove it; it belongs to stall and slow_first_byte"
	case f.Times < 0:
		return "times", fmt.Sprintf("%d is negative", f.Times), "write how many attempts fail; 0 or nothing for all"
	}
	return "", "", ""
}

// ParseFault reads a fault of one line: the kind, then keys as in a script, for
// example "rate_limited, retry_after=2s" or "cut, after=3".
func ParseFault(s string) (*Fault, error) {
	kind, rest, _ := strings.Cut(s, ",")
	f := &Fault{Kind: FaultKind(strings.TrimSpace(kind)), After: -1}
	bad := func(key, msg, hint string) error {
		return &fault.Error{Kind: fault.Invalid, Err: errors.New(msg), Hint: hint, Field: key}
	}
	for _, part := range strings.Split(rest, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, val, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "status":
			f.Status, err = strconv.Atoi(val)
		case "after":
			if f.After, err = strconv.Atoi(val); err == nil && f.After < 0 {
				err = errors.New("negative")
			}
		case "retry_after":
			f.RetryAfter, err = time.ParseDuration(val)
		case "for":
			f.For, err = time.ParseDuration(val)
		case "message":
			f.Message = val
		default:
			return nil, bad(key, fmt.Sprintf("unknown key %q", key), "use status, after, retry_after, for or message")
		}
		if err != nil {
			return nil, bad(key, fmt.Sprintf("%q can not be used", val), "write it as in a script, such as retry_after=2s or after=3")
		}
	}
	if key, msg, hint := f.check(); key != "" {
		return nil, bad(key, msg, hint)
	}
	return f, nil
}

// failure is what an in-process call returns for a fault that ends it. A stall
// does not: it waits.
func (f *Fault) failure() *model.Error {
	e := &model.Error{Status: f.Status, RetryAfter: f.RetryAfter, Code: string(f.Kind), Message: f.Message}
	status, text := 0, ""
	switch f.Kind {
	case FaultRateLimited:
		e.Class, status, text = model.ClassRateLimited, 429, "the script says: rate limit reached"
	case FaultOverloaded:
		e.Class, status, text = model.ClassOverloaded, 529, "the script says: overloaded"
	case FaultServer:
		e.Class, status, text = model.ClassServer, 500, "the script says: internal error"
	case FaultOverflow:
		e.Class, status, text = model.ClassOverflow, 400, "the script says: the prompt is too long"
	case FaultAuth:
		e.Class, status, text = model.ClassAuth, 401, "the script says: the key is not accepted"
	case FaultQuota:
		e.Class, status, text = model.ClassQuota, 429, "the script says: the quota is used up"
	case FaultRefused:
		e.Class, text = model.ClassRefused, "the script says: refused"
	case FaultCut:
		e.Class, text = model.ClassConnection, "the script cut the connection"
	case FaultTruncated:
		e.Class, text = model.ClassTruncated, "the script ended the stream without its terminal marker"
	default:
		e.Class, text = model.ClassMalformed, "the script sent a chunk that can not be read"
	}
	if f.After >= 0 && f.Kind.answer() {
		status = 0 // the stream had begun: HTTP said 200
	}
	if e.Status == 0 {
		e.Status = status
	}
	if e.Message == "" {
		e.Message = text
	}
	return e
}
