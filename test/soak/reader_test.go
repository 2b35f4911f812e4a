//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"agentd/event"
	"agentd/test/proc"
)

// reader follows one run over all its servers, with nothing but Last-Event-ID.
// Some readers are slow, some leave and come back.
type reader struct {
	run          string
	slow, fickle bool
	rng          *rand.Rand

	last  int64
	seen  []proc.Decisive
	text  strings.Builder // of the last step
	ended *event.Event
	// left: it has stopped looking, because the run waits for somebody who will
	// not answer.
	left bool
	// kids are the runs that it started.
	kids []string
}

// follow reads until the terminal event, or until leave says that there is no use
// in waiting.
func (r *reader) follow(ctx context.Context, w *world, leave func(event.Event) bool) error {
	return w.retry(ctx, "following run "+r.run, func(s *server) (bool, error) {
		err := r.stream(ctx, w, s, leave)
		if errors.Is(err, proc.ErrBroken) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reader of run %s after %d: %w", r.run, r.last, err)
		}
		return r.ended != nil || r.left, nil
	})
}

func (r *reader) stream(ctx context.Context, w *world, s *server, leave func(event.Event) bool) error {
	enough := -1
	if r.fickle {
		enough = 1 + r.rng.IntN(20)
	}
	n := 0
	err := proc.Stream(ctx, s.http, s.url, w.key, r.run, r.last, func(ev event.Event) (bool, error) {
		if err := r.take(ev); err != nil || r.ended != nil {
			return true, err
		}
		if r.left = leave(ev); r.left {
			return true, nil
		}
		if r.slow {
			<-time.After(time.Duration(r.rng.IntN(30)) * time.Millisecond)
		}
		n++
		return n == enough, nil
	})
	if err == nil && r.ended == nil && !r.left { // it vanishes
		<-time.After(time.Duration(r.rng.IntN(200)) * time.Millisecond)
		return proc.ErrBroken
	}
	return err
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
	if !proc.Live(ev.Type) {
		r.seen = append(r.seen, proc.Decisive{Seq: ev.Seq, Type: ev.Type})
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
		if proc.Live(ev.Type) {
			continue
		}
		if r.left && n == len(r.seen) {
			return nil
		}
		if n == len(r.seen) || r.seen[n] != (proc.Decisive{Seq: ev.Seq, Type: ev.Type}) {
			return fmt.Errorf("event %d %s is stored, and a reader saw %v there", ev.Seq, ev.Type, r.seen[min(n, len(r.seen)):min(n+1, len(r.seen))])
		}
		n++
	}
	if n < len(r.seen) {
		return fmt.Errorf("a reader saw event %v, which is lost", r.seen[n])
	}
	return nil
}
