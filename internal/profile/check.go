package profile

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"agentd/fault"
)

// Semantic versions as https://semver.org (2.0.0) has them, simplified:
// identifiers of digits may have leading zeros.
var (
	versionRE = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	headerRE  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	nameRE    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// check does what one value alone can not tell, and keeps what is right.
func (l *loader) check(settings *decoder, files []*profileFile) {
	for _, f := range files {
		l.register(f)
	}
	l.cycles(files)
	for _, f := range files {
		d, p := f.decoder, f.profile
		l.identity(f)
		l.models(f)
		l.references(f)
		l.values(f)
		l.rates(f)
		l.modes(f)
		l.sections(f)
		d.notices(p)
		if len(d.problems.Errors()) == 0 {
			l.config.Profiles[p.ProfileName] = p
		}
		l.problems = append(l.problems, d.problems...)
	}
	if settings != nil {
		s := &l.config.Settings
		l.network(settings)
		l.knownProfile(settings, "default_profile", s.DefaultProfile)
		l.knownProfile(settings, "task_profile", s.TaskProfile)
		l.observability(settings)
		l.schedules(settings)
		l.problems = append(l.problems, settings.problems...)
	}
}

// register notes the profile's name, once.
func (l *loader) register(f *profileFile) {
	name, d := f.profile.ProfileName, f.decoder
	if name == "" {
		return
	}
	if first, ok := l.profiles[name]; ok {
		d.fail(d.at("profile_name"), "profile_name", fmt.Sprintf("another profile is named %s: %s, line %d", d.quote("profile_name", name), first.file, first.pos.line),
			"rename one of them")
		return
	}
	l.profiles[name] = source{d.file, d.at("profile_name")}
}

func (l *loader) identity(f *profileFile) {
	d, p := f.decoder, f.profile
	if d.has("profile_name") && !d.wrong("profile_name") && !nameRE.MatchString(p.ProfileName) {
		d.fail(d.at("profile_name"), "profile_name", "is not a name", "use 1 to 64 letters, digits, dots, _ or -, beginning with a letter or digit")
	}
	if d.has("profile_version") && !d.wrong("profile_version") && !versionRE.MatchString(p.ProfileVersion) {
		d.fail(d.at("profile_version"), "profile_version", "is not a semantic version", "write MAJOR.MINOR.PATCH, such as \"1.2.0\"")
	}
}

// wrong reports whether a problem was found at the key or below it.
func (d *decoder) wrong(key string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool {
		rest, ok := strings.CutPrefix(p.Key, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (l *loader) models(f *profileFile) {
	d, p := f.decoder, f.profile
	if d.has("primary_model") {
		l.model(d, "primary_model", &p.PrimaryModel)
	}
	for i := range p.FallbackModels {
		l.model(d, fmt.Sprintf("fallback_models[%d]", i), &p.FallbackModels[i])
	}
	for i := range p.Models {
		l.model(d, fmt.Sprintf("models[%d]", i), &p.Models[i])
	}
	if p.RoutingStrategy == "single" && len(p.FallbackModels) > 0 {
		d.warn("fallback_models", "are never used with routing_strategy: single", "remove them, or write routing_strategy: fallback")
	}
	if d.wrong("primary_model") || d.wrong("fallback_models") || d.wrong("models") || !d.has("primary_model") {
		return
	}
	if len(p.UsableModels(l.opts.Env)) > 0 {
		return
	}
	if err := p.PrimaryModel.Ready(l.opts.Env); p.PrimaryModel.Provider == "azure" && fault.KindOf(err) == fault.Invalid {
		d.warn("primary_model", "no model of this profile can be used: "+err.Error(), fault.HintOf(err))
		return
	}
	d.warn("primary_model", "no model of this profile has its API key: "+p.PrimaryModel.KeyEnv()+" is not set",
		"export "+p.PrimaryModel.KeyEnv()+"=…")
}

func (l *loader) model(d *decoder, key string, m *Model) {
	if m.Provider != "" && !d.wrong(key+".provider") && !slices.Contains(l.opts.Providers, m.Provider) {
		d.fail(d.at(key+".provider"), key+".provider", "this version has no adapter for "+m.Provider, "use "+strings.Join(l.opts.Providers, ", "))
	}
	if m.Ollama != (Ollama{}) && m.Provider != "ollama" && !d.wrong(key+".provider") {
		d.fail(d.at(key+".ollama"), key+".ollama", "is only for provider: ollama", "remove it, or write provider: ollama")
	}
	l.price(d, key, m)
	l.azure(d, key, m)
	l.caching(d, key, m)
	if m.Script == "" {
		return
	}
	at := d.at(key + ".script")
	if m.Provider != "script" {
		d.fail(at, key+".script", "is only for provider: script", "remove it, or write provider: script")
		return
	}
	if clean := filepath.ToSlash(filepath.Clean(m.Script)); !filepath.IsAbs(m.Script) && !fs.ValidPath(clean) {
		d.fail(at, key+".script", "leads out of the configs folder", "put the script into the folder, or write an absolute path")
		return
	}
	if _, err := l.config.Script(m); err != nil {
		d.fail(at, key+".script", "the script can not be read", "write the path relative to the configs folder")
	}
}

// price notes what a model costs: one that is named twice has one price.
func (l *loader) price(d *decoder, key string, m *Model) {
	if m.Price == nil || d.wrong(key) {
		return
	}
	name := m.Provider + "/" + m.Model
	if have, ok := l.prices[name]; ok && have != *m.Price {
		d.fail(d.at(key+".price"), key+".price", "another place gives "+name+" another price", "give it one price, in one place")
		return
	}
	l.prices[name] = *m.Price
}

// caching refuses a lifetime that the provider does not have.
func (l *loader) caching(d *decoder, key string, m *Model) {
	if m.CacheTTL == "" || d.wrong(key) {
		return
	}
	var has []string
	switch m.Provider {
	case "anthropic":
		has = []string{"5m", "1h"}
	case "openai", "azure":
		has = []string{"24h"}
	}
	if slices.Contains(has, m.CacheTTL) {
		return
	}
	hint := "remove it: this provider has no setting for it"
	if len(has) > 0 {
		hint = "write " + strings.Join(has, " or ")
	}
	d.fail(d.at(key+".cache_ttl"), key+".cache_ttl", "provider "+m.Provider+" does not keep prompts for "+m.CacheTTL, hint)
}

func (l *loader) references(f *profileFile) {
	d, p := f.decoder, f.profile
	for i, name := range p.Tools.MCPServers {
		l.knownServer(d, fmt.Sprintf("tools.mcp_servers[%d]", i), name)
	}
	if p.MemoryProvider != "" {
		l.knownServer(d, "memory_provider", p.MemoryProvider)
	}
	l.learning(f)
	for i, name := range p.Tools.Builtin {
		key := fmt.Sprintf("tools.builtin[%d]", i)
		if l.opts.Builtins != nil && !d.wrong(key) && !slices.Contains(l.opts.Builtins, name) {
			d.fail(d.at(key), key, "no built-in tool or group is named "+d.quote(key, name), known(name, slices.Clone(l.opts.Builtins)))
		}
	}
	for i, pattern := range p.Tools.Deny {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			key := fmt.Sprintf("tools.deny[%d]", i)
			d.fail(d.at(key), key, "is not a pattern", "write a tool's name, or a pattern with * and ?")
		}
	}
	for i, pattern := range p.CacheToolCalls {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			key := fmt.Sprintf("cache_tool_calls[%d]", i)
			d.fail(d.at(key), key, "is not a pattern", "write a tool's name, or a pattern with * and ?")
		}
	}
	for i, name := range p.Subagents {
		l.knownProfile(d, fmt.Sprintf("subagents[%d]", i), name)
	}
}

// cycles notes profiles that can start themselves by way of their subagents. They
// are allowed: the depth of subagents is bounded.
func (l *loader) cycles(files []*profileFile) {
	subagents := map[string][]string{}
	for _, f := range files {
		subagents[f.profile.ProfileName] = f.profile.Subagents
	}
	for _, f := range files {
		name := f.profile.ProfileName
		for i, first := range f.profile.Subagents {
			back := wayBack(subagents, first, name)
			if back == nil {
				continue
			}
			pos := f.decoder.at(fmt.Sprintf("subagents[%d]", i))
			f.decoder.problems = append(f.decoder.problems, Problem{File: f.decoder.file, Line: pos.line, Column: pos.column,
				Key: fmt.Sprintf("subagents[%d]", i), Severity: SeverityNotice,
				Message: "this agent can start itself: " + strings.Join(append([]string{name}, back...), " → "),
				Hint:    "that is fine where it is meant; limits.max_subagent_depth in agentd.yaml bounds it"})
			break // one way names it
		}
	}
}

// wayBack is the shortest way from one profile to another over subagents, or nil.
func wayBack(subagents map[string][]string, from, to string) []string {
	seen := map[string]bool{}
	for ways := [][]string{{from}}; len(ways) > 0; ways = ways[1:] {
		way := ways[0]
		at := way[len(way)-1]
		if at == to {
			return way
		}
		if seen[at] {
			continue
		}
		seen[at] = true
		for _, next := range subagents[at] {
			ways = append(ways, append(slices.Clone(way), next))
		}
	}
	return nil
}

func (l *loader) values(f *profileFile) {
	d, p := f.decoder, f.profile
	if p.Retry.BaseDelay > p.Retry.MaxDelay && !d.wrong("retry") {
		d.fail(d.at("retry"), "retry.base_delay", "is longer than retry.max_delay", "make it shorter")
	}
	if p.Temperature != nil && p.TopP != nil {
		d.warn("top_p", "temperature is set too; some models refuse both", "keep one")
	}
	l.destinations(d, "log_destinations", p.LogDestinations)
	if t := &l.config.Settings.Telemetry; p.TraceEnabled && !l.collected() {
		d.warn("trace_enabled", "the traces go nowhere", "name telemetry.otlp_endpoint or telemetry.file in agentd.yaml")
	} else if p.TraceEnabled && t.SamplingRate == 0 {
		d.warn("trace_enabled", "telemetry.sampling_rate in agentd.yaml is 0: nothing is traced", "raise it")
	}
}

func (l *loader) knownServer(d *decoder, key, name string) {
	if _, ok := l.servers[name]; ok || d.wrong(key) {
		return
	}
	names := slices.Collect(maps.Keys(l.servers))
	d.fail(d.at(key), key, "no MCP server is named "+d.quote(key, name), known(name, names)+"; servers are defined in mcp/servers.yaml")
}

func (l *loader) knownProfile(d *decoder, key, name string) {
	if _, ok := l.profiles[name]; ok || name == "" || d.wrong(key) {
		return
	}
	names := slices.Collect(maps.Keys(l.profiles))
	d.fail(d.at(key), key, "no profile is named "+d.quote(key, name), known(name, names))
}

// known says which names there are.
func known(name string, names []string) string {
	slices.Sort(names)
	if hint := didYouMean(name, names); hint != "" {
		return hint
	}
	if len(names) == 0 {
		return "there are none"
	}
	return "there are: " + strings.Join(names, ", ")
}

func (d *decoder) warn(key, msg, hint string) {
	pos := d.at(key)
	d.problems = append(d.problems, Problem{File: d.file, Line: pos.line, Column: pos.column, Key: key,
		Message: msg, Hint: hint, Severity: SeverityWarning})
}
