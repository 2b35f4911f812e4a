package sim

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	antoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	oaioption "github.com/openai/openai-go/v3/option"

	"agentd/model/script"
)

// The official Go SDKs are the clients here: what they read out of the wire has
// to be what the script says.

const sdkScript = `
latency: {size: 5}
turns:
- when: {user: fail}
  fault: {kind: rate_limited, retry_after: 7s, times: 1}
  text: recovered
- when: {user: cut}
  fault: {kind: cut, after: 2}
  text: this is never read to its end
- thinking: Let me see.
  text: "I look for \"{{.User}}\"."
  tool_calls:
  - {name: grep, arguments: {pattern: "a\nb", n: 3}}
  - {name: glob, arguments: {pattern: "*"}}
- text: "{{range .Results}}{{.Name}}={{.Text}}{{if .IsError}}!{{end}} {{end}}"
  usage: {input: 11, output: 7, cache_read: 5, cache_write: 0}
`

func oaiClient(t *testing.T, src string) openai.Client {
	srv := httptest.NewServer(New(Options{Scripts: []*script.Script{mustScript(t, src)}}))
	t.Cleanup(srv.Close)
	return openai.NewClient(oaioption.WithBaseURL(srv.URL+"/v1"), oaioption.WithAPIKey("test"), oaioption.WithMaxRetries(0))
}

func antClient(t *testing.T, src string) anthropicsdk.Client {
	srv := httptest.NewServer(New(Options{Scripts: []*script.Script{mustScript(t, src)}}))
	t.Cleanup(srv.Close)
	return anthropicsdk.NewClient(antoption.WithBaseURL(srv.URL), antoption.WithAPIKey("test"), antoption.WithMaxRetries(0))
}

func oaiParams(text string) openai.ChatCompletionNewParams {
	tool := func(name string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: name, Parameters: openai.FunctionParameters{"type": "object"}})
	}
	return openai.ChatCompletionNewParams{Model: "m", Tools: []openai.ChatCompletionToolUnionParam{tool("grep"), tool("glob")},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage(text)}}
}

// oaiCall makes a call, streamed or not, and returns the message.
func oaiCall(ctx context.Context, c openai.Client, p openai.ChatCompletionNewParams, stream bool) (*openai.ChatCompletion, error) {
	if !stream {
		return c.Chat.Completions.New(ctx, p)
	}
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := c.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	acc := openai.ChatCompletionAccumulator{}
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return nil, errors.New("the accumulator refused a chunk")
		}
	}
	return &acc.ChatCompletion, s.Err()
}

func TestOpenAISDK(t *testing.T) {
	for _, stream := range []bool{false, true} {
		c := oaiClient(t, sdkScript)
		p := oaiParams("x")
		for step := range 2 {
			m, err := oaiCall(t.Context(), c, p, stream)
			if err != nil {
				t.Fatalf("stream %v, step %d: %v", stream, step, err)
			}
			msg := m.Choices[0].Message
			if step == 1 {
				if msg.Content != "grep=found it glob=found it " || m.Choices[0].FinishReason != "stop" {
					t.Errorf("stream %v: second reply %q %s", stream, msg.Content, m.Choices[0].FinishReason)
				}
				if u := m.Usage; u.PromptTokens != 16 || u.CompletionTokens != 7 || u.TotalTokens != 23 || u.PromptTokensDetails.CachedTokens != 5 {
					t.Errorf("stream %v: usage %+v", stream, u)
				}
				break
			}
			if msg.Content != `I look for "x".` || m.Choices[0].FinishReason != "tool_calls" || len(msg.ToolCalls) != 2 || m.Usage.PromptTokens == 0 {
				t.Fatalf("stream %v: first reply %s", stream, m.RawJSON())
			}
			p.Messages = append(p.Messages, msg.ToParam())
			for i, call := range msg.ToolCalls {
				want := []string{`{"pattern":"a\nb","n":3}`, `{"pattern":"*"}`}[i]
				if call.Function.Arguments != want || call.ID == "" || call.Type != "function" {
					t.Errorf("stream %v: call %+v", stream, call)
				}
				p.Messages = append(p.Messages, openai.ToolMessage("found it", call.ID))
			}
		}
	}
}

func TestOpenAISDKErrors(t *testing.T) {
	for _, stream := range []bool{false, true} {
		c := oaiClient(t, sdkScript)
		_, err := oaiCall(t.Context(), c, oaiParams("fail"), stream)
		var e *openai.Error
		if !errors.As(err, &e) {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if e.StatusCode != 429 || e.Code != "rate_limit_exceeded" || e.Response.Header.Get("Retry-After") != "7" || e.Response.Header.Get("X-Request-Id") == "" {
			t.Errorf("stream %v: %+v", stream, e)
		}
		if m, err := oaiCall(t.Context(), c, oaiParams("fail"), stream); err != nil || m.Choices[0].Message.Content != "recovered" {
			t.Errorf("stream %v: second attempt %v", stream, err)
		}
		if _, err := oaiCall(t.Context(), c, oaiParams("cut"), stream); err == nil || errors.As(err, &e) && e.StatusCode != 429 {
			t.Errorf("stream %v: a dropped connection gave %v", stream, err)
		}
		bad := oaiParams("x")
		bad.Messages = append(bad.Messages, openai.ToolMessage("r", "call_unknown"))
		if _, err := oaiCall(t.Context(), c, bad, stream); !errors.As(err, &e) || e.StatusCode != 400 || e.Param != "messages.[2].role" {
			t.Errorf("stream %v: orphan result gave %v", stream, err)
		}
	}
	c := oaiClient(t, "models: [a, b]\nturns: [{text: x}]")
	page, err := c.Models.List(t.Context())
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != "b" {
		t.Errorf("models: %v %v", page, err)
	}
}

func antParams(text string) anthropicsdk.MessageNewParams {
	tool := func(name string) anthropicsdk.ToolUnionParam {
		return anthropicsdk.ToolUnionParam{OfTool: &anthropicsdk.ToolParam{Name: name,
			InputSchema: anthropicsdk.ToolInputSchemaParam{Properties: map[string]any{}}}}
	}
	return anthropicsdk.MessageNewParams{Model: "m", MaxTokens: 1000, Tools: []anthropicsdk.ToolUnionParam{tool("grep"), tool("glob")},
		System:   []anthropicsdk.TextBlockParam{{Text: "be brief"}},
		Messages: []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewTextBlock(text))}}
}

