//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentd/event"
	"agentd/internal/sse"
)

// reader follows one run over all its servers, with nothing but Last-Event-ID.
// Some readers are slow, some leave and come back.
type reader struct {
	run          string
	slow, fickle bool
	rng          *rand.Rand

	last  int64
	seen  []decisive
	text  strings.Builder // of the last step
	ended *event.Event
	// left: it has stopped looking, because the run waits for somebody who will
	// not answer.
	left bool
	// kids are the runs that it started.
	kids []string
}

// decisive is an event that is seen only after its commit.
type decisive struct {
	seq int64
	typ event.Type
}

// live events are told ahead of their commit, which a kill may prevent.
func live(t event.Type) bool {
	switch t {
	case event.ToolInputStarted, event.ToolStdout, event.ToolStderr, event.ToolProgress:
		return true
	}
	return t.Delta()
}

var errBroken = errors.New("the stream broke off")

// follow reads until the terminal event, or until leave says that there is no use
// in waiting.
func (r *reader) follow(ctx context.Context, w *world, leave func(event.Event) bool) error {
	return w.retry(ctx, "following run "+r.run, func(s *server) (bool, error) {
		err := r.stream(ctx, w, s, leave)
		if errors.Is(err, errBroken) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reader of run %s after %d: %w", r.run, r.last, err)
		}
		return r.ended != nil || r.left, nil
	})
}

func (r *reader) stream(ctx context.Context, w *world, s *server, leave func(event.Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/runs/"+r.run+"/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
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
	in := sse.NewReader(resp.Body, nil)
	enough := -1
	if r.fickle {
		enough = 1 + r.rng.IntN(20)
	}
	for n := 0; n != enough; n++ {
		msg, err := in.Next()
		if err != nil {
			return errBroken
		}
		var ev event.Event
		if err := json.Unmarshal(msg.Data, &ev); err != nil {
			return fmt.Errorf("an event of %q can not be read: %w", msg.Data, err)
		}
		if in.LastID() != strconv.FormatInt(ev.Seq, 10) || ev.RunID != r.run {
			return fmt.Errorf("event %d %s of run %s came as %s", ev.Seq, ev.Type, ev.RunID, in.LastID())
		}
		if err := r.take(ev); err != nil || r.ended != nil {
			return err
		}
		if r.left = leave(ev); r.left {
			return nil
		}
		if r.slow {
			<-time.After(time.Duration(r.rng.IntN(30)) * time.Millisecond)
		}
	}
	cancel() // it vanishes
	<-time.After(time.Duration(r.rng.IntN(200)) * time.Millisecond)
	return errBroken
}

func (r *reader) take(ev event.Event) error {
	if ev.Seq <= r.last {
		return fmt.Errorf("event %d %s comes after %d", ev.Seq, ev.Type, r.last)
	}
	switch d := ev.Data.(type) {
	case *event.Delta:
		if ev.Seq-int64(len(d.Text)) < r.last {
			return fmt.Errorf("delta %d of %d bytes begins before %d", ev.Seq, len(d.Text), r.last)
		}
		if ev.Type == event.TextDelta {
			r.text.WriteString(d.Text)
		}
	case *event.Subagent:
		if ev.Type == event.SubagentStarted {
			r.kids = append(r.kids, d.RunID)
		}
	}
	switch ev.Type {
	case event.StepStarted, event.RunResumed, event.ModelRetry, event.ModelFallback:
		r.text.Reset()
	}
	r.last = ev.Seq
	if !live(ev.Type) {
		r.seen = append(r.seen, decisive{ev.Seq, ev.Type})
	}
	if ev.Type.Terminal() {
		r.ended = &ev
	}
	return nil
}

// compare holds what it saw against what is stored.
func (r *reader) compare(stored []event.Event) error {
	n := 0
	for _, ev := range stored {
		if live(ev.Type) {
			continue
		}
		if r.left && n == len(r.seen) {
			return nil
		}
		if n == len(r.seen) || r.seen[n] != (decisive{ev.Seq, ev.Type}) {
			return fmt.Errorf("event %d %s is stored, and a reader saw %v there", ev.Seq, ev.Type, r.seen[min(n, len(r.seen)):min(n+1, len(r.seen))])
		}
		n++
	}
	if n < len(r.seen) {
		return fmt.Errorf("a reader saw event %v, which is lost", r.seen[n])
	}
	return nil
}
