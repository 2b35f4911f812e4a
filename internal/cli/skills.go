package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
)

// skillView is a skill as --json shows it.
type skillView struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Source        string            `json:"source"`
	File          string            `json:"file,omitempty"`
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
	f.StringVar(&a.server, "server", "", "address of a server, such as http://127.0.0.1:7070, to show what its agents have (default: $"+serverVariable+", unless --configs or --workspace says that it is about files here)")
	f.StringVar(&a.key, "api-key", "", "API key for the server, or @FILE with it (default: $"+keyVariable+")")
	f.StringVar(&a.configs, "configs", "", "configuration (default: ./configs if it has agents/, else the built-in one)")
	f.StringVar(&profile, "profile", "", "profile of the agent (default: the default profile)")
	f.StringVar(&workspace, "workspace", "", "folder that the agent works in (default: what agentd.yaml says, else this one)")
	_ = cmd.MarkPersistentFlagDirname("configs")
	_ = cmd.MarkPersistentFlagDirname("workspace")
	found := func() (*agentd.SkillSet, error) { return agentd.Skills(a.configsFolder(), profile, workspace) }
	there := func() (*client.Client, error) {
		address := a.server
		if a.configs+workspace != "" {
			if address != "" {
				return nil, &usageError{errors.New("give --server, or --configs and --workspace: a server has its own")}
			}
			return nil, nil
		}
		if address == "" {
			address = os.Getenv(serverVariable)
		}
		if address == "" {
			return nil, nil
		}
		key, err := a.apiKey()
		if err != nil {
			return nil, err
		}
		return client.New(address, &client.Options{Key: key})
	}
	at := skillsAt{found: found, there: there, profile: &profile}
	cmd.AddCommand(a.skillsList(at), a.skillsShow(at), a.skillsCheck(at))
	return cmd
}

// skillsAt is where skills are looked for: in files here, or at a server.
type skillsAt struct {
	found foundSkills
	// there gives the server, nil where files are meant.
	there   func() (*client.Client, error)
	profile *string
}

// list gives the skills; without a server their set and problems, too.
func (at *skillsAt) list(ctx context.Context) (rows []skillView, enabled bool, profile string, s *agentd.SkillSet, err error) {
	c, err := at.there()
	if err != nil {
		return nil, false, "", nil, err
	}
	if c != nil {
		all, err := c.Skills(ctx, *at.profile)
		if err != nil {
			return nil, false, "", nil, err
		}
		for _, k := range all.Skills {
			rows = append(rows, remoteSkill(k))
		}
		return rows, all.Enabled, all.Profile, nil, nil
	}
	if s, err = at.found(); err != nil {
		return nil, false, "", nil, err
	}
	for _, k := range s.Skills() {
		rows = append(rows, skillOf(k))
	}
	return rows, s.Enabled, s.Profile, s, nil
}

// show gives one skill with its text.
func (at *skillsAt) show(ctx context.Context, name string) (v skillView, s *agentd.SkillSet, err error) {
	c, err := at.there()
	if err != nil {
		return v, nil, err
	}
	if c != nil {
		k, err := c.Skill(ctx, *at.profile, name)
		if err != nil {
			return v, nil, err
		}
		return remoteSkill(k), nil, nil
	}
	if s, err = at.found(); err != nil {
		return v, nil, err
	}
	k, text, files, err := s.Show(name)
	if err != nil {
		return v, nil, err
	}
	v = skillOf(k)
	v.Files, v.Text = files, text
	return v, s, nil
}

// remoteSkill is a skill of a server, which keeps its place to itself.
func remoteSkill(k *client.Skill) skillView {
	return skillView{Name: k.Name, Description: k.Description, Source: k.Source, Tools: k.Tools, License: k.License, Compatibility: k.Compatibility, Metadata: k.Metadata, Files: k.Files, Text: k.Text}
}

type foundSkills func() (*agentd.SkillSet, error)

// unused says on standard error that the agent does not have the skills.
func (a *app) unused(profile string, enabled bool) {
	if !enabled && !a.asJSON() {
		fmt.Fprintf(a.Err, "profile %s has no skills: write skills: {enabled: true} into it\n", profile)
	}
}

func (a *app) skillsList(at skillsAt) *cobra.Command {
	return &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the skills of an agent", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, enabled, profile, s, err := at.list(cmd.Context())
			if err != nil {
				return err
			}
			defer a.unused(profile, enabled)
			if s != nil && len(s.Problems) > 0 && !a.asJSON() {
				defer fmt.Fprintf(a.Err, "%s: agentd skills check\n", count(len(s.Problems), "problem"))
			}
			return list(a, rows, []string{"SKILL", "FROM", "DESCRIPTION", "FILE"}, func(k skillView) []string {
				return []string{k.Name, k.Source, shorten(k.Description, 80), k.File}
			}, "there are no skills")
		}}
}

func (a *app) skillsShow(at skillsAt) *cobra.Command {
	return &cobra.Command{Use: "show SKILL", Short: "Show a skill as agents load it, and its files", Args: exactly(1, "the name of a skill"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, s, err := at.show(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.asJSON() {
				return a.value(k)
			}
			if s != nil {
				defer a.unused(s.Profile, s.Enabled)
			}
			if err := facts(a.Out, "skill", k.Name, "description", k.Description, "from", k.Source, "file", k.File, "tools", strings.Join(k.Tools, ", "),
				"license", k.License, "compatibility", k.Compatibility, "files", strings.Join(k.Files, "\n\t")); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "\n%s\n", k.Text)
			return err
		}}
}

func (a *app) skillsCheck(at skillsAt) *cobra.Command {
	var strict bool
	cmd := &cobra.Command{Use: "check", Short: "Check skills: every problem with file, line and what to do", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if a.server != "" {
				return &usageError{errors.New("skills are checked where their files are: give --configs and --workspace instead of --server")}
			}
			s, err := at.found()
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
			a.unused(s.Profile, s.Enabled)
			return nil
		}}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	return cmd
}
