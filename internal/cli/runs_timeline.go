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
	"unicode/utf8"

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
	Outcome string          `json:"outcome"`  // ok, error, refused, running, waiting
	// Decision and Reason say what policy or a person decided about it.
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Result   string `json:"result,omitempty"`
	ChildID  string `json:"child_run_id,omitempty"`
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
			c.ChildID = d.RunID
		}
	case *event.Retry:
		text := fmt.Sprintf("%s: %s", d.Class, d.Message)
		if ev.Type == event.ModelFallback {
			text += "; falls back to " + d.Model
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
	default:
		switch ev.Type {
		case event.SessionCompacted, event.ModeChanged, event.BudgetWarning, event.CacheBroken:
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
		s.EndMS, s.StopReason, s.Usage, s.CacheRatio = at, d.StopReason, d.Usage, d.CacheRatio
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
		if c == nil && d.ToolCall != nil && d.RunID == "" {
			c = b.call(ev, at, d.ToolCall.ToolCallID, d.ToolCall.Name)
			if len(c.Args) == 0 {
				c.Args = d.ToolCall.Args
			}
		}
		if c == nil {
			b.note(ev, at, "a subagent asks ("+d.Kind+"): "+d.Prompt)
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

// addVerdicts adds from the trace what was decided about calls, where the events do
// not tell: that one was allowed, and why.
func addVerdicts(ctx context.Context, p runs, id string, t *timeline) error {
	calls := map[string][]*lineCall{}
	for _, s := range t.Steps {
		for _, c := range s.Calls {
			calls[c.ID] = append(calls[c.ID], c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	for after := 0; ; {
		rows, more, err := p.Trace(ctx, id, after, tracePage)
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.N
			var v struct{ Call, Decision, Reason string }
			if r.Input != "Verdict" || json.Unmarshal(r.Data, &v) != nil || len(calls[v.Call]) == 0 {
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

// span is a time for people: 12 ms, 3.4 s, 2m05s.
func span(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case ms < 3_600_000:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// painter draws timelines. width is that of the lines, bar of the part with time.
type painter struct {
	b          *strings.Builder
	t          *timeline
	width, bar int
	fancy      bool
}

// draw gives the timeline as lines of at most width characters; fancy uses more
// than ASCII.
func (t *timeline) draw(width int, fancy bool) string {
	p := &painter{b: &strings.Builder{}, t: t, width: max(width, 40), fancy: fancy}
	p.bar = min(max(p.width/3, 10), 40)
	for _, n := range t.Notes {
		p.note(n)
	}
	for _, s := range t.Steps {
		p.step(s)
	}
	return p.b.String()
}

// line writes a row: bar, label and what else fits.
func (p *painter) line(bar, label, rest string) {
	text := "  " + bar + "  " + label
	if rest != "" {
		text += "  " + rest
	}
	fmt.Fprintln(p.b, strings.TrimRight(clipTo(text, p.width), " "))
}

// clipTo cuts a text to a number of characters.
func clipTo(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// scale is where a time is in the bar.
func (p *painter) scale(ms int64) int {
	if p.t.TotalMS == 0 {
		return 0
	}
	return int(min(ms, p.t.TotalMS) * int64(p.bar-1) / p.t.TotalMS)
}

// paint fills the bar between two times; an end of -1 is now.
func (p *painter) paint(bar []rune, from, to int64, fill rune) {
	if to < 0 {
		to = p.t.TotalMS
	}
	for i := p.scale(from); i <= p.scale(to); i++ {
		bar[i] = fill
	}
}

func (p *painter) empty() []rune { return []rune(strings.Repeat(" ", p.bar)) }

func (p *painter) glyph(fancy, plain rune) rune {
	if p.fancy {
		return fancy
	}
	return plain
}

func (p *painter) note(n lineNote) {
	bar := p.empty()
	bar[p.scale(n.AtMS)] = p.glyph('·', '.')
	p.line(string(bar), printable(shorten(n.Text, 400)), "")
}

func (p *painter) step(s *lineStep) {
	bar := p.empty()
	p.paint(bar, s.StartMS, s.EndMS, p.glyph('█', '#'))
	took := "under way"
	if s.EndMS >= 0 {
		took = span(s.EndMS - s.StartMS)
	}
	var facts []string
	if s.FirstMS > s.StartMS {
		facts = append(facts, "first text after "+span(s.FirstMS-s.StartMS))
	}
	if u := s.Usage; u != nil {
		facts = append(facts, fmt.Sprintf("%d in, %d out", u.Prompt(), u.Output))
		if s.CacheRatio > 0 {
			facts = append(facts, fmt.Sprintf("%.0f%% cached", s.CacheRatio*100))
		}
		if u.Cost.Total > 0 {
			facts = append(facts, "$"+u.Cost.Total.String())
		}
	}
	p.line(string(bar), fmt.Sprintf("%d %s  %s", s.Step, s.Model, took), strings.Join(facts, ", "))
	for _, n := range s.Notes {
		p.note(n)
	}
	for _, c := range s.Calls {
		p.call(c)
	}
}

func (p *painter) call(c *lineCall) {
	bar := p.empty()
	for _, w := range c.Waits {
		p.paint(bar, w.FromMS, w.ToMS, p.glyph('░', '.'))
	}
	end := c.EndMS
	if c.StartMS >= 0 {
		p.paint(bar, c.StartMS, end, p.glyph('▓', '='))
	} else if end >= 0 && c.Outcome == "refused" {
		bar[p.scale(end)] = p.glyph('×', 'x')
	}
	mark := map[string][2]string{"ok": {"✓", "ok"}, "error": {"✗", "failed"}, "refused": {"✗", "refused"}, "running": {"→", "under way"}, "waiting": {"?", "waits"}}[c.Outcome]
	label := mark[0]
	if !p.fancy {
		label = mark[1]
	}
	label += " " + c.Name
	if args := shorten(string(c.Args), 60); args != "" && args != "{}" {
		label += " " + args
	}
	var rest []string
	switch {
	case c.StartMS >= 0 && end >= 0:
		rest = append(rest, span(end-c.StartMS))
	case c.Outcome == "refused":
		rest = append(rest, "never ran")
	case c.Outcome == "running":
		rest = append(rest, "under way")
	}
	if c.ChildID != "" {
		rest = append(rest, "run "+c.ChildID)
	}
	if c.Decision != "" || c.Reason != "" {
		rest = append(rest, strings.TrimSuffix(c.Decision+": "+shorten(c.Reason, 200), ": "))
	}
	if c.Result != "" && c.Outcome != "ok" {
		rest = append(rest, shorten(c.Result, 200))
	}
	p.line(string(bar), printable(label), printable(strings.Join(rest, ", ")))
	for _, w := range c.Waits {
		p.wait(w)
	}
}

func (p *painter) wait(w lineWait) {
	said := "waits for a person since " + span(p.t.TotalMS-w.FromMS)
	if w.ToMS >= 0 {
		said = "answered after " + span(w.ToMS-w.FromMS) + ": " + w.Decision
		if w.Reason != "" {
			said += " (" + shorten(w.Reason, 200) + ")"
		}
	}
	p.line(string(p.empty()), "  "+w.Kind+": "+printable(shorten(w.Prompt, 120)), printable(said))
}

// columns is how wide lines may be: as told, as the terminal is, as the shell says,
// or 100.
func (a *app) columns(told int) int {
	if told > 0 {
		return told
	}
	if f, ok := a.Out.(*os.File); ok && a.Terminal {
		if w := terminalWidth(f); w > 0 {
			return w
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w > 0 {
		return w
	}
	return 100
}
