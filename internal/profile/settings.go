package profile

// Settings are the server's own (agentd.yaml). Flags of the command line come first.
type Settings struct {
	// Address to listen on. Beyond loopback only where there is an API key, unless `--allow-remote-without-keys` says otherwise.
	Addr string `json:"addr" default:"127.0.0.1:7070" format:"addr"`
	// Folder for everything that is stored; `:memory:` keeps nothing. Empty: the user's data folder.
	Data string `json:"data,omitempty" example:"/var/lib/agentd"`
	// PostgreSQL database that everything is stored in instead, as `postgres://USER@HOST:PORT/DATABASE`; `AGENTD_STORE` and the flag `--store` come first. The password is better kept in `PGPASSWORD` or a passfile. Empty: the folder `data`.
	Store Secret `json:"store,omitempty" example:"postgres://agentd@db.example.com/agentd?sslmode=verify-full"`
	// How that database is used.
	Database Database `json:"database,omitzero"`
	// How several nodes share that database.
	Cluster Cluster `json:"cluster,omitzero"`
	// Autonomous runs that are started at certain times, by any server or worker and once each.
	Schedules []Schedule `json:"schedules,omitempty" example:"[{name: nightly, cron: \"0 3 * * *\", profile: default, input: \"Look for what is new.\"}]"`
	// Folder that built-in tools may read. A relative path is below the folder that agentd was started in. Empty: that folder.
	Workspace string `json:"workspace,omitempty" example:"/srv/project"`
	// Profile for requests that name none, and for unknown model names of the OpenAI-compatible API. Empty: those are errors there; `agentd run` takes the profile named `default` (`demo` while that has no API key), and fails if there is none.
	DefaultProfile string `json:"default_profile,omitempty" example:"default"`
	// Profile for the one-shot tasks of chat clients (titles, tags, follow-ups). Empty: the profile of the chat.
	TaskProfile string `json:"task_profile,omitempty" example:"default"`
	// Sizes and counts that protect the server.
	Limits Limits `json:"limits"`
	// How long results that were too large for the model are kept.
	Artifacts Artifacts `json:"artifacts"`
	// Images in one request to a model.
	Images Images `json:"images"`
	// Files and copies of sessions.
	Sessions Sessions `json:"sessions"`
	// What agents remember, and where.
	Memory MemoryKeeping `json:"memory"`
	// How large skills may be.
	Skills SkillLimits `json:"skills"`
	// What runs may use together.
	Budgets SharedBudgets `json:"budgets,omitzero" example:"{per_session: {max_cost_usd: 5}, per_tenant_day: {max_cost_usd: 50}}"`
	// Names besides localhost under which the server is called, each with or without a port. Empty: on loopback localhost and loopback addresses alone; beyond it any name where API keys are needed, any address where none are.
	Hosts []string `json:"hosts,omitempty" example:"[agents.example.com]"`
	// Certificate of the server; with one it speaks HTTPS alone.
	TLS TLS `json:"tls,omitzero"`
	// Sizes and times of connections.
	HTTP HTTP `json:"http"`
	// Which web pages may call the API.
	CORS CORS `json:"cors,omitzero" example:"{origins: [\"http://127.0.0.1:3000\"]}"`
	// The server's log, on standard error.
	Log Log `json:"log"`
	// Traces, metrics and where they go.
	Telemetry Telemetry `json:"telemetry"`
}

// Limits protect the server.
type Limits struct {
	// Bytes of a request body; more is answered with 413.
	MaxBodyBytes int64 `json:"max_body_bytes" default:"16777216" min:"1024"`
	// Bytes of a tool result that the model reads; a larger one is stored as an artifact and the model gets its beginning.
	MaxResultBytes int64 `json:"max_result_bytes" default:"30720" min:"1024"`
	// Bytes of `page` in a request, the page that is open in the host application.
	MaxPageBytes int64 `json:"max_page_bytes" default:"16384" min:"64"`
	// Bytes of all `references` of a request, what the person attached.
	MaxReferencesBytes int64 `json:"max_references_bytes" default:"65536" min:"64"`
	// Bytes of all `context_blocks` of a request, what else the model is to know.
	MaxContextBytes int64 `json:"max_context_bytes" default:"65536" min:"64"`
	// How long a run asks for what goes with its first message (`context_sources` of its profile), all together. What did not come in time is left out.
	ContextTimeout Duration `json:"context_timeout" default:"2s" min:"1ms"`
	// Bytes of all AGENTS.md files that one prompt has; of more the rest is left out, the nearest file's last.
	MaxAgentsFilesBytes int64 `json:"max_agents_files_bytes" default:"30720" min:"256"`
	// Megabytes of memory for what is kept of long conversations between their runs, so that a turn reads what is new alone. 0: nothing is kept.
	ConversationCacheMB int `json:"conversation_cache_mb" default:"32" min:"0" max:"65536"`
	// Runs that execute at the same time; more wait in the queue.
	MaxConcurrentRuns int `json:"max_concurrent_runs" default:"1024" min:"1"`
	// Levels of subagents below a run that was started from outside: 1 means that subagents have none of their own. A run at the last level is refused to start another; this is also what bounds profiles that name each other.
	MaxSubagentDepth int `json:"max_subagent_depth" default:"4" min:"1"`
	// Events that a slow reader may lag behind before it is disconnected; it can go on where it was.
	MaxEventLag int `json:"max_event_lag" default:"4096" min:"16"`
	// Hours that the sessions of the OpenAI-compatible API are kept after their runs; its clients keep their own history. What they used stays in the sums. 0: kept.
	EphemeralSessionsHours int `json:"ephemeral_sessions_hours" default:"24" min:"0" max:"87600"`
	// Schedules that one tenant may make over the API, besides those of this file.
	MaxSchedules int `json:"max_schedules" default:"100" min:"1" max:"100000"`
	ToolLimits
}

