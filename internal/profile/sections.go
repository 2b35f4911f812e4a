package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"agentd/internal/prompt"
)

// PromptParts are what else the prompt is made of.
type PromptParts struct {
	// Folder of Markdown files, relative to the configs folder, each of which is a section of the prompt: see docs/prompts.md.
	Sections string `json:"sections,omitempty" example:"sections/helpdesk"`
	// What is known of the world that the agent works in, for `when` and `{{…}}` of sections: `version` has a meaning there, other names are yours. `mode` is the session's.
	PromptFacts map[string]string `json:"prompt_facts,omitempty" example:"{version: \"4.4.0\", region: eu}"`
	// Whether the prompt has the project's AGENTS.md files, from the top of the repository down to the working folder: `auto` for agents that read files there (built-in workspace tools), `always`, or `never`.
	AgentsFiles string `json:"agents_files" default:"auto" enum:"auto,always,never"`
	// What agentd puts beside a person's words, again only when it changed: `date` is the day, `environment` the working folder and the platform, `tree` the files of the workspace, as far as `limits.max_tree_depth`, `max_tree_entries` and `max_tree_bytes` allow.
	ContextSources []string `json:"context_sources,omitempty" enum:"date,environment,tree" example:"[date]"`
}

// sectionFile is the front matter of a section.
type sectionFile struct {
	// How often it changes: `static` on deploy, `org` when somebody edits something, `turn` with every message.
	Tier string `json:"tier" required:"true" enum:"static,org,turn" example:"static"`
	// Its place; equal ones go by name. Not set: 1000 for static, 2000 for org, 3000 for turn.
	Order *int `json:"order,omitempty" min:"0" max:"1000000" example:"100"`
	// The run modes in which it is shown; empty: all.
	Modes []string `json:"modes,omitempty" enum:"interactive,autonomous"`
	// Conditions, which must all hold.
	When sectionWhen `json:"when,omitzero"`
}

// sectionWhen are the conditions of a section.
type sectionWhen struct {
	// Patterns of tools' names, each of which must fit a tool that the model may call.
	Tools []string `json:"tools,omitempty"`
	// Patterns none of which may fit one.
	WithoutTools []string `json:"without_tools,omitempty"`
	// Modes of the session in which it is shown.
	Mode []string `json:"mode,omitempty" enum:"ask,plan,edit"`
	// A constraint on the fact `version`.
	Version string `json:"version,omitempty" example:">=4.4.0"`
}

// maxSections bounds the sections of a folder, maxSectionBytes each of them,
// maxSectionName its name.
const (
	maxSectionName  = 48
	maxSections     = 200
	maxSectionBytes = 256 << 10
)

// sections reads the folder of sections of a profile.
func (l *loader) sections(f *profileFile) {
	d, p := f.decoder, f.profile
	for _, name := range slices.Sorted(maps.Keys(p.PromptFacts)) {
		if !prompt.Kind(name) {
			d.fail(d.at("prompt_facts"), "prompt_facts."+name, "is not a name", "use 1 to 64 small letters, digits, _, . or -")
		}
	}
	if p.Sections == "" || d.wrong("sections") || d.wrong("prompt_facts") {
		return
	}
	at := d.at("sections")
	dir := filepath.ToSlash(filepath.Clean(p.Sections))
	if !fs.ValidPath(dir) {
		d.fail(at, "sections", "leads out of the configs folder", "write the path of a folder in it")
		return
	}
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil {
		d.fail(at, "sections", "the folder can not be read", "write the path of a folder relative to the configs folder")
		return
	}
	type ordered struct {
		prompt.Section
		order int
	}
	var list []ordered
	wrong := false
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".md" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		sec, order, problems := l.section(path.Join(dir, e.Name()), p.PromptFacts)
		d.problems = append(d.problems, problems...)
		if wrong = wrong || len(problems.Errors()) > 0; len(problems.Errors()) == 0 {
			list = append(list, ordered{sec, order})
		}
	}
	switch {
	case wrong:
		return // what else is wrong may come of that
	case len(list) == 0:
		d.warn("sections", "there is no section in it", "write NAME.md with front matter: a line ---, tier: static, a line ---, and the text")
		return
	case len(list) > maxSections:
		d.fail(at, "sections", fmt.Sprintf("there are %d sections, and %d are the most", len(list), maxSections), "join some")
		return
	}
	slices.SortStableFunc(list, func(a, b ordered) int { return cmp.Or(a.order-b.order, strings.Compare(a.Name, b.Name)) })
	sections := make([]prompt.Section, len(list))
	for i := range list {
		sections[i] = list[i].Section
	}
	_, err = prompt.NewSet(sections...)
	var problems prompt.Problems
	if errors.As(err, &problems) {
		for _, x := range problems {
			d.problems = append(d.problems, Problem{File: x.File, Line: x.Line, Column: 1, Key: x.Section, Message: x.What, Severity: SeverityError,
				Hint: "see docs/prompts.md; `order` in the front matter decides the place"})
		}
		return
	}
	p.SectionFiles = sections
}

