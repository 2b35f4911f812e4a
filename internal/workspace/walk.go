package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// maxWalkDepth is deeper than any tree that people make.
const maxWalkDepth = 100

// walk visits the regular files below a resolved folder: not .git and
// node_modules, not what .gitignore names, not what is blocked, and not
// through symbolic links. It reports whether it stopped at MaxFiles. visit
// gets paths below the root; an error from it ends the walk.
func (w *Workspace) walk(ctx context.Context, base string, visit func(rel string) error) (stopped bool, err error) {
	var rules []ignoreRule
	if base != "." {
		// Rules of the folders above count too.
		rules = append(rules, w.ignoreFile("")...)
		for i, c := range base {
			if c == '/' {
				rules = append(rules, w.ignoreFile(base[:i])...)
			}
		}
	}
	seen := 0
	err = w.walkDir(ctx, base, rules, 0, &seen, visit)
	if err == errEnough {
		return true, nil
	}
	return false, err
}

var errEnough = errors.New("enough was looked at")

func (w *Workspace) walkDir(ctx context.Context, dir string, rules []ignoreRule, depth int, seen *int, visit func(string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, info, err := w.open(dir)
	if err != nil || !info.IsDir() {
		if f != nil {
			f.Close()
		}
		if depth == 0 && err != nil {
			return err
		}
		return nil // it went away or may not be read: the rest still counts
	}
	// ReadDir of a huge folder is bounded by what may be looked at.
	entries, _ := f.ReadDir(w.opts.MaxFiles + 1)
	f.Close()
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		rules = append(slices.Clip(rules), w.ignoreFile(strings.TrimSuffix(prefix, "/"))...)
	}
	for _, e := range entries {
		if *seen++; *seen > w.opts.MaxFiles {
			return errEnough
		}
		rel := prefix + e.Name()
		if blocked(e.Name()) || ignored(rules, rel, e.IsDir()) {
			continue
		}
		switch {
		case e.IsDir():
			if e.Name() == ".git" || e.Name() == "node_modules" || depth >= maxWalkDepth {
				continue
			}
			if err := w.walkDir(ctx, rel, rules, depth+1, seen, visit); err != nil {
				return err
			}
		case e.Type().IsRegular():
			if err := visit(rel); err != nil {
				return err
			}
		}
	}
	return nil
}

// ignoreFile reads the .gitignore of a folder; none is no rules.
func (w *Workspace) ignoreFile(dir string) []ignoreRule {
	rel := ".gitignore"
	if dir != "" {
		rel = dir + "/.gitignore"
	}
	f, info, err := w.open(rel)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info.IsDir() {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return parseIgnore(dir, string(data))
}
