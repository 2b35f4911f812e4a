package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"

	"agentd/event"
	"agentd/internal/engine"
	"agentd/internal/logs"
	"agentd/internal/run"
	"agentd/message"
	"agentd/model"
)

// The names are those of the convention.
func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		opKey: string(semconv.GenAIOperationNameKey), providerKey: string(semconv.GenAIProviderNameKey), requestModel: string(semconv.GenAIRequestModelKey),
		requestStream: string(semconv.GenAIRequestStreamKey), responseModel: string(semconv.GenAIResponseModelKey), finishReasons: string(semconv.GenAIResponseFinishReasonsKey),
		agentName: string(semconv.GenAIAgentNameKey), agentVersion: string(semconv.GenAIAgentVersionKey), conversationID: string(semconv.GenAIConversationIDKey),
		toolName: string(semconv.GenAIToolNameKey), toolType: string(semconv.GenAIToolTypeKey), toolCallID: string(semconv.GenAIToolCallIDKey),
		tokenType: string(semconv.GenAITokenTypeKey), inputTokens: string(semconv.GenAIUsageInputTokensKey), outputTokens: string(semconv.GenAIUsageOutputTokensKey),
		cacheRead: string(semconv.GenAIUsageCacheReadInputTokensKey), cacheWrite: string(semconv.GenAIUsageCacheCreationInputTokensKey), errorType: string(semconv.ErrorTypeKey),
		"gen_ai.response.time_to_first_chunk": string(semconv.GenAIResponseTimeToFirstChunkKey),
		"gen_ai.client.operation.duration":    genaiconv.ClientOperationDuration{}.Name(), "gen_ai.client.token.usage": genaiconv.ClientTokenUsage{}.Name(),
		"gen_ai.client.operation.time_to_first_chunk": genaiconv.ClientOperationTimeToFirstChunk{}.Name(),
	} {
		if got != want {
			t.Errorf("%q is %q in the convention", got, want)
		}
	}
}

// collector takes OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][][]byte
	fail   []int // statuses of the next answers
	header http.Header
}

func newCollector(t *testing.T) *collector {
	c := &collector{bodies: map[string][][]byte{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.fail) > 0 {
			status := c.fail[0]
			c.fail = c.fail[1:]
			w.WriteHeader(status)
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.header = r.Header.Clone()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], b)
	}))
	t.Cleanup(c.Close)
	return c
}

func id(run, parent string) engine.RunID {
	root := run
	if parent != "" {
		root = parent
	}
	r := engine.RunID{Ref: engine.Ref{Tenant: "default", ID: run}, Session: "ses_1", Profile: "helper", Version: "1.0.0", Mode: "interactive", Root: root}
	if parent != "" {
		r.Parent, r.ParentCall = parent, "call_9"
	}
	return r
}

