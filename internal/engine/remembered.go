package engine

import (
	"context"
	"encoding/json"
	"time"

	"agentd/event"
	"agentd/internal/memory"
	"agentd/internal/run"
	"agentd/message"
)

// RecallRequest asks what is remembered.
type RecallRequest struct {
	Tenant, User string
	// Input is what the person says, Last the block that the conversation has
	// already, or "".
	Input, Last string
}

// memoryContext is the kind of context that what is remembered is.
const memoryContext = "memory"

// recallTime is how long the memory may take: a run goes on without it then.
const recallTime = 5 * time.Second

// recollect asks for what is remembered, ahead of the first message of a run. It is
// for the conversation as it is now, and is asked when the run's turn has come.
func (d *driver) recollect() {
	d.recalled = ""
	m := d.opens()
	if d.agent.Recall == nil || m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, recallTime)
	defer cancel()
	req := RecallRequest{Tenant: d.ref.Tenant, User: named(d.row)}
	for i := len(d.conv.messages) - 1; i >= 0 && req.Last == ""; i-- {
		for _, b := range d.conv.messages[i].Content {
			if d.conv.messages[i].Role == message.RoleUser && b.Context == memoryContext {
				req.Last = b.Text
			}
		}
	}
	for _, b := range m.Content {
		if b.Type == message.BlockText && !attachedBlock(&b) {
			req.Input += b.Text + "\n"
		}
	}
	recall := d.agent.Recall // one that is left behind must not read what the run goes on to change
	text, err := patiently(ctx, d.e, func() (string, error) { return recall(ctx, req) })
	if err != nil && d.ctx.Err() == nil {
		d.e.log.Warn("a run goes on without what is remembered", "run", d.ref.ID, "profile", d.row.Profile, "error", err)
	}
	d.recalled = text
}

// remembering puts what is remembered ahead of the words that the run begins with.
func (d *driver) remembering(input string, m *message.Message) *message.Message {
	if d.recalled == "" || input != d.prompt.opening {
		return m
	}
	with := *m
	with.Content = append([]message.Block{{Type: message.BlockText, Text: d.recalled, Context: memoryContext}}, m.Content...)
	d.recalled = ""
	return &with
}

// learned is the event of a call that remembered something.
func (d *driver) learned(b *batch, in *run.ToolDone) {
	m := in.Message
	if m == nil || m.IsError || m.ToolName != memory.Remember || len(m.Details) == 0 {
		return
	}
	if _, spec, ok := d.tools.set.Lookup(m.ToolName); !ok || spec.Source != "builtin" {
		return
	}
	var change memory.Change
	if json.Unmarshal(m.Details, &change) == nil && change.Action == "added" {
		b.events = append(b.events, event.Event{RunID: d.ref.ID, Time: d.e.now(), Step: d.state.Step, Type: event.MemoryUpdated, Data: m.Details})
	}
}
