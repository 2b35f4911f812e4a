package profile

import (
	"agentd/internal/prompt"
	"agentd/message"
)

// Profile is one agent: what it is for, which models think for it, which tools
// it has and where it must stop. Keys are flat; the embedded structs only group
// them. A profile is read-only once loaded.
//
// Zero means "no limit" for limits and "the model's own" for model settings,
// unless a field says otherwise.
type Profile struct {
	Identity
	Routing
	Prompting
	ToolAccess
	Approval
	SessionModes
	Budgets
	Execution
	Turns
	Context
	Memory
	SkillAccess
	Observability
	Reliability
	Composition

	// File is where the profile was read from.
	File string `json:"-"`
	// Sections are those of the folder that `sections` names, in order.
	SectionFiles []prompt.Section `json:"-"`
}

// Identity names a profile and its version.
type Identity struct {
	// Stable name that clients use, also as `model` of the OpenAI-compatible API. Letters, digits, `.`, `_` and `-`; at most 64.
	ProfileName string `json:"profile_name" required:"true" example:"default"`
	// Semantic version, quoted. A run records the version it ran with.
	ProfileVersion string `json:"profile_version" default:"0.1.0" example:"\"1.2.0\""`
	// What the agent is for, in one or two sentences for people.
	Description string `json:"description,omitempty" example:"Answers questions about this repository."`
	// Words to filter profiles by in a user interface.
	Labels []string `json:"labels,omitempty" example:"[general]"`
	// More words to filter by; kept apart from labels for clients that know only one of them.
	Tags []string `json:"tags,omitempty" example:"[coding, research]"`
}

// Routing says which model answers.
type Routing struct {
	// The model that answers.
	PrimaryModel Model `json:"primary_model" required:"true" example:"{provider: anthropic, model: claude-sonnet-5}"`
	// Models that take over, in order, when the one before is rate limited, overloaded, failing or too slow. Models whose API key is not set are left out.
	FallbackModels []Model `json:"fallback_models,omitempty" example:"[{provider: openai, model: gpt-6-sol}]"`
	// Further models that a session may choose (`agentd sessions model`), besides the primary one and the fallbacks. They answer only where they are chosen; the others stand in for them then.
	Models []Model `json:"models,omitempty" example:"[{provider: anthropic, model: claude-opus-5}]"`
	// How a model is chosen: `single` never falls back, `fallback` takes the models in order, `cost_aware` and `latency_aware` prefer the cheapest or fastest that works.
	RoutingStrategy string `json:"routing_strategy" default:"fallback" enum:"single,fallback,cost_aware,latency_aware"`
	// Tokens of the context window to use; 0: all that the model has.
	MaxContextTokens int `json:"max_context_tokens,omitempty" min:"0" example:"120000"`
	// Tokens of one reply. Not set: 15000, or the model's own limit if that is lower; models that agentd does not know are told no limit.
	MaxOutputTokens int `json:"max_output_tokens,omitempty" min:"0" example:"8192"`
	// Sampling temperature. Not set: the provider's default. Some models refuse it.
	Temperature *float64 `json:"temperature,omitempty" min:"0" max:"2" example:"0.2"`
	// Nucleus sampling. Not set: the provider's default. Set this or `temperature`, not both.
	TopP *float64 `json:"top_p,omitempty" min:"0" max:"1" example:"0.95"`
	// How much the model thinks before it answers; each provider's nearest level is taken, and `adaptive` leaves it to the model. Not set: `low` with models that are known to decide themselves when to think, unless a temperature, `top_p` or less than 4096 tokens of output are asked for; otherwise the provider's default.
	Thinking string `json:"thinking,omitempty" enum:"off,adaptive,minimal,low,medium,high,xhigh,max" example:"medium"`
	// Whether the model may call several tools in one reply. If false it is asked for one at a time, where it has such a switch; a request can ask for that too.
	ParallelToolCalls bool `json:"parallel_tool_calls" default:"true"`
}