// ToolLimits bound what tools may send or look at.
type ToolLimits struct {
	// Bytes of one message of an MCP server. A larger answer is dropped and its call fails; a server that sends more without an end of line is started again.
	MaxMCPMessageBytes int `json:"max_mcp_message_bytes" default:"10485760" min:"1048576"`
	// Tools of one MCP server; one that lists more can not be used.
	MaxMCPTools int `json:"max_mcp_tools" default:"2000" min:"1"`
	// Lines that `file_read` gives in one result.
	MaxReadLines int `json:"max_read_lines" default:"2000" min:"1"`
	// Bytes of text that `file_read`, `glob` and `grep` give in one result.
	MaxReadBytes int `json:"max_read_bytes" default:"51200" min:"1024"`
	// Bytes of a file that `grep` searches; larger ones are skipped, and the result says so.
	MaxSearchFileBytes int64 `json:"max_search_file_bytes" default:"10485760" min:"1024"`
	// Files and folders that one `glob` or `grep` looks at.
	MaxSearchFiles int `json:"max_search_files" default:"200000" min:"1"`
	// Levels of folders that the context source `tree` opens; 1 is the workspace itself alone.
	MaxTreeDepth int `json:"max_tree_depth" default:"4" min:"1" max:"100"`
	// Files and folders that it lists; levels are filled from the top, and the listing says where entries are left out.
	MaxTreeEntries int `json:"max_tree_entries" default:"400" min:"1" max:"100000"`
	// Bytes of the listing.
	MaxTreeBytes int `json:"max_tree_bytes" default:"16384" min:"256"`
}

// CORS is for browsers.
type CORS struct {
	// Origins that may call the API, each as `scheme://host[:port]`; no patterns. Empty: none.
	Origins []string `json:"origins,omitempty" format:"origin" example:"[\"http://127.0.0.1:3000\"]"`
}

// Log is the server's log.
type Log struct {
	// Least level that is logged.
	Level string `json:"level" default:"info" enum:"debug,info,warn,error"`
	// `text` for people, `json` for machines.
	Format string `json:"format" default:"text" enum:"text,json"`
	// Where lines go: `stderr`, `stdout`, `otel` (the collector and the file of `telemetry`), or `file:PATH`. Empty: `stderr`. A profile's `log_destinations` come first for its runs.
	Destinations []string `json:"destinations,omitempty" example:"[stderr, \"file:/var/log/agentd.log\"]"`
	// How much of prompts, arguments and results is logged where a profile allows more: all of it, with secrets masked, or hashes only.
	PayloadPolicy string `json:"payload_policy" default:"redacted" enum:"full,redacted,hashes"`
	// Fields and attributes whose values are masked, besides those that are known to hold secrets (`password`, `api_key`, `authorization` and so on). Names count as endings too, without case, `-` and `_`.
	RedactFields []string `json:"redact_fields,omitempty" example:"[iban, date_of_birth]"`
	// Kinds of personal data that are masked in every line: `email`, `phone`, `credit_card`. A profile's `pii_policy` adds to it for its runs.
	PII []string `json:"pii,omitempty" example:"[email, phone, credit_card]"`
	// Megabytes that a log file may have, `telemetry.file` too; then it becomes `PATH.1`, the one before `PATH.2`, and a new one begins. 0: it grows. Programs that move log files away themselves send SIGHUP.
	MaxSizeMB int `json:"max_size_mb" default:"100" min:"0" max:"1048576"`
	// Older files that are kept beside each log file.
	MaxFiles int `json:"max_files" default:"5" min:"0" max:"1000"`
}

// Telemetry is traces and metrics, in the names of OpenTelemetry.
type Telemetry struct {
	// Whether runs are traced, of all profiles; a profile's `trace_enabled` does it for its own.
	TraceEnabled bool `json:"trace_enabled" default:"false"`
	// Whether metrics are counted. `GET /metrics` shows them in Prometheus' text form; with `otlp_endpoint` they are sent, too.
	MetricsEnabled bool `json:"metrics_enabled" default:"true"`
	// Part of the runs that is traced; the lower one of this and the profile's counts.
	SamplingRate float64 `json:"sampling_rate" default:"1" min:"0" max:"1"`
	// OTLP collector for traces, metrics and logs, over HTTP with JSON; `/v1/traces` and so on are added. Empty: `OTEL_EXPORTER_OTLP_ENDPOINT`, else none.
	OTLPEndpoint string `json:"otlp_endpoint,omitempty" format:"url" example:"http://127.0.0.1:4318"`
	// HTTP headers for the collector. Values are treated as secrets. `OTEL_EXPORTER_OTLP_HEADERS` adds to them.
	OTLPHeaders map[string]Secret `json:"otlp_headers,omitempty" example:"{Authorization: \"Bearer ${OTLP_TOKEN}\"}"`
	// File that traces and logs are appended to, a request of OTLP's JSON form a line. Empty: none.
	File string `json:"file,omitempty" example:"/var/log/agentd-telemetry.jsonl"`
	// How often metrics are sent to the collector.
	ExportInterval Duration `json:"export_interval" default:"60s" min:"1s"`
	// The name of this process in traces and metrics.
	ServiceName string `json:"service_name" default:"agentd"`
}
