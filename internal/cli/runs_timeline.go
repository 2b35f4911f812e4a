package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentd/client"
	"agentd/event"
	"agentd/message"
)

// timeline is what a run did when, made of its events. Times are milliseconds
// after the run's first event.
type timeline struct {
	RunID   string      `json:"run_id"`
	Status  string      `json:"status"`
	TotalMS int64       `json:"total_ms"`
	Steps   []*lineStep `json:"steps"`
	// Notes are what happened outside of steps.
	Notes []lineNote `json:"notes,omitempty"`
	start int64
}

// lineStep is one call of the model with its retries, and the calls it asked for.
type lineStep struct {
	Step       int            `json:"step"`
	Model      string         `json:"model,omitempty"`
	StartMS    int64          `json:"start_ms"`
	EndMS      int64          `json:"end_ms"` // of the reply; -1: under way
	FirstMS    int64          `json:"first_text_ms,omitempty"`
	StopReason string         `json:"stop_reason,omitempty"`
	Usage      *message.Usage `json:"usage,omitempty"`
	CacheRatio float64        `json:"cache_ratio,omitempty"`
	Saved      message.Money  `json:"saved_usd,omitempty"`
	Calls      []*lineCall    `json:"calls,omitempty"`
	Notes      []lineNote     `json:"notes,omitempty"`
}

// lineCall is one call of a tool.
type lineCall struct {
	ID      string          `json:"tool_call_id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args,omitempty"`
	AskedMS int64           `json:"asked_ms"`
	StartMS int64           `json:"start_ms"` // -1: it never started
	EndMS   int64           `json:"end_ms"`   // -1: under way
	Outcome string          `json:"outcome"`  // ok, error, refused, proposed, running, waiting
	// Decision and Reason say what policy or a person decided about it.
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Result   string `json:"result,omitempty"`
	// Child is the run that it started.
	Child *event.Subagent `json:"child,omitempty"`
	// Waits are the times in which it waited for a person.
	Waits []lineWait `json:"waits,omitempty"`
}

// lineWait is a wait for a person.
type lineWait struct {
	InterruptID string `json:"interrupt_id,omitempty"`
	Kind        string `json:"kind"`
	Prompt      string `json:"prompt,omitempty"`
	Decision    string `json:"decision,omitempty"`
	Reason      string `json:"reason,omitempty"`
	FromMS      int64  `json:"from_ms"`
	ToMS        int64  `json:"to_ms"` // -1: it lasts
}

// lineNote is something that happened at a moment.
type lineNote struct {
	AtMS int64  `json:"at_ms"`
	Text string `json:"text"`
}

// readTimeline makes the timeline of a run's events.
func readTimeline(events iter.Seq2[event.Event, error]) (*timeline, error) {
	t := &timeline{Status: "queued", Steps: []*lineStep{}}
	b := timelineBuilder{t: t, calls: map[string]*lineCall{}, waits: map[string]*lineCall{}}
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		if t.start == 0 {
			t.start, t.RunID = ev.Time, ev.RunID
		}
		b.add(&ev, max(0, ev.Time-t.start))
	}
	return t, nil
}

type timelineBuilder struct {
	t     *timeline
	calls map[string]*lineCall // by id, of the newest step that has it
	waits map[string]*lineCall // by interrupt
}

// step gives the step of a number, the newest one if there are several.
func (b *timelineBuilder) step(n int) *lineStep {
	for _, s := range slices.Backward(b.t.Steps) {
		if s.Step == n {
			return s
		}
	}
	return nil
}

func (b *timelineBuilder) note(ev *event.Event, at int64, text string) {
	n := lineNote{at, text}
	if s := b.step(ev.Step); s != nil {
		s.Notes = append(s.Notes, n)
		return
	}
	b.t.Notes = append(b.t.Notes, n)
}

