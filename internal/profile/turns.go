package profile

// Turns bound and steer one turn: from a message of a person to the answer.
type Turns struct {
	// Approvals that people are asked for between a message and its answer. The call that would need one more is not asked about: the model is told so, and to finish or to ask in text. Questions and plans do not count, nor do approvals that were remembered. A subagent's run is a turn of its own, by its own profile.
	MaxApprovalsPerTurn int `json:"max_approvals_per_turn" default:"5" min:"0"`
	// Tool calls that an answer should rest on. A model that answers after fewer is asked once more, once a message; then its answer is taken. Calls that were refused do not count.
	MinToolCalls int `json:"min_tool_calls,omitempty" min:"0" example:"1"`
	// Tools whose calls are not repeated within a turn: names, or patterns with `*` and `?`. An equal call of a tool that is declared `read` or `idempotent` gets the result that the earlier one had, as long as no call that may change something, and no word of a person, came since. The last 32 results are remembered. Leave out tools whose answers change by themselves, such as clocks and what is polled.
	CacheToolCalls []string `json:"cache_tool_calls,omitempty" example:"[\"crm_get_*\", file_read]"`
	// When reasoning of answered turns is left out of requests: once a message came so long after the answer. Until then providers have the prompt in their cache, which leaving something out would break. 0: never; `1ms`: with the next message.
	DropReasoningAfter Duration `json:"drop_reasoning_after" default:"5m" min:"0s"`
}
