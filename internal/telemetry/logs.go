package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// LogHandler gives log records to the collector; nil if there is none.
func (t *Telemetry) LogHandler() slog.Handler {
	if t.logs == nil {
		return nil
	}
	return &logHandler{t: t}
}

// logHandler implements slog.Handler. Levels are checked by who wraps it.
type logHandler struct {
	t      *Telemetry
	attrs  []keyValue
	prefix string
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	at := r.Time
	if at.IsZero() {
		at = h.t.opts.Now()
	}
	msg := r.Message
	l := logJSON{Time: nanos(at), Observed: nanos(at), Severity: severity(r.Level), Text: r.Level.String(), Body: anyValue{String: &msg},
		Attributes: slices.Clone(h.attrs)}
	r.Attrs(func(a slog.Attr) bool {
		l.Attributes = appendAttr(l.Attributes, h.prefix, a)
		return true
	})
	size := 200 + len(msg)
	for i := range l.Attributes {
		size += l.Attributes[i].size()
	}
	h.t.logs.add(l, size)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		c.attrs = appendAttr(c.attrs, h.prefix, a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.prefix += name + "."
	}
	return &c
}

func appendAttr(out []keyValue, prefix string, a slog.Attr) []keyValue {
	v := a.Value.Resolve()
	key := prefix + a.Key
	str := func(s string) []keyValue { return append(out, keyValue{key, anyValue{String: &s}}) }
	switch v.Kind() {
	case slog.KindGroup:
		if a.Key != "" {
			prefix = key + "."
		}
		for _, sub := range v.Group() {
			out = appendAttr(out, prefix, sub)
		}
		return out
	case slog.KindBool:
		b := v.Bool()
		return append(out, keyValue{key, anyValue{Bool: &b}})
	case slog.KindInt64:
		return append(out, keyValue{key, valueJSON(attribute.Int64Value(v.Int64()))})
	case slog.KindUint64:
		return str(strconv.FormatUint(v.Uint64(), 10))
	case slog.KindFloat64:
		return str(strconv.FormatFloat(v.Float64(), 'g', -1, 64)) // JSON has no NaN
	}
	if a.Equal(slog.Attr{}) {
		return out
	}
	return str(fmt.Sprint(v.Any()))
}

// severity is OTLP's number of a level.
func severity(l slog.Level) int {
	switch {
	case l < slog.LevelInfo:
		return 5
	case l < slog.LevelWarn:
		return 9
	case l < slog.LevelError:
		return 13
	}
	return 17
}
