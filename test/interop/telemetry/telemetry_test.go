// Package telemetry holds what agentd says about itself against what others read it
// with: OpenTelemetry's own decoders of OTLP, as collectors have them, and Prometheus'
// own parser.
package telemetry

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"agentd"
)

// collector keeps what is sent to it.
type collector struct {
	mu     sync.Mutex
	bodies map[string][][]byte
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], b)
}

// observed runs agents that do a bit of everything and gives what the collector and
// the file got, and the metrics in Prometheus' form.
func observed(t *testing.T) (c *collector, file, metrics []byte) {
	t.Helper()
	c = &collector{bodies: map[string][][]byte{}}
	ts := httptest.NewServer(c)
	defer ts.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agentd.yaml": "log: {destinations: [otel], level: debug}\ntelemetry: {trace_enabled: true, otlp_endpoint: '" + ts.URL + "', file: '" + dir + "/otlp.jsonl'}\n",
		"helper.yaml": "turns:\n- text: Helped.\n  usage: {input: 10, output: 5, cache_read: 30, cache_write: 7}\n",
		"boss.yaml": "turns:\n- text: I look.\n  tool_calls:\n  - {name: create_subagent, arguments: {subagent_type: helper, prompt: Help me.}}\n  - {name: \"made up\\n\\\"\\\\ \\xe9\", arguments: {}}\n" +
			"- text: Done.\n",
		"broken.yaml":        "turns:\n- text: never\n  fault: {kind: auth}\n",
		"agents/helper.yaml": "profile_name: helper\nprimary_model: {provider: script, model: m, script: helper.yaml}\n",
		"agents/boss.yaml":   "profile_name: boss\nprimary_model: {provider: script, model: m, script: boss.yaml}\nsubagents: [helper]\nlog_level: debug\n",
		"agents/broken.yaml": "profile_name: broken\nprimary_model: {provider: script, model: m, script: broken.yaml}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := agentd.Open(t.Context(), agentd.Config{Configs: dir, Data: filepath.Join(dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"boss", "broken"} {
		r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: profile, Input: agentd.Text("x")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Wait(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := rt.WriteMetrics(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	file, err = os.ReadFile(filepath.Join(dir, "otlp.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return c, file, b.Bytes()
}

func spansOf(t *testing.T, body []byte) (out []ptrace.Span) {
	t.Helper()
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalJSON(body); err != nil {
		t.Fatalf("a collector can not read %s: %v", body, err)
	}
	for _, rs := range req.Traces().ResourceSpans().All() {
		if v, ok := rs.Resource().Attributes().Get("service.name"); !ok || v.Str() != "agentd" {
			t.Errorf("the spans are of %v", rs.Resource().Attributes().AsRaw())
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				out = append(out, s)
			}
		}
	}
	return out
}

func TestCollectorsReadIt(t *testing.T) {
	c, file, _ := observed(t)
	byID := map[pcommon.SpanID]ptrace.Span{}
	for _, body := range c.bodies["/v1/traces"] {
		for _, s := range spansOf(t, body) {
			byID[s.SpanID()] = s
		}
	}
	above := map[string]string{}
	for _, s := range byID {
		if s.TraceID().IsEmpty() || s.StartTimestamp() == 0 || s.EndTimestamp() < s.StartTimestamp() {
			t.Errorf("%s: %s, %d to %d", s.Name(), s.TraceID(), s.StartTimestamp(), s.EndTimestamp())
		}
		parent := ""
		if p := s.ParentSpanID(); !p.IsEmpty() {
			p, ok := byID[p]
			if !ok {
				t.Errorf("the span above %s is missing", s.Name())
				continue
			}
			if parent = p.Name(); p.TraceID() != s.TraceID() {
				t.Errorf("%s and %s are in two traces", s.Name(), parent)
			}
		}
		above[s.Name()+" < "+parent] = s.Kind().String() + " " + s.Status().Code().String()
	}
	for span, want := range map[string]string{
		"invoke_agent boss < ":                               "Internal Unset",
		"chat m < invoke_agent boss":                         "Client Unset",
		"execute_tool create_subagent < invoke_agent boss":   "Internal Unset",
		"execute_tool (unknown) < invoke_agent boss":         "Internal Error",
		"invoke_agent helper < execute_tool create_subagent": "Internal Unset",
		"chat m < invoke_agent helper":                       "Client Unset",
		"invoke_agent broken < ":                             "Internal Error",
		"chat m < invoke_agent broken":                       "Client Error",
	} {
		if above[span] != want {
			t.Errorf("%s is %q, not %q", span, above[span], want)
		}
	}
	for _, s := range byID {
		if p, ok := byID[s.ParentSpanID()]; !ok || p.Name() != "invoke_agent helper" {
			continue
		}
		for name, want := range map[string]int64{"gen_ai.usage.input_tokens": 47, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 30, "gen_ai.usage.cache_creation.input_tokens": 7} {
			if v, ok := s.Attributes().Get(name); !ok || v.Type() != pcommon.ValueTypeInt || v.Int() != want {
				t.Errorf("%s is %v, not %d", name, v.AsRaw(), want)
			}
		}
		if v, ok := s.Attributes().Get("gen_ai.response.finish_reasons"); !ok || v.Type() != pcommon.ValueTypeSlice {
			t.Errorf("finish reasons are %v", v.AsRaw())
		}
	}
	records := 0
	for _, body := range c.bodies["/v1/logs"] {
		req := plogotlp.NewExportRequest()
		if err := req.UnmarshalJSON(body); err != nil {
			t.Fatalf("a collector can not read %s: %v", body, err)
		}
		for _, rl := range req.Logs().ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, l := range sl.LogRecords().All() {
					if records++; l.Body().Str() == "" || l.SeverityNumber() == 0 || l.Timestamp() == 0 {
						t.Errorf("%q, %v, %v", l.Body().Str(), l.SeverityNumber(), l.Timestamp())
					}
				}
			}
		}
	}
	if records < 6 {
		t.Errorf("%d log records", records)
	}
	types := map[string]pmetric.MetricType{}
	for _, body := range c.bodies["/v1/metrics"] {
		req := pmetricotlp.NewExportRequest()
		if err := req.UnmarshalJSON(body); err != nil {
			t.Fatalf("a collector can not read %s: %v", body, err)
		}
		for _, rm := range req.Metrics().ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					types[m.Name()] = m.Type()
					if m.Type() == pmetric.MetricTypeHistogram {
						for _, p := range m.Histogram().DataPoints().All() {
							if p.BucketCounts().Len() != p.ExplicitBounds().Len()+1 || m.Histogram().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
								t.Errorf("%s: %d buckets, %d bounds", m.Name(), p.BucketCounts().Len(), p.ExplicitBounds().Len())
							}
						}
					}
				}
			}
		}
	}
	for name, want := range map[string]pmetric.MetricType{"gen_ai.client.token.usage": pmetric.MetricTypeHistogram, "gen_ai.client.operation.duration": pmetric.MetricTypeHistogram,
		"agentd.runs": pmetric.MetricTypeSum, "agentd.runs.active": pmetric.MetricTypeGauge} {
		if types[name] != want {
			t.Errorf("%s is a %v, not a %v", name, types[name], want)
		}
	}
	// The file has the same, a request a line: the collector's file receiver reads that.
	kinds := map[string]int{}
	for line := range bytes.Lines(file) {
		switch {
		case bytes.Contains(line, []byte(`"resourceSpans"`)):
			kinds["spans"] += len(spansOf(t, line))
		case bytes.Contains(line, []byte(`"resourceLogs"`)):
			if err := plogotlp.NewExportRequest().UnmarshalJSON(line); err != nil {
				t.Error(err)
			}
			kinds["logs"]++
		default:
			t.Errorf("what is this: %s", line)
		}
	}
	if kinds["spans"] != len(byID) || kinds["logs"] == 0 {
		t.Errorf("the file has %v, and the collector %d spans", kinds, len(byID))
	}
}

