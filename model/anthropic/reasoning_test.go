package anthropic

import (
	"testing"

	"agentd/internal/session"
	"agentd/message"
	"agentd/model"
	"agentd/model/modeltest"
)

func TestOldReasoningIsNotSent(t *testing.T) {
	modeltest.OldReasoning(t, "sig", `{"type":"thinking","thinking":"THINK%d","signature":"sig"}`, func(t *testing.T, history []message.Message) string {
		return body(t, Config{}, &model.Request{Model: "m", MaxTokens: 9, Messages: session.DropReasoning(history, 300_000, nil)})
	})
}
