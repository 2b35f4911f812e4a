package agentd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/guard"
	"agentd/internal/mcp"
	"agentd/internal/policy"
	"agentd/internal/profile"
	"agentd/internal/prompt"
	"agentd/internal/run"
	"agentd/internal/workspace"
	"agentd/message"
	"agentd/model"
	"agentd/model/anthropic"
	"agentd/model/gemini"
	"agentd/model/openai"
	"agentd/model/script"
	"agentd/tool"
)

// demoProfile answers when no model has a key.
const demoProfile = "demo"

// extraGroup names all tools that the embedding program brings.
const extraGroup = "extra"

// agents makes agents of profiles. It implements engine.Agents.
type agents struct {
	conf      *profile.Config
	env       func(string) (string, bool)
	log       *slog.Logger
	catalogue *model.Catalogue
	workspace *workspace.Workspace
	extra     []tool.Tool
	servers   *mcp.Manager
	learning  *learning

	guards guard.Guards
	// project are the instructions in the working folder and above it; dir is that folder.
	project *projectFiles
	dir     string
	// azureClient reaches Azure's identity services; nil: their SDK's own.
	azureClient *http.Client

	mu        sync.Mutex
	providers map[string]model.Provider // by profile and position
}

func newAgents(cfg *Config, conf *profile.Config) (*agents, error) {
	dir := cfg.Workspace
	if dir == "" {
		dir = conf.Settings.Workspace
	}
	if dir == "" {
		dir = "."
	}
	limits := &conf.Settings.Limits
	ws, err := workspace.New(dir, &workspace.Options{MaxLines: limits.MaxReadLines, MaxBytes: limits.MaxReadBytes,
		MaxFileBytes: limits.MaxSearchFileBytes, MaxFiles: limits.MaxSearchFiles})
	if err != nil {
		return nil, err
	}
	servers, err := mcp.New(conf.Servers, &mcp.Options{Log: cfg.Log, Version: Version(), Reserved: reserved(cfg.Tools),
		MaxMessageBytes: limits.MaxMCPMessageBytes, MaxTools: limits.MaxMCPTools})
	if err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	env := cfg.Env
	if env == nil {
		env = os.LookupEnv
	}
	return &agents{conf: conf, env: env, log: cfg.Log, catalogue: catalogue(conf), workspace: ws, extra: cfg.Tools,
		servers: servers, providers: map[string]model.Provider{}, dir: dir, project: &projectFiles{dir: dir, max: limits.MaxAgentsFilesBytes}}, nil
}

func (a *agents) close() error { return errors.Join(a.servers.Close(), a.workspace.Close()) }

// builtinNames are the names that tools.builtin may hold.
func builtinNames(extra []tool.Tool) []string {
	names := append([]string{workspace.Group, engine.AskUserQuestion, engine.ProposePlan}, workspace.Names()...)
	if len(extra) > 0 {
		names = append(names, extraGroup)
		for _, t := range extra {
			names = append(names, t.Spec().Name)
		}
	}
	return names
}

// reserved are the names that tools of MCP servers must leave alone.
func reserved(extra []tool.Tool) []string {
	names := append([]string{engine.AskUserQuestion, engine.ProposePlan, engine.CreateSubagent, engine.ReadArtifact, engine.CallByName}, workspace.Names()...)
	names = append(names, learningTools()...)
	for _, t := range extra {
		names = append(names, t.Spec().Name)
	}
	return names
}

// defaultProfile is the profile of a person who names none: what agentd.yaml says,
// else the one named default, for which the demonstration stands in while its
// models have no key. It is "" where there is neither: none is guessed.
func (a *agents) defaultProfile() (name string, scripted bool) {
	if name = a.conf.Settings.DefaultProfile; name != "" {
		return name, false
	}
	p, ok := a.conf.Profiles["default"]
	if !ok {
		return "", false
	}
	if demo, ok := a.conf.Profiles[demoProfile]; ok && len(p.UsableModels(a.env)) == 0 && len(demo.UsableModels(a.env)) > 0 {
		return demoProfile, true
	}
	return "default", false
}

