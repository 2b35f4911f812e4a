package profile

// Context says what becomes of conversations that outgrow the model's context window.
type Context struct {
	// When and how the older part of a conversation is replaced by a summary.
	Compaction Compaction `json:"compaction,omitzero"`
}

// Compaction says when and how conversations are summarised. Nothing is deleted: the history stays in the session.
type Compaction struct {
	// Whether conversations are compacted by themselves: when the next request would not leave `reserve_tokens` of the context window free, and when the provider refuses one as too large. If not, such a run ends with `context_overflow`; by hand (`agentd sessions compact`) it works all the same.
	Enabled bool `json:"enabled" default:"true"`
	// The model that writes summaries, such as a cheaper one. Not set, or without its API key: the model of the run. Where it fails the profile's other models are asked.
	Model *Model `json:"model,omitempty" example:"{provider: anthropic, model: claude-haiku-4-5}"`
	// Tokens of the context window that stay free for the reply; never more than a quarter of the window.
	ReserveTokens int `json:"reserve_tokens" default:"16384" min:"1"`
	// Tokens of what was said last that stay as they are, about; never more than half of what the system prompt, the tools, the summary and the reserve leave of the window.
	KeepRecentTokens int `json:"keep_recent_tokens" default:"20000" min:"1"`
	// Tokens of a summary; never more than an eighth of the window.
	MaxSummaryTokens int `json:"max_summary_tokens" default:"16000" min:"1"`
	// Requests that a summary is made in, one after the other, each with the summary so far, where what is summarised does not fit one. What does not fit so many either is told in less detail.
	MaxSummaryRequests int `json:"max_summary_requests" default:"8" min:"1"`
	// Steps for which a compaction ahead of a call that failed is not tried again; it is tried earlier when the conversation has grown by half of the reserve.
	RetryAfterSteps int `json:"retry_after_steps" default:"10" min:"1"`
}
