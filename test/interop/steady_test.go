//go:build unix

package interop

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentd/message"
	"agentd/model"
	"agentd/model/anthropic"
	"agentd/model/openai"
)

// validator is steady, a server that holds requests to an OpenAPI specification,
// with a recorder ahead of it.
type validator struct {
	url string
	// path is where the recorder sends what comes, reply the stream that it
	// answers with: steady does not stream.
	path, reply string
	body        []byte
	verdict     string
}

// validate starts steady on a specification.
func validate(t *testing.T, spec, path, reply string) *validator {
	t.Helper()
	dir := t.TempDir()
	// Steady takes a port that it is told. One that was free just now may be
	// taken by the time it does: it says so then and ends.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := begin(t, dir, environment(dir), built.node, pkg("@stdy", "cli", "steady.js"), "--host", "127.0.0.1", "-p", strconv.Itoa(port), "--no-color", spec)
	v := &validator{path: path, reply: reply}
	upstream := p.says(t, `Ready to accept requests on (http://127\.0\.0\.1:\d+)`)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if v.body, err = io.ReadAll(r.Body); err != nil {
			v.verdict = err.Error()
		} else {
			v.verdict = v.judge(r, upstream)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, v.reply)
	}))
	t.Cleanup(ts.Close)
	v.url = ts.URL
	return v
}

// judge asks steady about a request and gives its complaints.
func (v *validator) judge(r *http.Request, upstream string) string {
	if r.URL.Path != v.path {
		return "the request went to " + r.URL.Path
	}
	// The specifications have their paths relative to a server's address.
	req, err := http.NewRequestWithContext(r.Context(), r.Method, upstream+r.URL.Path, bytes.NewReader(v.body))
	if err != nil {
		return err.Error()
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err.Error()
	case resp.StatusCode != http.StatusOK || resp.Header.Get("X-Steady-Request-Valid") != "true":
		return resp.Status + " " + string(said)
	}
	return ""
}

// openAISpecs are the excerpt in testdata and, if it lies beside the repository,
// the whole specification that it is taken from.
func openAISpecs(t *testing.T) map[string]string {
	t.Helper()
	excerpt, err := filepath.Abs(filepath.Join("testdata", "openai-chat.json"))
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]string{"excerpt": excerpt}
	whole := filepath.Join(filepath.Dir(built.root), "shared", "data", "openapi", "openai.json")
	if _, err := os.Stat(whole); err == nil {
		specs["whole"] = whole
	}
	t.Logf("specifications: %v", specs)
	return specs
}

// anthropicSpec unpacks the specification that Anthropic ships with its Go SDK.
func anthropicSpec(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/anthropics/anthropic-sdk-go")
	cmd.Dir = built.root
	dir, err := cmd.Output()
	if err != nil || len(bytes.TrimSpace(dir)) == 0 {
		t.Fatalf("anthropic-sdk-go is not in the module cache (%v): run go mod download in %s", err, built.root)
	}
	from := filepath.Join(strings.TrimSpace(string(dir)), "scripts", "mock-spec.json.gz")
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "anthropic.json")
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, z); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

const (
	openAIReply = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}

data: [DONE]

`
	anthropicReply = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`
)

