//go:build unix

package people

import (
	"context"
	"encoding/json"
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
)

// task is a kind of directive for a profile in a mode.
type task struct{ kind, profile, mode string }

// tasks are what people ask for.
var tasks = []task{
	{"batch", "worker", "interactive"}, {"batch", "worker", "autonomous"}, {"batch", "other", "interactive"}, {"batch", "other", "autonomous"},
	{"talk", "worker", "interactive"}, {"talk", "other", "autonomous"}, {"sign", "worker", "interactive"}, {"sign", "other", "interactive"},
	{"delegate", "worker", "interactive"}, {"delegate", "other", "autonomous"},
}

// child is what delegate makes of a task.
func (t task) child() task { return task{"batch", "helper", t.mode} }

// record is a run that the server said it accepted, and what became of it.
type record struct {
	id, session string
	task        task
	input       string
	reader      reader
	parent      *record // of a child run

	mu sync.Mutex
	// said are follow-ups by their text: true with a receipt, false if nobody
	// knows. cancelled is whether a cancel has a receipt; tried, whether one
	// was sent.
	said             map[string]bool
	cancelled, tried bool
	// retries counts, by call, how often a person asked to repeat a call that
	// may have happened.
	retries map[string]int
	// decided are the answers given, by interrupt.
	decided map[string]string
}

// book is what people wrote down.
type book struct {
	mu      sync.Mutex
	records []*record
	// sessions are the runs of each session, in the order they were accepted.
	sessions map[string][]*record
}

func (b *book) add(r *record, top bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
	if b.sessions == nil {
		b.sessions = map[string][]*record{}
	}
	if top {
		b.sessions[r.session] = append(b.sessions[r.session], r)
	}
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.records)
}

// person gives the agents work and answers their questions.
type person struct {
	w    *world
	book *book
	want map[task][]string
	name string
	rng  *rand.Rand
	n    int
	// calm people neither cancel nor interrupt themselves.
	calm bool
}

// work goes on until stop is closed, and finishes what is begun.
func (p *person) work(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		var todo []task
		for range 1 + p.rng.IntN(3) {
			todo = append(todo, tasks[p.rng.IntN(len(tasks))])
		}
		if err := p.session(ctx, todo); err != nil {
			p.w.t.Errorf("%s: %v", p.name, err)
			return
		}
	}
}