func antCall(ctx context.Context, c anthropicsdk.Client, p anthropicsdk.MessageNewParams, stream bool) (*anthropicsdk.Message, error) {
	if !stream {
		return c.Messages.New(ctx, p)
	}
	s := c.Messages.NewStreaming(ctx, p)
	defer s.Close()
	var acc anthropicsdk.Message
	for s.Next() {
		if err := acc.Accumulate(s.Current()); err != nil {
			return nil, err
		}
	}
	return &acc, s.Err()
}

func TestAnthropicSDK(t *testing.T) {
	for _, stream := range []bool{false, true} {
		c := antClient(t, sdkScript)
		p := antParams("x")
		m, err := antCall(t.Context(), c, p, stream)
		if err != nil {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if m.StopReason != "tool_use" || len(m.Content) != 4 || m.Usage.InputTokens == 0 || m.Usage.OutputTokens < 5 {
			t.Fatalf("stream %v: first reply %+v", stream, m)
		}
		if th := m.Content[0]; th.Thinking != "Let me see." || th.Signature != script.Sign("Let me see.") {
			t.Errorf("stream %v: thinking %+v", stream, th)
		}
		if m.Content[1].Text != `I look for "x".` {
			t.Errorf("stream %v: text %q", stream, m.Content[1].Text)
		}
		var results []anthropicsdk.ContentBlockParamUnion
		for i, b := range m.Content[2:] {
			var got, want any
			_ = json.Unmarshal(b.Input, &got)
			_ = json.Unmarshal([]byte([]string{`{"pattern":"a\nb","n":3}`, `{"pattern":"*"}`}[i]), &want)
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			if string(g) != string(w) || b.ID == "" {
				t.Errorf("stream %v: call %s %s", stream, b.ID, b.Input)
			}
			results = append(results, anthropicsdk.NewToolResultBlock(b.ID, "found it", i == 1))
		}
		p.Messages = append(p.Messages, m.ToParam(), anthropicsdk.NewUserMessage(results...))
		m, err = antCall(t.Context(), c, p, stream)
		if err != nil {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if m.Content[0].Text != "grep=found it glob=found it! " || m.StopReason != "end_turn" {
			t.Errorf("stream %v: second reply %+v", stream, m)
		}
		if u := m.Usage; u.InputTokens != 11 || u.OutputTokens != 7 || u.CacheReadInputTokens != 5 {
			t.Errorf("stream %v: usage %+v", stream, u)
		}
	}
}

func TestAnthropicSDKErrors(t *testing.T) {
	for _, stream := range []bool{false, true} {
		c := antClient(t, sdkScript)
		_, err := antCall(t.Context(), c, antParams("fail"), stream)
		var e *anthropicsdk.Error
		if !errors.As(err, &e) {
			t.Fatalf("stream %v: %v", stream, err)
		}
		if e.StatusCode != 429 || e.Type() != "rate_limit_error" || e.Response.Header.Get("Retry-After") != "7" || e.RequestID == "" {
			t.Errorf("stream %v: %+v", stream, e)
		}
		if m, err := antCall(t.Context(), c, antParams("fail"), stream); err != nil || m.Content[0].Text != "recovered" {
			t.Errorf("stream %v: second attempt %v", stream, err)
		}
		if _, err := antCall(t.Context(), c, antParams("cut"), stream); err == nil {
			t.Errorf("stream %v: a dropped connection gave no error", stream)
		}
		bad := antParams("x")
		bad.Messages = []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewToolResultBlock("toolu_x", "r", false))}
		if _, err := antCall(t.Context(), c, bad, stream); !errors.As(err, &e) || e.StatusCode != 400 || e.Type() != "invalid_request_error" {
			t.Errorf("stream %v: orphan result gave %v", stream, err)
		}
	}
	c := antClient(t, "models: [a, b]\nturns: [{text: x, fault: {kind: overloaded, after: 0}}]")
	p := antParams("x")
	p.Model = "a"
	var e *anthropicsdk.Error
	if _, err := antCall(t.Context(), c, p, true); !errors.As(err, &e) || e.Type() != "overloaded_error" || e.StatusCode != 200 {
		t.Errorf("error in the stream: %v", err)
	}
	page, err := c.Models.List(t.Context(), anthropicsdk.ModelListParams{})
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != "b" {
		t.Errorf("models: %v %v", page, err)
	}
	n, err := c.Messages.CountTokens(t.Context(), anthropicsdk.MessageCountTokensParams{Model: "a", Messages: antParams("hello there").Messages})
	if err != nil || n.InputTokens == 0 {
		t.Errorf("count: %v %v", n, err)
	}
}