// section reads one file.
func (l *loader) section(name string, facts map[string]string) (sec prompt.Section, order int, problems Problems) {
	file := path.Join(l.name, name)
	fail := func(line int, msg, hint string) (prompt.Section, int, Problems) {
		return sec, 0, append(problems, Problem{File: file, Line: line, Column: 1, Message: msg, Hint: hint, Severity: SeverityError})
	}
	bare := strings.TrimSuffix(path.Base(name), ".md")
	if !prompt.Kind(bare) || len(bare) > maxSectionName {
		return fail(1, "the file's name is not one of a section", "use 1 to 48 small letters, digits, _, . or -, and .md")
	}
	data, err := fs.ReadFile(l.fsys, name)
	if err != nil {
		return fail(1, "the section can not be read", "check that it is a file and its permissions")
	}
	if len(data) > maxSectionBytes {
		return fail(1, fmt.Sprintf("the section has %d bytes, more than %d", len(data), maxSectionBytes), "split it, or keep in the prompt only what every request needs")
	}
	front, text, line, ok := frontMatter(string(data))
	if !ok {
		return fail(1, "the section has no front matter", "begin with a line ---, then tier: static, org or turn, then a line ---, then the text")
	}
	root, bad := parseYAML(file, []byte(front))
	if root == nil {
		return sec, 0, bad
	}
	d := newDecoder(file, root, l.opts.Env)
	var s sectionFile
	d.value(root, "", reflect.ValueOf(&s).Elem(), "", 0)
	problems = d.problems
	names, lines := prompt.Unknown(text, facts)
	for i, n := range names {
		_, _, problems = fail(line+lines[i], "{{"+n+"}} is no fact", known(n, prompt.FactNames(facts))+"; others are defined in prompt_facts; \\{{ stands for a plain {{")
	}
	if strings.TrimSpace(text) == "" {
		_, _, problems = fail(line, "the section says nothing", "write its text below the front matter, or delete the file")
	}
	order = 1000 * (1 + slices.Index([]string{"static", "org", "turn"}, s.Tier))
	at := d.at("tier")
	if s.Order != nil {
		order, at = *s.Order, d.at("order")
	}
	return prompt.Section{Name: bare, Tier: prompt.Tier(s.Tier), RunModes: s.Modes,
		When: prompt.When{Tools: s.When.Tools, WithoutTools: s.When.WithoutTools, Mode: s.When.Mode, Version: s.When.Version},
		Text: text, Fill: true, File: file, Line: at.line, TextLine: line}, order, problems
}

// frontMatter splits a Markdown file into the YAML between its first two lines of ---,
// with as many lines ahead of it as in the file, and the text behind, whose first line
// is given.
func frontMatter(s string) (front, text string, line int, ok bool) {
	s = strings.ReplaceAll(strings.TrimPrefix(s, "\uFEFF"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(s, "---\n")
	if !ok {
		return "", "", 0, false
	}
	for at := 0; at <= len(rest); {
		end := strings.IndexByte(rest[at:], '\n')
		if end < 0 {
			end = len(rest) - at
		}
		if strings.TrimRight(rest[at:at+end], " \t") == "---" {
			front = "\n" + rest[:at]
			return front, rest[min(len(rest), at+end+1):], 1 + strings.Count(front, "\n") + 1, true
		}
		at += end + 1
	}
	return "", "", 0, false
}
