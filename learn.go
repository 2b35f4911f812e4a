package agentd

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/mcp"
	"agentd/internal/memory"
	"agentd/internal/profile"
	"agentd/internal/skill"
	"agentd/internal/store"
	"agentd/internal/store/postgres"
	"agentd/tool"
)

// learning is what agents know beyond their conversations: what is remembered, and
// skills.
type learning struct {
	conf    *profile.Config
	servers *mcp.Manager
	keeper  memory.Keeper
	limits  memory.Limits
	// project is the workspace, configs the configuration's folder, home the user's; ""
	// if there is none.
	project, configs, home string
	readOnly               bool
	finder                 skill.Finder
}

// newLearning makes it; st may be nil where nothing is remembered.
func newLearning(cfg *Config, conf *profile.Config, servers *mcp.Manager, project string, st store.Store, env func(string) (string, bool)) *learning {
	m := &conf.Settings.Memory
	l := &learning{conf: conf, servers: servers, project: project, configs: cfg.Configs, readOnly: cfg.ReadOnly, limits: memory.Limits{Bytes: m.MaxBytes, EntryBytes: m.MaxEntryBytes}}
	l.home = homeOf(env)
	if st == nil {
		return l
	}
	l.keeper = memory.NewRows(st, project, time.Now)
	if data := cfg.Data; m.Files && data != "" && data != ":memory:" && !postgres.Is(data) {
		files := memory.NewFiles(data, project)
		files.TrustProject, files.MaxTrusted = m.TrustProject, m.MaxTrustedLines
		l.keeper = &memory.Local{Tenant: store.DefaultTenant, Files: files, Rows: l.keeper}
	}
	return l
}

func homeOf(env func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, ok := env(name); ok && filepath.IsAbs(home) {
			return home
		}
	}
	return ""
}

// memory is what is remembered under a profile's rules; nil for those of none.
func (l *learning) memory(p *profile.Profile) (*memory.Memory, error) {
	o := memory.Options{Keeper: l.keeper, Limits: l.limits, Frozen: l.readOnly}
	if p != nil {
		filter, err := memory.NewFilter(p.PIIPolicy.NeverStore, p.PIIPolicy.Redact)
		if err != nil {
			return nil, &fault.Error{Op: "agentd.memory", Kind: fault.Invalid, Field: p.ProfileName + ".pii_policy", Err: err}
		}
		o.Filter, o.RetentionDays = filter, p.RetentionDays
		if p.MemoryProvider != "" {
			o.Keeper = memory.NewGraph(l.caller(p.MemoryProvider), l.project)
		}
	}
	return memory.New(&o)
}

// caller calls the tools of a memory server, whatever it lets agents see of them.
func (l *learning) caller(server string) memory.Caller {
	return func(ctx context.Context, name string, args json.RawMessage) (string, error) {
		bad := func(kind fault.Kind, err error, hint string) (string, error) {
			return "", &fault.Error{Op: "memory", Kind: kind, Field: "memory_provider", Err: err, Hint: hint}
		}
		tools, problems := l.servers.Tools(ctx, []string{server})
		for _, t := range tools {
			if !slices.Contains(mcp.Names(t), name) {
				continue
			}
			res, err := t.Run(ctx, tool.Call{ID: "memory", Name: t.Spec().Name, Args: args, Key: "memory/" + server + "/" + name, Progress: func(tool.Progress) {}})
			if err != nil {
				return "", err
			}
			var text strings.Builder
			for _, b := range res.Content {
				text.WriteString(b.Text)
			}
			if res.IsError {
				return bad(fault.Unavailable, fmt.Errorf("the memory server %s refused %s: %s", server, name, text.String()), "Look at the server's log.")
			}
			return text.String(), nil
		}
		if len(problems) > 0 {
			return "", problems[0].Err
		}
		return bad(fault.Unsupported, fmt.Errorf("the MCP server %s has no tool %s", server, name), "memory_provider needs a server with "+strings.Join(memory.GraphTools(), ", ")+".")
	}
}