// Model names a model and how to reach it.
type Model struct {
	// Who serves the model. `openai` is also right for every server that speaks the OpenAI protocol: set `base_url`. `ollama` speaks Ollama's own API. `script` is the built-in scripted model, which needs no key.
	Provider string `json:"provider" required:"true" enum:"anthropic,openai,azure,gemini,ollama,script"`
	// The provider's own id of the model.
	Model string `json:"model" required:"true" example:"claude-sonnet-5"`
	// Where the API is, as in that provider's own SDK: OpenAI's ends in `/v1`, Anthropic's, Gemini's and Ollama's do not. Empty: the provider's own address; for `ollama` that of `OLLAMA_HOST`, else this machine. Of `azure`: the resource's address, see `azure`.
	BaseURL string `json:"base_url,omitempty" format:"url" example:"http://127.0.0.1:11434/v1"`
	// Name of the environment variable that holds the API key; the key itself never stands in a file. Empty: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` (else `GOOGLE_API_KEY`), `OLLAMA_API_KEY` and so on. With a `base_url` and no `api_key_env`, and for `ollama`, a missing key is no error.
	APIKeyEnv string `json:"api_key_env,omitempty" format:"env" example:"MY_GATEWAY_KEY"`
	// For provider `script`: the script file, relative to the configs folder. Empty: the built-in demonstration.
	Script string `json:"script,omitempty" example:"scripts/greeter.yaml"`
	// Which of OpenAI's two APIs is spoken, for providers `openai` and `azure`: `responses` keeps the model's reasoning from step to step, `chat` (Chat Completions) is what other servers speak. `auto`: `responses` at OpenAI's own address and at Azure from API version 2025-03-01 on, else `chat`.
	API string `json:"api,omitempty" default:"auto" enum:"auto,responses,chat"`
	// Summaries of what the model thought, which `responses` gives; OpenAI wants the organisation verified for some models, and refuses requests otherwise: `none` does not ask.
	ReasoningSummary string `json:"reasoning_summary,omitempty" default:"auto" enum:"auto,concise,detailed,none"`
	// For provider `azure`: the resource, the deployment, and who agentd is to it.
	Azure Azure `json:"azure,omitzero" example:"{resource: my-resource, auth: managed_identity}"`
	// For provider `ollama`: how the server loads the model.
	Ollama Ollama `json:"ollama,omitzero" example:"{num_ctx: 32768, keep_alive: 30m}"`
	// HTTP headers sent with each request. Values are treated as secrets.
	Headers map[string]Secret `json:"headers,omitempty" example:"{X-Team: \"${TEAM}\"}"`
	// Name of the output limit on the wire, for servers that know only one: `auto` takes what fits the address.
	MaxTokensField string `json:"max_tokens_field,omitempty" default:"auto" enum:"auto,max_tokens,max_completion_tokens"`
	// How long the provider keeps the beginning of a prompt that it has read: `5m` or `1h` with Anthropic (an hour costs twice the price of input to write, five minutes 1.25 times), `24h` with OpenAI. Not set: five minutes with Anthropic, with others what the provider does.
	CacheTTL string `json:"cache_ttl,omitempty" enum:"5m,1h,24h" example:"1h"`
	// Whether `prompt_cache_key`, which sends the requests of a session to where their beginning is cached, goes with requests of provider `openai`: `auto` sends it to OpenAI's own address alone, because other servers may refuse it.
	PromptCacheKey string `json:"prompt_cache_key,omitempty" default:"auto" enum:"auto,yes,no"`
	// Calls of this provider at its address that run at the same time; further ones wait. Shared by all profiles that say the same. 0: no limit.
	ConcurrencyLimit int `json:"concurrency_limit,omitempty" min:"0" example:"16"`
	// Where several nodes share the runs: its calls are made at nodes that serve the pool `model.NAME` of this name, with that pool's network and keys. Empty: at those that serve `model`.
	Pool string `json:"pool,omitempty" format:"pool" example:"big"`
	// What its tokens cost, where agentd does not know or the price is another, in whatever tier of service the provider serves them. Not set: the known price; a reply that says that it was served in another tier (`flex`, `priority`, `batch`) costs what that tier does, and where nobody knows that, the usual price, marked as estimated. Caps reserve the usual price: if the provider serves all of a project in a dearer tier, write its price here. All profiles that name the model share it.
	Price *Price `json:"price,omitempty" example:"{input: 0.15, output: 0.60}"`
}

