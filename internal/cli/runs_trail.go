package cli

import (
	"fmt"
	"iter"
	"strings"

	"agentd/event"
)

// trail tells the steps of a run with their tools, a line each.
func trail(events iter.Seq2[event.Event, error]) (string, error) {
	var b strings.Builder
	step := -1
	args := map[string]string{} // of calls under way, by id
	var order []string
	line := func(format string, v ...any) { fmt.Fprintf(&b, "     "+format+"\n", v...) }
	for ev, err := range events {
		if err != nil {
			return "", err
		}
		switch d := ev.Data.(type) {
		case *event.Step:
			if ev.Type == event.StepStarted && ev.Step != step {
				step = ev.Step
				fmt.Fprintf(&b, "%3d  %s\n", step, d.Model)
			}
		case *event.Tool:
			call := d.Name
			switch ev.Type {
			case event.ToolStarted:
				args[d.ToolCallID] = shorten(string(d.Args), 100)
				order = append(order, d.ToolCallID+"\x00"+d.Name)
			case event.ToolCompleted, event.ToolFailed:
				if a, ok := args[d.ToolCallID]; ok {
					call += " " + a
					delete(args, d.ToolCallID)
				}
				mark, result := "✓", outline(d.Result)
				if ev.Type == event.ToolFailed {
					mark, result = "✗", shorten(d.Result, 200)
				}
				line("%s %s  %d ms: %s", mark, call, d.DurationMS, result)
			}
		case *event.Checkpoint:
			switch ev.Type {
			case event.CheckpointRequired:
				line("? %s: %s", d.Kind, shorten(d.Prompt, 200))
			case event.CheckpointResolved:
				line("! %s", strings.TrimSuffix(d.Decision+": "+shorten(d.Reason, 200), ": "))
			}
		case *event.Retry:
			line("… %s: %s", ev.Type, shorten(d.Message, 200))
		case *event.Resumed:
			line("… resumed: %s", d.Reason)
		case *event.Subagent:
			line("↳ %s %s %s %s", ev.Type, d.RunID, d.Profile, d.Status)
		}
	}
	for _, o := range order {
		id, name, _ := strings.Cut(o, "\x00")
		if a, ok := args[id]; ok {
			line("→ %s %s  under way", name, a)
		}
	}
	return b.String(), nil
}

// gist is what an event says, in a line.
func gist(ev event.Event) string {
	switch d := ev.Data.(type) {
	case *event.Started:
		return d.Profile + " " + d.Mode + " " + d.Model
	case *event.Resumed:
		return d.Reason
	case *event.Delta:
		return shorten(d.Text, 80)
	case *event.Text:
		return shorten(d.Text, 80)
	case *event.Step:
		if d.Usage == nil {
			return d.Model
		}
		return fmt.Sprintf("%s %s, %d tokens", d.Model, d.StopReason, d.Usage.TotalTokens)
	case *event.Tool:
		switch ev.Type {
		case event.ToolStarted:
			return d.Name + " " + shorten(string(d.Args), 100)
		case event.ToolCompleted, event.ToolFailed:
			return fmt.Sprintf("%s %d ms: %s", d.Name, d.DurationMS, outline(d.Result))
		}
		return strings.TrimSpace(d.Name + " " + shorten(d.Text, 80))
	case *event.Checkpoint:
		return strings.TrimSpace(d.InterruptID + " " + d.Kind + " " + d.Decision + " " + shorten(d.Prompt+d.Reason, 80))
	case *event.Subagent:
		return strings.TrimSpace(d.RunID + " " + d.Profile + " " + d.Status)
	case *event.Retry:
		return shorten(d.Message, 80)
	case *event.Ended:
		s := d.StopReason
		if d.Error != nil {
			s += ": " + shorten(d.Error.Message, 200)
		}
		return s
	}
	b, err := event.AppendData(nil, ev.Data)
	if err != nil {
		return ""
	}
	return shorten(string(b), 100)
}
