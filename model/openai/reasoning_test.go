package openai

import (
	"testing"

	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

func TestOldReasoningIsNotSent(t *testing.T) {
	modeltest.OldReasoning(t, "reasoning_content", `"reasoning_content":"THINK%d"`, func(t *testing.T, history []message.Message) string {
		return body(t, Config{Protocol: Chat}, &model.Request{Model: "m", MaxTokens: 9, Messages: session.DropReasoning(history, 300_000, nil)})
	})
}
