package profile

import (
	"fmt"
	"maps"
	"path"
	"slices"
)

// SessionModes say how much the agent may touch: a session is in mode `ask` (look and answer), `plan` (look and plan) or `edit` (all that the rules allow).
type SessionModes struct {
	// Mode of sessions in which nobody chose one.
	Mode string `json:"mode" default:"edit" enum:"ask,plan,edit"`
	// What the modes allow besides tools that are known to only read, questions, plans and subagents (which have the mode, too), and what the model is told of them.
	Modes ModeRules `json:"modes,omitzero" example:"{plan: {commands: {shell_exec: command}}}"`
}

// ModeRules are what the modes allow.
type ModeRules struct {
	// Mode `ask`.
	Ask AskMode `json:"ask,omitzero" example:"{tools: [\"note_*\"]}"`
	// Mode `plan`.
	Plan PlanMode `json:"plan,omitzero" example:"{files: {file_write: \"plans/*.md\"}}"`
	// Mode `edit`, which forbids nothing.
	Edit EditMode `json:"edit,omitzero" example:"{text: \"Mode: edit. Keep changes small.\"}"`
}

// AskMode is what mode ask allows.
type AskMode struct {
	// Tools that may be called whatever they do: names, or patterns with `*` and `?`, as in `tools.deny`. Tools of a request's client are never meant.
	Tools []string `json:"tools,omitempty" example:"[\"note_*\"]"`
	// What the model is told of the mode. Empty: a text of agentd's.
	Text string `json:"text,omitempty" example:"Mode: ask. Only look."`
}

// PlanMode is what mode plan allows.
type PlanMode struct {
	// Tools that may be called whatever they do: names, or patterns with `*` and `?`, as in `tools.deny`. Tools of a request's client are never meant.
	Tools []string `json:"tools,omitempty" example:"[\"todo_*\"]"`
	// Tools (names or patterns) that run a command line for a POSIX shell, each with the argument that holds it. Commands may run that are known to do nothing but look (`ls`, `cat`, `grep`, `rg`, `find`, `git status`, `git diff`, `git log` and the like); what is not understood may not. See docs/security.md.
	Commands map[string]string `json:"commands,omitempty" example:"{shell_exec: command}"`
	// Tools (names or patterns) that write a file, each with a pattern of the paths that it may write, as the tool takes them: where the plan is kept.
	Files map[string]string `json:"files,omitempty" example:"{file_write: \"plans/*.md\"}"`
	// What the model is told of the mode. Empty: a text of agentd's.
	Text string `json:"text,omitempty" example:"Mode: plan. Make a plan first."`
}

// EditMode is what is said of mode edit.
type EditMode struct {
	// What the model is told of the mode. Empty: nothing, but that an earlier mode is over.
	Text string `json:"text,omitempty" example:"Mode: edit. Keep changes small."`
}

// modes checks what modes allow.
func (l *loader) modes(f *profileFile) {
	d, m := f.decoder, &f.profile.Modes
	pattern := func(key, s, what string) {
		if _, err := path.Match(s, ""); (err != nil || s == "") && !d.wrong(key) {
			d.fail(d.at(key), key, fmt.Sprintf("%s is not a pattern", d.quote(key, s)), "write "+what+", or a pattern with * and ?")
		}
	}
	for i, s := range m.Ask.Tools {
		pattern(fmt.Sprintf("modes.ask.tools[%d]", i), s, "a tool's name")
	}
	for i, s := range m.Plan.Tools {
		pattern(fmt.Sprintf("modes.plan.tools[%d]", i), s, "a tool's name")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Plan.Commands)) {
		pattern("modes.plan.commands", name, "a tool's name")
		if m.Plan.Commands[name] == "" {
			d.fail(d.at("modes.plan.commands"), "modes.plan.commands."+name, "names no argument", "write the name of the argument that holds the command line, such as command")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Plan.Files)) {
		pattern("modes.plan.files", name, "a tool's name")
		pattern("modes.plan.files", m.Plan.Files[name], "a path")
	}
	if _, ok := f.profile.PromptFacts["mode"]; ok {
		d.fail(d.at("prompt_facts"), "prompt_facts.mode", "is the mode of the session, and no fact of the profile", "write mode: ask, plan or edit, or give the fact another name")
	}
}
