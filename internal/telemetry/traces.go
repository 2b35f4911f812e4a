package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"agentd/internal/engine"
	"agentd/message"
)

// Names of the semantic conventions for generative AI, version 1.41. The test
// compares them with the SDK's.
const (
	opKey          = "gen_ai.operation.name"
	providerKey    = "gen_ai.provider.name"
	requestModel   = "gen_ai.request.model"
	requestStream  = "gen_ai.request.stream"
	responseModel  = "gen_ai.response.model"
	finishReasons  = "gen_ai.response.finish_reasons"
	agentName      = "gen_ai.agent.name"
	agentVersion   = "gen_ai.agent.version"
	conversationID = "gen_ai.conversation.id"
	toolName       = "gen_ai.tool.name"
	toolType       = "gen_ai.tool.type"
	toolCallID     = "gen_ai.tool.call.id"
	tokenType      = "gen_ai.token.type"
	inputTokens    = "gen_ai.usage.input_tokens"
	outputTokens   = "gen_ai.usage.output_tokens"
	cacheRead      = "gen_ai.usage.cache_read.input_tokens"
	cacheWrite     = "gen_ai.usage.cache_creation.input_tokens"
	errorType      = "error.type"
)

// spanIDs are the ids of a span to be made.
type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

type spanIDsKey struct{}

// idGenerator gives spans the ids that their context has.
type idGenerator struct{}

// NewIDs implements sdktrace.IDGenerator.
func (idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	ids, _ := ctx.Value(spanIDsKey{}).(spanIDs)
	return ids.trace, ids.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	ids, _ := ctx.Value(spanIDsKey{}).(spanIDs)
	return ids.span
}

// traceOf is the trace of a tree of runs: a function of its root, so that every
// process that goes on with one of the runs finds it.
func traceOf(id *engine.RunID) (t trace.TraceID) {
	h := sha256.Sum256([]byte("trace\x00" + id.Tenant + "\x00" + id.Root))
	copy(t[:], h[:])
	return t
}

// spanOf is the span of a run (without parts), or of something in it.
func spanOf(tenant, runID string, parts ...string) (s trace.SpanID) {
	text := "span\x00" + tenant + "\x00" + runID
	for _, p := range parts {
		text += "\x00" + p
	}
	h := sha256.Sum256([]byte(text))
	copy(s[:], h[:])
	return s
}

// traced is whether spans are made of a run. The choice is a function of the
// trace's id: all processes make the same one.
func (t *Telemetry) traced(p *Profile, id *engine.RunID) bool {
	if t.tracer == nil || !p.Trace || p.Sampling <= 0 {
		return false
	}
	tr := traceOf(id)
	return p.Sampling >= 1 || float64(binary.BigEndian.Uint64(tr[8:])>>11) < p.Sampling*(1<<53)
}

// Traceparent is the W3C header of a tool call's span, for what the call reaches;
// "" if the run is not traced.
func (t *Telemetry) Traceparent(id *engine.RunID, callID string) string {
	if t.opts.Profile == nil {
		return ""
	}
	p := t.opts.Profile(id.Profile)
	if !t.traced(&p, id) {
		return ""
	}
	return "00-" + traceOf(id).String() + "-" + spanOf(id.Tenant, id.ID, "tool", callID).String() + "-01"
}

// span makes a span that has ended.
func (t *Telemetry) span(id *engine.RunID, parent, self trace.SpanID, name string, kind trace.SpanKind, start, end time.Time, failed string, attrs []attribute.KeyValue) {
	ids := spanIDs{traceOf(id), self}
	ctx := context.WithValue(context.Background(), spanIDsKey{}, ids)
	if parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: ids.trace, SpanID: parent, TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	_, s := t.tracer.Start(ctx, name, trace.WithTimestamp(start), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	if failed != "" {
		s.SetStatus(codes.Error, failed)
	}
	s.End(trace.WithTimestamp(end))
}

// traceRun makes the span of a run that has ended.
func (t *Telemetry) traceRun(p *Profile, s *engine.RunSeen) {
	if !s.Status.Ended() {
		return
	}
	var parent trace.SpanID
	if s.Parent != "" {
		parent = spanOf(s.Tenant, s.Parent, "tool", s.ParentCall)
	}
	attrs := append(t.common(&s.RunID, "invoke_agent"), attribute.String(agentVersion, s.Version), attribute.String("agentd.run.mode", s.Mode),
		attribute.String("agentd.run.status", string(s.Status)), attribute.String("agentd.run.stop_reason", s.StopReason),
		attribute.Int("agentd.run.steps", s.Steps), attribute.Int("agentd.run.tool_calls", s.ToolCalls),
		attribute.Int64("agentd.run.queued_ms", max(0, s.Started-s.Created)))
	attrs = append(attrs, usageAttributes(&s.Usage)...)
	failed := ""
	if s.Status == "failed" {
		failed = t.clean(p, s.Error, s.StopReason)
		attrs = append(attrs, attribute.String(errorType, s.StopReason))
	}
	start := s.Started
	if start == 0 {
		start = s.Created
	}
	t.span(&s.RunID, parent, spanOf(s.Tenant, s.ID), "invoke_agent "+s.Profile, trace.SpanKindInternal, time.UnixMilli(start), time.UnixMilli(s.Ended), failed, attrs)
}

func (t *Telemetry) common(id *engine.RunID, op string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(opKey, op), attribute.String(agentName, id.Profile), attribute.String(conversationID, id.Session),
		attribute.String("agentd.run.id", id.ID), attribute.String("agentd.tenant", id.Tenant)}
}

