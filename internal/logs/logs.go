// Package logs is between who logs and where lines go: it drops what is below a
// level, takes secrets out of messages and attributes, and shows prompts,
// arguments and results as the payload policy says.
//
// It promises that a value which it does not know is redacted by the text that it
// would be printed as.
package logs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"agentd/internal/redact"
)

// Payload is what a person, a model or a tool said: the payload policy is for it.
type Payload string

// LogValue implements slog.LogValuer: who prints it without this package does not
// print it.
func (p Payload) LogValue() slog.Value { return slog.StringValue(hash(string(p))) }

// Report is what somebody else reports: an error of a provider or a tool, a line of a
// server's own log. It may repeat what was said, so it is shown as a hash where payloads
// are; otherwise without secrets, also where payloads are shown as they are.
type Report string

// LogValue implements slog.LogValuer, like Payload's.
func (r Report) LogValue() slog.Value { return slog.StringValue(hash(string(r))) }

// Policy says how payloads are shown.
type Policy string

// The policies. The zero value is Redacted.
const (
	Full     Policy = "full"     // as they are
	Redacted Policy = "redacted" // without secrets
	Hashes   Policy = "hashes"   // a hash and the length: equal ones are known as such
)

// Options configure a handler.
type Options struct {
	// Level is the least one that passes.
	Level slog.Level
	// Redact takes out secrets; nil is redact.New(nil)'s.
	Redact *redact.Redactor
	Policy Policy
}

// New puts a handler in front of another one. Its level alone decides: that of
// next is not asked.
func New(next slog.Handler, o Options) (slog.Handler, error) {
	if o.Redact == nil {
		r, err := redact.New(nil)
		if err != nil {
			return nil, err
		}
		o.Redact = r
	}
	return &handler{next: next, o: o}, nil
}

type handler struct {
	next slog.Handler
	o    Options
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.o.Level }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	c := slog.NewRecord(r.Time, r.Level, h.o.Redact.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		c.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, c)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return &handler{h.next.WithAttrs(clean), h.o}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.next.WithGroup(name), h.o} }

func (h *handler) attr(a slog.Attr) slog.Attr {
	if p, ok := a.Value.Any().(Payload); ok {
		return slog.String(a.Key, h.payload(string(p)))
	}
	if r, ok := a.Value.Any().(Report); ok {
		if h.o.Policy == Hashes {
			return slog.String(a.Key, hash(string(r)))
		}
		return slog.String(a.Key, h.o.Redact.Text(string(r)))
	}
	v := a.Value.Resolve()
	if a.Key != "" && h.o.Redact.Field(a.Key) && v.Kind() == slog.KindGroup {
		return slog.String(a.Key, redact.Mask)
	}
	if v.Kind() == slog.KindGroup {
		group := make([]slog.Attr, len(v.Group()))
		for i, sub := range v.Group() {
			group[i] = h.attr(sub)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	}
	if a.Key != "" && h.o.Redact.Field(a.Key) {
		return slog.String(a.Key, redact.Mask)
	}
	switch v.Kind() {
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindDuration, slog.KindTime:
		return slog.Attr{Key: a.Key, Value: v}
	case slog.KindString:
		return slog.String(a.Key, h.o.Redact.Text(v.String()))
	}
	switch x := v.Any().(type) {
	case nil:
		return a
	case json.RawMessage:
		return slog.String(a.Key, string(h.o.Redact.JSON(x)))
	case []byte:
		return slog.String(a.Key, h.o.Redact.Text(string(x)))
	case error:
		return slog.String(a.Key, h.o.Redact.Text(x.Error()))
	}
	return slog.String(a.Key, h.o.Redact.Text(fmt.Sprintf("%+v", v.Any())))
}

// maxPayload is how much of a payload a line holds, in bytes.
const maxPayload = 64 << 10

func (h *handler) payload(s string) string {
	size := len(s)
	switch h.o.Policy {
	case Full:
	case Hashes:
		return hash(s)
	default:
		// Of what is much too long the end would only cost time.
		if len(s) > 8*maxPayload {
			s = strings.ToValidUTF8(s[:8*maxPayload], "")
		}
		s = h.o.Redact.Text(s)
	}
	if len(s) > maxPayload {
		s = strings.ToValidUTF8(s[:maxPayload], "") + fmt.Sprintf("… (%d bytes)", size)
	}
	return s
}

// hash is long enough to tell texts apart.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("sha256:%s (%d bytes)", hex.EncodeToString(sum[:8]), len(s))
}
