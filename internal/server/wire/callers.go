package wire

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// UserOf is who a trusted client says its user is, in the header that is configured
// for it; "" if none is, or it is empty.
func UserOf(r *http.Request, header string) string {
	if header == "" {
		return ""
	}
	return strings.TrimSpace(r.Header.Get(header))
}

// RetryAfter says when to try again, where the error knows it: in whole seconds, and
// for clients that look for it in milliseconds.
func RetryAfter(h http.Header, err error) {
	var later interface{ RetryAfter() time.Duration }
	if !errors.As(err, &later) {
		return
	}
	d := max(later.RetryAfter(), time.Millisecond)
	h.Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
	h.Set("Retry-After-Ms", strconv.FormatInt((d+time.Millisecond-1).Milliseconds(), 10))
}
