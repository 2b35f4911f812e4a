package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"agentd/internal/logs"
)

// Limits of delivery.
const (
	sendTimeout = 10 * time.Second
	sendTries   = 4
	maxPause    = 5 * time.Second
	// tellEvery bounds how often a collector that is down is told of in the log.
	tellEvery = time.Minute
)

// sink takes encoded requests: "traces", "metrics" or "logs".
type sink struct {
	endpoint string
	headers  map[string]string
	client   *http.Client
	now      func() time.Time

	mu   sync.Mutex
	file *logs.File // or nil

	// Spans, log records and collections of metrics that were not delivered.
	spans, records, collections atomic.Int64
	log                         atomic.Pointer[slog.Logger]
	// closing is set when the end has begun, failing while the last request failed:
	// who waits for the end does not wait for a collector that is known to be away.
	closing, failing atomic.Bool
	told             atomic.Int64 // Unix milliseconds
}

func newSink(o *Options) (*sink, error) {
	s := &sink{endpoint: strings.TrimRight(o.Endpoint, "/"), headers: o.Headers, client: o.Client, now: o.Now}
	if s.client == nil {
		// No redirects: one could carry the headers, and the key in them, elsewhere.
		s.client = &http.Client{Timeout: sendTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if s.endpoint != "" {
		if u, err := url.Parse(s.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			// Not repeated here: it may hold a password.
			return nil, errors.New("otlp_endpoint (or OTEL_EXPORTER_OTLP_ENDPOINT) is not an http or https address")
		}
	}
	if o.File != "" {
		f, err := logs.OpenFile(o.File, o.Rotate)
		if err != nil {
			return nil, err
		}
		s.file = f
	}
	return s, nil
}

// none is whether nothing would get there.
func (s *sink) none() bool { return s.endpoint == "" && s.file == nil }

// send delivers a request with n spans, records or collections everywhere. What can
// not be delivered is dropped: who made it must not fail for it.
func (s *sink) send(ctx context.Context, kind string, n int, body []byte) {
	var errs []error
	if s.file != nil && kind != "metrics" { // they repeat themselves, and can be asked for
		s.mu.Lock()
		_, err := s.file.Write(append(body, '\n'))
		s.mu.Unlock()
		errs = append(errs, err)
	}
	if s.endpoint != "" {
		errs = append(errs, s.post(ctx, kind, body))
	}
	if err := errors.Join(errs...); err != nil {
		s.lose(kind, n, err)
	}
}

// lost counts what was dropped of a kind.
func (s *sink) lost(kind string) *atomic.Int64 {
	switch kind {
	case "traces":
		return &s.spans
	case "logs":
		return &s.records
	}
	return &s.collections
}

// lose counts what is dropped, and says so in the log now and then.
func (s *sink) lose(kind string, n int, err error) {
	total := s.lost(kind).Add(int64(n))
	now, last := s.now().UnixMilli(), s.told.Load()
	if log := s.log.Load(); log != nil && now-last >= tellEvery.Milliseconds() && s.told.CompareAndSwap(last, now) {
		log.Warn("telemetry could not be delivered and was dropped", "kind", kind, "dropped", total, "error", err)
	}
}

// post sends a request over HTTP, again where OTLP says that this may help.
func (s *sink) post(ctx context.Context, kind string, body []byte) error {
	pause := time.Second / 2
	for n := 1; ; n++ {
		again, wait, err := s.try(ctx, kind, body)
		failed := s.failing.Swap(err != nil)
		if err == nil || !again || n == sendTries || s.closing.Load() && (failed || n == 2) {
			return err
		}
		if wait == 0 {
			wait = pause
			pause *= 2
		}
		t := time.NewTimer(min(wait, maxPause))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

func (s *sink) try(ctx context.Context, kind string, body []byte) (again bool, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint+"/v1/"+kind, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	for k, v := range s.headers {
		r.Header.Set(k, v)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the address may hold a password
		}
		return true, 0, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if n, perr := strconv.Atoi(resp.Header.Get("Retry-After")); perr == nil && n > 0 {
			wait = time.Duration(n) * time.Second
		}
		return true, wait, fmt.Errorf("the collector answered %s", resp.Status)
	}
	if resp.StatusCode/100 != 2 {
		return false, 0, fmt.Errorf("the collector answered %s", resp.Status)
	}
	return false, 0, nil
}

func (s *sink) close() error {
	s.client.CloseIdleConnections()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// spanExporter is the SDK's way to the buffer of spans.
type spanExporter struct{ b *buffer[spanJSON] }

// ExportSpans implements sdktrace.SpanExporter. It never fails: the SDK would
// write the error to standard error.
func (e spanExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		j := spanOut(s)
		size := 200 + len(j.Name)
		for i := range j.Attributes {
			size += j.Attributes[i].size()
		}
		e.b.add(j, size)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (spanExporter) Shutdown(context.Context) error { return nil }

// metricExporter is the SDK's way to a sink.
type metricExporter struct{ s *sink }

// Temporality implements metric.Exporter.
func (metricExporter) Temporality(k metric.InstrumentKind) metricdata.Temporality {
	return metric.DefaultTemporalitySelector(k)
}

// Aggregation implements metric.Exporter.
func (metricExporter) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

// Export implements metric.Exporter. It never fails, like ExportSpans.
func (e metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	body, err := encodeMetrics(rm)
	if err != nil {
		e.s.lose("metrics", 1, err)
		return nil
	}
	e.s.send(ctx, "metrics", 1, body)
	return nil
}

// ForceFlush implements metric.Exporter.
func (metricExporter) ForceFlush(context.Context) error { return nil }

// Shutdown implements metric.Exporter.
func (metricExporter) Shutdown(context.Context) error { return nil }
