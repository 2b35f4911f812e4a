package server_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"agentd/event"
	"agentd/internal/server"
	"agentd/message"
)

// The official client, used as people use it.
func sdk(t *testing.T) (*api, openai.Client) {
	a := start(t, &server.Options{})
	return a, openai.NewClient(option.WithBaseURL(a.ts.URL+"/v1"), option.WithAPIKey("none"))
}

func TestSDKChat(t *testing.T) {
	a, c := sdk(t)
	got, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "echo",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("hello you")}, MaxCompletionTokens: openai.Int(50)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Message.Content != "hello you" || got.Choices[0].FinishReason != "stop" || got.Usage.TotalTokens != 17 || got.ID != "chatcmpl-r1" {
		t.Errorf("%s", got.RawJSON())
	}
	if s := a.e.lastStart(); s.Overrides.System != "Be brief." || s.Overrides.MaxOutputTokens != 50 {
		t.Errorf("%+v", s)
	}
}

func TestSDKStream(t *testing.T) {
	_, c := sdk(t)
	stream := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "echo",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("one two three")}, StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}})
	acc := openai.ChatCompletionAccumulator{}
	chunks := 0
	for stream.Next() {
		chunks++
		if !acc.AddChunk(stream.Current()) {
			t.Errorf("a chunk that does not fit: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if m := acc.Choices[0]; m.Message.Content != "one two three" || m.FinishReason != "stop" || m.Message.Role != "assistant" || acc.Usage.TotalTokens != 17 || chunks != 6 {
		t.Errorf("%+v %d", acc, chunks)
	}
}

// TestSDKTools plays the whole loop: the model calls a tool of the client, the
// client answers, the model goes on.
func TestSDKTools(t *testing.T) {
	a, c := sdk(t)
	a.e.script("agent", func(r *fakeRun) {
		if n := len(r.req.History); n > 0 && r.req.History[n-1].Role == message.RoleToolResult {
			step(r, 0, "It is "+r.req.History[n-1].Content[0].Text+".")
			r.end(event.RunCompleted, "stop", "", nil)
			return
		}
		step(r, 1)
		r.mu.Lock()
		r.view.ToolCalls = []message.Block{message.Call("c1", "weather", []byte(`{"city":"Oslo"}`))}
		r.mu.Unlock()
		r.end(event.RunCompleted, "client_tool_calls", "", nil)
	})
	for _, streamed := range []bool{false, true} {
		p := openai.ChatCompletionNewParams{Model: "agent", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("The weather in Oslo?")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather",
				Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}})}}
		ask := func() openai.ChatCompletionChoice {
			if !streamed {
				got, err := c.Chat.Completions.New(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				return got.Choices[0]
			}
			stream := c.Chat.Completions.NewStreaming(t.Context(), p)
			acc := openai.ChatCompletionAccumulator{}
			for stream.Next() {
				acc.AddChunk(stream.Current())
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			return acc.Choices[0]
		}
		first := ask()
		if first.FinishReason != "tool_calls" || len(first.Message.ToolCalls) != 1 || first.Message.ToolCalls[0].Function.Arguments != `{"city":"Oslo"}` {
			t.Fatalf("%+v", first)
		}
		p.Messages = append(p.Messages, first.Message.ToParam(), openai.ToolMessage("rainy", first.Message.ToolCalls[0].ID))
		if last := ask(); last.Message.Content != "It is rainy." || last.FinishReason != "stop" {
			t.Errorf("%+v", last)
		}
	}
	if s := a.e.lastStart(); len(s.Input) != 0 || len(s.History) != 3 || s.Overrides.ClientTools[0].Name != "weather" {
		t.Errorf("%+v", s)
	}
}

func TestSDKModels(t *testing.T) {
	_, c := sdk(t)
	page, err := c.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range page.Data {
		ids = append(ids, m.ID)
	}
	if strings.Join(ids, " ") != "echo manual agentd-task" {
		t.Errorf("%v", ids)
	}
	if m, err := c.Models.Get(t.Context(), "echo@1.0.0"); err != nil || m.ID != "echo@1.0.0" {
		t.Errorf("%+v %v", m, err)
	}
}

// TestSDKErrors holds that errors reach the client as its own type, and that a
// failed run is not paid for again by its retries.
func TestSDKErrors(t *testing.T) {
	a, c := sdk(t)
	ask := func(model string) *openai.Error {
		t.Helper()
		_, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}})
		var e *openai.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		return e
	}
	if e := ask("nope"); e.StatusCode != 404 || e.Code != "model_not_found" || e.Param != "model" || e.Type != "invalid_request_error" {
		t.Errorf("%+v", e)
	}
	a.e.script("busy", func(r *fakeRun) {
		r.end(event.RunFailed, "model_error", "", &event.Error{Kind: "overloaded", Message: "busy"})
	})
	if e := ask("busy"); e.StatusCode != 503 || e.Code != "overloaded" {
		t.Errorf("%+v", e)
	}
	if n := len(a.e.started); n != 1 {
		t.Errorf("%d runs were started for one request", n)
	}
	// A stream that the provider broke off is not taken for an answer.
	a.e.script("broken", func(r *fakeRun) {
		r.emit(event.StepStarted, &event.Step{})
		say(r, "The answer is")
		r.end(event.RunFailed, "model_error", "", &event.Error{Kind: "overloaded", Message: "busy"})
	})
	s := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "broken", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}})
	text, finish := "", ""
	for s.Next() {
		if ch := s.Current().Choices; len(ch) > 0 {
			text, finish = text+ch[0].Delta.Content, finish+ch[0].FinishReason
		}
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "busy") || text != "The answer is" || finish != "" {
		t.Errorf("the stream said %q, finish %q, and ended with %v", text, finish, err)
	}
	if n := len(a.e.started); n != 2 {
		t.Errorf("%d runs were started for two requests", n)
	}
}
