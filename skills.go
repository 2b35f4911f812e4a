package agentd

import (
	"cmp"
	"context"
	"errors"
	"os"

	"agentd/fault"
	"agentd/internal/profile"
	"agentd/internal/server"
	"agentd/internal/skill"
)

type (
	// Skill is what is known of a skill before its text is read.
	Skill = skill.Skill
	// SkillProblem is one thing that is wrong with a skill, and where.
	SkillProblem = skill.Problem
)

// SkillSet is the skills that an agent has.
type SkillSet struct {
	// Profile is the one whose they are; Enabled whether it says so (skills.enabled).
	Profile string
	Enabled bool
	// Problems are what is wrong with skills, used or not.
	Problems []SkillProblem

	set *skill.Set
}

// Skills are the skills, sorted by name.
func (s *SkillSet) Skills() []*Skill { return s.set.Skills() }

// Show gives a skill, its text and its files. The error lists the names.
func (s *SkillSet) Show(name string) (k *Skill, text string, files []string, err error) {
	if k, err = s.set.Find(name); err != nil {
		return nil, "", nil, err
	}
	text, err = s.set.Text(k)
	files, _ = s.set.Files(k)
	return k, text, files, err
}

// Skills gives the skills of a profile ("": the one that a person gets who names none)
// of a configuration folder (empty: the embedded one), with a workspace (empty: what
// agentd.yaml says, else the working folder). Nothing is opened or started.
func Skills(configs, profileName, workspace string) (*SkillSet, error) {
	conf, problems := read(configs, &profile.Options{Builtins: builtinNames(nil)})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if profileName == "" {
		profileName = cmp.Or(conf.Settings.DefaultProfile, "default")
	}
	p, err := conf.Profile(profileName)
	if err != nil {
		return nil, err
	}
	project := cmp.Or(workspace, conf.Settings.Workspace, ".")
	if info, err := os.Stat(project); err != nil || !info.IsDir() {
		return nil, &fault.Error{Op: "agentd.Skills", Kind: fault.Invalid, Field: project, Err: os.ErrNotExist, Hint: "Name a folder as the workspace."}
	}
	l := newLearning(&Config{Configs: configs}, conf, nil, project, nil, os.LookupEnv)
	set, found := l.skills(p)
	return &SkillSet{Profile: p.ProfileName, Enabled: p.Skills.Enabled, Problems: found, set: set}, nil
}

// skillsOf shows clients the skills that agents have. They are the configuration's and the
// workspace's, so all tenants have the same.
type skillsOf struct{ a *agents }

func (s skillsOf) of(name string) (*profile.Profile, *skill.Set, error) {
	if name == "" {
		name, _ = s.a.defaultProfile()
	}
	p, err := s.a.conf.Profile(name)
	if err != nil {
		return nil, nil, err
	}
	set, _ := s.a.learning.skills(p)
	return p, set, nil
}

// List implements server.Skills.
func (s skillsOf) List(_ context.Context, _, name string) (*server.SkillList, error) {
	p, set, err := s.of(name)
	if err != nil {
		return nil, err
	}
	out := &server.SkillList{Profile: p.ProfileName, Enabled: p.Skills.Enabled}
	for _, k := range set.Skills() {
		out.Skills = append(out.Skills, skillView(k))
	}
	return out, nil
}

// Get implements server.Skills.
func (s skillsOf) Get(_ context.Context, _, name, wanted string) (*server.SkillView, error) {
	_, set, err := s.of(name)
	if err != nil {
		return nil, err
	}
	k, err := set.Find(wanted)
	if err != nil {
		return nil, err
	}
	v := skillView(k)
	if v.Text, err = set.Text(k); err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			of := *f
			of.Field = k.Name // where its file lies is the operator's business
			err = &of
		}
		return nil, err
	}
	v.Files, _ = set.Files(k)
	return v, nil
}

func skillView(k *skill.Skill) *server.SkillView {
	return &server.SkillView{Name: k.Name, Description: k.Description, Source: k.Source, Tools: k.Tools, License: k.License, Compatibility: k.Compatibility, Metadata: k.Metadata}
}