// learned is what an agent has of it.
type learned struct {
	tools []tool.Tool
	// index is what the prompt says of skills.
	index  string
	recall func(context.Context, engine.RecallRequest) (string, error)
	// skill gives what goes with words that call a skill; nil where nobody can.
	skill func(words string) (string, error)
	// have is told of all tools that the agent has.
	have func(tool.Set)
}

// of is what the agent of a profile has. Nil has nothing.
func (l *learning) of(p *profile.Profile) (out learned, err error) {
	out.have = func(tool.Set) {}
	if l == nil {
		return out, nil
	}
	if p.MemoryEnabled && l.keeper != nil {
		m, err := l.memory(p)
		if err != nil {
			return out, err
		}
		read := memory.ReadPolicy(p.ReadPolicy)
		out.tools = memory.Tools(m, memory.WritePolicy(p.WritePolicy), read, p.PIIPolicy.NeverStore)
		if read != memory.OnDemand {
			out.recall = func(ctx context.Context, r engine.RecallRequest) (string, error) {
				return m.Block(ctx, memory.Who{Tenant: r.Tenant, User: r.User}, read, r.Input, r.Last)
			}
		}
	}
	if p.Skills.Enabled && !denied(p, skill.Load) { // without it an index would be a promise
		set, _ := l.skills(p)
		var all tool.Set
		out.have = func(s tool.Set) { all = s }
		out.tools = append(out.tools, skill.Tools(set, func(name string) bool {
			_, _, ok := all.Lookup(name)
			return ok
		}, l.writer(p))...)
		out.index = set.Index()
		if p.Skills.Commands {
			out.skill = set.Call
		}
	}
	return out, nil
}

// learningTools are the names of the tools that memory and skills have.
func learningTools() []string {
	return []string{memory.Remember, memory.Recall, skill.Load, skill.ReadFile, skill.Create}
}

// writer writes skills for the agents of a profile; nil if they may not. Like the
// memory in files, the folders are those of whoever runs agentd: other tenants, and
// users that a client names, write to none of them.
func (l *learning) writer(p *profile.Profile) *skill.Writer {
	if !p.Skills.Create || l.readOnly {
		return nil
	}
	w := &skill.Writer{Folders: map[string]string{}, May: func(tenant, user string) bool { return tenant == store.DefaultTenant && user == "" }}
	if p.Skills.Project {
		w.Folders["project"] = l.project
	}
	if p.Skills.User {
		w.Folders["user"] = l.home
	}
	return w
}

// skills are those that a profile has now. What has not changed is not read again.
func (l *learning) skills(p *profile.Profile) (*skill.Set, []skill.Problem) {
	var from []skill.Source
	for _, path := range p.Skills.Paths {
		if !filepath.IsAbs(path) {
			if l.configs == "" {
				continue // the embedded configuration has no folders
			}
			path = filepath.Join(l.configs, filepath.FromSlash(path))
		}
		from = append(from, skill.Source{Kind: "profile", Path: path, Must: true})
	}
	below := func(kind, dir string, inside bool, names ...string) {
		for _, name := range names {
			if dir != "" {
				src := skill.Source{Kind: kind, Path: filepath.Join(dir, filepath.FromSlash(name)), Inside: inside}
				if inside {
					src.Within = dir
				}
				from = append(from, src)
			}
		}
	}
	if p.Skills.Project {
		below("project", l.project, true, ".agentd/skills", ".agents/skills")
	}
	if p.Skills.User {
		below("user", l.home, false, ".agentd/skills", ".agents/skills")
	}
	below("pack", l.configs, false, "skills")
	s := &l.conf.Settings.Skills
	return l.finder.Find(from, skill.Limits{Skills: s.MaxSkills, Bytes: s.MaxSkillBytes, FileBytes: s.MaxFileBytes},
		func(name string) bool { return matches(p.Skills.Deny, name) })
}
