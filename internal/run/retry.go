package run

import (
	"strconv"

	"agentd/event"
)

// retry plans another attempt: on the same model while attempts are left, then on
// the next one, then the whole step again. A model that is unavailable is not
// tried again while there is another.
func (m *machine) retry(in ModelFailed) bool {
	s := &m.State
	r := &s.Settings.Retry
	next, more := s.Settings.next(s.Model.Index)
	round := s.Model.Attempt - s.Model.before() // attempts of this model in this round
	again := round <= r.Max && !r.TooLong(in.RetryAfterMS)
	if in.Class == FailUnavailable {
		again = again && !more && in.RetryAfterMS > 0
	}
	told := &event.Retry{Class: in.Reason, Message: in.Error}
	switch {
	case again:
		s.Model.Attempt++
		told.Attempt = s.Model.Attempt
		m.pause(r.Delay(round, in.RetryAfterMS), told)
	case more:
		m.turnTo(next)
		told.Attempt = s.Model.Attempt
		m.tell(event.ModelFallback, told)
		m.callModel()
	case s.Model.Again < s.Settings.StepRetries && (in.Class == FailRetryable || in.RetryAfterMS > 0):
		// Everything was tried. What failed everywhere needs time rather than
		// haste, so the longest wait there is comes first.
		s.Model.Again++
		m.turnTo(s.Settings.first())
		told.Attempt = s.Model.Attempt
		m.pause(max(r.LimitMS, r.BaseMS), told)
	default:
		return false
	}
	return true
}

// before is how often the model in use was tried in earlier rounds.
func (c *ModelCall) before() int {
	if c.Index < len(c.Tried) {
		return c.Tried[c.Index]
	}
	return 0
}

// turnTo goes on with another model, or with the same in another round. Where there
// are no rounds nothing has to be remembered.
func (m *machine) turnTo(index int) {
	s := &m.State
	c := s.Model
	if s.Settings.StepRetries > 0 {
		for len(c.Tried) < s.Settings.Models {
			c.Tried = append(c.Tried, 0)
		}
		if c.Index < len(c.Tried) {
			c.Tried[c.Index] = c.Attempt
		}
	}
	c.Index = index
	c.Attempt = c.before() + 1
}

func (m *machine) pause(delay int64, told *event.Retry) {
	s := &m.State
	s.Model.RetryAt = m.now + delay
	s.Phase = PhaseRetry
	told.DelayMS = delay
	m.tell(event.ModelRetry, told)
	m.do(Sleep{ID: TimerRetry, Until: s.Model.RetryAt})
}

// Delay is how many milliseconds to wait after the n-th failed attempt, counted from 1:
// what the provider asked for, else twice as long each time, up to the limit.
func (r *Retry) Delay(n int, asked int64) int64 {
	if asked != 0 {
		return asked
	}
	delay := r.BaseMS << min(n-1, 20)
	if r.LimitMS > 0 {
		delay = min(delay, r.LimitMS)
	}
	return delay
}

// TooLong is whether a provider asks for more patience than the profile has: it is as
// good as one that is down.
func (r *Retry) TooLong(asked int64) bool { return r.LimitMS > 0 && asked > r.LimitMS }

// modelError says why the run ends for want of a reply.
func (m *machine) modelError(in ModelFailed) *event.Error {
	e := &event.Error{Kind: in.Reason, Message: in.Error, Hint: in.Hint}
	if retried := in.Class == FailRetryable || in.Class == FailUnavailable; retried && m.State.Settings.Retry.TooLong(in.RetryAfterMS) && m.State.Settings.Retry.Max > 0 {
		e.Message += "; it asks to wait " + seconds(in.RetryAfterMS) + ", longer than retry.max_delay (" + seconds(m.State.Settings.Retry.LimitMS) + ")"
		if e.Hint == "" {
			e.Hint = "Try again later, add fallback_models to the profile, or raise retry.max_delay."
		}
	}
	if in.Class == FailOverflow && e.Hint == "" {
		e.Hint = "It was compacted once for this reply and is still too large. Try again, which compacts it once more; or use a model with a larger context window, " +
			"set max_context_tokens to what the provider really takes, raise compaction.reserve_tokens, or have fewer tools and a shorter system prompt."
	}
	return e
}

func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + "s" }
