package agentd

import (
	"cmp"
	"os"

	"agentd/fault"
	"agentd/internal/profile"
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
