package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/sse"
)

// Limits of DefaultBackoff: about a minute, which is longer than a restart.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
	maxFailures = 16
)

// DefaultBackoff waits 100 ms after the first failure and twice as long after
// each further one, up to 5 s, each up to a quarter shorter so that many clients
// do not come back at once. It gives up after about a minute.
func DefaultBackoff(failures int) (wait time.Duration, again bool) {
	if failures > maxFailures {
		return 0, false
	}
	wait = longestWait
	if n := failures - 1; n < 6 {
		wait = min(firstWait<<n, longestWait)
	}
	return wait - rand.N(wait/4), true
}

// Watch yields the events of a run with numbers above after: stored ones, then
// live ones, until the terminal event. When a connection breaks it connects
// again and goes on; what it yielded is not yielded again, of a delta that it had
// begun only the rest comes. An error is the last thing it yields: a
// *fault.Error, or that of ctx. The first connection is not tried twice.
func (c *Client) Watch(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		w := &watch{c: c, run: runID, seen: after, yield: yield}
		for failures := 0; ; {
			before := w.seen
			err := w.connect(ctx)
			if err == nil {
				return
			}
			var broken *brokenError
			switch {
			case ctx.Err() != nil:
				yield(event.Event{}, ctx.Err())
				return
			case !errors.As(err, &broken):
				yield(event.Event{}, err)
				return
			}
			if w.seen > before {
				failures = 0
			}
			failures++
			wait, again := c.opts.Backoff(failures)
			if !again {
				yield(event.Event{}, &fault.Error{Kind: fault.Unavailable,
					Err:  fmt.Errorf("the events of run %s broke off after number %d and could not be resumed: %w", runID, w.seen, broken.err),
					Hint: "Watch again from that number."})
				return
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

// brokenError is a reason to connect again.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// watch is one Watch under way.
type watch struct {
	c    *Client
	run  string
	seen int64
	// resumed is whether a connection had been made before this one.
	resumed bool
	yield   func(event.Event, error) bool
}

// connect yields what one connection gives. It returns nil when there is nothing
// more to yield, and a *brokenError when the next connection goes on.
func (w *watch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := url.Values{}
	if !w.resumed {
		q.Set("after", strconv.FormatInt(w.seen, 10))
	}
	req, err := w.c.request(ctx, http.MethodGet, nil, q, "runs", w.run, "events")
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if w.resumed {
		// A server that has told all answers this with 204.
		req.Header.Set("Last-Event-ID", strconv.FormatInt(w.seen, 10))
	}
	silence := time.AfterFunc(w.c.opts.Idle, cancel)
	defer silence.Stop()
	resp, err := w.c.opts.HTTP.Do(req)
	silence.Stop()
	if err != nil {
		return w.failed(w.c.unreachable(context.WithoutCancel(ctx), err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil
	case resp.StatusCode != http.StatusOK:
		err := problem(resp)
		if passing(err) {
			return w.failed(err)
		}
		return err
	}
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != "text/event-stream" {
		return &fault.Error{Kind: fault.Unsupported, Err: fmt.Errorf("%s answered with %q and not with events", w.c.base, clip(resp.Header.Get("Content-Type"), 60)), Hint: notAgentd}
	}
	w.resumed = true
	return w.read(sse.NewReader(&watched{r: resp.Body, silence: silence, limit: w.c.opts.Idle}, nil))
}

// failed is the error of a connection that was not made.
func (w *watch) failed(err error) error {
	if w.resumed {
		return &brokenError{err}
	}
	return err
}

func (w *watch) read(r *sse.Reader) error {
	for {
		raw, err := r.Next()
		var large *sse.TooLargeError
		switch {
		case errors.As(err, &large):
			return &fault.Error{Kind: fault.TooLarge, Err: err}
		case errors.Is(err, io.EOF):
			return &brokenError{errors.New("the stream ended before the run did")}
		case err != nil:
			return &brokenError{err}
		}
		var ev event.Event
		if err := ev.UnmarshalJSON(raw.Data); err != nil {
			return &fault.Error{Kind: fault.Unsupported, Err: fmt.Errorf("an event after number %d can not be read: %w", w.seen, err), Hint: notAgentd}
		}
		ev, ok := event.After(ev, w.seen)
		if !ok {
			continue
		}
		w.seen = ev.Seq
		if !w.yield(ev, nil) || ev.Type.Terminal() {
			return nil
		}
	}
}

// watched ends the connection when a read waits for too long. The time that the
// events take to be handled does not count.
type watched struct {
	r       io.Reader
	silence *time.Timer
	limit   time.Duration
}

func (w *watched) Read(b []byte) (int, error) {
	w.silence.Reset(w.limit)
	defer w.silence.Stop()
	return w.r.Read(b)
}
