package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentd/fault"
)

// Set is the skills that were found, at one time. It is safe for concurrent use. Nil
// is a set without skills.
type Set struct {
	skills []*Skill
	limits Limits
}

// Skills are the skills, sorted by name.
func (s *Set) Skills() []*Skill {
	if s == nil {
		return nil
	}
	return s.skills
}

// Index is the section of a system prompt that says which skills there are; "" if
// there are none. The same skills give the same bytes. It changes when somebody
// changes a skill's name or description, so its tier is that of what an
// administrator edits (org).
func (s *Set) Index() string {
	if s == nil || len(s.skills) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Skills\n\nSkills are instructions for particular tasks. Where a task fits one, call " + Load + " with its name before you begin, and go by what it says.\n")
	for _, k := range s.skills {
		text := []rune(oneLine(k.Description))
		if len(text) > maxDescription {
			text = append(text[:maxDescription], '…')
		}
		b.WriteString("\n- " + k.Name + ": " + string(text))
	}
	return b.String()
}

// Find gives a skill by its name. The error lists the names.
func (s *Set) Find(name string) (*Skill, error) {
	var names []string
	for _, k := range s.Skills() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	hint := "There are no skills."
	if len(names) > 0 {
		hint = "The skills are: " + strings.Join(names, ", ") + "."
	}
	return nil, &fault.Error{Kind: fault.NotFound, Err: fmt.Errorf("there is no skill %q", name), Hint: hint}
}

// Text is the text of a skill as it is now.
func (s *Set) Text(k *Skill) (string, error) {
	data, err := k.readText(s.limits.Bytes)
	if err != nil {
		return "", err
	}
	now, body, problems := Parse(k.File, k.Name, data)
	if now == nil {
		return "", &fault.Error{Op: "skill", Kind: fault.Invalid, Field: k.File, Err: errors.New("the skill was changed and can not be used: " + problems[0].Message), Hint: problems[0].Hint}
	}
	return body, nil
}

// readText reads the file with the skill's text. What leads out of its place by now, also
// by a link where a folder was, is refused.
func (k *Skill) readText(limit int) ([]byte, error) {
	root, err := os.OpenRoot(k.text.root)
	if err != nil {
		return nil, unreadable(k, k.File)
	}
	defer func() { _ = root.Close() }()
	f, err := open(root, k.text.name)
	if err != nil {
		return nil, unreadable(k, k.File)
	}
	defer func() { _ = f.Close() }()
	return bounded(f, k, k.File, limit, "max_skill_bytes")
}

// open opens a regular file; it does not wait for what is none, such as a pipe.
func open(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func bounded(f fs.File, k *Skill, name string, limit int, key string) ([]byte, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, unreadable(k, name)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, unreadable(k, name)
	}
	if len(data) > limit {
		return nil, &fault.Error{Op: "skill", Kind: fault.TooLarge, Field: name, Err: fmt.Errorf("it has more than %d bytes", limit),
			Hint: "skills." + key + " in agentd.yaml is the limit."}
	}
	return data, nil
}

func unreadable(k *Skill, name string) error {
	return &fault.Error{Op: "skill", Kind: fault.NotFound, Field: name, Err: fmt.Errorf("skill %s has no such file that can be read", k.Name), Hint: Load + " lists the files of a skill."}
}

// maxListed bounds the files that are listed of a skill.
const maxListed = 200

// Files lists the files of a skill besides its text, sorted, with slashes. more is
// how many are left out.
func (s *Set) Files(k *Skill) (files []string, more int) {
	if k.Dir == "" {
		return nil, 0
	}
	root, err := os.OpenRoot(k.files.root)
	if err != nil {
		return nil, 0
	}
	defer func() { _ = root.Close() }()
	folder, err := root.OpenRoot(k.files.name)
	if err != nil {
		return nil, 0
	}
	defer func() { _ = folder.Close() }()
	left := s.limits.Visited
	_ = fs.WalkDir(folder.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil || name == "." {
			return nil
		}
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.Type().IsRegular() && name != fileName {
			if len(files) == maxListed {
				more++
			} else {
				files = append(files, name)
			}
		}
		return nil
	})
	slices.Sort(files)
	return files, more
}

// File reads a file of a skill. Names that lead out of its folder, also by a symbolic
// link, are refused.
func (s *Set) File(k *Skill, name string) (string, error) {
	if k.Dir == "" {
		return "", &fault.Error{Op: "skill", Kind: fault.NotFound, Field: name, Err: fmt.Errorf("skill %s has no files besides its text", k.Name)}
	}
	clean := path.Clean(strings.ReplaceAll(name, "\\", "/"))
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", &fault.Error{Op: "skill", Kind: fault.Forbidden, Field: name, Err: errors.New("the path leads out of the skill's folder"), Hint: "Give a path below it, such as references/example.md."}
	}
	root, err := os.OpenRoot(k.files.root)
	if err != nil {
		return "", unreadable(k, name)
	}
	defer func() { _ = root.Close() }()
	folder, err := root.OpenRoot(k.files.name)
	if err != nil {
		return "", unreadable(k, name)
	}
	defer func() { _ = folder.Close() }()
	f, err := open(folder, filepath.FromSlash(clean))
	if err != nil {
		return "", unreadable(k, name)
	}
	defer func() { _ = f.Close() }()
	data, err := bounded(f, k, name, s.limits.FileBytes, "max_file_bytes")
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", &fault.Error{Op: "skill", Kind: fault.Invalid, Field: name, Err: errors.New("it is not text"), Hint: "Only texts can be read."}
	}
	return string(data), nil
}
