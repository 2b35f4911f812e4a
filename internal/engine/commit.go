package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"time"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/session"
	"agentd/internal/store"
	"agentd/message"
)

// batch is one change of a run on its way to the store.
type batch struct {
	tx     *store.Tx
	events []event.Event
	// start is called when the change's events have their numbers, after when
	// it is durable.
	start, after []func()
	// quick: an effect was started that may end at once, such as a tool that
	// looks something up in memory. Its outcome should join the same commit.
	quick bool
}

// committer writes a run's changes in order. While a commit is under way the
// next changes gather and go into one commit together.
type committer struct {
	d *driver

	mu      sync.Mutex
	tx      *store.Tx // what has gathered
	change  change    // of the run's row, the newest
	batches []*batchEvents
	after   []func()
	waiting []chan error
	late    []func() // called when nothing is left to commit
	limit   int64
	busy    bool
	idle    *sync.Cond
	err     error
}

func newCommitter(d *driver) *committer {
	c := &committer{d: d}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// commit completes a batch with the run's new state and hands it over.
func (d *driver) commit(b *batch, it item) {
	var opened *batchEvents
	if len(b.events) > 0 {
		var all []event.Event
		opened, all = d.stream.open(b.events)
		for _, ev := range all {
			row, err := encodeEvent(ev, d.reply, d.calls, &d.buf)
			if err != nil {
				d.e.log.Error("an event can not be stored", "run", d.ref.ID, "type", ev.Type, "error", err)
				continue
			}
			b.tx.Events = append(b.tx.Events, row)
		}
	}
	// Only now may effects begin to tell of themselves: what they publish
	// comes after the events that started them.
	if d.e.broken.Load() != nil {
		// The store has just refused a commit. Paying for a call whose
		// outcome can not be kept would be paying again and again.
		b.after, b.start = append(b.start, b.after...), nil
	}
	for _, f := range b.start {
		f()
	}
	limit := d.stream.last() + reserve
	if d.state.Status.Ended() {
		limit = d.stream.last()
	}
	d.update(limit)
	b.tx.Fences = append(b.tx.Fences, store.Fence{RunID: d.ref.ID, Epoch: d.fence})
	d.fence = d.row.Epoch
	d.commits.add(b, change{d.row.RunUpdate, d.state}, opened, limit, it.done)
	if b.quick && len(b.after) == 0 && it.done == nil {
		d.lingers = true
		return
	}
	d.flush()
}

// flush starts the commit of what has gathered.
func (d *driver) flush() {
	d.lingers = false
	d.commits.flush()
}

// linger gives effects that may end at once the processor a few times, and
// reports whether one has ended. This takes microseconds, far less than the
// commit that it may save.
func (d *driver) linger() bool {
	for range 3 {
		if d.waiting() {
			return true
		}
		runtime.Gosched()
	}
	return d.waiting()
}

// change is what a commit makes of the run's row. The state is encoded when the
// commit is made, because a later one may take its place before. Step never
// changes a state that it was given.
type change struct {
	update store.RunUpdate
	state  run.State
}

func (c *change) of(id string) []store.RunChange {
	u := c.update
	u.State = c.state.Encode()
	u.Usage = c.state.Usage.AppendJSON(nil)
	return []store.RunChange{{ID: id, RunUpdate: u}}
}

// update brings the changing part of the run's row up to date, but for what is
// encoded.
func (d *driver) update(limit int64) {
	s := &d.state
	u := &d.row.RunUpdate
	u.Status, u.StopReason, u.Seq = string(s.Status), "", limit
	u.OutputEntry, u.Steps = s.Output, s.Step
	if u.Started == 0 && s.Status != run.Queued {
		u.Started = d.e.now()
	}
	if s.Status.Ended() {
		u.StopReason, u.Ended = s.StopReason, d.e.now()
	}
}

func (c *committer) add(b *batch, now change, opened *batchEvents, limit int64, done chan error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		if done != nil {
			done <- c.err
		}
		return
	}
	if c.tx == nil {
		c.tx = b.tx
	} else {
		merge(c.tx, b.tx)
	}
	if opened != nil {
		c.batches = append(c.batches, opened)
	}
	c.after = append(c.after, b.after...)
	c.change = now
	if done != nil {
		c.waiting = append(c.waiting, done)
	}
	c.limit = limit
}

// flush starts the commit of what has gathered, unless one is under way, after
// which it comes by itself.
func (c *committer) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy && c.tx != nil {
		c.busy = true
		c.d.e.workers.run(c.run)
	}
}

