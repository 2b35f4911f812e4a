package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"agentd/fault"
)

// ContentType is that of what WritePrometheus writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// family is one metric with its samples.
type family struct {
	name, help, kind string
	samples          []sample
}

type sample struct {
	suffix, labels string
	value          float64
}

// WritePrometheus writes all metrics in Prometheus' text form, sorted. Names are
// those of OpenTelemetry with "_" for "." and the usual endings (_total, _seconds).
// The error is of kind NotFound if there are no metrics.
func (t *Telemetry) WritePrometheus(ctx context.Context, w io.Writer) error {
	if t.reader == nil {
		return &fault.Error{Op: "telemetry", Kind: fault.NotFound, Err: errors.New("metrics are switched off"), Hint: "Set telemetry.metrics_enabled in agentd.yaml."}
	}
	if t.observer != nil {
		t.observer.look() // who asks sees what has happened
	}
	var rm metricdata.ResourceMetrics
	if err := t.reader.Collect(ctx, &rm); err != nil {
		return &fault.Error{Op: "telemetry", Kind: fault.Unavailable, Err: err}
	}
	families := []family{{name: "agentd_info", help: "The version that runs.", kind: "gauge",
		samples: []sample{{labels: labels(attribute.NewSet(attribute.String("version", t.opts.Version))), value: 1}}}}
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			families = append(families, familyOf(&m))
		}
	}
	if t.opts.Gauges != nil {
		families = append(families, gauges(t.opts.Gauges())...)
	}
	slices.SortStableFunc(families, func(a, b family) int { return cmp.Compare(a.name, b.name) })
	var b []byte
	for _, f := range families {
		if len(f.samples) > 0 {
			b = f.append(b)
		}
	}
	_, err := w.Write(b)
	return err
}

// gauges makes families of other gauges.
func gauges(list []Gauge) (out []family) {
	at := map[string]int{}
	for _, g := range list {
		name := prometheusName(g.Name)
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, family{name: name, help: g.Help, kind: "gauge"})
		}
		var kvs []attribute.KeyValue
		for _, l := range g.Labels {
			kvs = append(kvs, attribute.String(l[0], l[1]))
		}
		out[i].samples = append(out[i].samples, sample{labels: labels(attribute.NewSet(kvs...)), value: g.Value})
	}
	return out
}

func familyOf(m *metricdata.Metrics) family {
	f := family{name: prometheusName(m.Name), help: m.Description, kind: "gauge"}
	switch m.Unit {
	case "s":
		f.name += "_seconds"
	case "USD":
		f.name += "_usd"
	}
	counter := func(monotonic bool) {
		if monotonic {
			f.kind, f.name = "counter", f.name+"_total"
		}
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		counter(d.IsMonotonic)
		f.samples = samples(d.DataPoints)
	case metricdata.Sum[float64]:
		counter(d.IsMonotonic)
		f.samples = samples(d.DataPoints)
	case metricdata.Gauge[int64]:
		f.samples = samples(d.DataPoints)
	case metricdata.Gauge[float64]:
		f.samples = samples(d.DataPoints)
	case metricdata.Histogram[int64]:
		f.kind, f.samples = "histogram", buckets(d.DataPoints)
	case metricdata.Histogram[float64]:
		f.kind, f.samples = "histogram", buckets(d.DataPoints)
	}
	return f
}

func samples[N int64 | float64](points []metricdata.DataPoint[N]) (out []sample) {
	for _, p := range points {
		out = append(out, sample{labels: labels(p.Attributes), value: float64(p.Value)})
	}
	slices.SortFunc(out, func(a, b sample) int { return cmp.Compare(a.labels, b.labels) })
	return out
}

func buckets[N int64 | float64](points []metricdata.HistogramDataPoint[N]) (out []sample) {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b metricdata.HistogramDataPoint[N]) int {
		return cmp.Compare(labels(a.Attributes), labels(b.Attributes))
	})
	for _, p := range points {
		sum := uint64(0)
		for i, n := range p.BucketCounts {
			sum += n
			le := "+Inf"
			if i < len(p.Bounds) {
				le = number(p.Bounds[i])
			}
			out = append(out, sample{"_bucket", labels(p.Attributes, "le", le), float64(sum)})
		}
		l := labels(p.Attributes)
		out = append(out, sample{"_sum", l, float64(p.Sum)}, sample{"_count", l, float64(p.Count)})
	}
	return out
}

func (f *family) append(b []byte) []byte {
	b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %s %s\n", f.name, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(f.help), f.name, f.kind)
	for _, s := range f.samples {
		b = fmt.Appendf(b, "%s%s%s %s\n", f.name, s.suffix, s.labels, number(s.value))
	}
	return b
}

// labels are {a="b",…}, or nothing. More are pairs that come last.
func labels(set attribute.Set, more ...string) string {
	var parts []string
	escape := strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
	add := func(k, v string) {
		parts = append(parts, prometheusName(k)+`="`+escape.Replace(strings.ToValidUTF8(v, "�"))+`"`)
	}
	for _, kv := range set.ToSlice() {
		add(string(kv.Key), kv.Value.String())
	}
	for i := 0; i+1 < len(more); i += 2 {
		add(more[i], more[i+1])
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func number(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// prometheusName keeps what Prometheus takes in names.
func prometheusName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}
