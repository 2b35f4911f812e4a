package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"agentd/fault"
)

const minimal = `
profile_name: a
primary_model: {provider: script, model: m}
`

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func load(files map[string]string, opts *Options) (*Config, Problems) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if opts == nil {
		opts = &Options{}
	}
	if opts.Env == nil {
		opts.Env = env()
	}
	return LoadFS(fsys, "c", opts)
}

func lines(ps Problems) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func TestDefaults(t *testing.T) {
	c, problems := load(map[string]string{"agents/a.yaml": minimal}, nil)
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	p, err := c.Profile("a")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(p.ProfileVersion, p.RoutingStrategy, p.MaxSteps, p.MaxToolCalls, p.MaxRunTimeSeconds, p.ModelIdleTimeoutSeconds,
		p.ToolTimeoutSeconds, p.ApprovalMode, p.ApprovalPolicies, p.AutoApproveInDaemon, p.Steering, p.QueueMode, p.ResumeOnRestart,
		p.IdempotencyKeys, p.Retry, p.Temperature == nil, p.PrimaryModel.MaxTokensField, c.Settings.Addr, c.Settings.Limits.MaxBodyBytes)
	want := "0.1.0 fallback 50 0 600 120 120 policy {true true false} false after_batch one_at_a_time true true {true 3 1s 1m0s} true auto 127.0.0.1:7070 16777216\n"
	if got != want {
		t.Errorf("defaults\n got %s\nwant %s", got, want)
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	c, problems := load(map[string]string{
		"mcp/servers.yaml": "servers: {files: {transport: stdio, command: x}, mem: {transport: stdio, command: y}}",
		"s/x.yaml":         "turns: []",
		"agents/b.yaml":    strings.ReplaceAll(minimal, "name: a", "name: b"),
		"agents/a.yaml": `
profile_name: a
profile_version: "1.2.3-rc.1"
description: d
labels: [l]
tags: [t, "${TAG:-u}"]
primary_model: {provider: script, model: m, script: s/x.yaml}
fallback_models:
  - {provider: openai, model: o, base_url: "http://127.0.0.1:1/v1", api_key_env: MY_KEY, headers: {X-A: "${H}"}, max_tokens_field: max_tokens, cache_ttl: 24h, prompt_cache_key: yes}
models: [{provider: script, model: other}]
routing_strategy: fallback
mode: plan
modes:
  ask: {tools: [n], text: look}
  plan: {tools: ["t_*"], commands: {sh: command}, files: {w: "plans/*.md"}, text: plan}
  edit: {text: do}
max_context_tokens: 100_000
max_output_tokens: 1000
temperature: 1
thinking: high
parallel_tool_calls: false
system_prompt: |
  You are $${x}.
  ${TAG:-none}
prompt_templates: {interactive_preamble: i, autonomous_preamble: a, tool_use_preamble: t, checkpoint_preamble: c}
few_shot_examples: [{user: q, assistant: r}]
output_style: concise
sections: s
prompt_facts: {version: "1"}
agents_files: never
context_sources: [environment]
tools: {mcp_servers: [files], builtin: [workspace], deny: ["x_*"], late: gateway}
approval_mode: always
approval_policies: {write_ops: false, dangerous_ops: true, budget_exceeded: false}
checkpoint_schema: freeform
auto_approve_in_daemon: true
autonomous_approval: fail
interrupts: {expire_after: 1h, on_expiry: approve, default_answer: d}
max_steps: 1
max_tool_calls: 2
max_run_time_seconds: 3
model_idle_timeout_seconds: 4
model_total_timeout_seconds: 5
max_same_failures: 7
max_same_calls: 8
max_approvals_per_turn: 7
min_tool_calls: 2
cache_tool_calls: ["get_*"]
drop_reasoning_after: 1m
tool_timeout_seconds: 5
max_cost_usd: 1.5
max_tokens_per_run: 9
max_failures_per_run: 6
rate_limits: {per_user: {requests_per_minute: 1, tokens_per_minute: 2, burst: 3}, per_org: {burst: 1}}
memory_enabled: true
memory_provider: mem
write_policy: auto
read_policy: always
retention_days: 9
pii_policy: {never_store: [email], redact: ["a+"]}
skills: {enabled: true, paths: [agents], project: false, user: true, create: true, commands: false, deny: ["x-*"]}
log_level: debug
log_destinations: [stderr, "file:/x"]
log_payload_policy: full
trace_enabled: true
metrics_enabled: false
sampling_rate: 0.5
idempotency_keys: false
resume_on_restart: false
retry_failed_steps: 1
circuit_breakers: {tool: {failures: 3, cooldown: 5s}, server: {failures: 1}, provider: {failures: 2}}
retry: {enabled: false, max_retries: 0, base_delay: 10ms, max_delay: 20ms}
steering: skip_rest
queue_mode: all
tool_execution: sequential
on_tool_failure: fail_run
domain: d
compaction: {enabled: false, model: {provider: script, model: s}, reserve_tokens: 5, keep_recent_tokens: 6, max_summary_tokens: 7, max_summary_requests: 8, retry_after_steps: 9}
subagents: [b]
`}, &Options{Env: env("H", "hush"), Builtins: []string{"workspace"}})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	p, err := c.Profile("a@1.2.3-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	// Every field differs from its default, so that a key that is not read is seen.
	var base Profile
	setDefaults(reflect.ValueOf(&base).Elem())
	for _, f := range fieldsOf(reflect.TypeFor[Profile]()) {
		a, b := reflect.ValueOf(*p).FieldByIndex(f.index), reflect.ValueOf(base).FieldByIndex(f.index)
		if reflect.DeepEqual(a.Interface(), b.Interface()) && f.name != "routing_strategy" && f.name != "top_p" {
			t.Errorf("%s was not read", f.name)
		}
	}
	if p.SystemPrompt != "You are ${x}.\nnone\n" || p.Tags[1] != "u" || *p.Temperature != 1 || p.MaxContextTokens != 100000 {
		t.Errorf("values: %q %v %v %d", p.SystemPrompt, p.Tags, *p.Temperature, p.MaxContextTokens)
	}
	if got := p.MaxCostUSD.String(); got != "1.5" {
		t.Errorf("max_cost_usd = %s", got)
	}
	if got := p.CircuitBreakers.Tool.Cooldown.Std(); got != 5*time.Second {
		t.Errorf("cooldown = %s", got)
	}
	if script, err := c.Script(&p.PrimaryModel); err != nil || string(script) != "turns: []" {
		t.Errorf("script = %q, %v", script, err)
	}
	h := p.FallbackModels[0].Headers["X-A"]
	raw, err := json.Marshal(p)
	if h.Reveal() != "hush" || err != nil || strings.Contains(fmt.Sprintf("%v %+v %#v %s", *p, *p, *p, raw), "hush") {
		t.Errorf("the header's value is shown or lost")
	}
	// Each inert key says so, once.
	notices := problems.only(SeverityNotice)
	for key := range inert() {
		n := strings.Count(lines(notices), " "+key+": accepted, has no effect yet in this version")
		if n != 1 {
			t.Errorf("%d notices for %s, want 1", n, key)
		}
	}
}

func TestInertKeysExist(t *testing.T) {
	for key := range inert() {
		typ := reflect.TypeFor[Profile]()
		for part := range strings.SplitSeq(key, ".") {
			found := false
			for _, f := range fieldsOf(typ) {
				if f.name == part {
					typ, found = f.typ, true
					break
				}
			}
			if !found {
				t.Errorf("%s is no key", key)
				break
			}
		}
	}
}

func TestInertDefaultsAreSilent(t *testing.T) {
	_, problems := load(map[string]string{"agents/a.yaml": minimal + "memory_enabled: false\ntrace_enabled: false\nrouting_strategy: cost_aware\ndomain: d\n"}, nil)
	want := "" +
		"c/agents/a.yaml:7:1: notice: domain: accepted, has no effect yet in this version\n"
	if got := lines(problems); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAliasesAndMerge(t *testing.T) {
	c, problems := load(map[string]string{"agents/a.yaml": `
profile_name: a
primary_model: &m {provider: script, model: m}
fallback_models:
  - *m
  - <<: *m
    model: other
`}, nil)
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	f := c.Profiles["a"].FallbackModels
	if len(f) != 2 || f[0].Model != "m" || f[1].Model != "other" || f[1].Provider != "script" {
		t.Errorf("%+v", f)
	}
}

func TestProfileLookup(t *testing.T) {
	c, _ := load(map[string]string{"agents/a.yaml": strings.ReplaceAll(minimal, "name: a", "name: alpha")}, nil)
	for name, want := range map[string]string{
		"alhpa":     `did you mean alpha? profiles: alpha`,
		"zzzzzz":    `profiles: alpha`,
		"alpha@9.9": `ask for alpha@0.1.0, or for alpha`,
	} {
		_, err := c.Profile(name)
		if !errors.Is(err, &fault.Error{Kind: fault.NotFound}) || fault.HintOf(err) != want {
			t.Errorf("%s: %v, hint %q", name, err, fault.HintOf(err))
		}
	}
	if _, err := (&Config{}).Profile("x"); !strings.Contains(fault.HintOf(err), "agentd config init") {
		t.Errorf("hint %q", fault.HintOf(err))
	}
}

func TestUsableModels(t *testing.T) {
	p := Profile{}
	p.PrimaryModel = Model{Provider: "anthropic", Model: "a"}
	p.FallbackModels = []Model{{Provider: "openai", Model: "b"}, {Provider: "openai", Model: "c", BaseURL: "http://127.0.0.1:1/v1"},
		{Provider: "openai", Model: "d", BaseURL: "http://127.0.0.1:1/v1", APIKeyEnv: "MINE"}}
	models := func(e func(string) (string, bool)) (s string) {
		for _, m := range p.UsableModels(e) {
			s += m.Model
		}
		return s
	}
	for want, e := range map[string]func(string) (string, bool){
		"c":    env(),
		"ac":   env("ANTHROPIC_API_KEY", "k", "OPENAI_API_KEY", ""),
		"bc":   env("OPENAI_API_KEY", "k"),
		"abcd": env("OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", "k", "MINE", "k"),
	} {
		if got := models(e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	p.RoutingStrategy = "single"
	if got := models(env("OPENAI_API_KEY", "k")); got != "" {
		t.Errorf("single: %q", got)
	}
	_, err := p.PrimaryModel.APIKey(env())
	if fault.KindOf(err) != fault.Unauthorized || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("err = %v", err)
	}
}

func TestLoadFolder(t *testing.T) {
	_, problems := Load(filepath.Join(t.TempDir(), "none"), nil)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "there is no such folder") || fault.KindOf(err) != fault.Invalid {
		t.Errorf("err = %v", err)
	}
	dir := filepath.Join(t.TempDir(), "deep", "configs")
	written, err := WriteDefaults(dir)
	if err != nil || len(written) < 5 {
		t.Fatal(written, err)
	}
	c, problems := Load(dir, &Options{Env: env("OPENAI_API_KEY", "k"), Builtins: []string{"workspace"}})
	if len(problems) > 0 {
		t.Errorf("shipped configuration:\n%s", lines(problems))
	}
	if got := fmt.Sprint(c.Names()); got != "[default demo]" {
		t.Errorf("profiles %s", got)
	}
	if len(c.Servers) != 0 {
		t.Errorf("servers are enabled: %v", c)
	}
	// A second time, nothing is touched.
	if err := os.Remove(filepath.Join(dir, "agentd.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = WriteDefaults(dir)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "agents/default.yaml") {
		t.Errorf("err = %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "agentd.yaml")); err == nil {
		t.Error("a file was written although others were there")
	}
}

func TestEmbedded(t *testing.T) {
	c, problems := LoadFS(Embedded(), "built-in", &Options{Env: env(), Builtins: []string{"workspace"}})
	if problems.Err() != nil {
		t.Fatal(problems.Err())
	}
	// On a machine without keys there is one thing to say: the default agent has no model.
	if got := lines(problems); !strings.Contains(got, "warning: primary_model: no model of this profile has its API key") || len(problems) != 1 {
		t.Errorf("problems:\n%s", got)
	}
	if p := c.Profiles["demo"]; p == nil || len(p.UsableModels(env())) != 1 {
		t.Error("the demo needs something")
	}
}
