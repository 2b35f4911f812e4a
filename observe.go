package agentd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/logs"
	"agentd/internal/profile"
	"agentd/internal/redact"
	"agentd/internal/telemetry"
)

// flushTime is how long Close waits for spans and log records to be delivered.
const flushTime = 3 * time.Second

// observation is where logs, traces and metrics of a runtime go.
type observation struct {
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	engine    atomic.Pointer[engine.Engine]
	runtime   atomic.Pointer[Runtime]
	profiles  map[string]telemetry.Profile
	files     map[string]*logs.File
	// given is the log of the embedding program.
	given    slog.Handler
	settings *profile.Settings
}

// newObservation puts redaction in front of the log that was given and opens the
// other places that the configuration names. A runtime that only looks has its log
// and nothing else.
func newObservation(cfg *Config, conf *profile.Config) (*observation, error) {
	o := &observation{given: cfg.Log.Handler(), files: map[string]*logs.File{}, profiles: map[string]telemetry.Profile{}, settings: &conf.Settings}
	s := &conf.Settings
	clean, err := redact.New(&redact.Options{Fields: s.Log.RedactFields, Personal: s.Log.PII})
	if err != nil {
		return nil, observeError("log", err)
	}
	if cfg.ReadOnly {
		h, err := logs.New(o.given, logs.Options{Level: levelOf(o.given), Redact: clean})
		o.log = slog.New(h)
		return o, err
	}
	opts := o.options(cfg)
	opts.Redact = clean
	if o.telemetry, err = telemetry.New(opts); err != nil {
		return nil, err
	}
	h, err := o.handler(s.Log.Destinations, levelOf(o.given), o.elsewhere(), logs.Options{Redact: clean, Policy: logs.Policy(s.Log.PayloadPolicy)})
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	o.log = slog.New(h)
	if local, err := logs.New(o.given, logs.Options{Level: levelOf(o.given), Redact: clean}); err == nil {
		o.telemetry.Tell(slog.New(local))
	}
	for name, p := range conf.Profiles {
		if o.profiles[name], err = o.profile(p); err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	return o, nil
}

// options are those of the telemetry.
func (o *observation) options(cfg *Config) *telemetry.Options {
	t := &o.settings.Telemetry
	env := cfg.Env
	if env == nil {
		env = os.LookupEnv
	}
	out := &telemetry.Options{Metrics: t.MetricsEnabled, Interval: t.ExportInterval.Std(), Endpoint: t.OTLPEndpoint, Headers: map[string]string{},
		File: t.File, Rotate: o.rotation(), Service: t.ServiceName, Version: Version(), Profile: o.of, Load: o.load, Gauges: o.gauges}
	if out.Endpoint == "" {
		if endpoint, ok := env("OTEL_EXPORTER_OTLP_ENDPOINT"); ok {
			out.Endpoint = endpoint
		}
	}
	if list, ok := env("OTEL_EXPORTER_OTLP_HEADERS"); ok {
		for pair := range strings.SplitSeq(list, ",") {
			k, v, _ := strings.Cut(pair, "=")
			if text, err := url.PathUnescape(strings.TrimSpace(v)); err == nil && strings.TrimSpace(k) != "" {
				out.Headers[strings.TrimSpace(k)] = text
			}
		}
	}
	for k, v := range t.OTLPHeaders {
		out.Headers[k] = v.Reveal()
	}
	return out
}

// of says what is made of a profile's runs. One that is gone is treated like the
// server's own.
func (o *observation) of(name string) telemetry.Profile {
	if p, ok := o.profiles[name]; ok {
		return p
	}
	t := &o.settings.Telemetry
	return telemetry.Profile{Trace: t.TraceEnabled, Metrics: true, Sampling: t.SamplingRate, Log: o.log, Bare: o.settings.Log.PayloadPolicy == string(logs.Hashes)}
}

// gauges are those of the runtime, once there is one.
func (o *observation) gauges() []telemetry.Gauge {
	out := telemetry.ProcessGauges()
	if rt := o.runtime.Load(); rt != nil {
		out = append(out, rt.gauges()...)
	}
	return out
}

func (o *observation) load(ctx context.Context) (engine.Load, error) {
	if e := o.engine.Load(); e != nil {
		return e.Load(ctx)
	}
	return engine.Load{}, nil
}

// profile is what is made of a profile's runs. The profile's log level opens or
// closes the log for its runs; at info, the default, the server's level counts.
func (o *observation) profile(p *profile.Profile) (telemetry.Profile, error) {
	t := &o.settings.Telemetry
	out := telemetry.Profile{Trace: t.TraceEnabled || p.TraceEnabled, Metrics: p.MetricsEnabled, Sampling: min(t.SamplingRate, p.SamplingRate)}
	clean, err := redact.New(&redact.Options{Fields: o.settings.Log.RedactFields, Personal: append(kinds(p.PIIPolicy.NeverStore), o.settings.Log.PII...),
		Patterns: p.PIIPolicy.Redact})
	if err != nil {
		return out, observeError(p.ProfileName+".pii_policy", err)
	}
	level, elsewhere := levelOf(o.given), o.elsewhere()
	if p.LogLevel != "info" {
		if err := level.UnmarshalText([]byte(p.LogLevel)); err != nil {
			return out, observeError(p.ProfileName+".log_level", err)
		}
		elsewhere = level
	}
	to := p.LogDestinations
	if len(to) == 0 {
		to = o.settings.Log.Destinations
	}
	policy := stricter(p.LogPayloadPolicy, o.settings.Log.PayloadPolicy)
	h, err := o.handler(to, level, elsewhere, logs.Options{Redact: clean, Policy: policy})
	if err != nil {
		return out, err
	}
	out.Log, out.Redact, out.Bare = slog.New(h), clean, policy == logs.Hashes
	return out, nil
}

// kinds are the kinds of personal data that logs know; a policy may name others,
// which are for memories.
func kinds(names []string) (out []string) {
	for _, n := range names {
		for _, k := range redact.Kinds() {
			if n == k {
				out = append(out, n)
			}
		}
	}
	return out
}

// stricter is the profile's policy, or the server's if that shows less.
func stricter(of, server string) logs.Policy {
	order := map[string]int{"full": 1, "redacted": 2, "hashes": 3}
	if server != "" && server != "redacted" && order[server] > order[of] {
		return logs.Policy(server)
	}
	return logs.Policy(of)
}

// elsewhere is the level of places that the configuration names: log.level says it. The
// log that was given may show less, as a command at the terminal does, or more.
func (o *observation) elsewhere() slog.Level {
	level := slog.LevelInfo
	if text := o.settings.Log.Level; text != "" && level.UnmarshalText([]byte(text)) != nil {
		level = slog.LevelInfo
	}
	return min(level, levelOf(o.given))
}

// handler leads to the places that are named: none means the log that was given, which
// takes lines from level on, the others from elsewhere on.
func (o *observation) handler(to []string, level, elsewhere slog.Level, opts logs.Options) (slog.Handler, error) {
	var all []slog.Handler
	opts.Level = elsewhere
	text := func(w io.Writer) slog.Handler {
		h := &slog.HandlerOptions{Level: slog.LevelDebug}
		if o.settings.Log.Format == "json" {
			return slog.NewJSONHandler(w, h)
		}
		return slog.NewTextHandler(w, h)
	}
	if len(to) == 0 {
		to = []string{"stderr"}
	}
	for _, name := range to {
		switch path, isFile := strings.CutPrefix(name, "file:"); {
		case name == "stderr":
			all = append(all, from{o.given, level})
			opts.Level = min(opts.Level, level)
		case name == "stdout":
			all = append(all, from{text(os.Stdout), elsewhere})
		case name == "otel":
			h := o.telemetry.LogHandler()
			if h == nil {
				return nil, observeError("log_destinations", errors.New("otel is a destination of logs, but no collector and no file is named"))
			}
			all = append(all, from{h, elsewhere})
		case isFile:
			f := o.files[path]
			if f == nil {
				var err error
				if f, err = logs.OpenFile(path, o.rotation()); err != nil {
					return nil, observeError("log_destinations", err)
				}
				o.files[path] = f
			}
			all = append(all, from{text(f), elsewhere})
		default:
			return nil, observeError("log_destinations", fmt.Errorf("%q is not a destination", name))
		}
	}
	return logs.New(slog.NewMultiHandler(all...), opts)
}

// from is a handler that takes lines from a level on, whatever it says itself.
type from struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (h from) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// WithAttrs implements slog.Handler.
func (h from) WithAttrs(a []slog.Attr) slog.Handler { return from{h.Handler.WithAttrs(a), h.level} }

// WithGroup implements slog.Handler.
func (h from) WithGroup(name string) slog.Handler { return from{h.Handler.WithGroup(name), h.level} }

// levelOf is the least level that a handler takes.
func levelOf(h slog.Handler) slog.Level {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if h.Enabled(context.Background(), l) {
			return l
		}
	}
	return slog.LevelError + 1
}

