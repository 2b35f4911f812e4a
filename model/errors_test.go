package model

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestAsError(t *testing.T) {
	typed := &Error{Class: ClassQuota}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want Class
	}{
		{"typed", t.Context(), typed, ClassQuota},
		{"wrapped", t.Context(), fmt.Errorf("x: %w", typed), ClassQuota},
		{"typed, in a context that ended", ended, typed, ClassQuota},
		{"plain", t.Context(), errors.New("x"), ClassConnection},
		{"the context ended", ended, errors.New("x"), ClassCancelled},
		{"some other deadline", t.Context(), context.DeadlineExceeded, ClassTimeout},
	} {
		e := AsError(tt.ctx, "p", "m", tt.err)
		if e.Class != tt.want || !errors.Is(e, tt.err) && !errors.Is(tt.err, e) {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
}

func TestRetryable(t *testing.T) {
	want := map[Class]bool{
		ClassRateLimited: true, ClassOverloaded: true, ClassServer: true, ClassConnection: true, ClassTimeout: true,
		ClassTruncated: true, ClassMalformed: true, ClassOverflow: false, ClassQuota: false, ClassAuth: false,
		ClassInvalid: false, ClassNotFound: false, ClassRefused: false, ClassCancelled: false, "": false,
	}
	for c, w := range want {
		if c.Retryable() != w {
			t.Errorf("%q: %v, want %v", c, !w, w)
		}
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*Error{
		"p: server": {Class: ClassServer, Provider: "p"},
		"p (m): rate_limited (HTTP 429): slow down": {Class: ClassRateLimited, Provider: "p", Model: "m", Status: 429, Message: "slow down"},
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	}
}
