package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"agentd/event"
	"agentd/fault"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/model"
)

// driver drives one run: it steps the machine, commits, and performs effects.
// One goroutine owns everything below the inbox; effects have their own and
// answer through the inbox.
type driver struct {
	e      *Engine
	ref    Ref
	stream *stream
	// ctx ends when the driver must let go of the run.
	ctx  context.Context
	stop context.CancelFunc
	// gone is closed when another driver can take over.
	gone chan struct{}

	mu      sync.Mutex
	inbox   []item
	slot    bool // guarded by the engine's slots
	leaving bool // no more items are taken
	// unload ends a load under way for who does not need all of it; or nil.
	unload context.CancelFunc
	wake   chan struct{}

	fresh  *fresh // what was just accepted; nil: it is read
	loaded bool   // what follows was read
	row    *store.Run
	spec   spec
	agent  *Agent
	state  run.State
	conv   conversation
	stands string // where the session stood when the conversation was read
	tools  toolbox
	timers map[string]func() bool
	// effects are the open ones by key; each has the function that ends it.
	effects map[string]context.CancelCauseFunc
	fence   int64 // the epoch that the store has for the run
	// claim is the right to drive a run of a shared store, or nil. needs is the version
	// of the node that must go on with it, mailed the mail that was taken up, children
	// the keys of effects that only wait for a child run. draining: it hands over.
	claim    *claim
	needs    int
	mailed   map[string]bool
	children map[string]bool
	draining bool
	gotMail  bool
	// handover ends when it begins to hand over.
	handover context.Context
	handOver context.CancelFunc
	// elsewhere are the pools of the calls in the ledger; askedModel: it may have models'.
	elsewhere  map[string]string
	askedModel bool
	commits    *committer
	reply      *reply // of the open step, for the events that refer to it
	// scratches are the adapters' private memories, by model.
	scratches map[int]*model.Scratch
	// caching is what is known of the last request, asking the call under way, cacheNote and
	// toolsNote what is stored of one that was answered just now and of its list of tools.
	caching              cacheWatch
	asking               *asked
	cacheNote, toolsNote json.RawMessage
	calls                string // entry of the reply whose calls are open
	// returned are the texts of queued inputs that the run will never take.
	returned []string
	// compacted is what came of the last compaction.
	compacted *compactionMade
	// tooLarge says that a message can not be sent to the model of the open step.
	tooLarge string
	// grant is what the open model call was granted, where there are pots.
	grant     *grant
	measured  measured
	prompt    assembled
	recalled  string // goes ahead of the first message
	overspent bool   // a call cost more than was reserved
	lingers   bool   // a change has gathered whose commit is not started
	buf       []byte // rows are written here, and copied at their length
}

// fresh is a run in a session of its own that was accepted just now: what its
// driver would read from the store. Nobody else writes to that session before the
// run has ended.
type fresh struct {
	row     store.Run
	leaf    string
	entries []*store.Entry
	inputs  []*store.Input
}

// drive starts a driver for the run unless there is one.
// Of a shared store it drives what it has claimed alone.
func (e *Engine) drive(ref Ref) *driver { return e.driveFresh(ref, nil) }

func (e *Engine) driveFresh(ref Ref, f *fresh) *driver { return e.driveAs(ref, f, nil) }

func (e *Engine) driveAs(ref Ref, f *fresh, c *claim) *driver {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.drivers[ref]; d != nil || e.closed || e.node != nil && (c == nil || c.lease.ctx.Err() != nil || e.node.isDraining()) {
		return d
	}
	under := e.ctx
	if c != nil {
		under = c.lease.ctx
	}
	ctx, stop := context.WithCancel(under)
	d := &driver{e: e, ref: ref, fresh: f, claim: c, ctx: ctx, stop: stop, gone: make(chan struct{}), wake: make(chan struct{}, 1),
		timers: map[string]func() bool{}, effects: map[string]context.CancelCauseFunc{}}
	d.commits = newCommitter(d)
	d.handover, d.handOver = context.WithCancel(context.Background())
	if f != nil {
		// Who watches at once must find the stream begun.
		d.stream = e.acquireLocked(ref)
		d.stream.start(0)
	}
	e.drivers[ref] = d
	e.wg.Add(1)
	go d.main()
	return d
}

