//go:build unix

package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentd/event"
	"agentd/test/proc"
)

// seen is an event as a reader got it.
type seen struct {
	seq  int64
	typ  event.Type
	data string // as JSON, keys sorted
}

// reader follows one run over all its servers, with nothing but Last-Event-ID.
type reader struct {
	run    string
	last   int64
	events []seen
	// texts are the deltas of each block of a step that no event made void,
	// entries the entry that a step's reply became.
	texts   map[block]string
	entries map[int]string
	ended   event.Type
}

type block struct{ step, index int }

// follow reads until the terminal event. seen is told every event.
func (r *reader) follow(ctx context.Context, w *world, told func(event.Event)) error {
	r.texts, r.entries = map[block]string{}, map[int]string{}
	return w.retry(ctx, "following run "+r.run, func(s *server) (bool, error) {
		err := r.stream(ctx, s, told)
		switch {
		case errors.Is(err, proc.ErrBroken):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reader of run %s after %d: %w", r.run, r.last, err)
		}
		return r.ended != "", nil
	})
}

// stream reads one connection to its end.
func (r *reader) stream(ctx context.Context, s *server, told func(event.Event)) error {
	return proc.Stream(ctx, s.http, s.url, "", r.run, r.last, func(ev event.Event) (bool, error) {
		if err := r.take(ev); err != nil {
			return true, err
		}
		told(ev)
		return r.ended != "", nil
	})
}

// take checks an event against those before it.
func (r *reader) take(ev event.Event) error {
	if ev.RunID != r.run || ev.Seq <= r.last {
		return fmt.Errorf("event %d %s of run %s comes after %d", ev.Seq, ev.Type, ev.RunID, r.last)
	}
	if d, ok := ev.Data.(*event.Delta); ok {
		if ev.Seq-int64(len(d.Text)) < r.last {
			return fmt.Errorf("delta %d of %d bytes begins before %d", ev.Seq, len(d.Text), r.last)
		}
		r.texts[block{ev.Step, d.Block}] += d.Text
	}
	r.last = ev.Seq
	switch d := ev.Data.(type) {
	case *event.Step:
		if ev.Type == event.StepCompleted {
			r.entries[ev.Step] = d.EntryID
		}
	case *event.Resumed, *event.Retry:
		if r.entries[ev.Step] == "" {
			for b := range r.texts {
				if b.step == ev.Step {
					delete(r.texts, b)
				}
			}
		}
	}
	if ev.Type.Terminal() {
		r.ended = ev.Type
	}
	data, err := canonical(ev)
	r.events = append(r.events, seen{ev.Seq, ev.Type, data})
	return err
}

// canonical gives an event's JSON with sorted keys.
func canonical(ev event.Event) (string, error) {
	raw, err := ev.MarshalJSON()
	if err != nil {
		return "", err
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return "", err
	}
	raw, err = json.Marshal(v)
	return string(raw), err
}
