package agentd

import (
	"testing"

	"agentd/model"
)

// What nobody asks for is only asked of models that are known to take it.
func TestModelDefaults(t *testing.T) {
	c := model.NewCatalogue()
	for _, want := range []struct {
		provider, id string
		tokens       int
		thinking     model.ThinkingLevel
	}{
		{"anthropic", "claude-sonnet-5", 15_000, model.ThinkingLow},
		{"anthropic", "claude-sonnet-4-5", 15_000, ""}, // thinks by a budget
		{"openai", "gpt-6-sol", 15_000, model.ThinkingLow},
		{"openai", "gpt-4.1", 15_000, ""},          // does not think
		{"openai", "gpt-4o-2024-05-13", 4_096, ""}, // short replies
		{"openai", "qwen3", 0, ""},                 // somebody's own server
		{"script", "demo-1", 0, ""},                // follows its script
		{"anthropic", "claude-of-tomorrow", 0, ""}, // not known
		{"openai", "o4-mini-2025-04-16", 15_000, model.ThinkingLow},
	} {
		info := c.Lookup(want.provider, want.id)
		if tokens, thinking := modelDefaults(&info); tokens != want.tokens || thinking != want.thinking {
			t.Errorf("%s/%s: %d tokens, thinking %q", want.provider, want.id, tokens, thinking)
		}
	}
}