// Ollama says how an Ollama server loads a model.
type Ollama struct {
	// Tokens of the context that the model is loaded with; it takes memory. 0: the server's default, which is small on small machines. What does not fit is an error, after which agentd makes the conversation shorter; the server never cuts it by itself.
	NumCtx int `json:"num_ctx,omitempty" min:"0" example:"32768"`
	// How long the model stays loaded after a call. 0: the server's default, five minutes.
	KeepAlive Duration `json:"keep_alive,omitempty" min:"0s" example:"30m"`
}

// Price is what a model costs, in US dollars for a million tokens. What costs nothing is priced at 0.
type Price struct {
	// Tokens of the prompt.
	Input message.Money `json:"input" required:"true" min:"0" example:"0.15"`
	// Tokens of the reply, thoughts included.
	Output message.Money `json:"output" required:"true" min:"0" example:"0.60"`
	// Tokens of the prompt that came from the provider's cache. Not set: as `input`.
	CacheRead message.Money `json:"cache_read,omitempty" min:"0" example:"0.015"`
	// Tokens of the prompt that were written to the provider's cache. Not set: as `input`.
	CacheWrite message.Money `json:"cache_write,omitempty" min:"0" example:"0.19"`
}

// Prompting is what the model is told.
type Prompting struct {
	// Role and instructions. Empty: a short neutral prompt.
	SystemPrompt string `json:"system_prompt,omitempty" example:"You are a careful assistant."`
	// Texts added to the system prompt in certain situations.
	PromptTemplates PromptTemplates `json:"prompt_templates,omitzero"`
	// Example exchanges shown to the model before the conversation.
	FewShotExamples []Example `json:"few_shot_examples,omitempty"`
	// How answers should look. With `json` an answer is one JSON value: by the provider's structured output where it has that; one that is none is asked for once more. Not set: nothing is said about it.
	OutputStyle string `json:"output_style,omitempty" enum:"concise,verbose,json" example:"concise"`
	PromptParts
}

// PromptTemplates are added to the system prompt.
type PromptTemplates struct {
	// Added when a person is there.
	InteractivePreamble string `json:"interactive_preamble,omitempty" example:"Ask when a request is ambiguous."`
	// Added when nobody watches.
	AutonomousPreamble string `json:"autonomous_preamble,omitempty" example:"Nobody will answer. Decide, and say what you assumed."`
	// Added when the agent has tools.
	ToolUsePreamble string `json:"tool_use_preamble,omitempty" example:"Read before you answer."`
	// How to ask for approval or input.
	CheckpointPreamble string `json:"checkpoint_preamble,omitempty" example:"Say what you want to do and what it changes."`
}

// Example is one exchange.
type Example struct {
	// What the person says.
	User string `json:"user" required:"true"`
	// What the agent answers.
	Assistant string `json:"assistant" required:"true"`
}

// ToolAccess says which tools the agent has.
type ToolAccess struct {
	// The tools. Empty: none.
	Tools Tools `json:"tools,omitzero" example:"{mcp_servers: [files], builtin: [workspace], deny: [\"*_delete\"]}"`
}

