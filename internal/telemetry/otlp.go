package telemetry

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The JSON form of OTLP 1: 64-bit numbers are strings, ids are hex, enums numbers.
type (
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct { // one of them
		String *string    `json:"stringValue,omitempty"`
		Bool   *bool      `json:"boolValue,omitempty"`
		Int    *string    `json:"intValue,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *arrayJSON `json:"arrayValue,omitempty"`
	}
	arrayJSON struct {
		Values []anyValue `json:"values"`
	}
	resourceJSON struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeJSON struct {
		Name    string `json:"name,omitempty"`
		Version string `json:"version,omitempty"`
	}
	spanJSON struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Flags      int         `json:"flags,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []keyValue  `json:"attributes,omitempty"`
		Events     []eventJSON `json:"events,omitempty"`
		Status     *statusJSON `json:"status,omitempty"`
	}
	eventJSON struct {
		Time       string     `json:"timeUnixNano"`
		Name       string     `json:"name"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	statusJSON struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	logJSON struct {
		Time       string     `json:"timeUnixNano"`
		Observed   string     `json:"observedTimeUnixNano"`
		Severity   int        `json:"severityNumber"`
		Text       string     `json:"severityText"`
		Body       anyValue   `json:"body"`
		Attributes []keyValue `json:"attributes,omitempty"`
		TraceID    string     `json:"traceId,omitempty"`
		SpanID     string     `json:"spanId,omitempty"`
	}
	pointJSON struct {
		Attributes []keyValue `json:"attributes,omitempty"`
		Start      string     `json:"startTimeUnixNano,omitempty"`
		Time       string     `json:"timeUnixNano"`
		Int        *string    `json:"asInt,omitempty"`
		Double     *float64   `json:"asDouble,omitempty"`
		Count      string     `json:"count,omitempty"`
		Sum        *float64   `json:"sum,omitempty"`
		Buckets    []string   `json:"bucketCounts,omitempty"`
		Bounds     []float64  `json:"explicitBounds,omitempty"`
		Min        *float64   `json:"min,omitempty"`
		Max        *float64   `json:"max,omitempty"`
	}
	dataJSON struct {
		Points      []pointJSON `json:"dataPoints"`
		Temporality int         `json:"aggregationTemporality,omitempty"`
		Monotonic   bool        `json:"isMonotonic,omitempty"`
	}
	metricJSON struct {
		Name        string    `json:"name"`
		Description string    `json:"description,omitempty"`
		Unit        string    `json:"unit,omitempty"`
		Gauge       *dataJSON `json:"gauge,omitempty"`
		Sum         *dataJSON `json:"sum,omitempty"`
		Histogram   *dataJSON `json:"histogram,omitempty"`
	}
)

// size is about how many bytes an attribute takes.
func (kv *keyValue) size() int {
	n := 60 + len(kv.Key)
	if kv.Value.String != nil {
		n += len(*kv.Value.String)
	}
	return n
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func valueJSON(v attribute.Value) anyValue {
	switch v.Type() {
	case attribute.BOOL:
		b := v.AsBool()
		return anyValue{Bool: &b}
	case attribute.INT64:
		s := strconv.FormatInt(v.AsInt64(), 10)
		return anyValue{Int: &s}
	case attribute.FLOAT64:
		f := v.AsFloat64()
		return anyValue{Double: &f}
	case attribute.STRINGSLICE:
		a := &arrayJSON{Values: []anyValue{}}
		for _, s := range v.AsStringSlice() {
			a.Values = append(a.Values, anyValue{String: &s})
		}
		return anyValue{Array: a}
	}
	s := v.String()
	return anyValue{String: &s}
}

func attributesJSON(kvs []attribute.KeyValue) []keyValue {
	out := make([]keyValue, 0, len(kvs))
	for _, kv := range kvs {
		out = append(out, keyValue{string(kv.Key), valueJSON(kv.Value)})
	}
	return out
}

func resourceOf(r *resource.Resource) resourceJSON {
	return resourceJSON{attributesJSON(r.Attributes())}
}

func scopeOf(s instrumentation.Scope) scopeJSON { return scopeJSON{s.Name, s.Version} }

// spanOut makes a span's wire form.
func spanOut(s sdktrace.ReadOnlySpan) spanJSON {
	sc := s.SpanContext()
	trace, span := sc.TraceID(), sc.SpanID()
	j := spanJSON{TraceID: hex.EncodeToString(trace[:]), SpanID: hex.EncodeToString(span[:]), Flags: int(sc.TraceFlags()), Name: s.Name(),
		Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()), Attributes: attributesJSON(s.Attributes())}
	if p := s.Parent().SpanID(); p.IsValid() {
		j.ParentID = hex.EncodeToString(p[:])
	}
	for _, e := range s.Events() {
		j.Events = append(j.Events, eventJSON{nanos(e.Time), e.Name, attributesJSON(e.Attributes)})
	}
	switch st := s.Status(); st.Code {
	case codes.Error:
		j.Status = &statusJSON{st.Description, 2}
	case codes.Ok:
		j.Status = &statusJSON{Code: 1}
	}
	return j
}

// encodeSpans is an ExportTraceServiceRequest.
func encodeSpans(res *resource.Resource, spans []spanJSON) ([]byte, error) {
	type scopeSpans struct {
		Scope scopeJSON  `json:"scope"`
		Spans []spanJSON `json:"spans"`
	}
	type resourceSpans struct {
		Resource resourceJSON `json:"resource"`
		Scopes   []scopeSpans `json:"scopeSpans"`
	}
	return json.Marshal(struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}{[]resourceSpans{{resourceOf(res), []scopeSpans{{scopeJSON{Name: scopeName}, spans}}}}})
}

// encodeLogs is an ExportLogsServiceRequest.
func encodeLogs(res *resource.Resource, logs []logJSON) ([]byte, error) {
	type scopeLogs struct {
		Scope scopeJSON `json:"scope"`
		Logs  []logJSON `json:"logRecords"`
	}
	type resourceLogs struct {
		Resource resourceJSON `json:"resource"`
		Scopes   []scopeLogs  `json:"scopeLogs"`
	}
	return json.Marshal(struct {
		Resources []resourceLogs `json:"resourceLogs"`
	}{[]resourceLogs{{resourceOf(res), []scopeLogs{{scopeJSON{Name: scopeName}, logs}}}}})
}

// encodeMetrics is an ExportMetricsServiceRequest.
func encodeMetrics(rm *metricdata.ResourceMetrics) ([]byte, error) {
	type scopeMetrics struct {
		Scope   scopeJSON    `json:"scope"`
		Metrics []metricJSON `json:"metrics"`
	}
	type resourceMetrics struct {
		Resource resourceJSON   `json:"resource"`
		Scopes   []scopeMetrics `json:"scopeMetrics"`
	}
	out := resourceMetrics{Resource: resourceOf(rm.Resource), Scopes: []scopeMetrics{}}
	for _, sm := range rm.ScopeMetrics {
		s := scopeMetrics{Scope: scopeOf(sm.Scope), Metrics: []metricJSON{}}
		for _, m := range sm.Metrics {
			j := metricJSON{Name: m.Name, Description: m.Description, Unit: m.Unit}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				j.Sum = &dataJSON{numbers(d.DataPoints, intPoint), temporality(d.Temporality), d.IsMonotonic}
			case metricdata.Sum[float64]:
				j.Sum = &dataJSON{numbers(d.DataPoints, floatPoint), temporality(d.Temporality), d.IsMonotonic}
			case metricdata.Gauge[int64]:
				j.Gauge = &dataJSON{Points: numbers(d.DataPoints, intPoint)}
			case metricdata.Gauge[float64]:
				j.Gauge = &dataJSON{Points: numbers(d.DataPoints, floatPoint)}
			case metricdata.Histogram[int64]:
				j.Histogram = &dataJSON{Points: histogram(d.DataPoints), Temporality: temporality(d.Temporality)}
			case metricdata.Histogram[float64]:
				j.Histogram = &dataJSON{Points: histogram(d.DataPoints), Temporality: temporality(d.Temporality)}
			default:
				continue // agentd makes no others
			}
			s.Metrics = append(s.Metrics, j)
		}
		out.Scopes = append(out.Scopes, s)
	}
	return json.Marshal(struct {
		Resources []resourceMetrics `json:"resourceMetrics"`
	}{[]resourceMetrics{out}})
}

// temporality is the number that OTLP has for it, which is not the SDK's.
func temporality(t metricdata.Temporality) int {
	if t == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}

func intPoint(p *pointJSON, v int64) {
	s := strconv.FormatInt(v, 10)
	p.Int = &s
}

func floatPoint(p *pointJSON, v float64) { p.Double = &v }

func numbers[N int64 | float64](points []metricdata.DataPoint[N], set func(*pointJSON, N)) []pointJSON {
	out := make([]pointJSON, 0, len(points))
	for _, d := range points {
		p := pointJSON{Attributes: attributesJSON(d.Attributes.ToSlice()), Time: nanos(d.Time)}
		if !d.StartTime.IsZero() {
			p.Start = nanos(d.StartTime)
		}
		set(&p, d.Value)
		out = append(out, p)
	}
	return out
}

func histogram[N int64 | float64](points []metricdata.HistogramDataPoint[N]) []pointJSON {
	out := make([]pointJSON, 0, len(points))
	for _, d := range points {
		sum := float64(d.Sum)
		p := pointJSON{Attributes: attributesJSON(d.Attributes.ToSlice()), Start: nanos(d.StartTime), Time: nanos(d.Time),
			Count: strconv.FormatUint(d.Count, 10), Sum: &sum, Bounds: d.Bounds}
		for _, n := range d.BucketCounts {
			p.Buckets = append(p.Buckets, strconv.FormatUint(n, 10))
		}
		if v, ok := d.Min.Value(); ok {
			f := float64(v)
			p.Min = &f
		}
		if v, ok := d.Max.Value(); ok {
			f := float64(v)
			p.Max = &f
		}
		out = append(out, p)
	}
	return out
}
