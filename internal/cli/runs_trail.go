package cli

import (
	"fmt"
	"strings"

	"agentd/event"
)

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
			return shorten(d.Name, 100) + " " + shorten(string(d.Args), 100)
		case event.ToolCompleted, event.ToolFailed:
			return fmt.Sprintf("%s %d ms: %s", shorten(d.Name, 100), d.DurationMS, outline(d.Result))
		}
		return strings.TrimSpace(shorten(d.Name, 100) + " " + shorten(d.Text, 80))
	case *event.Checkpoint:
		return strings.TrimSpace(d.InterruptID + " " + d.Kind + " " + d.Decision + " " + shorten(d.Prompt+d.Reason, 80))
	case *event.Subagent:
		return strings.TrimSpace(d.RunID + " " + d.Profile + " " + d.Status)
	case *event.CacheBreak:
		return broken(d)
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
