package agentd_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentd"
)

// What a run says in its log, its traces and its metrics, from the configuration on.
func TestObservability(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := "sk-" + strings.Repeat("a", 30)
	write("talk.yaml", "turns:\n- text: 'The key is "+key+", write to jane@example.org.'\n")
	write("agentd.yaml", "log: {destinations: [stderr, 'file:"+out+"/server.log', otel], pii: [email]}\ntelemetry: {trace_enabled: true, file: '"+out+"/telemetry.jsonl'}\n")
	write("mcp/servers.yaml", "servers: {files: {transport: stdio, command: nothing-is-called-so}}\n")
	const model = "\nprimary_model: {provider: script, model: m, script: talk.yaml, concurrency_limit: 4}\n"
	write("agents/open.yaml", "profile_name: open"+model+"circuit_breakers: {provider: {failures: 3}}\nlog_level: debug\nlog_payload_policy: redacted\nlog_destinations: ['file:"+out+"/open.log']\n")
	write("agents/closed.yaml", "profile_name: closed"+model+"metrics_enabled: false\nsampling_rate: 0\nlog_level: error\n")
	var stderr bytes.Buffer
	rt, err := agentd.Open(t.Context(), agentd.Config{Configs: dir, Env: func(string) (string, bool) { return "", false }, Log: slog.New(slog.NewTextHandler(&stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"open", "closed"} {
		r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: profile, Input: agentd.Text("Say it")})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = rt.Wait(t.Context(), r.ID); err != nil || !strings.Contains(r.Output, key) { // the conversation is not redacted
			t.Fatalf("%+v %v", r, err)
		}
		if rows, more, err := rt.Trace(t.Context(), r.ID, 0, 0); err != nil || more || len(rows) != 2 {
			t.Errorf("%+v %v %v", rows, more, err)
		}
	}
	var metrics bytes.Buffer
	if err := rt.WriteMetrics(t.Context(), &metrics); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	open, server, telemetry := read("open.log"), read("server.log"), read("telemetry.jsonl")
	for name, text := range map[string]string{"open.log": open, "server.log": server, "telemetry": telemetry, "stderr": stderr.String(), "metrics": metrics.String()} {
		if strings.Contains(text, key) || strings.Contains(text, "jane@") {
			t.Errorf("a secret is in %s: %s", name, text)
		}
	}
	if !strings.Contains(open, `msg="model call"`) || !strings.Contains(open, "The key is [redacted], write to [redacted]") || !strings.Contains(open, "run completed") {
		t.Errorf("open.log: %s", open)
	}
	if strings.Contains(server, "profile=closed") || strings.Contains(stderr.String(), "run completed") {
		t.Errorf("a quiet profile talks: %s%s", server, stderr.String())
	}
	if strings.Count(telemetry, "invoke_agent open") != 1 || strings.Contains(telemetry, "invoke_agent closed") || !strings.Contains(telemetry, `"name":"chat m"`) {
		t.Errorf("traces: %s", telemetry)
	}
	for _, line := range []string{`agentd_rate_waiting 0`, `agentd_breaker_state{cooldown="30s",failures="3",kind="provider",name="script",server="",tenant=""} 0`,
		`agentd_bulkhead_limit{kind="provider",limit="4",name="script"} 4`, `agentd_bulkhead_waiting{kind="server",limit="8",name="files"} 0`, `agentd_mcp_up{server="files"} 0`} {
		if !strings.Contains(metrics.String(), line+"\n") {
			t.Errorf("%s is not in %s", line, metrics.String())
		}
	}
	if text := metrics.String(); !strings.Contains(text, `agentd_commits_total{outcome="ok"}`) || strings.Contains(text, `profile="closed"`) {
		t.Error(text)
	}
}

// A command at the terminal is quiet; the files that the configuration names are not.
func TestFilesHaveTheLevelOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agentd.yaml": "log: {level: debug, destinations: [stderr, 'file:" + dir + "/x.log']}\n", "talk.yaml": "turns:\n- text: hello\n",
		"agents/a.yaml": "profile_name: a\nprimary_model: {provider: script, model: m, script: talk.yaml}\n",
		"agents/b.yaml": "profile_name: b\nprimary_model: {provider: script, model: m, script: talk.yaml}\nlog_level: error\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	rt, err := agentd.Open(t.Context(), agentd.Config{Configs: dir, Data: ":memory:", Log: slog.New(slog.NewTextHandler(&stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"a", "b"} {
		r, err := rt.Start(t.Context(), agentd.StartRequest{Profile: profile, Input: agentd.Text("x")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Wait(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "x.log"))
	if err != nil || !strings.Contains(string(text), "run completed") || !strings.Contains(string(text), "model call") || strings.Contains(string(text), "profile=b") || stderr.Len() > 0 {
		t.Errorf("%v, file:\n%s\nstderr:\n%s", err, text, stderr.String())
	}
}

// The last metrics are sent while the store that they count in is still open.
func TestCloseSendsTheLastMetrics(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	ts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, b...); err != nil {
			t.Error(err)
		}
	}))
	defer ts.Close()
	rt, err := agentd.Open(t.Context(), agentd.Config{Data: t.TempDir(), Env: func(name string) (string, bool) { return ts.URL, name == "OTEL_EXPORTER_OTLP_ENDPOINT" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !bytes.Contains(got, []byte(`"agentd.runs.active"`)) {
		t.Errorf("sent: %s", got)
	}
}

func TestObservabilityThatCanNotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a file below a file": "log: {destinations: ['file:" + file + "/x.log']}\n",
		"no collector":        "log: {destinations: [otel]}\n",
		"a kind":              "log: {pii: [shoes]}\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "agentd.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "agents", "a.yaml"), []byte("profile_name: a\nprimary_model: {provider: script, model: m}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if rt, err := agentd.Open(t.Context(), agentd.Config{Configs: dir, Env: func(string) (string, bool) { return "", false }}); err == nil {
			t.Errorf("%s is accepted", name)
			_ = rt.Close()
		}
	}
}