func observeError(field string, err error) error {
	return &fault.Error{Op: "agentd.Open", Kind: fault.Invalid, Field: field, Err: err, Hint: "See docs/observability.md."}
}

// observer is what the engine tells; nil if nobody wants to know.
func (o *observation) observer() engine.Observer {
	if o.telemetry == nil || !o.wanted() {
		return nil
	}
	return o.telemetry.Observer()
}

// traceparent gives tool calls the trace that they belong to; nil without traces.
func (o *observation) traceparent() func(*engine.RunID, string) string {
	if o.telemetry == nil {
		return nil
	}
	for p := range maps.Values(o.profiles) {
		if p.Trace {
			return o.telemetry.Traceparent
		}
	}
	return nil
}

// wanted is whether metrics, traces or log lines are made of anything.
func (o *observation) wanted() bool {
	if o.settings.Telemetry.MetricsEnabled || o.settings.Telemetry.TraceEnabled {
		return true
	}
	for p := range maps.Values(o.profiles) {
		if p.Trace || p.Log.Enabled(context.Background(), slog.LevelError) {
			return true
		}
	}
	return false
}

// flush delivers what waits and ends the telemetry. It comes ahead of the store's end:
// the last metrics count what is in there.
func (o *observation) flush() error {
	if o.telemetry == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	return o.telemetry.Close(ctx)
}

func (o *observation) close() error {
	errs := []error{o.flush()}
	for _, f := range o.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Trace lists the inputs of a run and the effects that they led to, after a number
// (0: from the start), at most limit (0: 200). more is whether there are others.
func (rt *Runtime) Trace(ctx context.Context, runID string, after, limit int) (rows []engine.TraceView, more bool, err error) {
	if limit <= 0 {
		limit = 200
	}
	return rt.engine.Trace(ctx, rt.ref(runID), max(after, 0), limit)
}

// WriteMetrics writes all metrics in Prometheus' text form, as GET /metrics does.
// The error is of kind NotFound if metrics are switched off.
func (rt *Runtime) WriteMetrics(ctx context.Context, w io.Writer) error {
	if err := rt.writable("WriteMetrics"); err != nil {
		return err
	}
	return rt.observation.telemetry.WritePrometheus(ctx, w)
}
