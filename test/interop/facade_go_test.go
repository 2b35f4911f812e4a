//go:build unix

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"agentd/event"
)

// goClient is OpenAI's own Go client on a server.
func goClient(w *world, more ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(w.url + "/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0)}, more...)...)
}

func chat(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "facade", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

var weatherTool = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather", Parameters: shared.FunctionParameters{
	"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}})

// ask asks once, streamed or not, and gives the one choice.
func ask(t *testing.T, c *openai.Client, p openai.ChatCompletionNewParams, streamed bool) openai.ChatCompletionChoice {
	t.Helper()
	if !streamed {
		got, err := c.Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return got.Choices[0]
	}
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("a chunk that does not fit: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if acc.Usage.TotalTokens == 0 || acc.Usage.TotalTokens != acc.Usage.PromptTokens+acc.Usage.CompletionTokens {
		t.Errorf("usage: %s", acc.Usage.RawJSON())
	}
	return acc.Choices[0]
}

func TestFacadeGo(t *testing.T) {
	t.Parallel()
	w := facade(t)
	c := goClient(w)
	models, err := c.Models.List(t.Context())
	if err != nil || len(models.Data) == 0 || models.Data[0].ID != "facade" {
		t.Fatalf("models: %+v, %v", models, err)
	}
	for _, streamed := range []bool{false, true} {
		if got := ask(t, &c, chat("Hello"), streamed); got.Message.Content != "You said: Hello" || got.FinishReason != "stop" {
			t.Errorf("streamed %v: %s %s", streamed, got.FinishReason, got.Message.Content)
		}
		// The server's tools are its own affair.
		if got := ask(t, &c, chat("Please list the files."), streamed); !strings.Contains(got.Message.Content, "There is present.txt.") || len(got.Message.ToolCalls) != 0 {
			t.Errorf("streamed %v: %+v", streamed, got.Message)
		}
		// The client's are handed back.
		p := chat("List the files and tell me the weather.")
		p.Tools = []openai.ChatCompletionToolUnionParam{weatherTool}
		got := ask(t, &c, p, streamed)
		if got.FinishReason != "tool_calls" || len(got.Message.ToolCalls) != 1 {
			t.Fatalf("streamed %v: %s %+v", streamed, got.FinishReason, got.Message)
		}
		call := got.Message.ToolCalls[0]
		var args struct{ City string }
		if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil || call.Function.Name != "weather" || args.City != "Oslo" {
			t.Errorf("streamed %v: %s(%s), %v", streamed, call.Function.Name, call.Function.Arguments, err)
		}
		p.Messages = append(p.Messages, got.Message.ToParam(), openai.ToolMessage("sun", call.ID))
		if got := ask(t, &c, p, streamed); got.Message.Content != "In Oslo there is sun." || got.FinishReason != "stop" {
			t.Errorf("streamed %v: %s %s", streamed, got.FinishReason, got.Message.Content)
		}
	}
}

func TestFacadeGoErrors(t *testing.T) {
	t.Parallel()
	w := facade(t)
	c := goClient(w)
	for name, want := range map[string]struct {
		change      func(p *openai.ChatCompletionNewParams)
		status      int
		code, param string
	}{
		"model":   {func(p *openai.ChatCompletionNewParams) { p.Model = "nobody" }, 404, "model_not_found", "model"},
		"n":       {func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(2) }, 400, "unsupported_parameter", "n"},
		"message": {func(p *openai.ChatCompletionNewParams) { p.Messages = nil }, 400, "invalid_value", "messages"},
	} {
		p := chat("x")
		want.change(&p)
		_, err := c.Chat.Completions.New(t.Context(), p)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != want.status || e.Param != want.param || e.Code != want.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFacadeGoDisconnect: a run ends with its client.
func TestFacadeGoDisconnect(t *testing.T) {
	t.Parallel()
	w := facade(t)
	var resp *http.Response
	c := goClient(w, option.WithResponseInto(&resp))
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	stream := c.Chat.Completions.NewStreaming(ctx, chat("Take your time."))
	for stream.Next() {
		if d := stream.Current().Choices; len(d) > 0 && d[0].Delta.Content != "" {
			hangUp()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("the stream ended with %v", stream.Err())
	}
	late, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last event.Type
	for e, err := range w.client.Watch(late, resp.Header.Get("X-Agentd-Run-Id"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Type
	}
	if last != event.RunCancelled {
		t.Errorf("the run ended with %s", last)
	}
}
