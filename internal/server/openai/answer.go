package openai

import (
	"encoding/json"
	"strconv"

	"agentd/event"
	"agentd/message"
)

// answer makes the objects of one answer.
type answer struct {
	id, model, fingerprint string
	created                int64
	// head is a chunk up to its choices.
	head []byte
}

func (a *answer) prepare() {
	b := []byte(`data: {"id":`)
	b = event.AppendString(b, a.id)
	b = append(b, `,"object":"chat.completion.chunk","created":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	b = event.AppendString(b, a.model)
	b = append(b, `,"system_fingerprint":`...)
	b = event.AppendString(b, a.fingerprint)
	a.head = append(b, `,"choices":[`...)
}

const (
	choiceHead = `{"index":0,"delta":{`
	choiceTail = "},\"logprobs\":null,\"finish_reason\":null}]}\n\n"
)

func (a *answer) role(b []byte) []byte {
	b = append(append(b, a.head...), choiceHead...)
	return append(append(b, `"role":"assistant","content":"","refusal":null`...), choiceTail...)
}

// delta appends a chunk with a text, under a key such as `"content":`.
func (a *answer) delta(b []byte, key, text string) []byte {
	b = append(append(b, a.head...), choiceHead...)
	b = event.AppendString(append(b, key...), text)
	return append(b, choiceTail...)
}

// finish appends the tool calls, the reason, the usage if it was asked for, and
// the end.
func (a *answer) finish(b []byte, end ending, includeUsage bool) []byte {
	for i, call := range end.calls {
		b = append(append(b, a.head...), choiceHead...)
		b = append(b, `"tool_calls":[{"index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = event.AppendString(append(b, `,"id":`...), call.ID)
		b = event.AppendString(append(b, `,"type":"function","function":{"name":`...), call.Name)
		b = event.AppendString(append(b, `,"arguments":`...), string(call.Arguments))
		b = append(append(b, `}}]`...), choiceTail...)
	}
	b = append(append(b, a.head...), choiceHead...)
	b = event.AppendString(append(b, `},"logprobs":null,"finish_reason":`...), end.finish)
	b = append(b, "}]}\n\n"...)
	if includeUsage {
		usage, _ := json.Marshal(usageOf(end.usage)) // numbers
		b = append(append(b, a.head...), `],"usage":`...)
		b = append(append(b, usage...), "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// failure ends a stream with an error chunk.
func (a *answer) failure(b []byte, e *Error) []byte {
	raw, _ := json.Marshal(struct {
		Error *Error `json:"error"`
	}{e}) // strings
	b = append(append(append(b, "data: "...), raw...), "\n\n"...)
	return append(b, "data: [DONE]\n\n"...)
}

// usageBody is the usage of the whole run: of all its model calls.
type usageBody struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	PromptDetails    struct {
		Cached int64 `json:"cached_tokens"`
		Audio  int64 `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
		Audio     int64 `json:"audio_tokens"`
		Accepted  int64 `json:"accepted_prediction_tokens"`
		Rejected  int64 `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

func usageOf(u *message.Usage) usageBody {
	var b usageBody
	if u == nil {
		return b
	}
	b.PromptTokens, b.CompletionTokens = u.Prompt(), u.Output
	b.TotalTokens = b.PromptTokens + b.CompletionTokens
	b.PromptDetails.Cached, b.CompletionDetails.Reasoning = u.CacheRead, u.Reasoning
	return b
}

type completionMessage struct {
	Role      string           `json:"role"`
	Content   *string          `json:"content"`
	Refusal   *string          `json:"refusal"`
	Reasoning string           `json:"reasoning_content,omitempty"`
	ToolCalls []completionCall `json:"tool_calls,omitempty"`
	// Annotations is always empty; the official types have it.
	Annotations []struct{} `json:"annotations"`
}

type completionCall struct {
	ID       string             `json:"id"`
	Type     string             `json:"type"`
	Function completionFunction `json:"function"`
}

type completionFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type completionChoice struct {
	Index        int               `json:"index"`
	Message      completionMessage `json:"message"`
	Logprobs     *struct{}         `json:"logprobs"`
	FinishReason string            `json:"finish_reason"`
}

type completion struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Choices     []completionChoice `json:"choices"`
	Usage       usageBody          `json:"usage"`
	ServiceTier string             `json:"service_tier"`
	Fingerprint string             `json:"system_fingerprint"`
}

func (a *answer) completion(c *collector, end ending) completion {
	text := string(c.text)
	m := completionMessage{Role: "assistant", Content: &text, Reasoning: string(c.thoughts), Annotations: []struct{}{}}
	if text == "" && len(end.calls) > 0 {
		m.Content = nil
	}
	for _, call := range end.calls {
		m.ToolCalls = append(m.ToolCalls, completionCall{ID: call.ID, Type: "function", Function: completionFunction{call.Name, string(call.Arguments)}})
	}
	return completion{ID: a.id, Object: "chat.completion", Created: a.created, Model: a.model, ServiceTier: "default", Fingerprint: a.fingerprint,
		Usage: usageOf(end.usage), Choices: []completionChoice{{Message: m, FinishReason: end.finish}}}
}
