//go:build unix

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/fault"
	"agentd/message"
)

// person gives the agents work, one session after the other.
type person struct {
	w    *world
	name string
	rng  *rand.Rand
	n    int
}

// work goes on until stop is closed, and finishes what is begun.
func (p *person) work(ctx context.Context, stop <-chan struct{}) {
	kinds := []func(context.Context) error{p.plain, p.plain, p.plain, p.disturbed, p.busy, p.chat, p.propose, p.keys}
	for !p.w.t.Failed() {
		if err := kinds[p.rng.IntN(len(kinds))](ctx); err != nil {
			p.w.t.Errorf("%s: %v", p.name, err)
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(p.rng.IntN(100)) * time.Millisecond):
		}
	}
}

// directives are what runs are asked to do, with the answer if that is certain.
var directives = []struct{ kind, want string }{
	{"plain", "A plain answer, a little longer than it would have to be so that somebody can leave in the middle of it: words, words, words. Ünïcödé is no trouble — nor are 漢字."},
	{"flaky", "All is well that ends well."}, {"silent", "There was nothing for a while."}, {"doomed", ""},
	{"batch", "All of it is done: the looking, the putting, the firing."}, {"batch", "All of it is done: the looking, the putting, the firing."},
	{"sign", "Signed and coloured."}, {"ask", "That way, then."}, {"delegate", "Somebody else did it."},
}

// start gives a directive, as often as it takes, under one idempotency key.
func (p *person) start(ctx context.Context, req client.StartRequest, kind string) (*record, error) {
	p.n++
	name := fmt.Sprintf("%s-%d", p.name, p.n)
	if req.WhenBusy != "steer" { // which has no run of its own, and may be said twice
		req.IdempotencyKey = name
	}
	req.Input = []message.Block{message.Text(kind + " " + name)}
	var rec *record
	err := p.w.retry(ctx, "starting "+name, func(s *server) (bool, error) {
		run, err := s.client.Start(ctx, req)
		if err != nil {
			return false, serious(err)
		}
		rec = p.w.book.add(run, kind)
		return true, nil
	})
	return rec, err
}

func (p *person) profile() string { return []string{"worker", "other", "brief"}[p.rng.IntN(3)] }

func (p *person) mode() string {
	if p.rng.IntN(4) == 0 {
		return "autonomous"
	}
	return "interactive"
}

func (p *person) reader(run string) *reader {
	return &reader{run: run, rng: p.rng, slow: p.rng.IntN(6) == 0, fickle: p.rng.IntN(4) == 0}
}

// stay follows a run until it has ended or waits for somebody who will not answer,
// and holds what it saw against what is stored.
func (p *person) stay(ctx context.Context, rec *record, r *reader, brief bool) (*client.Run, error) {
	err := r.follow(ctx, p.w, func(ev event.Event) bool {
		c, ok := ev.Data.(*event.Checkpoint)
		return ok && ev.Type == event.CheckpointRequired && !brief && p.w.habitOf(c.InterruptID) == never
	})
	if err != nil {
		return nil, err
	}
	rec.waits = r.left
	var run *client.Run
	return run, p.w.retry(ctx, "looking at run "+rec.id, func(s *server) (bool, error) {
		stored, err := s.client.Events(ctx, rec.id, 0)
		if err == nil {
			run, err = s.client.Run(ctx, rec.id)
		}
		if err != nil {
			return false, serious(err)
		}
		if err := r.compare(stored); err != nil {
			return false, fmt.Errorf("run %s (%s): %w", rec.id, rec.kind, err)
		}
		return true, p.ended(rec, r, run)
	})
}

// ended checks how a run ended.
func (p *person) ended(rec *record, r *reader, run *client.Run) error {
	switch {
	case r.left:
		return nil
	case !run.Ended():
		return fmt.Errorf("run %s told of its end and is %s", run.ID, run.Status)
	case run.Status == client.Completed && r.text.String() != run.Output:
		return fmt.Errorf("run %s (%s) streamed %q and says %q", run.ID, rec.kind, r.text.String(), run.Output)
	case run.Status == client.Failed && (run.Error == nil || run.Error.Message == ""):
		return fmt.Errorf("run %s failed without a reason", run.ID)
	}
	return nil
}