func TestPrometheusReadsIt(t *testing.T) {
	_, _, text := observed(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for name, kind := range map[string]dto.MetricType{"agentd_runs_total": dto.MetricType_COUNTER, "agentd_runs_active": dto.MetricType_GAUGE, "agentd_tool_calls_total": dto.MetricType_COUNTER,
		"gen_ai_client_operation_duration_seconds": dto.MetricType_HISTOGRAM, "gen_ai_client_token_usage": dto.MetricType_HISTOGRAM, "agentd_commit_duration_seconds": dto.MetricType_HISTOGRAM,
		"agentd_telemetry_dropped_total": dto.MetricType_COUNTER, "agentd_info": dto.MetricType_GAUGE} {
		if f := families[name]; f == nil || f.GetType() != kind || f.GetHelp() == "" {
			t.Errorf("%s: %v", name, f)
		}
	}
	for name, f := range families {
		seen := []string{}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
				if strings.Contains(l.GetValue(), "made up") {
					t.Errorf("%s has a label that a model made up: %s", name, l.GetValue())
				}
			}
			set := strings.Join(labels, ",")
			if slices.Contains(seen, set) {
				t.Errorf("%s{%s} is there twice", name, set)
			}
			seen = append(seen, set)
			if h := m.Histogram; h != nil {
				last := uint64(0)
				for _, b := range h.Bucket {
					if b.GetCumulativeCount() < last {
						t.Errorf("%s{%s} falls from %d to %d", name, set, last, b.GetCumulativeCount())
					}
					last = b.GetCumulativeCount()
				}
				if last != h.GetSampleCount() {
					t.Errorf("%s{%s}: the last bucket has %d of %d", name, set, last, h.GetSampleCount())
				}
			}
		}
	}
}
