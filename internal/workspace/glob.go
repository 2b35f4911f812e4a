package workspace

import (
	"context"
	_ "embed" // the description beside this file
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"agentd/tool"
)

//go:embed glob.md
var globDescription string

const globSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","minLength":1,"maxLength":512,"description":"Glob below path, such as **/*.go."},` +
	`"path":{"type":"string","description":"Folder to look in; the project folder if not given."}},` +
	`"required":["pattern"],"additionalProperties":false}`

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// maxGlob is how many paths a result lists.
const maxGlob = 1000

type globDetails struct {
	Files []string `json:"files"`
	// Found counts all matches, also those not listed.
	Found int `json:"found"`
	// Stopped is whether the tree was too large to look at all of it.
	Stopped bool `json:"stopped,omitempty"`
}

func (w *Workspace) glob(ctx context.Context, a globArgs) (tool.Result, error) {
	pattern := path.Clean(a.Pattern)
	switch {
	case a.Pattern == "" || len(a.Pattern) > 512:
		return tool.Result{}, refuse("pattern must have 1 to 512 letters.")
	case path.IsAbs(pattern) || pattern == ".." || strings.HasPrefix(pattern, "../"):
		return tool.Result{}, refuse("pattern must stay below path: write it relative, without .., such as **/*.go.")
	case !doublestar.ValidatePattern(pattern):
		return tool.Result{}, refuse("%q is not a glob pattern: a [ or { is not closed, or a backslash stands last.", a.Pattern)
	}
	base, err := w.folder(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	var found []string
	stopped, err := w.walk(ctx, base, func(rel string) error {
		if doublestar.MatchUnvalidated(pattern, below(base, rel)) {
			found = append(found, rel)
		}
		return nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	slices.Sort(found)
	details := globDetails{Files: found[:min(len(found), maxGlob)], Found: len(found), Stopped: stopped}
	var out strings.Builder
	shown := 0
	for _, f := range details.Files {
		if out.Len()+len(f) > w.opts.MaxBytes {
			break
		}
		out.WriteString(clean([]byte(f), maxLine) + "\n")
		shown++
	}
	details.Files = details.Files[:shown]
	switch {
	case len(found) == 0:
		out.WriteString("No files match " + a.Pattern + ".")
		if !strings.Contains(pattern, "**") {
			out.WriteString(" To look in all folders below, use **/" + pattern + ".")
		}
	case shown < len(found):
		fmt.Fprintf(&out, "[%d of %d files. Narrow the pattern or give a path to see the others.]", shown, len(found))
	}
	if stopped {
		fmt.Fprintf(&out, "\n[Stopped after looking at %d entries: give a path.]", w.opts.MaxFiles)
	}
	return result(strings.TrimSpace(out.String()), details)
}

// folder resolves a path that must be a folder.
func (w *Workspace) folder(name string) (string, error) {
	rel, err := w.resolve(name)
	if err != nil {
		return "", err
	}
	f, info, err := w.open(rel)
	if err != nil {
		return "", w.reason(name, rel, err)
	}
	f.Close()
	if !info.IsDir() {
		return "", refuse("%s is a file, not a folder. Use file_read to read it.", name)
	}
	return rel, nil
}

// below is rel seen from base.
func below(base, rel string) string {
	if base == "." {
		return rel
	}
	return strings.TrimPrefix(rel, base+"/")
}