// Outline implements engine.Agents: with a context that has ended, servers begin
// to connect, and give what they have.
func (a *agents) Outline(ctx context.Context, tenant, name string) (*engine.Agent, error) {
	ended, end := context.WithCancel(ctx)
	end()
	return a.Agent(ended, tenant, name)
}

// Agent implements engine.Agents.
func (a *agents) Agent(ctx context.Context, _, name string) (*engine.Agent, error) {
	if name == "" {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "profile", Err: errors.New("is missing, and there is no default profile"),
			Hint: "Name one of " + strings.Join(a.conf.Names(), ", ") + ", or set default_profile in agentd.yaml."}
	}
	p, err := a.conf.Profile(name)
	if err != nil {
		return nil, err
	}
	models, err := a.models(p)
	if err != nil {
		return nil, err
	}
	learned, err := a.learning.of(p)
	if err != nil {
		return nil, err
	}
	tools, cached, unreachable, err := a.tools(ctx, p, learned.tools)
	if err != nil {
		return nil, err
	}
	learned.have(tools)
	ag := &engine.Agent{Profile: p.ProfileName, Version: p.ProfileVersion, Models: models, Tools: tools, Settings: settings(p),
		AskUser: slices.Contains(p.Tools.Builtin, engine.AskUserQuestion) && !denied(p, engine.AskUserQuestion),
		Plans:   slices.Contains(p.Tools.Builtin, engine.ProposePlan) && !denied(p, engine.ProposePlan),
		Caps:    engine.Caps{MaxCost: p.MaxCostUSD, MaxTokens: int64(p.MaxTokensPerRun)},
		Modes:   sessionModes(p, tools), Choices: a.choices(p),
		Rules: rules(p), Redact: a.redactor(p), FailOnRestart: !p.ResumeOnRestart, IgnoreIdempotencyKeys: !p.IdempotencyKeys,
		CacheTools: cached, DropReasoning: p.DropReasoningAfter.Std(), Compaction: a.compaction(p),
		ModelIdle:   time.Duration(p.ModelIdleTimeoutSeconds) * time.Second,
		ModelTotal:  time.Duration(p.ModelTotalTimeoutSeconds) * time.Second,
		Routing:     p.RoutingStrategy,
		Rates:       rates(p),
		ToolTimeout: time.Duration(p.ToolTimeoutSeconds) * time.Second,
		Options: prompt.Options{MaxTokens: p.MaxOutputTokens, Temperature: p.Temperature, TopP: p.TopP,
			Thinking: model.ThinkingLevel(p.Thinking), SingleToolCall: !p.ParallelToolCalls, JSON: p.OutputStyle == "json"}}
	if len(unreachable) > 0 {
		ag.Unreachable, ag.Reach = unreachable, func(ctx context.Context) { a.reach(ctx, unreachable) }
	}
	ag.Freeform = p.CheckpointSchema == "freeform"
	ag.NoReadArtifact = denied(p, engine.ReadArtifact)
	if !denied(p, engine.CreateSubagent) {
		ag.Subagents = p.Subagents
	}
	ag.LateTools, ag.ToolRules = keepsTools(p), a.toolRules(p)
	ag.Recall, ag.Skill = learned.recall, learned.skill
	if err := a.prompts(p, ag, learned.index); err != nil {
		return nil, err
	}
	for _, ex := range p.FewShotExamples {
		ag.Examples = append(ag.Examples, message.User(ex.User),
			message.Message{Role: message.RoleAssistant, Content: []message.Block{message.Text(ex.Assistant)}, StopReason: message.StopEnd})
	}
	return ag, nil
}

