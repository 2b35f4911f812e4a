//go:build unix

package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"agentd/event"
	"agentd/internal/sse"
)

// ErrBroken says that a stream broke off, as streams of servers that are killed do, or
// that there was nobody to connect to.
var ErrBroken = errors.New("the stream broke off")

// Stream reads one connection to the events of a run, from the number after last, and
// hands each event to take until that says that it has enough or has an error. The end
// of the connection is ErrBroken, and so is 503; every other status is an error. key is
// the caller's API key, or "".
func Stream(ctx context.Context, hc *http.Client, url, key, run string, last int64, take func(event.Event) (enough bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/runs/"+run+"/events", nil)
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
	}
	resp, err := hc.Do(req)
	if err != nil {
		return ErrBroken
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return ErrBroken
	default:
		return fmt.Errorf("the server answers %s", resp.Status)
	}
	in := sse.NewReader(resp.Body, nil)
	for {
		msg, err := in.Next()
		if err != nil {
			return ErrBroken
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
		if in.LastID() != strconv.FormatInt(ev.Seq, 10) || string(msg.Name) != string(ev.Type) || ev.RunID != run {
			return fmt.Errorf("event %d %s of run %s came as id %s, event %s", ev.Seq, ev.Type, ev.RunID, in.LastID(), msg.Name)
		}
		if enough, err := take(ev); err != nil || enough {
			return err
		}
	}
}

// Reader is what somebody saw of one run, over all servers and connections.
type Reader struct {
	Run string
	// Last is the number of the newest event, Ended the type of the terminal one.
	Last  int64
	Ended event.Type
	// Seen are the events that are told after their commit alone, Text is that of the
	// last step, Children are the runs that it started.
	Seen     []Decisive
	Text     string
	Children []string
}

// Decisive is an event that is seen only after its commit.
type Decisive struct {
	Seq  int64
	Type event.Type
}

// Live is whether events of a type are told ahead of their commit, which may not come.
func Live(t event.Type) bool {
	switch t {
	case event.ToolInputStarted, event.ToolStdout, event.ToolStderr, event.ToolProgress:
		return true
	}
	return t.Delta()
}

// Take checks an event against those before it and keeps what matters of it.
func (r *Reader) Take(ev event.Event) error {
	if ev.RunID != r.Run || ev.Seq <= r.Last {
		return fmt.Errorf("event %d %s of run %s comes after %d of %s", ev.Seq, ev.Type, ev.RunID, r.Last, r.Run)
	}
	switch d := ev.Data.(type) {
	case *event.Delta:
		if ev.Seq-int64(len(d.Text)) < r.Last {
			return fmt.Errorf("delta %d of %d bytes begins before %d", ev.Seq, len(d.Text), r.Last)
		}
		if ev.Type == event.TextDelta {
			r.Text += d.Text
		}
	case *event.Subagent:
		if ev.Type == event.SubagentStarted {
			r.Children = append(r.Children, d.RunID)
		}
	}
	switch ev.Type {
	case event.StepStarted, event.RunResumed, event.ModelRetry, event.ModelFallback:
		r.Text = ""
	}
	r.Last = ev.Seq
	if !Live(ev.Type) {
		r.Seen = append(r.Seen, Decisive{ev.Seq, ev.Type})
	}
	if ev.Type.Terminal() {
		r.Ended = ev.Type
	}
	return nil
}

// Compare holds what was seen against what is stored: each durable event once, in
// order, and none besides. A reader who left early has seen the beginning.
func (r *Reader) Compare(stored []event.Event, left bool) error {
	n := 0
	for _, ev := range stored {
		if Live(ev.Type) {
			continue
		}
		if left && n == len(r.Seen) {
			return nil
		}
		if n == len(r.Seen) || r.Seen[n] != (Decisive{ev.Seq, ev.Type}) {
			return fmt.Errorf("event %d %s is stored, and a reader saw %v there", ev.Seq, ev.Type, r.Seen[min(n, len(r.Seen)):min(n+1, len(r.Seen))])
		}
		n++
	}
	if n < len(r.Seen) {
		return fmt.Errorf("a reader saw event %v, which is lost", r.Seen[n])
	}
	return nil
}
