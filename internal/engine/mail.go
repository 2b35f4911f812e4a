package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
)

// On a store that nodes share, what people and programs want of a run goes to it by
// mail, whichever node they asked: a row, which the run's home applies in the commit of
// what it changes, together with the outcome. Whoever asked waits for that.

// mailLook asks a run to look at its children; the other kinds are those of inputs.
const mailLook = "look"

// letterVersion is the version of a letter.
const letterVersion = 1

// letter is the body of mail: an input with the rows that go with it.
type letter struct {
	V         int                     `json:"v"`
	Steered   *run.Steered            `json:"steered,omitempty"`
	FollowUp  *run.FollowedUp         `json:"follow_up,omitempty"`
	Cancel    *run.CancelRequested    `json:"cancel,omitempty"`
	Fired     *run.TimerFired         `json:"fired,omitempty"`
	Answered  *run.Answered           `json:"answered,omitempty"`
	Text      string                  `json:"text,omitempty"` // of Answered
	Call      string                  `json:"call,omitempty"`
	Args      json.RawMessage         `json:"args,omitempty"` // of Call, as a person changed them
	Inputs    []*store.Input          `json:"inputs,omitempty"`
	Answers   []store.InterruptChange `json:"answers,omitempty"`
	NewRules  []*store.Rule           `json:"rules,omitempty"`
	extraRows bool
}

// seal makes a letter of an input.
func seal(in run.Input, extra func(*store.Tx)) (*letter, error) {
	l := &letter{V: letterVersion}
	if extra != nil {
		var tx store.Tx
		extra(&tx)
		l.Inputs, l.Answers, l.NewRules = tx.Inputs, tx.Answers, tx.NewRules
		tx.Inputs, tx.Answers, tx.NewRules = nil, nil, nil
		l.extraRows = !tx.Empty()
	}
	switch w := in.(type) {
	case queued:
		in = w.Input
	case withArgs:
		in, l.Call, l.Args = w.Input, w.call, w.args
	}
	switch in := in.(type) {
	case run.Steered:
		l.Steered = &in
	case run.FollowedUp:
		l.FollowUp = &in
	case run.CancelRequested:
		l.Cancel = &in
	case run.TimerFired:
		l.Fired = &in
	case run.Answered:
		l.Answered, l.Text = &in, in.Text
	default:
		return nil, &fault.Error{Op: "engine.seal", Kind: fault.Internal, Err: fmt.Errorf("input %s can not be sent to another node", in.Kind())}
	}
	if l.extraRows {
		return nil, &fault.Error{Op: "engine.seal", Kind: fault.Internal, Err: fmt.Errorf("what goes with input %s can not be sent to another node", in.Kind())}
	}
	return l, nil
}

// open gives the input, as it happens now, and what goes with it.
func (l *letter) open(d *driver) (in run.Input, extra func(*store.Tx)) {
	now := d.at()
	extra = func(tx *store.Tx) {
		tx.Inputs, tx.Answers, tx.NewRules = append(tx.Inputs, l.Inputs...), append(tx.Answers, l.Answers...), append(tx.NewRules, l.NewRules...)
	}
	switch {
	case l.Steered != nil:
		in = run.Steered{At: now, ID: l.Steered.ID}
	case l.FollowUp != nil:
		in = run.FollowedUp{At: now, ID: l.FollowUp.ID}
	case l.Cancel != nil:
		c := *l.Cancel
		c.At = now
		return c, extra
	case l.Fired != nil:
		return run.TimerFired{At: run.At{Now: max(now.Now, l.Fired.Now)}, ID: l.Fired.ID}, extra
	case l.Answered != nil:
		a := *l.Answered
		a.Text = l.Text
		// An answer that came in time is in time, however long its way was.
		if x := d.expires(a.Interrupt); x == 0 || now.Now < x {
			a.At = now
		}
		if l.Call != "" {
			return withArgs{a, l.Call, l.Args}, extra
		}
		return a, extra
	}
	if in != nil && len(l.Inputs) == 1 {
		in = queued{in, l.Inputs[0]}
	}
	return in, extra
}

// verdict is the outcome of mail: nothing is wrong if Kind is empty.
type verdict struct {
	Kind  fault.Kind `json:"kind,omitempty"`
	Op    string     `json:"op,omitempty"`
	Error string     `json:"error,omitempty"`
	Hint  string     `json:"hint,omitempty"`
	Field string     `json:"field,omitempty"`
}

