package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"agentd/fault"
	"agentd/internal/store"
	"agentd/tool"
)

// making is a call of another node's run that is made here.
type making struct {
	ref     callRef
	key     int64
	pool    string
	lease   *lease // that it was taken under
	attempt int
	ctx     context.Context
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when nothing more happens here
	// left: it was let go of without a result, and must not be taken for one that was
	// never begun.
	left atomic.Bool
}

// errGone ends a call that nobody wants any more.
var errGone = errors.New("nobody waits for the call any more")

// makeCalls takes calls of pools and makes them, as long as the engine lives.
func (n *node) makeCalls() {
	defer n.e.wg.Done()
	t := time.NewTicker(n.cfg.Poll)
	defer t.Stop()
	for {
		select {
		case <-n.pool.kicks:
		case <-t.C:
			n.tendMade()
		case <-n.e.ctx.Done():
			return
		}
		n.takeCalls()
	}
}

// takeCalls takes what there is, as far as there is room for it.
func (n *node) takeCalls() {
	for {
		l := n.current()
		if l == nil || n.isDraining() {
			return
		}
		q := store.EffectClaim{Node: l.id, Version: poolVersion, Now: n.now(), Pools: n.pools(), Any: n.cfg.Pools == nil, Each: n.poolCalls(), Room: map[string]int{}}
		n.mu.Lock()
		for _, m := range n.pool.made {
			if _, counted := q.Room[m.pool]; !counted {
				q.Room[m.pool] = q.Each
			}
			q.Room[m.pool]--
		}
		n.mu.Unlock()
		got, err := n.st.ClaimEffects(n.e.ctx, q)
		for _, x := range got {
			n.make(x, l)
		}
		if err != nil {
			if n.e.ctx.Err() == nil && !errors.Is(err, store.ErrLapsed) {
				n.e.log.Error("calls of pools can not be taken; it is tried again", "error", err)
			}
			return
		}
		if len(got) == 0 {
			return
		}
	}
}

// tendMade looks at what the store says of the calls that this node has: those that are
// wanted no more end, and those that it took without knowing of it are given back. It
// is the goroutine that takes calls which does this: none is on its way.
func (n *node) tendMade() {
	l := n.current()
	if l == nil {
		return
	}
	n.mu.Lock()
	mine := map[int64]*making{}
	for key, m := range n.pool.made {
		if m.lease == l {
			mine[key] = m
		} else if m.left.Load() {
			delete(n.pool.made, key)
		}
	}
	n.mu.Unlock()
	all, err := n.st.Effects(n.e.ctx, store.EffectFilter{Node: l.id, Now: n.now()})
	if err != nil {
		return
	}
	for _, x := range all {
		m := mine[x.Key]
		delete(mine, x.Key)
		switch {
		case m == nil:
			// It was never begun here: the answer to the question for it was lost.
			_ = n.commit(n.e.ctx, &store.Tx{Tenant: x.Tenant, Effects: []store.EffectChange{{Op: store.FreeEffect, Effect: store.Effect{Key: x.Key, Node: l.id, Attempt: x.Attempt}}}})
			n.tell(note{Kind: noteAsk, ID: x.Pool})
		case x.Stop:
			m.cancel(errStopped)
		}
	}
	for _, m := range mine {
		m.cancel(errGone) // its row is gone, or has a result
	}
}

