package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
)

// skillView is a skill as --json shows it.
type skillView struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Source        string            `json:"source"`
	File          string            `json:"file"`
	Tools         []string          `json:"tools,omitempty"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Files         []string          `json:"files,omitempty"`
	Text          string            `json:"text,omitempty"`
}

func skillOf(k *agentd.Skill) skillView {
	return skillView{Name: k.Name, Description: k.Description, Source: k.Source, File: k.File, Tools: k.Tools,
		License: k.License, Compatibility: k.Compatibility, Metadata: k.Metadata}
}

func (a *app) skillsCommand() *cobra.Command {
	var profile, workspace string
	cmd := &cobra.Command{Use: "skills", Short: "List, show and check the skills of an agent",
		Long: `List, show and check the skills of an agent: folders with a SKILL.md, and files
NAME.skill.md. They are looked for where the profile says (skills.paths), in the
workspace (.agentd/skills, .agents/skills), in the user's home (the same) and in the
configuration (skills). Of two with the same name the first one found counts.`,
		Args: exactly(0, "a command: list, show or check"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	f := cmd.PersistentFlags()
	f.StringVar(&a.configs, "configs", "", "configuration (default: ./configs if it has agents/, else the built-in one)")
	f.StringVar(&profile, "profile", "", "profile of the agent (default: the default profile)")
	f.StringVar(&workspace, "workspace", "", "folder that the agent works in (default: what agentd.yaml says, else this one)")
	_ = cmd.MarkPersistentFlagDirname("configs")
	_ = cmd.MarkPersistentFlagDirname("workspace")
	found := func() (*agentd.SkillSet, error) { return agentd.Skills(a.configsFolder(), profile, workspace) }
	cmd.AddCommand(a.skillsList(found), a.skillsShow(found), a.skillsCheck(found))
	return cmd
}

type foundSkills func() (*agentd.SkillSet, error)

// unused says on standard error that the agent does not have the skills.
func (a *app) unused(s *agentd.SkillSet) {
	if !s.Enabled && !a.asJSON() {
		fmt.Fprintf(a.Err, "profile %s has no skills: write skills: {enabled: true} into it\n", s.Profile)
	}
}

func (a *app) skillsList(found foundSkills) *cobra.Command {
	return &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the skills of an agent", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			s, err := found()
			if err != nil {
				return err
			}
			defer a.unused(s)
			if n := len(s.Problems); n > 0 && !a.asJSON() {
				defer fmt.Fprintf(a.Err, "%s: agentd skills check\n", count(n, "problem"))
			}
			var rows []skillView
			for _, k := range s.Skills() {
				rows = append(rows, skillOf(k))
			}
			return list(a, rows, []string{"SKILL", "FROM", "DESCRIPTION", "FILE"}, func(k skillView) []string {
				return []string{k.Name, k.Source, shorten(k.Description, 80), k.File}
			}, "there are no skills")
		}}
}

func (a *app) skillsShow(found foundSkills) *cobra.Command {
	return &cobra.Command{Use: "show SKILL", Short: "Show a skill as agents load it, and its files", Args: exactly(1, "the name of a skill"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := found()
			if err != nil {
				return err
			}
			k, text, files, err := s.Show(args[0])
			if err != nil {
				return err
			}
			if a.asJSON() {
				v := skillOf(k)
				v.Files, v.Text = files, text
				return a.value(v)
			}
			defer a.unused(s)
			if err := facts(a.Out, "skill", k.Name, "description", k.Description, "from", k.Source, "file", k.File, "tools", strings.Join(k.Tools, ", "),
				"license", k.License, "compatibility", k.Compatibility, "files", strings.Join(files, "\n\t")); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "\n%s\n", text)
			return err
		}}
}

func (a *app) skillsCheck(found foundSkills) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{Use: "check", Short: "Check skills: every problem with file, line and what to do", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			s, err := found()
			if err != nil {
				return err
			}
			bad := 0
			for _, p := range s.Problems {
				if p.Severity == "error" || strict {
					bad++
				}
				line := p.String()
				if a.asJSON() {
					b, err := json.Marshal(map[string]any{"file": p.File, "line": p.Line, "severity": p.Severity, "message": p.Message, "hint": p.Hint})
					if err != nil {
						return err
					}
					line = string(b)
				}
				fmt.Fprintln(a.Out, line)
			}
			if bad > 0 {
				fmt.Fprintf(a.Err, "agentd: %d of %s must be fixed\n", bad, count(len(s.Problems), "problem"))
				return &exitError{exitUsage}
			}
			if !a.asJSON() {
				fmt.Fprintf(a.Out, "ok: %s\n", count(len(s.Skills()), "skill"))
			}
			a.unused(s)
			return nil
		}}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	return cmd
}
