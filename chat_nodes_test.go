package agentd_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentd"
	"agentd/internal/store/postgres/pgtest"
)

// An answer is streamed over the OpenAI face of a server that drives no runs, word by
// word while a worker elsewhere makes it.
func TestChatAtANodeThatDrivesNothing(t *testing.T) { chatElsewhere(t, "{}", "{}") }

// chatElsewhere is that of an API node and a worker with these settings.
func chatElsewhere(t *testing.T, apiSettings, workerSettings string) {
	url := pgtest.Start(t, "fsync = off").NewURL()
	text := strings.TrimSpace(strings.Repeat("word ", 60))
	configs := map[string]string{
		"agents/talk.yaml": "profile_name: talk\nprimary_model: {provider: script, model: m, script: talk.yaml}\n",
		"talk.yaml":        "turns:\n- text: " + text + "\n  latency: {chunk: 30ms, size: 5}\n",
	}
	node := func(c agentd.Config, settings string) *agentd.Runtime {
		t.Helper()
		configs["agentd.yaml"] = settings + "\n"
		c.Data, c.Configs, c.Workspace = url, write(t, configs), t.TempDir()
		rt, err := agentd.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rt.Close() })
		return rt
	}
	api := node(agentd.Config{NoWorker: true}, apiSettings)
	node(agentd.Config{}, workerSettings)
	h, err := api.Handler()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	res, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"talk","stream":true,"messages":[{"role":"user","content":"Talk."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	said, pieces, live := "", 0, false
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: {")
		if !ok {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			t.Fatal(err)
		}
		if len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			continue
		}
		pieces++
		if said += chunk.Choices[0].Delta.Content; pieces == 1 {
			r, err := api.Get(t.Context(), res.Header.Get("X-Agentd-Run-Id"))
			live = err == nil && r.Status == "running"
		}
	}
	if said != text || pieces < 5 || !live {
		t.Errorf("%d pieces, the first while the run went on: %t; %q", pieces, live, said)
	}
}
