package profile

// Memory is long-term memory. It is expected to change and stands alone for that.
type Memory struct {
	// Whether the agent remembers across sessions. [memory.md](memory.md) says how.
	MemoryEnabled bool `json:"memory_enabled" default:"false"`
	// Name of an MCP server that keeps the memory instead of agentd: one with the tools of the reference server `memory` (`create_entities`, `add_observations`, `delete_observations`, `open_nodes`). Empty: agentd keeps it.
	MemoryProvider string `json:"memory_provider,omitempty" example:"memory"`
	// When something is remembered: never, when a person asks for it, or by the agent's own judgement. What the model wrote after it read outputs of tools needs a person's word with `explicit`, and is kept apart as a quotation with `auto`.
	WritePolicy string `json:"write_policy" default:"explicit" enum:"never,explicit,auto"`
	// When memory is read: with the first message and whenever it has changed, when the agent asks (tool `recall`), or what a classifier of words finds to have to do with the message.
	ReadPolicy string `json:"read_policy" default:"on_demand" enum:"always,on_demand,classifier"`
	// Days until what was remembered is deleted; 0: kept. What people wrote into the file by hand stays.
	RetentionDays int `json:"retention_days,omitempty" min:"0" example:"90"`
	// What must not be remembered. Logs of the profile's runs mask it, too. Secrets are never remembered.
	PIIPolicy PIIPolicy `json:"pii_policy,omitzero"`
}

// PIIPolicy protects personal data.
type PIIPolicy struct {
	// Kinds of data that are never stored. `email`, `phone` and `credit_card` are recognised; of others the model is told.
	NeverStore []string `json:"never_store,omitempty" example:"[email, phone, credit_card]"`
	// Regular expressions (RE2); what they match is masked before it is stored.
	Redact []string `json:"redact,omitempty" format:"regex" example:"[\"[0-9]{16}\"]"`
}

// Observability is logs, traces and metrics of a profile's runs.
type Observability struct {
	// Least level that is logged of the profile's runs; at `info` the server's level counts. At `debug` each call of a model or a tool is a line, with what was said as `log_payload_policy` allows.
	LogLevel string `json:"log_level" default:"info" enum:"debug,info,warn,error"`
	// Where logs of the profile's runs go: `stderr`, `stdout`, `otel`, or `file:PATH`. Empty: as `log.destinations` of agentd.yaml.
	LogDestinations []string `json:"log_destinations,omitempty" example:"[stderr]"`
	// How much of prompts, arguments and results is logged: all of it, with secrets masked, or hashes only.
	LogPayloadPolicy string `json:"log_payload_policy" default:"redacted" enum:"full,redacted,hashes"`
	// Whether the profile's runs are traced; `telemetry` of agentd.yaml says where to. It can also trace all profiles.
	TraceEnabled bool `json:"trace_enabled" default:"false"`
	// Whether the profile's runs are counted in the metrics.
	MetricsEnabled bool `json:"metrics_enabled" default:"true"`
	// Part of the runs that is traced; the lower one of this and `telemetry.sampling_rate` counts.
	SamplingRate float64 `json:"sampling_rate" default:"1" min:"0" max:"1"`
}

// Reliability says what happens when something fails.
type Reliability struct {
	// Whether an `Idempotency-Key` header makes the second of two equal requests return the first one's run.
	IdempotencyKeys bool `json:"idempotency_keys" default:"true"`
	// Whether a run that was under way when the process ended goes on at the next start. If false it fails then. A run that a node hands over to others as it stops was not interrupted, and goes on in any case.
	ResumeOnRestart bool `json:"resume_on_restart" default:"true"`
	// How often a failed step is tried again before the run fails.
	RetryFailedSteps int `json:"retry_failed_steps,omitempty" min:"0" max:"10" example:"1"`
	// How failed model calls are tried again.
	Retry Retry `json:"retry"`
	// When something that keeps failing is left alone for a while.
	CircuitBreakers CircuitBreakers `json:"circuit_breakers,omitzero" example:"{provider: {failures: 5, cooldown: 30s}}"`
}

// Retry is exponential backoff.
type Retry struct {
	// Whether failed model calls are tried again at all.
	Enabled bool `json:"enabled" default:"true"`
	// Attempts after the first, for each model.
	MaxRetries int `json:"max_retries" default:"3" min:"0" max:"100"`
	// Wait before the first retry; it doubles each time. A provider's own Retry-After comes first.
	BaseDelay Duration `json:"base_delay" default:"1s" min:"0s"`
	// Longest wait, to which up to a tenth is added so that runs do not come back all at once. A provider that asks for more is not waited for: the next model takes over.
	MaxDelay Duration `json:"max_delay" default:"60s" min:"0s"`
}

// CircuitBreakers, by what they guard. Profiles that say the same share them.
type CircuitBreakers struct {
	// Each tool. Results that are errors count, which is why each tenant has its own.
	Tool Breaker `json:"tool,omitzero"`
	// Each MCP server. What counts is that it can not be reached, breaks off or takes too long.
	Server Breaker `json:"server,omitzero"`
	// Each model provider at its address, and with its `api_key_env` if that is given: limits are an account's. An open one leads to the next model at once; without another the run waits, if `retry` allows it.
	Provider Breaker `json:"provider,omitzero"`
}

// Breaker opens after failures in a row and closes again after a while.
type Breaker struct {
	// Failures in a row that open it; 0: no breaker.
	Failures int `json:"failures,omitempty" min:"0" example:"5"`
	// How long it stays open. 0: thirty seconds. Then one call is let through to try.
	Cooldown Duration `json:"cooldown,omitempty" min:"0s" example:"30s"`
}