func verdictOf(err error) json.RawMessage {
	var v verdict
	var f *fault.Error
	switch {
	case err == nil:
	case errors.As(err, &f):
		v = verdict{Kind: fault.KindOf(err), Op: f.Op, Hint: fault.HintOf(err), Field: f.Field, Error: "unknown"}
		if f.Err != nil {
			v.Error = f.Err.Error()
		}
	default:
		v = verdict{Kind: fault.Internal, Error: err.Error()}
	}
	raw, _ := json.Marshal(v)
	return raw
}

func (v *verdict) err() error {
	if v.Kind == "" {
		return nil
	}
	return &fault.Error{Kind: v.Kind, Op: v.Op, Err: errors.New(v.Error), Hint: v.Hint, Field: v.Field}
}

// post sends an input to a run by mail and waits for what becomes of it.
func (n *node) post(ctx context.Context, ref Ref, in run.Input, extra func(*store.Tx)) error {
	l, err := seal(in, extra)
	if err != nil {
		return err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return internal("engine.post", err)
	}
	m := &store.Mail{RunID: ref.ID, ID: "mail_" + n.e.cfg.NewID(), Kind: in.Kind(), Body: body, Created: n.e.now()}
	applied := make(chan struct{}, 1)
	n.mu.Lock()
	n.replies[m.ID] = awaited{ref, applied}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.replies, m.ID)
		n.mu.Unlock()
	}()
	// If ctx ended during the commit it might still happen, and nobody would know.
	if err := n.commit(context.WithoutCancel(ctx), &store.Tx{Tenant: ref.Tenant, Mail: []*store.Mail{m}}); err != nil {
		return notFound("run", ref.ID, err)
	}
	n.name(ref)
	kind, wake := noteMail, n.exec.Wake
	if l.Cancel != nil {
		kind, wake = noteCancel, n.exec.Cancel
	}
	n.tell(note{Kind: kind, Tenant: ref.Tenant, Run: ref.ID})
	if err := wake(ctx, ref); err != nil {
		n.e.log.Warn("a run could not be woken; it is found by who looks for work", "run", ref.ID, "error", err)
	}
	began := time.Now()
	var deserted time.Time // since when nobody is there; zero: somebody is, or that is not known
	// The first look needs no sign: a run that ended ahead of the mail gives none any more.
	for sign := false; ; sign = true {
		if sign {
			select {
			case <-applied:
			case <-n.tick():
			case <-ctx.Done():
				return &fault.Error{Kind: fault.Timeout, Err: ctx.Err(), Hint: "The request may still take effect."}
			case <-n.e.ctx.Done():
				return fault.New(fault.Unavailable, "the engine is closing: the request may still take effect")
			}
		}
		// The run first: once it has ended, nothing more is applied than what the
		// mail then says.
		row, err := n.e.store.Run(ctx, ref.Tenant, ref.ID)
		if err != nil {
			if errors.Is(err, store.ErrNotFound) {
				return notFound("run", ref.ID, err)
			}
			deserted = time.Time{}
			continue
		}
		if !sign && !run.Status(row.Status).Ended() {
			continue
		}
		now, err := n.st.Outcome(ctx, ref.Tenant, ref.ID, m.ID)
		switch {
		case err == nil && now.Applied > 0:
			var v verdict
			if err := json.Unmarshal(now.Outcome, &v); err != nil {
				return internal("engine.post", err)
			}
			return v.err()
		case run.Status(row.Status).Ended():
			return ended(row)
		case time.Since(began) <= n.cfg.Lease:
		case !n.deserted(ctx):
			deserted = time.Time{}
		case deserted.IsZero(): // after an outage of the store all have yet to join again
			deserted = time.Now()
		case time.Since(deserted) >= n.cfg.Lease:
			return &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("no worker is there that drives run %s: what is asked of it is kept, and done as soon as there is one", ref.ID),
				Hint: "Start one (agentd worker, or agentd serve without --no-worker) on the same store."}
		}
	}
}

// deserted is whether no node is there that would drive anything.
func (n *node) deserted(ctx context.Context) bool {
	if n.cfg.Named {
		return false // it drives what it wants something of
	}
	nodes, err := n.st.Nodes(ctx, n.now())
	return err == nil && !slices.ContainsFunc(nodes, func(x *store.Node) bool { return x.Worker })
}

