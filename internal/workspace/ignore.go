package workspace

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRule is one line of a .gitignore, as https://git-scm.com/docs/gitignore
// describes it.
type ignoreRule struct {
	// base is the folder of the .gitignore, "" for the root.
	base    string
	pattern string
	negate  bool
	dirOnly bool
	// anchored patterns match the path below base, others the name alone.
	anchored bool
}

// parseIgnore reads a .gitignore. Lines that are no pattern are skipped, as git
// does.
func parseIgnore(base string, data string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(data) {
		line = trimIgnore(strings.TrimRight(line, "\r\n"))
		if line == "" || line[0] == '#' {
			continue
		}
		r := ignoreRule{base: base}
		if line[0] == '!' {
			r.negate, line = true, line[1:]
		}
		if strings.HasSuffix(line, "/") {
			r.dirOnly, line = true, strings.TrimSuffix(line, "/")
		}
		if strings.Contains(line, "/") {
			r.anchored, line = true, strings.TrimPrefix(line, "/")
		}
		if rest, ok := strings.CutSuffix(line, "/**"); ok {
			line = rest + "/**/*" // what is inside, not the folder itself
		}
		// Braces are plain letters to git and alternatives to doublestar.
		r.pattern = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
		if line != "" && doublestar.ValidatePattern(r.pattern) {
			rules = append(rules, r)
		}
	}
	return rules
}

// trimIgnore removes spaces at the end, unless a backslash keeps them.
func trimIgnore(line string) string {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	return line
}

// ignored reports whether the last rule that matches says so. rel is a slash
// path below the root.
func ignored(rules []ignoreRule, rel string, isDir bool) bool {
	for _, r := range slices.Backward(rules) {
		if r.dirOnly && !isDir {
			continue
		}
		name := rel
		if r.base != "" {
			below, ok := strings.CutPrefix(rel, r.base+"/")
			if !ok {
				continue
			}
			name = below
		}
		if !r.anchored {
			name = path.Base(rel)
		}
		if doublestar.MatchUnvalidated(r.pattern, name) {
			return !r.negate
		}
	}
	return false
}
