package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/tool"
)

// away gives the pool at whose nodes a call is made, or "" if it is made here.
func (d *driver) away(eff *run.CallTool) string {
	if d.claim == nil {
		return ""
	}
	if pool := d.elsewhere[eff.CallID]; pool != "" {
		return pool // it was asked for, by a home before this one
	}
	if d.earlier(*eff) != nil {
		return "" // nothing is called
	}
	t, spec, found := d.tools.set.Lookup(eff.Name)
	if !found || own(t) || d.e.node.serves(toolPool(&spec)) {
		return ""
	}
	return toolPool(&spec)
}

// misplaced says why a tool is not called here whose server came back after the call was
// begun, or "": what is asked of a pool is in the commit of the intent.
func (d *driver) misplaced(s *tool.Spec) string {
	if d.claim == nil || d.e.node.serves(toolPool(s)) {
		return ""
	}
	return fmt.Sprintf("Not executed: %s belongs to pool %s, and its server could not be reached when the run came to this node. Call it again.", s.Name, toolPool(s))
}

// resumed is the first input of a run that was under way, with the calls that pools
// were asked for: they are waited for again.
func (d *driver) resumed() (run.Input, error) {
	in := run.Resumed{At: d.at()}
	if d.claim == nil {
		return in, nil
	}
	n := d.e.node
	calls, err := n.st.Effects(d.ctx, store.EffectFilter{Tenant: d.ref.Tenant, RunID: d.ref.ID, Now: n.now()})
	if err != nil {
		return nil, internal("engine.load", err)
	}
	for _, x := range calls {
		if id, is := strings.CutPrefix(x.ID, "tool/"); is && x.Kind == poolKindTool {
			d.elsewhere = set(d.elsewhere, id, x.Pool)
			in.Elsewhere = append(in.Elsewhere, id)
		}
		d.askedModel = d.askedModel || x.Kind == poolKindModel
	}
	return in, nil
}

func set(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// took has the ledger forget a call whose outcome is in the same commit.
func (d *driver) took(b *batch, effect string) {
	id, is := strings.CutPrefix(effect, "tool/")
	switch {
	case is && d.elsewhere[id] != "":
		delete(d.elsewhere, id)
		b.tx.Effects = append(b.tx.Effects, store.EffectChange{Op: store.DropEffect, Effect: store.Effect{RunID: d.ref.ID, ID: effect}})
	case effect == "model" && d.askedModel:
		d.askedModel = false
		b.tx.Effects = append(b.tx.Effects, store.EffectChange{Op: store.DropEffect, Effect: store.Effect{RunID: d.ref.ID, Kind: poolKindModel}})
	}
}

// askTool asks a pool for the call of a tool: a row in the commit of the intent. What it
// gives is called when that is durable, and waits.
func (d *driver) askTool(eff run.CallTool, pool string, b *batch) func() {
	id := "tool/" + eff.CallID
	ctx, _, settle := d.effect(id)
	// Others wait for it as well as this one could.
	if d.children == nil {
		d.children = map[string]bool{}
	}
	d.children[id] = true
	d.elsewhere = set(d.elsewhere, eff.CallID, pool)
	args := d.tools.args(eff.CallID, eff.Name)
	_, _, found := d.tools.set.Lookup(eff.Name)
	body, err := json.Marshal(poolCall{Tool: &poolTool{ID: eff.CallID, Name: eff.Name, Args: args, Interrupt: eff.Interrupt, Key: eff.Key, Session: d.row.SessionID,
		Step: eff.Step, Traceparent: d.traceparent(eff.CallID), Untrusted: d.doubtful(&eff, args)}})
	if err == nil {
		b.tx.Effects = append(b.tx.Effects, store.EffectChange{Op: store.AskEffect, Effect: store.Effect{RunID: d.ref.ID, ID: id, Kind: poolKindTool, Version: poolVersion,
			Pool: pool, Class: eff.Effect, Body: body, Created: d.e.now()}})
	}
	redact, readOn, epoch := d.agent.Redact, d.tools.readOn, d.row.Epoch
	watched := d.watchTool(eff.Step, eff.CallID, eff.Name, found, redact)
	call := tool.Call{ID: eff.CallID, Name: eff.Name, Step: eff.Step}
	return func() {
		a := d.attempt(settle)
		d.e.workers.run(func() {
			a.seen = watched(args)
			fails := func(text string) {
				a.end(run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, tool.ErrorResult(text))})
			}
			if err != nil {
				fails(err.Error())
				return
			}
			w := &waited{d: d, id: id, pool: pool, what: eff.Name, step: eff.Step, epoch: epoch, rung: make(chan struct{}, 1)}
			w.news = func(x note) {
				var p tool.Progress
				if json.Unmarshal(x.Data, &p) == nil {
					d.progress(call, redact, p)
				}
			}
			x, why := w.wait(ctx)
			switch {
			case why == waitLost && eff.Effect == string(tool.Once):
				a.end(run.InDoubt{At: d.at(), CallID: eff.CallID})
			case x == nil:
				fails(w.failure(why))
			default:
				a.end(d.toolDone(eff, x, readOn))
			}
		})
	}
}