// session starts runs in one session, all at once, and stays with them.
func (p *person) session(ctx context.Context, todo []task) error {
	errs := make(chan error, 2*len(todo))
	var watching sync.WaitGroup
	defer watching.Wait()
	session := ""
	for i, t := range todo {
		r, err := p.start(ctx, t, session)
		if err != nil {
			return err
		}
		session = r.session
		watching.Go(func() { errs <- p.stay(ctx, r) })
		if p.calm {
			continue
		}
		// Only a session's last run is cancelled: what follows a broken-off
		// reply is no longer what an undisturbed session has.
		wait, cancel := time.Duration(p.rng.IntN(200))*time.Millisecond, i == len(todo)-1 && p.rng.IntN(4) == 0
		if p.rng.IntN(3) == 0 {
			p.n++
			text := fmt.Sprintf("also %s-%d", p.name, p.n)
			watching.Go(func() {
				<-time.After(wait)
				errs <- p.disturb(ctx, r, text, cancel)
			})
		}
	}
	watching.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// start gives a directive, as often as it takes, under one idempotency key.
func (p *person) start(ctx context.Context, t task, session string) (*record, error) {
	p.n++
	r := &record{task: t, input: fmt.Sprintf("%s %s-%d", t.kind, p.name, p.n), said: map[string]bool{}, retries: map[string]int{}, decided: map[string]string{}}
	req := client.StartRequest{Profile: t.profile, Mode: t.mode, Input: []message.Block{message.Text(r.input)}, SessionID: session, IdempotencyKey: r.input}
	err := p.w.retry(ctx, "starting "+r.input, func(s *server) (bool, error) {
		run, err := s.client.Start(ctx, req)
		if err != nil {
			return false, serious(err)
		}
		r.id, r.session, r.reader.run = run.ID, run.SessionID, run.ID
		return true, nil
	})
	if err == nil {
		p.book.add(r, true)
	}
	return r, err
}

// serious gives an error that a killed server does not explain.
func serious(err error) error {
	if fault.KindOf(err) == fault.Unavailable {
		return nil
	}
	return err
}

// stay follows a run to its end and answers what it asks.
func (p *person) stay(ctx context.Context, r *record) error {
	var children sync.WaitGroup
	defer children.Wait()
	var failed error
	err := r.reader.follow(ctx, p.w, func(ev event.Event) {
		switch d := ev.Data.(type) {
		case *event.Checkpoint:
			if ev.Type == event.CheckpointRequired && failed == nil {
				failed = p.answer(ctx, r, ev.Step, d)
			}
		case *event.Subagent:
			if ev.Type == event.SubagentStarted {
				children.Go(func() {
					if err := p.adopt(ctx, r, d.RunID); err != nil {
						p.w.t.Errorf("%s: %v", p.name, err)
					}
				})
			}
		}
	})
	if err == nil {
		err = failed
	}
	return err
}

// adopt follows a child run, whose questions are asked in its own stream. Its
// start may be announced before it exists.
func (p *person) adopt(ctx context.Context, parent *record, id string) error {
	c := &record{id: id, task: parent.task.child(), said: map[string]bool{}, retries: map[string]int{}, decided: map[string]string{}, reader: reader{run: id}, parent: parent}
	err := p.w.retry(ctx, "finding child "+id, func(s *server) (bool, error) {
		run, err := s.client.Run(ctx, id)
		if fault.KindOf(err) == fault.NotFound {
			top, err := s.client.Run(ctx, parent.id)
			if err == nil && top.Ended() {
				return true, nil // it was cancelled before it came to that
			}
			return false, nil
		}
		if err != nil {
			return false, serious(err)
		}
		if run.ParentID != parent.id || run.RootID != parent.id || run.SessionID == parent.session {
			return false, fmt.Errorf("child %+v of run %s in session %s", run, parent.id, parent.session)
		}
		c.session = run.SessionID
		return true, nil
	})
	if err != nil || c.session == "" {
		return err
	}
	p.book.add(c, false)
	return p.stay(ctx, c)
}

// decide is what a person says: by chance, but the same whenever it is asked.
func decide(c *event.Checkpoint) (req client.AnswerRequest) {
	req.Interrupt = c.InterruptID
	switch c.Kind {
	case "approval":
		req.Decision = "approve"
	case "question":
		req.Answer = json.RawMessage(`"blue"`)
	default:
		h := fnv.New32a()
		fmt.Fprint(h, c.InterruptID)
		req.Decision = []string{"retry", "skip", "done", "retry"}[h.Sum32()%4]
	}
	return req
}

// answer answers an interrupt until there is a receipt.
func (p *person) answer(ctx context.Context, r *record, step int, c *event.Checkpoint) error {
	req := decide(c)
	if c.Kind == "uncertain" && r.task.mode == "autonomous" {
		return fmt.Errorf("run %s asks about %s, and there is nobody to ask", r.id, c.ToolCall.ToolCallID)
	}
	want := req.Decision
	if want == "" {
		want = "answer"
	}
	r.mu.Lock()
	r.decided[c.InterruptID] = want
	if want == "retry" {
		r.retries[fmt.Sprintf("%s/%d/%s", r.id, step, c.ToolCall.ToolCallID)]++
	}
	r.mu.Unlock()
	return p.w.retry(ctx, "answering "+c.InterruptID, func(s *server) (bool, error) {
		_, err := s.client.Answer(ctx, req)
		if err == nil {
			return true, nil
		}
		if fault.KindOf(err) != fault.Conflict {
			return false, serious(err)
		}
		// The receipt may have been lost with the server, or the run was
		// cancelled before a person could say anything.
		i, err := s.client.Interrupt(ctx, c.InterruptID)
		switch {
		case err != nil:
			return false, serious(err)
		case i.Status == "answered" && i.Decision == want, i.Status == "cancelled":
			return true, nil
		}
		return false, fmt.Errorf("interrupt %s is %s (%s), not %s", i.ID, i.Status, i.Decision, want)
	})
}

// disturb sends a message to a run, or cancels it. What has no receipt is not
// sent again: nobody knows whether it was heard.
func (p *person) disturb(ctx context.Context, r *record, text string, cancel bool) error {
	s, _ := p.w.current()
	var err error
	r.mu.Lock()
	if cancel {
		r.tried = true
	} else {
		r.said[text] = false
	}
	r.mu.Unlock()
	if cancel {
		_, err = s.client.Cancel(ctx, r.id, "enough")
	} else {
		err = s.client.FollowUp(ctx, r.id, []message.Block{message.Text(text)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && cancel:
		r.cancelled = true
	case err == nil:
		r.said[text] = true
	case fault.KindOf(err) == fault.Conflict:
		// It has ended, or is ending.
		delete(r.said, text)
	default:
		return serious(err)
	}
	return nil
}

// undisturbed gives the transcript of each task when nothing happens to it.
func (w *world) undisturbed(ctx context.Context) map[task][]string {
	w.t.Helper()
	want := map[task][]string{}
	b := &book{}
	p := &person{w: w, book: b, name: "calm", calm: true}
	for _, t := range tasks {
		if err := p.session(ctx, []task{t}); err != nil {
			w.t.Fatal(err)
		}
	}
	s, _ := w.current()
	for _, r := range b.records {
		runs, err := transcript(ctx, s, r.session)
		if err != nil || len(runs) != 1 || !strings.HasPrefix(strings.Join(runs[0].lines, "\n"), "user ") {
			w.t.Fatalf("undisturbed %s: %+v, %v", r.input, runs, err)
		}
		want[r.task] = runs[0].lines
	}
	return want
}