// play tells an observer of a run with a subagent.
func play(o engine.Observer) {
	at := time.UnixMilli(1_800_000_000_000)
	usage := &message.Usage{Input: 10, CacheRead: 30, Output: 5, TotalTokens: 45, Cost: message.Cost{Total: message.Dollar / 4}}
	o.Run(&engine.RunSeen{RunID: id("run_1", ""), Status: run.Running, Before: run.Queued, Created: at.UnixMilli(), Started: at.UnixMilli()})
	o.Model(&engine.ModelSeen{RunID: id("run_1", ""), Step: 1, Attempt: 1, Provider: "anthropic", Model: "m", Start: at, End: at.Add(time.Second),
		Class: "rate_limit", Error: "no: key sk-" + strings.Repeat("a", 24)})
	o.Model(&engine.ModelSeen{RunID: id("run_1", ""), Step: 1, Attempt: 2, Provider: "anthropic", Model: "m", Start: at.Add(time.Second), First: at.Add(1500 * time.Millisecond),
		End: at.Add(2 * time.Second), Usage: usage, Saved: message.Dollar / 2, Broken: &event.CacheBreak{Part: "tool", Name: "zoom", Change: "added"}, Request: &model.Request{Messages: []message.Message{message.User("a secret question")}},
		Reply: &message.Message{Model: "m-1", StopReason: message.StopToolUse, Content: []message.Block{message.Text("a secret answer")}}})
	o.Tool(&engine.ToolSeen{RunID: id("run_1", ""), Step: 1, CallID: "call_1", Name: "made_up_4711", Outcome: engine.ToolDenied, Reason: "There is no tool", Start: at, End: at})
	o.Tool(&engine.ToolSeen{RunID: id("run_1", ""), Step: 1, CallID: "call_9", Name: "create_subagent", Known: true, Outcome: engine.ToolOK, Args: json.RawMessage(`{"prompt":"a secret prompt"}`),
		Result: "a secret result", Start: at.Add(2 * time.Second), End: at.Add(5 * time.Second)})
	o.Run(&engine.RunSeen{RunID: id("run_2", "run_1"), Status: run.Completed, Before: run.Running, Created: at.UnixMilli() + 2000, Started: at.UnixMilli() + 2000, Ended: at.UnixMilli() + 4000, StopReason: "stop"})
	o.Run(&engine.RunSeen{RunID: id("run_1", ""), Status: run.Failed, Before: run.Running, Created: at.UnixMilli(), Started: at.UnixMilli(), Ended: at.UnixMilli() + 6000,
		StopReason: "model_error", Error: "Authorization: Bearer abcdefghijk", Steps: 1, Usage: *usage})
	o.Commit(time.Millisecond, nil)
	o.Commit(time.Millisecond, errors.New("full"))
}

func traced(string) Profile { return Profile{Trace: true, Metrics: true, Sampling: 1} }

type spans struct {
	ResourceSpans []struct {
		ScopeSpans []struct{ Spans []spanJSON }
	}
}

func decodeSpans(t *testing.T, bodies ...[]byte) map[string]spanJSON {
	t.Helper()
	out := map[string]spanJSON{}
	for _, b := range bodies {
		var s spans
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		for _, sp := range s.ResourceSpans[0].ScopeSpans[0].Spans {
			out[sp.Name+"/"+sp.Start] = sp
		}
	}
	return out
}

func TestTraces(t *testing.T) {
	c := newCollector(t)
	c.fail = []int{503} // the first one is sent again
	file := filepath.Join(t.TempDir(), "sub", "telemetry.jsonl")
	tel, err := New(&Options{Endpoint: c.URL + "/", Headers: map[string]string{"X-Key": "k"}, File: file, Profile: traced, Metrics: true, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	play(tel.Observer())
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := decodeSpans(t, c.bodies["/v1/traces"]...)
	if len(got) != 6 || c.header.Get("X-Key") != "k" || c.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d spans, %v", len(got), c.header)
	}
	byID := map[string]spanJSON{}
	for _, s := range got {
		byID[s.SpanID] = s
		if s.TraceID != traceOf(&engine.RunID{Ref: engine.Ref{Tenant: "default"}, Root: "run_1"}).String() {
			t.Errorf("%s is in trace %s", s.Name, s.TraceID)
		}
	}
	parents := map[string][]string{}
	for _, s := range got {
		parents[s.Name] = append(parents[s.Name], byID[s.ParentID].Name)
		slices.Sort(parents[s.Name])
	}
	for name, want := range map[string][]string{"invoke_agent helper": {"", "execute_tool create_subagent"}, "chat m": {"invoke_agent helper", "invoke_agent helper"},
		"execute_tool create_subagent": {"invoke_agent helper"}, "execute_tool (unknown)": {"invoke_agent helper"}} {
		if !slices.Equal(parents[name], want) {
			t.Errorf("%s is below %q", name, parents[name])
		}
	}
	all := string(bytes.Join(c.bodies["/v1/traces"], nil))
	for _, secret := range []string{"secret", "sk-aaa", "abcdefghijk"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in the traces", secret)
		}
	}
	for _, want := range []string{`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"40"}}`, `{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"`,
		`"status":{"message":"Authorization: [redacted]","code":2}`, `{"key":"gen_ai.response.time_to_first_chunk","value":{"doubleValue":0.5}}`, `{"key":"service.version","value":{"stringValue":"1.2.3"}}`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in %s", want, all)
		}
	}
	lines, err := os.ReadFile(file)
	if err != nil || len(decodeSpans(t, bytes.Split(bytes.TrimSpace(lines), []byte("\n"))...)) != 6 {
		t.Errorf("%v: %s", err, lines)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	metrics := string(bytes.Join(c.bodies["/v1/metrics"], nil))
	if !strings.Contains(metrics, `"name":"gen_ai.client.token.usage"`) || !strings.Contains(metrics, `"aggregationTemporality":2`) || !json.Valid([]byte(metrics)) {
		t.Error(metrics)
	}
}