// readMail applies what waits for the run; the kinds alone, if some are named. It is
// the driver's goroutine that calls it.
func (d *driver) readMail(kinds ...string) {
	if d.claim == nil || d.ctx.Err() != nil {
		return
	}
	n := d.e.node
	waiting, err := n.st.Mail(d.ctx, d.ref.Tenant, d.ref.ID)
	if err != nil {
		return // it is looked for again
	}
	if d.mailed == nil {
		d.mailed = map[string]bool{}
	}
	var looks []store.MailRef
	d.gotMail = d.gotMail || len(waiting) > 0
	for _, m := range waiting {
		if d.mailed[m.ID] || len(kinds) > 0 && m.Kind != kinds[0] {
			continue
		}
		if m.Kind == mailLook {
			looks = append(looks, store.MailRef{RunID: m.RunID, ID: m.ID})
			continue
		}
		var l letter
		if err := json.Unmarshal(m.Body, &l); err != nil || l.V > letterVersion {
			d.e.log.Error("mail is left to a node that understands it", "run", d.ref.ID, "kind", m.Kind, "version", l.V, "error", err)
			break // what follows must not overtake it
		}
		in, extra := l.open(d)
		if in == nil {
			d.e.log.Error("mail is left to a node that understands it", "run", d.ref.ID, "kind", m.Kind)
			break
		}
		d.mailed[m.ID] = true
		done := make(chan error, 1)
		d.e.wg.Add(1)
		go n.tellDone(d.ref, m.ID, done)
		d.apply(item{in: in, letter: m.ID, done: done, extra: func(tx *store.Tx) {
			extra(tx)
			tx.MailDone = append(tx.MailDone, store.MailOutcome{RunID: d.ref.ID, ID: m.ID, Applied: d.e.now(), Outcome: verdictOf(nil)})
		}})
	}
	if len(looks) > 0 {
		d.look()
		d.dropLooks(looks)
	}
}

// dropLooks ends signs that there is news of children. What the run made of them is
// durable first: nobody would look again after whoever dies in between. A look that comes
// twice changes nothing.
func (d *driver) dropLooks(looks []store.MailRef) {
	if d.commits.wait(); d.commits.failed() != nil {
		return
	}
	// The fence: another home may not have seen what this one takes for done.
	err := d.e.node.commit(context.WithoutCancel(d.ctx), &store.Tx{Tenant: d.ref.Tenant, Fences: []store.Fence{{RunID: d.ref.ID, Epoch: d.fence}}, DropMail: looks})
	if err != nil && !errors.Is(err, store.ErrFenced) {
		d.e.log.Warn("a run that has looked at its children will do so again", "run", d.ref.ID, "error", err)
	}
}

// tellDone tells who waits that mail was applied.
func (n *node) tellDone(ref Ref, id string, done <-chan error) {
	defer n.e.wg.Done()
	select {
	case err := <-done:
		if err == nil {
			n.tell(note{Kind: noteDone, Tenant: ref.Tenant, Run: ref.ID, ID: id})
		}
	case <-n.e.ctx.Done():
	}
}

// refuseMail makes a refusal the outcome of mail, once what was faster is durable.
func (d *driver) refuseMail(id string, err error, done chan<- error) {
	fence := d.fence
	d.commits.afterAll(func() {
		if d.commits.failed() != nil {
			done <- d.commits.failed()
			return
		}
		e := d.e.node.commit(context.WithoutCancel(d.ctx), &store.Tx{Tenant: d.ref.Tenant, Fences: []store.Fence{{RunID: d.ref.ID, Epoch: fence}},
			MailDone: []store.MailOutcome{{RunID: d.ref.ID, ID: id, Applied: d.e.now(), Outcome: verdictOf(err)}}})
		if e != nil {
			d.e.log.Warn("what became of a request could not be stored; it is looked at again", "run", d.ref.ID, "error", e)
			d.stop()
		}
		done <- e
	})
}

// lookMail has the parent of a run look at its children: a row of the commit that
// gives it something to see.
func (d *driver) lookMail(b *batch) {
	parent := Ref{d.ref.Tenant, d.row.ParentID}
	b.tx.Mail = append(b.tx.Mail, &store.Mail{RunID: parent.ID, ID: "look_" + d.e.cfg.NewID(), Kind: mailLook, Created: d.e.now()})
	b.after = append(b.after, func() {
		d.e.node.tell(note{Kind: noteMail, Tenant: parent.Tenant, Run: parent.ID})
		_ = d.e.node.exec.Wake(d.ctx, parent)
	})
}
