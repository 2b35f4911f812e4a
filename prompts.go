package agentd

import (
	"strings"

	"agentd/fault"
	"agentd/internal/engine"
	"agentd/internal/profile"
	"agentd/internal/prompt"
)

// neutral is the system prompt of a profile that has none.
const neutral = "You are a helpful assistant. Do what is asked, and say plainly what you could not find out."

// prompts makes the sections of a profile's prompt.
func (a *agents) prompts(p *profile.Profile, ag *engine.Agent) error {
	set, err := prompt.NewSet(sections(p)...)
	if err != nil {
		return &fault.Error{Op: "agentd.prompts", Kind: fault.Invalid, Field: p.ProfileName, Err: err}
	}
	ag.Prompt = set
	return nil
}

// sections are the sections of a profile in the order in which they are emitted:
// static ones first, then those of the organisation, then those of the turn. What
// depends on the run mode ends the system prompt, so that runs of both modes share what
// is ahead of it.
func sections(p *profile.Profile) []prompt.Section {
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
	return []prompt.Section{
		static("system_prompt", text, prompt.When{}),
		static("tool_use_preamble", t.ToolUsePreamble, prompt.When{Tools: []string{"*"}}),
		static("output_style", outputStyle(p.OutputStyle), prompt.When{}),
		mode("interactive_preamble", t.InteractivePreamble, engine.Interactive, prompt.When{}),
		mode("checkpoint_preamble", t.CheckpointPreamble, engine.Interactive, prompt.When{Tools: []string{engine.AskUserQuestion}}),
		{Name: "autonomous_banner", Tier: prompt.Org, RunModes: []string{engine.Autonomous}, Render: func(f *prompt.Facts) string { return banner(p, len(f.Tools) > 0) }, File: p.File},
		mode("autonomous_preamble", t.AutonomousPreamble, engine.Autonomous, prompt.When{}),
	}
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
