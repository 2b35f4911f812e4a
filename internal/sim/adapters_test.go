package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentd/internal/sim"
	"agentd/message"
	"agentd/model"
	"agentd/model/anthropic"
	"agentd/model/gemini"
	"agentd/model/ollama"
	"agentd/model/openai"
	"agentd/model/script"
)

// providers are agentd's own clients of a simulator that plays the script, and
// the script in process.
func providers(t *testing.T, src string) map[string]model.Provider {
	t.Helper()
	s, err := script.Parse("test.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim.New(sim.Options{Scripts: []*script.Script{s}}))
	t.Cleanup(srv.Close)
	key := func(context.Context) (string, error) { return "test", nil }
	oai, err := openai.New(openai.Config{BaseURL: srv.URL + "/v1", Credential: key})
	if err != nil {
		t.Fatal(err)
	}
	res, err := openai.New(openai.Config{BaseURL: srv.URL + "/v1", Protocol: openai.Responses, Credential: key})
	if err != nil {
		t.Fatal(err)
	}
	azure := func(base, version string, protocol openai.Protocol) model.Provider {
		p, err := openai.New(openai.Config{BaseURL: srv.URL + base, Protocol: protocol, Azure: &openai.Azure{Version: version}, Credential: key})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ant, err := anthropic.New(anthropic.Config{BaseURL: srv.URL, Credential: key})
	if err != nil {
		t.Fatal(err)
	}
	gem, err := gemini.New(gemini.Config{BaseURL: srv.URL, Credential: key})
	if err != nil {
		t.Fatal(err)
	}
	oll, err := ollama.New(ollama.Config{BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]model.Provider{"openai": oai, "responses": res, "azure": azure("/openai/v1", "", ""), "azure, token": azure("/openai/v1", "v1", openai.Responses),
		"azure, dated": azure("/openai", "2025-04-01-preview", ""), "azure, dated chat": azure("/openai", "2024-12-01-preview", ""), "anthropic": ant, "gemini": gem, "ollama": oll, "script": script.New(s, nil)}
}

func request() *model.Request {
	return &model.Request{Model: "m", MaxTokens: 500, System: []model.SystemPart{{Text: "be brief", Cache: true}}, CacheLast: true,
		Messages: []message.Message{message.User("hi")},
		Tools:    []model.ToolSpec{{Name: "a", Description: "does", Schema: json.RawMessage(`{"type":"object"}`)}}}
}

// A loop of a tool gives the same conversation over both wires as in process.
func TestAdaptersLoop(t *testing.T) {
	for name, p := range providers(t, `
latency: {size: 3}
turns:
- thinking: "Hm… let me see."
  text: I will look.
  tool_calls: [{name: a, arguments: {k: "v\n\"€"}}, {name: a}]
- text: "{{range .Results}}{{.Name}}:{{.Text}} {{end}}"
`) {
		t.Run(name, func(t *testing.T) {
			req := request()
			req.Thinking = model.ThinkingLow // of a model that is not known, Responses is asked for reasoning only so
			text := ""
			m, err := p.Generate(t.Context(), req, func(e model.StreamEvent) {
				if e.Type == model.StreamTextDelta {
					text += e.Delta
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			calls := m.ToolCalls()
			if m.StopReason != message.StopToolUse || m.Text() != "I will look." || text != m.Text() || len(m.Content) != 4 ||
				m.Content[0].Text != "Hm… let me see." || len(calls) != 2 || string(calls[0].Arguments) != `{"k":"v\n\"€"}` || string(calls[1].Arguments) != "{}" {
				b, _ := json.Marshal(m)
				t.Fatalf("first reply %s", b)
			}
			if m.Usage.Prompt() == 0 || m.Usage.Output == 0 {
				t.Errorf("usage %+v", m.Usage)
			}
			req.Messages = append(req.Messages, *m)
			for i, c := range calls {
				req.Messages = append(req.Messages, message.ToolResult(c.ID, c.Name, false, message.Text([]string{"one", "two"}[i])))
			}
			m, err = p.Generate(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if m.Text() != "a:one a:two " || m.StopReason != message.StopEnd {
				t.Errorf("second reply %q %s", m.Text(), m.StopReason)
			}
		})
	}
}

// A fault means the same to a run, whichever way the model is reached.
// One tool call at a time reaches the model over the wires that have a switch for it.
func TestAdaptersSingleToolCall(t *testing.T) {
	for name, p := range providers(t, "turns: [{tool_calls: [{name: a}, {name: a}]}]") {
		if name == "gemini" || name == "ollama" {
			continue
		}
		for _, choice := range []model.ToolChoice{model.ToolChoiceAuto, model.ToolChoiceRequired, "a"} {
			req := request()
			req.SingleToolCall, req.ToolChoice = true, choice
			m, err := p.Generate(t.Context(), req, nil)
			if err != nil || len(m.ToolCalls()) != 1 || m.StopReason != message.StopToolUse {
				t.Errorf("%s, %q: %+v, %v", name, choice, m, err)
			}
		}
	}
}

func TestAdaptersFaults(t *testing.T) {
	broken := []model.Class{model.ClassConnection, model.ClassTruncated}
	for _, tt := range []struct {
		fault   string
		classes []model.Class
		retry   time.Duration
	}{
		{"rate_limited, retry_after: 3s", []model.Class{model.ClassRateLimited}, 3 * time.Second},
		{"overloaded", []model.Class{model.ClassOverloaded}, 0},
		{"overloaded, after: 1", []model.Class{model.ClassOverloaded}, 0},
		{"server", []model.Class{model.ClassServer}, 0},
		{"overflow", []model.Class{model.ClassOverflow}, 0},
		{"auth", []model.Class{model.ClassAuth}, 0},
		{"quota", []model.Class{model.ClassQuota}, 0},
		{"refused", []model.Class{model.ClassRefused}, 0},
		{"cut, after: 2", broken, 0},
		{"truncated, after: 2", []model.Class{model.ClassTruncated}, 0},
		{"malformed", []model.Class{model.ClassMalformed}, 0},
	} {
		for name, p := range providers(t, "latency: {size: 3}\nturns: [{text: some text, fault: {kind: "+tt.fault+"}}]") {
			if name == "ollama" && tt.fault == "refused" {
				continue // what a local model refuses is an answer
			}
			t.Run(strings.ReplaceAll(tt.fault, ": ", "=")+"/"+name, func(t *testing.T) {
				_, err := p.Generate(t.Context(), request(), nil)
				var e *model.Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				for _, c := range tt.classes {
					if e.Class == c && e.RetryAfter == tt.retry {
						return
					}
				}
				t.Errorf("got %s, retry after %v (%v); want one of %s, %v", e.Class, e.RetryAfter, e, tt.classes, tt.retry)
			})
		}
	}
}