// send hands an input to the run, whoever has to be woken, and waits until it is
// durable. The error is a *fault.Error.
func (e *Engine) send(ctx context.Context, ref Ref, in run.Input, extra func(*store.Tx)) error {
	if e.node != nil {
		return e.node.post(ctx, ref, in, extra)
	}
	it := item{in: in, extra: extra, done: make(chan error, 1)}
	for {
		d := e.drive(ref)
		if d == nil {
			return fault.New(fault.Unavailable, "the engine is closing")
		}
		if d.put(it) {
			break
		}
		// The driver is leaving; the next one takes the input.
		select {
		case <-d.gone:
		case <-ctx.Done():
			return &fault.Error{Kind: fault.Timeout, Err: ctx.Err()}
		}
	}
	select {
	case err := <-it.done:
		return err
	case <-ctx.Done():
		return &fault.Error{Kind: fault.Timeout, Err: ctx.Err(), Hint: "The request may still take effect."}
	case <-e.ctx.Done():
		return fault.New(fault.Unavailable, "the engine is closing: the request may still take effect")
	}
}

// main is the life of a driver.
func (d *driver) main() {
	defer d.e.wg.Done()
	defer d.leave()
	defer func() {
		if p := recover(); p != nil {
			d.e.log.Error("a driver panicked; the run goes on from its last commit", "run", d.ref.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d.e.driveLater(d.ref)
		}
	}()
	if d.stream == nil {
		d.stream = d.e.acquire(d.ref)
	}
	first, err := d.load()
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			d.e.log.Error("a run can not be driven", "run", d.ref.ID, "error", err)
		}
		var illegal *run.IllegalError
		if errors.As(err, &illegal) && illegal.Newer {
			d.needs = run.StateVersion + 1
		}
		if d.ctx.Err() == nil && fault.KindOf(err) != fault.NotFound && !errors.As(err, &illegal) {
			d.e.driveLater(d.ref) // the store may only have been busy
		}
		if fault.KindOf(err) == fault.NotFound && d.row == nil {
			d.e.leaveAny(d.ref)
		}
		d.refuse(err)
		return
	}
	d.loaded = true
	if d.row.ParentID != "" && d.state.Status != run.Queued && d.claim == nil {
		d.poke() // a poke may have been lost with the last driver
	}
	if d.state.Status == run.Paused && first != nil {
		// It only finds its children again: a cancel that waits must reach them.
		d.apply(item{in: first})
		first = nil
	}
	// A cancel that waits comes first: nothing that it would stop is started.
	waiting := d.take()
	for i := range waiting {
		if _, ok := waiting[i].in.(run.CancelRequested); ok {
			d.apply(waiting[i])
			waiting[i] = item{}
		}
	}
	if first != nil {
		d.readMail(run.CancelRequested{}.Kind())
	}
	if first != nil && !d.state.Status.Ended() {
		d.apply(item{in: first})
	}
	d.look()
	if d.fresh == nil { // of one that was accepted just now others are told
		d.readMail()
		d.expireDue()
	}
	for _, it := range waiting {
		if it.in != nil || it.look || it.agent != nil || it.drain || it.left {
			d.apply(it)
		}
	}
	for {
		for _, it := range d.take() {
			d.apply(it)
		}
		if d.ctx.Err() != nil {
			return
		}
		admitted := true
		if d.state.Status == run.Queued && d.turn() && !d.draining {
			if admitted = d.e.slots.take(d); admitted {
				if err := d.refresh(); err != nil {
					d.complain("a run can not be started", err)
					d.e.driveLater(d.ref)
					d.refuse(err)
					return
				}
				d.settleTools()
				d.gather()
				d.recollect()
				if !d.holds() || d.ctx.Err() != nil {
					return // the next driver asks again: what is missing now would be missing for good
				}
				d.apply(item{in: d.started()})
				continue
			}
		}
		if (admitted && d.idle() || d.draining && d.calm()) && d.depart() {
			return
		}
		if d.lingers {
			if d.linger() {
				continue
			}
			d.flush()
		}
		select {
		case <-d.wake:
		case <-d.ctx.Done():
			return
		}
	}
}