// make makes a call that was taken.
func (n *node) make(x *store.Effect, l *lease) {
	m := &making{ref: callRef{Ref{x.Tenant, x.RunID}, x.ID}, key: x.Key, pool: x.Pool, lease: l, attempt: x.Attempt, over: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancelCause(l.ctx)
	n.mu.Lock()
	n.pool.made[m.key] = m
	n.mu.Unlock()
	if x.Stop {
		m.cancel(errStopped)
	}
	n.e.wg.Add(1)
	n.e.workers.run(func() {
		defer n.e.wg.Done()
		defer close(m.over)
		res := n.perform(m, x)
		cause := context.Cause(m.ctx)
		gone := errors.Is(cause, errGone)
		if cause != nil && !errors.Is(cause, errStopped) && !gone {
			// Whoever takes it next, or its home, decides: it is nobody's outcome.
			m.left.Store(true)
			return
		}
		if !gone {
			n.finish(m, res)
		}
		m.cancel(nil)
		n.mu.Lock()
		if n.pool.made[m.key] == m {
			delete(n.pool.made, m.key)
		}
		n.mu.Unlock()
		n.tell(note{Kind: noteResult, Tenant: x.Tenant, Run: x.RunID, ID: x.ID})
		ring(n.pool.kicks) // there is room
	})
}

// finish stores a result. What is done is kept as long as the process lives: the store
// may be away for a while.
func (n *node) finish(m *making, res *poolResult) {
	raw, err := res.body()
	if err == nil && len(raw) > maxPoolResult {
		err = fmt.Errorf("it has %d bytes, and a pool's results at most %d", len(raw), maxPoolResult)
	}
	if err != nil {
		r := tool.ErrorResult("What the call gave can not be sent to its run: " + err.Error())
		raw, _ = json.Marshal(&poolResult{Tool: &poolToolResult{Content: r.Content, IsError: true}})
	}
	for {
		err := n.commit(context.WithoutCancel(n.e.ctx), &store.Tx{Tenant: m.ref.Tenant,
			Effects: []store.EffectChange{{Op: store.FinishEffect, Effect: store.Effect{Key: m.key, Result: raw, Ended: n.e.now()}}}})
		if err == nil || errors.Is(err, store.ErrConflict) {
			return
		}
		select {
		case <-n.e.ctx.Done():
			return
		case <-time.After(n.cfg.Poll):
		}
	}
}

// perform makes the call and gives its result; nil if it was not begun.
func (n *node) perform(m *making, x *store.Effect) (res *poolResult) {
	fails := func(text string) *poolResult {
		r := tool.ErrorResult(text)
		return &poolResult{Tool: &poolToolResult{Content: r.Content, IsError: true}}
	}
	defer func() {
		if p := recover(); p != nil {
			n.e.log.Error("a call of a pool panicked", "run", m.ref.ID, "call", m.ref.call, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res = fails(fmt.Sprintf("%s panicked: %v", m.ref.call, p))
		}
	}()
	var call poolCall
	if err := json.Unmarshal(x.Body, &call); err != nil || call.Tool == nil && call.Model == nil {
		return fails("What was asked of the pool can not be read.")
	}
	row, err := n.runOf(m)
	if err != nil {
		return fails("Not executed: " + describe(err))
	}
	if call.Model != nil {
		return &poolResult{Model: n.performModel(m, row, call.Model)}
	}
	return &poolResult{Tool: n.performTool(m, row, call.Tool)}
}

// runOf reads the run of a call, whose profile says what its tools and models are.
func (n *node) runOf(m *making) (row *store.Run, err error) {
	err = n.reads(m, func() (err error) {
		row, err = n.e.store.Run(m.ctx, m.ref.Tenant, m.ref.ID)
		return err
	})
	return row, err
}

// reads reads something of the store for a call that was taken. The store may be away for
// a while: that is no outcome of the call, so it is tried again while the call is wanted
// here.
func (n *node) reads(m *making, read func() error) error {
	for {
		err := read()
		if err == nil || m.ctx.Err() != nil || errors.Is(err, store.ErrNotFound) {
			return err
		}
		select {
		case <-time.After(n.cfg.Poll):
		case <-m.ctx.Done():
		}
	}
}

// performTool runs a tool as its home would, under the same clocks.
func (n *node) performTool(m *making, row *store.Run, c *poolTool) *poolToolResult {
	start := time.Now()
	result := func(r tool.Result) *poolToolResult {
		return &poolToolResult{Content: r.Content, Details: r.Details, IsError: r.IsError, Terminate: r.Terminate, DurationMS: time.Since(start).Milliseconds()}
	}
	a, t, spec, why := n.toolOf(m.ctx, m.ref.Tenant, row, c.Name)
	if t == nil {
		return result(tool.ErrorResult(why))
	}
	args := c.Args
	if c.Interrupt != "" {
		err := n.reads(m, func() (err error) {
			args, err = n.e.amended(m.ctx, Ref{m.ref.Tenant, c.Interrupt})
			return err
		})
		switch {
		case err != nil:
			return result(tool.ErrorResult("Not executed: " + describe(err)))
		case args == nil:
			return result(tool.ErrorResult(approvedGone))
		}
	}
	timeout := spec.Timeout
	if timeout <= 0 {
		timeout = a.ToolTimeout
	}
	ctx := m.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fault.New(fault.Timeout, fmt.Sprintf("%s took longer than %s", c.Name, timeout)))
		defer cancel()
	}
	if ctx.Err() != nil {
		return result(tool.ErrorResult("Not executed: " + context.Cause(ctx).Error()))
	}
	if !m.lease.holds() { // the last moment: the process may have been stopped for a while
		m.cancel(errLeaving)
		return nil
	}
	var returned atomic.Bool
	call := tool.Call{ID: c.ID, Name: c.Name, Args: args, Key: c.Key, Tenant: m.ref.Tenant, User: named(row), Untrusted: c.Untrusted, RunID: m.ref.ID, SessionID: c.Session, Step: c.Step, Traceparent: c.Traceparent,
		Progress: func(p tool.Progress) {
			if !returned.Load() {
				n.tellProgress(m, func(text string) string { return a.Redact.text(c.Name, text) }, p)
			}
		}}
	start = time.Now()
	done := make(chan tool.Result, 1)
	n.e.workers.run(func() { done <- n.runTool(ctx, t, call) })
	select {
	case r := <-done:
		returned.Store(true)
		return result(r)
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		returned.Store(true)
		return result(r)
	case <-time.After(n.e.cfg.AbandonAfter):
		returned.Store(true)
		return result(tool.ErrorResult(fmt.Sprintf("%s did not end when it was told to (%v) and was abandoned; it may still happen.", c.Name, context.Cause(ctx))))
	}
}