// toolDone makes the outcome of a call of what a pool answered: as here, it is cut and
// becomes an artifact where it is too large.
func (d *driver) toolDone(eff run.CallTool, x *store.Effect, readOn bool) run.Input {
	var r poolResult
	if err := json.Unmarshal(x.Result, &r); err != nil || r.Tool == nil {
		r.Tool = &poolToolResult{Content: tool.ErrorResult("What the pool " + x.Pool + " answered can not be read.").Content, IsError: true}
	}
	res := tool.Result{Content: r.Tool.Content, Details: r.Tool.Details, IsError: r.Tool.IsError, Terminate: r.Tool.Terminate}
	blob := d.e.capResult(&res, eff.Name, readOn)
	in := run.ToolDone{At: d.at(), CallID: eff.CallID, Message: toolMessage(eff, res), Terminate: res.Terminate, DurationMS: r.Tool.DurationMS}
	if blob != nil {
		return withBlob{in, blob, eff.CallID}
	}
	return in
}

// waited is a call that a home waits for.
type waited struct {
	d        *driver
	id, pool string
	what     string // is called, for people
	step     int
	epoch    int64
	// news is told what the call tells while it is made, by the goroutine that waits.
	// seen, if not nil, gets to see what the store has of it.
	news func(note)
	seen func(*store.Effect)

	mu    sync.Mutex
	heard []note
	look  bool // in the store
	rung  chan struct{}
}

// maxHeard bounds the news that wait to be taken; what is over it is lost.
const maxHeard = 4096

// hear notes what came over the bus.
func (w *waited) hear(x note) {
	w.mu.Lock()
	if x.Kind == noteResult {
		w.look = true
	} else if len(w.heard) < maxHeard {
		w.heard = append(w.heard, x)
	}
	w.mu.Unlock()
	ring(w.rung)
}

// told hands on the news, and says whether to look in the store.
func (w *waited) told() (look bool) {
	w.mu.Lock()
	heard := w.heard
	look, w.heard, w.look = w.look, nil, false
	w.mu.Unlock()
	for _, x := range heard {
		w.news(x)
	}
	return look
}

// Why a call has no result.
type waitEnd string

const (
	waitLeft    waitEnd = "left"    // the driver lets go of the run: it is waited for elsewhere
	waitLost    waitEnd = "lost"    // who made it is gone, and nobody makes it again
	waitStopped waitEnd = "stopped" // before anybody took it
	waitHangs   waitEnd = "hangs"   // it was told to end and did not
	waitOver    waitEnd = "over"    // nobody took it in time
)

// failure says why there is no result, for the model.
func (w *waited) failure(why waitEnd) string {
	switch why {
	case waitLost:
		return "The node of pool " + w.pool + " that made this call is gone."
	case waitStopped:
		return "Not executed: " + errStopped.Error()
	case waitHangs:
		return fmt.Sprintf("%s did not end when it was told to (%v) and was abandoned; it may still happen.", w.what, errStopped)
	case waitOver:
		return fmt.Sprintf("Not executed: no node of pool %s took the call within %s (cluster.pool_wait).", w.pool, w.d.e.node.poolWait())
	}
	return "Not executed: " + errLeaving.Error()
}

