package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Source is a folder in which skills are looked for, or a skill itself.
type Source struct {
	// Kind is profile, project, user or pack.
	Kind string
	Path string
	// Inside refuses what leads out of the folder by a symbolic link: it came with
	// somebody else's files.
	Inside bool
	// Within is the folder that Path itself must really lie in; "" for anywhere.
	Within string
	// Must: that it is not there is a problem.
	Must bool
}

// Limits bound what is looked at. A value of 0 means its default.
type Limits struct {
	// Skills is how many there may be in an index; default 100.
	Skills int
	// Bytes is how large a skill's text may be; default 64 KiB.
	Bytes int
	// FileBytes is how large a file may be that a model reads; default 256 KiB.
	FileBytes int
	// Visited is how many files and folders are looked at in one source; default
	// 10,000.
	Visited int
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		of    *int
		value int
	}{{&l.Skills, 100}, {&l.Bytes, 64 << 10}, {&l.FileBytes, 256 << 10}, {&l.Visited, 10_000}} {
		if *d.of <= 0 {
			*d.of = d.value
		}
	}
	return l
}

// maxDepth is how deep below a source skills are looked for.
const maxDepth = 6

// Names of files that are skills.
const (
	fileName = "SKILL.md"
	suffix   = ".skill.md"
)

// Finder finds skills and remembers files that have not changed. It is safe for
// concurrent use. The zero value is ready.
type Finder struct {
	mu    sync.Mutex
	known map[string]known
}

type known struct {
	real     string
	size     int64
	changed  time.Time
	skill    *Skill
	problems []Problem
}

// Find looks into the sources in their order and gives the skills, sorted by name,
// and everything that is wrong. deny leaves out skills by name.
func (f *Finder) Find(sources []Source, limits Limits, deny func(name string) bool) (*Set, []Problem) {
	w := &walk{f: f, limits: limits.withDefaults(), seen: map[string]bool{}, fresh: map[string]known{}}
	byName := map[string]*Skill{}
	for _, src := range sources {
		w.source, w.left = src, w.limits.Visited
		from := len(w.found)
		w.begin()
		slices.SortFunc(w.found[from:], func(a, b *Skill) int { return strings.Compare(a.File, b.File) })
	}
	var all []*Skill
	for _, s := range w.found {
		if deny != nil && deny(s.Name) {
			continue
		}
		if first := byName[s.Name]; first != nil {
			w.add(s.File, Warning, fmt.Sprintf("another skill is named %s and comes first: %s", s.Name, first.File), "rename one of them")
			continue
		}
		if len(all) == w.limits.Skills {
			w.add(s.File, Warning, fmt.Sprintf("there are more than %d skills, and this one is left out", len(all)), "raise skills.max_skills in agentd.yaml, or leave some out (skills.deny)")
			continue
		}
		byName[s.Name] = s
		all = append(all, s)
	}
	f.mu.Lock()
	if f.known == nil {
		f.known = map[string]known{}
	}
	if len(f.known) > 4*w.limits.Skills+1000 { // files that went, and other workspaces'
		f.known = map[string]known{}
	}
	for k, v := range w.fresh {
		f.known[k] = v
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return &Set{skills: all, limits: w.limits}, w.problems
}

type walk struct {
	f        *Finder
	limits   Limits
	source   Source
	root     string // of the source, without symbolic links
	left     int
	seen     map[string]bool // real paths
	fresh    map[string]known
	found    []*Skill
	problems []Problem
}

func (w *walk) add(file string, sev Severity, msg, hint string) {
	w.problems = append(w.problems, Problem{File: file, Line: 1, Severity: sev, Message: msg, Hint: hint})
}

func (w *walk) begin() {
	real, err := filepath.EvalSymlinks(w.source.Path)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(real)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if w.source.Must {
			w.add(w.source.Path, Error, "there is no such file or folder", "skills.paths of the profile names it")
		}
		return
	case err != nil:
		w.add(w.source.Path, Error, "it can not be read", "check its permissions")
		return
	}
	if w.source.Within != "" {
		within, err := filepath.EvalSymlinks(w.source.Within)
		rel := ""
		if err == nil {
			rel, err = filepath.Rel(within, real)
		}
		if err != nil || !filepath.IsLocal(rel) {
			w.add(w.source.Path, Error, "it leads out of the project's folder", "put the skills themselves there, or name their folder in skills.paths of the profile")
			return
		}
	}
	w.root = real
	if !info.IsDir() {
		w.root = filepath.Dir(real)
		if filepath.Base(w.source.Path) == fileName {
			w.folder(filepath.Dir(w.source.Path))
		} else {
			w.file(w.source.Path, "")
		}
		return
	}
	w.dir(w.source.Path, 0)
}