// call gives the call of an id in the event's step, and makes it if there is none.
func (b *timelineBuilder) call(ev *event.Event, at int64, id, name string) *lineCall {
	s := b.step(ev.Step)
	c := b.calls[id]
	if c != nil && (s == nil || slices.Contains(s.Calls, c)) {
		return c
	}
	c = &lineCall{ID: id, Name: name, AskedMS: at, StartMS: -1, EndMS: -1, Outcome: "waiting"}
	b.calls[id] = c
	if s == nil {
		s = &lineStep{Step: ev.Step, StartMS: at, EndMS: at}
		b.t.Steps = append(b.t.Steps, s)
	}
	s.Calls = append(s.Calls, c)
	return c
}

func (b *timelineBuilder) add(ev *event.Event, at int64) {
	b.t.TotalMS = max(b.t.TotalMS, at)
	switch d := ev.Data.(type) {
	case *event.Started:
		b.t.Status = "running"
		for _, w := range d.Warnings {
			b.note(ev, at, "warning: "+w)
		}
	case *event.Resumed:
		b.note(ev, at, "goes on: "+d.Reason)
	case *event.Step:
		b.addStep(ev, at, d)
	case *event.Delta:
		if s := b.step(ev.Step); s != nil && s.FirstMS == 0 {
			s.FirstMS = at
		}
	case *event.Tool:
		b.addTool(ev, at, d)
	case *event.Checkpoint:
		b.addWait(ev, at, d)
	case *event.Subagent:
		if c := b.calls[d.ToolCallID]; c != nil {
			c.Child = d // the later one says how it ended
		}
	case *event.Retry:
		text := d.Message
		if !strings.Contains(text, d.Class) {
			text = d.Class + ": " + text
		}
		if ev.Type == event.ModelFallback {
			text += "; falls back to " + d.Model
			if s := b.step(ev.Step); s != nil {
				s.Model = d.Model // whose reply the rest of the row is about
			}
		} else {
			text += fmt.Sprintf("; try %d in %s", d.Attempt, span(d.DelayMS))
		}
		b.note(ev, at, text)
	case *event.Ended:
		b.t.Status = strings.TrimPrefix(string(ev.Type), "run_")
		if d.Error != nil {
			b.note(ev, at, d.StopReason+": "+d.Error.Message)
		}
		for _, text := range d.Returned {
			b.note(ev, at, "a message was never read: "+shorten(text, 80))
		}
	case *event.Budget:
		b.note(ev, at, warned(d))
	case *event.Compaction:
		b.note(ev, at, compacted(d))
	case *event.CacheBreak:
		text := "cache broken: " + broken(d)
		if d.Lost > 0 {
			text += fmt.Sprintf(", %d tokens not read", d.Lost)
		}
		b.note(ev, at, text)
	default:
		switch ev.Type {
		case event.SessionCompacted, event.ModeChanged, event.EntryQuarantined, event.EventsLost:
			b.note(ev, at, strings.TrimSpace(string(ev.Type)+" "+gist(*ev)))
		}
	}
}

func (b *timelineBuilder) addStep(ev *event.Event, at int64, d *event.Step) {
	s := b.step(ev.Step)
	if s == nil {
		s = &lineStep{Step: ev.Step, StartMS: at, EndMS: -1, Model: d.Model}
		b.t.Steps = append(b.t.Steps, s)
	}
	if ev.Type == event.StepCompleted {
		s.EndMS, s.StopReason, s.Usage, s.CacheRatio, s.Saved = at, d.StopReason, d.Usage, d.CacheRatio, d.Saved
	}
}

func (b *timelineBuilder) addTool(ev *event.Event, at int64, d *event.Tool) {
	c := b.call(ev, at, d.ToolCallID, d.Name)
	if c.Name == "" {
		c.Name = d.Name
	}
	switch ev.Type {
	case event.ToolStarted:
		c.StartMS, c.Args, c.Outcome = at, d.Args, "running"
	case event.ToolCompleted, event.ToolFailed:
		c.EndMS, c.Result, c.Outcome = at, d.Result, "ok"
		if ev.Type == event.ToolFailed {
			if c.Outcome = "error"; c.StartMS < 0 {
				c.Outcome = "refused"
			}
		}
		if d.Decision == "captured" {
			c.Outcome = "proposed"
		}
		if len(d.Args) > 0 && len(c.Args) == 0 {
			c.Args = d.Args
		}
	}
	if d.Decision != "" {
		c.Decision = d.Decision
	}
	if d.Reason != "" {
		c.Reason = d.Reason
	}
}