// Tools selects tools.
type Tools struct {
	// Names of servers in `mcp/servers.yaml`, whose tools the agent gets.
	MCPServers []string `json:"mcp_servers,omitempty" example:"[files]"`
	// Names of built-in tools or groups: `workspace` (which is `file_read`, `glob` and `grep`), `file_read`, `glob`, `grep`, `ask_user_question` (the model may ask) and `propose_plan` (it may have a plan approved), both in interactive runs.
	Builtin []string `json:"builtin,omitempty" example:"[workspace]"`
	// Tools to take away again, wherever they come from, `ask_user_question` and `create_subagent` included: names, or patterns with `*` and `?`. A tool of an MCP server is meant by its server's name for it, by `SERVER_TOOL`, and by the name the model knows.
	Deny []string `json:"deny,omitempty" example:"[\"*_delete\"]"`
	// What becomes of tools that come, go or change during a conversation. `gateway`: requests keep the list that the conversation began with, so that what the provider has cached stays good; new tools are described beside the person's next words and called through the tool `call_tool`, those that are gone answer with an error. `append`: the list is what there is, and each change of it has the whole prompt read again.
	Late string `json:"late,omitempty" default:"append" enum:"append,gateway" example:"gateway"`
}

// Approval says when a person must agree.
type Approval struct {
	// Which tool calls wait for a person: `never`, `always`, or by `policy` (the tool's server and `approval_policies`).
	ApprovalMode string `json:"approval_mode" default:"policy" enum:"never,always,policy"`
	// What needs a person's word in mode `policy`.
	ApprovalPolicies ApprovalPolicies `json:"approval_policies"`
	// How questions are answered: in free text, or also by choices and forms that the model makes (a JSON Schema, which answers are held against).
	CheckpointSchema string `json:"checkpoint_schema" default:"structured" enum:"freeform,structured"`
	// Whether autonomous runs approve by themselves. If false, `autonomous_approval` says what happens.
	AutoApproveInDaemon bool `json:"auto_approve_in_daemon" default:"false"`
	// What becomes of calls that need approval in autonomous runs: `capture` records them as proposals, which a person applies or discards after the run (a subagent becomes a run of its own then); `fail` refuses them, and the model is told so.
	AutonomousApproval string `json:"autonomous_approval" default:"capture" enum:"capture,fail"`
	// What becomes of approvals, questions and plans that nobody answers. Runs of subagents go by their own profile.
	Interrupts Interrupts `json:"interrupts,omitzero" example:"{expire_after: 24h, on_expiry: reject}"`
}

// Interrupts end by themselves if they are told to.
type Interrupts struct {
	// How long an interrupt stays open, also while agentd is not running. 0: until somebody answers.
	ExpireAfter Duration `json:"expire_after,omitempty" min:"0s" example:"24h"`
	// What nobody's answer means for an approval. `approve` lets the call run, unless it deletes, runs commands or is marked dangerous; plans and calls that may have happened are never approved by nobody.
	OnExpiry string `json:"on_expiry" default:"reject" enum:"reject,approve"`
	// What the model gets as the answer to a question that expired. Empty: that nobody answered.
	DefaultAnswer string `json:"default_answer,omitempty" example:"Use your own judgement."`
}

// ApprovalPolicies name what needs approval.
type ApprovalPolicies struct {
	// Tools that change something.
	WriteOps bool `json:"write_ops" default:"true"`
	// Tools that delete, run commands or are marked dangerous.
	DangerousOps bool `json:"dangerous_ops" default:"true"`
	// Going on beyond a limit: an interactive run asks a person for more of `max_cost_usd`, `max_tokens_per_run`, `max_tool_calls`, `max_failures_per_run` and `max_steps`, its own and what its subagents share; autonomous runs never ask. If false, or if the person says no, the answer is closed. Budgets of sessions and tenants are never asked for.
	BudgetExceeded bool `json:"budget_exceeded" default:"false"`
}