// idle is whether nothing is under way: the run ended, or waits for its turn or
// for people only. The children that a paused run waits for poke it.
func (d *driver) idle() bool {
	s := d.state.Status
	if s == run.Paused {
		return d.timers[lookKey] == nil
	}
	return (s.Ended() || s == run.Queued) && len(d.effects) == 0
}

// turn is whether no other run of the session is ahead.
func (d *driver) turn() bool {
	if d.claim != nil {
		return d.state.Cancel == "" && d.claim.turn
	}
	return d.state.Cancel == "" && d.e.active(Ref{d.ref.Tenant, d.row.SessionID}) == d.ref.ID
}

// depart stops taking inputs if there are none, and waits for the commits.
func (d *driver) depart() bool {
	d.mu.Lock()
	if len(d.inbox) > 0 {
		d.mu.Unlock()
		return false
	}
	d.leaving = true
	d.mu.Unlock()
	d.commits.wait()
	return true
}

// leave gives everything back.
func (d *driver) leave() {
	d.mu.Lock()
	d.leaving = true
	rest := d.inbox
	d.inbox = nil
	d.mu.Unlock()
	for _, cancel := range d.effects {
		cancel(errLeaving)
	}
	for _, stop := range d.timers {
		stop()
	}
	d.e.slots.give(d)
	d.commits.wait()
	d.e.mu.Lock()
	if d.e.drivers[d.ref] == d {
		delete(d.e.drivers, d.ref)
	}
	d.e.mu.Unlock()
	if d.claim != nil {
		d.e.node.left(d) // who waits for this driver finds the run given back
	}
	close(d.gone)
	d.stop()
	for _, it := range rest {
		if it.done != nil {
			it.done <- fault.New(fault.Unavailable, "the run is being handed over: try again")
		}
	}
	if d.stream != nil {
		if s := d.state.Status; !d.loaded || s == run.Running {
			d.stream.closeReaders() // nobody here tells them anything more
		}
		d.e.release(d.ref, d.stream)
	}
	switch {
	case d.row == nil || d.commits.failed() != nil:
	case d.state.Status.Ended():
		if d.state.Status == run.Failed && d.state.Children > 0 {
			d.e.wg.Add(1)
			go d.e.endChildren(d.ref, d.state.Children)
		}
		d.e.leave(Ref{d.ref.Tenant, d.row.SessionID}, d.ref.ID)
		d.e.ended(d.ref)
	case d.loaded && d.state.Status == run.Queued && d.turn():
		d.e.drive(d.ref) // its turn came while this driver was leaving
	}
}

// refuse answers everybody who waits, and will wait until the driver is gone.
func (d *driver) refuse(err error) {
	d.mu.Lock()
	d.leaving = true
	rest := d.inbox
	d.inbox = nil
	d.mu.Unlock()
	for _, it := range rest {
		if it.done != nil {
			it.done <- err
		}
	}
}