// usageAttributes: the convention counts cached tokens as input, agentd apart.
func usageAttributes(u *message.Usage) []attribute.KeyValue {
	if u == nil {
		return nil
	}
	attrs := []attribute.KeyValue{attribute.Int64(inputTokens, u.Prompt()), attribute.Int64(outputTokens, u.Output)}
	if u.CacheRead > 0 {
		attrs = append(attrs, attribute.Int64(cacheRead, u.CacheRead))
	}
	if u.CacheWrite > 0 {
		attrs = append(attrs, attribute.Int64(cacheWrite, u.CacheWrite))
	}
	if u.Cost.Total > 0 {
		attrs = append(attrs, attribute.Float64("agentd.cost_usd", dollars(u.Cost.Total)))
	}
	return attrs
}

func dollars(m message.Money) float64 { return float64(m) / float64(message.Dollar) }

// traceModel makes the span of a model call.
func (t *Telemetry) traceModel(p *Profile, s *engine.ModelSeen) {
	attrs := append(t.common(&s.RunID, "chat"), attribute.String(providerKey, providerName(s.Provider)), attribute.String(requestModel, s.Model),
		attribute.Bool(requestStream, true), attribute.Int("agentd.step", s.Step), attribute.Int("agentd.attempt", s.Attempt))
	attrs = append(attrs, usageAttributes(s.Usage)...)
	if u := s.Usage; u != nil && u.Prompt() > 0 {
		attrs = append(attrs, attribute.Float64("agentd.cache.ratio", float64(u.CacheRead)/float64(u.Prompt())), attribute.Float64("agentd.cache.saved_usd", dollars(s.Saved)))
	}
	if b := s.Broken; b != nil {
		attrs = append(attrs, attribute.String("agentd.cache.broken", b.Part), attribute.String("agentd.cache.broken.name", clip(b.Name+b.EntryID, maxName)),
			attribute.String("agentd.cache.broken.change", b.Change))
	}
	if !s.First.IsZero() {
		attrs = append(attrs, attribute.Float64("gen_ai.response.time_to_first_chunk", s.First.Sub(s.Start).Seconds()))
	}
	if r := s.Reply; r != nil {
		attrs = append(attrs, attribute.StringSlice(finishReasons, []string{string(r.StopReason)}))
		if r.Model != "" {
			attrs = append(attrs, attribute.String(responseModel, clip(r.Model, maxName)))
		}
	}
	failed := ""
	if s.Class != "" || s.Error != "" {
		failed = t.clean(p, s.Error, s.Class)
		attrs = append(attrs, attribute.String(errorType, s.Class))
	}
	// A call that is made again after a restart has the same step and attempt.
	self := spanOf(s.Tenant, s.ID, "model", s.Start.UTC().Format(time.RFC3339Nano))
	t.span(&s.RunID, spanOf(s.Tenant, s.ID), self, "chat "+s.Model, trace.SpanKindClient, s.Start, s.End, failed, attrs)
}

// traceTool makes the span of a tool call.
func (t *Telemetry) traceTool(p *Profile, s *engine.ToolSeen) {
	name := s.Name
	if !s.Known {
		name = "(unknown)" // names of spans come from fixed sets, as labels do
	}
	attrs := append(t.common(&s.RunID, "execute_tool"), attribute.String(toolName, clip(s.Name, maxName)), attribute.String(toolType, "function"),
		attribute.String(toolCallID, clip(s.CallID, maxName)), attribute.Int("agentd.step", s.Step), attribute.String("agentd.tool.outcome", s.Outcome))
	failed := ""
	if s.Outcome != engine.ToolOK {
		failed = "the tool's result is an error"
		if s.Outcome == engine.ToolDenied {
			failed = t.clean(p, s.Reason, "the call was refused")
		}
		attrs = append(attrs, attribute.String(errorType, s.Outcome))
	}
	t.span(&s.RunID, spanOf(s.Tenant, s.ID), spanOf(s.Tenant, s.ID, "tool", s.CallID), "execute_tool "+name, trace.SpanKindInternal, s.Start, s.End, failed, attrs)
}

// providerName is what the convention calls a provider.
func providerName(p string) string {
	switch p {
	case "azure":
		return "azure.ai.openai"
	case "gemini":
		return "gcp.gemini"
	}
	return p
}
