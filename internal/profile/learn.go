package profile

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"agentd/internal/redact"
)

// SkillAccess says which skills an agent has.
type SkillAccess struct {
	// Skills: folders and files with instructions for particular tasks.
	Skills Skills `json:"skills,omitzero" example:"{enabled: true, paths: [skills/support]}"`
}

// Skills selects skills. Of two with the same name that of the first source counts: `paths` in their order, the project, the user, the configuration.
type Skills struct {
	// Whether the agent has skills: an index of them in its prompt and the tools `load_skill` and `read_skill_file`.
	Enabled bool `json:"enabled" default:"false"`
	// Folders with skills, or skills themselves; relative to the configs folder.
	Paths []string `json:"paths,omitempty" example:"[skills/support]"`
	// Whether skills of the workspace count: `.agentd/skills` and `.agents/skills` in it. Switch it off where the workspace holds files of people who must not instruct the agent.
	Project bool `json:"project" default:"true"`
	// Whether skills of the user who runs agentd count: `~/.agentd/skills` and `~/.agents/skills`.
	User bool `json:"user" default:"true"`
	// Whether the agent may write new skills when a person asks for it: the tool `create_skill` writes to `.agentd/skills` of the workspace and of the user who runs agentd, of the two those that `project` and `user` allow. It never changes a skill that exists.
	Create bool `json:"create" default:"false"`
	// Whether a message that begins with `/skill:NAME` brings that skill to the model with it. If not, such a message is words like any other.
	Commands bool `json:"commands" default:"true"`
	// Skills to leave out: names, or patterns with `*` and `?`.
	Deny []string `json:"deny,omitempty" example:"[\"draft-*\"]"`
}

// MemoryKeeping bounds what agents remember, and says where it is kept.
type MemoryKeeping struct {
	// Whether the memory of the tenant `default`, where no user is named, is in files that people can edit: `MEMORY.md` in the data folder and in the workspace. If false, on a PostgreSQL store, and for all others it is in the store.
	Files bool `json:"files" default:"true"`
	// Whether whatever stands in the `MEMORY.md` of the workspace is taken for the person's own words. If not, what agentd did not write there and nobody trusted (`agentd memory trust`) is shown to models as a quotation, because it may have come with somebody's repository.
	TrustProject bool `json:"trust_project" default:"false"`
	// Lines of the workspace's `MEMORY.md` that are noted as trusted; those that are not in the file just now go first. A file with more can not be trusted, nor be written to.
	MaxTrustedLines int `json:"max_trusted_lines" default:"10000" min:"100" max:"100000"`
	// Bytes of one document (global, or of the project); beyond it nothing more is remembered until something is removed.
	MaxBytes int `json:"max_bytes" default:"16384" min:"256" max:"1048576"`
	// Bytes of one entry.
	MaxEntryBytes int `json:"max_entry_bytes" default:"500" min:"32" max:"10000"`
}

// SkillLimits bound skills.
type SkillLimits struct {
	// Skills of one agent; further ones are left out.
	MaxSkills int `json:"max_skills" default:"100" min:"1" max:"1000"`
	// Bytes of a skill's text; a larger one can not be used.
	MaxSkillBytes int `json:"max_skill_bytes" default:"65536" min:"1024" max:"10485760"`
	// Bytes of a skill's file that `read_skill_file` gives.
	MaxFileBytes int `json:"max_file_bytes" default:"262144" min:"1024" max:"10485760"`
}

// learning checks what a profile says of memory and skills.
func (l *loader) learning(f *profileFile) {
	d, p := f.decoder, f.profile
	for i, k := range p.PIIPolicy.NeverStore {
		known := false
		for _, have := range redact.Kinds() {
			known = known || have == k
		}
		if key := fmt.Sprintf("pii_policy.never_store[%d]", i); !known && p.MemoryEnabled && !d.wrong(key) {
			d.warn(key, "agentd can not recognise "+d.quote(key, k)+"; the model is told not to remember it", "it recognises "+strings.Join(redact.Kinds(), ", ")+"; patterns go into pii_policy.redact")
		}
	}
	for i, name := range p.Skills.Paths {
		key := fmt.Sprintf("skills.paths[%d]", i)
		clean := filepath.ToSlash(filepath.Clean(name))
		switch {
		case name == "" || d.wrong(key):
		case filepath.IsAbs(name):
			continue
		case !fs.ValidPath(clean):
			d.fail(d.at(key), key, "leads out of the configs folder", "put the skills into the folder, or write an absolute path")
			continue
		}
		if name == "" {
			d.fail(d.at(key), key, "is empty", "name a folder or a file")
		} else if _, err := fs.Stat(l.fsys, clean); err != nil && !d.wrong(key) {
			d.fail(d.at(key), key, "there is no such file or folder", "write the path relative to the configs folder")
		}
	}
	if p.Skills.Create && p.Skills.Enabled && !p.Skills.Project && !p.Skills.User && !d.wrong("skills.create") {
		d.fail(d.at("skills.create"), "skills.create", "there is nowhere to write skills to", "allow skills.project or skills.user")
	}
	for i, pattern := range p.Skills.Deny {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			key := fmt.Sprintf("skills.deny[%d]", i)
			d.fail(d.at(key), key, "is not a pattern", "write a skill's name, or a pattern with * and ?")
		}
	}
}
