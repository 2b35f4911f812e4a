//go:build unix

package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"agentd/event"
	"agentd/internal/sse"
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
	// streams is how often it connected and got a stream.
	streams int
}

type block struct{ step, index int }

// errBroken says that a stream broke off, as streams of killed servers do.
var errBroken = errors.New("the stream broke off")

// follow reads until the terminal event. seen is told every event.
func (r *reader) follow(ctx context.Context, w *world, told func(event.Event)) error {
	r.texts, r.entries = map[block]string{}, map[int]string{}
	return w.retry(ctx, "following run "+r.run, func(s *server) (bool, error) {
		err := r.stream(ctx, s, told)
		switch {
		case errors.Is(err, errBroken):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reader of run %s after %d: %w", r.run, r.last, err)
		}
		return r.ended != "", nil
	})
}

// stream reads one connection to its end.
func (r *reader) stream(ctx context.Context, s *server, told func(event.Event)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/runs/"+r.run+"/events", nil)
	if err != nil {
		return err
	}
	if r.last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(r.last, 10))
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return errBroken
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return errBroken
	default:
		return fmt.Errorf("the server answers %s", resp.Status)
	}
	r.streams++
	in := sse.NewReader(resp.Body, nil)
	for {
		msg, err := in.Next()
		if err != nil {
			return errBroken
		}
		var ev event.Event
		if err := json.Unmarshal(msg.Data, &ev); err != nil {
			return fmt.Errorf("an event of %q can not be read: %w", msg.Data, err)
		}
		if raw, ok := ev.Data.(json.RawMessage); ok {
			if ev.Data, err = event.Decode(ev.Type, raw); err != nil {
				return err
			}
		}
		if in.LastID() != strconv.FormatInt(ev.Seq, 10) || string(msg.Name) != string(ev.Type) {
			return fmt.Errorf("event %d %s came as id %s, event %s", ev.Seq, ev.Type, in.LastID(), msg.Name)
		}
		if err := r.take(ev); err != nil {
			return err
		}
		told(ev)
		if r.ended != "" {
			return nil
		}
	}
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
