package agentd

import (
	"path"
	"slices"

	"agentd/internal/engine"
	"agentd/internal/mcp"
	"agentd/internal/policy"
	"agentd/internal/profile"
	"agentd/tool"
)

// sessionModes says what the modes of sessions mean to a profile's agent. Patterns are
// held against the tools that it has, so that no tool of a request's client is meant.
func sessionModes(p *profile.Profile, tools tool.Set) engine.Modes {
	c := &p.Modes
	m := engine.Modes{First: p.Mode, Texts: map[string]string{policy.Ask: c.Ask.Text, policy.Plan: c.Plan.Text, policy.Edit: c.Edit.Text},
		Allows: policy.Modes{Tools: map[string][]string{}, Commands: map[string]string{}, Files: map[string]string{}}}
	for _, name := range tools.Names() {
		t, _, _ := tools.Lookup(name)
		names := mcp.Names(t)
		allowed := func(pattern string) bool {
			return slices.ContainsFunc(names, func(n string) bool { ok, err := path.Match(pattern, n); return ok && err == nil })
		}
		for mode, patterns := range map[string][]string{policy.Ask: c.Ask.Tools, policy.Plan: c.Plan.Tools} {
			if slices.ContainsFunc(patterns, allowed) {
				m.Allows.Tools[mode] = append(m.Allows.Tools[mode], name)
			}
		}
		pick(c.Plan.Commands, allowed, func(argument string) { m.Allows.Commands[name] = argument })
		pick(c.Plan.Files, allowed, func(pattern string) { m.Allows.Files[name] = pattern })
	}
	return m
}

// pick gives what the first pattern, by its text, says of a tool.
func pick(of map[string]string, allowed func(pattern string) bool, give func(string)) {
	patterns := make([]string, 0, len(of))
	for pattern := range of {
		patterns = append(patterns, pattern)
	}
	slices.Sort(patterns)
	if i := slices.IndexFunc(patterns, allowed); i >= 0 {
		give(of[patterns[i]])
	}
}

// choices are the further models that sessions may choose, those with a key. One that can
// not be made is none: the others do.
func (a *agents) choices(p *profile.Profile) (out []engine.Model) {
	for i := range p.Models {
		m := &p.Models[i]
		if !m.Usable(a.env) {
			continue
		}
		made, err := a.model(p, m)
		if err != nil {
			a.log.Warn("a model that sessions may choose can not be used", "profile", p.ProfileName, "model", m.Provider+"/"+m.Model, "error", err)
			continue
		}
		out = append(out, made)
	}
	return out
}
