package telemetry

import (
	"context"
	"encoding/json"
	"log/slog"

	"agentd/internal/engine"
	"agentd/internal/logs"
	"agentd/internal/run"
	"agentd/message"
)

func identity(id *engine.RunID, more ...slog.Attr) []slog.Attr {
	attrs := []slog.Attr{slog.String("run", id.ID), slog.String("profile", id.Profile)}
	if id.Root != id.ID {
		attrs = append(attrs, slog.String("root", id.Root))
	}
	return append(attrs, more...)
}

// logRun: the life of runs is worth a line, what they do in between is not by
// default.
func logRun(log *slog.Logger, s *engine.RunSeen) {
	level, msg := slog.LevelInfo, "run "+string(s.Status)
	switch {
	case s.Status == run.Paused:
		msg = "run waits for a person"
	case s.Status == run.Running && s.Before != run.Queued:
		msg = "run goes on"
	case s.Status == run.Failed:
		level = slog.LevelWarn
	}
	if !log.Enabled(context.Background(), level) {
		return
	}
	attrs := identity(&s.RunID, slog.String("session", s.Session), slog.String("mode", s.Mode))
	if s.Status.Ended() {
		attrs = append(attrs, slog.String("stop_reason", s.StopReason), slog.Int64("ms", max(0, s.Ended-s.Started)), slog.Int("steps", s.Steps),
			slog.Int("tool_calls", s.ToolCalls), slog.Int64("tokens", s.Usage.TotalTokens))
		if s.Usage.Cost.Total > 0 {
			attrs = append(attrs, slog.String("cost_usd", s.Usage.Cost.Total.String()))
		}
		if s.Error != "" {
			// It may repeat what a tool or a provider said; stop_reason tells why.
			attrs = append(attrs, slog.Any("error", logs.Report(s.Error)))
		}
	}
	log.LogAttrs(context.Background(), level, msg, attrs...)
}

func logModel(log *slog.Logger, s *engine.ModelSeen) {
	level, msg := slog.LevelDebug, "model call"
	if s.Reply == nil && s.Class != "cancelled" {
		level, msg = slog.LevelWarn, "model call failed"
	}
	if !log.Enabled(context.Background(), level) {
		return
	}
	attrs := identity(&s.RunID, slog.Int("step", s.Step), slog.Int("attempt", s.Attempt), slog.String("model", s.Provider+"/"+s.Model),
		slog.Int64("ms", s.End.Sub(s.Start).Milliseconds()))
	if !s.First.IsZero() {
		attrs = append(attrs, slog.Int64("first_ms", s.First.Sub(s.Start).Milliseconds()))
	}
	if u := s.Usage; u != nil {
		attrs = append(attrs, slog.Int64("input", u.Input), slog.Int64("output", u.Output), slog.Int64("cache_read", u.CacheRead), slog.Int64("cache_write", u.CacheWrite))
		if u.Prompt() > 0 {
			attrs = append(attrs, slog.Int64("cache_percent", u.CacheRead*100/u.Prompt()))
		}
		if s.Saved != 0 {
			attrs = append(attrs, slog.String("cache_saved_usd", s.Saved.String()))
		}
	}
	if b := s.Broken; b != nil {
		attrs = append(attrs, slog.String("cache_broken", b.Part), slog.String("change", b.Change), slog.String("part", clip(b.Name+b.EntryID, maxName)))
	}
	if s.Error != "" {
		attrs = append(attrs, slog.String("class", s.Class), slog.Any("error", logs.Report(s.Error)))
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		if s.Request != nil && len(s.Request.Messages) > 0 {
			// What is new in this request; the rest was logged with earlier ones.
			attrs = append(attrs, slog.Int("messages", len(s.Request.Messages)), slog.Any("input_message", payload(&s.Request.Messages[len(s.Request.Messages)-1])))
		}
		if s.Reply != nil {
			attrs = append(attrs, slog.Any("reply", payload(s.Reply)))
		}
	}
	log.LogAttrs(context.Background(), level, msg, attrs...)
}

// payload is a message without what is no text for people.
func payload(m *message.Message) logs.Payload {
	b, err := json.Marshal(m.Content)
	if err != nil {
		return logs.Payload(m.Text())
	}
	return logs.Payload(b)
}

func logTool(log *slog.Logger, s *engine.ToolSeen) {
	level, msg := slog.LevelDebug, "tool call"
	switch s.Outcome {
	case engine.ToolDenied:
		level, msg = slog.LevelInfo, "tool call refused"
	case engine.ToolError:
		level, msg = slog.LevelInfo, "tool call failed"
	}
	if !log.Enabled(context.Background(), level) {
		return
	}
	attrs := identity(&s.RunID, slog.Int("step", s.Step), slog.String("tool", clip(s.Name, maxName)), slog.String("call", clip(s.CallID, maxName)))
	if s.Outcome == engine.ToolDenied {
		attrs = append(attrs, slog.Any("reason", logs.Payload(s.Reason)))
	} else {
		attrs = append(attrs, slog.Int64("ms", s.End.Sub(s.Start).Milliseconds()))
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		attrs = append(attrs, slog.Any("args", logs.Payload(s.Args)), slog.Any("result", logs.Payload(s.Result)))
	}
	log.LogAttrs(context.Background(), level, msg, attrs...)
}