// requests is the matrix: what an agent can ask of a model.
func requests(modelID string, thought message.Block) map[string]*model.Request {
	number := func(f float64) *float64 { return &f }
	schema := json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}`)
	tools := []model.ToolSpec{
		{Name: "add", Description: "Adds.", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`)},
		{Name: "look"},
	}
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
	loop := []message.Message{
		message.User("Add and look."),
		{Role: message.RoleAssistant, StopReason: message.StopToolUse, Content: []message.Block{
			message.Text("I will."), message.Call("call_a", "add", json.RawMessage(`{"a":1,"b":2}`)), message.Call("call_b", "look", json.RawMessage(`{}`))}},
		message.ToolResult("call_a", "add", false, message.Text("3")),
		message.ToolResult("call_b", "look", true, message.Text("nothing to see"), message.Image(pixel, "image/png")),
	}
	return map[string]*model.Request{
		"text":         {Messages: []message.Message{message.User("Hello, 世界")}},
		"output limit": {Messages: []message.Message{message.User("Hello")}, MaxTokens: 50},
		"system parts": {Messages: []message.Message{message.User("Hello")}, CacheLast: true, SessionID: "session-1",
			System: []model.SystemPart{{Text: "You are careful.", Cache: true}, {Text: "The company is ACME.", Cache: true}, {Text: "It is Monday."}}},
		"image": {Messages: []message.Message{{Role: message.RoleUser, Content: []message.Block{message.Text("What is it?"), message.Image(pixel, "image/png")}}}},
		"conversation": {Messages: []message.Message{message.User("One."), {Role: message.RoleAssistant, Content: []message.Block{message.Text("Two.")}, StopReason: message.StopEnd},
			message.User("Three."), message.User("Four.")}},
		"tools":                     {Messages: loop[:1], Tools: tools},
		"tools, none":               {Messages: loop[:1], Tools: tools, ToolChoice: model.ToolChoiceNone},
		"tools, required":           {Messages: loop[:1], Tools: tools, ToolChoice: model.ToolChoiceRequired},
		"tools, one":                {Messages: loop[:1], Tools: tools, ToolChoice: "add"},
		"tools, one at a time":      {Messages: loop[:1], Tools: tools, SingleToolCall: true},
		"tools, just one":           {Messages: loop[:1], Tools: tools, SingleToolCall: true, ToolChoice: model.ToolChoiceRequired},
		"tool results":              {Messages: loop, Tools: tools, CacheLast: true},
		"tool results, tools gone":  {Messages: loop},
		"steering":                  {Messages: append(loop[:4:4], message.User("Faster.")), Tools: tools},
		"thinking off":              {Messages: loop[:1], Thinking: model.ThinkingOff},
		"thinking adaptive":         {Messages: loop[:1], Thinking: model.ThinkingAdaptive, MaxTokens: 8000},
		"thinking low":              {Messages: loop[:1], Thinking: model.ThinkingLow, MaxTokens: 8000},
		"thinking high, with tools": {Messages: loop[:1], Thinking: model.ThinkingHigh, Tools: tools, MaxTokens: 8000},
		"thoughts": {Tools: tools, Thinking: model.ThinkingMedium, MaxTokens: 8000, Messages: []message.Message{loop[0],
			{Role: message.RoleAssistant, StopReason: message.StopToolUse, Provider: "", Model: modelID, Content: append([]message.Block{thought}, loop[1].Content...)}, loop[2], loop[3]}},
		"json":        {Messages: loop[:1], JSON: true},
		"json schema": {Messages: loop[:1], JSON: true, Schema: schema},
		"stop":        {Messages: loop[:1], Stop: []string{"END", "STOP"}},
		"temperature": {Messages: loop[:1], Temperature: number(0.2)},
		"top_p":       {Messages: loop[:1], TopP: number(0.9)},
	}
}

// check sends the matrix and holds every request to the specification.
func (v *validator) check(t *testing.T, p model.Provider, models []string, thought message.Block) {
	t.Helper()
	for _, id := range models {
		for name, req := range requests(id, thought) {
			t.Run(id+"/"+name, func(t *testing.T) {
				req.Model = id
				v.body, v.verdict = nil, "nothing was sent"
				got, err := p.Generate(t.Context(), req, nil)
				if err != nil || got.Text() != "ok" {
					t.Errorf("Generate: %+v, %v", got, err)
				}
				if v.verdict != "" {
					t.Errorf("%s\n%s", tail(v.verdict, 3000), v.body)
				}
			})
		}
	}
	// A validator that accepts everything would prove nothing.
	resp, err := http.Post(v.url+v.path, "application/json", strings.NewReader(`{"model":"m","messages":"none","max_tokens":"many"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if v.verdict == "" {
		t.Error("a request full of mistakes is accepted")
	}
}

func key(context.Context) (string, error) { return "none", nil }

// TestOpenAIRequests holds what the adapter sends to OpenAI's specification, in
// the form for OpenAI itself and in the one for other servers.
func TestOpenAIRequests(t *testing.T) {
	t.Parallel()
	for which, spec := range openAISpecs(t) {
		t.Run(which, func(t *testing.T) {
			v := validate(t, spec, "/chat/completions", openAIReply)
			models := []string{"gpt-5-mini", "gpt-4o", "unknown-model"}
			if which == "whole" {
				models = models[:1] // steady takes half a second for each request
			}
			for name, o := range map[string]*openai.Options{
				"openai": {MaxTokensField: "max_completion_tokens", PromptCacheKey: openai.Yes},
				"others": {MaxTokensField: "max_tokens"},
			} {
				t.Run(name, func(t *testing.T) {
					p, err := openai.New(openai.Config{BaseURL: v.url, Credential: key, Options: o})
					if err != nil {
						t.Fatal(err)
					}
					v.check(t, p, models, message.Block{Type: message.BlockThinking, Text: "Hm.", Signature: "reasoning_content"})
				})
			}
		})
	}
}

// TestAnthropicRequests holds what the adapter sends to Anthropic's specification.
func TestAnthropicRequests(t *testing.T) {
	t.Parallel()
	v := validate(t, anthropicSpec(t), "/v1/messages", anthropicReply)
	p, err := anthropic.New(anthropic.Config{BaseURL: v.url, Credential: key})
	if err != nil {
		t.Fatal(err)
	}
	v.check(t, p, []string{"claude-sonnet-5", "claude-opus-4-5", "unknown-model"}, message.Block{Type: message.BlockThinking, Text: "Hm.", Signature: "c2ln"})
}
