package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// Limits of the log buffer.
const (
	maxLogs   = 2048 // records that wait; more are dropped
	logBatch  = 512
	logPeriod = 5 * time.Second
)

// logBuffer gathers log records and sends them from time to time.
type logBuffer struct {
	t    *Telemetry
	mu   sync.Mutex
	wait []logJSON
	lost atomic.Int64
	full chan struct{} // a batch is there
	stop chan struct{}
	done chan struct{}
}

func newLogBuffer(t *Telemetry) *logBuffer {
	b := &logBuffer{t: t, full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go b.run()
	return b
}

func (b *logBuffer) run() {
	defer close(b.done)
	tick := time.NewTicker(logPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-b.full:
		case <-b.stop:
			return
		}
		b.flush(context.Background())
	}
}

func (b *logBuffer) add(l logJSON) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.wait) >= maxLogs {
		b.lost.Add(1)
		return
	}
	b.wait = append(b.wait, l)
	if len(b.wait) >= logBatch {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

func (b *logBuffer) flush(ctx context.Context) {
	for {
		b.mu.Lock()
		n := min(len(b.wait), logBatch)
		batch := slices.Clone(b.wait[:n])
		b.wait = slices.Delete(b.wait, 0, n)
		b.mu.Unlock()
		if n == 0 {
			return
		}
		body, err := encodeLogs(b.t.res, batch)
		if err != nil {
			b.t.sink.tell("logs", err)
			continue
		}
		b.t.sink.send(ctx, "logs", body)
	}
}

func (b *logBuffer) close(ctx context.Context) {
	close(b.stop)
	select {
	case <-b.done:
		b.flush(ctx)
	case <-ctx.Done():
	}
}

// LogHandler gives log records to the collector; nil if there is none.
func (t *Telemetry) LogHandler() slog.Handler {
	if t.logs == nil {
		return nil
	}
	return &logHandler{b: t.logs}
}

// logHandler implements slog.Handler. Levels are checked by who wraps it.
type logHandler struct {
	b      *logBuffer
	attrs  []keyValue
	prefix string
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	at := r.Time
	if at.IsZero() {
		at = h.b.t.opts.Now()
	}
	msg := r.Message
	l := logJSON{Time: nanos(at), Observed: nanos(at), Severity: severity(r.Level), Text: r.Level.String(), Body: anyValue{String: &msg},
		Attributes: slices.Clone(h.attrs)}
	r.Attrs(func(a slog.Attr) bool {
		l.Attributes = appendAttr(l.Attributes, h.prefix, a)
		return true
	})
	h.b.add(l)
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