func (b *timelineBuilder) addWait(ev *event.Event, at int64, d *event.Checkpoint) {
	switch ev.Type {
	case event.CheckpointInfo:
		if d.Prompt != "" {
			b.note(ev, at, d.Prompt)
		}
	case event.CheckpointRequired:
		w := lineWait{InterruptID: d.InterruptID, Kind: d.Kind, Prompt: d.Prompt, FromMS: at, ToMS: -1}
		c := b.waits[d.InterruptID]
		if c == nil && d.ToolCall != nil && d.RunID == "" && d.ToolCall.ToolCallID != "" {
			c = b.call(ev, at, d.ToolCall.ToolCallID, d.ToolCall.Name)
			if len(c.Args) == 0 {
				c.Args = d.ToolCall.Args
			}
		}
		if c == nil {
			who := "a subagent asks"
			if d.RunID == "" {
				who = "the run asks"
			}
			b.note(ev, at, who+" ("+d.Kind+"): "+d.Prompt)
			return
		}
		c.Waits = append(c.Waits, w)
		b.waits[d.InterruptID] = c
	case event.CheckpointResolved:
		c := b.waits[d.InterruptID]
		if c == nil {
			b.note(ev, at, strings.TrimSuffix("answered: "+d.Decision+" "+d.Reason, " "))
			return
		}
		for i := range c.Waits {
			if w := &c.Waits[i]; w.InterruptID == d.InterruptID && w.ToMS < 0 {
				w.ToMS, w.Decision, w.Reason = at, d.Decision, d.Reason
			}
		}
	}
}

// addTrace adds from the trace what the events do not tell: that a call was allowed, and
// why; when people sent messages or asked the run to stop.
func addTrace(ctx context.Context, p runs, id string, t *timeline) error {
	calls := map[string][]*lineCall{}
	for _, s := range t.Steps {
		for _, c := range s.Calls {
			calls[c.ID] = append(calls[c.ID], c)
		}
	}
	for after := 0; ; {
		rows, more, err := p.Trace(ctx, id, after, tracePage)
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.N
			var v struct{ Call, Decision, Reason string }
			if json.Unmarshal(r.Data, &v) != nil {
				continue
			}
			t.said(r, v.Reason)
			t.spent(r)
			if r.Input != "Verdict" || len(calls[v.Call]) == 0 {
				continue
			}
			// An id may come again in a later step: verdicts come in the same order.
			c := calls[v.Call][0]
			calls[v.Call] = calls[v.Call][1:]
			if c.Decision == "" {
				c.Decision = v.Decision
			}
			if c.Reason == "" {
				c.Reason = v.Reason
			}
		}
		if !more || len(rows) == 0 {
			return nil
		}
	}
}

// said notes what somebody outside of the run wanted of it.
func (t *timeline) said(r *client.Trace, reason string) {
	text := ""
	switch r.Input {
	case "Steered":
		text = "a message steers the run"
	case "FollowedUp":
		text = "a message is queued for when the run would end"
	case "CancelRequested":
		text = strings.TrimSuffix("asked to stop: "+reason, ": ")
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	if text == "" || err != nil {
		return
	}
	t.place(max(0, at.UnixMilli()-t.start), text)
}

// place puts a note into the newest step that had begun by then.
func (t *timeline) place(at int64, text string) {
	n := lineNote{at, text}
	for _, s := range slices.Backward(t.Steps) {
		if s.StartMS <= n.AtMS {
			s.Notes = append(s.Notes, n)
			return
		}
	}
	t.Notes = append(t.Notes, n)
}

// columns is how wide lines may be: as told, as the terminal is, as the shell says,
// or 100.
func (a *app) columns(told int) int {
	if told > 0 {
		return told
	}
	if s, ok := a.Out.(*safe); ok && a.Terminal {
		if f, ok := s.w.(*os.File); ok {
			if w := terminalWidth(f); w > 0 {
				return w
			}
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 100
}
