package openai

import (
	"net/http"
	"strconv"
	"time"

	"agentd/internal/rate"
)

// rateHeaders tells how far limits are used up, in the protocol's own headers. A
// limit that there is not has none.
func rateHeaders(h http.Header, s *rate.Status) {
	for _, l := range []struct {
		name string
		rate.Level
	}{{"requests", s.Requests}, {"tokens", s.Tokens}} {
		if l.Limit == 0 {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+l.name, strconv.Itoa(l.Limit))
		h.Set("X-Ratelimit-Remaining-"+l.name, strconv.Itoa(l.Remaining))
		h.Set("X-Ratelimit-Reset-"+l.name, l.Reset.Round(time.Millisecond).String())
	}
}