// run commits until nothing has gathered.
func (c *committer) run() {
	for {
		c.mu.Lock()
		if c.tx == nil || c.err != nil {
			c.busy = false
			late := c.late
			c.late = nil
			c.idle.Broadcast()
			c.mu.Unlock()
			for _, f := range late {
				f()
			}
			return
		}
		tx, now, batches, after, waiting, limit := c.tx, c.change, c.batches, c.after, c.waiting, c.limit
		c.tx, c.batches, c.after, c.waiting = nil, nil, nil, nil
		c.mu.Unlock()
		tx.Runs = now.of(c.d.ref.ID)
		err := c.observeCommit(tx)
		if err != nil {
			c.fail(err, waiting)
			continue
		}
		if c.d.e.broken.Load() != nil {
			c.d.e.broken.Store(nil)
		}
		if now.state.Status.Ended() {
			// Who sees the end finds the session free.
			c.d.e.leave(Ref{c.d.ref.Tenant, c.d.row.SessionID}, c.d.ref.ID)
		}
		c.d.stream.publish(batches, limit)
		for _, f := range after {
			f()
		}
		for _, done := range waiting {
			done <- nil
		}
	}
}

// commitTries is how often a commit is tried when the store fails, with
// doubling pauses from commitPause: a full disk or a locked file may pass.
const (
	commitTries = 6
	commitPause = 50 * time.Millisecond
)

func (c *committer) write(tx *store.Tx) error {
	d := c.d
	var err error
	for n := range commitTries {
		// A change that was accepted is written even if the driver is asked
		// to leave meanwhile.
		if err = d.e.store.Commit(context.WithoutCancel(d.ctx), tx); err == nil {
			return nil
		}
		if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrSessionBusy) {
			return err
		}
		select {
		case <-time.After(commitPause << n):
		case <-d.ctx.Done():
			return err
		}
	}
	return err
}

// fail lets go of the run: its durable state is that of the last commit.
func (c *committer) fail(err error, waiting []chan error) {
	d := c.d
	kind, hint := fault.Unavailable, "The run goes on when the store takes commits again."
	switch {
	case errors.Is(err, store.ErrFenced):
		kind, hint = fault.Conflict, "Another agentd drives this run."
	case errors.Is(err, store.ErrNotFound):
		kind, hint = fault.NotFound, ""
	case d.ctx.Err() == nil:
		d.e.log.Error("the store refuses a commit; the run goes on from the last one later", "run", d.ref.ID, "error", err)
		d.e.broken.Store(&err)
		d.e.driveLater(d.ref)
	}
	ferr := &fault.Error{Kind: kind, Err: err, Hint: hint}
	c.mu.Lock()
	c.err = ferr
	waiting = append(waiting, c.waiting...)
	c.tx, c.waiting, c.after = nil, nil, nil
	c.mu.Unlock()
	for _, done := range waiting {
		done <- ferr
	}
	d.stop()
	d.stream.closeReaders()
}

// afterAll calls f when everything that was added is committed, or can not be.
func (c *committer) afterAll(f func()) {
	c.mu.Lock()
	idle := !c.busy && c.tx == nil || c.err != nil
	if !idle {
		c.late = append(c.late, f)
	}
	c.mu.Unlock()
	if idle {
		f()
	}
}

// wait returns when everything that was added is committed, or can not be.
func (c *committer) wait() {
	c.flush()
	c.mu.Lock()
	for c.busy {
		c.idle.Wait()
	}
	c.mu.Unlock()
}

func (c *committer) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// merge adds a later change of the same run to a gathered one. Only the first
// fence counts.
func merge(a, b *store.Tx) {
	a.NewSessions = append(a.NewSessions, b.NewSessions...)
	a.NewRuns = append(a.NewRuns, b.NewRuns...)
	a.Entries = append(a.Entries, b.Entries...)
	if len(b.Leaves) > 0 {
		a.Leaves = b.Leaves
	}
	a.Inputs = append(a.Inputs, b.Inputs...)
	a.DropInputs = append(a.DropInputs, b.DropInputs...)
	a.NewInterrupts = append(a.NewInterrupts, b.NewInterrupts...)
	a.Answers = append(a.Answers, b.Answers...)
	a.NewRules = append(a.NewRules, b.NewRules...)
	a.NewProposals = append(a.NewProposals, b.NewProposals...)
	a.Settles = append(a.Settles, b.Settles...)
	a.Counts = append(a.Counts, b.Counts...)
	a.Raises = append(a.Raises, b.Raises...)
	a.Events = append(a.Events, b.Events...)
	a.Trace = append(a.Trace, b.Trace...)
	a.Usage = append(a.Usage, b.Usage...)
	a.Blobs = append(a.Blobs, b.Blobs...)
	a.BlobUses = append(a.BlobUses, b.BlobUses...)
	a.ExpireArtifacts = append(a.ExpireArtifacts, b.ExpireArtifacts...)
	a.Quarantine = append(a.Quarantine, b.Quarantine...)
	a.Mail = append(a.Mail, b.Mail...)
	a.MailDone = append(a.MailDone, b.MailDone...)
	a.Effects = append(a.Effects, b.Effects...)
}

