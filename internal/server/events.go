package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/internal/run"
	"agentd/internal/server/wire"
)

// retryHint is how long clients wait before they connect again.
const retryHint = "retry: 2000\n\n"

// Limits of ?stream=false. A page ends where the first of them is reached; the
// last event may go beyond maxEventsBytes.
const (
	defaultEvents  = 1000
	maxEvents      = 10000
	maxEventsBytes = 4 << 20
)

// events streams the events of a run, or lists those there are.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "after", "stream", "limit")
	if err != nil {
		return err
	}
	after, err := startAfter(q, r.Header)
	if err != nil {
		return err
	}
	if err := oneOf("stream", q.Get("stream"), "true", "false"); err != nil {
		return err
	}
	ref := ref(r)
	current, err := s.engine.Get(r.Context(), ref)
	if err != nil {
		return err
	}
	wire.RequestOf(r.Context()).Run = ref.ID
	if q.Get("stream") == "false" {
		return s.listEvents(w, r, ref, current, q, after)
	}
	if q.Has("limit") {
		return wire.Invalid("limit", "goes with stream=false")
	}
	if r.Header.Get("Last-Event-ID") != "" && run.Status(current.Status).Ended() {
		seen, err := s.seenAll(r.Context(), ref, after)
		if err != nil {
			return err
		}
		if seen {
			// An EventSource that has seen the end connects again and
			// again, until it gets this.
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return s.streamEvents(w, r, ref, after)
}

// seenAll is whether no event is stored above after.
func (s *Server) seenAll(ctx context.Context, ref engine.Ref, after int64) (bool, error) {
	for _, err := range s.engine.Replay(ctx, ref, after) {
		return false, err
	}
	return true, nil
}

// streamBytes is how much is gathered for a client before it is written, if more is
// there already.
const streamBytes = 32 << 10

// streamEvents writes in the goroutine that reads: with thousands of clients one that
// hands over to another costs more than the events.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, ref engine.Ref, after int64) error {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.ending, func() { cancel(wire.ErrClosing) })()
	st := wire.NewStream(w, wire.StreamConfig{WriteTimeout: s.opts.WriteTimeout})
	seen := after
	err := st.Write([]byte(retryHint))
	if err == nil {
		seen, err = s.follow(ctx, st, ref, after)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		// It ended because the client went, its key or the server, which is no error of it.
		if err = wire.ErrGone; errors.Is(cause, wire.ErrClosing) {
			err = wire.ErrClosing
		}
	}
	if ended := wire.KeyEnded(r.Context()); ended != nil {
		err = ended
	}
	switch {
	case err == nil || errors.Is(err, wire.ErrGone):
		return nil
	}
	why := "the stream ended early"
	switch {
	case errors.Is(err, engine.ErrSlowReader):
		why = "the reader was too slow"
	case errors.Is(err, wire.ErrClosing):
		why = "the server is shutting down"
	case errors.Is(err, wire.ErrKeyEnded):
		why = wire.Describe(r.Context(), err).Message
	default:
		wire.RequestOf(r.Context()).Err = err
		s.log.ErrorContext(r.Context(), "an event stream ended early", "request_id", wire.RequestOf(r.Context()).ID, "run_id", ref.ID, "error", err)
	}
	_ = st.Write(fmt.Appendf(nil, ": %s; resume with Last-Event-ID: %d\n\n", why, seen))
	return nil
}

// follow writes the events of a run as they come, and says which was the last.
func (s *Server) follow(ctx context.Context, st *wire.Stream, ref engine.Ref, after int64) (seen int64, err error) {
	var buf []byte
	for b, err := range s.engine.Follow(ctx, ref, after, s.opts.Heartbeat) {
		if err != nil {
			if len(buf) > 0 {
				_ = st.Write(buf) // what is written is seen
			}
			return after, err
		}
		raw, err := []byte(wire.Keepalive), error(nil)
		if len(b.Events) > 0 {
			if raw, err = b.Form(encodeEvents); err != nil {
				return after, err
			}
			after = b.Events[len(b.Events)-1].Seq
		}
		if b.More && len(buf)+len(raw) < streamBytes {
			buf = append(buf, raw...)
			continue
		}
		if len(buf) > 0 {
			raw = append(buf, raw...)
			if buf = raw[:0]; cap(buf) > 2*streamBytes {
				buf = nil
			}
		}
		if err := st.Write(raw); err != nil {
			return after, err
		}
	}
	return after, nil
}

// encodeEvents gives the wire form of events.
func encodeEvents(events []event.Event) ([]byte, error) {
	b := make([]byte, 0, 256*len(events))
	for i := range events {
		var err error
		if b, err = appendEvent(b, &events[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// appendEvent appends the wire form of an event, whole or not at all.
func appendEvent(b []byte, ev *event.Event) ([]byte, error) {
	start := len(b)
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, ev.Seq, 10)
	b = append(b, "\nevent: "...)
	b = append(b, ev.Type...)
	b = append(b, "\ndata: "...)
	b, err := ev.AppendJSON(b)
	if err != nil {
		return b[:start], fmt.Errorf("event %d: %w", ev.Seq, err)
	}
	return append(b, '\n', '\n'), nil
}

// listEvents gives what is stored, without waiting.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, ref engine.Ref, current *engine.Run, q url.Values, after int64) error {
	limit := defaultEvents
	if v := q.Get("limit"); v != "" {
		var err error
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > maxEvents {
			return wire.Invalid("limit", "must be a number from 1 to %d", maxEvents)
		}
	}
	last, n, more := after, 0, false
	b := []byte(`{"events":[`)
	for ev, err := range s.engine.Replay(r.Context(), ref, after) {
		if err != nil {
			return err
		}
		if more = n == limit || len(b) >= maxEventsBytes; more {
			break
		}
		if n > 0 {
			b = append(b, ',')
		}
		if b, err = ev.AppendJSON(b); err != nil {
			return err
		}
		last = ev.Seq
		n++
	}
	b = fmt.Appendf(b, `],"last_seq":%d,"more":%t,"status":`, last, more)
	b = event.AppendString(b, current.Status)
	wire.WriteRaw(w, http.StatusOK, "application/json", append(b, '}', '\n'))
	return nil
}

// startAfter says where a reader stands. Last-Event-ID wins: a browser that
// connects again sends it with the address that it started from.
func startAfter(q url.Values, h http.Header) (int64, error) {
	field, v := "after", q.Get("after")
	if id := strings.TrimSpace(h.Get("Last-Event-ID")); id != "" {
		field, v = "Last-Event-ID", id
	}
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, wire.Invalid(field, "must be the number of an event, 0 or more, not %q", wire.Clip(v, 40))
	}
	return n, nil
}
