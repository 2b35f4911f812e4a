package agentd

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/prompt"
	"agentd/internal/workspace"
)

// neutral is the system prompt of a profile that has none.
const neutral = "You are a helpful assistant. Do what is asked, and say plainly what you could not find out."

// prompts makes the sections of a profile's prompt, and what goes with its messages.
// skills is the index of the agent's skills.
func (a *agents) prompts(p *profile.Profile, ag *engine.Agent, skills string) error {
	set, err := prompt.NewSet(a.sections(p, ag, skills)...)
	if err != nil {
		return &fault.Error{Op: "agentd.prompts", Kind: fault.Invalid, Field: p.ProfileName, Err: err}
	}
	ag.Prompt, ag.Facts = set, p.PromptFacts
	if len(p.ContextSources) > 0 {
		ag.Context = append(ag.Context, a.surroundings(p.ContextSources))
	}
	return nil
}

// narrower is the smaller of two windows, of which 0 is one that nobody knows.
func narrower(window, limit int) int {
	if limit > 0 && (window == 0 || limit < window) {
		return limit
	}
	return window
}

// surroundings is what agentd itself knows of the world.
func (a *agents) surroundings(kinds []string) engine.ContextSource {
	return func(ctx context.Context, of *engine.ContextRequest) ([]prompt.Block, error) {
		var blocks []prompt.Block
		if slices.Contains(kinds, "environment") {
			dir, err := filepath.Abs(a.dir)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, prompt.Block{Kind: "environment", Text: "working folder: " + dir + "\nplatform: " + runtime.GOOS + "/" + runtime.GOARCH})
		}
		if slices.Contains(kinds, "date") {
			blocks = append(blocks, prompt.Block{Kind: "date", Text: "Today is " + of.Now.Format("Monday, 2006-01-02") + "."})
		}
		if slices.Contains(kinds, "tree") {
			limits := &a.conf.Settings.Limits
			// A folder that can not be listed in time is no reason to leave out the rest.
			text, err := a.workspace.Tree(ctx, &workspace.TreeLimits{Depth: limits.MaxTreeDepth, Entries: limits.MaxTreeEntries, Bytes: limits.MaxTreeBytes})
			if err != nil {
				a.log.Warn("the workspace can not be listed; the run does without", "run", of.Run.ID, "folder", a.dir, "error", err)
				return blocks, nil
			}
			blocks = append(blocks, prompt.Block{Kind: "tree", Text: text})
		}
		return blocks, nil
	}
}

// readsFiles is whether an agent is to have the project's instructions.
func readsFiles(p *profile.Profile, ag *engine.Agent) bool {
	return p.AgentsFiles == "always" || p.AgentsFiles == "auto" && slices.ContainsFunc(workspace.Names(), func(name string) bool { _, _, ok := ag.Tools.Lookup(name); return ok })
}

// sections are the sections of a profile in the order in which they are emitted:
// static ones first, then those of the organisation, then those of the turn. What
// depends on the run mode ends the system prompt, so that runs of both modes share what
// is ahead of it.
func (a *agents) sections(p *profile.Profile, ag *engine.Agent, skills string) []prompt.Section {
	text := strings.TrimSpace(p.SystemPrompt)
	if text == "" {
		text = neutral
	}
	t := &p.PromptTemplates
	static := func(name, text string, when prompt.When) prompt.Section {
		return prompt.Section{Name: name, Tier: prompt.Static, Text: text, When: when, File: p.File}
	}
	mode := func(name, text, mode string, when prompt.When) prompt.Section {
		return prompt.Section{Name: name, Tier: prompt.Org, Text: text, RunModes: []string{mode}, When: when, File: p.File}
	}
	files := func(tier prompt.Tier) (out []prompt.Section) {
		for _, f := range p.SectionFiles {
			if f.Tier == tier {
				f.Name = prompt.SectionKind + f.Name
				out = append(out, f)
			}
		}
		return out
	}
	project := ""
	if readsFiles(p, ag) {
		var err error
		if project, err = a.project.read(); err != nil {
			a.log.Warn("the project's instructions can not be read, and agents do without", "file", agentsFile, "folder", a.dir, "error", err)
		}
	}
	return slices.Concat(
		[]prompt.Section{
			static("system_prompt", text, prompt.When{}),
			static("tool_use_preamble", t.ToolUsePreamble, prompt.When{Tools: []string{"*"}}),
			static("output_style", outputStyle(p.OutputStyle), prompt.When{}),
		},
		files(prompt.Static),
		files(prompt.Org),
		[]prompt.Section{
			{Name: "agents_files", Tier: prompt.Org, Text: project, File: p.File},
			{Name: "skills", Tier: prompt.Org, Text: strings.TrimSpace(skills), File: p.File},
			mode("interactive_preamble", t.InteractivePreamble, engine.Interactive, prompt.When{}),
			mode("checkpoint_preamble", t.CheckpointPreamble, engine.Interactive, prompt.When{Tools: []string{engine.AskUserQuestion}}),
			{Name: "autonomous_banner", Tier: prompt.Org, RunModes: []string{engine.Autonomous}, Render: func(f *prompt.Facts) string { return banner(p, len(f.Tools) > 0) }, File: p.File},
			mode("autonomous_preamble", t.AutonomousPreamble, engine.Autonomous, prompt.When{}),
		},
		files(prompt.Turn))
}

// outputStyle says how answers should look.
func outputStyle(style string) string {
	switch style {
	case "concise":
		return "Answer briefly: no preamble, no summary of what was asked."
	case "verbose":
		return "Answer in full: explain how you got there."
	case "json":
		return "Answer with one JSON value and nothing else."
	}
	return ""
}

// banner tells a run that nobody watches what that means: what becomes of calls that need
// approval, and how to end.
func banner(p *profile.Profile, tools bool) string {
	var b strings.Builder
	b.WriteString("This run is autonomous: nobody reads along, and nobody will answer. Do not ask; decide, and note what you assumed.")
	switch {
	case !tools:
	case p.AutoApproveInDaemon:
		b.WriteString(" Calls that would need a person's approval are executed without one: make only those that the task needs.")
	case p.AutonomousApproval == "fail":
		b.WriteString(" Calls that need a person's approval are refused: do what can be done without them.")
	default:
		b.WriteString(" Calls that need a person's approval are not executed but captured as proposals, which a person applies or discards after the run; make them all the same, once each, and go on.")
	}
	switch {
	case p.OutputStyle == "json":
		b.WriteString(" End with the answer, not with a question.")
	default:
		b.WriteString(" End with a summary for an audit, not with a question: what you found and did, what you proposed, what you assumed, and what is left open.")
	}
	return b.String()
}
