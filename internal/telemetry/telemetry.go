package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/logs"
	"agentd/internal/redact"
)

// scopeName names the code that makes spans and metrics.
const scopeName = "agentd"

// Options say what is made and where it goes. The zero value makes nothing.
type Options struct {
	// Metrics are counted. They can be read with WritePrometheus, and go to
	// Endpoint every Interval (0: a minute). They do not go to File.
	Metrics  bool
	Interval time.Duration
	// Endpoint is the address of an OTLP collector ("http://127.0.0.1:4318"; the
	// paths /v1/traces and so on are added), Headers go with each request.
	Endpoint string
	Headers  map[string]string
	// File gets traces and logs, a request of OTLP's JSON form a line.
	File string
	// Rotate bounds the file.
	Rotate logs.FileOptions
	// Service and Version name the process; empty is "agentd" and nothing.
	Service, Version string
	// Profile says what is made of a profile's runs; nil makes metrics alone.
	Profile func(name string) Profile
	// Load says what the engine has to do, for gauges; nil has none.
	Load func(context.Context) (engine.Load, error)
	// Gauges are other values that change, such as the states of circuit
	// breakers; nil has none.
	Gauges func() []Gauge
	// Redact takes secrets out of errors in spans of profiles without a redactor
	// of their own; nil is redact.New(nil)'s.
	Redact *redact.Redactor
	// Client sends; nil is one with a timeout of ten seconds.
	Client *http.Client
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// Profile is what is made of a profile's runs.
type Profile struct {
	Trace, Metrics bool
	// Sampling is the part of the runs that is traced, 0 to 1.
	Sampling float64
	// Log gets lines about runs and their calls; nil gets none.
	Log *slog.Logger
	// Redact takes secrets and personal data out of errors in spans; nil is
	// Options.Redact.
	Redact *redact.Redactor
	// Bare keeps the texts of errors out of spans, as they may repeat what somebody
	// said: there is their class alone.
	Bare bool
}

// Gauge is a value that changes. Name is in OpenTelemetry's form, such as
// "agentd.breaker.open"; gauges of one name differ in Labels.
type Gauge struct {
	Name, Help string
	Labels     [][2]string
	Value      float64
}

// Telemetry makes traces, metrics and log lines. It is safe for concurrent use.
type Telemetry struct {
	opts    Options
	sink    *sink
	res     *resource.Resource
	tracer  trace.Tracer
	traces  *sdktrace.TracerProvider
	metrics *metric.MeterProvider
	reader  *metric.ManualReader
	meters  *meters
	spans   *buffer[spanJSON]
	logs    *buffer[logJSON]
	close   sync.Once
	// observer is there once it was asked for.
	observer *observer
}

// New makes a telemetry; o may be nil. The error is a *fault.Error of kind Invalid.
func New(o *Options) (*Telemetry, error) {
	t := &Telemetry{}
	if o != nil {
		t.opts = *o
	}
	if t.opts.Now == nil {
		t.opts.Now = time.Now
	}
	if t.opts.Service == "" {
		t.opts.Service = "agentd"
	}
	if t.opts.Interval <= 0 {
		t.opts.Interval = time.Minute
	}
	var err error
	if t.opts.Redact == nil {
		if t.opts.Redact, err = redact.New(nil); err != nil {
			return nil, invalid(err)
		}
	}
	if t.sink, err = newSink(&t.opts); err != nil {
		return nil, invalid(err)
	}
	attrs := []attribute.KeyValue{attribute.String("service.name", t.opts.Service)}
	if t.opts.Version != "" {
		attrs = append(attrs, attribute.String("service.version", t.opts.Version))
	}
	if host, err := os.Hostname(); err == nil {
		attrs = append(attrs, attribute.String("host.name", host))
	}
	t.res = resource.NewSchemaless(attrs...)
	if !t.sink.none() {
		// Spans go to a buffer of our own: the SDK's drops what does not fit without a
		// word, and knows numbers of spans, not how large they are.
		t.spans = newBuffer("traces", t.sink, func(s []spanJSON) ([]byte, error) { return encodeSpans(t.res, s) })
		t.logs = newBuffer("logs", t.sink, func(l []logJSON) ([]byte, error) { return encodeLogs(t.res, l) })
		t.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spanExporter{t.spans}), sdktrace.WithIDGenerator(idGenerator{}),
			sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(t.res))
		t.tracer = t.traces.Tracer(scopeName)
	}
	if t.opts.Metrics {
		if err := t.startMetrics(); err != nil {
			return nil, errors.Join(invalid(err), t.Close(context.Background()))
		}
	}
	return t, nil
}

func invalid(err error) error {
	return &fault.Error{Op: "telemetry.New", Kind: fault.Invalid, Err: err, Field: "telemetry", Hint: "Compare telemetry in agentd.yaml with docs/observability.md."}
}

func (t *Telemetry) startMetrics() error {
	t.reader = metric.NewManualReader()
	opts := []metric.Option{metric.WithResource(t.res), metric.WithReader(t.reader)}
	if t.opts.Endpoint != "" {
		opts = append(opts, metric.WithReader(metric.NewPeriodicReader(metricExporter{t.sink}, metric.WithInterval(t.opts.Interval))))
	}
	t.metrics = metric.NewMeterProvider(opts...)
	var err error
	t.meters, err = newMeters(t.metrics.Meter(scopeName), &t.opts, t.sink)
	return err
}

// Observer is what the engine tells, or nil if nobody wants to know. It is to be
// asked for once, and must not be told anything after Close.
func (t *Telemetry) Observer() engine.Observer {
	if t.meters == nil && t.opts.Profile == nil {
		return nil
	}
	if t.observer == nil {
		t.observer = newObserver(t)
	}
	return t.observer
}

// Tell names the log that is told when something can not be delivered. It must
// not lead back here.
func (t *Telemetry) Tell(log *slog.Logger) { t.sink.log.Store(log) }

// Reopen goes on in the file that is at File's path by now.
func (t *Telemetry) Reopen() error {
	if t.sink.file == nil {
		return nil
	}
	return t.sink.file.Reopen()
}

// Close delivers what waits, for as long as ctx allows, and ends. What could not be
// delivered is counted and told of as ever; it is no error of Close.
func (t *Telemetry) Close(ctx context.Context) error {
	var errs []error
	t.close.Do(func() {
		t.sink.closing.Store(true)
		if t.observer != nil {
			t.observer.close()
		}
		if t.traces != nil {
			if err := t.traces.Shutdown(ctx); err != nil && ctx.Err() == nil {
				errs = append(errs, err)
			}
			t.spans.close(ctx)
			t.logs.close(ctx)
		}
		if t.metrics != nil {
			if err := t.metrics.Shutdown(ctx); err != nil && ctx.Err() == nil {
				errs = append(errs, err)
			}
		}
		errs = append(errs, t.sink.close())
	})
	return errors.Join(errs...)
}

// Limits of texts in spans, in bytes.
const (
	maxError = 500
	maxName  = 256 // models make up names, and ids of calls
)

// clean makes an error fit for a span; class stands for one that may not be shown.
func (t *Telemetry) clean(p *Profile, s, class string) string {
	if p.Bare || s == "" {
		return class
	}
	r := p.Redact
	if r == nil {
		r = t.opts.Redact
	}
	// First without secrets, then short: half a secret is not known as one.
	return clip(r.Text(clip(s, 8*maxError)), maxError)
}

// clip shortens a text to about n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