// apply steps the machine with an input and with everything that is decided at
// once because of it, and hands the outcome to the committer as one change.
func (d *driver) apply(it item) {
	if d.aside(&it) {
		return
	}
	if it.effect != "" {
		if _, open := d.effects[it.effect]; !open {
			return // an abandoned effect that ended after all
		}
		delete(d.effects, it.effect)
		in := it.in
		if w, ok := in.(withBlob); ok {
			in = w.Input
		}
		if done, ok := in.(run.ToolDone); ok {
			d.lastLook(done.CallID)
		}
	}
	before := newsOf(&d.state)
	b := &batch{tx: &store.Tx{Tenant: d.ref.Tenant}}
	if it.effect != "" {
		d.took(b, it.effect)
	}
	if it.extra != nil {
		it.extra(b.tx)
	}
	inputs := []run.Input{it.in}
	for i := 0; i < len(inputs); i++ {
		in, err := d.judgeAgain(inputs[i])
		if err != nil {
			d.rejected(it, inputs[i], err)
			return // answers come alone
		}
		pure := in
		switch w := in.(type) {
		case queued:
			pure = w.Input
		case withBlob:
			pure = w.Input
		case withArgs:
			pure = w.Input
		case cured:
			pure = w.Input
		case granted:
			pure, d.grant = w.Input, w.grant
		case compacted:
			pure, d.compacted = w.Compacted, w.made
		}
		tr, err := run.Step(d.state, pure)
		if err != nil {
			if i == 0 {
				d.rejected(it, in, err)
				return
			}
			d.rejected(item{}, in, err)
			continue
		}
		switch w := in.(type) {
		case cured:
			d.quarantine(b, w.cure)
		case queued:
			d.conv.queue(w.row)
		case withBlob:
			b.tx.Blobs = append(b.tx.Blobs, w.blob)
			b.tx.BlobUses = append(b.tx.BlobUses, store.BlobUse{SessionID: d.row.SessionID, BlobID: w.blob.ID, RunID: d.ref.ID, CallID: w.call, Name: w.blob.Name, Created: w.blob.Created})
			session := Ref{d.ref.Tenant, d.row.SessionID}
			b.after = append(b.after, func() { d.e.trimArtifacts(session) })
			b.events = append(b.events, event.Event{RunID: d.ref.ID, Time: w.blob.Created, Step: d.state.Step, Type: event.ArtifactCreated,
				Data: artifact(w.blob)})
		}
		if w, ok := in.(withArgs); ok && d.tools.amended != nil {
			d.tools.amended[w.call] = w.args
		}
		d.before(pure)
		if d.state.Status == run.Paused && tr.State.Status == run.Running {
			d.e.slots.force(d)
		}
		was := d.state // on the stack: nobody keeps it
		d.state = tr.State
		d.record(b, pure, &tr)
		if len(d.state.Settings.Pots) > 0 {
			d.count(b.tx, was.ToolCalls, was.Failures)
		}
		if d.e.cfg.Observer != nil {
			d.observe(b, pure, &tr, &was)
		}
		for _, eff := range tr.Effects {
			if next := d.perform(eff, b); next != nil {
				inputs = append(inputs, next)
			}
		}
	}
	d.pokeParent(b, &before)
	d.commit(b, it)
}

// rejected reports an input that the machine refused.
func (d *driver) rejected(it item, in run.Input, err error) {
	if it.done != nil {
		// Whoever was faster is durable before the loser is told so.
		done, status := it.done, string(d.state.Status)
		if d.state.Cancel != "" && !d.state.Status.Ended() {
			status = "being cancelled"
		}
		var refusal *fault.Error
		if !errors.As(err, &refusal) {
			refusal = &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("run %s can not take this now: it is %s", d.ref.ID, status)}
		}
		if it.letter != "" {
			d.refuseMail(it.letter, refusal, done)
			return
		}
		d.commits.afterAll(func() {
			done <- refusal
		})
		d.e.log.Debug("an input came too late", "run", d.ref.ID, "input", in.Kind(), "error", err)
		return
	}
	if d.state.Status.Ended() {
		return // an effect that ended after the run did
	}
	d.e.log.Error("the run machine refused an input", "run", d.ref.ID, "input", in.Kind(), "error", err)
}