// Redactor implements engine.Agents.
func (a *agents) Redactor(_, name string) (engine.Redact, error) {
	p, err := a.conf.Profile(name)
	if err != nil {
		return nil, err
	}
	return a.redactor(p), nil
}

// redactor hides what any of the profile's servers wants hidden: an event names
// the tool, not the server, and hiding too much is the safe mistake.
func (a *agents) redactor(p *profile.Profile) engine.Redact {
	servers := slices.DeleteFunc(slices.Clone(p.Tools.MCPServers), func(name string) bool {
		c := a.conf.Servers[name]
		for _, t := range c.Tools {
			if len(t.Redaction) > 0 {
				return false
			}
		}
		return len(c.Redaction) == 0
	})
	if len(servers) == 0 {
		return nil
	}
	return func(tool string, data json.RawMessage) json.RawMessage {
		if tool == engine.ReadArtifact {
			// Parts of outputs of any tool: what must be hidden in them can not be found.
			return json.RawMessage(`"[hidden: a part of an output of a tool whose output is masked]"`)
		}
		for _, s := range servers {
			data = a.servers.Redact(s, tool, data)
		}
		return data
	}
}

// Profiles implements engine.Agents.
func (a *agents) Profiles(context.Context, string) ([]engine.ProfileView, error) {
	var views []engine.ProfileView
	for _, name := range a.conf.Names() {
		p := a.conf.Profiles[name]
		views = append(views, engine.ProfileView{Name: p.ProfileName, Version: p.ProfileVersion, Description: p.Description,
			Labels: slices.Concat(p.Labels, p.Tags), Model: p.PrimaryModel.Provider + "/" + p.PrimaryModel.Model})
	}
	return views, nil
}