func (n *node) runTool(ctx context.Context, t tool.Tool, call tool.Call) (res tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			n.e.log.Error("a tool panicked", "run", call.RunID, "tool", call.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res = tool.ErrorResult(fmt.Sprintf("%s panicked: %v", call.Name, p))
		}
	}()
	res, err := t.Run(ctx, call)
	if err != nil {
		return tool.ErrorResult(describe(err))
	}
	return res
}

// toolOf finds a tool of a run's profile, waiting for the servers that could not be
// reached; or why there is none here.
func (n *node) toolOf(ctx context.Context, tenant string, row *store.Run, name string) (*Agent, tool.Tool, tool.Spec, string) {
	var spec tool.Spec
	for again := false; ; again = true {
		a, err := n.e.agentOf(ctx, tenant, row)
		if err != nil {
			return nil, nil, spec, "Not executed: " + describe(err)
		}
		t, spec, found := a.Tools.Lookup(name)
		switch {
		case found:
			return a, t, spec, ""
		case again || a.Reach == nil:
			return nil, nil, spec, fmt.Sprintf("Not executed: the node %s that serves the pool has no tool %s. %s", n.cfg.Name, name, missing(a))
		}
		a.Reach(ctx)
	}
}

// progressPiece is the longest text in one note about a call.
const progressPiece = 2000

// tellProgress passes on what a tool tells, without what the profile hides: more people
// hear the bus than read the run.
func (n *node) tellProgress(m *making, hide func(string) string, p tool.Progress) {
	send := func(p tool.Progress) {
		if raw, err := json.Marshal(p); err == nil {
			n.hub.send(note{Kind: noteNews, Tenant: m.ref.Tenant, Run: m.ref.ID, ID: m.ref.call, Data: raw})
		}
	}
	for _, s := range texts(hide(p.Stdout), progressPiece) {
		send(tool.Progress{Stdout: s})
	}
	for _, s := range texts(hide(p.Stderr), progressPiece) {
		send(tool.Progress{Stderr: s})
	}
	if p.Message != "" || p.Total != 0 || p.Done != 0 {
		p.Message = hide(p.Message)
		if t := texts(p.Message, progressPiece); len(t) > 1 {
			p.Message = t[0]
		}
		send(tool.Progress{Message: p.Message, Done: p.Done, Total: p.Total})
	}
}

// texts cuts a text into pieces of at most so many bytes, and of twice as many as JSON,
// because the bus drops messages that are too long for it. It cuts between
// runes.
func texts(s string, most int) (out []string) {
	from, size := 0, 0
	for at := 0; at < len(s); {
		r, width := utf8.DecodeRuneInString(s[at:])
		escaped := width
		switch {
		case r == '"' || r == '\\':
			escaped = 2
		case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			escaped = 6
		}
		if at > from && (at+width-from > most || size+escaped > 2*most) {
			out = append(out, s[from:at])
			from, size = at, 0
		}
		at, size = at+width, size+escaped
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// stopMade lets go of all calls that are made here.
func (n *node) stopMade() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.pool.made {
		m.cancel(errLeaving)
	}
}

// finishMade waits for the calls that are made here.
func (n *node) finishMade(ctx context.Context) error {
	for {
		n.mu.Lock()
		var one *making
		left := 0
		for _, m := range n.pool.made {
			if !m.left.Load() {
				one = m
				left++
			}
		}
		n.mu.Unlock()
		if one == nil {
			return nil
		}
		select {
		case <-one.over:
		case <-n.e.ctx.Done():
			return nil
		case <-ctx.Done():
			n.stopMade()
			return &fault.Error{Op: "engine.Drain", Kind: fault.Timeout, Err: fmt.Errorf("%d calls for runs of other nodes were in the middle of something when the time was over", left),
				Hint: "Other nodes of the pool make them again, or their runs ask about them. cluster.drain_timeout gives them more time."}
		}
	}
}
