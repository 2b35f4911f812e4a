//go:build unix

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/message"
	"agentd/test/proc"
)

// kinds are what people ask for, and in which mode.
var kinds = []string{"batch interactive", "batch autonomous", "talk interactive", "sign interactive", "delegate interactive", "batch interactive"}

// record is a run that an API node said it accepted, and what a reader saw of it.
type record struct {
	kind        string
	id, session string
	reader      proc.Reader
	parent      *record
	// hops is how often the reader connected, doubts how many calls were asked about.
	hops, doubts int
}

// person starts a run, stays with it, and starts the next one.
type person struct {
	w    *world
	name string
	rng  *rand.Rand
	n    int
}

// load has people work while f lasts, and then finish what they began.
func (w *world) load(ctx context.Context, people int, f func()) {
	stop := make(chan struct{})
	var working sync.WaitGroup
	w.loads++ // nobody asks under a key of somebody before him
	for i := range people {
		p := &person{w: w, name: fmt.Sprintf("p%d-%d", w.loads, i), rng: rand.New(rand.NewPCG(w.seed, uint64(i)))}
		working.Go(func() {
			<-time.After(time.Duration(i) * 100 * time.Millisecond) // not all at once
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := p.work(ctx, kinds[p.rng.IntN(len(kinds))]); err != nil {
					w.t.Errorf("%s: %v", p.name, err)
					return
				}
			}
		})
	}
	f()
	close(stop)
	working.Wait()
}

// work is one run from its start to its end.
func (p *person) work(ctx context.Context, kind string) error {
	p.n++
	word, mode, _ := strings.Cut(kind, " ")
	input := fmt.Sprintf("%s %s-%d", word, p.name, p.n)
	r := &record{kind: kind}
	err := p.w.try(ctx, "starting "+input, p.rng, func(ctx context.Context, c *client.Client) error {
		run, err := c.Start(ctx, client.StartRequest{Profile: "worker", Mode: mode, Input: []message.Block{message.Text(input)}, IdempotencyKey: input})
		if err == nil {
			r.id, r.session = run.ID, run.SessionID
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.stay(ctx, r)
}

// stay reads a run to its end, at one API node after the other, and answers what it
// asks. Runs below it are read, too.
func (p *person) stay(ctx context.Context, r *record) error {
	p.w.book.mu.Lock()
	p.w.book.records = append(p.w.book.records, r)
	p.w.book.mu.Unlock()
	r.reader.Run = r.id
	var also sync.WaitGroup
	defer also.Wait()
	for r.reader.Ended == "" {
		n := p.w.book.apis[p.rng.IntN(len(p.w.book.apis))]
		one, cancel := context.WithCancel(ctx)
		// Who hears nothing for long goes elsewhere: the node may be stopped.
		quiet := time.AfterFunc(12*time.Second, cancel)
		left := 3 + p.rng.IntN(60)
		r.hops++
		err := proc.Stream(one, n.http, n.url, "", r.id, r.reader.Last, func(ev event.Event) (bool, error) {
			quiet.Reset(12 * time.Second)
			if err := r.reader.Take(ev); err != nil {
				return false, fmt.Errorf("at %s: %w", n.name, err)
			}
			switch d := ev.Data.(type) {
			case *event.Checkpoint:
				if ev.Type == event.CheckpointRequired && r.parent == nil {
					rng := rand.New(rand.NewPCG(p.w.seed, uint64(ev.Seq)))
					also.Go(func() {
						if err := p.w.answer(ctx, rng, r, d); err != nil {
							p.w.t.Errorf("%s: %v", p.name, err)
						}
					})
				}
			case *event.Subagent:
				if ev.Type == event.SubagentStarted {
					child := &person{w: p.w, name: p.name, rng: rand.New(rand.NewPCG(p.w.seed, uint64(ev.Seq)))}
					c := &record{id: d.RunID, parent: r}
					also.Go(func() {
						if err := child.adopt(ctx, c); err != nil {
							p.w.t.Errorf("%s: %v", p.name, err)
						}
					})
				}
			}
			left--
			return r.reader.Ended != "" || left <= 0, nil
		})
		quiet.Stop()
		cancel()
		if err != nil && !errors.Is(err, proc.ErrBroken) {
			return fmt.Errorf("the reader of run %s after %d: %w", r.id, r.reader.Last, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the reader of run %s after %d: %w", r.id, r.reader.Last, ctx.Err())
		}
		if errors.Is(err, proc.ErrBroken) {
			<-time.After(time.Duration(p.rng.IntN(200)) * time.Millisecond)
		}
	}
	return nil
}

// adopt reads a child run. Its start may be announced before it exists.
func (p *person) adopt(ctx context.Context, c *record) error {
	found := false
	for !found {
		err := p.w.try(ctx, "finding "+c.id, p.rng, func(ctx context.Context, api *client.Client) error {
			run, err := api.Run(ctx, c.id)
			if fault.KindOf(err) == fault.NotFound {
				return nil
			}
			if err == nil {
				found, c.session = true, run.SessionID
				if run.ParentID != c.parent.id {
					return fmt.Errorf("run %s is below %q, not %s", c.id, run.ParentID, c.parent.id)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		if !found {
			<-time.After(50 * time.Millisecond)
		}
	}
	return p.stay(ctx, c)
}

// answer answers an interrupt until there is a receipt, or somebody was faster: that
// was this person, whose receipt was lost.
func (w *world) answer(ctx context.Context, rng *rand.Rand, r *record, c *event.Checkpoint) error {
	req := client.AnswerRequest{Interrupt: c.InterruptID}
	switch c.Kind {
	case "approval":
		req.Decision = "approve"
	case "question":
		req.Answer = json.RawMessage(`"blue"`)
	case "uncertain":
		h := fnv.New32a()
		fmt.Fprint(h, c.InterruptID)
		req.Decision = []string{"retry", "skip", "done", "retry"}[h.Sum32()%4]
		run := c.RunID
		if run == "" {
			run = r.id
		}
		w.book.mu.Lock()
		r.doubts++
		if req.Decision == "retry" {
			call := run + " " + c.ToolCall.ToolCallID
			if w.book.retried[call] == nil {
				w.book.retried[call] = map[string]bool{}
			}
			w.book.retried[call][c.InterruptID] = true
		}
		w.book.mu.Unlock()
	default:
		return fmt.Errorf("run %s asks something that nobody expects: %+v", r.id, c)
	}
	if r.kind == "batch autonomous" {
		return fmt.Errorf("run %s asks %s, and there is nobody to ask", r.id, c.Kind)
	}
	began := time.Now()
	defer func() {
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		w.book.answers = append(w.book.answers, time.Since(began))
	}()
	return w.try(ctx, "answering "+c.InterruptID, rng, func(ctx context.Context, api *client.Client) error {
		_, err := api.Answer(ctx, req)
		if fault.KindOf(err) == fault.Conflict {
			i, look := api.Interrupt(ctx, c.InterruptID)
			if look == nil && i.Status != "open" {
				return nil
			}
			return fault.New(fault.Unavailable, err.Error())
		}
		return err
	})
}
