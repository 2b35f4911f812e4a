package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// TreeLimits bound what [Workspace.Tree] gives. The zero value of a field means its default.
type TreeLimits struct {
	// Depth is how many levels of folders are opened; 1 is the root alone. Default 4.
	Depth int
	// Entries is how many files and folders are listed; default 400.
	Entries int
	// Bytes bounds the whole text; default 16 KiB.
	Bytes int
}

func (l *TreeLimits) withDefaults() TreeLimits {
	var out TreeLimits
	if l != nil {
		out = *l
	}
	for _, f := range []struct {
		v   *int
		def int
	}{{&out.Depth, 4}, {&out.Entries, 400}, {&out.Bytes, 16 << 10}} {
		if *f.v <= 0 {
			*f.v = f.def
		}
	}
	return out
}

// branch is a file or a folder of the listing.
type branch struct {
	rel, name string
	dir       bool
	// rules are those of the folders above it.
	rules    []ignoreRule
	below    []*branch
	left     int  // entries of a folder that found no room
	unopened bool // a folder that lies too deep to be opened
	huge     bool // a folder with more entries than may be looked at
}

// Tree lists the folder: an entry a line, folders with a slash at the end, what is in
// them below and indented by two spaces, all sorted by name. The same tree gives the same
// bytes. Left out is what the tools do not list: .git and node_modules, what .gitignore
// files name, what usually holds secrets, links. Levels are filled one after the other, so a large folder
// takes no room from those beside it that are nearer to the top; where entries are left
// out the listing says how many. An empty folder gives "". limits may be nil. Errors are
// those of the context and of a root that can not be read.
func (w *Workspace) Tree(ctx context.Context, limits *TreeLimits) (string, error) {
	l := limits.withDefaults()
	root := &branch{rel: ".", dir: true}
	room, level := l.Entries, []*branch{root}
	for depth := 1; len(level) > 0; depth++ {
		for _, b := range level {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			if b.unopened = depth > l.Depth; b.unopened {
				continue
			}
			// A folder that went away or may not be read is shown as if it were empty.
			if err := w.branches(b); err != nil && b == root {
				return "", err
			}
		}
		// The smallest come first, so that what they leave is shared by the others.
		bySize := slices.Clone(level)
		slices.SortStableFunc(bySize, func(a, b *branch) int { return len(a.below) - len(b.below) })
		for i, b := range bySize {
			share := min(len(b.below), max(room/(len(bySize)-i), min(room, 1)))
			b.below, b.left = b.below[:share], len(b.below)-share
			room -= share
		}
		var next []*branch
		for _, b := range level {
			for _, f := range b.below {
				if f.dir {
					next = append(next, f)
				}
			}
		}
		level = next
	}
	var lines []string
	root.lines(&lines, "")
	return fit(lines, l.Bytes), nil
}

// branches reads what is below a folder, sorted.
func (w *Workspace) branches(b *branch) error {
	f, info, err := w.open(b.rel)
	if err != nil {
		return err
	}
	defer f.Close()
	if !info.IsDir() {
		return fs.ErrInvalid
	}
	entries, _ := f.ReadDir(w.opts.MaxFiles + 1)
	if len(entries) > w.opts.MaxFiles {
		// Which of them were read is the file system's choice.
		b.huge = true
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	folder, prefix := "", ""
	if b.rel != "." {
		folder, prefix = b.rel, b.rel+"/"
	}
	rules := b.rules
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		rules = append(slices.Clip(rules), w.ignoreFile(folder)...)
	}
	for _, e := range entries {
		rel := prefix + e.Name()
		switch {
		case blocked(e.Name()), ignored(rules, rel, e.IsDir()), !e.IsDir() && !e.Type().IsRegular():
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
		default:
			b.below = append(b.below, &branch{rel: rel, name: e.Name(), dir: e.IsDir(), rules: rules})
		}
	}
	return nil
}

// maxTreeName is how much of a name is shown; file systems allow 255 bytes.
const maxTreeName = 255

// lines writes what is below a folder.
func (b *branch) lines(out *[]string, indent string) {
	for _, c := range b.below {
		// A name can hold line feeds, which clean takes away.
		line := indent + clean([]byte(c.name), maxTreeName)
		if !c.dir {
			*out = append(*out, line)
			continue
		}
		if line += "/"; c.unopened {
			line += " [not opened]"
		}
		*out = append(*out, line)
		c.lines(out, indent+"  ")
	}
	switch {
	case b.huge:
		*out = append(*out, indent+"[too many entries to list]")
	case b.left > 0:
		*out = append(*out, fmt.Sprintf("%s[%d more]", indent, b.left))
	}
}

// fit joins lines as far as they have room, and says how many have none.
func fit(lines []string, limit int) string {
	size := 0
	for _, l := range lines {
		size += len(l) + 1
	}
	if size <= limit {
		return strings.Join(lines, "\n")
	}
	room := limit - len("[ lines are left out]") - 10
	shown := 0
	for size = 0; shown < len(lines) && size+len(lines[shown])+1 <= room; shown++ {
		size += len(lines[shown]) + 1
	}
	return strings.Join(append(slices.Clip(lines[:shown]), fmt.Sprintf("[%d lines are left out]", len(lines)-shown)), "\n")
}