// wait gives the call when it is done, or why it will not be. When ctx ends because the
// run is ending the call is told to end and has as long for that as one that is made
// here, and some more for the way there and back.
func (w *waited) wait(ctx context.Context) (*store.Effect, waitEnd) {
	d, n := w.d, w.d.e.node
	ref := callRef{d.ref, w.id}
	n.mu.Lock()
	n.pool.waited[ref] = w
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.pool.waited, ref)
		n.mu.Unlock()
	}()
	n.tell(note{Kind: noteAsk, ID: w.pool})
	ending := ctx.Done()
	var stopped, over, warned bool // over: it waited too long
	var until, lost time.Time
	// It may be there already, from a home before this one.
	next := time.Now()
	for pause, first := time.Duration(0), true; ; next = next.Add(pause) {
		t := time.NewTimer(time.Until(next))
		look := false
		select {
		case <-t.C:
			look = true
		case <-w.rung:
			look = w.told()
		case <-ending:
			ending, look = nil, true
		}
		t.Stop()
		if d.ctx.Err() != nil || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStopped) {
			return nil, waitLeft
		}
		if pause = 0; !look {
			continue // what it tells does not put off the next look
		}
		next, pause = time.Now(), n.patience()
		if first {
			pause, first = min(2*n.cfg.Poll, pause), false // then somebody should have taken it
		}
		if ctx.Err() != nil && !stopped {
			stopped, until = true, time.Now().Add(d.e.cfg.AbandonAfter+2*n.cfg.Poll)
			w.stop(store.StopEffect)
		}
		if !until.IsZero() {
			pause = max(time.Millisecond, min(n.cfg.Poll, time.Until(until)))
		}
		all, err := n.st.Effects(d.ctx, store.EffectFilter{Tenant: d.ref.Tenant, RunID: d.ref.ID, ID: w.id, Now: n.now()})
		switch {
		case d.ctx.Err() != nil:
			return nil, waitLeft
		case err != nil:
			pause = n.cfg.Poll
			continue
		case len(all) == 0:
			return nil, waitLost
		}
		x := all[0]
		w.told()
		if w.seen != nil {
			w.seen(x)
		}
		switch {
		case x.Status == store.EffectDone:
			return x, ""
		case x.Status == store.EffectCancelled && over:
			return nil, waitOver
		case x.Status == store.EffectCancelled:
			return nil, waitStopped
		case x.Lost && x.Stop && over:
			return nil, waitOver
		case x.Lost && (x.Class == string(tool.Once) || x.Stop):
			return nil, waitLost
		case stopped && !time.Now().Before(until):
			return nil, waitHangs
		case stopped:
		case x.Status == store.EffectStarted && !x.Lost:
			lost = time.Time{}
		default:
			left := time.Duration(x.Created-d.e.now())*time.Millisecond + n.poolWait()
			if x.Lost {
				if lost.IsZero() {
					lost = time.Now()
				}
				left = n.poolWait() - time.Since(lost)
			}
			if left <= 0 {
				op := store.CancelEffect // somebody may take it just now
				if x.Lost {
					op = store.StopEffect
				}
				if over = w.stop(op); over {
					pause = 0
				} else {
					pause = n.cfg.Poll
				}
				continue
			}
			pause = min(pause, left)
			if !warned {
				warned = w.unserved()
			}
		}
	}
}

// stop tells whoever makes the call to end it, or nobody to take it, and says whether
// that is in the store.
func (w *waited) stop(op store.EffectOp) bool {
	d := w.d
	err := d.e.node.commit(context.WithoutCancel(d.ctx), &store.Tx{Tenant: d.ref.Tenant, Fences: []store.Fence{{RunID: d.ref.ID, Epoch: w.epoch}},
		Effects: []store.EffectChange{{Op: op, Effect: store.Effect{RunID: d.ref.ID, ID: w.id}}}})
	if err != nil {
		d.e.log.Warn("a call that was asked of a pool could not be told to end", "run", d.ref.ID, "call", w.id, "error", err)
	}
	if op == store.StopEffect {
		d.e.node.tell(note{Kind: noteStop, Tenant: d.ref.Tenant, Run: d.ref.ID, ID: w.id})
	}
	return err == nil
}

// unserved tells readers and operators that no node serves the pool, if that is so.
func (w *waited) unserved() bool {
	d, n := w.d, w.d.e.node
	nodes, err := n.st.Nodes(d.ctx, n.now())
	if err != nil || served(nodes, w.pool) > 0 {
		return false
	}
	d.e.log.Warn("no node serves a pool, and a call waits for it", "pool", w.pool, "run", d.ref.ID, "call", w.what, "gives_up_after", n.poolWait())
	d.stream.publishLive(event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: w.step, Type: event.CheckpointInfo,
		Data: &event.Checkpoint{Kind: "pool", Prompt: fmt.Sprintf("%s waits for a node that serves pool %s: there is none now. It fails after %s.", w.what, w.pool, n.poolWait())}})
	return true
}