// writeTo turns a write of the machine into rows.
func (d *driver) writeTo(tx *store.Tx, w run.Write, now int64) {
	switch w := w.(type) {
	case run.AppendMessage:
		d.entry(tx, w.Entry, w.Parent, w.Message, now)
	case run.AppendQueued:
		m := d.conv.takeInput(w.Input)
		if m == nil {
			d.e.log.Error("a queued input is gone", "run", d.ref.ID, "input", w.Input)
			m = &message.Message{Role: message.RoleUser, Content: []message.Block{message.Text("(the message could not be read)")}}
		}
		d.entry(tx, w.Entry, w.Parent, d.assemble(w.Input, d.remembering(w.Input, m)), now)
		tx.DropInputs = append(tx.DropInputs, store.InputRef{RunID: d.ref.ID, ID: w.Input})
	case run.AppendSetting:
		d.writeSetting(tx, w, now)
	case run.AppendCompaction:
		d.writeCompaction(tx, w, now)
	case run.RollBack:
		body, _ := json.Marshal(map[string]string{"reason": d.state.Cancel})
		tx.Entries = append(tx.Entries, &store.Entry{SessionID: d.row.SessionID, ID: w.Entry, Parent: w.Parent, Kind: session.KindRollback,
			RunID: d.ref.ID, Created: now, Body: body})
	case run.ReturnQueued:
		for _, id := range w.Inputs {
			tx.DropInputs = append(tx.DropInputs, store.InputRef{RunID: d.ref.ID, ID: id})
			if m := d.conv.takeInput(id); m != nil {
				d.returned = append(d.returned, m.Text())
			}
		}
	case run.OpenInterrupt:
		args := w.Args
		if w.CallID != "" {
			args = d.tools.args(w.CallID, w.Name)
		}
		call, _ := json.Marshal(event.Tool{ToolCallID: w.CallID, Name: w.Name, Args: args})
		tx.NewInterrupts = append(tx.NewInterrupts, &store.Interrupt{ID: w.ID, RunID: d.ref.ID, RootID: d.rootID(), SessionID: d.row.SessionID,
			CallID: w.CallID, Kind: w.Kind, Prompt: w.Prompt, Schema: w.Schema, ToolCall: call, Created: now, Expires: w.Expires,
			InterruptAnswer: store.InterruptAnswer{Status: "open"}})
	case run.Settle:
		tx.Settles = append(tx.Settles, d.settlement(w, now))
	case run.RaisePot:
		tx.Raises = append(tx.Raises, raise(w, now))
	case run.RecordProposal:
		tx.NewProposals = append(tx.NewProposals, &store.Proposal{ID: w.ID, RunID: d.ref.ID, CallID: w.CallID, Name: w.Name, Effect: w.Effect, Key: w.Key,
			Args: d.tools.args(w.CallID, w.Name), Temp: w.Temp, Predicted: w.Predicted, Reason: w.Reason, Created: now,
			ProposalUpdate: store.ProposalUpdate{Status: "proposed"}})
	case run.CloseInterrupt:
		a := store.InterruptAnswer{Status: "cancelled", Reason: w.Reason, Answered: now}
		if w.Expired {
			a.Status, a.Decision = "expired", w.Decision
			if w.Answer != "" {
				a.Answer, _ = json.Marshal(w.Answer)
			}
		}
		tx.Answers = append(tx.Answers, store.InterruptChange{ID: w.ID, InterruptAnswer: a})
		d.e.settled(expiry{d.ref, w.ID})
	}
	if leaf := d.state.Leaf; len(tx.Entries) > 0 {
		tx.Leaves = []store.Leaf{{SessionID: d.row.SessionID, EntryID: leaf, Updated: now}}
	}
}

func (d *driver) entry(tx *store.Tx, id, parent string, m *message.Message, now int64) {
	m = message.Clean(m) // what is sent now and what is read back later are the same
	body, err := m.AppendJSON(d.buf[:0])
	d.buf = body
	body = bytes.Clone(body)
	if err != nil {
		// Only a RawMessage that is not JSON can do this; the text is what matters.
		c := *m
		c.Details = nil
		for i := range c.Content {
			if c.Content[i].Type == message.BlockToolCall && !json.Valid(c.Content[i].Arguments) {
				c.Content[i].Arguments = json.RawMessage("{}")
			}
		}
		body, _ = json.Marshal(&c)
		m = &c
	}
	tx.Entries = append(tx.Entries, &store.Entry{SessionID: d.row.SessionID, ID: id, Parent: parent, Kind: session.KindMessage,
		RunID: d.ref.ID, Created: now, Body: body})
	d.conv.wrote(id, parent, m)
	if m.Role == message.RoleAssistant {
		d.open(id, m)
	}
}

func (d *driver) rootID() string {
	if d.row.RootID != "" {
		return d.row.RootID
	}
	return d.ref.ID
}
