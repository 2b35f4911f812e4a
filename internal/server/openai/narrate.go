package openai

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/internal/run"
	"agentd/message"
)

// speaker gets the pieces of an answer. False ends the narration.
type speaker interface {
	content(text string) bool
	reasoning(text string) bool
	// mark remembers a place in the answer; rollback takes back what was said
	// since, and is false if it was heard already.
	mark()
	rollback() bool
}

// ending is how an answer ended.
type ending struct {
	finish string
	calls  []message.Block
	usage  *message.Usage
}

var errStopped = errors.New("nobody listens")

// narrator tells a run as one answer.
type narrator struct {
	engine Engine
	ref    engine.Ref
	to     speaker
	// hold keeps the text of a step back until it is known to be the answer:
	// an answer in JSON must not have anything before it.
	hold bool

	// spoke is whether the answer has text.
	spoke bool
	// step is the text of the current step, said how much of it was passed on.
	step strings.Builder
	said int
	// begun is whether something of the step was said, or found to be said already.
	// last is the text of the step before, in the same turn.
	begun bool
	last  string
	// open is whether the current step's reply may still be void, spokeBefore
	// whether the answer had text before it.
	open, spokeBefore bool
	// waits are runs that raised an interrupt: one of them may be paused.
	waits map[string]bool
}

// follow tells the run until it ends or waits for a person. The error is a
// *runFailure when the run ended without an answer.
func (n *narrator) follow(ctx context.Context) (ending, error) {
	var seen int64
	for {
		end, again, err := n.watch(ctx, &seen)
		if !again {
			return end, err
		}
	}
}

// watch follows from the last number that was seen. again: the client was too slow
// for the live stream and goes on from there, with what is stored.
func (n *narrator) watch(ctx context.Context, seen *int64) (end ending, again bool, err error) {
	for ev, err := range n.engine.Watch(ctx, n.ref, *seen) {
		if errors.Is(err, engine.ErrSlowReader) {
			return ending{}, true, nil
		}
		if err != nil {
			return ending{}, false, err
		}
		*seen = ev.Seq
		if !n.tell(&ev) {
			return ending{}, false, errStopped
		}
		if ev.Type.Terminal() {
			end, err := n.end(ctx, &ev)
			return end, false, err
		}
		if len(n.waits) == 0 || ev.Type.Delta() {
			continue
		}
		if end, paused, err := n.paused(ctx); paused || err != nil {
			return end, false, err
		}
	}
	if err := ctx.Err(); err != nil {
		return ending{}, false, err
	}
	return ending{}, false, errors.New("the events of run " + n.ref.ID + " ended without an end")
}

// tell passes on what an event says; false when nobody listens.
func (n *narrator) tell(ev *event.Event) bool {
	switch d := ev.Data.(type) {
	case *event.Delta:
		if ev.Type == event.ThinkingDelta {
			return n.to.reasoning(d.Text)
		}
		n.step.WriteString(d.Text)
		return n.hold || n.catchUp(false)
	case *event.Step:
		if ev.Type == event.StepStarted {
			if n.said > 0 {
				n.last = n.step.String()
			}
			n.reset()
			n.open, n.spokeBefore = true, n.spoke
			n.to.mark()
			return true
		}
		n.open = false
		return n.hold || n.catchUp(true) // an answer that is held comes with its turn's final text
	case *event.Text:
		if n.open && !n.drop() {
			return false
		}
		// What the deltas did not have: a reply that was not streamed.
		if rest, ok := strings.CutPrefix(d.Text, n.step.String()[:n.said]); ok && rest != "" {
			n.step.Reset()
			n.step.WriteString(d.Text)
			if !n.catchUp(true) {
				return false
			}
		}
		// The next turn may have the same answer, to another message.
		n.last = ""
		n.reset()
	case *event.Retry:
		return n.void()
	case *event.Resumed:
		if d.Reason == "restart" {
			return n.void()
		}
	case *event.Checkpoint:
		if ev.Type == event.CheckpointRequired {
			if n.waits == nil {
				n.waits = map[string]bool{}
			}
			id := d.RunID
			if id == "" {
				id = n.ref.ID
			}
			n.waits[id] = true
		}
	}
	return true
}

func (n *narrator) reset() {
	n.step.Reset()
	n.said, n.begun = 0, false
}

// catchUp says what of the step's text was not said, and not by the step before
// either. whole is whether the text is complete.
func (n *narrator) catchUp(whole bool) bool {
	text := n.step.String()
	if !n.begun && text != "" {
		skip, decided := restated(n.last, text, whole)
		if !decided {
			return true
		}
		n.begun, n.said = true, skip
		if skip < len(text) && n.spoke && !n.to.content("\n\n") {
			return false
		}
	}
	if text = text[n.said:]; text == "" {
		return true
	}
	n.said, n.spoke = n.step.Len(), true
	return n.to.content(text)
}

// void handles a reply that is asked for again after part of it was said.
func (n *narrator) void() bool {
	if !n.open {
		return true
	}
	said := n.said > 0
	n.reset()
	if n.to.rollback() {
		n.spoke = n.spokeBefore
		return true
	}
	return !said || n.note("[The reply was interrupted and starts again.]")
}