// enter gives the real path of what is found, once.
func (w *walk) enter(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.add(path, Error, "it can not be read", "check its permissions")
		}
		return "", false
	}
	if rel, err := filepath.Rel(w.root, real); w.source.Inside && (err != nil || !filepath.IsLocal(rel)) {
		w.add(path, Error, "it leads out of the project's folder", "put the skill itself there, or name its folder in skills.paths of the profile")
		return "", false
	}
	if w.seen[real] {
		return "", false
	}
	w.seen[real] = true
	return real, true
}

func (w *walk) dir(dir string, depth int) {
	if _, ok := w.enter(dir); !ok {
		return
	}
	if info, err := os.Stat(filepath.Join(dir, fileName)); err == nil && !info.IsDir() {
		w.folder(dir)
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.add(dir, Error, "the folder can not be read", "check its permissions")
		return
	}
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if strings.HasPrefix(name, ".") || name == "node_modules" {
			continue
		}
		if w.left--; w.left < 0 {
			if w.left == -1 {
				w.add(w.source.Path, Warning, fmt.Sprintf("more than %d files and folders: the others are not looked at", w.limits.Visited), "name the folders with skills themselves in skills.paths")
			}
			return
		}
		info, err := os.Stat(path)
		switch {
		case err != nil: // a link to nothing
		case info.IsDir() && depth < maxDepth:
			w.dir(path, depth+1)
		case info.Mode().IsRegular() && strings.HasSuffix(name, suffix):
			w.file(path, "")
		}
	}
}

// folder takes a folder with a SKILL.md.
func (w *walk) folder(dir string) { w.file(filepath.Join(dir, fileName), dir) }

func (w *walk) file(path, dir string) {
	real, ok := w.enter(path)
	if !ok {
		return
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() {
		w.add(path, Error, "it is not a file that can be read", "check its permissions")
		return
	}
	key := path + "\x00" + w.source.Kind
	w.f.mu.Lock()
	have, ok := w.f.known[key]
	w.f.mu.Unlock()
	if !ok || have.real != real || have.size != info.Size() || !have.changed.Equal(info.ModTime()) {
		have = known{real: real, size: info.Size(), changed: info.ModTime()}
		have.skill, have.problems = w.parse(path, real, dir, info.Size())
	}
	w.fresh[key] = have
	w.problems = append(w.problems, have.problems...)
	if have.skill != nil {
		w.found = append(w.found, have.skill)
	}
}

// parse reads a skill whose file is at path, and really at real; dir is its folder, if it
// has one.
func (w *walk) parse(path, real, dir string, size int64) (*Skill, []Problem) {
	bad := func(msg, hint string) (*Skill, []Problem) {
		return nil, []Problem{{File: path, Line: 1, Severity: Error, Message: msg, Hint: hint}}
	}
	if size > int64(w.limits.Bytes) {
		return bad(fmt.Sprintf("the file has %d bytes, more than %d", size, w.limits.Bytes), "move parts into files of their own, or raise skills.max_skill_bytes in agentd.yaml")
	}
	at := Skill{File: path, text: place{filepath.Dir(real), filepath.Base(real)}}
	if dir != "" {
		var err error
		if at.Dir, err = filepath.EvalSymlinks(dir); err != nil {
			return bad("the folder can not be read", "check its permissions")
		}
		at.files = place{at.Dir, "."}
	}
	if w.source.Inside {
		// The source's folder is the wall, whatever becomes of what is in it.
		var err, err2 error
		at.text.root = w.root
		at.text.name, err = filepath.Rel(w.root, real)
		if dir != "" {
			at.files.root = w.root
			at.files.name, err2 = filepath.Rel(w.root, at.Dir)
		}
		if err != nil || err2 != nil {
			return bad("it can not be read", "check its permissions")
		}
	}
	data, err := at.readText(w.limits.Bytes)
	if err != nil {
		return bad("the file can not be read", "check its permissions")
	}
	folder := ""
	if dir != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			folder = filepath.Base(abs)
		}
	}
	s, _, problems := Parse(path, folder, data)
	if s != nil {
		s.Source = w.source.Kind
		s.Dir, s.text, s.files = at.Dir, at.text, at.files
	}
	return s, problems
}
