package engine

import (
	"encoding/json"
	"strings"

	"agentd/event"
	"agentd/internal/run"
	"agentd/internal/store"
	"agentd/message"
	"agentd/model"
)

// record adds a transition to the batch.
func (d *driver) record(b *batch, in run.Input, tr *run.Transition) {
	now := d.e.now()
	if _, ok := in.(run.Compacted); ok {
		d.chargeCompaction(b.tx, now) // ahead of what ends the run: then nothing is open any more
	}
	for _, w := range tr.Writes {
		d.writeTo(b.tx, w, now)
	}
	d.conv.advance(d.state.Leaf)
	if done, ok := in.(run.ModelDone); ok {
		d.answered(b, done)
	}
	for _, ev := range tr.Events {
		ev.RunID = d.ref.ID
		if ev = d.enrich(ev); ev.Type == event.FinalText && ev.Data.(*event.Text).Text == "" {
			continue // an answer without a text
		}
		b.events = append(b.events, ev)
	}
	b.tx.Trace = append(b.tx.Trace, d.trace(in, tr, now))
	switch in := in.(type) {
	case run.ToolDone:
		d.learned(b, &in)
	case run.ModelDone:
		d.charge(b.tx, in.Message.Provider, in.Message.Model, in.Message.Usage, now)
		if len(d.state.Settings.Pots) > 0 {
			d.overspend(in.Message.Usage)
			d.measure(in.Message.Usage)
		}
	case run.ModelFailed:
		provider, name, _ := strings.Cut(d.model().Name, "/")
		d.charge(b.tx, provider, name, in.Usage, now)
		if in.Partial != nil {
			d.charge(b.tx, provider, name, in.Partial.Usage, now)
		}
	}
}

// charge notes what a model call used.
func (d *driver) charge(tx *store.Tx, provider, model string, u *message.Usage, now int64) {
	if u == nil {
		return
	}
	tx.Usage = append(tx.Usage, &store.Usage{RunID: d.ref.ID, SessionID: d.row.SessionID, User: d.row.User, Provider: provider, Model: model, Time: now,
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Cost: int64(u.Cost.Total)})
}

// enrich adds to an event what the machine does not know.
func (d *driver) enrich(ev event.Event) event.Event {
	switch p := ev.Data.(type) {
	case *event.Started:
		p.RootRunID, p.ParentRunID = d.row.RootID, d.row.ParentID
		p.Profile, p.ProfileVersion, p.Mode = d.row.Profile, d.row.Version, d.row.Mode
		p.Model, p.Warnings = d.agent.Models[0].Name, d.warnings()
		if p.Thinking = d.state.Settings.Thinking; d.mode() != ModeEdit {
			p.SessionMode = d.mode()
		}
	case *event.Resumed:
		p.Warnings = d.warnings()
	case *event.Step:
		m := d.model()
		if ev.Type == event.StepStarted {
			p.Model, p.CacheSeconds = m.Name, int64(m.CacheTTL.Seconds())
		} else {
			p.Saved = model.Saved(&m.Info, p.Usage)
		}
	case *event.Tool:
		switch ev.Type {
		case event.ToolStarted:
			args, amended := d.tools.shown(p.ToolCallID)
			p.Args = d.agent.Redact.data(p.Name, args)
			if amended {
				p.Decision = "amended"
			} else if why := d.tools.recalled[p.ToolCallID]; why != "" {
				p.Decision, p.Reason = "remembered", why
			}
		case event.ToolCompleted, event.ToolFailed:
			p.Result = d.agent.Redact.text(p.Name, p.Result)
		}
	case *event.Checkpoint:
		if ev.Type == event.CheckpointRequired && p.RunID == "" {
			p.ExpiresAt = timestamp(d.expires(p.InterruptID))
		}
		if p.ToolCall != nil && p.RunID == "" && p.ToolCall.ToolCallID != "" {
			p.ToolCall.Args = d.agent.Redact.data(p.ToolCall.Name, d.tools.args(p.ToolCall.ToolCallID, p.ToolCall.Name))
		}
	case *event.Text:
		if p.Text == "" {
			p.Text = d.conv.text(p.EntryID) // an answer that was given before and stands
		}
	case *event.Subagent:
		p.Profile = d.tools.subagent(p.ToolCallID)
	case *event.Ended:
		p.Output = d.conv.text(d.state.Output)
		p.Returned = d.returned
		if p.Error != nil {
			d.row.Error, _ = json.Marshal(p.Error)
		}
	case *event.Compaction:
		d.describeCompaction(p)
	case *event.Retry:
		p.Model = d.model().Name
	}
	return ev
}

// expires is when an open interrupt of this run ends by itself, or 0.
func (d *driver) expires(interrupt string) int64 {
	if a := d.state.Asks; a != nil && a.Interrupt == interrupt {
		return a.Expires
	}
	for i := range d.state.Calls {
		if c := &d.state.Calls[i]; c.Interrupt == interrupt {
			return c.Expires
		}
	}
	return 0
}

// scratch gives the memory that the model's adapter keeps between requests.
func (d *driver) scratch(index int) *model.Scratch {
	if d.scratches == nil {
		d.scratches = map[int]*model.Scratch{}
	}
	if d.scratches[index] == nil {
		d.scratches[index] = &model.Scratch{}
	}
	return d.scratches[index]
}

func (d *driver) model() Model {
	if m := d.state.Model; m != nil && m.Index < len(d.agent.Models) {
		return d.now(d.agent.Models[m.Index])
	}
	return d.now(d.agent.Models[0])
}

// now is the model with the window that is known now, here or where its pool calls it.
func (d *driver) now(m Model) Model {
	if m.Learned == nil {
		return m
	}
	if w := m.Learned(); w > 0 {
		m.Window = w
	} else if w, ok := d.e.windows.Load(d.windowAt(&m)); ok {
		m.Window = w.(int)
	}
	return m
}

// windowKey names a model of a profile in Engine.windows.
type windowKey struct{ tenant, profile, model string }

func (d *driver) windowAt(m *Model) windowKey { return windowKey{d.ref.Tenant, d.row.Profile, m.Name} }

// before looks at an input that is about to change the state.
func (d *driver) before(in run.Input) {
	switch in := in.(type) {
	case run.ModelDone:
		d.reply = &reply{entry: d.state.Model.Entry, msg: in.Message}
	case run.ModelFailed:
		d.scratches = nil // an abandoned call may still use them
		// What was published of the failed reply is void; model_retry or the
		// terminal event tells readers so.
		if in.Partial == nil {
			d.stream.dropLive()
		} else {
			d.reply = &reply{entry: d.state.Model.Entry, msg: in.Partial}
		}
	}
}