// plain lets one to three runs of a session do their work.
func (p *person) plain(ctx context.Context) error {
	profile, session := p.profile(), ""
	for range 1 + p.rng.IntN(3) {
		d := directives[p.rng.IntN(len(directives))]
		if profile == "brief" && d.kind == "delegate" {
			continue // it has no subagents
		}
		rec, err := p.start(ctx, client.StartRequest{Profile: profile, Mode: p.mode(), SessionID: session}, d.kind)
		if err != nil {
			return err
		}
		run, err := p.stay(ctx, rec, p.reader(rec.id), profile == "brief")
		if err != nil {
			return err
		}
		if rec.waits {
			if p.rng.IntN(2) == 0 {
				return p.cancel(ctx, rec)
			}
			return nil
		}
		wanted := client.Completed
		if d.kind == "doomed" {
			wanted = client.Failed
		}
		if run.Status != wanted || d.want != run.Output && run.StopReason != "repeated_failures" {
			return fmt.Errorf("run %s (%s) is %s (%s, %+v) and says %q", run.ID, d.kind, run.Status, run.StopReason, run.Error, run.Output)
		}
		session = rec.session
	}
	if p.rng.IntN(10) == 0 && session != "" {
		return p.remove(ctx, session)
	}
	return nil
}

// remove deletes a session whose runs have ended.
func (p *person) remove(ctx context.Context, session string) error {
	for _, r := range p.w.book.all() {
		if r.session == session {
			r.gone = true
		}
	}
	return p.w.retry(ctx, "deleting session "+session, func(s *server) (bool, error) {
		err := s.client.DeleteSession(ctx, session)
		if err == nil || fault.KindOf(err) == fault.NotFound {
			return true, nil // a receipt may have been lost
		}
		return false, serious(err)
	})
}

// cancel ends a run, and stays until it has ended.
func (p *person) cancel(ctx context.Context, rec *record) error {
	receipt := false
	err := p.w.retry(ctx, "cancelling "+rec.id, func(s *server) (bool, error) {
		_, err := s.client.Cancel(ctx, rec.id, "enough")
		if receipt = err == nil; receipt || fault.KindOf(err) == fault.Conflict {
			return true, nil
		}
		return false, serious(err)
	})
	if err != nil {
		return err
	}
	r := &reader{run: rec.id, rng: p.rng}
	run, err := p.stay(ctx, rec, r, true)
	if err == nil && receipt && run.Status == client.Failed {
		err = fmt.Errorf("run %s was cancelled and is %s: %+v", rec.id, run.Status, run.Error)
	}
	return err
}

// disturbed sends messages to a run that goes on, or cancels it.
func (p *person) disturbed(ctx context.Context) error {
	kind := []string{"plain", "flaky", "batch", "sign", "delegate"}[p.rng.IntN(5)]
	rec, err := p.start(ctx, client.StartRequest{Profile: []string{"worker", "other"}[p.rng.IntN(2)], Mode: p.mode()}, kind)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	said := map[string]bool{} // with a receipt or, if not, perhaps
	var talking sync.WaitGroup
	var failed error
	for n := range 1 + p.rng.IntN(3) {
		wait, what := time.Duration(p.rng.IntN(300))*time.Millisecond, p.rng.IntN(3)
		text := fmt.Sprintf("also %s-%d-%d", p.name, p.n, n)
		talking.Go(func() {
			<-time.After(wait)
			s, _ := p.w.current()
			mu.Lock()
			said[text] = false
			mu.Unlock()
			var err error
			switch what {
			case 0:
				err = s.client.Steer(ctx, rec.id, []message.Block{message.Text(text)})
			case 1:
				err = s.client.FollowUp(ctx, rec.id, []message.Block{message.Text(text)})
			default:
				_, err = s.client.Cancel(ctx, rec.id, "enough")
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				said[text] = what < 2
			case fault.KindOf(err) != fault.Conflict && serious(err) != nil:
				failed = err
			}
		})
	}
	r := p.reader(rec.id)
	_, err = p.stay(ctx, rec, r, false)
	talking.Wait()
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case r.left:
		return p.cancel(ctx, rec)
	}
	return p.heard(ctx, rec, r, said)
}

// heard holds that every message with a receipt is in the session or was given back.
func (p *person) heard(ctx context.Context, rec *record, r *reader, said map[string]bool) error {
	return p.w.retry(ctx, "reading session "+rec.session, func(s *server) (bool, error) {
		entries, err := s.client.Entries(ctx, rec.session)
		if err != nil {
			return false, serious(err)
		}
		var texts []string
		for _, e := range entries {
			if e.Message != nil && e.Message.Role == message.RoleUser {
				texts = append(texts, e.Message.Text())
			}
		}
		returned := r.ended.Data.(*event.Ended).Returned
		for text, receipt := range said {
			n := 0
			for _, t := range slices.Concat(texts, returned) {
				if strings.Contains(t, text) {
					n++
				}
			}
			if receipt && n == 0 || n > 1 {
				return false, fmt.Errorf("%q was said to run %s and is there %d times, in %q and returned %q", text, rec.id, n, texts, returned)
			}
		}
		return true, nil
	})
}