// models makes the providers of a profile, those with a key, in order.
func (a *agents) models(p *profile.Profile) ([]engine.Model, error) {
	usable := p.UsableModels(a.env)
	if len(usable) == 0 {
		return nil, p.PrimaryModel.Ready(a.env)
	}
	var out []engine.Model
	for i := range usable {
		m, err := a.model(p, &usable[i])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// model makes the provider of one of a profile's models.
func (a *agents) model(p *profile.Profile, m *profile.Model) (engine.Model, error) {
	pr, err := a.provider(p, m)
	if err != nil {
		return engine.Model{}, err
	}
	learned := learnedWindow(p, m, pr)
	pr = a.guardProvider(p, m, pr)
	info := a.catalogue.Lookup(m.Provider, m.Model)
	maxTokens, thinking := modelDefaults(&info)
	known := window(&info)
	if m.Provider == "ollama" {
		known = ollamaInfo(m, &info)
	}
	price := typicalPrice(&info)
	if m.Provider == "script" && !info.Priced() {
		info.Source = "a script costs nothing"
	}
	info = cachedFor(info, m)
	return engine.Model{CacheTTL: cacheTTL(m), Provider: pr, ID: m.Model, Name: m.Provider + "/" + m.Model, Pool: profile.Pool("model", m.Pool), MaxTokens: maxTokens, Thinking: thinking, Price: price, Info: info,
		Window: narrower(known, p.MaxContextTokens), Learned: learned, NoImages: info.Priced() && !info.Images}, nil
}

// compaction says how conversations of a profile are summarised. A model that can not be
// asked is none: the run's own will do.
func (a *agents) compaction(p *profile.Profile) engine.Compaction {
	c := &p.Compaction
	out := engine.Compaction{Off: !c.Enabled, Reserve: c.ReserveTokens, Keep: c.KeepRecentTokens, Summary: c.MaxSummaryTokens, Requests: c.MaxSummaryRequests, RetryAfter: c.RetryAfterSteps}
	if c.Model == nil || !c.Model.Usable(a.env) {
		return out
	}
	m, err := a.model(p, c.Model)
	if err != nil {
		a.log.Warn("the model for summaries can not be used; the run's own is", "profile", p.ProfileName, "error", err)
		return out
	}
	out.Model = &m
	return out
}

// typicalPrice is what choices between models compare: agents read far more than
// they write. 0 if the price is not known; a model that costs nothing is the cheapest.
func typicalPrice(info *model.Info) int64 {
	if !info.Priced() {
		return 0
	}
	return max(1, int64(4*info.Price.Input+info.Price.Output)/5)
}

// replyTokens is how long a reply of a known model may be if nobody says how long.
const replyTokens = 15_000

// modelDefaults is what a model is asked for where profile and request say
// nothing. Of a model that is not known nothing is assumed: its server may refuse
// it. One that thinks by a budget of tokens is not made to, as it cannot decide
// for itself how little is enough.
func modelDefaults(info *model.Info) (maxTokens int, thinking model.ThinkingLevel) {
	if !info.Priced() {
		return 0, ""
	}
	if info.Reasoning && info.Thinking != model.ThinkingByBudget {
		thinking = model.ThinkingLow
	}
	return min(replyTokens, info.MaxOutput), thinking
}

func (a *agents) provider(p *profile.Profile, m *profile.Model) (model.Provider, error) {
	key := fmt.Sprintf("%s\x00%+v", p.ProfileName, *m) // secrets print as such, and differ by profile only
	for k, v := range m.Headers {
		key += "\x00" + k + "\x00" + v.Reveal()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if pr, ok := a.providers[key]; ok {
		return pr, nil
	}
	pr, err := a.newProvider(m)
	if err != nil {
		return nil, &fault.Error{Op: "agentd.provider", Kind: fault.Invalid, Field: p.ProfileName + ".primary_model", Err: err}
	}
	a.providers[key] = pr
	return pr, nil
}

func (a *agents) newProvider(m *profile.Model) (model.Provider, error) {
	used := *m
	credential := func(context.Context) (string, error) { return used.APIKey(a.env) }
	headers := map[string]string{}
	for k, v := range m.Headers {
		headers[k] = v.Reveal()
	}
	switch m.Provider {
	case "script":
		s := script.Demo()
		src, err := a.conf.Script(m)
		if err == nil && src != nil {
			s, err = script.Parse(m.Script, src)
		}
		if err != nil {
			return nil, err
		}
		return script.New(s, nil), nil
	case "openai", "azure":
		cfg := openai.Config{BaseURL: m.BaseURL, Credential: credential, Headers: headers, Catalogue: a.catalogue, Options: &openai.Options{Summaries: m.ReasoningSummary, PromptCacheKey: cacheKey(m), CacheRetention: m.CacheTTL}}
		if m.MaxTokensField != "auto" {
			cfg.Options.MaxTokensField = m.MaxTokensField
		}
		if m.API != "auto" {
			cfg.Protocol = openai.Protocol(m.API)
		}
		if m.Provider == "azure" {
			if err := a.azure(m, &cfg); err != nil {
				return nil, err
			}
		}
		return openai.New(cfg)
	case "anthropic":
		return anthropic.New(anthropic.Config{BaseURL: m.BaseURL, Credential: credential, Headers: headers, Catalogue: a.catalogue,
			Options: &anthropic.Options{CacheHour: m.CacheTTL == "1h"}})
	case "gemini":
		return gemini.New(gemini.Config{BaseURL: m.BaseURL, Credential: credential, Headers: headers, Catalogue: a.catalogue})
	case "ollama":
		return a.ollama(m, credential, headers)
	}
	return nil, fmt.Errorf("there is no adapter for provider %q", m.Provider)
}

// reach waits for servers that could not be reached.
func (a *agents) reach(ctx context.Context, servers []engine.Unreachable) {
	names := make([]string, len(servers))
	for i := range servers {
		names[i] = servers[i].Server
	}
	a.servers.Reach(ctx, names)
}

// tools gathers the tools of a profile. A server that can not be reached is
// reported and left out: the agent works with what there is. One that was there
// before keeps its tools, whose calls try to reach it. learned are those of memory and
// skills, cached are [cachedTools].
func (a *agents) tools(ctx context.Context, p *profile.Profile, learned []tool.Tool) (set tool.Set, cached []string, unreachable []engine.Unreachable, err error) {
	tools := learned
	wanted := p.Tools.Builtin
	for _, t := range a.workspace.Tools() {
		if slices.Contains(wanted, workspace.Group) || slices.Contains(wanted, t.Spec().Name) {
			tools = append(tools, t)
		}
	}
	for _, t := range a.extra {
		if slices.Contains(wanted, extraGroup) || slices.Contains(wanted, t.Spec().Name) {
			tools = append(tools, t)
		}
	}
	if len(p.Tools.MCPServers) > 0 {
		remote, problems := a.servers.Tools(ctx, p.Tools.MCPServers)
		for _, pr := range problems {
			if !pr.Stale {
				unreachable = append(unreachable, engine.Unreachable{Server: pr.Server, Reason: reason(pr.Err)})
			}
		}
		tools = append(tools, remote...)
	}
	tools = slices.DeleteFunc(tools, func(t tool.Tool) bool {
		return slices.ContainsFunc(mcp.Names(t), func(name string) bool { return denied(p, name) })
	})
	cached = cachedTools(p, tools)
	a.guardTools(p, tools)
	set, err = tool.NewSet(tools...)
	return set, cached, unreachable, err
}

// reason is an error with what to do about it.
func reason(err error) string {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// denied is whether a profile takes a tool away again, wherever it comes from.
func denied(p *profile.Profile, name string) bool { return matches(p.Tools.Deny, name) }

// matches is whether one of the patterns means a name.
func matches(patterns []string, name string) bool {
	flat := strings.NewReplacer("/", "\x00") // for path.Match a slash is more than a character; for names it is not
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(flat.Replace(pattern), flat.Replace(name))
		return ok || err != nil // a broken guard must not open the door
	})
}

func settings(p *profile.Profile) run.Settings {
	s := run.Settings{MaxSteps: p.MaxSteps, MaxToolCalls: p.MaxToolCalls, MaxFailures: p.MaxFailuresPerRun,
		MaxRunMS: int64(p.MaxRunTimeSeconds) * 1000, SkipRest: p.Steering == "skip_rest", AllAtOnce: p.QueueMode == "all",
		FailOnToolError: p.OnToolFailure == "fail_run", Sequential: p.ToolExecution == "sequential", StepRetries: p.RetryFailedSteps,
		MaxApprovals: p.MaxApprovalsPerTurn, MinToolCalls: p.MinToolCalls,
		MaxSameFailures: p.MaxSameFailures, MaxSameCalls: p.MaxSameCalls, AskMore: p.ApprovalPolicies.BudgetExceeded,
		Interrupts: run.Expiry{AfterMS: p.Interrupts.ExpireAfter.Std().Milliseconds(), Approve: p.Interrupts.OnExpiry == "approve",
			Answer: p.Interrupts.DefaultAnswer}}
	if p.Retry.Enabled {
		s.Retry = run.Retry{Max: p.Retry.MaxRetries, BaseMS: p.Retry.BaseDelay.Std().Milliseconds(),
			LimitMS: p.Retry.MaxDelay.Std().Milliseconds()}
	}
	return s
}

func rules(p *profile.Profile) policy.Rules {
	r := policy.Rules{Mode: policy.Mode(p.ApprovalMode), AutoApprove: p.AutoApproveInDaemon, Capture: p.AutonomousApproval == "capture"}
	if p.ApprovalPolicies.WriteOps {
		r.Classes = append(r.Classes, "write")
	}
	if p.ApprovalPolicies.DangerousOps {
		r.Classes = append(r.Classes, "delete", "shell", "dangerous")
	}
	return r
}

var _ engine.Agents = (*agents)(nil)
