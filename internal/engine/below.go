package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
)

// What people are asked below a run is its news too: it is listed with the run,
// told in its events, and the run is paused when it waits for nothing else. Each
// run looks at its own children, so that news climb from level to level:
//
//   - A child whose news changed pokes its parent once the change is durable. The
//     parent reads what there is and tells its machine (run.ChildWaits). It never
//     matters how often it looks, or how late: it compares.
//   - A run that waits for people below it leaves memory like every other. The
//     poke loads it again.
//   - Nothing is lost with a poke: who is loaded looks first, and Recover loads
//     every run with children.

// lookKey is the timer that looks again when the store could not be read.
const lookKey = "look"

// news is what the parent of a run must hear of it.
type news struct {
	status run.Status
	ids    []string
}

func newsOf(s *run.State) news {
	n := news{status: s.Status, ids: append(s.Interrupts(), s.Below()...)}
	if n.status != run.Paused {
		n.status = run.Running // its end has its own way up
	}
	return n
}

// pokeParent has the parent look, after the commit of b, if the run's news are
// not what they were.
func (d *driver) pokeParent(b *batch, before *news) {
	if d.row.ParentID == "" {
		return
	}
	if now := newsOf(&d.state); now.status != before.status || !slices.Equal(now.ids, before.ids) {
		if d.claim != nil {
			d.lookMail(b)
			return
		}
		b.after = append(b.after, d.poke)
	}
}

// poke has the parent look. It does not wait.
func (d *driver) poke() {
	d.e.wg.Add(1)
	go func() {
		defer d.e.wg.Done()
		d.e.poke(Ref{d.ref.Tenant, d.row.ParentID})
	}()
}

// poke has a run look at its children.
func (e *Engine) poke(ref Ref) {
	for {
		d := e.drive(ref)
		if d == nil || d.put(item{look: true}) {
			return
		}
		select {
		case <-d.gone:
		case <-e.ctx.Done():
			return
		}
	}
}

// look compares what the machine knows of the children with what there is.
func (d *driver) look() {
	for _, c := range slices.Clone(d.state.Calls) {
		if d.state.AwaitsChild() && c.AwaitsChild() {
			d.lookAt(&c)
		}
	}
}

// lastLook looks at a child that has ended while its parent knew of questions: how
// they were answered is told before the end.
func (d *driver) lastLook(callID string) {
	for _, c := range slices.Clone(d.state.Calls) {
		if c.ID == callID && c.AwaitsChild() && len(c.Waits) > 0 {
			d.lookAt(&c)
		}
	}
}

func (d *driver) lookAt(c *run.Call) {
	in, err := d.below(c)
	switch {
	case errors.Is(err, store.ErrNotFound): // it has not started
	case err != nil && d.ctx.Err() == nil:
		d.e.log.Error("a child run can not be read; it is tried again", "run", d.ref.ID, "child", c.Child, "error", err)
		d.timers[lookKey] = time.AfterFunc(d.e.cfg.RetryPause, func() { d.put(item{look: true}) }).Stop
	case err == nil && (in.Paused != c.Paused || !sameWaits(in.Open, c.Waits)):
		d.apply(item{in: in})
	}
}

func sameWaits(open []event.Checkpoint, ids []string) bool {
	for i := range open {
		if !slices.Contains(ids, open[i].InterruptID) {
			return false
		}
	}
	return len(open) == len(ids)
}

// below reads what people are asked in a call's child and below it.
func (d *driver) below(c *run.Call) (run.ChildWaits, error) {
	in := run.ChildWaits{At: d.at(), CallID: c.ID}
	child, err := d.e.store.Run(d.ctx, d.ref.Tenant, c.Child)
	if err != nil {
		return in, err
	}
	in.Paused = child.Status == string(run.Paused)
	if !run.Status(child.Status).Ended() {
		open, err := d.e.openBelow(d.ctx, d.ref.Tenant, child)
		if err != nil {
			return in, err
		}
		for _, row := range open {
			in.Open = append(in.Open, d.checkpoint(row))
		}
	}
	for _, id := range c.Waits {
		if slices.ContainsFunc(in.Open, func(w event.Checkpoint) bool { return w.InterruptID == id }) {
			continue
		}
		row, err := d.e.store.Interrupt(d.ctx, d.ref.Tenant, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return in, err
		case row.Status == "open": // the list was too long for it
			in.Open = append(in.Open, d.checkpoint(row))
		default:
			told := event.Checkpoint{InterruptID: id, RunID: row.RunID, Kind: row.Kind, Decision: row.Decision, Reason: row.Reason}
			if told.Decision == "" {
				told.Decision = row.Status
			}
			in.Closed = append(in.Closed, told)
		}
	}
	return in, nil
}

func (d *driver) checkpoint(row *store.Interrupt) event.Checkpoint {
	v := d.e.interruptView(d.ctx, d.ref.Tenant, row)
	return event.Checkpoint{InterruptID: v.ID, RunID: v.RunID, Kind: v.Kind, Prompt: v.Prompt, Schema: v.Schema, ToolCall: v.ToolCall, ExpiresAt: v.ExpiresAt}
}

// openBelow lists the open interrupts of a run and of the runs below it, oldest
// first.
func (e *Engine) openBelow(ctx context.Context, tenant string, row *store.Run) ([]*store.Interrupt, error) {
	f := below(row)
	f.Status = "open"
	return e.allInterrupts(ctx, tenant, f)
}

// below selects the interrupts of a run and of the runs below it. Ids of children
// begin with their parent's, so those of a run in the middle of a tree are found
// among its root's.
func below(row *store.Run) store.InterruptFilter {
	if row.RootID == "" || row.RootID == row.ID {
		return store.InterruptFilter{RunID: row.ID}
	}
	return store.InterruptFilter{RunID: row.RootID, Within: row.ID}
}

// within is whether a run is another one or below it.
func within(runID, top string) bool { return runID == top || strings.HasPrefix(runID, top+".") }