// Part of the runs is traced, whole trees, and every process chooses the same.
func TestSampling(t *testing.T) {
	tel, err := New(&Options{File: filepath.Join(t.TempDir(), "x")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tel.Close(context.Background()) }()
	n := 0
	for i := range 2000 {
		r := id("run_"+time.UnixMilli(int64(i)).UTC().Format("05.000"), "")
		child := r
		child.ID = "child"
		p := Profile{Trace: true, Sampling: 0.25}
		if tel.traced(&p, &r) != tel.traced(&p, &child) {
			t.Fatal("a child is not where its root is")
		}
		if tel.traced(&p, &r) {
			n++
		}
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 2000", n)
	}
	r := id("run_1", "")
	if tel.traced(&Profile{Trace: true}, &r) || tel.traced(&Profile{Sampling: 1}, &r) {
		t.Error("traced against the configuration")
	}
	if tp := tel.Traceparent(&r, "c"); tp != "" {
		t.Error(tp)
	}
	tel.opts.Profile = traced
	if tp := tel.Traceparent(&r, "c"); !regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`).MatchString(tp) {
		t.Error(tp)
	}
}

func TestPrometheus(t *testing.T) {
	tel, err := New(&Options{Metrics: true, Version: `1"2\`, Load: func(context.Context) (engine.Load, error) {
		return engine.Load{Runs: map[run.Status]int{run.Queued: 2, run.Paused: 1}, Readers: 3, Lined: 4, Waiting: 5, Broken: true}, nil
	}, Gauges: func() []Gauge {
		return []Gauge{{"agentd.breaker.open", "Open breakers.", [][2]string{{"kind", "tool"}}, 1}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	play(tel.Observer())
	tel.observer.close()
	tel.observer = nil
	var b bytes.Buffer
	if err := tel.WritePrometheus(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		`agentd_info{version="1\"2\\"} 1`,
		`agentd_runs_total{profile="helper",status="completed"} 1`, `agentd_runs_total{profile="helper",status="failed"} 1`,
		`agentd_runs_active{status="queued"} 2`, `agentd_runs_active{status="running"} 0`, `agentd_runs_active{status="paused_checkpoint"} 1`,
		`agentd_steps_total{profile="helper"} 1`, `agentd_tool_calls_total{outcome="denied",tool="(unknown)"} 1`, `agentd_tool_calls_total{outcome="ok",tool="create_subagent"} 1`,
		`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="m",gen_ai_token_type="input"} 40`,
		`agentd_cost_usd_total{gen_ai_request_model="m",profile="helper"} 0.25`, `agentd_commits_total{outcome="error"} 1`,
		`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="m"} 1`,
		`gen_ai_client_operation_duration_seconds_bucket{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="m",le="+Inf"} 1`,
		`agentd_model_failures_total{error_type="rate_limit",gen_ai_provider_name="anthropic",gen_ai_request_model="m"} 1`,
		`agentd_cache_tokens_total{gen_ai_provider_name="anthropic",gen_ai_request_model="m",kind="read"} 30`, `agentd_cache_saved_usd{gen_ai_request_model="m",profile="helper"} 0.5`,
		`agentd_cache_breaks_total{part="tool",profile="helper"} 1`,
		`agentd_queue_sessions 4`, `agentd_queue_slots 5`, `agentd_readers 3`, `agentd_store_broken 1`, `agentd_breaker_open{kind="tool"} 1`, `# TYPE agentd_commit_duration_seconds histogram`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, "4711") {
		t.Error("what a model made up is a label")
	}
	sample := regexp.MustCompile(`^[a-z_]+(\{[a-z_]+="(\\.|[^"\\])*"(,[a-z_]+="(\\.|[^"\\])*")*\})? [0-9.e+-]+$|^# (HELP|TYPE) [a-z_]+ .+$`)
	for line := range strings.Lines(text) {
		if !sample.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("not in the text form: %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
	none, err := New(nil)
	if err != nil || none.Observer() != nil || none.WritePrometheus(t.Context(), &b) == nil || none.LogHandler() != nil {
		t.Error("the zero value makes something", err)
	}
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLogs(t *testing.T) {
	c := newCollector(t)
	tel, err := New(&Options{Endpoint: c.URL})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(tel.LogHandler()).With("a", 1).WithGroup("g")
	log.Warn("hello", "b", true, slog.Group("h", "c", "x"), "e", errors.New("bad"), "f", 1.5)
	for range maxWaiting * 2 {
		log.Info("much") // never waits
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := string(c.bodies["/v1/logs"][0])
	for _, want := range []string{`"severityNumber":13`, `"body":{"stringValue":"hello"}`, `{"key":"a","value":{"intValue":"1"}}`, `{"key":"g.b","value":{"boolValue":true}}`,
		`{"key":"g.h.c","value":{"stringValue":"x"}}`, `{"key":"g.e","value":{"stringValue":"bad"}}`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not in %.600s", want, all)
		}
	}
}

// A collector that refuses is told of once, and holds up nothing.
func TestCollectorThatRefuses(t *testing.T) {
	c := newCollector(t)
	c.fail = []int{400, 400, 400}
	tel, err := New(&Options{Endpoint: c.URL, Profile: traced})
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	tel.Tell(slog.New(slog.NewTextHandler(&told, nil)))
	play(tel.Observer())
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(told.String(), "could not be delivered"); got != 1 || tel.sink.lost("traces").Load() != 6 {
		t.Errorf("told %d times: %s", got, told.String())
	}
	for _, bad := range []Options{{Endpoint: "ftp://x"}, {Endpoint: "nowhere"}, {File: t.TempDir()}} {
		if _, err := New(&bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// The lines of a run, and what of a payload they show.
func TestRunLog(t *testing.T) {
	for policy, want := range map[logs.Policy][2]string{
		logs.Full:     {"a secret question", "never"},
		logs.Redacted: {"a secret question", "sk-aaaa"},
		logs.Hashes:   {"sha256:", "a secret"},
	} {
		var b bytes.Buffer
		h, err := logs.New(slog.NewJSONHandler(&b, nil), logs.Options{Level: slog.LevelDebug, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		tel, err := New(&Options{Profile: func(string) Profile { return Profile{Log: slog.New(h)} }})
		if err != nil {
			t.Fatal(err)
		}
		play(tel.Observer())
		if err := tel.Close(t.Context()); err != nil {
			t.Error(err)
		}
		text := b.String()
		if !strings.Contains(text, want[0]) || strings.Contains(text, want[1]) || strings.Contains(text, "sk-aaaaaaaa") {
			t.Errorf("%s: %s", policy, text)
		}
		for _, msg := range []string{"run running", "model call failed", "model call", "tool call refused", "tool call", "run completed", "run failed"} {
			if !strings.Contains(text, `"msg":"`+msg+`"`) {
				t.Errorf("%s: no line %q", policy, msg)
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	tel, err := New(&Options{Metrics: true})
	if err != nil {
		b.Fatal(err)
	}
	o := tel.Observer()
	m := &engine.ModelSeen{RunID: id("run_1", ""), Provider: "p", Model: "m", Start: time.Unix(1, 0), First: time.Unix(2, 0), End: time.Unix(3, 0), Reply: &message.Message{}, Usage: &message.Usage{Input: 1}}
	tool := &engine.ToolSeen{RunID: m.RunID, Name: "t", Known: true, Outcome: engine.ToolOK}
	for b.Loop() {
		o.Model(m)
		o.Tool(tool)
		o.Commit(time.Millisecond, nil)
		o.Commit(time.Millisecond, nil)
	}
}
