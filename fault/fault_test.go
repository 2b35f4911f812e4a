package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestError(t *testing.T) {
	cause := errors.New("no such thing")
	err := fmt.Errorf("looking: %w", &Error{Op: "x.Find", Kind: NotFound, Err: cause, Hint: "look elsewhere", Field: "id"})
	if KindOf(err) != NotFound || HintOf(err) != "look elsewhere" || !errors.Is(err, cause) {
		t.Errorf("%v: %s %q", err, KindOf(err), HintOf(err))
	}
	if err.Error() != "looking: x.Find: id: no such thing" {
		t.Error(err.Error())
	}
	if !errors.Is(err, &Error{Kind: NotFound}) || errors.Is(err, &Error{Kind: Conflict}) {
		t.Error("errors.Is does not ask for the kind")
	}
	if KindOf(cause) != Internal || HintOf(cause) != "" {
		t.Error("a plain error is internal and has no hint")
	}
	outer := &Error{Kind: Invalid, Err: &Error{Kind: NotFound, Err: cause, Hint: "inner"}}
	if KindOf(outer) != Invalid || HintOf(outer) != "inner" {
		t.Error("the outer kind and the first hint count")
	}
}

func TestHTTPStatus(t *testing.T) {
	want := map[Kind]int{Invalid: 400, Unauthorized: 401, Forbidden: 403, NotFound: 404, Conflict: 409, TooLarge: 413, RateLimited: 429,
		Cancelled: 499, Internal: 500, Unsupported: 501, Unavailable: 503, Timeout: 504, "new": 500}
	for k, status := range want {
		if got := k.HTTPStatus(); got != status {
			t.Errorf("%s is %d, want %d", k, got, status)
		}
	}
}
