package profile

import (
	"fmt"
	"strings"
	"testing"
)

// Each case is one file; want lists every problem with its place.
func TestProblems(t *testing.T) {
	tests := []struct {
		name, file, text, want string
	}{
		{"unknown key", "agents/a.yaml", minimal + "max_tool_cals: 3\n",
			"c/agents/a.yaml:4:1: error: max_tool_cals: unknown key (did you mean max_tool_calls?)"},
		{"unknown key below", "agents/a.yaml", minimal + "tools:\n  mcp_server: [x]\n",
			"c/agents/a.yaml:5:3: error: tools.mcp_server: unknown key (did you mean mcp_servers?)"},
		{"unlike any key", "agents/a.yaml", minimal + "tools: {zzz: 1}\n",
			"c/agents/a.yaml:4:9: error: tools.zzz: unknown key (known here: mcp_servers, builtin, deny, late)"},
		{"a part of the name", "agents/a.yaml", minimal + "steps: 1\n",
			"c/agents/a.yaml:4:1: error: steps: unknown key (did you mean max_steps?)"},
		{"all at once", "agents/a.yaml", minimal + "max_steps: many\ntemperature: 3\noutput_style: terse\nretry: {base_delay: 1x}\nlabels: one\n", `
c/agents/a.yaml:4:12: error: max_steps: must be an integer, not a text (write an integer, without quotes)
c/agents/a.yaml:5:14: error: temperature: is out of range (write a value from 0 to 2)
c/agents/a.yaml:6:15: error: output_style: does not know the value "terse" (one of: concise, verbose, json)
c/agents/a.yaml:7:21: error: retry.base_delay: is not a duration (write it with its unit, such as 500ms, 10s or 2m30s)
c/agents/a.yaml:8:9: error: labels: must be a list, not a text (put it in brackets: [item])`},
		{"wrong types", "agents/a.yaml", minimal + `
max_steps: 1.5
max_tool_calls: "3"
auto_approve_in_daemon: yes
description: 3
temperature: hot
tools: [x]
labels: {a: b}
retry: {base_delay: 1}
system_prompt: [x]
max_cost_usd: cheap
max_failures_per_run: 99999999999999999999
few_shot_examples: [x]
`, `
c/agents/a.yaml:5:12: error: max_steps: must be an integer, not a number with decimals (write an integer)
c/agents/a.yaml:6:17: error: max_tool_calls: must be an integer, not a text (write an integer, without quotes)
c/agents/a.yaml:7:25: error: auto_approve_in_daemon: must be true or false, not a text (write true or false, without quotes)
c/agents/a.yaml:8:14: error: description: must be a text, not an integer (put it in quotes)
c/agents/a.yaml:9:14: error: temperature: must be a number, not a text (write a number, without quotes)
c/agents/a.yaml:10:8: error: tools: must be a mapping, not a list (write a mapping)
c/agents/a.yaml:11:9: error: labels: must be a list, not a mapping (begin each item with "- ")
c/agents/a.yaml:12:21: error: retry.base_delay: a duration without its unit (write it with its unit, such as 500ms, 10s or 2m30s)
c/agents/a.yaml:13:16: error: system_prompt: must be a text, not a list (write a text)
c/agents/a.yaml:14:15: error: max_cost_usd: must be an amount in US dollars, not a text (write an amount in US dollars, without quotes)
c/agents/a.yaml:15:23: error: max_failures_per_run: is too large (write a smaller number)
c/agents/a.yaml:16:21: error: few_shot_examples[0]: must be a mapping, not a text (write a mapping)`},
		{"out of range", "agents/a.yaml", minimal + "max_steps: -1\ntool_timeout_seconds: 0\ntop_p: 1.1\nsampling_rate: .nan\nmax_cost_usd: -1\nretry: {max_delay: -1s, max_retries: 101}\n", `
c/agents/a.yaml:4:12: error: max_steps: is out of range (write 0 or more)
c/agents/a.yaml:5:23: error: tool_timeout_seconds: is out of range (write 1 or more)
c/agents/a.yaml:6:8: error: top_p: is out of range (write a value from 0 to 1)
c/agents/a.yaml:7:16: error: sampling_rate: must be a number, not .inf or .nan (write a number)
c/agents/a.yaml:8:15: error: max_cost_usd: is out of range (write 0 or more)
c/agents/a.yaml:9:20: error: retry.max_delay: is out of range (write 0s or more)
c/agents/a.yaml:9:38: error: retry.max_retries: is out of range (write a value from 0 to 100)`},
		{"duplicate key", "agents/a.yaml", minimal + "max_steps: 3\nmax_steps: 4\n",
			"c/agents/a.yaml:5:1: error: max_steps: given twice; first on line 4 (keep one)"},
		{"no value", "agents/a.yaml", minimal + "max_steps:\nlabels:\n",
			"c/agents/a.yaml:4:1: error: max_steps: has no value (give one, or remove the key)"},
		{"missing variable", "agents/a.yaml", minimal + "description: \"a ${NOPE} b\"\n",
			"c/agents/a.yaml:4:14: error: description: the environment variable NOPE is not set (set it, or give a default: ${NOPE:-default})"},
		{"bad expansion", "agents/a.yaml", minimal + "description: \"${a b}\"\nsystem_prompt: ${x\noutput_style: ${A:-${B}}\nmax_steps: ${N}\n", `
c/agents/a.yaml:4:14: error: description: ${...} holds no name of an environment variable (write ${NAME} or ${NAME:-default}; $${ stands for a plain ${)
c/agents/a.yaml:5:16: error: system_prompt: ${ without its } (write ${NAME} or ${NAME:-default}; $${ stands for a plain ${)
c/agents/a.yaml:6:15: error: output_style: a default inside ${...} holds another ${ (write a plain text behind the :-)
c/agents/a.yaml:7:12: error: max_steps: must be an integer, not a text (the environment fills texts only: write the value itself)`},
		{"what is required", "agents/a.yaml", "description: x\nfallback_models: [{provider: script}]\n", `
c/agents/a.yaml:1:1: error: primary_model: is missing (add it, such as primary_model: {provider: anthropic, model: claude-sonnet-5})
c/agents/a.yaml:1:1: error: profile_name: is missing (add it, such as profile_name: default)
c/agents/a.yaml:2:19: error: fallback_models[0].model: is missing (add it, such as model: claude-sonnet-5)`},
		{"names and versions", "agents/a.yaml", "profile_name: a b\nprofile_version: \"1.0\"\nprimary_model: {provider: script, model: m}\n", `
c/agents/a.yaml:1:1: error: profile_name: is not a name (use 1 to 64 letters, digits, dots, _ or -, beginning with a letter or digit)
c/agents/a.yaml:2:1: error: profile_version: is not a semantic version (write MAJOR.MINOR.PATCH, such as "1.2.0")`},
		{"a version without quotes", "agents/a.yaml", minimal + "profile_version: 1.0\n",
			"c/agents/a.yaml:4:18: error: profile_version: must be a text, not a number with decimals (put it in quotes)"},
		{"unknown names", "agents/a.yaml", minimal + "tools: {mcp_servers: [flies, zzzzzz], builtin: [workspac, zzzzzzzzz], deny: [\"[\"]}\nsubagents: [aa]\nmemory_provider: nobody\n", `
c/agents/a.yaml:4:23: error: tools.mcp_servers[0]: no MCP server is named "flies" (did you mean files?; servers are defined in mcp/servers.yaml)
c/agents/a.yaml:4:30: error: tools.mcp_servers[1]: no MCP server is named "zzzzzz" (there are: files; servers are defined in mcp/servers.yaml)
c/agents/a.yaml:4:49: error: tools.builtin[0]: no built-in tool or group is named "workspac" (did you mean workspace?)
c/agents/a.yaml:4:59: error: tools.builtin[1]: no built-in tool or group is named "zzzzzzzzz" (there are: file_read, glob, grep, workspace)
c/agents/a.yaml:4:78: error: tools.deny[0]: is not a pattern (write a tool's name, or a pattern with * and ?)
c/agents/a.yaml:5:13: error: subagents[0]: no profile is named "aa" (did you mean a?)
c/agents/a.yaml:6:1: error: memory_provider: no MCP server is named "nobody" (there are: files; servers are defined in mcp/servers.yaml)`},
		{"a pattern of tools", "agents/a.yaml", minimal + "cache_tool_calls: [\"get_*\", \"[\"]\n",
			"c/agents/a.yaml:4:29: error: cache_tool_calls[1]: is not a pattern (write a tool's name, or a pattern with * and ?)"},
		{"an agent that names itself", "agents/a.yaml", minimal + "subagents: [a]\n",
			"c/agents/a.yaml:4:13: notice: subagents[0]: this agent can start itself: a → a (that is fine where it is meant; limits.max_subagent_depth in agentd.yaml bounds it)"},
		{"providers", "agents/a.yaml", "profile_name: a\nprimary_model: {provider: ollama, model: m}\nfallback_models:\n  - {provider: opnai, model: m}\n  - {provider: gemini, model: m, ollama: {num_ctx: 9}}\n  - {provider: openai, model: m, script: x, base_url: nowhere, api_key_env: sk-abc}\n  - {provider: script, model: m, script: ../x}\n  - {provider: script, model: m, script: nope.yaml}\n", `
c/agents/a.yaml:4:16: error: fallback_models[0].provider: does not know the value "opnai" (did you mean openai? one of: anthropic, openai, azure, gemini, ollama, script)
c/agents/a.yaml:5:34: error: fallback_models[1].ollama: is only for provider: ollama (remove it, or write provider: ollama)
c/agents/a.yaml:6:34: error: fallback_models[2].script: is only for provider: script (remove it, or write provider: script)
c/agents/a.yaml:6:55: error: fallback_models[2].base_url: is not an address (write http://host/path or https://host/path)
c/agents/a.yaml:6:77: error: fallback_models[2].api_key_env: is not the name of an environment variable (write the variable's name, not the key itself)
c/agents/a.yaml:7:34: error: fallback_models[3].script: leads out of the configs folder (put the script into the folder, or write an absolute path)
c/agents/a.yaml:8:34: error: fallback_models[4].script: the script can not be read (write the path relative to the configs folder)`},
		{"cache lifetimes", "agents/a.yaml", "profile_name: a\nprimary_model: {provider: anthropic, model: m, cache_ttl: 24h}\nfallback_models: [{provider: openai, model: o, cache_ttl: 1h}, {provider: script, model: s, cache_ttl: 5m}, {provider: openai, model: o, cache_ttl: 2h}]\n", `
c/agents/a.yaml:2:48: error: primary_model.cache_ttl: provider anthropic does not keep prompts for 24h (write 5m or 1h)
c/agents/a.yaml:3:48: error: fallback_models[0].cache_ttl: provider openai does not keep prompts for 1h (write 24h)
c/agents/a.yaml:3:93: error: fallback_models[1].cache_ttl: provider script does not keep prompts for 5m (remove it: this provider has no setting for it)
c/agents/a.yaml:3:149: error: fallback_models[2].cache_ttl: does not know the value "2h" (did you mean 1h? one of: 5m, 1h, 24h)`},
		{"limits that limit nothing", "agents/a.yaml", minimal + "rate_limits: {per_org: {burst: 3}, per_user: {requests_per_minute: 1, burst: 2}}\n", `
c/agents/a.yaml:4:25: warning: rate_limits.per_org.burst: has no effect without requests_per_minute (say how many runs may start in a minute)`},
		{"values that contradict", "agents/a.yaml", minimal + "retry: {base_delay: 2m}\ntemperature: 0\ntop_p: 1\nrouting_strategy: single\nfallback_models: [{provider: script, model: x}]\nlog_destinations: [syslog]\npii_policy: {redact: [\"(\"]}\nmemory_enabled: true\n", `
c/agents/a.yaml:4:1: error: retry.base_delay: is longer than retry.max_delay (make it shorter)
c/agents/a.yaml:6:1: warning: top_p: temperature is set too; some models refuse both (keep one)
c/agents/a.yaml:8:1: warning: fallback_models: are never used with routing_strategy: single (remove them, or write routing_strategy: fallback)
c/agents/a.yaml:9:20: error: log_destinations[0]: is not a destination (one of: stderr, stdout, otel, file:PATH)
c/agents/a.yaml:10:23: error: pii_policy.redact[0]: is not a regular expression (see https://golang.org/s/re2syntax)`},
		{"skills and memory", "agents/a.yaml", minimal + "memory_enabled: true\npii_policy: {never_store: [email, iban]}\nskills: {enabled: true, create: true, project: false, user: false, paths: [../x, none, \"\", agents, /nowhere], deny: [\"[\"]}\n", `
c/agents/a.yaml:5:35: warning: pii_policy.never_store[1]: agentd can not recognise "iban"; the model is told not to remember it (it recognises email, phone, credit_card; patterns go into pii_policy.redact)
c/agents/a.yaml:6:25: error: skills.create: there is nowhere to write skills to (allow skills.project or skills.user)
c/agents/a.yaml:6:76: error: skills.paths[0]: leads out of the configs folder (put the skills into the folder, or write an absolute path)
c/agents/a.yaml:6:82: error: skills.paths[1]: there is no such file or folder (write the path relative to the configs folder)
c/agents/a.yaml:6:88: error: skills.paths[2]: is empty (name a folder or a file)
c/agents/a.yaml:6:118: error: skills.deny[0]: is not a pattern (write a skill's name, or a pattern with * and ?)`},
		{"syntax", "agents/a.yaml", "profile_name: a\n  b: [\n",
			"c/agents/a.yaml:1:15: error: YAML syntax: mapping value is not allowed in this context (check indentation, quotes and brackets around here)"},
		{"tab", "agents/a.yaml", "tools:\n\tbuiltin: []\n",
			"c/agents/a.yaml:2:1: error: YAML syntax: found character '\t' that cannot start any token (check indentation, quotes and brackets around here)"},
		{"empty", "agents/a.yaml", "# nothing\n",
			"c/agents/a.yaml:1:1: error: the file is empty (fill it, or delete it; `agentd config init` writes examples)"},
		{"two documents", "agents/a.yaml", minimal + "---\na: 1\n",
			"c/agents/a.yaml:5:1: error: a second document in one file (keep one document and put the other in its own file)"},
		{"not a mapping", "agents/a.yaml", "- a\n",
			"c/agents/a.yaml:1:1: error: must be a mapping, not a list (write a mapping)"},
		{"aliases", "agents/a.yaml", minimal + "labels: &l [*l]\ntags: [*none]\ndescription: !foo x\n", `
c/agents/a.yaml:4:13: error: labels[0]: must be a text, not a list (write a text)
c/agents/a.yaml:5:8: error: tags[0]: an alias without its anchor: *none (define &none first)
c/agents/a.yaml:6:14: error: description: a YAML tag (remove it: tags are not used here)`},
		{"too large", "agents/a.yaml", minimal + "description: " + strings.Repeat("x", maxFile) + "\n",
			"c/agents/a.yaml:1:1: error: the file has 1048651 bytes, more than 1048576 (split it)"},
		{"too deep", "agents/a.yaml", strings.Repeat("[", 100_000),
			"c/agents/a.yaml:1:1025: error: nested deeper than 64 levels (a bracket is likely not closed)"},
		{"settings", "agentd.yaml", "addr: localhost\ndefault_profile: dfault\ntask_profile: x\nlimits: {max_body_bytes: 1, max_event_lag: x}\nlog: {level: loud}\ncors: {origins: [\"http://a/b\"]}\nport: 1\n", `
c/agentd.yaml:1:7: error: addr: is not host:port (such as 127.0.0.1:7070)
c/agentd.yaml:2:1: error: default_profile: no profile is named "dfault" (did you mean default?)
c/agentd.yaml:3:1: error: task_profile: no profile is named "x" (there are: default)
c/agentd.yaml:4:26: error: limits.max_body_bytes: is out of range (write 1024 or more)
c/agentd.yaml:4:44: error: limits.max_event_lag: must be an integer, not a text (write an integer, without quotes)
c/agentd.yaml:5:14: error: log.level: does not know the value "loud" (one of: debug, info, warn, error)
c/agentd.yaml:6:18: error: cors.origins[0]: is not an origin (write scheme://host[:port] without a path, such as http://127.0.0.1:3000)
c/agentd.yaml:7:1: error: port: unknown key (known here: addr, data, store, database, cluster, schedules, workspace, default_profile, task_profile, limits, artifacts, images, sessions, memory, skills, budgets, hosts, tls, http, cors, log, telemetry)`},
		{"network", "agentd.yaml", "hosts: [a.example.com, 'b:7070', '::1', 192.0.2.1, 'http://c', '*.d', '']\ntls: {cert: c.pem}\nhttp: {header_timeout: 0s, max_header_bytes: 1}\ncors: {origins: ['*', 'https://*.x']}\n", `
c/agentd.yaml:1:52: error: hosts[4]: is not a host (write a name or an address, such as agents.example.com, without scheme, path and patterns)
c/agentd.yaml:1:64: error: hosts[5]: is not a host (write a name or an address, such as agents.example.com, without scheme, path and patterns)
c/agentd.yaml:1:71: error: hosts[6]: is not a host (write a name or an address, such as agents.example.com, without scheme, path and patterns)
c/agentd.yaml:2:1: error: tls.key: is missing: a certificate needs its private key (name the PEM file that holds it)
c/agentd.yaml:3:24: error: http.header_timeout: is out of range (write 1ms or more)
c/agentd.yaml:3:46: error: http.max_header_bytes: is out of range (write 4096 or more)
c/agentd.yaml:4:18: error: cors.origins[0]: is a pattern, which matches no origin (write each origin out: scheme://host[:port], such as http://127.0.0.1:3000)
c/agentd.yaml:4:23: error: cors.origins[1]: is a pattern, which matches no origin (write each origin out: scheme://host[:port], such as http://127.0.0.1:3000)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{tt.file: tt.text, "mcp/servers.yaml": "servers: {files: {transport: stdio, command: x}}"}
			if tt.file == "agentd.yaml" {
				files["agents/default.yaml"] = strings.ReplaceAll(minimal, "name: a", "name: default")
			}
			c, problems := load(files, &Options{Builtins: []string{"workspace", "file_read", "glob", "grep"}})
			want := strings.TrimSpace(tt.want) + "\n"
			if got := lines(problems); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if len(problems.Errors()) > 0 && c.Profiles["a"] != nil {
				t.Error("a profile with errors is in the configuration")
			}
			if err := problems.Err(); (err == nil) != (len(problems.Errors()) == 0) {
				t.Errorf("Err() = %v", err)
			}
		})
	}
}

func TestDuplicateProfiles(t *testing.T) {
	_, problems := load(map[string]string{"agents/a.yaml": minimal, "agents/b.yml": "\n" + minimal}, nil)
	want := "c/agents/b.yml:3:1: error: profile_name: another profile is named \"a\": c/agents/a.yaml, line 2 (rename one of them)\n"
	if got := lines(problems); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNoProfiles(t *testing.T) {
	_, problems := load(map[string]string{"mcp/servers.yaml": "servers:\n  # none\n"}, nil)
	want := "c/agents:1:1: error: there are no profiles (write agents/NAME.yaml; `agentd config init` writes examples)\n"
	if got := lines(problems); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Whatever is wrong with it, a value from the environment is not shown.
func TestProblemsKeepSecrets(t *testing.T) {
	for _, text := range []string{
		"thinking: ${S}", "primary_model: {provider: \"${S}\", model: m}", "tools: {mcp_servers: [\"${S}\"], builtin: [\"${S}\"], deny: [\"[${S}\"]}",
		"subagents: [\"${S}\"]", "retry: {base_delay: \"${S}\"}", "profile_version: ${S}", "memory_provider: ${S}", "pii_policy: {redact: [\"(${S}\"]}",
		"primary_model: {provider: script, model: m, base_url: \"${S}\", api_key_env: \"${S}\"}", "log_destinations: [\"${S}\"]", "domain: ${S}",
		"primary_model: {provider: script, model: m, script: \"${S}\"}",
	} {
		_, problems := load(map[string]string{"agents/a.yaml": "profile_name: a\n" + text + "\n"},
			&Options{Env: env("S", "hush-hush"), Builtins: []string{}})
		if len(problems) == 0 || strings.Contains(lines(problems), "hush") {
			t.Errorf("%s:\n%s", text, lines(problems))
		}
	}
}

// A document that doubles with each alias is refused, not followed.
func TestBillionLaughs(t *testing.T) {
	var b strings.Builder
	b.WriteString(minimal + "x0: &x0 {a: 1}\n")
	for i := range 30 {
		fmt.Fprintf(&b, "x%d: &x%d {<<: *x%d, <<: *x%d}\n", i+1, i+1, i, i)
	}
	b.WriteString("prompt_templates: *x30\n")
	_, problems := load(map[string]string{"agents/a.yaml": b.String()}, nil)
	if !strings.Contains(lines(problems), "too large when its aliases are followed") {
		t.Errorf("problems:\n%.500s", lines(problems))
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("agents/a.yaml", minimal)
	f.Add("agents/a.yaml", minimal+"tools: {builtin: [x]}\nretry: {base_delay: 1s}\n")
	f.Add("agents/a.yaml", "a: &x {b: *x}\n<<: *x\n")
	f.Add("agents/a.yaml", "? [a]\n: !!map {1: 2}\n")
	f.Add("agents/a.yaml", "profile_name: ${A:-${B}}\n")
	f.Add("agents/a.yaml", "%YAML 1.2\n---\n...\n---\n- |\n  x\n")
	f.Add("mcp/servers.yaml", "servers: {a: {transport: stdio, command: x, args: [y]}}")
	f.Add("mcp.json", "{\n\t\"mcpServers\": {\"a\": {\"type\": \"http\", \"url\": \"http://x\", \"disabled\": true}}}")
	f.Add("agentd.yaml", "addr: :1\nlimits: {max_body_bytes: 0x10}\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		switch name {
		case "agents/a.yaml", "mcp/servers.yaml", "mcp.json", "agentd.yaml":
		default:
			name = "agents/a.yaml"
		}
		_, problems := load(map[string]string{name: text}, &Options{Builtins: []string{"workspace"}})
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.File == "" || p.Message == "" || p.Severity == "" {
				t.Errorf("a problem without its place: %+v", p)
			}
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "${A}", "$${A}", "${A:-b}", "${", "a${B}c", "$$${A}", "${A:-}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, expanded, msg, _ := expand(s, env("A", "1"))
		if msg == "" && !expanded && !strings.Contains(s, "${") && out != s {
			t.Errorf("%q became %q", s, out)
		}
	})
}

// What has no place in a file shows none.
func TestProblemWithoutPlace(t *testing.T) {
	p := Problem{File: "a.yaml", Severity: SeverityWarning, Key: "k", Message: "m", Hint: "h"}
	if got := p.String(); got != "a.yaml: warning: k: m (h)" {
		t.Error(got)
	}
}