// busy starts runs in a session that has one.
func (p *person) busy(ctx context.Context) error {
	profile := []string{"worker", "other"}[p.rng.IntN(2)]
	first, err := p.start(ctx, client.StartRequest{Profile: profile}, []string{"plain", "batch", "sign", "delegate"}[p.rng.IntN(4)])
	if err != nil {
		return err
	}
	all := []*record{first}
	for range 1 + p.rng.IntN(2) {
		<-time.After(time.Duration(p.rng.IntN(200)) * time.Millisecond)
		rec, err := p.start(ctx, client.StartRequest{Profile: profile, SessionID: first.session,
			WhenBusy: []string{"enqueue", "steer", "interrupt", "rollback", "reject"}[p.rng.IntN(5)]}, "next")
		if fault.KindOf(err) == fault.Conflict {
			continue // rejected, or the run ended while it was to be steered
		}
		if err != nil {
			return err
		}
		all = append(all, rec)
	}
	for _, rec := range all {
		if _, err := p.stay(ctx, rec, p.reader(rec.id), false); err != nil {
			return err
		}
		if rec.waits {
			if err := p.cancel(ctx, rec); err != nil {
				return err
			}
		}
	}
	// Whatever happened, the session takes the next message.
	rec, err := p.start(ctx, client.StartRequest{Profile: profile, SessionID: first.session}, "next")
	if err != nil {
		return err
	}
	run, err := p.stay(ctx, rec, p.reader(rec.id), false)
	if err == nil && (run.Status != client.Completed || run.Output != "I am here.") {
		err = fmt.Errorf("session %s does not take the next message: %+v", first.session, run)
	}
	return err
}

// propose lets an autonomous run record what needs approval, and decides.
func (p *person) propose(ctx context.Context) error {
	rec, err := p.start(ctx, client.StartRequest{Profile: "worker", Mode: "autonomous"}, "propose")
	if err != nil {
		return err
	}
	run, err := p.stay(ctx, rec, p.reader(rec.id), false)
	if err != nil {
		return err
	}
	if len(run.Proposals) != 2 || run.Output != "Proposed." {
		return fmt.Errorf("run %s is %s and has proposals %+v", run.ID, run.Status, run.Proposals)
	}
	want := []string{"applied", "discarded"}[p.rng.IntN(2)]
	return p.w.retry(ctx, "deciding about the proposals of "+rec.id, func(s *server) (bool, error) {
		list, err := s.client.Proposals(ctx, rec.id)
		if err != nil {
			return false, serious(err)
		}
		left, req := 0, client.DecideRequest{}
		for _, d := range list {
			switch d.Status {
			case want:
			case "proposed":
				left++
			case "applying": // when the server was killed
				left++
				if req.Uncertain = []string{"retry", "done"}[p.rng.IntN(2)]; req.Uncertain == "done" {
					req.RealID = "nobody-knows"
				} else {
					p.w.book.allow(rec.id, d.ToolCallID)
				}
				req.Proposal = d.ID
			default:
				return false, fmt.Errorf("proposal %+v, which should be %s", d, want)
			}
		}
		if left == 0 {
			return true, nil
		}
		if want == "applied" {
			_, err = s.client.Apply(ctx, rec.id, req)
		} else {
			_, err = s.client.Discard(ctx, rec.id, client.DecideRequest{})
		}
		if fault.KindOf(err) == fault.Conflict {
			err = nil // it was being applied when we looked, or still is
		}
		return false, serious(err)
	})
}

// keys makes an API key, uses it, and revokes it.
func (p *person) keys(ctx context.Context) error {
	var key *client.Key
	err := p.w.retry(ctx, "making a key", func(s *server) (bool, error) {
		var err error
		key, err = s.client.CreateKey(ctx, client.KeyRequest{Name: p.name, Scopes: []string{"read"}})
		return err == nil, serious(err)
	})
	if err != nil {
		return err
	}
	use := func(what string, wanted fault.Kind) error {
		return p.w.retry(ctx, what, func(s *server) (bool, error) {
			c, err := client.New(s.url, &client.Options{HTTP: s.http, Key: key.Secret})
			if err != nil {
				return false, err
			}
			_, err = c.Profiles(ctx)
			if fault.KindOf(err) == fault.Unavailable && err != nil {
				return false, nil
			}
			if fault.KindOf(err) != wanted && (err != nil || wanted != "") {
				return false, fmt.Errorf("%s %s: %w", what, key.ID, err)
			}
			return true, nil
		})
	}
	if err := use("using key", ""); err != nil {
		return err
	}
	err = p.w.retry(ctx, "revoking key "+key.ID, func(s *server) (bool, error) {
		_, err := s.client.RevokeKey(ctx, key.ID)
		return err == nil || fault.KindOf(err) == fault.Conflict, serious(err)
	})
	if err != nil {
		return err
	}
	return use("using revoked key", fault.Unauthorized)
}
