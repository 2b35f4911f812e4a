package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentd/fault"
)

// What a link leads to that came after the skill was found is not read: neither its text
// nor its files, nor the names of others.
func TestLinksThatComeLater(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inside bool
		// swap puts a link to outside where something of the skill was.
		swap func(dir, outside string) error
	}{
		{"the text, of a project", true, func(dir, outside string) error {
			return relink(filepath.Join(dir, "a", fileName), filepath.Join(outside, "a", fileName))
		}},
		{"the text, of a user", false, func(dir, outside string) error {
			return relink(filepath.Join(dir, "a", fileName), filepath.Join(outside, "a", fileName))
		}},
		{"the folder, of a project", true, func(dir, outside string) error {
			return relink(filepath.Join(dir, "a"), filepath.Join(outside, "a"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			write(t, dir, map[string]string{"a/SKILL.md": skillFile("a", "b"), "a/more.md": "more"})
			write(t, outside, map[string]string{"a/SKILL.md": "---\nname: a\ndescription: b\n---\nsecret\n", "a/more.md": "secret", "a/other.md": "secret"})
			set, problems := new(Finder).Find([]Source{{Kind: "x", Path: dir, Inside: tt.inside}}, Limits{}, nil)
			if len(problems) > 0 || len(set.Skills()) != 1 {
				t.Fatal(problems)
			}
			k := set.Skills()[0]
			if text, err := set.Text(k); err != nil || text != "Do a." {
				t.Fatalf("%q %v", text, err)
			}
			if err := tt.swap(dir, outside); err != nil {
				t.Fatal(err)
			}
			if text, err := set.Text(k); fault.KindOf(err) != fault.NotFound || text != "" {
				t.Errorf("the text: %q %v", text, err)
			}
			if text, err := set.File(k, "more.md"); strings.Contains(text, "secret") {
				t.Errorf("a file: %q %v", text, err)
			}
			if files, _ := set.Files(k); strings.Contains(strings.Join(files, " "), "other") {
				t.Errorf("the files: %v", files)
			}
		})
	}
}

// relink puts a link where something is.
func relink(at, to string) error {
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	return os.Symlink(to, at)
}

// A folder of skills that is itself a link out of the workspace is none of its.
func TestFolderOfSkillsThatLeadsOut(t *testing.T) {
	project, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"a/SKILL.md": skillFile("a", "b")})
	write(t, project, map[string]string{"skills/b/SKILL.md": skillFile("b", "b")})
	for link, to := range map[string]string{"out": outside, "in": filepath.Join(project, "skills")} {
		if err := os.Symlink(to, filepath.Join(project, link)); err != nil {
			t.Fatal(err)
		}
	}
	set, problems := new(Finder).Find([]Source{{Kind: "project", Path: filepath.Join(project, "out"), Inside: true, Within: project},
		{Kind: "project", Path: filepath.Join(project, "in"), Inside: true, Within: project}}, Limits{}, nil)
	if got := lines(problems, project); len(set.Skills()) != 1 || set.Skills()[0].Name != "b" || got != "DIR0/out:1: error: it leads out of the project's folder (put the skills themselves there, or name their folder in skills.paths of the profile)" {
		t.Errorf("%+v\n%s", set.Skills(), got)
	}
}