// Budgets stop a run that goes on for too long.
type Budgets struct {
	// Model calls for one message of a person. One more, without tools, closes the answer.
	MaxSteps int `json:"max_steps" default:"50" min:"0"`
	// Tool calls of one run and its subagents. Further ones are refused, and one more model call, without tools, closes the answer. Subagents that run side by side may pass it by the calls of one reply each.
	MaxToolCalls int `json:"max_tool_calls,omitempty" min:"0" example:"200"`
	// Time from start to end of a run, waits for people not counted.
	MaxRunTimeSeconds int `json:"max_run_time_seconds" default:"600" min:"0"`
	// A model that sends nothing for so long has failed.
	ModelIdleTimeoutSeconds int `json:"model_idle_timeout_seconds" default:"120" min:"1"`
	// A model call that takes longer has failed, however much it sends. Nothing pauses this clock; retries start it anew.
	ModelTotalTimeoutSeconds int `json:"model_total_timeout_seconds" default:"600" min:"1"`
	// Time of one tool call. A tool's own limit comes first.
	ToolTimeoutSeconds int `json:"tool_timeout_seconds" default:"120" min:"1"`
	// Money that a run and its subagents may cost, in US dollars. It is never passed: each model call is made when the most that it can cost fits, its reply is shortened if it has to be, and the means to close the answer are kept back. Every model of the profile needs a known price.
	MaxCostUSD message.Money `json:"max_cost_usd,omitempty" min:"0" example:"1.50"`
	// Tokens that a run and its subagents may use, read and written together, cached ones included. Kept as `max_cost_usd` is.
	MaxTokensPerRun int `json:"max_tokens_per_run,omitempty" min:"0" example:"200000"`
	// Failed tool calls of one run and its subagents. The run fails then.
	MaxFailuresPerRun int `json:"max_failures_per_run,omitempty" min:"0" example:"10"`
	// How often in a row the same call, with the same arguments, may fail. Then the model is asked for an answer without tools. 0: no limit.
	MaxSameFailures int `json:"max_same_failures" default:"3" min:"0"`
	// How often in a row the same call, with the same arguments, may have the same result; for agents that watch something, raise it. 0: no limit.
	MaxSameCalls int `json:"max_same_calls" default:"5" min:"0"`
	// How much may be used in a minute. A request over a limit is answered with 429 and when to try again; a run under way waits. What a user or an organisation uses with other profiles counts, too. Counted by each process for itself.
	RateLimits RateLimits `json:"rate_limits,omitzero" example:"{per_user: {requests_per_minute: 20}}"`
}

// RateLimits limit use over time.
type RateLimits struct {
	// For one user: the one that the client names (`user`, or the header of `http.user_header`), else the API key. Subagents count to the user of the run that started them.
	PerUser RateLimit `json:"per_user,omitzero"`
	// For one organisation (tenant), all its users together.
	PerOrg RateLimit `json:"per_org,omitzero"`
}

// RateLimit is a token bucket.
type RateLimit struct {
	// Runs started in a minute.
	RequestsPerMinute int `json:"requests_per_minute,omitempty" min:"0" example:"60"`
	// Tokens of models used in a minute, read or written, cached ones included. When they are used up, runs wait with their next model call.
	TokensPerMinute int `json:"tokens_per_minute,omitempty" min:"0" example:"200000"`
	// Runs that may start at once; then the rate counts. Not set: as many as `requests_per_minute`.
	Burst int `json:"burst,omitempty" min:"0" example:"5"`
}

// Execution says how a run behaves between its steps.
type Execution struct {
	// When a message that arrives during a run is read: `after_batch` lets the running tool calls finish, `skip_rest` skips those that have not started.
	Steering string `json:"steering" default:"after_batch" enum:"after_batch,skip_rest"`
	// How many waiting messages are delivered at a time.
	QueueMode string `json:"queue_mode" default:"one_at_a_time" enum:"one_at_a_time,all"`
	// How the tool calls of one reply run. Tools that say so always run one at a time.
	ToolExecution string `json:"tool_execution" default:"parallel" enum:"parallel,sequential"`
	// What a failed tool call means: `tell_model` lets the model decide, `fail_run` ends the run.
	OnToolFailure string `json:"on_tool_failure" default:"tell_model" enum:"tell_model,fail_run"`
}

// Composition makes an agent from parts.
type Composition struct {
	// Name of the domain pack (a folder under `domains/`) that makes the agent expert.
	Domain string `json:"domain,omitempty" example:"helpdesk"`
	// Profiles that this agent may start as subagents. Profiles may name each other, or themselves: `limits.max_subagent_depth` of agentd.yaml bounds how deep that goes.
	Subagents []string `json:"subagents,omitempty" example:"[researcher]"`
}