// drop handles a reply that broke off for good, where an answer before it stands. That
// comes next, and is said again if what broke off was heard after it.
func (n *narrator) drop() bool {
	said := n.said > 0
	n.open = false
	n.reset()
	switch {
	case n.to.rollback():
		n.spoke = n.spokeBefore
	case said:
		n.last = ""
		return n.note("[The reply was interrupted; the answer before it stands.]")
	}
	return true
}

// note says something that is not the model's.
func (n *narrator) note(text string) bool {
	if n.spoke {
		text = "\n\n" + text
	}
	n.spoke = true
	return n.to.content(text)
}

// paused ends the answer if the run, or one below it, waits for a person. Events
// follow commits, so what Get gives is not older than the event.
func (n *narrator) paused(ctx context.Context) (ending, bool, error) {
	for id := range n.waits {
		r, err := n.engine.Get(ctx, engine.Ref{Tenant: n.ref.Tenant, ID: id})
		if err != nil {
			return ending{}, false, err
		}
		if run.Status(r.Status) != run.Paused {
			if run.Status(r.Status) != run.Running || !hasOpen(r) {
				delete(n.waits, id)
			}
			continue
		}
		if !n.note(question(r, n.ref.ID)) {
			return ending{}, false, errStopped
		}
		// The bill is that of the run that was asked for, whoever below it asks.
		if r.ID != n.ref.ID {
			if r, err = n.engine.Get(ctx, n.ref); err != nil {
				return ending{}, false, err
			}
		}
		usage := r.Usage
		return ending{finish: "stop", usage: &usage}, true, nil
	}
	return ending{}, false, nil
}

func hasOpen(r *engine.Run) bool {
	for _, i := range r.Interrupts {
		if i.Status == "open" {
			return true
		}
	}
	return false
}

// question says what a run waits for and how to answer at the run whose id the
// client has, which is that run or one above it.
func question(r *engine.Run, at string) string {
	var b strings.Builder
	b.WriteString("**This run waits for a person.**\n")
	for _, i := range r.Interrupts {
		if i.Status != "open" {
			continue
		}
		fmt.Fprintf(&b, "\n- %s", i.Prompt)
		if c := i.ToolCall; c != nil && (i.Kind == "approval" || i.Kind == "uncertain") {
			// What is to be decided about: the prompts of several calls are alike.
			b.WriteString("\n  " + span(c.Name+" "+string(c.Args)))
		}
		answer := `{"interrupt_id":"` + i.ID + `","decision":"approve"}`
		switch i.Kind {
		case "question":
			answer = `{"interrupt_id":"` + i.ID + `","answer":"..."}`
		case "uncertain":
			answer = `{"interrupt_id":"` + i.ID + `","decision":"retry"}`
		}
		fmt.Fprintf(&b, "\n  (%s, interrupt `%s`; answer with `POST /runs/%s/input` and `%s`)", i.Kind, i.ID, at, answer)
	}
	fmt.Fprintf(&b, "\n\nThe run goes on when it is answered (run `%s`).", at)
	return b.String()
}

// maxSpan bounds, in characters, what a chat shows of a call's arguments; the interrupt has them whole.
const maxSpan = 1000

// span is a text as code on one line of Markdown, whatever is in it.
func span(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxSpan {
		s = string(r[:maxSpan-1]) + "…"
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// end translates the run's terminal event.
func (n *narrator) end(ctx context.Context, ev *event.Event) (ending, error) {
	d, ok := ev.Data.(*event.Ended)
	if !ok {
		return ending{}, fmt.Errorf("the end of run %s has a payload of type %T", n.ref.ID, ev.Data)
	}
	switch ev.Type {
	case event.RunFailed:
		cause := event.Error{Kind: d.StopReason, Message: "the run failed: " + d.StopReason}
		if d.Error != nil {
			cause = *d.Error
		}
		return ending{}, &runFailure{runID: n.ref.ID, stop: d.StopReason, cause: cause, usage: d.Usage}
	case event.RunCancelled:
		return ending{}, &runFailure{runID: n.ref.ID, cause: event.Error{Kind: "cancelled", Message: "the run was cancelled"}, usage: d.Usage}
	}
	if !n.hold && !n.catchUp(true) {
		return ending{}, errStopped
	}
	end := ending{finish: "stop", usage: d.Usage}
	switch d.StopReason {
	case "stop":
	case "length":
		end.finish = "length"
	case run.StopClientTools:
		r, err := n.engine.Get(ctx, n.ref)
		if err != nil {
			return ending{}, err
		}
		end.finish, end.calls = "tool_calls", r.ToolCalls
		return end, nil
	default:
		if !n.note("[The agent stopped at a limit of its profile (" + d.StopReason + ") before it was done.]") {
			return ending{}, errStopped
		}
		return end, nil
	}
	if !n.spoke && d.Output != "" && !n.note(d.Output) {
		return ending{}, errStopped
	}
	return end, nil
}
